"""Fragments: the tiles of a tensor core, distributed over the lanes of a warp.

In a kernel, axes of the kind WARP are the tile of one instruction: rows, columns, steps.

    s = REDUCE(add, float32(A[(g0*16 + w0)*64 + r0*16 + w2]) * float32(B[..]), r0, w2)

Which lane holds which element depends on the device, so a kernel does not say it. Lowering replaces
each axis by its position in the layout, for each operand and for the result; from then on one
work-item is one lane:

    s = REDUCE(add, WMMA(A[(g0*16 + lane//4 + w0_w2//2%2*8)*64 + ..], B[..]), r0)

A Target that has no such tensor core leaves the axes as lanes of one work-item.

Sections: Fragments; Warp reductions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.base.target import Target
from workbench.base.tensor_cores import Fragment, TensorCore, row_layout
from workbench.base.trace import PassStep, derived_from
from workbench.ir.nest.accesses import shared_tiles
from workbench.ir.nest.loops import Item, Loop, by_names, item_dims
from workbench.ir.node import construct
from workbench.ir.node.exact_range import terms
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, gated, memoised, split_gate
from workbench.ir.rewriting.rewrite import is_off

# --------------------------------------------------------------------------------------------------
# Fragments.

LANE = "lane"


class Factors(NamedTuple):
    """The parts of a sum of products: `a` and `b` are the loads that are multiplied; outside of the
    conditions `masks`, 0 is added."""

    a: UOp
    b: UOp
    masks: tuple[UOp, ...] = ()


class TileAxes(NamedTuple):
    """The axes of the tile of a tensor core: rows and columns of the result, and steps."""

    m: UOp
    n: UOp
    k: UOp

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Return the sizes of the tile."""
        return self.m.extent, self.n.extent, self.k.extent


def factors(node: UOp) -> Factors | None:
    """Return the two loads whose products a REDUCE adds, without their casts and masks; None for
    another reduction, and for products that are cast: they were rounded, or wrapped, before."""
    value, masks = node.src[0], []
    if node.arg is not Ops.ADD:
        return None
    while value.op is Ops.WHERE and value.src[2].is_const and value.src[2].arg == 0:
        masks.append(value.src[0])
        value = value.src[1]
    if value.op is not Ops.MUL:
        return None
    a, b = (_uncast(s) for s in value.src)
    if a.op is not Ops.LOAD or b.op is not Ops.LOAD:
        return None
    return Factors(a, b, tuple(masks))


def _uncast(node: UOp) -> UOp:
    return node.src[0] if node.op is Ops.CAST else node


@memoised
def tile_axes(kernel: UOp) -> TileAxes | None:
    """Return the axes of the tile that a kernel is cut into; None if it is not cut."""
    axes = [n for n in kernel.toposort() if n.op is Ops.RANGE]
    warp = sorted((r for r in axes if r.axis_kind is AxisType.WARP), key=lambda r: r.axis_name)
    reduces = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    steps = [r for r in warp if any(r in n.src[1:] for n in reduces)]
    outputs = [r for r in warp if r not in steps]
    if len(steps) != 1 or len(outputs) != 2:
        return None
    return TileAxes(*outputs, *steps)


def core_of(kernel: UOp, target: Target) -> TensorCore | None:
    """Return the tensor core of `target` that computes the tile of a kernel; None if there is
    none."""
    axes = tile_axes(kernel)
    if axes is None:
        return None
    sums = _sums(kernel, axes)
    first = sums and factors(sums[0])
    if not first:
        return None
    for core in target.tensor_cores:
        if (core.m, core.n, core.k) == axes.sizes and fits(core, sums[0], first):
            return core
    return None


def fits(core: TensorCore, node: UOp, parts: Factors) -> bool:
    """Whether a tensor core has the dtypes of a REDUCE and of its operands."""
    operands = {parts.a.dtype, parts.b.dtype}
    return operands == {core.operand} and node.dtype is core.accumulator


