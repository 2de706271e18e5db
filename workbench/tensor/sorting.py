"""Sorting: keys, networks, selection, and sort, argsort and topk.

Sections: Sort keys; Sorting networks of packed keys; Selection by a mask; sort, argsort, topk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Never, Self

from workbench.base.dtypes import Const, dtypes
from workbench.ir.node.construct import contiguous
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base, Operand
from workbench.tensor.movement.movement import flipped, padded, reshaped, shrunk
from workbench.tensor.operands.arguments import (
    dtype_error,
    flag,
    number,
    python_scalar,
    refuse_keywords,
    shape_error,
    short,
    whole,
)
from workbench.tensor.operands.axes import iota, one_axis, position_dtype
from workbench.tensor.operands.broadcast import cast_to, common_shape, constant, expanded
from workbench.tensor.reductions.reduce import combined

# --------------------------------------------------------------------------------------------------
# Sort keys: integers that compare as the values do, of every dtype, in either direction.
#
# Keys are ordered as values are in PyTorch: NaN is the greatest, and -0.0 equals 0.0. A *packed*
# key is int64, the key above the position: no two are equal, so that any way to sort them keeps the
# order of equal values.

_POSITION_BITS = 32
_SIGN = -(1 << 31)


def keys_of(value: UOp, descending: bool) -> tuple[UOp, ...]:
    """Return the int32 keys of `value`: one, or for 64 bits two, the most significant last."""
    dtype = value.dtype
    if dtype.is_float:
        key = _float_key(value)
    elif dtype.kind == "uint" and dtype.bits >= 32:
        signed = dtypes.int64 if dtype.bits == 64 else dtypes.int32
        key = value.bitcast(signed) ^ signed.min
    else:
        key = cast_to(value, dtype if dtype.bits == 64 else dtypes.int32)
    key = ~key if descending else key
    if key.dtype is dtypes.int32:
        return (key,)
    # The lower half has no sign of its own.
    low = cast_to(key & 0xFFFFFFFF, dtypes.uint32).bitcast(dtypes.int32) ^ _SIGN
    return low, cast_to(key.alu(Ops.SHR, key.like(32)), dtypes.int32)


def packed(key: UOp) -> UOp:
    """Return the packed keys of int32 `key`, with the positions along its last axis."""
    position = expanded(iota(key.shape[-1], dtypes.int64), key.shape)
    wide = cast_to(key, dtypes.int64)
    return wide.alu(Ops.SHL, wide.like(_POSITION_BITS)) | position


def positions(pairs: UOp) -> UOp:
    """Return the positions, int32, of packed keys."""
    return cast_to(pairs & 0xFFFFFFFF, dtypes.int32)


def _float_key(value: UOp) -> UOp:
    """Return integers in the order of floats, which have a sign and a magnitude."""
    wide = cast_to(value, dtypes.float64 if value.dtype.bits == 64 else dtypes.float32)
    bits = wide.bitcast(dtypes.int64 if wide.dtype.bits == 64 else dtypes.int32)
    most = int(bits.dtype.max)
    key = (bits < 0).where(bits ^ most, bits)
    key = wide.eq(wide.like(0)).where(key.like(0), key)
    return wide.ne(wide).where(key.like(most), key)


# --------------------------------------------------------------------------------------------------
# Sorting networks of packed keys: blocks sorted by rank, then bitonic merges.
#
# A block is sorted by counting: the rank of a key is the number of lesser keys, and the element of
# rank k is the one term of a sum. That is quadratic in the block and two kernels. Blocks are merged
# by compare and exchange at distances that halve: the length is a power of two, filled with keys
# greater than all others. Two exchanges are one kernel, in which each key is computed from the four
# that it depends on.
#
# Source: Batcher's bitonic merge sort, 1968, in the variant whose first exchange of a merge is with
# the block reversed.

MOST_RANKED = 256
"""The maximal number of keys of an axis that is sorted by rank alone."""
_BLOCK = 64
"""Keys of a block of a longer axis: merging up to here takes more kernels than counting."""
_EXCHANGES = 2
"""Exchanges in a kernel: each doubles the keys that one depends on."""
_GREATEST_KEY = int(dtypes.int64.max)


def sorted_keys(keys: UOp) -> UOp:
    """Return packed `keys`, (rows, n), with each row in ascending order."""
    rows, count = keys.shape
    if count <= MOST_RANKED:
        return _least(reshaped(keys, (rows, 1, count)), count)
    size = 1 << (count - 1).bit_length()
    keys = _least(_blocks(keys, _BLOCK, size - count, 0), _BLOCK)
    for group in _groups(size):
        keys = contiguous(keys)
        for distance, is_reversed in group:
            keys = _exchanged(keys, distance, is_reversed)
    return _head(keys, count)


def least_keys(keys: UOp, number: int) -> UOp:
    """Return the `number` least of packed `keys`, (rows, n), in ascending order.

    Where these are few, each block keeps its own `number` least keys, until one block is left.
    """
    rows, count = keys.shape
    if number > MOST_RANKED // 2:
        return _head(sorted_keys(keys), number)
    padding = 0
    while count > MOST_RANKED:
        missing = -count % MOST_RANKED
        blocks = _blocks(keys, MOST_RANKED, missing, padding)
        keys = contiguous(_least(blocks, number))
        padding += missing
        count = keys.shape[1]
    return _least(reshaped(keys, (rows, 1, count)), min(number, count))


def _least(blocks: UOp, number: int) -> UOp:
    """Return the `number` least keys of each block, in order; (rows, blocks, n) -> (rows, m)."""
    rows, count, size = blocks.shape
    square = (rows, count, size, size)
    each = expanded(reshaped(blocks, (rows, count, size, 1)), square)
    other = expanded(reshaped(blocks, (rows, count, 1, size)), square)
    rank = contiguous(combined(Ops.ADD, cast_to(other < each, dtypes.int32), (3,)))
    wide = (rows, count, number, size)
    row = expanded(reshaped(rank, (rows, count, 1, size)), wide)
    column = expanded(reshaped(iota(number), (1, 1, number, 1)), wide)
    key = expanded(reshaped(blocks, (rows, count, 1, size)), wide)
    least = combined(Ops.ADD, row.eq(column).where(key, key.like(0)), (3,))
    return reshaped(least, (rows, count * number))


def _blocks(keys: UOp, size: int, missing: int, padding: int) -> UOp:
    """Return (rows, blocks, `size`), with `missing` keys more. These are greater than all others
    but the `padding` keys that were added before; no two are equal."""
    rows, count = keys.shape
    whole = (rows, count + missing)
    if missing:
        place = expanded(iota(whole[1], dtypes.int64), whole)
        greatest = place * -1 + (_GREATEST_KEY - padding + count)
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
    """Return `keys` with the lesser of each pair first. Pairs are `distance` apart; if reversed,
    the first and the last of 2 * `distance` keys, the second and the last but one, and so on."""
    rows, count = keys.shape
    pairs = (rows, count // (2 * distance), 2, distance)
    near = reshaped(keys, pairs)
    far = flipped(near, (2, 3) if is_reversed else (2,))
    half = reshaped(iota(2), (1, 1, 2, 1))
    ordered = expanded(half < 1, pairs).where(near.min(far), near.max(far))
    return reshaped(ordered, keys.shape)


def _head(keys: UOp, count: int) -> UOp:
    return shrunk(keys, ((0, keys.shape[0]), (0, count)))


# --------------------------------------------------------------------------------------------------
# Selection by a mask.

_DIRECT = 1024
"""Up to this number of elements, each result searches them one by one; among more, it searches
blocks first."""


class Selection(Base):
    """masked_fill, masked_select, nonzero."""

    __slots__ = ()

    def masked_fill(self, mask: Self, value: Operand) -> Self:
        """Return `value` where `mask` is true, and this tensor's elements elsewhere.

        Errors: DTypeError unless the mask is of bools.
        """
        return self._mask("masked_fill", mask).where(value, self)

    def masked_select(self, mask: Self, size: int | None = None, fill_value: Const = 0) -> Self:
        """Return the elements where `mask` is true, in row-major order, as a vector.

        Shapes: mask and tensor broadcast. With `size` there are `size` elements, the last ones
        `fill_value` if too few are true; without it the mask is computed to count them.
        Errors: DTypeError unless the mask is of bools.
        """
        mask = self._mask("masked_select", mask)
        shape = common_shape("select by a mask from", mask.shape, self.shape)
        flags, flat = mask.expand(shape).reshape(-1), self.expand(shape).reshape(-1)
        count = flags._true_count("masked_select", size)
        index = flags._true_positions(count)
        fill = number(fill_value, "masked_select: fill_value")
        elements = flat._elements_at(0, index)
        if size is None:
            return elements
        inside = index.lt(flags.numel())
        return inside.where(elements, self._lift(fill, "select").cast(self.dtype))

    def nonzero(self, size: int | None = None, fill_value: Const = 0) -> Self:
        """Return the positions of the elements that are not 0, in row-major order.

        Shapes: (number, axes). With `size` there are `size` rows, the last ones `fill_value` if
        there are too few; without it the tensor is computed to count them. Dtypes: int32.
        """
        flags = self.ne(0).reshape(-1)
        count = flags._true_count("nonzero", size)
        number(fill_value, "nonzero: fill_value")
        fill = self.full((), fill_value, dtypes.int32, self._device)
        if not self.ndim or not count:
            return fill.expand(count, self.ndim)
        index = flags._true_positions(count)
        columns, rest = [], index
        for length in reversed(self.shape):
            columns.append(rest.mod(max(1, length)))
            rest = rest.div(max(1, length), rounding_mode="floor")
        table = columns[-1].stack(*columns[-2::-1], dim=1)
        if size is None:
            return table
        inside = index.lt(flags.numel()).unsqueeze(1)
        return inside.where(table, fill)

    def _mask(self, what: str, mask: Self) -> Self:
        flag = python_scalar(mask)
        condition = (
            self._with(constant(dtypes.bool, flag, what))
            if isinstance(flag, bool)
            else self._lift(mask, what)
        )
        if not condition.dtype.is_bool:
            raise dtype_error(
                f"{what}: a mask of {condition.dtype} does not fit",
                "a mask is of bools",
                "mask != 0",
            )
        return condition

    def _true_count(self, what: str, size: int | None) -> int:
        """Return `size`, or how many flags are true."""
        if size is not None:
            return whole(size, f"{what}: size", 0)
        return int(self.sum().item()) if self.numel() else 0

    def _true_positions(self, count: int) -> Self:
        """Return the positions of the first `count` true flags of a vector; where there are no
        more, the length of the vector, or more.

        Rewrite: the position of flag k is how many running sums are at most k.
        """
        length = self.numel()
        number = self._with(iota(count)).reshape(-1, 1)
        if not length:
            return self.full((count,), 0, dtypes.int32, self._device)
        kind = position_dtype(length + count)
        running = self.cumsum(0, kind)
        if length <= _DIRECT:
            return running.le(number).sum(1, dtype=kind)
        block = 1 << (length.bit_length() + 1) // 2
        blocks = -(-length // block)
        whole_blocks = running.pad([(0, blocks * block - length)], value=length + count)
        table = whole_blocks.contiguous().reshape(blocks, block)
        ends = table.shrink([None, (block - 1, block)]).squeeze(1)
        row = ends.le(number).sum(1, dtype=kind)
        inside = table._elements_at(0, row).le(number).sum(1, dtype=kind)
        return row * block + inside


# --------------------------------------------------------------------------------------------------
# sort, argsort, topk: positions in the order of the values, and the values at these positions.


class Sorting(Base):
    """sort, argsort, topk.

    Equal values stay in their order, whichever the direction. NaN is the greatest value, and -0.0
    equals 0.0, as in PyTorch. Positions are int32.
    """

    __slots__ = ()

    def sort(self, dim: int = -1, descending: bool = False, **others: Never) -> tuple[Self, Self]:
        """Return the values along axis `dim` in order, and the positions they come from.

        Errors: AxisError if there is no such axis.
        """
        if others:
            refuse_keywords(Sorting.sort, others)
        index = self._positions_in_order("sort", dim, descending)
        return self.gather(dim, index), index

    def argsort(self, dim: int = -1, descending: bool = False, **others: Never) -> Self:
        """Return the positions that put axis `dim` in order, as `sort` does."""
        if others:
            refuse_keywords(Sorting.argsort, others)
        return self._positions_in_order("argsort", dim, descending)

    def topk(
        self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True
    ) -> tuple[Self, Self]:
        """Return the `k` largest values (or least) along axis `dim`, in order, and their
        positions; they are in order also where `sorted_` is False.

        Errors: ShapeError if `k` is negative, or larger than the axis.
        """
        flag(sorted_, "topk: sorted_")
        is_largest = flag(largest, "topk: largest")
        axis = one_axis(dim, self.ndim, "topk")
        number, size = whole(k, "topk: k", 0), self.shape[axis] if self.ndim else 1
        if number > size:
            raise shape_error(
                f"cannot take the {short(number)} {'largest' if is_largest else 'least'} values"
                f" along axis {axis} of shape {self.shape}",
                f"the axis has {size} elements",
                f"topk({size}, {dim})",
            )
        index = self._positions_in_order("topk", dim, is_largest, number)
        return self.gather(dim, index), index

    def _positions_in_order(
        self, what: str, dim: int, descending: bool, number: int | None = None
    ) -> Self:
        """Return the positions of the first `number` values (None: all), in order."""
        axis = one_axis(dim, self.ndim, what)
        reverse = flag(descending, f"{what}: descending")
        if not self.ndim:
            return self.full((), 0, dtypes.int32, self._device)
        last = self.transpose(axis, -1)
        *lead, size = last.shape
        count = size if number is None else number
        shape = (*lead, count)
        if 0 in (*shape, size):
            index = self.full(shape, 0, dtypes.int32, self._device)
        else:
            rows = last.reshape(-1, size)
            index = rows._row_positions(reverse, count).reshape(shape)
        return index.transpose(axis, -1)

    def _row_positions(self, descending: bool, number: int) -> Self:
        """Return the positions of the `number` first elements of each row in order.

        Keys of two halves are sorted by the lower one, and then, in that order, by the upper.
        """
        key, *upper = keys_of(self.uop, descending)
        if not upper:
            return self._with(positions(least_keys(packed(key), number)))
        by_lower = self._with(positions(sorted_keys(packed(key))))
        key = self._with(upper[0]).gather(1, by_lower).uop
        by_upper = self._with(positions(least_keys(packed(key), number)))
        return by_lower.gather(1, by_upper)
