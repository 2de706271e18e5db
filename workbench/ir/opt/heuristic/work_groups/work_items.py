"""Work-items of the axes to which no other step gave any.

vectors     the axis along which results are neighbours, a vector for each work-item
work-items  the loops over outputs, that axis innermost, so that neighbours are read together
"""

from __future__ import annotations

import math

from workbench.base.target import Target
from workbench.ir.node.axis import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.step import HeuristicStep
from workbench.ir.opt.heuristic.strides import unit_axis
from workbench.ir.opt.heuristic.work_groups.plan import (
    OptPlan,
    grid_loops,
    has_items,
    item_count,
    width_along,
)
from workbench.ir.opt.opt import OptOps, ranges

ITEMS = 256
"""Work-items of a group: enough to wait for memory in turns, and a few groups for each unit."""
VECTORS_OF_A_CORE = 1024
"""Vectors that keep a compute unit busy: with fewer, a work-item takes one element."""


def vectors(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A vector for each work-item, where vectors are aligned, and many."""
    axis = unit_axis(kernel)
    if axis is None or has_items(kernel) or axis.axis_kind is not AxisType.GLOBAL:
        return None
    width = width_along(kernel, axis, target)
    count = math.prod(ranges(kernel)[n].extent for n in grid_loops(kernel)) // width
    plan = OptPlan(kernel, target)
    if count < target.cores * VECTORS_OF_A_CORE and target.cores > 1:
        return None
    if not plan.split(OptOps.UPCAST, axis.axis_name, width):
        return None
    why = f"{axis.axis_name} has stride 1 in all that is read and written along it"
    counts = {"extent": axis.extent, "lanes": width, "vectors": count}
    return HeuristicStep("vectors", tuple(plan.opts), why, counts)


def work_items(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A group's work-items: along the axis of neighbours, and along others where it is short."""
    if has_items(kernel):
        return None
    loops = [ranges(kernel)[n] for n in grid_loops(kernel)]
    unit = unit_axis(kernel)
    if unit is not None and unit.axis_kind in (AxisType.GLOBAL, AxisType.LOOP):
        loops = [axis for axis in loops if axis is not unit] + [unit]
    left = min(ITEMS, target.group_items)
    amounts: dict[str, int] = {}
    for axis in reversed(loops):
        is_first = not amounts
        amount = item_count(axis.extent, left, target.warp_lanes if is_first else 1)
        if amount > 1:
            amounts[axis.axis_name] = amount
            left //= amount
    plan = OptPlan(kernel, target)
    for name, amount in reversed([*amounts.items()][:3]):
        plan.split(OptOps.LOCAL, name, amount)
    if not plan.opts:
        return None
    names = " ".join(reversed(amounts))
    why = f"{names}: outputs that are neighbours are computed by neighbours"
    counts = {"items": math.prod(amounts.values()), "warp": target.warp_lanes}
    return HeuristicStep("work-items", tuple(plan.opts), why, counts)
