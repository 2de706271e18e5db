"""Lowering of a launch: loops of work-items, barriers, tree reductions and warp shuffles.

Sections: Tree reductions; Barriers of a work-group; The loops of a launch; Warp shuffles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from workbench.base.dtypes import dtypes
from workbench.base.target import Target
from workbench.base.trace import PassStep
from workbench.ir.nest.accesses import shared_tiles
from workbench.ir.nest.fragments import FEW, WarpReduction, tile_loops, warp_reductions
from workbench.ir.nest.loops import Item, Loop, grid_dims, place_statements, statements
from workbench.ir.nest.pipelines import is_repeated, pipelines
from workbench.ir.nest.recompute import recompute_rows
from workbench.ir.nest.storage import Allocation, part_name
from workbench.ir.node import construct
from workbench.ir.node.construct import identity
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, gated
from workbench.ir.node.views import LoopRole
from workbench.ir.rewriting.rewrite import is_off

# --------------------------------------------------------------------------------------------------
# Tree reductions: a work-group combines its partial results in halves, in shared memory.
#
#     for r1 in 16 { acc += tile[r1] }  ->   for r1_8 in 8 (fill) { tile[r1_8] += tile[r1_8 + 8] }
#                                            barrier
#                                            for r1_4 in 4 (fill) { tile[r1_4] += tile[r1_4 + 4] }
#                                            barrier
#                                            for r1 in 4 { acc += tile[r1] }
#
# The steps of a fill are distributed over work-items (`work_groups.py`), so a sum of n values takes
# about log2(n) steps; otherwise every work-item would add all n. If the count is odd, the middle
# value is left for the next step. Each work-item combines the last few values by itself, which is
# faster than another barrier. On a machine with warp shuffles, warps combine their parts first (the
# last section); their results are combined in halves if there are many. Source: Harris,
# "Optimizing parallel reduction in CUDA" (2007).

PLACE_HALVES = PassStep(
    "place-halves",
    "A work-group combines partial results in pairs: each step halves their number, until few are"
    " left.",
)


def halvings(count: int) -> Iterator[int]:
    """Yield the number of partial results after each step, until few are left."""
    while count > FEW:
        count = (count + 1) // 2
        yield count


def tree_loops(items: Sequence[Item], warps: Mapping[UOp, WarpReduction]) -> dict[Loop, int]:
    """Return the loops whose reductions a work-group does in halves, each with its number of
    partial results: the elements of a tile that nothing else reads; or the cells of a tile that
    warps combine. While the step `PLACE_HALVES` is off, it is none: each work-item combines all."""
    counts: dict[Loop, int] = {}
    if is_off(PLACE_HALVES):
        return counts
    for loop, (tile, *_) in tile_loops(items).items():
        plan = warps.get(tile)
        count = tile.memory_shape[0] if plan is None else plan.cells
        if count > FEW and not (plan and plan.is_repeated):
            counts[loop] = count
    return counts


def in_halves(loop: UOp, count: int) -> list[UOp]:
    """Return the statements that replace a LOOP over `count` partial results of `tree_loops`."""
    axis, parts = loop.axis, list[UOp]()
    for half in halvings(count):
        step = UOp.range(count - half, f"{axis.axis_name}_{half}", AxisType.FILL)
        combined = [_combined(update, axis, step, half) for update in loop.body]
        parts.append(UOp(Ops.LOOP, dtypes.void, (step, *combined)))
        parts.append(construct.barrier())
        count = half
    rest = UOp.range(count, axis.axis_name, axis.axis_kind)
    return [*parts, loop.substitute({axis: rest})]


def _combined(update: UOp, axis: UOp, step: UOp, half: int) -> UOp:
    """Return the STORE that combines an element of a tile with the one `half` elements further."""
    place = update.src[1].src[0]
    target, source = (place.substitute({axis: at}) for at in (step, step + half))
    own, other = (construct.running(at, half) for at in (target, source))
    return construct.store(target, own.alu(update.combines, other), None)


# --------------------------------------------------------------------------------------------------
# Barriers of a work-group: before a work-item reads a tile that others have written.
#
# The axes of a work-group (LOCAL, GROUP_REDUCE) are loops on a CPU. Where a tile is shared, such a
# loop is split in two: one fills the tile, the next reads it. A device with work-groups has a
# barrier there.


def barriers(kernel: UOp, target: Target) -> int:
    """Return the number of barriers that all work-groups of a kernel (a SINK) execute in one run.
    On a device that has barriers, one stands between the filling of a tile and the reads of other
    work-items (it serves all tiles filled before it), and one after each step of a reduction in
    halves. Barriers before a tile is filled again are not counted: a second tile makes them
    needless.
    """
    _, items = place_statements(statements(recompute_rows(kernel, target)))
    warps = warp_reductions(items, target)
    points = barrier_points(items, warps)
    waits = sum(_trips(loop) * len(places) for loop, places in points.items())
    for loop, pipeline in pipelines(items, shared_tiles(items)).items():
        extent, distance = pipeline.axis.extent, pipeline.distance
        first = distance + (is_repeated(loop) and distance > 1)
        waits += _trips(loop) // extent * (extent + first)
    for loop, count in tree_loops(items, warps).items():
        rounds = _trips(loop) // (loop.axis.extent if loop.axis else 1)
        waits += rounds * len([*halvings(count)])
    return waits


def barrier_points(
    items: Sequence[Item], warps: Mapping[UOp, WarpReduction]
) -> dict[Loop, list[int]]:
    """Return, for each loop that needs barriers, the positions in its body before which they stand,
    in order. Tiles of pipelined loops are left out: each step of these begins with a barrier. So
    are tiles that warps combine to one result: they are in no memory."""
    waits: dict[Loop, list[tuple[int, int]]] = {}
    makers = {i.statement.node: i for i in items if not i.init}
    in_registers = {tile for tile, plan in warps.items() if plan.cells == 1}
    tiles = shared_tiles(items)
    for pipeline in pipelines(items, tiles).values():
        tiles -= pipeline.tiles
    tiles -= in_registers
    for reader in makers.values():
        for node in reader.statement.reads:
            if node in tiles:
                loop, between = _common_loop(makers[node], reader)
                waits.setdefault(loop, []).append(between)
    return {loop: _fewest(intervals) for loop, intervals in waits.items()}


def _common_loop(maker: Item, reader: Item) -> tuple[Loop, tuple[int, int]]:
    """Return the innermost loop around both items, and the positions in its body of the children
    that contain them."""
    one, other = _positions(maker), _positions(reader)
    loop = next(loop for loop in one if loop in other)
    return loop, (one[loop], other[loop])


def _positions(item: Item) -> dict[Loop, int]:
    """Return the loops around an item, innermost first, and the position in each loop's body of the
    child that contains the item."""
    positions: dict[Loop, int] = {}
    child: Loop | Item = item
    loop: Loop | None = item.insertion_point
    while loop is not None:
        positions[loop] = loop.body.index(child)
        child, loop = loop, loop.parent
    return positions


def _trips(loop: Loop) -> int:
    """Return how often all work-groups together run the body of `loop`."""
    return math.prod(r.extent for r in loop.path() if not r.axis_kind.is_work_item)


def _fewest(pairs: list[tuple[int, int]]) -> list[int]:
    """Return the fewest points such that one lies between the two positions of every pair, each
    right before the second one of a pair."""
    points = [-1]
    for before, after in sorted(pairs, key=lambda pair: pair[1]):
        if before >= points[-1]:
            points.append(after)
    return points[1:]


# --------------------------------------------------------------------------------------------------
# The loops of a launch: loops of a statement tree that the Target runs as work-groups and work-
# items. `LaunchShape` (`backends/program/launch.py`) says what a device does with them.

Roles = Mapping[UOp, LoopRole]
"""The role of each axis whose loops have one."""


def launch_roles(root: Loop, target: Target) -> Roles:
    """Return the roles of axes; loops over other axes are ordinary. Only loops around all
    statements can be distributed over cores or work-groups."""
    return _of_groups(root, target) if target.has_groups else _of_processor(root)


def _of_processor(root: Loop) -> Roles:
    """Each thread does one step of a THREAD loop, and a GLOBAL loop may run in chunks."""
    roles: dict[UOp, LoopRole] = {}
    loop = _only_loop(root)
    if loop is not None and _kind(loop) is AxisType.THREAD:
        roles[_axis(loop)] = "thread"
        loop = _only_loop(loop)
    if loop is not None and _kind(loop) is AxisType.GLOBAL:
        roles[_axis(loop)] = "chunked"
    return roles


def _of_groups(root: Loop, target: Target) -> Roles:
    """GLOBAL and THREAD loops around all statements are the grid; the outermost are left out while
    the grid's limits do not allow all. The axes of a work-group are its work-items, wherever their
    loops stand."""
    loop, spread = _only_loop(root), []
    while loop is not None:
        axis = _axis(loop)
        if axis.axis_kind in _OF_GRID:
            spread.append(axis)
        elif not axis.axis_kind.is_work_item:
            break
        loop = _only_loop(loop)
    limits = target.grid_limits
    while spread and grid_dims([axis.extent for axis in spread], limits) is None:
        del spread[0]
    roles: dict[UOp, LoopRole] = dict.fromkeys(spread, "grid")
    pending = [root]
    while pending:
        loops = [child for child in pending.pop().body if isinstance(child, Loop)]
        pending += loops
        roles |= {_axis(x): "item" for x in loops if _kind(x).is_work_item}
    return roles


def _only_loop(loop: Loop) -> Loop | None:
    """Return the loop that is the whole body of `loop`; None if it has another body."""
    child = loop.body[0] if len(loop.body) == 1 else None
    return child if isinstance(child, Loop) else None


def _axis(loop: Loop) -> UOp:
    assert loop.axis is not None
    return loop.axis


def _kind(loop: Loop) -> AxisType:
    return _axis(loop).axis_kind


_OF_GRID = (AxisType.GLOBAL, AxisType.THREAD)


# --------------------------------------------------------------------------------------------------
# Warp shuffles: a work-group combines its partial results inside of warps, from register to
# register.
#
#     tile[x0] = acc                    ->   part = acc
#     barrier                                part += WARP_SHUFFLE(part, 16)   .. 8, 4, 2, 1
#     for r1 in 1024 { acc2 += tile[r1] }    tile[x0 // 32] = part  where x0 % 32 < 1
#                                            barrier
#                                            for x0 in 1024 (item) {
#                                              cell = tile[x0 % 32]
#                                              cell += WARP_SHUFFLE(cell, 16)   .. 8, 4, 2, 1
#                                            }
#                                            acc2 += cell
#
# For each bit of its number, a lane adds the value of the lane that differs in this bit: in the end
# all lanes have the sum. So there is one barrier, where a tree in shared memory (the first section)
# has one for each bit; and none where all parts are in one warp. `ir/nest/fragments.py` decides
# which tiles are combined, and to how many cells. Source: Luitjens, "Faster Parallel Reductions on
# Kepler" (2014), butterfly reductions.


class WarpTile:
    """A tile that warps combine, as statements. `storage` has the cells that the warps write;
    `vector` names the lane axis along which the statements write vectors."""

    def __init__(self, tile: UOp, plan: WarpReduction, storage: Allocation, vector: str | None):
        self.tile, self.plan = tile, plan
        self.storage, self.vector = storage, vector

    def combined(self, value: UOp) -> Iterator[UOp]:
        """Yield the statements that combine a work-item's part, `value`, with the parts of its
        warp, and store the result of the warp, if there are several warps."""
        plan, (define, array, lanes, _) = self.plan, self.storage
        yield from self._exchanged(self._part, value, plan.lanes)
        if plan.cells > 1:
            first = gated(plan.axis // plan.lanes, plan.axis % plan.lanes < 1)
            cell = construct.index(define, *array, *lanes, first)
            yield construct.store(cell, construct.load(self._part), self.vector)

    def repeated(self) -> UOp:
        """Return the loop in which each warp combines the cells of all warps."""
        plan, (define, array, lanes, _) = self.plan, self.storage
        own = plan.axis % plan.cell_lanes
        is_there = own < plan.cells
        place = construct.index(define, *array, *lanes, gated(own, is_there))
        value = construct.load(place)
        if plan.cells < plan.cell_lanes:
            neutral = identity(plan.combines, self.tile.dtype)
            value = is_there.where(value, neutral)
        body = self._exchanged(self._result, value, plan.cell_lanes)
        return UOp(Ops.LOOP, dtypes.void, (plan.axis, *body), "item")

    def read(self, update: UOp) -> UOp:
        """Return the ACCUMULATE `update`, which combines the elements of the tile one by one, as an
        ACCUMULATE of the result that each work-item has."""
        source = self._result if self.plan.cells > 1 else self._part
        return update.replace(src=(update.place, construct.load(source)))

    @property
    def _part(self) -> UOp:
        return self._register(part_name(self.tile))

    @property
    def _result(self) -> UOp:
        return self._register(f"{self.tile.name}r")

    def _register(self, name: str) -> UOp:
        """Return the INDEX of a register that each work-item has."""
        lanes = self.storage.lanes
        shape = tuple(axis.extent for axis in lanes)
        define = construct.define(self.tile.dtype, name, shape, "register")
        return construct.index(define, *lanes)

    def _exchanged(self, place: UOp, value: UOp, lanes: int) -> Iterator[UOp]:
        """Yield the statements that combine the values of `lanes` neighbouring lanes, in
        `place`."""
        yield construct.store(place, value, self.vector)
        distance = lanes // 2
        while distance:
            other = construct.warp_shuffle(construct.running(place, distance), distance)
            yield construct.accumulate(place, other, self.plan.combines, self.vector)
            distance //= 2
