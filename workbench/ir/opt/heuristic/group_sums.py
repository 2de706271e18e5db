"""Group reductions: reductions that the work-items of a group compute together.

    group-rows     reductions with stride 1 in the operands, and the rows that use their results: a
                   work-group for each row, or for a few short ones
    group-columns  a long reduction with few results, with stride 1 along the results: parts of the
                   reduction for different work-items

Partial results are combined in shared memory. Source: Harris, "Optimizing parallel reduction in
CUDA" (2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from workbench.base.target import Target
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.register_tile import dot_axis, loads, reduces, unit_axis
from workbench.ir.opt.heuristic.step import HeuristicStep
from workbench.ir.opt.heuristic.work_groups import (
    OptPlan,
    grid_loops,
    has_items,
    item_count,
    width_along,
)
from workbench.ir.opt.opt import OptKind, OptOps, ranges

SHORT = 16
"""One work-item computes a reduction of fewer steps."""
STEPS_OF_AN_ITEM = 4
"""Least steps of a long reduction for a work-item."""
FEW_WARPS = 4
"""Most warps for a row whose length has no divisor near the size of a warp."""
PARTS = 32
"""Most parts of a reduction whose results are neighbours."""
SECTOR = 8
"""Elements of 4 bytes in a sector, which memory moves as a whole."""
RESULTS_OF_A_CORE = 2048
"""Results, one for each work-item, that keep a compute unit busy without parts."""


def group_rows(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A work-group for each row that is reduced; its work-items read neighbours. Elements of the
    row may be sums along another axis."""
    sums = reduces(kernel)
    axes = dict.fromkeys(axis for axis in map(_row_axis, sums) if axis is not None)
    others = [s for s in sums if _row_axis(s) is None]
    if has_items(kernel) or not axes or not all(map(_is_of_row, others)):
        return None
    plan = OptPlan(kernel, target)
    for other in others:
        _elements_outside(plan, other)
    longest = max(axes, key=lambda r: r.extent)
    rows = math.prod(ranges(kernel)[n].extent for n in grid_loops(kernel))
    most = _items_of_a_row(longest, rows, plan)
    room = target.group_items // 2 // max(1, _parts(longest.extent, most, target))
    best, counts, groups = plan, dict[str, float](), 0
    # staged rows of a group may leave no memory for the partial results of its work-items
    for together in [room >> i for i in range(room.bit_length())] or [1]:
        candidate = plan.copy()
        deal = _deal_rows(candidate, axes, together, most)
        number = sum(opt.op is OptOps.GROUP for opt in candidate.opts)
        if number > groups:
            best, counts, groups = candidate, {"rows": rows} | deal, number
        if groups == len(axes):
            break
    if not groups:
        return None
    _spread_rows(best, most)
    names = " ".join(r.axis_name for r in axes)
    why = f"along {names} the elements are neighbours, which work-items read together"
    return HeuristicStep("group-rows", tuple(best.opts), why, counts)


