"""Affine index expressions: `4*g0 + u0 + 3` is the sum of {g0: 4, u0: 1} and 3.

An atom is any node but a sum or a product with a constant: a RANGE, a division, a load.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated, split_gate

Terms = dict[UOp, int]


def terms(node: UOp) -> tuple[Terms, int]:
    """Return ({atom: coefficient}, constant) of an integer expression, in order of appearance."""
    coefficients: Terms = {}
    constant = 0
    stack = [(node, 1)]
    while stack:
        part, factor = stack.pop()
        if part.op is Ops.CONST:
            constant += part.arg * factor
        elif part.op is Ops.ADD:
            stack.extend([(part.src[1], factor), (part.src[0], factor)])
        elif part.op is Ops.MUL and part.src[1].op is Ops.CONST:
            stack.append((part.src[0], factor * part.src[1].arg))
        else:
            coefficients[part] = coefficients.get(part, 0) + factor
    return {atom: factor for atom, factor in coefficients.items() if factor}, constant


def row_major(indexes: Iterable[UOp], shape: Iterable[int]) -> UOp:
    """Return the one index of an element in memory of `shape`, the last axis next to next; it is
    valid where all of `indexes` are."""
    total, valid = UOp.index(0), UOp.const(dtypes.bool, True)
    for place, extent in zip(indexes, shape, strict=True):
        index, gate = split_gate(place)
        total = total * extent + index
        valid = valid if gate is None else gate if valid.is_const else valid & gate
    return gated(total, valid)


def from_terms(parts: Mapping[UOp, int], constant: int, zero: UOp) -> UOp:
    """Return the sum as a node, in the order of `parts`, the constant last; an empty sum has the
    dtype of `zero`."""
    total: UOp | None = None
    for atom, factor in parts.items():
        term = atom if factor == 1 else atom * factor
        total = term if total is None else total + term
    if total is None:
        return zero.like(constant)
    return total + constant if constant else total


def divisor(index: UOp) -> int:
    """Return a number that divides every value of `index`; 0 divides only zero."""
    divisors: dict[UOp, int] = {}
    for node in index.toposort():
        below = [divisors[s] for s in node.src]
        if node.op is Ops.CONST and node.dtype.is_int:  # a float may be infinite
            divisors[node] = abs(int(node.arg))
        elif node.op is Ops.ADD:
            divisors[node] = math.gcd(*below)
        elif node.op is Ops.MUL:
            divisors[node] = below[0] * below[1]
        elif node.op is Ops.SHL and node.src[1].op is Ops.CONST:
            divisors[node] = below[0] << int(node.src[1].arg)
        else:
            divisors[node] = 1
    return divisors[index]
