"""The memory accesses of a kernel: strides, banks of shared memory, and the warps that read shared
tiles.

Sections: The buffer accesses of the statements of a lowered kernel, each as one flat index;
Banks of shared memory; Shared tiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from workbench.base.tensor_cores import NO_AXIS
from workbench.ir.nest.loops import Item, Statement
from workbench.ir.nest.transactions import BANK_BYTES, BANKS, bank_passes
from workbench.ir.nest.vectors import Vectors
from workbench.ir.node.exact_range import index_values, row_major, terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate

# --------------------------------------------------------------------------------------------------
# The buffer accesses of the statements of a lowered kernel, each as one flat index.
#
# The statements are those of the statement tree; the buffers are the kernel's arguments and its
# arrays in scratch memory, not its registers.


class MemoryAccess(NamedTuple):
    """A place where a statement reads or writes a buffer, as one flat index."""

    buffer: UOp
    flat: UOp
    writes: bool


def idle_lanes(linear: Iterable[UOp]) -> dict[UOp, int]:
    """Return the LOADs by which a warp reads rows of matrices, each with a mask: the bits of a
    lane's number that the layout of the rows does not use. Only lanes with 0 in these bits read."""
    layouts = {n.src[0]: n.arg[0] for n in linear if n.op is Ops.EXCHANGE}
    return {
        load: sum(1 << place for place, bit in enumerate(rows.lane.split()) if bit == NO_AXIS)
        for load, rows in layouts.items()
    }


def async_stores(linear: Iterable[UOp]) -> frozenset[UOp]:
    """Return the STOREs that asynchronous copies end with, on a device that has these: from an
    argument to a shared tile of several buffers, without a gate."""
    return frozenset(node for node in linear if node.op is Ops.STORE and _is_async(node))


def _is_async(store: UOp) -> bool:
    tile, value = store.place.param, store.src[1]
    return (
        tile.op is Ops.DEFINE
        and tile.space == "shared"
        and tile.buffers > 1
        and len(store.src) == 2
        and value.op is Ops.LOAD
        and not value.dtype.is_bool
        and value.place.param.op is Ops.PARAM
    )


def buffers_of(block: UOp) -> list[UOp]:
    """Return the buffers of a statement tree: arguments by slot, then arrays in scratch."""
    buffers = [n for n in block.toposort() if is_buffer(n)]
    slots = [n for n in buffers if n.op is Ops.PARAM]
    arrays = [n for n in buffers if n.op is Ops.DEFINE]
    return [*sorted(slots, key=lambda n: n.slot), *sorted(arrays, key=lambda n: n.name)]


def accesses(statement: UOp) -> tuple[MemoryAccess, ...]:
    """Return the buffer accesses of a STORE or ACCUMULATE."""
    target = statement.src[0]
    loads = [n.src[0] for n in statement.toposort() if n.op is Ops.LOAD]
    memory_accesses = [MemoryAccess(at.src[0], _flat(at), False) for at in loads]
    updates = statement.op is Ops.ACCUMULATE
    memory_accesses += [MemoryAccess(target.src[0], _flat(target), w) for w in {True, not updates}]
    return tuple(a for a in memory_accesses if is_buffer(a.buffer))


def lanes_of(statement: UOp) -> tuple[UOp, ...]:
    """Return the lane axes of a statement, its vector axis last."""
    vector = vector_of(statement)
    lanes = [n for n in statement.toposort() if n.op is Ops.RANGE and n.axis_kind.is_lane]
    return tuple(sorted(lanes, key=lambda r: (r.axis_name == vector, r.axis_name)))


def vector_of(statement: UOp) -> str | None:
    """Return the name of a statement's vector axis; None for scalars."""
    name: str | None
    name = statement.vector
    return name


def is_buffer(node: UOp) -> bool:
    """Whether a node is memory, and not a register."""
    if node.op is Ops.DEFINE:
        return node.space != "register"
    return node.op is Ops.PARAM


def name_of(buffer: UOp) -> str:
    """Return the name of a buffer in text: "p0", or that of an array in scratch."""
    return f"p{buffer.slot}" if buffer.op is Ops.PARAM else buffer.name