def _deal_rows(plan: OptPlan, axes: Iterable[UOp], most_rows: int, most: int) -> dict[str, float]:
    """Give each work-group at most `most_rows` rows, and share each row out to at most `most`
    work-items. Return the number of rows, and of work-items by axis."""
    outputs = [ranges(plan.kernel)[n] for n in grid_loops(plan.kernel)]
    counts: dict[str, float] = {"rows_of_a_group": _rows_together(plan, outputs, most_rows)}
    for axis in axes:
        width = _vector(plan, axis, OptOps.UNROLL, most)
        parts = _parts(axis.extent // width, most, plan.target)
        if plan.split(OptOps.GROUP, axis.axis_name, parts):
            counts[axis.axis_name] = parts
    return counts


def _row_axis(reduce: UOp) -> UOp | None:
    """Return the loop of a reduction with stride 1 in its loads; None without a long one."""
    axis, stride = dot_axis(reduce)
    if axis is None or stride > 1 or axis.extent < SHORT:
        return None
    return axis if axis.axis_kind is AxisType.REDUCE else None


def _is_of_row(reduce: UOp) -> bool:
    """Whether a sum is computed for each element of a staged row."""
    return any(r.axis_kind is AxisType.FILL for r in reduce.ranges)


def _elements_outside(plan: OptPlan, reduce: UOp) -> None:
    """Move the loop over the elements of a row outside of the loop of the sum that computes each of
    them. The work-items then share it; otherwise each work-item would compute all of the sums."""
    loops = {r.axis_name for r in reduce.src[1:]}
    for fill in reduce.ranges:
        order = plan.kernel.arg.order
        first = next(n for n in order if n in loops)
        if fill.axis_kind is AxisType.FILL and first in order[: order.index(fill.axis_name)]:
            plan.apply(OptOps.ORDER, fill.axis_name, first)


def _items_of_a_row(axis: UOp, rows: int, plan: OptPlan) -> int:
    """Return the most work-items for a row: a warp, if the rows keep all units busy, since fewer
    work-items wait for each other. The number is doubled, while each has STEPS_OF_AN_ITEM steps, if
    there are too few rows, or if rows that are read again do not fit in L1 together."""
    target, most = plan.target, plan.target.warp_lanes
    places = [n for n in loads(plan.kernel) if axis in n.ranges]
    nbytes = axis.extent * max((n.dtype.itemsize for n in places), default=0)
    is_read_again = len(reduces(plan.kernel)) > 1
    while 2 * most <= min(target.group_items, axis.extent // STEPS_OF_AN_ITEM):
        in_unit = min(_unit_items(target) // most, -(-rows // target.cores))
        can_stay = is_read_again and nbytes <= target.l1_bytes
        # half of the cache: results pass through it, too
        is_kept = not can_stay or 2 * in_unit * nbytes <= target.l1_bytes
        if rows * most >= target.cores * RESULTS_OF_A_CORE and is_kept:
            break
        most *= 2
    return most


def _unit_items(target: Target) -> int:
    hardware = target.hardware
    return (hardware.unit_items if hardware else 0) or RESULTS_OF_A_CORE


def _parts(extent: int, most: int, target: Target) -> int:
    """Return the work-items for a row of `extent` steps, at most `most`; but if these are less than
    half of a warp, up to FEW_WARPS warps, even if that pads the row."""
    parts = item_count(extent, most, target.warp_lanes)
    if 2 * parts < target.warp_lanes:
        parts = item_count(extent, min(FEW_WARPS * target.warp_lanes, target.group_items), 1)
    return parts


def _rows_together(plan: OptPlan, outputs: list[UOp], most_rows: int) -> int:
    """Give a work-group several rows if each core has two or more; return how many."""
    rows = math.prod(r.extent for r in outputs)
    each = min(most_rows, rows // plan.target.cores)
    for axis in reversed(outputs):
        amount = item_count(axis.extent, min(each, axis.extent), plan.target.group_items)
        if amount > 1 and plan.split(OptOps.LOCAL, axis.axis_name, amount):
            return amount
    return 1


def _vector(plan: OptPlan, axis: UOp, op: OptKind, most: int) -> int:
    """Make vector lanes along a loop with a vector for each of `most` work-items; return how many
    lanes, 1 for none."""
    width = width_along(plan.kernel, axis, plan.target)
    if axis.extent < width * most or not plan.split(op, axis.axis_name, width):
        return 1
    return width


def _spread_rows(plan: OptPlan, most: int) -> None:
    """Share the loops over the results of a row out to its work-items. Where these loops, and loops
    that fill rows, are long enough, their inner parts become vectors."""
    for axis in [*ranges(plan.kernel).values()]:
        if axis.axis_kind in (AxisType.LOOP, AxisType.FILL):
            width = _vector(plan, axis, OptOps.UPCAST, most)
            if axis.axis_kind is AxisType.LOOP:
                parts = _parts(axis.extent // width, most, plan.target)
                plan.split(OptOps.LOCAL, axis.axis_name, parts)


def group_columns(kernel: UOp, target: Target) -> HeuristicStep | None:
    """Parts of a long reduction for different work-items, if it has few results."""
    sums, unit = reduces(kernel), unit_axis(kernel)
    if len(sums) != 1 or has_items(kernel) or unit is None:
        return None
    if any(n.op is Ops.STAGE for n in kernel.toposort()):
        return None
    results = math.prod(ranges(kernel)[n].extent for n in grid_loops(kernel))
    loops = [r for r in sums[0].src[1:] if r.axis_kind is AxisType.REDUCE]
    axis = max(loops, key=lambda r: r.extent, default=None)
    if axis is None or axis.extent < 2 * SHORT or unit in sums[0].src[1:]:
        return None
    room = target.cores * RESULTS_OF_A_CORE // max(1, results)
    if room < 2 or not any(unit in n.ranges for n in loads(sums[0].src[0])):
        return None
    plan = OptPlan(kernel, target)
    items = item_count(unit.extent, _columns(results, target), 1)
    most = min(PARTS, room, target.group_items // items, axis.extent // STEPS_OF_AN_ITEM)
    parts = item_count(axis.extent, most, 1)
    item = plan.split(OptOps.LOCAL, unit.axis_name, items)
    member = plan.split(OptOps.GROUP, axis.axis_name, parts)
    if not item or not member:
        return None
    plan.apply(OptOps.ORDER, member, item)
    why = f"{results:,} results are few work-items, and {axis.axis_name} is long"
    counts = {"results": results, "items": items, "parts": parts}
    return HeuristicStep("group-columns", tuple(plan.opts), why, counts)


def _columns(results: int, target: Target) -> int:
    """Return how many neighbouring results a work-group has: as many as a warp has lanes. If some
    compute units would get no work-group, there are fewer, but at least a sector."""
    columns = target.warp_lanes
    while columns > SECTOR and results // columns < target.cores:
        columns //= 2
    return columns
