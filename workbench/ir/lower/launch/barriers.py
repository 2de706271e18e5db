"""Barriers of a work-group: before a work-item reads a tile that others have written.

The axes of a work-group (LOCAL, GROUP_REDUCE) are loops on a CPU. Where a tile is shared, they
are cut in two, the filling before the reading; a device with work-groups has a barrier there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from workbench.base.target import Target
from workbench.ir.lower.launch.tree_reduction import halvings, tree_loops
from workbench.ir.nest.loops import statements
from workbench.ir.nest.pipelines import is_repeated, pipelines
from workbench.ir.nest.placement import Item, Loop, place_statements
from workbench.ir.nest.recompute import recompute_rows
from workbench.ir.nest.shared_tiles import shared_tiles
from workbench.ir.nest.warp_reduction import WarpReduction, warp_reductions
from workbench.ir.node.uop import UOp


def barriers(kernel: UOp, target: Target) -> int:
    """Return the number of barriers that all work-groups of a kernel (a SINK) execute in one run.
    On a device that has them, a barrier stands after a tile is filled and before work-items read
    what others wrote; it serves all tiles filled before it; and after each step in which a
    work-group combines partial results in halves. A barrier before a tile is filled again is not
    counted: a second tile makes it needless."""
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
    """Return, for the loops that need barriers, the positions in their bodies before which one
    stands, in order; without those that fill tiles ahead, whose steps begin with a barrier. Tiles
    that warps combine to one result are in no memory."""
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
                loop, between = _between(makers[node], reader)
                waits.setdefault(loop, []).append(between)
    return {loop: _fewest(intervals) for loop, intervals in waits.items()}


def _between(maker: Item, reader: Item) -> tuple[Loop, tuple[int, int]]:
    """Return the innermost loop around both, and the positions in its body of the items that
    contain each."""
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
    """Return how often the body of `loop` runs: in one work-group, and in all of them."""
    return math.prod(r.extent for r in loop.path() if not r.axis_kind.is_work_item)


def _fewest(pairs: list[tuple[int, int]]) -> list[int]:
    """Return the fewest points such that one lies between the two positions of every pair, each
    right before the second one of a pair."""
    points = [-1]
    for before, after in sorted(pairs, key=lambda pair: pair[1]):
        if before >= points[-1]:
            points.append(after)
    return points[1:]