def size_of(buffer: UOp) -> int:
    """Return the elements of a buffer."""
    return math.prod(buffer.memory_shape)


def _flat(at: UOp) -> UOp:
    """Return the one flat index of an INDEX, with its gate."""
    if at.memory.op is Ops.PARAM:
        return at.flat_index
    return row_major(at.indexes, at.memory.memory_shape)


# --------------------------------------------------------------------------------------------------
# Banks of shared memory: the padding of a tile's rows that avoids bank conflicts.
#
# Words of one bank are read one after the other. Work-items that read down a column of a tile with
# rows of 32 words all meet in one bank; with rows of 33 words they do not:
#
#     tile[32][32]: banks 0 0 0 0 ..   ->   tile[32][33]: banks 0 1 2 3 ..
#
# Source: Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA" (2009).

LONGER = (1, 2, 4, 8, 16)
"""Elements by which a row may be padded, if that makes it at most twice as long."""
MOST_BYTES = 16
"""Most bytes that a work-item reads or writes at a time."""
MOST_ITEMS = 1 << 10
"""Most work-items of a group."""
Array = Any  # numpy arrays of any dtype
Shape = tuple[int, ...]


def padded(
    tile: Statement,
    around: Sequence[UOp],
    readers: Sequence[Statement],
    shape: Shape,
    vectors: Vectors,
) -> Shape:
    """Return the shape of a shared tile's memory: `shape`, or one with a few elements more along
    one of the last two axes that are not a vector: the one with the fewest bank conflicts, of
    several the smallest. `around` has the axes of the first dimensions: each of their elements has
    a tile of its own."""
    nbytes = tile.node.dtype.itemsize
    return _best_shape((*tile_accesses(tile, around, readers, vectors),), shape, nbytes)


