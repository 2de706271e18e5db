"""How many different elements of a buffer a set of index expressions touches.

An affine index over n loops is a sum of strided steps. Sorted by stride, each step either
clears everything the smaller ones reach (the counts multiply) or lands inside one unbroken
run of elements (the run grows): both are exact. What is neither is counted one by one where
that is cheap, and else bounded, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.dtypes import dtypes
from workbench.ir.affine import terms
from workbench.ir.evaluate import constant, elementwise
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp, split_gate

ENUMERATED = 1 << 14
"""Up to this many points are counted one by one."""


class Touched(NamedTuple):
    """A number of different elements; where not `exact`, it is an upper bound."""

    elements: int
    exact: bool = True


class Runs(NamedTuple):
    """`number` unbroken runs of `length` elements each; where they begin, multiples of `step`
    elements apart: the greatest power of 2 of which that is true, 0 where nobody knows."""

    number: int
    length: int
    step: int


class _Affine(NamedTuple):
    """An index as steps of (stride, extent) inside, and what stays fixed meanwhile."""

    steps: tuple[tuple[int, int], ...]
    fixed: frozenset[tuple[UOp, int]]
    constant: int


def touched(indexes: Iterable[UOp], inside: Collection[UOp], size: int) -> Touched:
    """Return how many of a buffer's `size` elements the flat `indexes`, gated or not, reach
    while the ranges `inside` run and all others stand still."""
    different = tuple(dict.fromkeys(indexes))
    parts = [_affine(index, inside) for index in different]
    whole = list(dict.fromkeys(p for p in parts if p is not None))
    if len(whole) == 1 and None not in parts:
        count = count_sums(whole[0].steps)
        if count is not None:
            return Touched(min(count, size))
    points = sum(_points(index, inside) for index in different)
    if points <= ENUMERATED:
        found = _enumerated(different, parts, inside)
        if found is not None:
            return Touched(len(found))
    bound = sum(_bound(*pair, inside) for pair in zip(different, parts, strict=True))
    return Touched(min(bound, size), exact=False)


def count_sums(steps: Iterable[tuple[int, int]]) -> int | None:
    """Return how many different values `sum(stride * i)` takes, i below each extent; None
    where the steps interleave so that no formula here counts them.

    >>> count_sums([(48, 64), (1, 48)])
    3072
    >>> count_sums([(1, 28), (1, 5)])
    32
    """
    merged: dict[int, int] = {}
    for stride, extent in steps:
        if stride and extent > 1:
            merged[abs(stride)] = merged.get(abs(stride), 1) + extent - 1
    unit = math.gcd(*merged) or 1
    count = span = 1
    for stride, extent in sorted((s // unit, n) for s, n in merged.items()):
        if stride >= span:
            count *= extent
        elif count == span:
            count += stride * (extent - 1)
        else:
            return None
        span += stride * (extent - 1)
    return count


def runs(
    indexes: Iterable[UOp], inside: Collection[UOp], line: int
) -> tuple[Runs, ...]:
    """Return about what the flat `indexes` reach while the ranges `inside` run, as unbroken runs
    of elements, for a memory that moves in lines of `line` elements. Gates count as open.

    Steps shorter than a line, or than what shorter ones reach, make a run longer; others begin
    another. Where an index is not affine, each of its points may lie in a line of its own.
    """
    found: dict[tuple[object, ...], Runs] = {}
    for index in dict.fromkeys(indexes):
        plain = split_gate(index)[0]
        parts = _affine(plain, inside)
        if parts is None:
            found[(plain,)] = Runs(_points(plain, inside), 1, 0)
            continue
        length, far = _unbroken(parts.steps, line)
        number = math.prod(extent for _, extent in far)
        step = min((stride & -stride for stride, _ in far), default=0)
        key = far, length, parts.fixed, parts.constant // line
        found[key] = Runs(number, length, step)
    return tuple(found.values())


def _unbroken(
    steps: Iterable[tuple[int, int]], line: int
) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return (elements from the first to the last of an unbroken run, the steps between runs)."""
    merged: dict[int, int] = {}
    for stride, extent in steps:
        if stride and extent > 1:
            merged[abs(stride)] = merged.get(abs(stride), 1) + extent - 1
    length, far = 1, []
    for stride, extent in sorted(merged.items()):
        if stride <= max(length, line - 1):
            length += stride * (extent - 1)
        else:
            far.append((stride, extent))
    return length, tuple(far)


