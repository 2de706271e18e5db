"""Rounding of float nodes to whole numbers, made of TRUNC and comparisons."""

from __future__ import annotations

from workbench.ir.ops import Ops
from workbench.ir.uop import UOp


def floored(x: UOp) -> UOp:
    """Return the greatest whole number that is not above x; NaN and infinity stay."""
    whole = x.alu(Ops.TRUNC)
    return (x < whole).where(whole + (-1.0), whole)


def ceiled(x: UOp) -> UOp:
    """Return the least whole number that is not below x; NaN and infinity stay."""
    whole = x.alu(Ops.TRUNC)
    return (whole < x).where(whole + 1.0, whole)


def rounded(x: UOp) -> UOp:
    """Return the nearest whole number, the even one of two; NaN and infinity stay."""
    below = floored(x)
    over = x + below.alu(Ops.NEG)
    tie_up = over.alu(Ops.CMPEQ, x.like(0.5)).alu(Ops.AND, is_odd(below))
    up = (x.like(0.5) < over).alu(Ops.OR, tie_up)
    return up.where(below + 1.0, below)


def is_odd(whole: UOp) -> UOp:
    """Return whether a whole float is odd."""
    half = whole * 0.5
    return half.alu(Ops.TRUNC).alu(Ops.CMPNE, half)
