"""Banks of shared memory: rows of a tile that are longer than its elements.

Shared memory has banks, and words of one bank are read one after the other. Work-items that read
down a column of a tile of 32 words a row all meet in one bank; of a row of 33 they do not:

    tile[32][32]: banks 0 0 0 0 ..   ->   tile[32][33]: banks 0 1 2 3 ..

Source: Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA" (2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import mul
from typing import NamedTuple

from workbench.ir.nest.loops import Statement
from workbench.ir.nest.vectors import Vectors
from workbench.ir.node.affine import terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate

BANKS = 32
BANK_BYTES = 4
LONGER = (1, 2, 4, 8)
"""Elements that a row may be longer by, if it is not more than twice as long then."""
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
    accesses = [*_accesses(tile, around, readers, vectors)]
    last = len(shape) - 1 - any(access.lanes > 1 for access in accesses)
    longer = [
        (*shape[:n], shape[n] + more, *shape[n + 1 :])
        for n in (last, last - 1)
        for more in LONGER
        if n > 0 and more <= shape[n]
    ]
    nbytes = tile.node.dtype.itemsize
    return min(
        (shape, *longer),
        key=lambda each: (
            sum(_passes(access, each, nbytes) for access in accesses),
            math.prod(each),
        ),
    )


class TileAccess(NamedTuple):
    """A place where a tile is filled or read. `axes`: the extents of those that number the
    work-items, the innermost first; `steps`: how far each of them moves along each dimension of the
    memory; `lanes` of a vector."""

    axes: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    lanes: int


def _access(at: Sequence[UOp], axes: Sequence[UOp], lanes: int) -> TileAccess:
    parts = [terms(split_gate(index)[0])[0] for index in at]
    steps = [tuple([part.get(axis, 0) for part in parts]) for axis in axes]
    return TileAccess(tuple([r.extent for r in axes]), tuple(steps), lanes)


def _accesses(
    tile: Statement,
    around: Sequence[UOp],
    readers: Sequence[Statement],
    vectors: Vectors,
) -> Iterator[TileAccess]:
    """Yield where a tile is filled, and where it is read."""
    items = [r for r in reversed(tile.nest) if r.axis_kind.is_work_item]
    dealt = [r for r in reversed(tile.nest) if r in tile.own]
    at = (*around, *tile.node.src[1:])
    vector = vectors.axes[tile.node]
    is_vector = vector is not None and at[-1] is vector
    yield _access(at, items or dealt, at[-1].extent if is_vector else 1)
    for reader in readers:
        items = [r for r in reversed(reader.nest) if r.axis_kind.is_work_item]
        for node in _sources(reader):
            if node.op is Ops.INDEX and node.src[0] is tile.node:
                at = (*around, *node.src[1:])
                yield _access(at, items, at[-1].extent if _is_lane(at[-1]) else 1)


def _is_lane(index: UOp) -> bool:
    return index.op is Ops.RANGE and index.axis_kind.is_lane


def _sources(reader: Statement) -> Sequence[UOp]:
    """Return the nodes that a statement computes, without those of others."""
    stop = set(reader.reads)
    return [n for s in reader.node.src for n in s.toposort(lambda n: n not in stop)]


def _passes(access: TileAccess, shape: Shape, nbytes: int) -> int:
    """Return how often the banks are read for the first work-items: as many as read one word of
    each bank where they are all different. The lanes of a vector are one access."""
    dimensions = [math.prod(shape[n + 1 :]) for n in range(len(shape))]
    strides = [sum(map(mul, step, dimensions)) for step in access.steps]
    width = max(nbytes * access.lanes, BANK_BYTES)
    in_bank: dict[int, set[int]] = {}
    for number in range(max(1, BANKS * BANK_BYTES // width)):
        rest, at = number, 0
        for extent, stride in zip(access.axes, strides, strict=True):
            at += stride * (rest % extent)
            rest //= extent
        word = at * nbytes // BANK_BYTES
        if not rest:
            in_bank.setdefault(word % BANKS, set()).add(word)
    return max(map(len, in_bank.values()))
