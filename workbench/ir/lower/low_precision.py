"""Low-precision floats: formats of memory, with arithmetic in float32.

An elementwise op on low-precision floats becomes the op on float32 between casts, and each result
is rounded as the graph says. A dtype that the device does not convert itself is removed: loads and
stores move uint16 or uint8, and casts become integer arithmetic (the first section). Of a dtype
that the device converts, LOAD, STORE, BITCAST and the casts from and to float32 remain. Source of
rounding to odd: Boldo and Melquiond 2008.

Sections: Conversions of low-precision floats from and to float32, by integer arithmetic on their
bits; Low-precision floats.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.ir.lower.math import FORMATS, shl, shr
from workbench.ir.meaning.values import bitcast_array, cast_array
from workbench.ir.node.ops import CASTS, ELEMENTWISE, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat, const, op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet

_U32 = dtypes.uint32
_F32 = dtypes.float32

# --------------------------------------------------------------------------------------------------
# Conversions of low-precision floats from and to float32, by integer arithmetic on their bits.
#
# Nothing branches or calls a library. Source: Giesen 2012, "Float->half conversion variants".

_SINGLE = FORMATS[_F32]
# masks of a float32 in a uint32, and the bits of infinity
_SIGN = 0x80000000
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000


class StorageFormat(NamedTuple):
    """The layout of a float with fewer bits of exponent than a float32, and its special codes.

    `word` is the unsigned integer of its width. Codes from `special` on are infinity or NaN. A
    float32 of `limit` or more becomes the code `large`, a NaN the code `nan`.
    """

    word: DType
    fraction_bits: int
    bias: int
    special: int
    limit: float
    large: int
    nan: int

    @property
    def cut(self) -> int:
        """The bits of a float32's fraction that this format does not have."""
        return _SINGLE.fraction_bits - self.fraction_bits

    def widen(self, bits: UOp) -> UOp:
        """Moved to the exponent and fraction of a float32, the bits are a value that is too small
        by a power of two; a product corrects this, for subnormals too. Infinity and NaN are
        selected separately."""
        bits, sign = bits.cast(_U32), 1 << self.word.bits - 1
        placed = shl(bits & sign - 1, self.cut)
        scaled = placed.bitcast(_F32) * 2.0 ** (_SINGLE.bias - self.bias)
        is_number = placed < (self.special << self.cut)
        value = is_number.where(scaled.bitcast(_U32), placed | _INFINITY)
        return (value | shl(bits & sign, 32 - self.word.bits)).bitcast(_F32)

    def round(self, x: UOp) -> UOp:
        """Three ranges are computed, and one is selected. Normal numbers are rounded as bfloat16
        is, with the exponent moved. To smaller numbers a power of two is added, so that the sum is
        rounded at the last place of subnormals. Above are infinity, or the greatest number, and
        NaN.
        """
        bits = x.bitcast(_U32)
        size = bits & _MAGNITUDE
        is_nan = size.like(_INFINITY) < size
        large = is_nan.where(size.like(self.nan), size.like(self.large))
        is_subnormal = size < _SINGLE.bits(2.0 ** (1 - self.bias))
        finite = is_subnormal.where(self._subnormal(size), self._normal(size))
        rounded = (size < _SINGLE.bits(self.limit)).where(finite, large)
        return (rounded | shr(bits & _SIGN, 32 - self.word.bits)).cast(self.word)

    def _normal(self, size: UOp) -> UOp:
        moved = (_SINGLE.bias - self.bias) << _SINGLE.fraction_bits
        half = (1 << self.cut - 1) - 1
        return shr(size + (half - moved) + (shr(size, self.cut) & 1), self.cut)

    def _subnormal(self, size: UOp) -> UOp:
        """Adding `shift` rounds at the last place of subnormals: the low bits are their code."""
        shift = 2.0 ** (1 - self.bias + self.cut)
        return (size.bitcast(_F32) + shift).bitcast(_U32) + -_SINGLE.bits(shift)


def widen_bfloat16(bits: UOp) -> UOp:
    """The bits are the upper half of a float32."""
    return shl(bits.cast(_U32), 16).bitcast(_F32)


def round_bfloat16(x: UOp) -> UOp:
    """Add just under half of what is cut off, and one more where the result would be odd. A carry
    goes on into the exponent, up to infinity. A NaN could carry, too: it is selected separately."""
    bits = x.bitcast(_U32)
    rounded = shr(bits + 0x7FFF + (shr(bits, 16) & 1), 16)
    is_nan = bits.like(_INFINITY) < (bits & _MAGNITUDE)
    return is_nan.where(shr(bits, 16) | 0x40, rounded).cast(dtypes.uint16)


