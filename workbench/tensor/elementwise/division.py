"""Division of nodes of one dtype and shape: true, truncated and floored quotients, and
remainders."""

from __future__ import annotations

import math

from workbench.base.dtypes import dtypes
from workbench.ir.functions.formulas import absolute, floored
from workbench.ir.gradient.occurrences import independent
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.operands.broadcast import cast_to, filled


def divided(a: UOp, b: UOp, rounding: str | None) -> UOp:
    """Return a / b; with `rounding` "trunc" rounded towards zero, with "floor" down. Not for bools.

    Dtypes: integers give float32; rounded, they stay integers.
    """
    if rounding is None and not a.dtype.is_float:
        a, b = cast_to(a, dtypes.default_float), cast_to(b, dtypes.default_float)
    if not a.dtype.is_float:
        return a // b if rounding == "floor" else _truncated(a, b)
    if rounding is None:
        return a / b
    value = _floored(a, b) if rounding == "floor" else (a / b).trunc()
    return independent(value, a, b)


def remainder(a: UOp, b: UOp) -> UOp:
    """Return a - floor(a / b) * b, which has the sign of b. Not for bools.

    Of floats it is exact, whatever their sizes, and rounded once.
    """
    if not a.dtype.is_float:
        return a % b
    kind, (a, b) = a.dtype, _widened(a, b)
    rest = a.alu(Ops.FMOD, b)
    rest = _is_against(rest, b).where(rest + b, rest)
    return cast_to(rest.alu(Ops.COPYSIGN, b), kind)


def truncated_remainder(a: UOp, b: UOp) -> UOp:
    """Return a - trunc(a / b) * b, which has the sign of a. Not for bools.

    Of floats it is exact, whatever their sizes, and rounded once; integers modulo zero are 0.
    """
    if a.dtype.is_float:
        kind, (a, b) = a.dtype, _widened(a, b)
        return cast_to(a.alu(Ops.FMOD, b), kind)
    a, b = filled(a, b)
    rest = a % b
    is_against = rest.ne(0) & ((a < 0) ^ (b < 0))
    return is_against.where(rest - b, rest)


def _floored(a: UOp, b: UOp) -> UOp:
    """Return floor(a / b) of floats, rounded once; as numpy does at zeros and infinities.

    A rounded quotient that is not a whole number lies between the same whole numbers as the exact
    one. A whole one was rounded by less than 1/2: the sign of the remainder says whether up or
    down. A quotient of more bits than the float has is whole; see `_floored_large`.
    """
    kind, (a, b) = a.dtype, _widened(a, b)
    rest, direct = a.alu(Ops.FMOD, b), a / b
    whole = floored(direct)
    size, by = absolute(rest), absolute(b)
    is_below = (by < size + size) ^ _is_against(rest, b)
    is_rounded = whole.eq(direct) & is_below
    fits = absolute(whole) < 2.0 ** (a.dtype.fraction_bits + 1)
    whole = (fits & is_rounded).where(whole - 1.0, whole)
    whole = fits.where(whole, _floored_large(a, b, direct, fits))
    has_one = (absolute(a) < math.inf) | b.eq(0.0)
    return cast_to(has_one.where(whole, whole.like(math.nan)), kind)


def _floored_large(a: UOp, b: UOp, quotient: UOp, fits: UOp) -> UOp:
    """Return floor(a / b) rounded once, where a / b has more bits than the float: `quotient`, or
    its neighbour below. Where it `fits` in the float, the result has no meaning.

    Rounded, floor(a / b) differs from a / b only if it is midway between two floats, rounds to the
    even one, and a / b is above it. The remainder of |a| by |b| times a step of the quotient shows
    that: it is |b| times half a step, and the rest of a / b.
    """
    dtype, word = a.dtype, _WORDS[a.dtype]
    bits = quotient.bitcast(word)
    exponent = bits & ~((1 << dtype.fraction_bits) - 1) & int(word.max) // 2
    half = (exponent + -((dtype.fraction_bits + 1) << dtype.fraction_bits)).bitcast(dtype)
    size, by = absolute(a), absolute(b)
    middle = by * fits.where(half.like(1.0), half)
    over = size.alu(Ops.FMOD, middle + middle) + -middle
    is_negative = (a < 0.0) ^ (b < 0.0)
    is_above = (over.like(0.0) < over) & (over < by)
    is_below = (-by < over) & (over < 0.0)
    is_odd = (bits & 1).ne(0)
    neighbour = is_negative.where(bits + 1, bits + int(word.max)).bitcast(dtype)
    return (is_negative.where(is_below, is_above) & is_odd).where(neighbour, quotient)


_WORDS = {dtypes.float32: dtypes.uint32, dtypes.float64: dtypes.uint64}


def _widened(a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """Return both floats in a type with enough bits that rounding a result back equals rounding
    once; no wider than necessary, since not every device has float64."""
    wide = dtypes.float32 if a.dtype.is_low_precision else a.dtype
    a, b = filled(a, b)
    return cast_to(a, wide), cast_to(b, wide)


def _is_against(rest: UOp, b: UOp) -> UOp:
    """Return whether a truncated remainder is not 0 and its sign is not the divisor's."""
    differ = (rest < 0.0) ^ (b < 0.0)
    return differ & rest.ne(0.0)


def _truncated(a: UOp, b: UOp) -> UOp:
    """Return the integer quotient rounded towards zero.

    Floored and truncated quotients differ by 1 where the signs differ and the remainder is not 0.
    """
    a, b = filled(a, b)
    quotient = a // b
    left_over = (a % b).ne(0)
    differ = (a < 0) ^ (b < 0)
    up = left_over & differ
    return up.where(quotient + 1, quotient)
