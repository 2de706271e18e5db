"""Random tensors, from the Threefry cipher on a counter.

Sections: Random words of 32 bits; Random tensors.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self
from weakref import WeakSet

import numpy as np

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.base.dtypes import DType, dtypes
from workbench.base.interrupts import free_lock, scope
from workbench.execution.buffers import memory_of
from workbench.ir.functions.formulas import cos_of_turns
from workbench.ir.meaning.threefry import Block, threefry_of_integers
from workbench.ir.node.construct import contiguous
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import canonical
from workbench.tensor.creation.creation import Creation
from workbench.tensor.movement.movement import reshaped, shrunk
from workbench.tensor.operands.arguments import dtype_error, flag, number, shape_error, short, whole
from workbench.tensor.operands.axes import iota, sizes
from workbench.tensor.operands.broadcast import cast_to, expanded, scalar_dtype, wide_dtype
from workbench.tensor.operands.literal import as_dtype

# --------------------------------------------------------------------------------------------------
# Random words of 32 bits: a stream for each device, from which each draw takes the next ones.
#
# A draw of n words has a key: threefry of its place in the stream, under the seed. Let h be half of
# n, rounded up. Word i of the draw is the first word of threefry of the counter (i, i + h), and
# word h + i the second one. With the same seed these are the bits of tinygrad 0.14.

LONGEST = 0xFFFFFFFF
"""The maximal number of words of one key; a longer draw has several keys."""


@dataclass(slots=True)
class _StreamPosition:
    """The position in the stream of one device: words taken, and the first word of its keys."""

    prefix: int
    position: int = 0


class Stream:
    """The seed, and for each device the number of words taken since the seed was set.

    Devices are numbered by their first draws, and draw different words: a stream depends on this
    number, and not on the name of the device.
    """

    def __init__(self) -> None:
        self.lock = free_lock()
        self.restart(0)

    def restart(self, seed: int) -> None:
        """Set the seed, of which the low 32 bits count, and begin all streams again."""
        with self.lock:
            self.seed = seed & 0xFFFFFFFF
            self._places: dict[str, _StreamPosition] = {}

    @property
    def position(self) -> int:
        """The number of words taken on all devices since the seed was set."""
        return sum(place.position for place in self._places.values())

    def take(self, device: str, count: int) -> list[Block[int]]:
        """Take `count` words of a device's stream; return their keys, one per LONGEST words."""
        with self.lock:
            if device not in self._places:
                self._places[device] = _StreamPosition(_prefix(len(self._places)))
            place, seed = self._places[device], self.seed
            first = place.position
            place.position += count
        return [
            threefry_of_integers(
                (start & 0xFFFFFFFF, start >> 32 & 0xFFFFFFFF), (place.prefix, seed)
            )
            for start in range(first, first + max(1, count), LONGEST)
        ]