def lane_kernel(kernel: UOp, target: Target) -> UOp:
    """Return the kernel of one lane if `target` has a tensor core for its tile, else `kernel`
    itself."""
    core, axes = core_of(kernel, target), tile_axes(kernel)
    if core is None or axes is None:
        return kernel
    has_lanes = core.lanes > 1
    name = _unused(kernel)
    lane = UOp.range(core.lanes, name, AxisType.LOCAL) if has_lanes else UOp.index(0)
    changes: dict[UOp, UOp] = {}
    elements = _elements(axes.m, axes.n, core.c)
    assert elements is not None  # a lane has several elements of every result
    for node in _sums(kernel, axes):
        parts = factors(node)
        assert parts is not None  # the opt has made sure of it
        with derived_from(node):
            product = _product(parts, axes, core, lane, elements, target)
            rest = [r for r in node.src[1:] if r is not axes.k]
            changes[node] = construct.reduce(product, rest, node.combines)
    changes |= _positions(core.c, {"m": axes.m, "n": axes.n}, lane, elements)
    order = (*kernel.arg.order, *([name] if has_lanes else []))
    return construct.in_order(kernel.substitute(changes), order)


def _sums(kernel: UOp, axes: TileAxes) -> Sequence[UOp]:
    return [n for n in kernel.toposort() if n.op is Ops.REDUCE and axes.k in n.src[1:]]


def _product(
    parts: Factors, axes: TileAxes, core: TensorCore, lane: UOp, elements: UOp, target: Target
) -> UOp:
    a, b = (parts.a, parts.b) if axes.m in parts.a.ranges else (parts.b, parts.a)
    operands: list[UOp] = []
    closes: list[UOp] = []
    for load, fragment, rows, columns, letters in (
        (a, core.a, axes.m, axes.k, "mk"),
        (b, core.b, axes.k, axes.n, "kn"),
    ):
        inside = _elements(rows, columns, fragment)
        if inside is not None:
            closes.append(inside)
        tile = dict(zip(letters, (rows, columns), strict=True))
        whole = zero_outside(load, parts.masks)
        by_rows = None
        if target.reads_matrices and inside is not None:
            by_rows = _by_rows(whole, fragment, tile, lane, inside)
        positions = _positions(fragment, tile, lane, inside)
        operands.append(by_rows or whole.substitute(positions))
    return construct.wmma(operands[0], operands[1], elements, closes, core)


def _by_rows(
    load: UOp, fragment: Fragment, tile: Mapping[str, UOp], lane: UOp, elements: UOp
) -> UOp | None:
    """Return a fragment that a warp reads as rows of 16 bytes of a shared tile and exchanges among
    its lanes; None if the load is not of such a tile, or the rows are not contiguous there."""
    if load.op is not Ops.LOAD or load.place.memory.op is not Ops.STAGE:
        return None
    stage, (*_, last) = load.place.memory, load.place.indexes
    parts, constant = terms(last)
    letter = next((n for n, axis in tile.items() if parts.get(axis) == 1), None)
    layout = letter and row_layout(fragment, letter, load.dtype.itemsize)
    if not layout:
        return None
    count = layout.rows.per_lane
    sizes = [k for axis, k in parts.items() if axis is not tile[layout.axis]]
    if any(n % count for n in (*sizes, constant, stage.memory_shape[-1])):
        return None
    row = UOp.range(count, f"{elements.axis_name}_row", AxisType.WARP)
    read = load.substitute(_positions(layout.rows, tile, lane, row))
    return construct.exchange(read, elements, row, layout.rows, fragment)


def _elements(rows: UOp, columns: UOp, fragment: Fragment) -> UOp | None:
    """Return the axis of the elements that a lane has of a tile; None if it has only one."""
    if fragment.per_lane == 1:
        return None
    name = f"{rows.axis_name}_{columns.axis_name}"
    return UOp.range(fragment.per_lane, name, AxisType.WARP)


