"""Rounding of float nodes to whole numbers, by TRUNC, comparisons and sums that round."""

from __future__ import annotations

from workbench.ir.functions.signs import absolute
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def floored(x: UOp) -> UOp:
    """Return the greatest whole number that is not above x; NaN and infinity stay."""
    whole = x.trunc()
    return (x < whole).where(whole - 1.0, whole)


def ceiled(x: UOp) -> UOp:
    """Return the least whole number that is not below x; NaN and infinity stay."""
    whole = x.trunc()
    return (whole < x).where(whole + 1.0, whole)


def rounded(x: UOp) -> UOp:
    """Return the nearest whole number, the even one of two, with the sign of x.

    Beside 2**fraction_bits a float has no room for a fraction: adding it rounds. TRUNC changes
    nothing here, but no gradient goes through it.
    """
    size, shift = absolute(x), 2.0**x.dtype.fraction_bits
    whole = ((size + shift) - shift).trunc()
    return (size < shift).where(whole.alu(Ops.COPYSIGN, x), x.trunc())


def is_odd(whole: UOp) -> UOp:
    """Return whether a whole float is odd."""
    half = whole * 0.5
    return half.trunc().ne(half)
