"""A tile transposed by a work-group: read along its rows, written along its columns.

Where an operand's elements are neighbours along another axis than the result's, either is far apart
for work-items beside each other. So a square is copied to shared memory as it lies, and stored from
there. Source: Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA" (2009).
"""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.node.axis import AxisType
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.step import HeuristicStep
from workbench.ir.opt.heuristic.strides import loads, reduces, strides, unit_axis
from workbench.ir.opt.heuristic.work_groups.plan import OptPlan, grid_loops, item_count
from workbench.ir.opt.opt import OptOps

SIDE = 32
"""Elements of a side, at most: as many as banks."""
ROWS = 4
"""Elements of a work-item."""
LEAST = 8
"""Elements of a side, at least: those of a sector."""


def transposed_tile(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A square of a transposed operand in shared memory, a part for each work-group."""
    axis = unit_axis(kernel)
    if axis is None or reduces(kernel) or axis.axis_kind is not AxisType.GLOBAL:
        return None
    for load in loads(kernel):
        other = _across(load, axis)
        if other is None:
            continue
        plan, name = OptPlan(kernel, target), other.axis_name
        columns = item_count(axis.extent, min(SIDE, axis.extent // 2), 1)
        rows = item_count(other.extent, min(SIDE, target.group_items), 1)
        each = next((n for n in range(ROWS, 0, -1) if rows % n == 0), 1)
        if min(rows, columns) < LEAST or rows // each * columns > target.group_items:
            continue
        plan.split(OptOps.LOCAL, name, rows // each)
        plan.split(OptOps.UPCAST, name, each)
        plan.split(OptOps.LOCAL, axis.axis_name, columns)
        outside = grid_loops(plan.kernel)
        slot = load.place.memory.slot
        if not outside or not plan.apply(OptOps.STAGE, outside[-1], slot):
            continue
        why = f"input {slot} is read along {name}, and the result written along {axis.axis_name}"
        counts = {"rows": rows, "columns": columns, "rows_of_an_item": each}
        return HeuristicStep("transposed-tile", tuple(plan.opts), why, counts)
    return None


def _across(load: UOp, axis: UOp) -> UOp | None:
    """Return the output loop along which a load's elements are neighbours, if it is not `axis`."""
    walk = strides(load)
    if load.place.memory.op is not Ops.PARAM or walk.get(axis, 1) == 1:
        return None
    across = [r for r, step in walk.items() if step == 1 and r.op is Ops.RANGE]
    if len(across) != 1 or across[0].axis_kind is not AxisType.GLOBAL:
        return None
    return across[0]
