"""Random tensors: a stream of numbered draws, the same on every device.

The value of draw n is a function of n and the seed alone (threefry.py). A kernel reads the seed and
the position from memory, so that every call runs the same kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.base.forking import free_lock
from workbench.ir.functions.formulas import cos_of_turns
from workbench.ir.node.ops import Ops
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.tensor.creation.creation import Creation
from workbench.tensor.creation.threefry import fraction, threefry2x32
from workbench.tensor.movement.movement import reshaped, shrunk
from workbench.tensor.operands.arguments import number, whole
from workbench.tensor.operands.axes import sizes
from workbench.tensor.operands.broadcast import cast_to, expanded, scalar_dtype
from workbench.tensor.operands.literal import as_dtype
from workbench.tensor.operands.numbered import numbered
from workbench.tensor.operands.refuse import dtype_error, shape_error

Draw = Callable[[UOp, UOp, DType], UOp]

_WORD = 1 << 32


class _Stream:
    """The seed, and the number of draws taken since it was set."""

    def __init__(self) -> None:
        self.lock = free_lock()
        self.restart(0)

    def restart(self, seed: int) -> None:
        with self.lock:
            self.seed, self.position = seed, 0

    def take(self, count: int) -> tuple[int, int]:
        """Take `count` draws; return the seed and the number of the first one."""
        with self.lock:
            first = self.position
            self.position += count
            return self.seed, first


_stream = _Stream()


def draw_count() -> tuple[int, int]:
    """Return the seed, and the number of draws since it was set."""
    return _stream.seed, _stream.position


class Random(Creation):
    """`Tensor.manual_seed`, `rand`, `randn`, `randint`, `uniform`, `normal`.

    Without a seed the stream begins as after `manual_seed(0)`: a notebook that runs again shows
    the same numbers. The tensors are stored once, and then read (see `contiguous`).
    """

    __slots__ = ()

    @staticmethod
    def manual_seed(seed: int = 0) -> None:
        """Begin the stream of draws of `seed`, an integer of at most 64 bits.

        Errors: DTypeError for anything else.

        >>> Tensor.manual_seed(7)
        """
        number = whole(seed, "manual_seed: seed")
        scalar_dtype(number)  # refuses more bits
        _stream.restart(number)

    @classmethod
    def rand(
        cls, *shape: Any, dtype: DType | str | None = None, device: str | None = None
    ) -> Self:
        """Return numbers of the uniform distribution from 0 up to, but not including, 1.

        Dtypes: float32, or another float, of which all bits are random.
        Errors: DTypeError if `dtype` is not a float.
        """
        return cls._draw(sizes(shape, "rand"), _float(dtype, "rand"), device, _uniform)

    @classmethod
    def randn(
        cls, *shape: Any, dtype: DType | str | None = None, device: str | None = None
    ) -> Self:
        """Return numbers of the normal distribution of mean 0 and deviation 1; always finite.

        Errors: DTypeError if `dtype` is not a float. Source: Box and Muller 1958.
        """
        return cls._draw(sizes(shape, "randn"), _float(dtype, "randn"), device, _normal)

    @classmethod
    def uniform(
        cls,
        *shape: Any,
        low: float = 0.0,
        high: float = 1.0,
        dtype: DType | str | None = None,
        device: str | None = None,
    ) -> Self:
        """Return numbers of the uniform distribution from `low` up to `high`; rounding may reach
        `high`.

        Errors: DTypeError if `dtype` is not a float.
        """
        first = number(low, "uniform: low")
        width = number(high, "uniform: high") - first
        return cls._draw(
            sizes(shape, "uniform"),
            _float(dtype, "uniform"),
            device,
            lambda a, b, kind: _uniform(a, b, kind) * width + first,
        )

    @classmethod
    def normal(
        cls,
        *shape: Any,
        mean: float = 0.0,
        std: float = 1.0,
        dtype: DType | str | None = None,
        device: str | None = None,
    ) -> Self:
        """Return numbers of the normal distribution of `mean` and deviation `std`.

        Errors: DTypeError if `dtype` is not a float.
        """
        middle, spread = number(mean, "normal: mean"), number(std, "normal: std")
        return cls._draw(
            sizes(shape, "normal"),
            _float(dtype, "normal"),
            device,
            lambda a, b, kind: _normal(a, b, kind) * spread + middle,
        )

    @classmethod
    def randint(
        cls,
        *shape: Any,
        low: int = 0,
        high: int = 10,
        dtype: DType | str | None = None,
        device: str | None = None,
    ) -> Self:
        """Return integers of the uniform distribution from `low` up to, but not including, `high`
        (to within (high - low) / 2**64).

        Dtypes: int32 unless given. Errors: ShapeError if there is no such integer; DTypeError if
        `dtype` is not an integer type, or they are out of its range.
        """
        kind = dtypes.default_int if dtype is None else as_dtype(dtype)
        low, high = whole(low, "randint: low"), whole(high, "randint: high")
        if low >= high:
            raise shape_error(
                f"cannot draw integers from {low} up to {high}",
                "there is none: high itself is not drawn",
                f"high={low + 1}",
            )
        if not kind.is_int or low < kind.min or high - 1 > kind.max:
            raise dtype_error(
                f"cannot draw integers from {low} up to {high} as {kind}",
                "it does not hold them all",
                "dtype=dtypes.int64",
            )
        return cls._draw(
            sizes(shape, "randint"),
            kind,
            device,
            lambda a, b, kind: _integers(a, b, kind, low, high),
        )

    def rand_like(self, dtype: DType | str | None = None) -> Self:
        """Return `rand` in this tensor's shape, on its device. Dtypes: this one's."""
        kind = self.dtype if dtype is None else dtype
        return self.rand(self.shape, dtype=kind, device=self.device)

    def randn_like(self, dtype: DType | str | None = None) -> Self:
        """Return `randn` in this tensor's shape, on its device. Dtypes: this one's."""
        kind = self.dtype if dtype is None else dtype
        return self.randn(self.shape, dtype=kind, device=self.device)

    @classmethod
    def _draw(
        cls, shape: Shape, kind: DType, device: str | None, formula: Draw
    ) -> Self:
        """Return `formula(word, word, kind)` of the next draws, one for each element."""
        empty = cls.full(
            shape, 0, kind, device
        )  # raises for a bad shape before it takes draws
        count = empty.numel()
        seed, first = _stream.take(count)
        if not count:
            return empty
        words = [n // step % _WORD for n in (seed, first) for step in (1, _WORD)]
        start = cls(np.array(words, np.uint32), device)
        values = formula(*_words(start.uop, count), kind)
        stored = UOp(Ops.CONTIGUOUS, kind, (reshaped(cast_to(values, kind), shape),))
        return start._with(stored)


def _words(start: UOp, count: int) -> tuple[UOp, UOp]:
    """Return two random words for each of `count` draws; `start` is seed and first draw."""
    k0, k1, low, high = (
        expanded(shrunk(start, ((i, i + 1),)), (count,)) for i in range(4)
    )
    x0 = numbered(count, dtypes.uint32) + low
    # The draw's number has 64 bits: where its low word wraps, 1 is carried.
    return threefry2x32(x0, high + (x0 < low).cast(dtypes.uint32), k0, k1)


def _uniform(a: UOp, b: UOp, kind: DType) -> UOp:
    return fraction(a, b, kind.fraction_bits + 1)


def _normal(a: UOp, b: UOp, kind: DType) -> UOp:
    """Return sqrt(-2 log(u)) * cos(2 pi v) of two fractions; u is above 0."""
    bits = 32 if kind.bits == 64 else 24
    u, v = (fraction(word, word, bits) for word in (a, b))
    tiny = 2.0**-bits
    log = (u + tiny).alu(Ops.LOG)
    return (log * -2.0).sqrt() * cos_of_turns(v)


def _integers(a: UOp, b: UOp, kind: DType, low: int, high: int) -> UOp:
    wide = a.cast(dtypes.uint64) << 32
    word = wide | b.cast(dtypes.uint64)
    if high - low < 1 << 64:
        word = word % (high - low)
    return word.cast(kind) + low


def _float(dtype: DType | str | None, what: str) -> DType:
    kind = dtypes.default_float if dtype is None else as_dtype(dtype)
    if not kind.is_float:
        raise dtype_error(
            f"{what}: {kind} is not a float type",
            "the numbers are fractions",
            "randint, for integers",
        )
    return kind
