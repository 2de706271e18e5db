"""Warp shuffles: a work-group combines its partial results inside of warps, from register to
register.

    tile[x0] = acc                    ->   part = acc
    barrier                                part += WARP_SHUFFLE(part, 16)   .. 8, 4, 2, 1
    for r1 in 1024 { acc2 += tile[r1] }    tile[x0 // 32] = part  where x0 % 32 < 1
                                           barrier
                                           for x0 in 1024 (item) {
                                             cell = tile[x0 % 32]
                                             cell += WARP_SHUFFLE(cell, 16)   .. 8, 4, 2, 1
                                           }
                                           acc2 += cell

A lane adds the value of the lane whose number differs in one bit, for each bit: in the end all have
the sum, and nothing need be told to others. So there is one barrier where a tree in shared memory
(`tree_reduction.py`) has one for each bit, and none where a row of parts is in one warp. What is
combined, and how far: `ir/nest/warp_reduction.py`. Source: Luitjens, "Faster Parallel Reductions on
Kepler" (2014), butterfly reductions.
"""

from __future__ import annotations

from collections.abc import Iterator

from workbench.base.dtypes import dtypes
from workbench.ir.nest.storage import Allocation, part_name
from workbench.ir.nest.warp_reduction import WarpReduction
from workbench.ir.node import construct
from workbench.ir.node.constants import identity
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated


class WarpTile:
    """A tile that warps combine, as statements: `storage` is what is left of it, `vector` the lane
    axis along which its statements write vectors."""

    def __init__(self, tile: UOp, plan: WarpReduction, storage: Allocation, vector: str | None):
        self.tile, self.plan = tile, plan
        self.storage, self.vector = storage, vector

    def combined(self, value: UOp) -> Iterator[UOp]:
        """Yield the statements that combine a work-item's part, `value`, with those of its warp,
        and store what the warp leaves."""
        plan, (define, array, lanes, _) = self.plan, self.storage
        yield from self._exchanged(self._part, value, plan.lanes)
        if plan.cells > 1:
            first = gated(plan.axis // plan.lanes, plan.axis % plan.lanes < 1)
            cell = construct.index(define, *array, *lanes, first)
            yield construct.store(cell, construct.load(self._part), self.vector)

    def repeated(self) -> UOp:
        """Return the loop in which each warp combines the cells of all."""
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
        """Return the statement `update`, which combines the elements of the tile one by one, as one
        that takes the result that each work-item has."""
        source = self._result if self.plan.cells > 1 else self._part
        return update.replace(src=(update.place, construct.load(source)))

    @property
    def _part(self) -> UOp:
        return self._register(part_name(self.tile))

    @property
    def _result(self) -> UOp:
        return self._register(f"{self.tile.name}r")

    def _register(self, name: str) -> UOp:
        """Return the place of a register of each work-item."""
        lanes = self.storage.lanes
        shape = tuple(axis.extent for axis in lanes)
        define = construct.define(self.tile.dtype, name, shape, "register")
        return construct.index(define, *lanes)

    def _exchanged(self, place: UOp, value: UOp, lanes: int) -> Iterator[UOp]:
        """Yield the statements that combine values of neighbouring lanes, each in its register."""
        yield construct.store(place, value, self.vector)
        distance = lanes // 2
        while distance:
            other = construct.warp_shuffle(construct.running(place, distance), distance)
            yield construct.accumulate(place, other, self.plan.combines, self.vector)
            distance //= 2
