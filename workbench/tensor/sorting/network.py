"""Sorting networks of packed keys: blocks sorted by rank, then bitonic merges.

A block is sorted by counting: the rank of a key is how many are less, and the element of rank k is
the one term of a sum. That is quadratic in the block and two kernels. Blocks are merged by compare
and exchange at distances that halve: the length is a power of two, filled with keys greater than
all others. Two exchanges are one kernel, in which each key is computed from the four that it
depends on.

Source: Batcher's bitonic merge sort, 1968, in the variant whose first exchange of a merge is with
the block reversed.
"""

from __future__ import annotations

from collections.abc import Iterator

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.movement.movement import flipped, padded, reshaped, shrunk
from workbench.tensor.operands.broadcast import cast_to, expanded
from workbench.tensor.operands.numbered import numbered
from workbench.tensor.reductions.reduce import combined

MOST_RANKED = 256
"""Keys of an axis that is sorted by rank alone."""
_BLOCK = 64
"""Keys of a block of a longer axis: merging up to here takes more kernels than counting."""
_EXCHANGES = 2
"""Exchanges in a kernel: each doubles the keys that one depends on."""
_MOST = int(dtypes.int64.max)


def in_order(keys: UOp) -> UOp:
    """Return packed `keys`, (rows, n), with each row in ascending order."""
    rows, count = keys.shape
    if count <= MOST_RANKED:
        return _least(reshaped(keys, (rows, 1, count)), count)
    size = 1 << (count - 1).bit_length()
    keys = _least(_blocks(keys, _BLOCK, size - count, 0), _BLOCK)
    for group in _groups(size):
        keys = _stored(keys)
        for distance, is_reversed in group:
            keys = _exchanged(keys, distance, is_reversed)
    return _head(keys, count)


def first_in_order(keys: UOp, number: int) -> UOp:
    """Return the `number` least of packed `keys`, (rows, n), in ascending order.

    Where these are few, each block keeps its own `number` least keys, until one block is left.
    """
    rows, count = keys.shape
    if number > MOST_RANKED // 2:
        return _head(in_order(keys), number)
    padding = 0
    while count > MOST_RANKED:
        missing = -count % MOST_RANKED
        blocks = _blocks(keys, MOST_RANKED, missing, padding)
        keys = _stored(_least(blocks, number))
        padding += missing
        count = keys.shape[1]
    return _least(reshaped(keys, (rows, 1, count)), min(number, count))


def _least(blocks: UOp, number: int) -> UOp:
    """Return the `number` least keys of each block, in order; (rows, blocks, n) -> (rows, m)."""
    rows, count, size = blocks.shape
    square = (rows, count, size, size)
    each = expanded(reshaped(blocks, (rows, count, size, 1)), square)
    other = expanded(reshaped(blocks, (rows, count, 1, size)), square)
    rank = _stored(combined(Ops.ADD, cast_to(other < each, dtypes.int32), (3,)))
    wide = (rows, count, number, size)
    row = expanded(reshaped(rank, (rows, count, 1, size)), wide)
    column = expanded(reshaped(numbered(number), (1, 1, number, 1)), wide)
    key = expanded(reshaped(blocks, (rows, count, 1, size)), wide)
    least = combined(Ops.ADD, row.eq(column).where(key, key.like(0)), (3,))
    return reshaped(least, (rows, count * number))


def _blocks(keys: UOp, size: int, missing: int, padding: int) -> UOp:
    """Return (rows, blocks, `size`), with `missing` keys more. These are greater than all others,
    and than the `padding` keys that were added before: no two are equal."""
    rows, count = keys.shape
    whole = (rows, count + missing)
    if missing:
        place = expanded(numbered(whole[1], dtypes.int64), whole)
        greatest = place * -1 + (_MOST - padding + count)
        inside = place < count
        keys = inside.where(padded(keys, ((0, 0), (0, missing))), greatest)
    return reshaped(keys, (rows, whole[1] // size, size))


def _groups(count: int) -> Iterator[list[tuple[int, bool]]]:
    """Yield the exchanges of each kernel: the distance, and whether it is in reverse."""
    exchanges = []
    size = 2 * _BLOCK
    while size <= count:
        exchanges.append((size // 2, True))
        distance = size // 4
        while distance:
            exchanges.append((distance, False))
            distance //= 2
        size *= 2
    for first in range(0, len(exchanges), _EXCHANGES):
        yield exchanges[first : first + _EXCHANGES]


def _exchanged(keys: UOp, distance: int, is_reversed: bool) -> UOp:
    """Return `keys` with the lesser of each pair first: of keys `distance` apart, or in reverse of
    the first and the last of 2 * `distance` keys, the second and the last but one, and so on."""
    rows, count = keys.shape
    pairs = (rows, count // (2 * distance), 2, distance)
    near = reshaped(keys, pairs)
    far = flipped(near, (2, 3) if is_reversed else (2,))
    half = reshaped(numbered(2), (1, 1, 2, 1))
    ordered = expanded(half < 1, pairs).where(near.min(far), near.max(far))
    return reshaped(ordered, keys.shape)


def _head(keys: UOp, count: int) -> UOp:
    return shrunk(keys, ((0, keys.shape[0]), (0, count)))


def _stored(value: UOp) -> UOp:
    return UOp(Ops.CONTIGUOUS, value.dtype, (value,))
