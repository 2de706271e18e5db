"""The elements that one gated index touches while some ranges run, as (stride, extent) pairs.

An index is a sum, and a gate a conjunction. Their parts that share no range are independent, so
each is evaluated at every step of its own few ranges; where its values are at equal distances it is
one step: `g0 + r0 - 1 where 0 < g0 + r0 < 65` touches 64 rows, not 66. Of other parts only the
number of values is known. A loaded index is counted as another one at every point.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

from workbench.ir.node.affine import terms
from workbench.ir.node.index_values import index_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate

TRIED_OUT = 1 << 14
"""Points of a part that are evaluated, at most."""
Step = tuple[int, int]


class IndexSteps(NamedTuple):
    """The index as a sum: `start`, `fixed` (its terms in fixed ranges), i * stride with i below
    each extent, and parts that together have `others` values, or at most that number if not
    `exact`."""

    steps: tuple[Step, ...]
    others: int
    exact: bool
    start: int
    fixed: frozenset[tuple[UOp, int]]


class _Part(NamedTuple):
    """Terms and conditions, and the moving ranges that they share with no other part."""

    ranges: frozenset[UOp]
    terms: tuple[tuple[UOp, int], ...]
    gates: tuple[UOp, ...]


def index_steps(index: UOp, inside: Collection[UOp]) -> IndexSteps:
    """Return the elements that a flat index, gated or not, touches while the ranges `inside` run
    and all others are fixed."""
    plain, gate = split_gate(index)
    coefficients, start = terms(plain)
    moving = frozenset(inside)
    fixed = {a: k for a, k in coefficients.items() if a.ranges.isdisjoint(moving)}
    fixed = {a: k for a, k in fixed.items() if not loads(a)}
    gates, exact = _conditions(gate, moving)
    steps: list[Step] = []
    others = 1
    for part in _parts([p for p in coefficients.items() if p[0] not in fixed], gates, moving):
        values = _values(part, moving)
        if values is None:
            others, exact = others * _most(part), False
            continue
        first, step, count = values
        start += first
        if step is None:
            others *= count
        elif count > 1:
            steps.append((step, count))
        elif not count:
            others = 0
    fixed_terms = frozenset(fixed.items())
    return IndexSteps(tuple(sorted(steps)), others, exact, start, fixed_terms)


def loads(node: UOp) -> bool:
    """Whether a value is read from memory."""
    return any(n.op is Ops.LOAD for n in node.toposort())


def _conditions(gate: UOp | None, moving: frozenset[UOp]) -> tuple[list[UOp], bool]:
    """Return the conditions of a gate that moving ranges alone decide, and whether these are all;
    the others count as true."""
    conditions: list[UOp] = []
    exact, stack = True, [] if gate is None else [gate]
    while stack:
        part = stack.pop()
        if part.op is Ops.AND:
            stack.extend(part.src)
        elif part.ranges <= moving and not loads(part):
            conditions.append(part)
        else:
            exact = False
    return conditions, exact


def _parts(
    sums: Iterable[tuple[UOp, int]], gates: Iterable[UOp], moving: frozenset[UOp]
) -> list[_Part]:
    parts: list[_Part] = []
    single = [_Part(atom.ranges & moving, ((atom, k),), ()) for atom, k in sums]
    for part in [*single, *(_Part(gate.ranges, (), (gate,)) for gate in gates)]:
        for other in [p for p in parts if p.ranges & part.ranges]:
            parts.remove(other)
            part = _joined(other, part)
        parts.append(part)
    return parts


def _joined(one: _Part, other: _Part) -> _Part:
    ranges, gates = one.ranges | other.ranges, one.gates + other.gates
    return _Part(ranges, one.terms + other.terms, gates)


def _values(part: _Part, moving: frozenset[UOp]) -> tuple[int, int | None, int] | None:
    """Return (the first value, the distance or None where it varies, the number of values) of a
    part; None where they cannot be enumerated."""
    narrowed = _narrowed(part)
    if narrowed is not None:
        return narrowed
    axes = sorted(part.ranges, key=lambda r: r.axis_name)
    roots = [*part.gates, *(atom for atom, _ in part.terms)]
    arrays = index_values(roots, axes, TRIED_OUT)
    if arrays is None:
        return None
    number = len(part.gates)
    valid = np.ones([r.extent for r in axes], bool)
    for gate in arrays[:number]:
        valid &= gate
    total = np.zeros(valid.shape, np.int64)
    for (_, factor), atom in zip(part.terms, arrays[number:], strict=True):
        total += factor * atom
    different = np.unique(total[valid])
    if different.size < 2:
        return int(different.sum()), 1, different.size
    gaps = np.diff(different)
    step = int(gaps[0]) if (gaps == gaps[0]).all() else None
    return int(different[0]), step, different.size


def _narrowed(part: _Part) -> tuple[int, int, int] | None:
    """Return what `_values` does, for a part of one range of any size that is compared with
    numbers."""
    if len(part.ranges) != 1:
        return None
    (axis,) = part.ranges
    low, high = 0, axis.extent
    for gate in part.gates:
        if gate.op is not Ops.CMPLT:
            return None
        left, right = gate.src
        if left is axis and right.op is Ops.CONST:
            high = min(high, int(right.arg))
        elif right is axis and left.op is Ops.CONST:
            low = max(low, int(left.arg) + 1)
        else:
            return None
    count = max(0, high - low)
    if not part.terms:
        return 0, 1, min(count, 1)
    if len(part.terms) > 1 or part.terms[0][0] is not axis:
        return None
    factor = part.terms[0][1]
    first = factor * (low if factor > 0 else high - 1)
    return first, abs(factor), count


def _most(part: _Part) -> int:
    """Return an upper bound of the number of distinct values of a part: one for each point."""
    points = math.prod(r.extent for r in part.ranges)
    if not part.terms:
        return 1
    span = sum(
        abs(factor) * (int(atom.bounds[1]) - int(atom.bounds[0])) for atom, factor in part.terms
    )
    return min(points, span + 1)
