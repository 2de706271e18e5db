"""Multiply-adds and polynomials, the parts of the formulas of functions.

A formula asks for a multiply-add: no other sum of a program has one but a REDUCE (the rule
form-fma).
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def fma(a: UOp, b: UOp, c: UOp) -> UOp:
    """Return a * b + c, rounded once where the machine can."""
    return a.alu(Ops.FMA, b, c)


def polynomial(x: UOp, coefficients: Sequence[float]) -> UOp:
    """Return the polynomial of x, by Horner's rule; `coefficients` start with the lowest power."""
    *rest, value = [x.like(c) for c in coefficients]
    for coefficient in reversed(rest):
        value = fma(value, x, coefficient)
    return value