def tile_accesses(
    tile: Statement, around: Sequence[UOp], readers: Sequence[Statement], vectors: Vectors
) -> Iterator[TileAccess]:
    """Yield the accesses that fill and read a tile; the arguments are those of `padded`."""
    most = max(1, MOST_BYTES // tile.node.dtype.itemsize)
    for access in _accesses(tile, around, readers, vectors):
        yield access._replace(lanes=math.gcd(access.lanes, most))


@lru_cache(maxsize=1 << 12)
def _best_shape(accesses: tuple[TileAccess, ...], shape: Shape, nbytes: int) -> Shape:
    lanes = math.lcm(*[access.lanes for access in accesses])
    last = len(shape) - 1 - (lanes > 1 and shape[-1] == lanes)
    longer = [
        (*shape[:n], shape[n] + more, *shape[n + 1 :])
        for n in (last, last - 1)
        for more in LONGER
        if n > 0 and more <= shape[n] and _keeps_vectors(shape[n:], more, lanes)
    ]
    shapes = (shape, *longer)
    passes = np.zeros(len(shapes), np.int64)
    for access in accesses:
        passes += _passes(access, shapes, nbytes)
    sizes = [math.prod(each) for each in shapes]
    return shapes[min(range(len(shapes)), key=lambda n: (passes[n], sizes[n]))]


def _keeps_vectors(shape: Shape, more: int, lanes: int) -> bool:
    """Whether vectors still begin at multiples of their length if a dimension is longer by
    `more`."""
    return math.prod((shape[0] + more, *shape[1:])) % lanes == 0


class TileAccess(NamedTuple):
    """An access that fills or reads a tile. `places` has, for each dimension of the memory, the
    positions of the first work-items; `lanes` is the length of a vector."""

    places: tuple[tuple[int, ...], ...]
    lanes: int


def _access(at: Sequence[UOp], items: Sequence[UOp], lanes: int) -> TileAccess:
    """Return an access by work-items, whose axes are `items`, outermost first."""
    inner = [*items]
    while len(inner) > 1 and math.prod(r.extent for r in inner[1:]) >= BANKS:
        inner.pop(0)
    indexes = [split_gate(index)[0] for index in at]
    extents = tuple(r.extent for r in inner)
    if math.prod(extents) <= MOST_ITEMS:
        sums = [terms(index) for index in indexes]
        if all(atom.op is Ops.RANGE for parts, _ in sums for atom in parts):
            rows = tuple(
                (constant, *[parts.get(axis, 0) for axis in inner]) for parts, constant in sums
            )
            return TileAccess(_sum_values(rows, extents), lanes)
    values = index_values(indexes, inner, MOST_ITEMS, others_stand=True)
    if values is None:  # numbers from memory, which are not known
        return TileAccess((), lanes)
    first = (np.broadcast_to(v, extents).reshape(-1)[:BANKS] for v in values)
    return TileAccess(tuple(tuple(places.tolist()) for places in first), lanes)


@lru_cache(maxsize=1 << 12)
def _sum_values(
    rows: tuple[tuple[int, ...], ...], extents: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Return the values of sums for the first work-items. A row has the constant of a sum, and its
    factors of the work-items' axes, whose extents are `extents`."""
    numbers = np.arange(min(BANKS, math.prod(extents)))
    steps = [np.ones_like(numbers)]
    for place, extent in enumerate(extents):
        steps.append(numbers // math.prod(extents[place + 1 :]) % extent)
    values = np.array(rows) @ np.array(steps)
    return tuple(tuple(places) for places in values.tolist())


def _accesses(
    tile: Statement, around: Sequence[UOp], readers: Sequence[Statement], vectors: Vectors
) -> Iterator[TileAccess]:
    """Yield the accesses that fill a tile and those that read it."""
    items = [r for r in tile.nest if r.axis_kind.is_work_item]
    dealt = [r for r in tile.nest if r in tile.own]
    at = (*around, *tile.node.src[1:])
    vector = vectors.axes[tile.node]
    is_vector = vector is not None and terms(at[-1])[0].get(vector) == 1
    yield _access(at, items or dealt, vector.extent if vector and is_vector else 1)
    for reader in readers:
        items = [r for r in reader.nest if r.axis_kind.is_work_item]
        for node in _sources(reader):
            if node.op is Ops.INDEX and node.src[0] is tile.node:
                at = (*around, *node.src[1:])
                yield _access(at, items, _lanes(at[-1]))


def _lanes(index: UOp) -> int:
    """Return how many contiguous elements a work-item reads along the last dimension."""
    parts, _ = terms(split_gate(index)[0])
    lanes = [r for r, k in parts.items() if k == 1 and r.op is Ops.RANGE]
    return next((r.extent for r in lanes if r.axis_kind.is_lane), 1)


def _sources(reader: Statement) -> Sequence[UOp]:
    """Return the nodes that a statement computes itself."""
    stop = set(reader.reads)
    return [n for s in reader.node.src for n in s.toposort(lambda n: n not in stop)]


def _passes(access: TileAccess, shapes: Sequence[Shape], nbytes: int) -> Array:
    """Return, for each shape of the memory, in how many passes the first work-items are served: one
    for each different word of the bank that has most. The lanes of a vector are one access."""
    if not access.places:
        return np.ones(len(shapes), np.int64)
    width = max(nbytes * access.lanes, BANK_BYTES)
    places = np.array(access.places)[:, : max(1, BANKS * BANK_BYTES // width)]
    strides = np.array(
        [[math.prod(shape[n + 1 :]) for n in range(len(places))] for shape in shapes]
    )
    words = strides @ places * nbytes // BANK_BYTES
    return bank_passes(words, np.ones(words.shape, bool))


# --------------------------------------------------------------------------------------------------
# Shared tiles: memory of a work-group through which work-items exchange elements.


def is_shared(tile: Statement, reader: Statement) -> bool:
    """Whether a work-item reads elements of a tile that another one wrote: an axis of the
    work-group fills the tile, or stands around the reader and not around the tile."""
    around = {r for r in reader.nest if r.axis_kind.is_work_item}
    return bool(around - set(tile.pre)) or any(r.axis_kind.is_work_item for r in tile.own)


def shared_tiles(items: Sequence[Item]) -> frozenset[UOp]:
    """Return the tiles that a work-group shares: some work-item reads what another one wrote."""
    tiles = {i.statement.node: i.statement for i in items if i.statement.node.op is Ops.STAGE}
    return frozenset(
        node
        for item in items
        for node in item.statement.reads
        if node in tiles and not item.init and is_shared(tiles[node], item.statement)
    )
