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
from workbench.base.tensor_cores.tensor_core import TensorCore
from workbench.base.trace import unobserved
from workbench.ir.nest.fragments import core_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.step import PADDING, HeuristicStep
from workbench.ir.opt.heuristic.strides import loads, reduces
from workbench.ir.opt.heuristic.work_groups.plan import (
    OptPlan,
    has_items,
    pipelined,
    stage_input,
    unit_registers,
)
from workbench.ir.opt.kinds.tc import PADS, on_target
from workbench.ir.opt.opt import Opt, OptOps, ranges

TILES = (8, 4, 2, 1)
"""Tiles of a warp along an axis."""
WARPS = (4, 2, 1)
"""Warps of a work-group along an axis."""
MOST_WASTE = 2.0
"""Computed for useful outputs, at most: tensor cores are several times as fast as other units."""
REGISTERS = 128
"""Accumulators of a work-item, at most, in words of 32 bits: half of what it may have."""
OTHER_REGISTERS = 48
"""Registers of a work-item beside its accumulators."""
GROUPS = 2
"""Work-groups of a unit, of which one computes while another waits at its barrier."""
MANY_WARPS = 8
"""Warps of a work-group, of which some compute while others wait for fragments: it may have a unit
alone. On an H200 a product of 4096 in float16 took 375 us so, and 407 us by two groups of four."""
FROM_MEMORY = 64
"""An element from memory takes as long as this many multiply-adds of a tensor core."""
FROM_SHARED = 16
"""The same for an element from shared memory."""
BUSY_WARPS = 4
"""Warps of a unit that its tensor cores need to be busy."""
STEP_BYTES = 128
"""Bytes of a row, along the reduction, that are copied to shared memory at a time."""
BUFFERS = (3, 2)
"""Tiles in shared memory, of which one is read while the others are filled."""


@dataclass(frozen=True, slots=True)
class WarpTiles:
    """Tiles of a warp, and warps of a work-group, along rows and columns; `waste` is computed for
    what is useful, and `cost` is for a useful multiply-add."""

    tiles: tuple[int, int]
    warps: tuple[int, int]
    groups: int
    waste: float
    cost: float


