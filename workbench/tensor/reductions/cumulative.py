"""Running reductions: each element combined with all before it."""

from __future__ import annotations

from typing import Self

from workbench.base.dtypes import Const
from workbench.ir.node.constants import identity
from workbench.ir.node.ops import REDUCTIONS, Ops
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import padded, reshaped, shrunk
from workbench.tensor.operands.axes import one_axis
from workbench.tensor.operands.broadcast import cast_to, expanded, wide_dtype
from workbench.tensor.operands.numbered import numbered
from workbench.tensor.reductions.reduce import combined, sum_dtype

_DIRECT = 32
_BLOCK = 8
"""Elements of a block. Up to _DIRECT elements every result is a reduction of its own, in one kernel
and quadratic time; longer axes are cut into blocks, and each block is combined with the total of
those before it. In a block each result is one of _BLOCK lanes, to which its elements are added one
by one: _BLOCK operations per result, a vector at a time, and one more kernel for each power of
_BLOCK."""


class Cumulative(Base):
    """cumsum, cumprod, cummax."""

    __slots__ = ()

    def cumsum(self, axis: int = 0) -> Self:
        """Return at each place along `axis` the sum up to it. Dtypes: as `sum`."""
        return self._accumulated(Ops.ADD, axis, "cumsum")

    def cumprod(self, axis: int) -> Self:
        """Return at each place along `axis` the product up to it. Dtypes: as `prod`."""
        return self._accumulated(Ops.MUL, axis, "cumprod")

    def cummax(self, axis: int = 0) -> tuple[Self, Self]:
        """Return at each place along `axis` the greatest value up to it, and its position.

        NaN is the greatest. Dtypes: positions are int32; of equal values, the last one's.
        """
        place = one_axis(axis, self.ndim, "cummax")
        op = Ops.ADD if self.dtype.is_bool else Ops.MAX
        values = self._with(_on_axis(op, self.uop, place))
        size = self.shape[place] if self.ndim else 1
        column = (size,) + (1,) * (self.ndim - 1 - place) if self.ndim else ()
        numbers = self._with(reshaped(numbered(size), column))
        is_last = self.eq(values)
        if self.dtype.is_float:
            is_last = is_last | self.isnan()
        positions = is_last.where(numbers, -1)
        return values, self._with(_on_axis(Ops.MAX, positions.uop, place))

    def _accumulated(self, op: Ops, axis: int, what: str) -> Self:
        place, kind = one_axis(axis, self.ndim, what), sum_dtype(self.dtype)
        return self._with(_on_axis(op, cast_to(self.uop, kind), place))


def _on_axis(op: Ops, value: UOp, axis: int) -> UOp:
    """Return `value` combined along `axis` up to each element."""
    if not value.size or not value.shape or value.shape[axis] == 1:
        return value
    wide = cast_to(value, wide_dtype(value.dtype))
    return cast_to(_running(op, wide, axis), value.dtype)


def _running(op: Ops, value: UOp, axis: int) -> UOp:
    """Return the running reduction along `axis`.

    Rewrite: running(x)[i] -> the reduction over j of x[j] where j <= i, else the op's identity.
    """
    lead, size, rest = _around(value, axis)
    if size > _DIRECT:
        return _in_blocks(op, value, axis)
    ones = (1,) * len(rest)
    row = reshaped(numbered(size), (1, size, *ones))
    column = reshaped(numbered(size), (size, 1, *ones))
    square, cube = (size, size, *ones), (*lead, size, size, *rest)
    before = expanded(row, square) <= expanded(column, square)
    values = expanded(reshaped(value, (*lead, 1, size, *rest)), cube)
    prefix = expanded(before, cube).where(values, identity(op, value.dtype))
    return reshaped(combined(op, prefix, (axis + 1,)), value.shape)


def _in_blocks(op: Ops, value: UOp, axis: int) -> UOp:
    lead, size, rest = _around(value, axis)
    count, neutral = -(-size // _BLOCK), REDUCTIONS[op].identity(value.dtype)
    value = _padded(value, axis, (0, count * _BLOCK - size), neutral)
    blocks = reshaped(value, (*lead, count, _BLOCK, *rest))
    totals = reshaped(combined(op, blocks, (axis + 1,)), (*lead, count, *rest))
    # A block follows the total up to the block before; the first follows the identity.
    up_to = _cut(_running(op, totals, axis), axis, count - 1)
    before = reshaped(_padded(up_to, axis, (1, 0), neutral), (*lead, count, 1, *rest))
    scan = expanded(before, blocks.shape).alu(op, _running(op, blocks, axis + 1))
    return _cut(reshaped(scan, value.shape), axis, size)


def _around(value: UOp, axis: int) -> tuple[Shape, int, Shape]:
    """Return the axes before `axis`, its size, and those after it."""
    return value.shape[:axis], value.shape[axis], value.shape[axis + 1 :]


def _padded(value: UOp, axis: int, sides: tuple[int, int], fill: Const) -> UOp:
    lead, _, rest = _around(value, axis)
    none = (0, 0)
    return padded(value, (*(none,) * len(lead), sides, *(none,) * len(rest)), fill)


def _cut(value: UOp, axis: int, size: int) -> UOp:
    """Return the first `size` elements along `axis`."""
    box = [(0, n) for n in value.shape]
    box[axis] = (0, size)
    return shrunk(value, tuple(box))
