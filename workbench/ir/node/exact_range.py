"""The exact least and greatest value of an index expression, where interval bounds are too wide.

Interval arithmetic forgets that `i // 8 * 8` and `i % 8` are of the same `i`. The parts of a
sum that share no range are independent, so each is evaluated at every step of its own few ranges,
and the extremes add up.
"""

from __future__ import annotations

import numpy as np

from workbench.ir.meaning.evaluate import Array
from workbench.ir.node.affine import terms
from workbench.ir.node.index_values import index_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_POINTS = 1 << 18
"""Index values of one independent part that are evaluated, at most."""
Terms = list[tuple[UOp, int]]


def exact_range(index: UOp) -> tuple[int, int]:
    """Return (least, greatest) value over all steps of the ranges of an integer expression.

    Exact unless a part has more steps than that or reads memory; such a part gets its bounds.
    """
    parts, low = terms(index)
    high = low
    for ranges, group in _groups(parts):
        least, greatest = _extremes(ranges, group)
        low, high = low + least, high + greatest
    return low, high


def _groups(parts: dict[UOp, int]) -> list[tuple[frozenset[UOp], Terms]]:
    """Return the terms grouped so that no two groups share a range."""
    groups: list[tuple[frozenset[UOp], Terms]] = []
    for atom, factor in parts.items():
        ranges, group = atom.ranges, [(atom, factor)]
        for other in [g for g in groups if g[0] & ranges]:
            groups.remove(other)
            ranges, group = ranges | other[0], other[1] + group
        groups.append((ranges, group))
    return groups


def _extremes(ranges: frozenset[UOp], group: Terms) -> tuple[int, int]:
    if len(group) > 1 or group[0][0].op is not Ops.RANGE:
        axes = sorted(ranges, key=lambda r: r.axis_name)
        total = _sums(axes, group)
        if total is not None and total.size:
            return int(total.min()), int(total.max())
    ends = [sorted((int(a.vmin) * factor, int(a.vmax) * factor)) for a, factor in group]
    return sum(e[0] for e in ends), sum(e[1] for e in ends)


def _sums(axes: list[UOp], group: Terms) -> Array | None:
    """Return the sum at every step of `axes`, or None where it depends on more than ranges."""
    values = index_values([atom for atom, _ in group], axes, _POINTS)
    if values is None:
        return None
    total: Array = np.zeros([1] * len(axes), np.int64)
    for value, (_, factor) in zip(values, group, strict=True):
        total = total + value * factor
    return total
