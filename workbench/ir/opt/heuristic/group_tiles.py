"""The default tiles of work-groups: for matrix products, and for transposed reads.

Sections: The tile of a matrix product; A tile transposed by a work-group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from workbench.base.target import Target
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.register_tile import (
    FEW_LANES,
    itemsize,
    loads,
    reduces,
    strides,
    unit_axis,
)
from workbench.ir.opt.heuristic.step import PADDING, HeuristicStep
from workbench.ir.opt.heuristic.work_groups import (
    OptPlan,
    grid_loops,
    has_items,
    item_count,
    pipelined,
    stage_input,
    unit_registers,
    width_along,
)
from workbench.ir.opt.opt import OptOps, ranges

# --------------------------------------------------------------------------------------------------
# The tile of a matrix product: outputs of a work-group and of its work-items, and reduction steps.
#
# A work-group computes a tile along two output axes; along each of them one operand does not
# change. It copies tiles of the operands, a few steps of the reduction deep, to shared memory. Each
# work-item then multiplies a few rows by a few columns in registers. If a compute unit has at most
# one group, several parts of the reduction are computed at once and then added: there are more
# work-items, which hide each other's waits. All tiles of a few sizes are compared by their cost per
# useful multiply-add: elements from memory (fewer, the larger the tile of the group), elements from
# shared memory (fewer, the larger the tile of the work-item), outputs beyond the ends of the axes,
# and compute units without a work-group.
#
# Source: Volkov and Demmel, "Benchmarking GPUs to tune dense linear algebra" (2008); Nath, Tomov
# and Dongarra, "An improved MAGMA GEMM for Fermi GPUs" (2010).

ITEMS = (32, 16, 8, 4)
"""Work-items along an axis."""
REGISTERS = (8, 4, 2, 1)
"""Outputs of a work-item along an axis."""
STEPS = range(32, 7, -1)
"""Steps of the reduction in a tile."""
BEST_STEPS = 16
"""Steps in a tile that are best."""
UNROLL = 4
"""Steps of the reduction in one iteration: the loads of one overlap the multiply-adds of others."""
BUFFERS = (3, 2)
"""Buffers of a tile in shared memory: one is read while the others are filled."""
FROM_MEMORY = 8
"""Cost of an element from memory, in multiply-adds."""
FROM_SHARED = 1
"""Cost of an element from shared memory, in multiply-adds."""
OTHER_REGISTERS = 64
"""Registers of a work-item besides its outputs."""
GROUPS = 2
"""Work-groups of a unit: one computes while another waits."""
PARTS = (1, 2, 4, 8)
"""Parts of the reduction that a work-group computes at once, and then adds."""
COMBINE = 32
"""Cost of adding two parts of a result through shared memory, in multiply-adds."""
ITEMS_IN_FLIGHT = 128
"""Work-items of a group that hide each other's waits for memory."""
WARPS_IN_FLIGHT = 8
"""Warps of a unit that hide each other's waits in a sum of many steps."""
LEAST_PRODUCT = 1 << 12
"""Multiply-adds of the smallest product that gets a tile."""


@dataclass(frozen=True, slots=True)
class GroupTile:
    """Work-items and their outputs along (rows, columns), parts of the reduction, and work-groups
    of the kernel; `cost` is in multiply-adds per useful one."""

    items: tuple[int, int]
    outputs: tuple[int, int]
    parts: int
    groups: int
    cost: float

    @property
    def rows(self) -> int:
        """The rows of a work-group."""
        return self.items[0] * self.outputs[0]

    @property
    def columns(self) -> int:
        """The columns of a work-group."""
        return self.items[1] * self.outputs[1]