_u8 = dtypes.uint8
FLOAT16 = StorageFormat(dtypes.uint16, 10, 15, 0x7C00, 65536.0, 0x7C00, 0x7E00)
FP8E5M2 = StorageFormat(_u8, 2, 15, special=0x7C, limit=65536.0, large=0x7C, nan=0x7F)
FP8E4M3 = StorageFormat(_u8, 3, 7, special=0x7F, limit=448.0, large=0x7E, nan=0x7F)
"""It has no infinity: what is too large is the greatest number, 448."""


# --------------------------------------------------------------------------------------------------
# Low-precision floats.


def has_low_precision(tree: UOp) -> bool:
    """Return whether a statement tree has a low-precision float."""
    return any(n.dtype.is_low_precision for n in tree.toposort())


def keeps_bits(tree: UOp, dtype: DType) -> bool:
    """Return whether a statement tree needs the exact bits of `dtype`, even of a NaN: it reads them
    as another type, or stores in an argument what it has loaded."""
    return any(_keeps_bits(n, dtype) for n in tree.toposort())


def _keeps_bits(n: UOp, dtype: DType) -> bool:
    if n.op is Ops.BITCAST:
        return dtype in (n.dtype, n.src[0].dtype)
    if n.op is not Ops.STORE or n.place.memory.op is not Ops.PARAM:
        return False
    return n.src[1].dtype is dtype and n.src[1].op in (Ops.LOAD, Ops.WHERE)


# conversions by way of float32


def odd_float32(x: UOp) -> UOp:
    """Return a float64 as a float32 that can be rounded once more: cut off, with the last bit set
    where anything was lost. Rounding to the nearest twice errs next to the middle of two values."""
    near = x.cast(_F32)
    back, bits = near.cast(dtypes.float64), near.bitcast(_U32)
    outside = (x < 0.0).where(back < x, x < back)
    cut = outside.where(bits + -1, bits)
    lost = back.ne(x)
    return lost.where(cut | 1, bits).bitcast(_F32)


# rules


def on_low_precision(n: UOp) -> bool:
    """Whether an op takes low-precision floats."""
    return any(s.dtype.is_low_precision for s in n.src)


def in_float32(n: UOp) -> UOp:
    """Compute in float32 and round the result."""
    wide = [s.cast(_F32) if s.dtype.is_low_precision else s for s in n.src]
    operation = UOp(n.op, _F32 if n.dtype.is_low_precision else n.dtype, tuple(wide), n.arg)
    return operation.cast(n.dtype)


def is_to_small(n: UOp, x: UOp) -> bool:
    """Whether a cast gives a low-precision float from a dtype other than float32."""
    return n.dtype.is_low_precision and x.dtype is not _F32


def by_float32(n: UOp, x: UOp) -> UOp:
    """Convert through float32; from float64 to float16 with one rounding (see `odd_float32`)."""
    once = x.dtype is dtypes.float64 and n.dtype is dtypes.float16
    return (odd_float32(x) if once else x.cast(_F32)).cast(n.dtype)


def is_from_small(n: UOp, x: UOp) -> bool:
    """Whether a cast gives a dtype other than float32 from a low-precision float."""
    return x.dtype.is_low_precision and n.dtype is not _F32


def from_float32(n: UOp, x: UOp) -> UOp:
    """Convert through float32, which represents every low-precision float."""
    return x.cast(_F32).cast(n.dtype)


def is_of_small(n: UOp) -> bool:
    """Whether an op reads or gives low-precision floats."""
    return n.dtype.is_low_precision or on_low_precision(n)


def fold_cast(n: UOp, c: UOp) -> UOp:
    """Convert the constant."""
    return n.like(c.arg)


def fold_bits(n: UOp, c: UOp) -> UOp:
    """Read the constant's bits as the other type."""
    return n.like(_bits_of(c.arg, c.dtype, n.dtype))


def same_bits(n: UOp, x: UOp) -> UOp:
    """Bits read as a low-precision float and then as another dtype are read as that dtype at
    once."""
    return x.bitcast(n.dtype)


c, x = const("c"), var("x")
_COMPUTED = tuple(sorted(ELEMENTWISE - CASTS, key=lambda o: o.value))
_cast = Pat(Ops.CAST, (x,), name="n")

