"""Banks of shared memory: rows of a tile that are longer than its elements.

Shared memory has banks, and words of one bank are read one after the other. Work-items that read
down a column of a tile of 32 words a row all meet in one bank; of a row of 33 they do not:

    tile[32][32]: banks 0 0 0 0 ..   ->   tile[32][33]: banks 0 1 2 3 ..

Source: Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA" (2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.ir.nest.loops import Statement
from workbench.ir.nest.vectors import Vectors
from workbench.ir.node.affine import terms
from workbench.ir.node.index_values import index_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate

BANKS = 32
BANK_BYTES = 4
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
    most = max(1, MOST_BYTES // nbytes)
    accesses = [
        access._replace(lanes=math.gcd(access.lanes, most))
        for access in _accesses(tile, around, readers, vectors)
    ]
    lanes = math.lcm(*[access.lanes for access in accesses])
    last = len(shape) - 1 - (lanes > 1 and shape[-1] == lanes)
    longer = [
        (*shape[:n], shape[n] + more, *shape[n + 1 :])
        for n in (last, last - 1)
        for more in LONGER
        if n > 0 and more <= shape[n] and _keeps_vectors(shape[n:], more, lanes)
    ]
    return min(
        (shape, *longer),
        key=lambda each: (
            sum(_passes(access, each, nbytes) for access in accesses),
            math.prod(each),
        ),
    )


def _keeps_vectors(shape: Shape, more: int, lanes: int) -> bool:
    """Whether vectors stay at multiples of their length where a dimension is longer."""
    return math.prod((shape[0] + more, *shape[1:])) % lanes == 0


class TileAccess(NamedTuple):
    """A place where a tile is filled or read: where the first work-items are along each dimension
    of the memory, and the `lanes` of a vector."""

    places: tuple[Array, ...]
    lanes: int


def _access(at: Sequence[UOp], items: Sequence[UOp], lanes: int) -> TileAccess:
    """Return an access by `items`, the axes that number the work-items, the outermost first."""
    inner = [*items]
    while len(inner) > 1 and math.prod(r.extent for r in inner[1:]) >= BANKS:
        inner.pop(0)
    indexes = [split_gate(index)[0] for index in at]
    values = index_values(indexes, inner, MOST_ITEMS, others_stand=True)
    if values is None:  # numbers from memory, which are not known
        return TileAccess((), lanes)
    extents = tuple(r.extent for r in inner)
    return TileAccess(
        tuple(np.broadcast_to(v, extents).reshape(-1)[:BANKS] for v in values), lanes
    )


def _accesses(
    tile: Statement,
    around: Sequence[UOp],
    readers: Sequence[Statement],
    vectors: Vectors,
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


def _passes(access: TileAccess, shape: Shape, nbytes: int) -> int:
    """Return how often the banks are read for the first work-items: as many as read one word of
    each bank where they are all different. The lanes of a vector are one access."""
    width = max(nbytes * access.lanes, BANK_BYTES)
    flat = np.zeros(1, int)
    for number, places in enumerate(access.places):
        flat = flat + places * math.prod(shape[number + 1 :])
    words = np.unique(
        flat[: max(1, BANKS * BANK_BYTES // width)] * nbytes // BANK_BYTES
    )
    return int(np.bincount(words % BANKS).max())
