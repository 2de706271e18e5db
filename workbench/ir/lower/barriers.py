"""Barriers of a work-group: where a work-item reads a tile that others have filled.

The axes of a work-group (LOCAL, GROUP_REDUCE) are loops on a CPU. Where a tile is shared, they
are cut in two, the filling before the reading; on a GPU a barrier stands there instead.
"""

from __future__ import annotations

import math

from workbench.ir.nest.loops import Statement, statements
from workbench.ir.nest.placement import Item, Loop, place_statements
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def barriers(kernel: UOp) -> int:
    """Return how often the work-groups of a kernel (a SINK) wait for their work-items, all the
    groups together, in one run: after a tile is filled, before others than its filler read it.
    One barrier serves all tiles filled before it. Waiting before a tile is filled again, which a
    second tile makes needless, is not counted."""
    waits: dict[Loop, list[tuple[int, int]]] = {}
    _, items = place_statements(statements(kernel))
    makers = {i.statement.node: i for i in items if not i.init}
    for reader in makers.values():
        for node in reader.statement.reads:
            maker = makers[node]
            if node.op is Ops.STAGE and is_shared(maker.statement, reader.statement):
                loop, between = _between(maker, reader)
                waits.setdefault(loop, []).append(between)
    return sum(_trips(loop) * _fewest(intervals) for loop, intervals in waits.items())


def is_shared(tile: Statement, reader: Statement) -> bool:
    """Whether a work-item that reads a tile reads what another one has filled: a work-group's
    axis fills it, or one that the tile does not stand in tells its readers apart."""
    around = {r for r in reader.nest if r.axis_kind.is_work_item}
    return bool(around - set(tile.pre)) or any(
        r.axis_kind.is_work_item for r in tile.own
    )


def _between(maker: Item, reader: Item) -> tuple[Loop, tuple[int, int]]:
    """Return the innermost loop around both, and the positions in it of what holds each."""
    one, other = _positions(maker), _positions(reader)
    loop = next(loop for loop in one if loop in other)
    return loop, (one[loop], other[loop])


def _positions(item: Item) -> dict[Loop, int]:
    """Return the loops around an item, innermost first, and the position in each of what holds
    the item."""
    positions: dict[Loop, int] = {}
    child: Loop | Item = item
    loop: Loop | None = item.insertion_point
    while loop is not None:
        positions[loop] = loop.body.index(child)
        child, loop = loop, loop.parent
    return positions


def _trips(loop: Loop) -> int:
    """Return how often a work-group, and each of them, comes to what stands in `loop`."""
    return math.prod(r.extent for r in loop.path() if not r.axis_kind.is_work_item)


def _fewest(pairs: list[tuple[int, int]]) -> int:
    """Return how few points lie between the two positions of every pair."""
    many, last = 0, -1
    for before, after in sorted(pairs, key=lambda pair: pair[1]):
        if before >= last:
            many, last = many + 1, after
    return many