# fmt: off
IN_FLOAT32 = RuleSet("in-float32", [
    Rule("fold-small-cast", Pat(Ops.CAST, (c,), name="n"), fold_cast, where=is_of_small),
    Rule("fold-small-bits", Pat(Ops.BITCAST, (c,), name="n"), fold_bits, where=is_of_small),
    Rule("compute-wide",    Pat(_COMPUTED, name="n"), in_float32, where=on_low_precision),
    Rule("cast-to-small",   _cast, by_float32, where=is_to_small),
    Rule("cast-from-small", _cast, from_float32, where=is_from_small),
    Rule("bits-of-bits",    Pat(Ops.BITCAST, (op(Ops.BITCAST, x),), name="n"), same_bits),
])
# fmt: on


def as_bits(dtype: DType, widened: Callable[[UOp], UOp], rounded: Callable[[UOp], UOp]) -> RuleSet:
    """Return the rules that remove `dtype`. Memory has an unsigned integer, and a value is
    BITCAST(bits), until each cast, BITCAST or STORE that reads it reads the bits instead."""
    word = _WORDS[dtype.bits]

    def is_this(n: UOp) -> bool:
        return n.dtype is dtype

    def reads_this(x: UOp) -> bool:
        return x.dtype is dtype

    def load(n: UOp) -> UOp:
        """Load the bits."""
        place = _of_bits(n.src[0], word)
        return UOp(Ops.LOAD, word, (place, *n.src[1:]), n.arg).bitcast(dtype)

    def store(n: UOp, t: UOp, x: UOp) -> UOp | None:
        """Store the bits."""
        bits = x.bitcast(word)
        if x.op is Ops.BITCAST:
            bits = x.src[0].bitcast(word)
        elif x.is_const:
            bits = UOp.const(word, _bits_of(x.arg, dtype, word))
        return UOp(Ops.STORE, n.dtype, (_of_bits(t, word), bits), n.arg)

    def widen(x: UOp) -> UOp:
        return widened(x.src[0].bitcast(word))

    def narrow(x: UOp) -> UOp:
        return rounded(x).bitcast(dtype)

    def is_cast_to_this(n: UOp, x: UOp) -> bool:
        return n.dtype is dtype and x.dtype is _F32

    def is_widened_bits(n: UOp, x: UOp) -> bool:
        return n.dtype is _F32 and x.dtype is dtype and x.op is Ops.BITCAST

    widen.__doc__, narrow.__doc__ = widened.__doc__, rounded.__doc__
    # fmt: off
    return RuleSet(f"{dtype}-bits", [
        Rule(f"load-{dtype}",  Pat(Ops.LOAD, name="n"), load, where=is_this),
        Rule(f"widen-{dtype}", _cast, widen, where=is_widened_bits),
        Rule(f"round-{dtype}", _cast, narrow, where=is_cast_to_this),
        Rule(f"store-{dtype}", op(Ops.STORE, var("t"), x, name="n"), store, where=reads_this),
    ])
    # fmt: on


def _of_bits(node: UOp, word: DType) -> UOp:
    """Return an INDEX into the same memory with an unsigned dtype."""
    src = node.src
    if node.op in (Ops.INDEX, Ops.AFTER):
        src = (_of_bits(src[0], word), *src[1:])
    return UOp(node.op, word, src, node.arg)


def _bits_of(value: float, dtype: DType, other: DType) -> int | float | bool:
    array = np.asarray(value, np.float64 if dtype.is_float else dtype.numpy)
    if dtype.is_float:
        array = cast_array(array, dtypes.float64, dtype)
    bits: int | float | bool = bitcast_array(array, dtype, other).item()
    return bits


_WORDS = {8: dtypes.uint8, 16: dtypes.uint16}
"""The unsigned type of a number of bits."""
BFLOAT16_BITS = as_bits(dtypes.bfloat16, widen_bfloat16, round_bfloat16)
FP8E4M3_BITS = as_bits(dtypes.fp8e4m3, FP8E4M3.widen, FP8E4M3.round)
FP8E5M2_BITS = as_bits(dtypes.fp8e5m2, FP8E5M2.widen, FP8E5M2.round)
FLOAT16_BITS = as_bits(dtypes.float16, FLOAT16.widen, FLOAT16.round)
_BITS = {
    dtypes.bfloat16: BFLOAT16_BITS,
    dtypes.fp8e4m3: FP8E4M3_BITS,
    dtypes.fp8e5m2: FP8E5M2_BITS,
    dtypes.float16: FLOAT16_BITS,
}


@cache
def low_precision_rules(conversions: tuple[DType, ...] = ()) -> RuleSet:
    """Return the rules for a device that converts the dtypes `conversions` itself."""
    rules = IN_FLOAT32
    for dtype, bits in _BITS.items():
        if dtype not in conversions:
            rules += bits
    return rules