def strides(indexes: Iterable[UOp], axis: UOp) -> tuple[int, ...] | None:
    """Return the different steps, in elements, that one step of `axis` makes in the flat
    `indexes`; None where a step is not the same everywhere."""
    found: dict[int, None] = {}
    for index in indexes:
        parts, _ = terms(split_gate(index)[0])
        if any(atom is not axis and axis in atom.ranges for atom in parts):
            return None
        found[parts.get(axis, 0)] = None
    return tuple(sorted(found))


def _affine(index: UOp, inside: Collection[UOp]) -> _Affine | None:
    plain, gate = split_gate(index)
    parts, base = terms(plain)
    if gate is not None:
        return None
    steps, fixed = [], []
    for atom, factor in parts.items():
        if atom in inside:
            steps.append((factor, atom.extent))
        elif atom.ranges.isdisjoint(inside) and not _loads(atom):
            fixed.append((atom, factor))
        else:
            return None
    return _Affine(tuple(sorted(steps)), frozenset(fixed), base)


def _loads(node: UOp) -> bool:
    return any(n.op is Ops.LOAD for n in node.toposort())


def _points(index: UOp, inside: Collection[UOp]) -> int:
    return math.prod(r.extent for r in index.ranges if r in inside)


def _bound(index: UOp, affine: _Affine | None, inside: Collection[UOp]) -> int:
    if affine is not None:
        span = 1 + sum(abs(stride) * (n - 1) for stride, n in affine.steps)
        return min(span, _points(index, inside))
    low, high = split_gate(index)[0].bounds
    return min(int(high) - int(low) + 1, _points(index, inside))


def _enumerated(
    indexes: Sequence[UOp], parts: Sequence[_Affine | None], inside: Collection[UOp]
) -> set[int] | None:
    """Return the elements reached, one by one; None where that depends on what is fixed."""
    fixed = {None if part is None else part.fixed for part in parts}
    moving = any(r not in inside for index in indexes for r in index.ranges)
    if moving and (None in fixed or len(fixed) > 1):
        return None
    found: set[int] = set()
    for index in indexes:
        values = _values(index, inside)
        if values is None:
            return None
        found.update(values)
    return found


def _values(index: UOp, inside: Collection[UOp]) -> list[int] | None:
    """Return every value of a gated index where it is valid; fixed ranges stand at 0."""
    plain, gate = split_gate(index)
    axes = sorted((r for r in index.ranges if r in inside), key=lambda r: r.axis_name)
    shape = tuple(r.extent for r in axes)
    done: dict[UOp, Any] = {}
    for node in index.toposort():
        if node.op is Ops.RANGE:
            place = axes.index(node) if node in axes else None
            done[node] = _counted(node.extent, place, len(axes))
        elif node.op is Ops.CONST:
            done[node] = constant(node, widen=False)
        elif node.op is Ops.INVALID:
            done[node] = np.array(0, dtypes.index.numpy)
        elif node.is_elementwise:
            done[node] = elementwise(node, [done[s] for s in node.src], widen=False)
        else:
            return None
    values = np.broadcast_to(done[plain], shape)
    valid = np.broadcast_to(True if gate is None else done[gate], shape)
    kept: list[int] = np.unique(values[valid]).tolist()
    return kept


def _counted(extent: int, place: int | None, axes: int) -> Any:
    if place is None:
        return np.array(0, dtypes.index.numpy)
    shape = [1] * axes
    shape[place] = extent
    return np.arange(extent, dtype=dtypes.index.numpy).reshape(shape)
