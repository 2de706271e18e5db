"""Selection by a mask."""

from __future__ import annotations

from typing import Self

from workbench.base.dtypes import Const, dtypes
from workbench.tensor.base import Base, Operand
from workbench.tensor.operands.arguments import number, plain, whole
from workbench.tensor.operands.broadcast import common_shape, constant
from workbench.tensor.operands.numbered import numbered, position_dtype
from workbench.tensor.operands.refuse import dtype_error

_DIRECT = 1024
"""Elements that each result looks through one by one; of more, it looks through blocks first."""


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
        flag = plain(mask)
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
        """Return the positions of the first `count` true ones of a vector of flags; beyond the
        last of them the length of the vector, or more.

        Rewrite: the position of flag k is how many running sums are at most k.
        """
        length = self.numel()
        number = self._with(numbered(count)).reshape(-1, 1)
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
