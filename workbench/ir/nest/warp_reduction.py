"""Warp reductions: parts of a work-group's reduction that are combined inside of warps first.

A tile of GROUP has a part for each work-item along an axis, and one reduction reads it. Where the
machine has warp shuffles for its dtype, lanes of a warp combine theirs from register to register:

    x0 in 1024, warps of 32:    1024 parts -> 32 cells of shared memory -> (one more warp) 1 result
    x0 in 16, warps of 32:      16 parts -> 1 result, in no memory
    x0 in 12, warps of 32:      12 parts, by fours -> 3 cells

The axis must be the fastest one of the work-items, so that its numbers are those of lanes, and all
lanes must come there: where some work-items have no part, the tile stays whole. Source: Luitjens,
"Faster Parallel Reductions on Kepler" (2014).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from workbench.base.target import Target
from workbench.ir.nest.launch_dims import by_names, item_dims
from workbench.ir.nest.placement import Item, Loop
from workbench.ir.nest.shared_tiles import shared_tiles
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

FEW = 4
"""Partial results that each work-item combines by itself, sooner than after another barrier."""


@dataclass(frozen=True, slots=True)
class WarpReduction:
    """How a tile is combined: `axis` numbers the parts, of which `lanes` neighbours are combined by
    shuffles to one of `cells`, by the operation `combines`. `is_repeated`: a warp combines the
    cells by shuffles, too."""

    axis: UOp
    lanes: int
    cells: int
    combines: Ops
    is_repeated: bool

    @property
    def cell_lanes(self) -> int:
        """The lanes that combine the cells: the next power of two."""
        return 1 << (self.cells - 1).bit_length()


def tile_loops(items: Sequence[Item]) -> dict[Loop, tuple[UOp, ...]]:
    """Return the loops over partial results of a work-group: each combines the elements of tiles
    (one for each statement in it) that nothing else reads."""
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
    """Return the tile whose elements along an axis, and nothing else, a statement combines."""
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
    """Return the tiles that warps combine, none on a target that has no shuffles."""
    if not target.shuffle_dtypes:
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
        """Whether all work-items have a step of an axis."""
        return axis.extent == self.sizes[self.places[axis]]
