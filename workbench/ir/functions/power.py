"""x ** y of floats, as 2 ** (log2(x) * y) with IEEE's results at the edges."""

from __future__ import annotations

import math

from workbench.ir.functions.rounding import is_odd
from workbench.ir.functions.signs import magnitude, with_sign_of
from workbench.ir.node.uop import UOp


def power(x: UOp, y: UOp) -> UOp:
    """Return x ** y of floats, with IEEE's answers for zero, negative and infinite x.

    A negative x has a power where y is whole. The relative error grows with the exponent of
    the result: about abs(y * log2(x)) units in the last place.
    """
    size = magnitude(x)
    # 1 and -1 to an infinite power are 1, and so is every x to the power 0: not 0 * inf.
    is_one = y.eq(0.0) | size.eq(1.0)
    positive = is_one.where(x.like(1.0), (size.log2() * y).exp2())
    whole = y.trunc().eq(y)
    swapped = whole & is_odd(y)
    signed = swapped.where(with_sign_of(positive, x), positive)
    undefined = has_no_root(x) & ~whole
    return undefined.where(x.like(math.nan), signed)


def has_no_root(x: UOp) -> UOp:
    """Return where x has whole powers only: below 0, but for -inf and -0.0."""
    return (x < 0.0) & (x > -math.inf)
