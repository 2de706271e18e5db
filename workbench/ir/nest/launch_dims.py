"""The dimensions of a launch: the axes that number work-groups, and those that number work-items of
a group.

Axes that are open together need dimensions of their own; a device has few, and each has a limit.
Dimension 0 is the innermost: neighbouring work-items differ in it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeVar

from workbench.base.target import Target
from workbench.ir.nest.loops import statements
from workbench.ir.node.uop import UOp

Axis = TypeVar("Axis", bound=Hashable)
GROUP_DIMENSIONS = 3
"""Most dimensions of a work-group, in every language."""
Dims = list[list[int]]
"""For each dimension, innermost first, the positions of its axes, outermost first."""


def grid_dims(extents: Sequence[int], limits: Sequence[int]) -> Dims | None:
    """Return the dimensions for loops of these extents (outermost first), neighbours folded where
    there are more loops than dimensions; None where the limits allow none. As few as possible are
    folded, those outermost."""
    count = len(extents)
    for used in range(min(count, len(limits)), 0, -1):
        for inner in reversed([*combinations(range(1, count), used - 1)]):
            cuts = [0, *inner, count]
            runs = [[*range(a, b)] for a, b in zip(cuts, cuts[1:], strict=False)][::-1]
            sizes = [math.prod(extents[i] for i in run) for run in runs]
            if all(n <= most for n, most in zip(sizes, limits, strict=False)):
                return runs
    return None if count else []


def item_dims(nests: Iterable[Sequence[Axis]]) -> dict[Axis, int]:
    """Return the dimension of each axis, given the axes that are open together, outermost first:
    they have different dimensions. Longer nests choose first, and their innermost axis is
    dimension 0."""
    dimension: dict[Axis, int] = {}
    conflicts: dict[Axis, dict[Axis, None]] = {}
    ordered = sorted(nests, key=len, reverse=True)
    for nest in ordered:
        for axis in nest:
            conflicts.setdefault(axis, {}).update(dict.fromkeys(a for a in nest if a != axis))
    for nest in ordered:
        for axis in reversed(nest):
            others = {dimension[a] for a in conflicts[axis] if a in dimension}
            if axis not in dimension:
                dimension[axis] = next(d for d in range(len(conflicts)) if d not in others)
    return dimension


def by_names(nests: Iterable[tuple[UOp, ...]]) -> Iterator[tuple[UOp, ...]]:
    """Yield the axes of nests of loops in an order that does not depend on where they stand."""
    yield from sorted(nests, key=lambda nest: [axis.axis_name for axis in nest])


def group_excess(shape: Sequence[int], target: Target) -> str:
    """Return what a work-group of this shape, innermost first, has too much of for a target,
    with the numbers; "" where it fits."""
    if len(shape) > GROUP_DIMENSIONS:
        return f"a work-group has {len(shape)} dimensions, and {GROUP_DIMENSIONS} fit"
    items = math.prod(shape)
    if items > target.group_items:
        return (
            f"a work-group has {items:,} work-items, and {target.group_items:,} fit on"
            f" {target.device}"
        )
    for dimension, size, limit in zip("xyz", shape, target.group_limits, strict=False):
        if size > limit:
            return (
                f"a work-group has {size:,} work-items along {dimension}, and {limit:,} fit on"
                f" {target.device}"
            )
    return ""


def group_shape(kernel: UOp) -> tuple[int, ...]:
    """Return the work-items along each dimension of a kernel's work-groups, innermost first."""
    nests = {
        tuple(axis for axis in statement.nest if axis.axis_kind.is_work_item)
        for statement in statements(kernel).values()
    }
    dimension = item_dims(by_names(nests))
    shape = [1] * (1 + max(dimension.values(), default=-1))
    for axis, place in dimension.items():
        shape[place] = max(shape[place], axis.extent)
    return tuple(shape)
