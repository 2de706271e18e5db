"""The default tile of a matrix product on tensor cores, and its axes.

Sections: The axes of a tensor core's tile; The tile of a matrix product on tensor cores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import NamedTuple

from workbench.base.target import Target
from workbench.base.tensor_cores import TensorCore
from workbench.base.trace import unobserved
from workbench.ir.nest.estimates import runs, touched
from workbench.ir.nest.fragments import core_of
from workbench.ir.nest.transactions import SECTOR_BYTES
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.opt.heuristic.register_tile import NOT_AFFINE, loads, reduces, strides
from workbench.ir.opt.heuristic.step import PADDING, HeuristicStep
from workbench.ir.opt.heuristic.work_groups import (
    OptPlan,
    has_items,
    pipelined,
    stage_input,
    unit_registers,
)
from workbench.ir.opt.kinds.tc import PADDING_LEVEL, axis_choices, on_target
from workbench.ir.opt.opt import Opt, OptOps, ranges, store_strides

# --------------------------------------------------------------------------------------------------
# The axes of a tensor core's tile: axes of a product for its rows, its columns and its steps.
#
# A matrix product has one choice and its transpose. A convolution has many: its rows may be images,
# lines or pixels, and its steps channels or places of a window. Each choice has a cost for tiles of
# its operands: elements that memory moves without a use.

MOST_WASTE = 2.0
"""Most elements computed per useful one: tensor cores are several times as fast as other units."""


class TensorAxes(NamedTuple):
    """A tile of a tensor core on a kernel: its `opt`, and the extents of (rows, columns, steps).
    `beside` is the axis with the shortest stride among the other output axes of the operand with
    the columns, such as the lines of an image for its pixels; None if there is none. `moved` has
    the elements that memory moves per used one: of the operand with the rows, of the operand with
    the columns, and of the result."""

    opt: Opt
    kernel: UOp
    core: TensorCore
    extents: tuple[int, ...]
    beside: UOp | None
    moved: tuple[float, float, float]

    @property
    def names(self) -> list[str]:
        """The names of the axes: rows, columns, steps."""
        return str(self.opt.axis).split()

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The sizes of the tile: rows, columns, steps."""
        return self.core.m, self.core.n, self.core.k

    @property
    def waste_of_steps(self) -> float:
        """Steps computed per useful one."""
        return self.tiles[2] * self.core.k / self.extents[2]

    @property
    def waste(self) -> float:
        """Multiply-adds computed per useful one."""
        whole = zip(self.tiles, self.sizes, self.extents, strict=True)
        return math.prod(count * size / extent for count, size, extent in whole)

    @property
    def tiles(self) -> tuple[int, ...]:
        """The number of tiles along (rows, columns, steps)."""
        sizes = zip(self.extents, self.sizes, strict=True)
        return tuple(-(-extent // size) for extent, size in sizes)


def tensor_axes(kernel: UOp, target: Target) -> Iterator[TensorAxes]:
    """Yield a tile for each choice of axes, without choices that pad too much."""
    for names in axis_choices(kernel):
        axis = " ".join(names)
        with unobserved():
            opt = on_target(kernel, Opt(OptOps.TC, axis, PADDING_LEVEL), target)
        tiled = OptPlan(kernel, target)
        if not isinstance(opt.arg, str) or not tiled.apply(OptOps.TC, axis, opt.arg):
            continue
        core = core_of(tiled.kernel, target)
        assert core is not None
        extents = tuple(ranges(kernel)[name].extent for name in names)
        moved, beside = _moved(kernel, names), _beside(kernel, names)
        choice = TensorAxes(opt, kernel, core, extents, beside, moved)
        if choice.waste <= MOST_WASTE:
            yield choice


def _beside(kernel: UOp, names: tuple[str, str, str]) -> UOp | None:
    rows, columns, _ = (ranges(kernel)[name] for name in names)
    (total,) = reduces(kernel)
    (with_columns, *others) = [n for n in loads(total) if columns in n.ranges]
    (with_rows, *more) = [n for n in loads(total) if rows in n.ranges]
    if others or more:
        return None
    steps = strides(with_columns)
    axes = [
        r
        for r in with_columns.ranges - with_rows.ranges - {columns}
        if r.axis_kind is AxisType.GLOBAL
    ]
    return min(axes, key=lambda r: abs(steps.get(r, NOT_AFFINE)), default=None)


def _moved(kernel: UOp, names: tuple[str, str, str]) -> tuple[float, float, float]:
    rows, columns, _ = (ranges(kernel)[name] for name in names)
    (total,) = reduces(kernel)
    of_rows, of_columns = (
        max(_sectors(n, {axis, *total.src[1:]}) for n in loads(total) if axis in n.ranges)
        for axis in (rows, columns)
    )
    most = SECTOR_BYTES // kernel.stores[0].value.dtype.itemsize
    stride = abs(store_strides(kernel).get(columns, most))
    return of_rows, of_columns, float(min(max(1, stride), most))


def _sectors(load: UOp, inside: set[UOp]) -> float:
    """Return the elements that memory moves per used one, for a load while the axes `inside` run:
    it moves whole sectors."""
    index = split_gate(load.place.flat_index)[0]
    line = max(1, SECTOR_BYTES // load.dtype.itemsize)
    moved = sum(n * -(-length // line) * line for n, length, _ in runs([index], inside, line))
    elements = touched([index], inside, load.place.memory.length).elements
    return max(1.0, moved / max(1, elements))


# --------------------------------------------------------------------------------------------------
# The tile of a matrix product on tensor cores: tiles of each warp, and warps of each work-group.
#
# For each choice of axes, the first tile is used that fits and does not round its operands. A warp
# has a few of these tiles in registers, so that each fragment serves several of them. A work-group
# has a few warps, and copies their operands to shared memory together. A few numbers of tiles and
# warps are compared by elements from memory per multiply-add, outputs beyond the ends of the axes,
# and compute units without a work-group.

TILES = (8, 4, 2, 1)
"""Tiles of a warp along an axis."""
WARPS = (4, 2, 1)
"""Warps of a work-group along an axis."""
REGISTERS = 128
"""Most accumulators of a work-item, in words of 32 bits: half of its registers."""
OTHER_REGISTERS = 48
"""Registers of a work-item besides its accumulators."""
GROUPS = 2
"""Work-groups of a unit: one computes while another waits at its barrier."""
MANY_WARPS = 8
"""With this many warps, a work-group may be alone on a unit: some of its warps compute while others
wait for fragments. On an H200 a product of 4096 in float16 took 375 us so, and 407 us with two
groups of four warps."""
GROUPS_THAT_WAIT = 4
"""Work-groups of a unit if they wait for copies: the places of a window are copied one by one."""
FROM_MEMORY = 64
"""Cost of an element from memory, in multiply-adds of a tensor core."""
FROM_SHARED = 16
"""Cost of an element from shared memory, in multiply-adds of a tensor core."""
BUSY_WARPS = 4
"""Warps that keep the tensor cores of a unit busy."""
STEP_BYTES = 128
"""Bytes of a row, along the reduction, that are copied to shared memory at a time."""
ROW_BYTES = STEP_BYTES + 16
"""Bytes of such a row with its padding, which avoids bank conflicts."""
ALTERNATING = 1.3
"""Time factor of a work-group without room for a second tile: it copies and computes in turn."""
BUFFERS = (3, 2)
"""Buffers of a tile in shared memory: one is read while the others are filled."""


class AxisTiles(NamedTuple):
    """Along an axis, the tiles of a warp, each of `size` elements, and the warps of a group."""

    name: str
    size: int
    tiles: int
    warps: int

    @property
    def elements(self) -> int:
        """The elements of a work-group along the axis."""
        return self.size * self.tiles * self.warps


@dataclass(frozen=True, slots=True)
class WarpTiles:
    """Tiles of a warp, and warps of a work-group, along the output `axes`: rows, columns, and
    perhaps the axis beside the columns. `waste` is the multiply-adds computed per useful one,
    `cost` is in multiply-adds per useful one."""

    core_axes: TensorAxes
    axes: tuple[AxisTiles, ...]
    groups: int
    waste: float
    cost: float

    @property
    def tiles(self) -> int:
        """The tiles of a warp."""
        return math.prod(axis.tiles for axis in self.axes)

    @property
    def warps(self) -> int:
        """The warps of a work-group."""
        return math.prod(axis.warps for axis in self.axes)


def tensor_tile(kernel: UOp, target: Target) -> HeuristicStep | None:
    """Tiles of a tensor core, several for each warp, with the operands in shared memory."""
    if not target.tensor_cores or has_items(kernel) or len(reduces(kernel)) != 1:
        return None
    if any(n.op is Ops.STAGE for n in kernel.toposort()):
        return None
    candidates = chain.from_iterable(
        _candidates(axes, target) for axes in tensor_axes(kernel, target)
    )
    best = min(candidates, key=lambda c: c.cost, default=None)
    if best is None:
        return None
    plan, opt, core = OptPlan(kernel, target), best.core_axes.opt, best.core_axes.core
    deep = _depth(best.core_axes)
    # padding comes first, once for each axis: padding a part would add a mask for each
    for name, amount in (
        *[(axis.name, axis.elements) for axis in best.axes],
        (best.core_axes.names[2], deep * core.k),
    ):
        if ranges(plan.kernel)[name].extent % amount:
            plan.apply(OptOps.PADTO, name, amount)
    if not plan.apply(OptOps.TC, str(opt.axis), str(opt.arg)):
        return None
    for axis in best.axes:
        plan.split(OptOps.UPCAST, axis.name, axis.tiles)
        plan.split(OptOps.LOCAL, axis.name, axis.warps)
    staged, buffers = 0, 1
    if best.tiles * best.warps > 1:  # else nothing is read twice
        staged, buffers = _stage(plan, best.core_axes, deep)
    why = (
        f"{core} is an instruction of this device; of the tiles and warps that fit a work-group,"
        " these have the least cost"
    )
    counts = {
        "tiles_of_a_warp": best.tiles,
        "warps_of_a_group": best.warps,
        "groups": best.groups,
        "staged_inputs": staged,
        "buffers": buffers,
        "outputs_computed_for_a_useful_one": round(best.waste, 3),
    }
    return HeuristicStep("tensor-tile", tuple(plan.opts), why, counts)


def _depth(axes: TensorAxes) -> int:
    """Return the tiles along the reduction that are copied at a time: as many as STEP_BYTES hold,
    or fewer if that would need much padding or leave a single step. It is 1 if the sum has other
    loops: their steps find in the first cache what the step before has read."""
    core, steps = axes.core, axes.tiles[2]
    if len(_loops_of_sum(axes.kernel)) > 1:
        return 1
    deep = max(1, STEP_BYTES // (core.k * core.operand.itemsize))
    while deep > 1 and (steps < 2 * deep or -(-steps // deep) * deep > PADDING * steps):
        deep //= 2
    return deep


def _loops_of_sum(kernel: UOp) -> list[str]:
    (total,) = reduces(kernel)
    names = {r.axis_name for r in total.src[1:]}
    return [name for name in kernel.arg.order if name in names]


def _candidates(axes: TensorAxes, target: Target) -> Iterator[WarpTiles]:
    """Yield the tiles that fit a work-group."""
    core, kernel = axes.core, axes.kernel
    outputs = [r for r in ranges(kernel).values() if r.axis_kind is AxisType.GLOBAL]
    results = math.prod(r.extent for r in outputs)
    (total,) = reduces(kernel)
    steps = math.prod(r.extent for r in total.src[1:])
    waits = len(_loops_of_sum(kernel)) > 1
    words = core.c.per_lane * core.accumulator.itemsize // 4
    registers = unit_registers(target)
    of_rows, of_columns, of_results = axes.moved
    for a, b, p, q in product(TILES, TILES, WARPS, WARPS):
        items, parts = p * q * core.lanes, _parts(axes, (a, b), (p, q))
        if parts is None or a * b * words > REGISTERS or items > target.group_items:
            continue
        together = 1 if p * q >= MANY_WARPS else GROUPS
        together = GROUPS_THAT_WAIT if waits else together
        if together * items * (a * b * words + OTHER_REGISTERS) > registers:
            continue
        counts = [-(-ranges(kernel)[t.name].extent // t.elements) for t in parts]
        sizes = [t.elements for t in parts]
        extents = [ranges(kernel)[t.name].extent for t in parts]
        computed = math.prod(counts) * math.prod(sizes)
        groups = math.prod(counts) * results // math.prod(extents)
        rounds = -(-groups // target.cores)
        busy = groups / (rounds * target.cores)
        busy *= min(1.0, (1 if waits else rounds) * p * q / BUSY_WARPS)
        from_memory = of_columns / (a * p * core.m) + of_rows / (b * q * core.n)
        from_memory += (of_results - 1) / steps
        from_shared = 1 / (a * core.m) + 1 / (b * core.n)
        if target.copies_async and 2 * sum(sizes) * ROW_BYTES > target.shared_bytes:
            busy /= ALTERNATING
        reads = FROM_MEMORY * from_memory + FROM_SHARED * from_shared
        waste = axes.waste_of_steps * computed / math.prod(extents)
        yield WarpTiles(axes, parts, groups, waste, waste * (1 + reads) / busy)


def _parts(
    axes: TensorAxes, tiles: tuple[int, int], warps: tuple[int, int]
) -> tuple[AxisTiles, ...] | None:
    """Return the tiles and warps along the rows, the columns and, if the columns are too few, the
    axis beside them; None if half of an axis or more would be padding."""
    (rows, columns, _), (m, n, _) = axes.names, axes.sizes
    most = _power(axes.tiles[1])
    first = min(tiles[1], most)
    wide = min(warps[1], _power(-(-axes.tiles[1] // first)))
    parts = [AxisTiles(rows, m, tiles[0], warps[0]), AxisTiles(columns, n, first, wide)]
    rest = tiles[1] // first, warps[1] // wide
    if math.prod(rest) > 1:
        if axes.beside is None:
            return None
        parts.append(AxisTiles(axes.beside.axis_name, 1, *rest))
    extents = [ranges(axes.kernel)[part.name].extent for part in parts]
    counts = [-(-n // part.size) for n, part in zip(extents, parts, strict=True)]
    if any(t.tiles * t.warps >= 2 * n for t, n in zip(parts, counts, strict=True)):
        return None
    return tuple(parts)


def _power(number: int) -> int:
    return 1 << (number - 1).bit_length()


def _stage(plan: OptPlan, axes: TensorAxes, deep: int) -> tuple[int, int]:
    """Copy the operands' tiles to shared memory in each step of the sum. Return how many operands
    are copied, and the number of buffers; (0, 1) if no tile is read twice, or a loop cannot move
    outside."""
    steps = axes.names[2]
    inner = plan.split(OptOps.SPLIT, steps, deep) if plan.extent(steps) > deep else ""
    order, kinds = plan.kernel.arg.order, ranges(plan.kernel)
    items = next((n for n in order if kinds[n].axis_kind.is_work_item), "")
    outside = [n for n in _loops_of_sum(plan.kernel) if n != inner]
    if not outside or len(outside) == plan.extent(steps) == 1:
        return 0, 1  # nothing is read twice
    for name in outside:  # outside of the work-items, so that a tile has one place of a window
        if not _goes_before(plan, name, items or inner):
            return 0, 1
    if inner and items:  # each of these steps copies a part of the next tile
        plan.apply(OptOps.ORDER, inner, items)
    (total,) = reduces(plan.kernel)
    slots = {n.place.memory.slot for n in loads(total.src[0])}
    staged = sum(stage_input(plan, slot, outside[-1], together=True) for slot in sorted(slots))
    # with several loops, the inner one would fill its first tiles again in each step of the others
    if len(outside) > 1:
        return staged, 1
    return staged, pipelined(plan, steps, BUFFERS)


def _goes_before(plan: OptPlan, axis: str, first: str) -> bool:
    """Move a loop before another one unless it is there already; return whether it is there."""
    order = plan.kernel.arg.order
    if not first or order.index(axis) < order.index(first):
        return True
    return plan.apply(OptOps.ORDER, axis, first)