def product_tile(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A tile of outputs for each work-group, with tiles of the operands in shared memory."""
    axes = _axes(kernel)
    if axes is None or has_items(kernel):
        return None
    row, column = axes
    candidates = _tiles(kernel, row, column, target)
    best = min(candidates, key=lambda t: t.cost, default=None)
    if best is None:
        return None
    plan = OptPlan(kernel, target)
    _split_outputs(plan, row.axis_name, column.axis_name, best)
    part = _split_parts(plan, best.parts)
    steps, staged = _stage(plan)
    why = (
        f"{best.rows} of {row.axis_name} x {best.columns} of {column.axis_name}: of the tiles"
        " that fit a work-group, the one of the least cost"
    )
    counts = {
        "items": math.prod(best.items),
        "outputs_of_an_item": math.prod(best.outputs),
        "parts": best.parts if part else 1,
        "groups": best.groups,
        "steps": steps,
        "staged_inputs": staged,
        "cost_of_a_multiply_add": round(best.cost, 3),
    }
    return HeuristicStep("product-tile", tuple(plan.opts), why, counts)


def _axes(kernel: UOp) -> tuple[UOp, UOp] | None:
    """Return the output axes of a tile's rows and columns; None if the kernel is not a product.

    Columns are the unit-stride axis of the result if an operand is reused along it, else the
    longest axis along which one is. Rows are the longest of the others for which one operand
    depends on the rows but not the columns, and one on the columns but not the rows.
    """
    sums = reduces(kernel)
    if len(sums) != 1 or any(n.op is Ops.STAGE for n in kernel.toposort()):
        return None
    operands = loads(sums[0].src[0])
    steps = math.prod(r.extent for r in sums[0].ranges | {*sums[0].src[1:]})
    outputs = [r for r in ranges(kernel).values() if r.axis_kind is AxisType.GLOBAL]
    reused = [r for r in outputs if 0 < sum(r in n.ranges for n in operands) < len(operands)]
    if steps < LEAST_PRODUCT or len(reused) < 2:
        return None
    unit = unit_axis(kernel)
    column = unit if unit in reused else max(reused, key=lambda r: r.extent)
    assert column is not None
    rows = [
        r
        for r in reused
        if r is not column
        and any(column in n.ranges and r not in n.ranges for n in operands)
        and any(column not in n.ranges and r in n.ranges for n in operands)
    ]
    return (max(rows, key=lambda r: r.extent), column) if rows else None


def _tiles(kernel: UOp, row: UOp, column: UOp, target: Target) -> Iterator[GroupTile]:
    """Yield the tiles that fit a work-group."""
    depth, length = _depth(kernel), _length(kernel)
    others = [r for r in ranges(kernel).values() if r.axis_kind is AxisType.GLOBAL]
    batches = math.prod(r.extent for r in others if r not in (row, column))
    nbytes = itemsize(kernel)
    for a, b, c, d, parts in product(ITEMS, ITEMS, REGISTERS, REGISTERS, PARTS):
        rows, columns, items = a * c, b * d, a * b * parts
        elements = (rows + columns) * depth * parts
        if (
            items > target.group_items
            or c * d > target.max_lanes
            or a * b % target.warp_lanes
            or rows > 2 * row.extent
            or columns > 2 * column.extent
            or 2 * elements * nbytes > target.shared_bytes
            or GROUPS * items * (c * d + OTHER_REGISTERS) > unit_registers(target)
        ):
            continue
        tiles = -(-row.extent // rows) * -(-column.extent // columns)
        waste = tiles * rows * columns / (row.extent * column.extent)
        groups = tiles * batches
        rounds = -(-groups // target.cores)
        if parts > 1 and (rounds > 1 or _is_short(length, parts)):
            continue  # other groups of the unit hide the waits, or there are too few steps
        busy = groups / (rounds * target.cores)
        memory = FROM_MEMORY * (1 / rows + 1 / columns)
        shared = FROM_SHARED * (1 / c + 1 / d)
        busy *= min(1.0, items / ITEMS_IN_FLIGHT)
        if length > max(STEPS):
            warps = min(rounds, GROUPS) * items / target.warp_lanes
            busy *= min(1.0, warps / WARPS_IN_FLIGHT)
        combine = COMBINE * (parts - 1) / length
        cost = waste / busy * (1 + memory + shared + combine)
        yield GroupTile((a, b), (c, d), parts, groups, cost)


def _split_outputs(plan: OptPlan, row: str, column: str, tile: GroupTile) -> None:
    """Give each work-item neighbouring rows, and columns in vectors. Between two vectors of a
    work-item stand the vectors of the others. If vectors are not aligned, each is one column."""
    for name, amount in ((row, tile.rows), (column, tile.columns)):
        if plan.extent(name) % amount:
            plan.apply(OptOps.PADTO, name, amount)
    plan.split(OptOps.UPCAST, row, tile.outputs[0])
    axis = ranges(plan.kernel)[column]
    width = width_along(plan.kernel, axis, plan.target, staged=True)
    vector = math.gcd(width, tile.outputs[1])
    plan.split(OptOps.UPCAST, column, vector)
    plan.split(OptOps.LOCAL, row, tile.items[0])
    plan.split(OptOps.LOCAL, column, tile.items[1])
    plan.split(OptOps.UPCAST, column, tile.outputs[1] // vector)


def _split_parts(plan: OptPlan, parts: int) -> str:
    """Give parts of the reduction to different work-items. Their axis is the outermost of a group,
    so that a warp reads one part. Return the name of the axis, or "" if the opt is not legal."""
    if parts == 1:
        return ""
    (name,) = [r.axis_name for r in reduces(plan.kernel)[0].src[1:]]
    part = plan.split(OptOps.GROUPTOP, name, parts)
    items = [n for n, r in ranges(plan.kernel).items() if r.axis_kind is AxisType.LOCAL]
    order = [n for n in plan.kernel.arg.order if n in items]
    if part and order:
        plan.apply(OptOps.ORDER, part, order[0])
    return part


def _is_short(length: int, parts: int) -> bool:
    """Whether a part of a reduction has a partial tile, or is too short to fill tiles ahead."""
    return length % (parts * BEST_STEPS) > 0 or length < 2 * parts * max(STEPS)


def _length(kernel: UOp) -> int:
    """Return the steps of a reduction over one axis; 1 for several axes, which get no parts."""
    axes = reduces(kernel)[0].src[1:]
    return axes[0].extent if len(axes) == 1 else 1


def _depth(kernel: UOp) -> int:
    """Return the most steps of the reduction in a tile."""
    axes = reduces(kernel)[0].src[1:]
    return min(max(STEPS), math.prod(r.extent for r in axes))


def _stage(plan: OptPlan) -> tuple[int, int]:
    """Move all but some steps of the reduction outside of the work-items, and copy the operands'
    tiles in each step outside. Return the steps inside, and how many operands are copied."""
    steps = _split_reduction(plan)
    order = plan.kernel.arg.order
    axes = ranges(plan.kernel)
    first = next((n for n in order if axes[n].axis_kind.is_work_item), None)
    outside = [n for n in order if first and order.index(n) < order.index(first)]
    if not outside:
        return steps, 0
    total = reduces(plan.kernel)[0]  # the first one adds products, a second one adds parts
    last = axes[outside[-1]]
    # a tile that does not change in the last of these loops would keep it out of the grid
    slots = {n.place.memory.slot for n in loads(total.src[0]) if last in n.ranges}
    staged = sum(stage_input(plan, slot, outside[-1]) for slot in sorted(slots))
    if pipelined(plan, outside[-1], BUFFERS) > 1:
        plan.split(OptOps.UNROLL, order[-1], math.gcd(UNROLL, plan.extent(order[-1])))
    return steps, staged


def _split_reduction(plan: OptPlan) -> int:
    """Split the loops of the reduction so that about `BEST_STEPS` are inside of the work-items, and
    move the outer parts outside. Return the steps inside."""
    loops = _windows_inside(plan)
    inside = 1
    while loops and inside * plan.extent(loops[-1]) <= max(STEPS):
        inside *= plan.extent(loops.pop())
    if loops and inside < BEST_STEPS:
        name = loops[-1]
        amount = _steps_of(plan.extent(name), inside)
        if plan.split(OptOps.SPLIT, name, amount):
            inside *= amount
        else:
            loops = loops[:-1]
    axes, order = ranges(plan.kernel), plan.kernel.arg.order
    first = next((n for n in order if axes[n].axis_kind.is_work_item), None)
    for name in loops:
        if first is not None:
            plan.apply(OptOps.ORDER, name, first)
    return inside


def _windows_inside(plan: OptPlan) -> list[str]:
    """Return the loops of a reduction, outermost first, after window loops have moved inside of
    others (such as channels) that are long enough to fill a tile. Neighbouring outputs read the
    same elements at different places of their windows, so a tile with all places of a window has
    fewer elements per step than a tile of one place."""
    total = reduces(plan.kernel)[0]  # the first one adds products, a second one adds parts
    axes = {r.axis_name: r for r in total.src[1:]}
    loops = [n for n in plan.kernel.arg.order if n in axes]
    windows = [n for n in loops if _is_window(total, axes[n])]
    inner = loops[loops.index(windows[-1]) + 1 :] if windows else []
    steps = math.prod(axes[n].extent for n in [*windows[-1:], *inner])
    if steps > max(STEPS):
        for name in inner:
            plan.apply(OptOps.ORDER, name, windows[0])
    return [n for n in plan.kernel.arg.order if n in axes]


def _is_window(total: UOp, axis: UOp) -> bool:
    """Whether neighbouring outputs read overlapping elements of an operand along `axis`."""
    walks = [strides(n) for n in loads(total.src[0])]
    return axis.extent < FEW_LANES and any(
        step % walk[axis] == 0 and abs(step) < abs(walk[axis]) * axis.extent
        for walk in walks
        if walk.get(axis)
        for other, step in walk.items()
        if other not in total.src
    )


def _steps_of(extent: int, inside: int) -> int:
    """Return the inner amount for the split of a loop around `inside` steps, so that the tile has
    about `BEST_STEPS`: a divisor near it, or an amount to pad to; 1 if padding costs too much."""
    best = max(1, BEST_STEPS // inside)
    divisors = [n for n in range(2, extent) if extent % n == 0]
    near = [n for n in divisors if best / 2 <= n <= 2 * best]
    if near:
        return min(near, key=lambda n: abs(n - best))
    return best if -(-extent // best) * best <= PADDING * extent else 1


# --------------------------------------------------------------------------------------------------
# A tile transposed by a work-group: read along its rows, written along its columns.
#
# If an operand has stride 1 along another axis than the result, neighbouring work-items have a long
# stride in one of them. So a square is loaded to shared memory along the operand's axis, and stored
# from there along the result's. Source: Ruetsch and Micikevicius, "Optimizing matrix transpose in
# CUDA" (2009).

SIDE = 32
"""Most elements of a side: as many as banks."""
ROWS = 4
"""Most rows of a work-item."""
LEAST_SIDE = 8
"""Least elements of a side: as many as in a sector."""


def transposed_tile(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A square of a transposed operand in shared memory for each work-group."""
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
        if min(rows, columns) < LEAST_SIDE or rows // each * columns > target.group_items:
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
    """Return the only output loop with stride 1 in a load of an argument; None if there is no
    single one, or the load has no longer stride along `axis`."""
    walk = strides(load)
    if load.place.memory.op is not Ops.PARAM or walk.get(axis, 1) == 1:
        return None
    across = [r for r, step in walk.items() if step == 1 and r.op is Ops.RANGE]
    if len(across) != 1 or across[0].axis_kind is not AxisType.GLOBAL:
        return None
    return across[0]
