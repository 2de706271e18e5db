"""A work-group combines its partial results in halves, through the tile that they are in.

    for r1 in 16 { acc += tile[r1] }  ->   for r1_8 in 8 (fill) { tile[r1_8] += tile[r1_8 + 8] }
                                           barrier
                                           for r1_4 in 4 (fill) { tile[r1_4] += tile[r1_4 + 4] }
                                           barrier
                                           for r1 in 4 { acc += tile[r1] }

The steps of a fill are dealt out to work-items (`work_groups.py`), so a sum of n takes about as
many steps as n has bits, where every work-item would have made all n. Of an odd number the middle
one waits for the next step. The last few each work-item combines by itself: that is sooner done
than to wait. Source: Harris, "Optimizing parallel reduction in CUDA" (2007).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from workbench.base.dtypes import dtypes
from workbench.ir.nest.placement import Item, Loop
from workbench.ir.nest.storage import shared_tiles
from workbench.ir.node import construct
from workbench.ir.node.axis import AxisType
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

FEW = 4
"""Partial results that each work-item combines by itself, sooner than after another barrier."""


def halvings(count: int) -> Iterator[int]:
    """Yield how many partial results are left after each step."""
    while count > FEW:
        count = (count + 1) // 2
        yield count


def tree_loops(items: Sequence[Item]) -> dict[Loop, int]:
    """Return the loops whose reductions a work-group does in halves, each with the number of its
    partial results: these are in tiles that nothing else reads."""
    makers = {i.statement.node: i for i in items if not i.init}
    tiles = shared_tiles(items)
    readers: dict[UOp, list[Item]] = {}
    for item in makers.values():
        for node in item.statement.reads:
            readers.setdefault(node, []).append(item)
    loops = {
        i.insertion_point for i in makers.values() if i.statement.node.op is Ops.REDUCE
    }
    return {
        loop: loop.axis.extent
        for loop in loops
        if loop.axis is not None
        and loop.axis.extent > FEW
        and all(_reads_a_row(child, loop.axis, tiles, readers) for child in loop.body)
    }


def _reads_a_row(
    child: object,
    axis: UOp,
    tiles: frozenset[UOp],
    readers: Mapping[UOp, Sequence[Item]],
) -> bool:
    """Whether a statement combines the elements of a tile that is of a work-group, and its own."""
    if not isinstance(child, Item) or child.init:
        return False
    statement = child.statement
    if statement.node.op is not Ops.REDUCE or statement.closed != (axis,):
        return False
    value = statement.node.src[0]
    tile = value.place.memory if value.op is Ops.LOAD else value
    if tile.op is not Ops.STAGE or tile.memory_shape != (axis.extent,):
        return False
    return value.place.indexes == (axis,) and tile in tiles and readers[tile] == [child]


def in_halves(loop: UOp) -> list[UOp]:
    """Return the statements instead of a LOOP over the partial results of `tree_loops`."""
    axis, count, parts = loop.axis, loop.axis.extent, list[UOp]()
    for half in halvings(count):
        step = UOp.range(count - half, f"{axis.axis_name}_{half}", AxisType.FILL)
        combined = [_combined(update, axis, step, half) for update in loop.body]
        parts.append(UOp(Ops.LOOP, dtypes.void, (step, *combined)))
        parts.append(construct.barrier())
        count = half
    rest = UOp.range(count, axis.axis_name, axis.axis_kind)
    return [*parts, loop.substitute({axis: rest})]


def _combined(update: UOp, axis: UOp, step: UOp, half: int) -> UOp:
    """Return the STORE of an element of a tile combined with the one `half` further on."""
    place = update.src[1].src[0]
    here, there = (place.substitute({axis: at}) for at in (step, step + half))
    own, other = (construct.running(at, half) for at in (here, there))
    return construct.store(here, own.alu(update.combines, other), None)
