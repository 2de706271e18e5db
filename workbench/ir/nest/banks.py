"""Banks of shared memory: the padding of a tile's rows that avoids bank conflicts.

Shared memory has banks, and words of one bank are read one after the other. Work-items that read
down a column of a tile of 32 words a row all meet in one bank; of a row of 33 they do not:

    tile[32][32]: banks 0 0 0 0 ..   ->   tile[32][33]: banks 0 1 2 3 ..

Source: Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA" (2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from workbench.ir.nest.loops import Statement
from workbench.ir.nest.transactions import BANK_BYTES, BANKS, bank_passes
from workbench.ir.nest.vectors import Vectors
from workbench.ir.node.affine import terms
from workbench.ir.node.index_values import index_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate

LONGER = (1, 2, 4, 8, 16)
"""Elements that a row may be longer by, if it is not more than twice as long then."""
MOST_BYTES = 16
"""Bytes that a work-item reads or writes at a time, at most."""
MOST_ITEMS = 1 << 10
"""Work-items of a group, at most."""
Array = Any  # numpy arrays of any dtype
Shape = tuple[int, ...]


def padded(
    tile: Statement,
    around: Sequence[UOp],
    readers: Sequence[Statement],
    shape: Shape,
    vectors: Vectors,
) -> Shape:
    """Return the shape of a shared tile's memory. Where work-items then meet in fewer banks, it is
    a few elements longer than `shape` along one of the last two axes that are not a vector; the
    least that is best. `around` are the axes of the first dimensions: each of their elements has a
    tile of its own."""
    nbytes = tile.node.dtype.itemsize
    return _best((*tile_accesses(tile, around, readers, vectors),), shape, nbytes)


def tile_accesses(
    tile: Statement, around: Sequence[UOp], readers: Sequence[Statement], vectors: Vectors
) -> Iterator[TileAccess]:
    """Yield where a tile is filled and read; the arguments are those of `padded`."""
    most = max(1, MOST_BYTES // tile.node.dtype.itemsize)
    for access in _accesses(tile, around, readers, vectors):
        yield access._replace(lanes=math.gcd(access.lanes, most))


@lru_cache(maxsize=1 << 12)
def _best(accesses: tuple[TileAccess, ...], shape: Shape, nbytes: int) -> Shape:
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
    """Whether vectors stay at multiples of their length where a dimension is longer."""
    return math.prod((shape[0] + more, *shape[1:])) % lanes == 0


class TileAccess(NamedTuple):
    """A place where a tile is filled or read: where each of the first work-items is along each
    dimension of the memory, and the `lanes` of a vector."""

    places: tuple[tuple[int, ...], ...]
    lanes: int


def _access(at: Sequence[UOp], items: Sequence[UOp], lanes: int) -> TileAccess:
    """Return an access by `items`, the axes that number the work-items, the outermost first."""
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
            return TileAccess(_of_sums(rows, extents), lanes)
    values = index_values(indexes, inner, MOST_ITEMS, others_stand=True)
    if values is None:  # numbers from memory, which are not known
        return TileAccess((), lanes)
    first = (np.broadcast_to(v, extents).reshape(-1)[:BANKS] for v in values)
    return TileAccess(tuple(tuple(places.tolist()) for places in first), lanes)


@lru_cache(maxsize=1 << 12)
def _of_sums(
    rows: tuple[tuple[int, ...], ...], extents: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Return the values of sums at the first work-items: each row has the constant of a sum, and
    the factors of the work-items' axes, whose extents are given."""
    numbers = np.arange(min(BANKS, math.prod(extents)))
    steps = [np.ones_like(numbers)]
    for place, extent in enumerate(extents):
        steps.append(numbers // math.prod(extents[place + 1 :]) % extent)
    values = np.array(rows) @ np.array(steps)
    return tuple(tuple(places) for places in values.tolist())


def _accesses(
    tile: Statement, around: Sequence[UOp], readers: Sequence[Statement], vectors: Vectors
) -> Iterator[TileAccess]:
    """Yield where a tile is filled, and where it is read."""
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
    """Return how many neighbours a work-item reads along the last dimension."""
    parts, _ = terms(split_gate(index)[0])
    lanes = [r for r, k in parts.items() if k == 1 and r.op is Ops.RANGE]
    return next((r.extent for r in lanes if r.axis_kind.is_lane), 1)


def _sources(reader: Statement) -> Sequence[UOp]:
    """Return the nodes that a statement computes, without those of others."""
    stop = set(reader.reads)
    return [n for s in reader.node.src for n in s.toposort(lambda n: n not in stop)]


def _passes(access: TileAccess, shapes: Sequence[Shape], nbytes: int) -> Array:
    """Return how often the banks are read for the first work-items, with memory of each shape: as
    many times as one word of each bank where they are all different. The lanes of a vector are one
    access."""
    if not access.places:
        return np.ones(len(shapes), np.int64)
    width = max(nbytes * access.lanes, BANK_BYTES)
    places = np.array(access.places)[:, : max(1, BANKS * BANK_BYTES // width)]
    strides = np.array(
        [[math.prod(shape[n + 1 :]) for n in range(len(places))] for shape in shapes]
    )
    words = strides @ places * nbytes // BANK_BYTES
    return bank_passes(words, np.ones(words.shape, bool))
