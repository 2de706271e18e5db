"""Pipelined loops: a work-group computes with one buffer of a tile while the next buffers are
filled.

    for r0 in 8 {                   for r0_first in 2 { barrier  fill tile[r0_first % 3] }
      fill tile from step r0        for r0 in 8 {
      barrier                         barrier
      compute with tile        ->     compute with tile[r0 % 3]
      barrier                         if r0 < 6 { fill tile[(r0 + 2) % 3] from step r0 + 2 }
    }                               }

With n buffers a tile is filled n - 1 steps before it is read. A buffer is filled again after the
barrier that follows its last reads, so one barrier per step is enough. If the computation is itself
a loop, each of its steps fills a part of the buffer, so that units that copy and units that compute
are busy together. Opts set the number of buffers of a STAGE; this file decides which loops can be
pipelined. Source: Lam, "Software pipelining: an effective scheduling technique for VLIW machines"
(1988).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from workbench.base.trace import PassStep
from workbench.ir.nest.loops import Item, Loop
from workbench.ir.node.ops import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import is_off

PLACE_PIPELINE = PassStep(
    "place-pipeline",
    "A work-group waits for the tiles of this step; while it computes with them, it fills those of"
    " a later step in another buffer.",
)


class Pipeline(NamedTuple):
    """A loop over `axis`, and the `tiles` that it fills, each with this number of `buffers`."""

    axis: UOp
    buffers: int
    tiles: frozenset[UOp]

    @property
    def distance(self) -> int:
        """The steps from the fill of a buffer to its reads."""
        return self.buffers - 1

    @property
    def buffer(self) -> UOp:
        """The index of the buffer that a step reads."""
        return self.axis % self.buffers

    @property
    def first(self) -> UOp:
        """The axis of the first steps, whose tiles are filled before the loop."""
        name = f"{self.axis.axis_name}_first"
        return UOp.range(self.distance, name, AxisType.FILL)


def is_repeated(loop: Loop) -> bool:
    """Whether a work-group runs a loop several times. The last copies of a run, for steps beyond
    its end, may still be in progress when the next run begins."""
    around = [] if loop.parent is None else loop.parent.path()
    kinds = [r.axis_kind for r in around if r.extent > 1]
    return any(k is not AxisType.GLOBAL and not k.is_work_item for k in kinds)


def pipelines(items: Sequence[Item], shared: Collection[UOp]) -> Mapping[Loop, Pipeline]:
    """Return the loops that are pipelined. While the step `PLACE_PIPELINE` is off, it is none: each
    step fills the only buffer of its tiles, and reads it after a barrier."""
    return {} if is_off(PLACE_PIPELINE) else possible_pipelines(items, shared)


def possible_pipelines(items: Sequence[Item], shared: Collection[UOp]) -> Mapping[Loop, Pipeline]:
    """Return the loops that can be pipelined. Such a loop is part of a reduction (REDUCE) and
    begins with the fills of `shared` tiles, from arguments alone, each with the same number of
    buffers, two or more; it contains all readers of these tiles."""
    fills: dict[Loop, list[Item]] = {}
    for item in items:
        if item.statement.node in shared and not item.init:
            fills.setdefault(fill_loop(item), []).append(item)
    result = {}
    for loop, makers in fills.items():
        axis, counts = loop.axis, {m.statement.node.buffers for m in makers}
        tiles = frozenset(m.statement.node for m in makers)
        if axis is None or axis.axis_kind is not AxisType.REDUCE or len(counts) != 1:
            continue
        (buffers,) = counts
        is_independent = not any(m.statement.reads for m in makers)
        if buffers > 1 and is_independent and _all_inside(loop, tiles, items, shared):
            result[loop] = Pipeline(axis, buffers, tiles)
    return result


def fill_loop(item: Item) -> Loop:
    """Return the innermost loop each of whose steps fills a whole tile."""
    loop = item.insertion_point
    while loop.axis in item.statement.own and loop.parent is not None:
        loop = loop.parent
    return loop


def _all_inside(
    loop: Loop, tiles: frozenset[UOp], items: Sequence[Item], shared: Collection[UOp]
) -> bool:
    """Whether a loop begins with the fills of `tiles`, fills no other shared tile, and contains all
    readers of `tiles`."""
    is_fill = [is_fill_of(child, tiles) for child in loop.body]
    first = is_fill.index(False) if False in is_fill else len(is_fill)
    others = [i for child in loop.body[first:] for i in items_below(child)]
    inside = {*others}
    reads = [i for i in items if not i.init and tiles.intersection(i.statement.reads)]
    return (
        not any(is_fill[first:])
        and not any(i.statement.node in shared for i in others)
        and all(i in inside for i in reads)
    )


def is_fill_of(child: Loop | UOp | Item, tiles: frozenset[UOp]) -> bool:
    """Whether a child of a loop only fills tiles."""
    below = [*items_below(child)]
    return bool(below) and all(i.statement.node in tiles for i in below)


def items_below(child: Loop | UOp | Item) -> Iterator[Item]:
    """Yield the items in a child of a loop."""
    if isinstance(child, Item):
        yield child
    elif isinstance(child, Loop):
        for inner in child.body:
            yield from items_below(inner)
