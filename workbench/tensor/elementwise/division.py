"""Division of nodes that are one dtype and shape: true, truncated, floored, and what is left."""

from __future__ import annotations

import math

from workbench.base.dtypes import dtypes
from workbench.ir.functions.rounding import floored
from workbench.ir.functions.signs import magnitude, with_sign_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.operands.broadcast import cast_to, filled


def divided(a: UOp, b: UOp, rounding: str | None) -> UOp:
    """Return a / b; with `rounding` "trunc" or "floor" rounded so. No bools.

    Dtypes: integers give float32; rounded, they stay integers.
    """
    if rounding is None and not a.dtype.is_float:
        a, b = cast_to(a, dtypes.default_float), cast_to(b, dtypes.default_float)
    if not a.dtype.is_float:
        return a // b if rounding == "floor" else _truncated(a, b)
    if rounding == "floor":
        return _floored(a, b)
    quotient = a / b
    return quotient if rounding is None else quotient.trunc()


def remainder(a: UOp, b: UOp) -> UOp:
    """Return a - floor(a / b) * b, which has the sign of b. No bools.

    Of floats it is exact, whatever their sizes, and rounded once.
    """
    if not a.dtype.is_float:
        return a % b
    kind, (a, b) = a.dtype, _widened(a, b)
    rest = a.alu(Ops.FMOD, b)
    rest = _is_against(rest, b).where(rest + b, rest)
    return cast_to(with_sign_of(magnitude(rest), b), kind)


def _floored(a: UOp, b: UOp) -> UOp:
    """Return floor(a / b) of floats, rounded once; as numpy has it at zeros and infinities.

    A quotient that is not a whole number lies between the same two as the exact one. One that is
    was rounded by less than a half: down from it, or up to it, which the remainder tells. One of
    more bits than the float it is computed in is whole, and rounded as a / b is.
    """
    kind, (a, b) = a.dtype, _widened(a, b)
    rest, direct = a.alu(Ops.FMOD, b), a / b
    whole = floored(direct)
    size, by = magnitude(rest), magnitude(b)
    is_below = (by < size + size) ^ _is_against(rest, b)
    is_rounded = whole.eq(direct) & is_below
    fits = magnitude(whole) < 2.0 ** (a.dtype.fraction_bits + 1)
    whole = (fits & is_rounded).where(whole - 1.0, whole)
    has_one = (magnitude(a) < math.inf) | b.eq(0.0)
    return cast_to(has_one.where(whole, whole.like(math.nan)), kind)


def _widened(a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """Return floats with enough more bits that rounding what comes of them back is as good as
    rounding once; the more bits, the larger the quotients for which FMOD is quick."""
    wide = dtypes.float32 if a.dtype.is_half_precision else dtypes.float64
    a, b = filled(a, b)
    return cast_to(a, wide), cast_to(b, wide)


def _is_against(rest: UOp, b: UOp) -> UOp:
    """Return whether a truncated remainder is not 0 and has the other sign than the divisor."""
    differ = (rest < 0.0) ^ (b < 0.0)
    return differ & rest.ne(0.0)


def _truncated(a: UOp, b: UOp) -> UOp:
    """Return the integer quotient rounded towards zero.

    Floored and truncated differ by one where the signs differ and something is left over.
    """
    a, b = filled(a, b)
    quotient = a // b
    left_over = (a % b).ne(0)
    differ = (a < 0) ^ (b < 0)
    up = left_over & differ
    return up.where(quotient + 1, quotient)