def _positions(
    fragment: Fragment, tile: Mapping[str, UOp], lane: UOp, elements: UOp | None
) -> dict[UOp, UOp]:
    """Return the expression that replaces each axis of a tile: a sum of bits of the lane's number
    and of the element's number."""
    positions = {}
    for letter, axis in tile.items():
        total = UOp.index(0)
        for run in fragment.runs(letter):
            number = lane if run.is_lane else elements
            assert number is not None  # an axis without bits has no run
            above = number // (1 << run.begin) if run.begin else number
            if 1 << run.begin + run.bits < number.extent:
                above = above % (1 << run.bits)
            part = above * (1 << run.place) if run.place else above
            total = part if total.is_const else total + part
        positions[axis] = total
    return positions


def zero_outside(load: UOp, masks: Sequence[UOp]) -> UOp:
    """Return a load that is 0 where one of `masks` does not hold. Both operands need this, as 0
    times an infinity is NaN."""
    index, gate = split_gate(load.place.flat_index)
    if not masks:
        return load
    condition = masks[0]
    for mask in masks[1:]:
        condition = condition & mask
    whole = condition if gate is None else gate & condition
    if load.place.memory.op is not Ops.PARAM:
        return whole.where(load, load.like(0))
    places = (*load.place.src[:-1], gated(index, whole))
    return load.rebuild((load.place.rebuild(places), *load.src[1:]))


def _unused(kernel: UOp) -> str:
    names = {n.axis_name for n in kernel.toposort() if n.op is Ops.RANGE}
    name = LANE
    while name in names:
        name += "_"
    return name


# --------------------------------------------------------------------------------------------------
# Warp reductions: parts of a work-group's reduction that are combined inside of warps first.
#
# A tile of GROUP has a part for each work-item along an axis, and one reduction reads it. If the
# machine has warp shuffles for its dtype, lanes of a warp combine their parts between registers:
#
#     x0 in 1024, warps of 32:    1024 parts -> 32 cells of shared memory -> (a warp more) 1 result
#     x0 in 16, warps of 32:      16 parts -> 1 result, in no memory
#     x0 in 12, warps of 32:      12 parts, by fours -> 3 cells
#
# The axis must be the innermost of the work-items, so that its steps are lanes, and all lanes must
# take part: if some work-items have no part, warps do not combine the tile. Source:
# Luitjens, "Faster Parallel Reductions on Kepler" (2014).

FEW = 4
"""Most partial results that each work-item combines by itself: faster than another barrier."""
PLACE_SHUFFLE = PassStep(
    "place-shuffle",
    "The lanes of a warp combine partial results from register to register, each with the lane"
    " whose number differs in one bit: in no memory, without a barrier.",
)


@dataclass(frozen=True, slots=True)
class WarpReduction:
    """How a tile is combined. `axis` numbers the parts; by shuffles, each `lanes` neighbouring
    parts are combined to one of `cells`, with the operation `combines`. If `is_repeated`, a warp
    combines the cells by shuffles, too."""

    axis: UOp
    lanes: int
    cells: int
    combines: Ops
    is_repeated: bool

    @property
    def cell_lanes(self) -> int:
        """The lanes that combine the cells: their number, rounded up to a power of two."""
        return 1 << (self.cells - 1).bit_length()


def tile_loops(items: Sequence[Item]) -> dict[Loop, tuple[UOp, ...]]:
    """Return the loops over partial results of a work-group, each with its tiles: one for each
    statement in the loop, which combines its elements. Nothing else reads these tiles."""
    makers = {i.statement.node: i for i in items if not i.init}
    shared = shared_tiles(items)
    readers: dict[UOp, list[Item]] = {}
    for item in makers.values():
        for node in item.statement.reads:
            readers.setdefault(node, []).append(item)
    reduces = [i for i in makers.values() if i.statement.node.op is Ops.REDUCE]
    by_loop: dict[Loop, tuple[UOp, ...]] = {}
    for loop in dict.fromkeys(item.insertion_point for item in reduces):
        if loop.axis is None:
            continue
        tiles = [_tile(child, loop.axis) for child in loop.body]
        whole = tuple(t for t in tiles if t in shared and len(readers[t]) == 1)
        if len(whole) == len(tiles):
            by_loop[loop] = whole
    return by_loop


