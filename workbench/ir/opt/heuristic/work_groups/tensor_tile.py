"""A product by tensor cores: tiles for each warp, and warps for each work-group.

Where the target multiplies the operands' dtypes exactly, the first tile that fits takes the axes. A
warp then has a few tiles beside each other, in registers, so that a fragment serves several; a
work-group has a few warps, and copies what they read to shared memory together. All of a few sizes
are compared by the elements that come from memory for a multiply-add, the outputs beyond the ends
of the axes, and the compute units that get no work-group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from workbench.base.target import Target
from workbench.base.trace import unobserved
from workbench.ir.nest.fragments import core_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.step import HeuristicStep
from workbench.ir.opt.heuristic.strides import loads, reduces
from workbench.ir.opt.heuristic.work_groups.plan import OptPlan, has_items
from workbench.ir.opt.kinds.tc import PADS, on_target
from workbench.ir.opt.opt import Opt, OptOps, ranges

TILES = (4, 2, 1)
"""Tiles of a warp along an axis."""
WARPS = (2, 1)
"""Warps of a work-group along an axis."""
MOST_WASTE = 2.0
"""Computed for useful outputs, at most: tensor cores are several times as fast as other units."""
REGISTERS = 128
"""Accumulators of a work-item, at most, in words of 32 bits: half of what it may have."""
FROM_MEMORY = 64
"""An element from memory takes as long as this many multiply-adds of a tensor core."""
STEPS = 2
"""Tiles along the reduction that are copied to shared memory at a time."""


@dataclass(frozen=True, slots=True)
class WarpTiles:
    """Tiles of a warp, and warps of a work-group, along rows and columns; `cost` is for a useful
    multiply-add."""

    tiles: tuple[int, int]
    warps: tuple[int, int]
    groups: int
    cost: float


def tensor_tile(kernel: UOp, target: Target) -> HeuristicStep | None:
    """Tiles of a tensor core, several for each warp, its operands in shared memory."""
    if not target.tensor_cores or has_items(kernel) or len(reduces(kernel)) != 1:
        return None
    if any(n.op is Ops.STAGE for n in kernel.toposort()):
        return None
    with unobserved():
        opt = on_target(kernel, Opt(OptOps.TC, 0, PADS), target)
    names, plan = str(opt.axis).split(), OptPlan(kernel, target)
    before = ranges(kernel)
    if not isinstance(opt.arg, str) or not plan.apply(
        OptOps.TC, str(opt.axis), opt.arg
    ):
        return None
    sizes = [int(n) for n in opt.arg.split("x")]
    extents = [before[name].extent for name in names]
    waste = math.prod(
        -(-n // size) * size / n for n, size in zip(extents, sizes, strict=True)
    )
    if waste > MOST_WASTE:
        return None
    best = min(_candidates(plan, names, sizes), key=lambda c: c.cost)
    staged = _apply(plan, names, best)
    core = core_of(plan.kernel, target)
    why = (
        f"{core} is an instruction here; of the tiles and warps that a work-group has room for,"
        " these read least from memory"
    )
    counts = {
        "tiles_of_a_warp": math.prod(best.tiles),
        "warps_of_a_group": math.prod(best.warps),
        "groups": best.groups,
        "staged_inputs": staged,
        "outputs_computed_for_a_useful_one": round(waste, 3),
    }
    return HeuristicStep("tensor-tile", tuple(plan.opts), why, counts)


def _candidates(
    plan: OptPlan, names: list[str], sizes: list[int]
) -> Iterator[WarpTiles]:
    """Yield what divides the tiles along the axes."""
    target, core = plan.target, core_of(plan.kernel, plan.target)
    assert core is not None
    rows, columns = (plan.extent(name) for name in names[:2])
    loops = [plan.extent(name) for name in plan.kernel.arg.order]
    words = core.c.per_lane * core.accumulator.itemsize // 4
    for a, b, p, q in product(TILES, TILES, WARPS, WARPS):
        is_whole = rows % (a * p) == 0 and columns % (b * q) == 0
        items = p * q * core.lanes
        if not is_whole or a * b * words > REGISTERS or items > target.group_items:
            continue
        others = math.prod(loops) // (rows * columns * plan.extent(names[2]))
        groups = rows // (a * p) * (columns // (b * q)) * others
        busy = groups / (-(-groups // target.cores) * target.cores)
        from_memory = 1 / (a * p * sizes[0]) + 1 / (b * q * sizes[1])
        cost = (1 + FROM_MEMORY * from_memory) / busy
        yield WarpTiles((a, b), (p, q), groups, cost)


def _apply(plan: OptPlan, names: list[str], best: WarpTiles) -> int:
    """Apply a candidate; return how many operands are copied to shared memory."""
    for name, tiles, warps in zip(names, best.tiles, best.warps, strict=False):
        plan.split(OptOps.UPCAST, name, tiles)
        plan.split(OptOps.LOCAL, name, warps)
    steps = names[2]
    if math.prod(best.tiles) * math.prod(best.warps) == 1 or plan.extent(steps) < 2:
        return 0  # nothing is read twice
    if plan.extent(steps) % STEPS == 0 and plan.extent(steps) > STEPS:
        plan.split(OptOps.SPLIT, steps, STEPS)
    order, axes = plan.kernel.arg.order, ranges(plan.kernel)
    first = next((n for n in order if axes[n].axis_kind.is_work_item), None)
    if first is not None and not plan.apply(OptOps.ORDER, steps, first):
        return 0
    (total,) = reduces(plan.kernel)
    slots = {n.place.memory.slot for n in loads(total.src[0])}
    return sum(plan.apply(OptOps.STAGE, steps, slot) for slot in sorted(slots))