def words_at(keys: UOp, place: UOp, count: int) -> UOp:
    """Return the words at `place` of a draw of `count` words.

    Shapes: `place` has one axis; `keys` is flat, two words for each key. Dtypes: `place` is as
    `counting_words` returns it; keys and words are uint32.
    """
    words = _of_key(keys, 0, place, min(count, LONGEST))
    for first in range(LONGEST, count, LONGEST):
        size = min(count - first, LONGEST)
        later = _of_key(keys, 2 * (first // LONGEST), place - first, size)
        words = (place < first).where(words, later)
    return words


def counting_words(count: int, words: int) -> UOp:
    """Return 0, 1, .. count - 1, in a type that counts `words`."""
    return iota(count, dtypes.uint32 if words <= LONGEST else dtypes.int64)


def _of_key(keys: UOp, first: int, place: UOp, count: int) -> UOp:
    half = (count + 1) // 2
    is_second = place >= half
    low = is_second.where(place - half, place).cast(dtypes.uint32)
    key = [expanded(shrunk(keys, ((i, i + 1),)), place.shape) for i in (first, first + 1)]
    return low.alu(Ops.THREEFRY, low + half, *key, is_second.cast(dtypes.uint32))


def _prefix(number: int) -> int:
    """Return the first word of the keys of device `number`, by the order of first draws."""
    digest = hashlib.sha256(number.to_bytes(4, "big")).digest()
    return int.from_bytes(digest[-4:], "big")


# --------------------------------------------------------------------------------------------------
# Random tensors: draws from a stream of random words, the same on every device.
#
# The numbers are those of tinygrad 0.14 after the same seed: `rand` and what is computed of it bit
# for bit, `randn` to within 1e-6. A kernel reads its key from memory, so that calls of one shape
# run the same kernel.

Draw = Callable[[UOp, int], UOp]
"""A function of the keys and the number of elements of a draw: its values, of shape (count,)."""

_WIDEST_SCALED = 1 << 10
"""Widest range of integers that is drawn as `rand` times the width, as in tinygrad."""

_stream = Stream()
_draws: ContextVar[list[Keys] | None] = ContextVar("draws", default=None)
_keys: WeakSet[UOp] = WeakSet()


def is_key(node: UOp) -> bool:
    """Whether a node is the BUFFER with the keys of a draw."""
    return node in _keys


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one draw of `count` words, in `node`, a BUFFER of the host."""

    node: UOp
    device: str
    count: int

    def renew(self) -> Buffer:
        """Write the keys of the next words of the stream to the BUFFER, and return its memory."""
        memory = memory_of(self.node)
        keys = _stream.take(self.device, self.count)
        memory.array[:] = np.array(keys, np.uint32).reshape(-1)
        return memory


@scope
def noting_draws() -> Generator[list[Keys], None, None]:
    """Return a `with` block that lists the keys of all draws in it, in order."""
    draws: list[Keys] = []
    token = _draws.set(draws)
    try:
        yield draws
    finally:
        _draws.reset(token)


class Random(Creation):
    """`Tensor.manual_seed`, `rand`, `randn`, `randint`, `uniform`, `normal`.

    Without a seed the stream begins as after `manual_seed(0)`: a notebook that runs again shows
    the same numbers. The tensors are marked to be stored, as by `contiguous`.
    """

    __slots__ = ()

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Begin all streams again with `seed`, an integer of at most 64 bits; the low 32 count.

        Errors: DTypeError for another value.

        >>> Tensor.manual_seed(7)
        """
        number = whole(seed, "manual_seed: seed")
        scalar_dtype(number)  # refuses more bits
        _stream.restart(number)

    @classmethod
    def rand(
        cls,
        *shape: Any,
        device: str | None = None,
        dtype: DType | str | None = None,
        contiguous: bool = True,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return numbers of the uniform distribution from 0 up to, but not including, 1.

        With `contiguous=False` each kernel that reads them computes them again, to equal values.
        Dtypes: float32, or another float; all of its fraction bits are random.
        Errors: DTypeError if `dtype` is not a float.
        """
        kind = float_dtype(dtype, "rand")
        size, is_stored = sizes(shape, "rand"), flag(contiguous, "rand: contiguous")
        return cls._draw(
            size, kind, device, kind.bits, lambda k, n: _uniform(k, n, kind), is_stored
        )._leaf_if(requires_grad)

    @classmethod
    def randn(
        cls,
        *shape: Any,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return numbers of the normal distribution of mean 0 and deviation 1; always finite.

        Dtypes: float32, or another float, rounded from float32. Errors: DTypeError if `dtype` is
        not a float. Source: Box and Muller 1958.
        """
        return cls._normal("randn", shape, dtype, device)._leaf_if(requires_grad)

    @classmethod
    def randint(
        cls,
        *shape: Any,
        low: int = 0,
        high: int = 10,
        dtype: DType | str | None = dtypes.int32,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return integers of the uniform distribution from `low` up to, but not including, `high`.

        All are equally likely: up to 1,024 integers (`rand`, scaled and truncated) to within a part
        in 8,000, more integers to within 2**-32.
        Dtypes: int32 unless given. Errors: ShapeError unless `low` is below `high`; DTypeError for
        a `dtype` that is no integer type, or does not hold all of them.
        """
        kind = dtypes.default_int if dtype is None else as_dtype(dtype)
        low, high = whole(low, "randint: low"), whole(high, "randint: high")
        if low >= high:
            raise shape_error(
                f"cannot draw integers from {short(low)} up to {short(high)}",
                "there is none: high itself is not drawn",
                f"high={short(low + 1)}",
            )
        if not kind.is_int or low < kind.min or high - 1 > kind.max:
            raise dtype_error(
                f"cannot draw integers from {short(low)} up to {short(high)} as {kind}",
                "it does not hold them all",
                "dtype=dtypes.int64",
            )
        width, size = high - low, sizes(shape, "randint")

        def values(keys: UOp, count: int) -> UOp:
            return cast_to(_integers_below(keys, count, width), kind) + kind.const(low)

        return cls._draw(size, kind, device, 32 * _words_below(width), values)._leaf_if(
            requires_grad
        )

    @classmethod
    def uniform(
        cls,
        *shape: Any,
        low: float = 0.0,
        high: float = 1.0,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return numbers of the uniform distribution from `low` up to `high`, which only rounding
        can reach.

        Errors: ShapeError unless `low` is below `high`, by a finite number; DTypeError if `dtype`
        is not a float.
        """
        kind = float_dtype(dtype, "uniform")
        least, most = number(low, "uniform: low"), number(high, "uniform: high")
        width = most - least
        if not 0 < width < math.inf or math.isinf(dtypes.default_float.const(width)):
            raise shape_error(
                f"cannot draw numbers from {least} up to {most}",
                "low must be below high, and their difference finite",
                "low=0.0, high=1.0",
            )
        return cls._scaled("uniform", shape, width, kind, device, least)._leaf_if(requires_grad)

    @classmethod
    def normal(
        cls,
        *shape: Any,
        mean: float = 0.0,
        std: float = 1.0,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return numbers of the normal distribution of `mean` and deviation `std`.

        Errors: ShapeError if `std` is below 0; DTypeError if `dtype` is not a float.
        """
        middle, spread = number(mean, "normal: mean"), number(std, "normal: std")
        if not spread >= 0:
            raise shape_error(
                f"cannot draw numbers with the deviation std={spread}",
                "a deviation is 0 or more",
                f"std={abs(spread)}",
            )
        return cls._normal("normal", shape, dtype, device, spread, middle)._leaf_if(requires_grad)

    def rand_like(
        self,
        *,
        device: str | None = None,
        dtype: DType | str | None = None,
        contiguous: bool = True,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return `rand` in this tensor's shape, on its device and in its dtype unless given."""
        kind = float_dtype(self.dtype if dtype is None else dtype, "rand_like")
        place = self.device if device is None else device
        stored = flag(contiguous, "rand_like: contiguous")
        return self.rand(self.shape, device=place, dtype=kind, contiguous=stored)._leaf_if(
            requires_grad
        )

    def randn_like(
        self,
        dtype: DType | str | None = None,
        *,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return `randn` in this tensor's shape, on its device and in its dtype unless given."""
        kind = float_dtype(self.dtype if dtype is None else dtype, "randn_like")
        place = self.device if device is None else device
        return self.randn(self.shape, dtype=kind, device=place)._leaf_if(requires_grad)

    @classmethod
    def _scaled(
        cls,
        what: str,
        shape: tuple[Any, ...],
        width: float,
        kind: DType,
        device: str | None,
        low: float,
        factor: float | None = None,
    ) -> Self:
        """Return (rand * width + low) * factor. `rand` is drawn in the default float, or in `kind`
        if that is wider; low-precision types are rounded once."""
        source = max(dtypes.default_float, kind, key=lambda k: k.bits)

        def values(keys: UOp, count: int) -> UOp:
            product = _uniform(keys, count, source) * width
            value = product.cast(wide_dtype(kind)) + kind.const(low)
            return (value if factor is None else value * factor).cast(kind)

        return cls._draw(sizes(shape, what), kind, device, source.bits, values)

    @classmethod
    def _normal(
        cls,
        what: str,
        shape: tuple[Any, ...],
        dtype: DType | str | None,
        device: str | None,
        std: float = 1,
        mean: float = 0,
    ) -> Self:
        """Return randn * std + mean."""
        kind = float_dtype(dtype, what)

        def values(keys: UOp, count: int) -> UOp:
            value = _gaussian(keys, count).cast(wide_dtype(kind))
            return (value if (std, mean) == (1, 0) else value * std + mean).cast(kind)

        return cls._draw(sizes(shape, what), kind, device, 64, values)

    @classmethod
    def _draw(
        cls,
        shape: Shape,
        kind: DType,
        device: str | None,
        bits: int,
        values: Draw,
        is_stored: bool = True,
    ) -> Self:
        """Return `values` of the next random words; each element needs `bits` bits."""
        empty = cls.full(shape, 0, kind, device)  # raises for a bad shape
        count = empty.numel()
        place = canonical(Device.DEFAULT if device is None else device)
        words = _word_count(count, bits)
        keys = _stream.take(place, words)
        if not count:
            return empty
        start = cls(np.array(keys, np.uint32).reshape(-1), place)
        _keys.add(start.uop.src[0])
        draws = _draws.get()
        if draws is not None:
            draws.append(Keys(start.uop.src[0], place, words))
        value = reshaped(values(start.uop, count), shape)
        if is_stored:
            value = contiguous(value)
        return start._with(value)


def _word_count(count: int, bits: int) -> int:
    return -(-count * bits // 32)


def _uniform(keys: UOp, count: int, kind: DType) -> UOp:
    """Return fractions of `kind` from 0 up to 1; each bit after the binary point is random."""
    words, bits = _word_count(count, kind.bits), kind.fraction_bits
    place = counting_words(count, words)
    if kind.itemsize == 8:
        low, high = (words_at(keys, place * 2 + i, words) for i in range(2))
        first = high.cast(dtypes.float64) * 2.0**-32
        return first + (low >> (64 - bits)).cast(dtypes.float64) * 2.0**-bits
    per_word = 4 // kind.itemsize  # elements in a word, the first one in its lowest bits
    word = words_at(keys, place if per_word == 1 else place // per_word, words)
    if per_word > 1:
        unused = (place % per_word * -1 + (per_word - 1)) * (8 * kind.itemsize)
        word = word << unused.cast(dtypes.uint32)
    return ((word >> (32 - bits)).cast(dtypes.float32) * 2.0**-bits).cast(kind)


def _words_below(width: int) -> int:
    """Return the number of words that an integer below `width` takes."""
    return 1 if width <= _WIDEST_SCALED else 2 if width <= 1 << 32 else 3


def _integers_below(keys: UOp, count: int, width: int) -> UOp:
    """Return integers from 0 up to `width`, at most 2**64: random fractions times `width`,
    truncated.

    If a fraction has several words, the product is made word by word, the lowest first; the carry
    stays below `width`.
    """
    each = _words_below(width)
    if each == 1:
        return (_uniform(keys, count, dtypes.float32) * width).cast(dtypes.int32)
    words = each * count
    high, low = divmod(width, 1 << 32)
    place = counting_words(count, words) * each
    carry = expanded(UOp.const(dtypes.uint64, 0), place.shape)
    for i in range(each):
        word = words_at(keys, place + i, words).cast(dtypes.uint64)
        upper, lower = carry >> 32, carry & 0xFFFFFFFF
        carry = word * high + upper + (word * low + lower >> 32)
    return carry


def _gaussian(keys: UOp, count: int) -> UOp:
    """Return sqrt(-2 log(1 - v)) * cos(2 pi u); u is the first half of a draw, v the second."""
    words = 2 * count
    place = counting_words(count, words)
    u, v = (
        (words_at(keys, at, words) >> 9).cast(dtypes.float32) * 2.0**-23
        for at in (place, place + count)
    )
    return ((1 - v).alu(Ops.LOG) * -2.0).sqrt() * cos_of_turns(u)


def float_dtype(dtype: DType | str | None, what: str) -> DType:
    """Return `dtype`, or the default float. Errors: DTypeError if it is not a float."""
    kind = dtypes.default_float if dtype is None else as_dtype(dtype)
    if not kind.is_float:
        raise dtype_error(
            f"{what}: {kind} is not a float type",
            "the numbers are fractions",
            "randint, for integers",
        )
    return kind