def _tile(child: object, axis: UOp) -> UOp | None:
    """Return the tile whose elements along `axis` a statement combines; None for any other."""
    if not isinstance(child, Item) or child.init:
        return None
    statement = child.statement
    if statement.node.op is not Ops.REDUCE or statement.closed != (axis,):
        return None
    value = statement.node.src[0]
    tile = value.place.memory if value.op is Ops.LOAD else value
    if tile.op is not Ops.STAGE or tile.memory_shape != (axis.extent,):
        return None
    return tile if value.place.indexes == (axis,) else None


def warp_reductions(items: Sequence[Item], target: Target) -> Mapping[UOp, WarpReduction]:
    """Return the tiles that warps combine: none for a target without shuffles, or while the step
    `PLACE_SHUFFLE` is off."""
    if not target.shuffle_dtypes or is_off(PLACE_SHUFFLE):
        return {}
    makers = {i.statement.node: i for i in items if not i.init}
    dims = _Dims(items)
    reductions: dict[UOp, WarpReduction] = {}
    for loop, tiles in tile_loops(items).items():
        plans = {
            tile: _reduction(makers[tile], child, dims, target)
            for tile, child in zip(tiles, loop.body, strict=True)
            if isinstance(child, Item)
        }
        if all(plans.values()):  # they share the loop over what is left
            reductions |= {t: plan for t, plan in plans.items() if plan is not None}
    return reductions


def _reduction(maker: Item, reader: Item, dims: _Dims, target: Target) -> WarpReduction | None:
    tile = maker.statement.node
    if not target.can_shuffle(tile.dtype) or len(tile.src) != 2:
        return None
    axis, around = tile.src[1], dims.axes_of(maker)
    if axis.op is not Ops.RANGE or around[-1:] != (axis,) or not dims.is_fastest(axis):
        return None
    if axis.extent != tile.memory_shape[0] or not all(map(dims.is_whole, around)):
        return None
    loops, its = maker.insertion_point.path(), reader.insertion_point.path()
    if any(its.get(a) is not loops[a] for a in loops if not a.axis_kind.is_work_item):
        return None  # a register has one value, and not one for each step
    lanes = math.gcd(axis.extent, target.warp_lanes)
    if lanes == 1:
        return None
    cells = axis.extent // lanes
    plan = WarpReduction(axis, lanes, cells, reader.statement.node.combines, False)
    is_repeated = plan.cell_lanes <= lanes and cells > FEW
    if is_repeated and dims.axes_of(reader) == around[:-1]:
        return WarpReduction(axis, lanes, cells, plan.combines, True)
    return plan


class _Dims:
    """The dimensions of a work-group, by its axes."""

    def __init__(self, items: Iterable[Item]):
        nests = {self.axes_of(item) for item in items}
        self.places = item_dims(by_names(nests))
        self.sizes: dict[int, int] = {}
        for axis, place in self.places.items():
            self.sizes[place] = max(self.sizes.get(place, 1), axis.extent)

    def axes_of(self, item: Item) -> tuple[UOp, ...]:
        """Return the axes of the work-group around a statement, outermost first."""
        path = item.insertion_point.path()
        return tuple(axis for axis in path if axis.axis_kind.is_work_item)

    def is_fastest(self, axis: UOp) -> bool:
        """Whether neighbouring work-items differ in an axis."""
        return self.places[axis] == 0

    def is_whole(self, axis: UOp) -> bool:
        """Whether an axis is as long as its dimension, so that each work-item has a step of it."""
        return axis.extent == self.sizes[self.places[axis]]
