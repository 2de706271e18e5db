"""Low-precision floats: float16 and bfloat16 are formats of memory; arithmetic is in float32.

An elementwise op on low-precision floats becomes the op on float32 between casts, and each result
is rounded as the graph says. No bfloat16 is left then: its bits are the upper half of a
float32's, so loads and stores move uint16 and the casts are integer arithmetic. float16 goes the
same way, unless the device converts it in one instruction; then LOAD, STORE, BITCAST and the casts
from and to float32 are left. No conversion branches or calls a library. Source of the conversions:
Giesen 2012, "Float->half conversion variants"; rounding to odd is Boldo and Melquiond 2008.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.ir.meaning.casts import bitcast_array
from workbench.ir.node.ops import CASTS, ELEMENTWISE, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat, const, op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet

_U16 = dtypes.uint16
_U32 = dtypes.uint32
_F32 = dtypes.float32
# masks of a float32 in a uint32, and the bits of infinity
_SIGN = 0x80000000
_MAGNITUDE = 0x7FFFFFFF
_INFINITY = 0x7F800000


def has_low_precision(tree: UOp) -> bool:
    """Return whether anything in a statement tree is float16 or bfloat16."""
    return any(n.dtype.is_low_precision for n in tree.toposort())


# conversions: float32 values to and from the bits of a low-precision float, in a uint32


def widen_bfloat16(bits: UOp) -> UOp:
    """The bits are the upper half of a float32."""
    return _shl(bits.cast(_U32), 16).bitcast(_F32)


def round_bfloat16(x: UOp) -> UOp:
    """Add just under half of what is cut off, and one more where the result would be odd: a
    carry goes on into the exponent, up to infinity. A NaN could carry too, and is set apart."""
    bits = x.bitcast(_U32)
    rounded = _shr(bits + 0x7FFF + (_shr(bits, 16) & 1), 16)
    is_nan = bits.like(_INFINITY) < (bits & _MAGNITUDE)
    return is_nan.where(_shr(bits, 16) | 0x40, rounded).cast(_U16)


def widen_float16(bits: UOp) -> UOp:
    """Moved to a float32's exponent and fraction, the bits are a value 2**112 times too small; a
    product corrects that, for subnormals too. Infinity and NaN are selected apart."""
    bits = bits.cast(_U32)
    placed = _shl(bits & 0x7FFF, 13)
    scaled = (placed.bitcast(_F32) * 2.0**112).bitcast(_U32)
    special = (placed < (0x7C00 << 13)).where(scaled, placed | _INFINITY)
    return (special | _shl(bits & 0x8000, 16)).bitcast(_F32)


def round_float16(x: UOp) -> UOp:
    """Three ranges, each computed and one selected: normal numbers round as bfloat16 does, with the
    exponent moved by 112; adding 1/2 to smaller ones makes the sum's rounding that of subnormals;
    above 65536 there are infinity and NaN."""
    bits = x.bitcast(_U32)
    size = bits & _MAGNITUDE
    normal = _shr(size + (0xFFF - (112 << 23)) + (_shr(size, 13) & 1), 13)
    half = _bits_of(_F32.const(0.5), _F32, _U32)
    subnormal = (size.bitcast(_F32) + 0.5).bitcast(_U32) + -half
    large = (size.like(_INFINITY) < size).where(size.like(0x7E00), size.like(0x7C00))
    finite = (size < (113 << 23)).where(subnormal, normal)
    rounded = (size < (143 << 23)).where(finite, large)
    return (rounded | _shr(bits & _SIGN, 16)).cast(_U16)


def odd_float32(x: UOp) -> UOp:
    """A float64 as a float32 that can be rounded once more: cut off, and the last bit set where
    anything was lost. Rounding to the nearest twice would err next to the middle of two."""
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
    operation = UOp(
        n.op, _F32 if n.dtype.is_low_precision else n.dtype, tuple(wide), n.arg
    )
    return operation.cast(n.dtype)


def is_to_small(n: UOp, x: UOp) -> bool:
    """Whether a cast gives a low-precision float from a dtype other than float32."""
    return n.dtype.is_low_precision and x.dtype is not _F32


def by_float32(n: UOp, x: UOp) -> UOp:
    """Convert by way of float32, which holds every low-precision float."""
    once = x.dtype is dtypes.float64 and n.dtype is dtypes.float16
    return (odd_float32(x) if once else x.cast(_F32)).cast(n.dtype)


def is_from_small(n: UOp, x: UOp) -> bool:
    """Whether a cast gives a dtype other than float32 from a low-precision float."""
    return x.dtype.is_low_precision and n.dtype is not _F32


def from_float32(n: UOp, x: UOp) -> UOp:
    """Convert by way of float32, which every low-precision float fits."""
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


def as_bits(
    dtype: DType, widened: Callable[[UOp], UOp], rounded: Callable[[UOp], UOp]
) -> RuleSet:
    """Return the rules that remove `dtype`: memory holds uint16, and a value is BITCAST(bits) until
    the cast, BITCAST or STORE that reads it reads the bits instead."""

    def is_this(n: UOp) -> bool:
        return n.dtype is dtype

    def reads_this(x: UOp) -> bool:
        return x.dtype is dtype

    def load(n: UOp) -> UOp:
        """Load the bits."""
        place = _of_bits(n.src[0])
        return UOp(Ops.LOAD, _U16, (place, *n.src[1:]), n.arg).bitcast(dtype)

    def store(n: UOp, t: UOp, x: UOp) -> UOp | None:
        """Store the bits."""
        bits = x.bitcast(_U16)
        if x.op is Ops.BITCAST:
            bits = x.src[0].bitcast(_U16)
        elif x.is_const:
            bits = UOp.const(_U16, _bits_of(x.arg, dtype, _U16))
        return UOp(Ops.STORE, n.dtype, (_of_bits(t), bits), n.arg)

    def widen(x: UOp) -> UOp:
        return widened(x.src[0].bitcast(_U16))

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


def _of_bits(node: UOp) -> UOp:
    """Return an INDEX into the same memory with the dtype uint16."""
    src = node.src
    if node.op in (Ops.INDEX, Ops.AFTER):
        src = (_of_bits(src[0]), *src[1:])
    return UOp(node.op, _U16, src, node.arg)


def _bits_of(value: float, dtype: DType, other: DType) -> int | float | bool:
    array = np.asarray(value, dtype.numpy)
    bits: int | float | bool = bitcast_array(array, dtype, other).item()
    return bits


def _shl(x: UOp, amount: int) -> UOp:
    return x << amount


def _shr(x: UOp, amount: int) -> UOp:
    return x >> amount


BFLOAT16_BITS = as_bits(dtypes.bfloat16, widen_bfloat16, round_bfloat16)
FLOAT16_BITS = as_bits(dtypes.float16, widen_float16, round_float16)
LOW_PRECISION_RULES = IN_FLOAT32 + BFLOAT16_BITS
"""For a device that converts float16 itself."""
ALL_LOW_PRECISION_RULES = LOW_PRECISION_RULES + FLOAT16_BITS
