"""The number of distinct elements of a buffer that a set of index expressions touches.

An affine index over n loops is a sum of strided steps. Sorted by stride, each step either exceeds
the span of all smaller ones (the counts multiply) or lands inside one unbroken run of elements (the
run grows): both are exact. In other cases elements are counted one by one where that is cheap, and
else bounded (`exact` is False). An index that is loaded is counted as another element for each of
its points.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from workbench.ir.node.affine import terms
from workbench.ir.node.index_steps import IndexSteps, Step, index_steps
from workbench.ir.node.index_values import index_values
from workbench.ir.node.uop import UOp, split_gate

ENUMERATED = 1 << 14
"""Points that are counted one by one, at most."""


class Touched(NamedTuple):
    """A number of distinct elements; an upper bound where not `exact`."""

    elements: int
    exact: bool = True


class Runs(NamedTuple):
    """`number` unbroken runs of `length` elements each; their starts are multiples of `step`
    elements apart: the greatest such power of 2, 0 where it is unknown."""

    number: int
    length: int
    step: int


def touched(indexes: Iterable[UOp], inside: Collection[UOp], size: int) -> Touched:
    """Return how many of a buffer's `size` elements the flat `indexes`, gated or not, touch while
    the ranges `inside` run and all others are fixed."""
    different = tuple(dict.fromkeys(indexes))
    footprints = list(dict.fromkeys(index_steps(index, inside) for index in different))
    if len(footprints) == 1:
        one = _one(footprints[0])
        if one is not None and one.exact:
            return Touched(min(one.elements, size))
    points = sum(_points(index, inside) for index in different)
    if points <= ENUMERATED:
        reached = _enumerated(different, footprints, inside)
        if reached is not None:
            return Touched(len(reached))
    return Touched(min(_together(footprints), size), exact=False)


def _one(footprint: IndexSteps) -> Touched | None:
    """Return how many elements one index touches; None where no formula counts them."""
    count = count_sums(footprint.steps)
    if count is None or footprint.others > 1 < count:
        return None  # parts without steps and others may touch the same elements
    return Touched(count * footprint.others, footprint.exact)


def _together(footprints: Sequence[IndexSteps]) -> int:
    """Return an upper bound of the elements that indexes touch: for those that differ in their
    starts alone, as windows do, the elements of the box around them."""
    alike: dict[IndexSteps, list[int]] = {}
    for one in footprints:
        alike.setdefault(one._replace(start=0), []).append(one.start)
    return sum(_at_most(*pair) for pair in alike.items())


def _at_most(one: IndexSteps, starts: Sequence[int]) -> int:
    """Return an upper bound of the elements that steps from several starts touch."""
    span = 1 + sum(stride * (extent - 1) for stride, extent in one.steps)
    points = math.prod(extent for _, extent in one.steps)
    count = count_sums(one.steps)
    by_starts = len(starts) * (min(span, points) if count is None else count)
    box = _box(one.steps, starts)
    return one.others * (by_starts if box is None else min(by_starts, box))


def _box(steps: Sequence[Step], starts: Sequence[int]) -> int | None:
    """Return how many elements the steps touch once each is so long that the first start reaches
    all that every start does; None where no length suffices."""
    least = [0] * len(steps)
    most = [0] * len(steps)
    for start in starts:
        rest = start - min(starts)
        for place, (stride, _) in reversed([*enumerate(steps)]):
            whole, rest = divmod(rest, stride)
            least[place] = min(least[place], whole)
            most[place] = max(most[place], whole)
        if rest:
            return None
    grown = zip(steps, least, most, strict=True)
    return count_sums([(s, n + high - low) for (s, n), low, high in grown])


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


def runs(indexes: Iterable[UOp], inside: Collection[UOp], line: int) -> tuple[Runs, ...]:
    """Return an estimate of the elements that the flat `indexes` touch while the ranges `inside`
    run, as unbroken runs, for a memory that moves lines of `line` elements. A gate that depends on
    a fixed range or on data counts as open.

    A step shorter than a line, or than the span of the shorter steps, makes a run longer; others
    begin a run. A part that is not a step, such as a loaded index, begins one for each of its
    points.
    """
    runs_by_key: dict[tuple[object, ...], Runs] = {}
    for index in dict.fromkeys(indexes):
        one = index_steps(index, inside)
        length, far = _unbroken(one.steps, line)
        number = one.others * math.prod(extent for _, extent in far)
        step = min((stride & -stride for stride, _ in far), default=0)
        key: tuple[object, ...] = far, length, one.fixed, one.start // line
        if one.others > 1:
            step, key = 0, (index,)
        runs_by_key[key] = Runs(number, length, step)
    return tuple(runs_by_key.values())


def _unbroken(steps: Iterable[Step], line: int) -> tuple[int, tuple[Step, ...]]:
    """Return (elements from the first to the last of an unbroken run, the steps between runs)."""
    merged: dict[int, int] = {}
    for stride, extent in steps:
        merged[stride] = merged.get(stride, 1) + extent - 1
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
    steps: dict[int, None] = {}
    for index in indexes:
        parts, _ = terms(split_gate(index)[0])
        if any(atom is not axis and axis in atom.ranges for atom in parts):
            return None
        steps[parts.get(axis, 0)] = None
    return tuple(sorted(steps))


def _points(index: UOp, inside: Collection[UOp]) -> int:
    return math.prod(r.extent for r in index.ranges if r in inside)


def _enumerated(
    indexes: Sequence[UOp], footprints: Sequence[IndexSteps], inside: Collection[UOp]
) -> set[int] | None:
    """Return the elements touched, one by one; None where they depend on a fixed range."""
    moving = any(r not in inside for index in indexes for r in index.ranges)
    fixed = {one.fixed for one in footprints}
    if moving and (len(fixed) > 1 or any(_mixes(index, inside) for index in indexes)):
        return None
    reached: set[int] = set()
    for index in indexes:
        values = _values(index, inside)
        if values is None:
            return None
        reached.update(values)
    return reached


def _mixes(index: UOp, inside: Collection[UOp]) -> bool:
    """Whether a fixed range is more than a summand: in a gate, or in a part that moves."""
    plain, gate = split_gate(index)
    parts = [atom for atom in terms(plain)[0] if not atom.ranges.isdisjoint(inside)]
    parts += [] if gate is None else [gate]
    return any(r not in inside for part in parts for r in part.ranges)


def _values(index: UOp, inside: Collection[UOp]) -> list[int] | None:
    """Return every value of a gated index where it is valid; fixed ranges are 0."""
    plain, gate = split_gate(index)
    axes = sorted((r for r in index.ranges if r in inside), key=lambda r: r.axis_name)
    arrays = index_values(
        [plain] if gate is None else [plain, gate], axes, ENUMERATED, others_stand=True
    )
    if arrays is None:
        return None
    values, *gates = np.broadcast_arrays(*arrays)
    elements: list[int] = np.unique(values[gates[0]] if gates else values).tolist()
    return elements