def tensor_tile(kernel: UOp, target: Target) -> HeuristicStep | None:
    """Tiles of a tensor core, several for each warp, its operands in shared memory."""
    if not target.tensor_cores or has_items(kernel) or len(reduces(kernel)) != 1:
        return None
    if any(n.op is Ops.STAGE for n in kernel.toposort()):
        return None
    with unobserved():
        opt = on_target(kernel, Opt(OptOps.TC, 0, PADS), target)
    names, tiled = str(opt.axis).split(), OptPlan(kernel, target)
    if not isinstance(opt.arg, str) or not tiled.apply(
        OptOps.TC, str(opt.axis), opt.arg
    ):
        return None
    sizes = [int(n) for n in opt.arg.split("x")]
    core = core_of(tiled.kernel, target)
    assert core is not None
    extents = [ranges(kernel)[name].extent for name in names]
    waste = math.prod(
        -(-n // size) * size / n for n, size in zip(extents, sizes, strict=True)
    )
    if waste > MOST_WASTE:
        return None
    best = min(_candidates(tiled, names, core), key=lambda c: c.cost)
    plan = OptPlan(kernel, target)
    pairs = zip(best.tiles, best.warps, strict=True)
    deep = _deep(core, -(-extents[2] // sizes[2]))
    multiples = [*map(math.prod, pairs), deep]
    for name, size, multiple in zip(names, sizes, multiples, strict=True):
        # once and first: each part of an axis that is padded has a mask of its own
        if ranges(plan.kernel)[name].extent % (size * multiple):
            plan.apply(OptOps.PADTO, name, size * multiple)
    if not plan.apply(OptOps.TC, str(opt.axis), opt.arg):
        return None
    staged, buffers = _apply(plan, names, best, deep)
    why = (
        f"{core} is an instruction here; of the tiles and warps that a work-group has room for,"
        " these read least from memory"
    )
    counts = {
        "tiles_of_a_warp": math.prod(best.tiles),
        "warps_of_a_group": math.prod(best.warps),
        "groups": best.groups,
        "staged_inputs": staged,
        "buffers": buffers,
        "outputs_computed_for_a_useful_one": round(waste * best.waste, 3),
    }
    return HeuristicStep("tensor-tile", tuple(plan.opts), why, counts)


def _deep(core: TensorCore, steps: int) -> int:
    """Return the tiles along the reduction that are copied at a time, of `steps` that it has: as
    many as a row may have bytes; fewer, where that would take much padding, or leave one step."""
    deep = max(1, STEP_BYTES // (core.k * core.operand.itemsize))
    while deep > 1 and (steps < 2 * deep or -(-steps // deep) * deep > PADDING * steps):
        deep //= 2
    return deep


def _candidates(
    plan: OptPlan, names: list[str], core: TensorCore
) -> Iterator[WarpTiles]:
    """Yield the tiles that a work-group has room for."""
    target = plan.target
    rows, columns = (plan.extent(name) for name in names[:2])
    loops = [plan.extent(name) for name in plan.kernel.arg.order]
    others = math.prod(loops) // (rows * columns * plan.extent(names[2]))
    words = core.c.per_lane * core.accumulator.itemsize // 4
    registers = unit_registers(target)
    for a, b, p, q in product(TILES, TILES, WARPS, WARPS):
        items = p * q * core.lanes
        if a * p >= 2 * rows or b * q >= 2 * columns:
            continue  # half of it or more would be padding
        if a * b * words > REGISTERS or items > target.group_items:
            continue
        together = 1 if p * q >= MANY_WARPS else GROUPS
        if together * items * (a * b * words + OTHER_REGISTERS) > registers:
            continue
        counts = -(-rows // (a * p)), -(-columns // (b * q))
        waste = math.prod(counts) * a * p * b * q / (rows * columns)
        groups = math.prod(counts) * others
        rounds = -(-groups // target.cores)
        busy = groups / (rounds * target.cores)
        busy *= min(1.0, rounds * p * q / BUSY_WARPS)
        from_memory = 1 / (a * p * core.m) + 1 / (b * q * core.n)
        from_shared = 1 / (a * core.m) + 1 / (b * core.n)
        reads = FROM_MEMORY * from_memory + FROM_SHARED * from_shared
        yield WarpTiles((a, b), (p, q), groups, waste, waste * (1 + reads) / busy)


def _apply(
    plan: OptPlan, names: list[str], best: WarpTiles, deep: int
) -> tuple[int, int]:
    """Apply a candidate; return how many operands are copied to shared memory, and in how many
    buffers."""
    for name, tiles, warps in zip(names, best.tiles, best.warps, strict=False):
        plan.split(OptOps.UPCAST, name, tiles)
        plan.split(OptOps.LOCAL, name, warps)
    steps = names[2]
    if math.prod(best.tiles) * math.prod(best.warps) == 1 or plan.extent(steps) < 2:
        return 0, 1  # nothing is read twice
    inner = ""
    if plan.extent(steps) > deep:
        inner = plan.split(OptOps.SPLIT, steps, deep)
    order, axes = plan.kernel.arg.order, ranges(plan.kernel)
    first = next((n for n in order if axes[n].axis_kind.is_work_item), None)
    if first is not None and not plan.apply(OptOps.ORDER, steps, first):
        return 0, 1
    if (
        inner and first is not None
    ):  # each of these steps copies a part of the next tile
        plan.apply(OptOps.ORDER, inner, first)
    (total,) = reduces(plan.kernel)
    slots = {n.place.memory.slot for n in loads(total.src[0])}
    staged = sum(stage_input(plan, slot, steps) for slot in sorted(slots))
    return staged, pipelined(plan, steps, BUFFERS)
