"""Storage for every value of a kernel: registers, or an array in scratch memory.

A value is in a register, or in an array over the loops that were split between the statement that
computes it and those that read it. Lowering writes this plan as UOps; opts check by it whether
their kernel would fit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from workbench.base.target import Target
from workbench.ir.nest.accesses import padded, shared_tiles
from workbench.ir.nest.fragments import WarpReduction, warp_reductions
from workbench.ir.nest.loops import Item, Loop, Statement, place_statements, statements
from workbench.ir.nest.pipelines import Pipeline, pipelines
from workbench.ir.nest.vectors import Vectors, choose_vectors
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Space

_NEVER_SPLIT = (AxisType.GLOBAL, AxisType.THREAD)


class Allocation(NamedTuple):
    """The storage of one value. `array` has the axes of the loops that it is an array over, none
    for a register; `lanes` the lane axes that have elements of their own, the vector last. If a
    `pipeline` fills it ahead, the first dimension of the memory is that of the buffers."""

    define: UOp
    array: tuple[UOp, ...]
    lanes: tuple[UOp, ...]
    pipeline: Pipeline | None = None

    @property
    def scratch_bytes(self) -> int:
        """The bytes of its array, in scratch or shared memory; 0 for a register."""
        if self.define.space == "register":
            return 0
        return self.define.dtype.itemsize * math.prod(self.define.memory_shape)


class Excess(NamedTuple):
    """Why the arrays of a kernel in `memory` do not fit. The largest is `name`, over the loops
    `split`, with `array_bytes`; all have `total_bytes`, and the device gives `limit_bytes`."""

    name: str
    split: tuple[str, ...]
    array_bytes: int
    total_bytes: int
    limit_bytes: int
    memory: Space

    def __str__(self) -> str:
        over, total = ", ".join(self.split) or "its own axes", self.total_bytes
        together = f", {total:,} with the other arrays"
        others = together if total > self.array_bytes else ""
        return (
            f"{self.name} is an array of {self.array_bytes:,} bytes over {over}{others}; "
            f"this device gives a kernel {self.limit_bytes:,} bytes of {self.memory} memory"
        )


@dataclass(frozen=True, slots=True)
class StoragePlan:
    """The statements of a kernel in their loops, and the storage of the values that others read
    (`allocations`, producers first). `warps` has the tiles whose parts warps combine; the storage
    of such a tile is that of the results: cells or a register."""

    statements: Mapping[UOp, Statement]
    root: Loop
    items: list[Item]
    vectors: Vectors
    allocations: Mapping[UOp, Allocation]
    pipelines: Mapping[Loop, Pipeline]
    warps: Mapping[UOp, WarpReduction]

    def excess(self, target: Target) -> Excess | None:
        """Return why the arrays in scratch memory exceed `target.scratch_bytes`, or those in shared
        memory `target.shared_bytes`; None if all fit."""
        return self._excess("scratch", target.scratch_bytes) or self._excess(
            "shared", target.shared_bytes
        )

    def fits(self, scratch_bytes: int, shared_bytes: int) -> bool:
        """Whether the arrays of each memory have at most these bytes together."""
        limits: dict[Space, int] = {"scratch": scratch_bytes, "shared": shared_bytes}
        return not any(self._excess(space, limits[space]) for space in limits)

    def _excess(self, space: Space, limit: int) -> Excess | None:
        sizes = {
            node: allocation.scratch_bytes
            for node, allocation in self.allocations.items()
            if allocation.define.space == space
        }
        total = sum(sizes.values())
        if total <= limit:
            return None
        largest = max(sizes, key=lambda node: sizes[node])
        allocation = self.allocations[largest]
        split = tuple(a.axis_name for a in allocation.array)
        return Excess(allocation.define.name, split, sizes[largest], total, limit, space)


def plan_storage(sink: UOp, target: Target, longer_rows: bool = True) -> StoragePlan:
    """Return the placement of a kernel's statements for `target`, and the storage of their values.
    Without `longer_rows`, rows of shared tiles are not padded: that is less work, and gives the
    bytes of a kernel to within a factor of two."""
    by_node = statements(sink)
    root, items = place_statements(by_node)
    vectors = choose_vectors(by_node, target)
    values = [n for n in by_node if n.op is not Ops.STORE]
    tiles = shared_tiles(items) if target.has_groups else frozenset()
    loops = pipelines(items, tiles)
    by_tile = {tile: each for each in loops.values() for tile in each.tiles}
    allocations = {
        n: _allocation(n, i, by_node, items, vectors, target, tiles, by_tile.get(n))
        for i, n in enumerate(values)
    }
    warps = warp_reductions(items, target)
    for tile, plan in warps.items():
        allocations[tile] = _warp_results(tile, allocations[tile], plan)
    for tile in tiles - warps.keys() if longer_rows else ():
        allocations[tile] = _padded_tile(by_node[tile], allocations[tile], items, vectors)
    return StoragePlan(by_node, root, items, vectors, allocations, loops, warps)


def excess(sink: UOp, target: Target) -> Excess | None:
    """Return `plan_storage(sink, target).excess(target)`. Where an upper bound of the bytes fits,
    it is None, and no statements are placed."""
    limits = [target.scratch_bytes]
    if target.has_groups:  # rows of a tile may be longer than its elements, at most twice as long
        limits = [target.scratch_bytes, target.shared_bytes // 2]
    if _most_bytes(statements(sink)) <= min(limits):
        return None
    rough = plan_storage(sink, target, longer_rows=False)
    if rough.fits(target.scratch_bytes, target.shared_bytes // 2):
        return None
    return plan_storage(sink, target).excess(target)


def _most_bytes(by_node: Mapping[UOp, Statement]) -> int:
    """Return an upper bound of the bytes of all values: each as an array over all its loops but
    GLOBAL and THREAD loops, which are never split."""
    total = 0
    for node, statement in by_node.items():
        if node.op is Ops.STORE:
            continue
        loops = [r.extent for r in statement.pre if r.axis_kind not in _NEVER_SPLIT]
        lanes = [r.extent for r in statement.lanes]
        if node.op is Ops.STAGE:
            own = (node.buffers, *node.memory_shape)
        else:
            own = tuple(r.extent for r in statement.reduction_lanes)
        total += node.dtype.itemsize * math.prod((*loops, *lanes, *own))
    return total


def _allocation(
    node: UOp,
    number: int,
    by_node: Mapping[UOp, Statement],
    items: list[Item],
    vectors: Vectors,
    target: Target,
    tiles: frozenset[UOp],
    pipeline: Pipeline | None,
) -> Allocation:
    statement = by_node[node]
    readers = [i for i in items if node in i.statement.reads and not i.init]
    shared = node in tiles
    private = target.has_groups and not shared
    array = _array_axes(statement, items, readers, shared)
    array = tuple(a for a in array if not (private and a.axis_kind.is_work_item))
    extents = [a.extent for a in array]
    if node.op is Ops.STAGE:
        lanes = statement.lanes
        shape = (*extents, *(r.extent for r in lanes), *node.memory_shape)
        where: Space = "shared" if shared else "scratch"
        count = 1 if pipeline is None else pipeline.buffers
        shape = shape if count == 1 else (count, *shape)
        define = construct.define(node.dtype, node.name, shape, where, count)
    else:
        vector = vectors.axes[node]
        # the vector last, so that arrays keep its elements together
        lanes = tuple(sorted(statement.lanes, key=lambda r: r is vector))
        lanes += vectors.accumulator_lanes(statement)
        shape = (*extents, *(r.extent for r in lanes))
        space: Space = "scratch" if array else "register"
        define = construct.define(node.dtype, f"acc{number}", shape, space)
    return Allocation(define, array, lanes, pipeline)


def _padded_tile(
    tile: Statement, whole: Allocation, items: list[Item], vectors: Vectors
) -> Allocation:
    """Return the storage of a shared tile, with rows padded against bank conflicts."""
    define = whole.define
    buffers = define.memory_shape[:1] if define.buffers > 1 else ()
    readers = [i for i in items if tile.node in i.statement.reads and not i.init]
    shape = padded(
        tile,
        (*whole.array, *whole.lanes),
        [reader.statement for reader in readers],
        define.memory_shape[len(buffers) :],
        vectors,
    )
    storage = define.arg._replace(shape=(*buffers, *shape))
    return whole._replace(define=define.replace(arg=storage))


def _warp_results(tile: UOp, whole: Allocation, plan: WarpReduction) -> Allocation:
    """Return the storage of the results of a tile that warps combine, in place of `whole`: a
    register of each work-item, or a cell for each warp."""
    lanes = [r.extent for r in whole.lanes]
    if plan.cells == 1:
        name = part_name(tile)
        define = construct.define(tile.dtype, name, tuple(lanes), "register")
        return Allocation(define, (), whole.lanes)
    shape = (*[axis.extent for axis in whole.array], *lanes, plan.cells)
    define = construct.define(tile.dtype, tile.name, shape, "shared")
    return Allocation(define, whole.array, whole.lanes)


def part_name(tile: UOp) -> str:
    """Return the name of the register with a work-item's part of a tile."""
    return f"{tile.name}w"


def _array_axes(
    statement: Statement, items: list[Item], readers: list[Item], shared: bool
) -> tuple[UOp, ...]:
    """Return the loops that a value is an array over: those that are split between its producer and
    its readers, and those inside the outermost own loop of a reduction. In shared memory the loops
    over work-items around the value are added."""
    node = statement.node
    places = [i for i in items if i.statement.node is node]
    paths = [i.insertion_point.path() for i in (*places, *readers)]
    inside = _inside_own(statement, places[-1].insertion_point.path())
    return tuple(
        axis
        for axis in statement.pre
        if axis in inside
        or len({p[axis] for p in paths if axis in p}) > 1
        or (shared and axis.axis_kind.is_work_item)
    )


def _inside_own(statement: Statement, path: dict[UOp, Loop]) -> set[UOp]:
    """Return the loops around a reduction that lie inside its outermost own loop."""
    if statement.node.op is not Ops.REDUCE:
        return set()
    order = list(path)
    first = min(order.index(r) for r in statement.own)
    return {a for a in order[first:] if a not in statement.own}
