"""Powers: products where the exponent is a small number, else 2 ** (log2(x) * y)."""

from __future__ import annotations

import math

from workbench.dtypes import dtypes
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp
from workbench.tensor.broadcast import cast_to, expanded, filled, wide_dtype
from workbench.tensor.rounding import is_odd, rounded

_LARGEST = 16
"""Up to this exponent a product is at least as exact as the general formula."""


def whole_power(x: UOp, exponent: float) -> UOp | None:
    """Return the float `x` to a whole or half power of at most 16; None for others.

    Rewrite: x ** -2.5 -> 1 / (x * x * sqrt(x))
    """
    if not abs(exponent) <= _LARGEST or 2 * exponent != math.trunc(2 * exponent):
        return None
    whole = math.trunc(abs(exponent))
    kind, x = x.dtype, cast_to(x, wide_dtype(x.dtype))
    made = _product(x, whole)
    if whole != abs(exponent):
        # Infinite at minus infinity, where a square root alone would be NaN.
        root = x.alu(Ops.SQRT)
        made = root if whole == 0 else made * root
    return cast_to(made.alu(Ops.RECIP) if exponent < 0 else made, kind)


def power(x: UOp, y: UOp) -> UOp:
    """Return x ** y of floats, with IEEE's answers for zero, negative and infinite x.

    A negative x has a power where y is whole. The relative error grows with the exponent of
    the result: about abs(y * log2(x)) units in the last place.
    """
    kind = x.dtype
    x, y = (cast_to(v, wide_dtype(kind)) for v in filled(x, y))
    size = magnitude(x).alu(Ops.LOG2) * y
    positive = size.alu(Ops.EXP2)
    whole = y.alu(Ops.TRUNC).alu(Ops.CMPEQ, y)
    signed = is_odd(y).where(positive.alu(Ops.NEG), positive)
    # An infinite y is even: the sign of x no longer matters.
    negative = whole.where(signed, x.like(math.nan))
    made = (x < 0.0).where(negative, positive)
    is_one = y.alu(Ops.CMPEQ, y.like(0.0)).alu(Ops.OR, x.alu(Ops.CMPEQ, x.like(1.0)))
    return cast_to(is_one.where(x.like(1.0), made), kind)


def integer_power(x: UOp, y: UOp | int) -> UOp:
    """Return x ** y of integers. A whole number y is exact and wraps as products do.

    Otherwise it is computed in float64: exact below 2**40, beyond that rounded, at the limits
    of the type saturated; a negative power is the fraction truncated towards zero.
    """
    if isinstance(y, int):
        # powers of a wrapping integer repeat after 2**64 at the latest
        return _product(x, y if y < 1 << 64 else y % (1 << 64) + (1 << 64))
    if y.is_const and y.arg >= 0:
        return _product(x, y.arg)
    x, y = filled(x, y)
    wide = power(cast_to(x, dtypes.float64), cast_to(y, dtypes.float64))
    whole = (y < 0).where(wide.alu(Ops.TRUNC), rounded(wide))
    return whole.cast(x.dtype)


def magnitude(x: UOp) -> UOp:
    """Return the absolute value of a float: its bits without the sign, so that -0.0 gives 0.0."""
    if x.is_const:
        return x.like(abs(x.arg))
    bits = dtypes.named(f"int{x.dtype.bits}")
    mask = UOp.const(bits, int(bits.max))
    return x.bitcast(bits).alu(Ops.AND, mask).bitcast(x.dtype)


def _product(x: UOp, count: int) -> UOp:
    """Return x multiplied with itself `count` times, by repeated squaring."""
    if count == 0:
        return expanded(x.like(1), x.shape)
    made: UOp | None = None
    square = x
    while count:
        if count & 1:
            made = square if made is None else made * square
        count >>= 1
        if count:
            square = square * square
    assert made is not None
    return made
