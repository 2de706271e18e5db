"""Running reductions: each element combined with all before it."""

from __future__ import annotations

from typing import Self

from workbench.dtypes import Const, dtypes
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp
from workbench.tensor.axes import one_axis
from workbench.tensor.broadcast import cast_to, expanded, wide_dtype
from workbench.tensor.movement import padded, reshaped, shrunk
from workbench.tensor.numbered import numbered
from workbench.tensor.reduce import combined, sum_dtype
from workbench.tensor.statistics import Statistics

_DIRECT = 128
_BLOCK = 64
"""Up to _DIRECT elements every one is combined anew, quadratic and one kernel; longer axes go
in blocks of _BLOCK, each after what all blocks before it come to."""


class Cumulative(Statistics):
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
        chosen = self.eq(values)
        if self.dtype.is_float:
            chosen = chosen | self.isnan()
        positions = chosen.where(numbers, -1)
        return values, self._with(_on_axis(Ops.MAX, positions.uop, place))

    def _accumulated(self, op: Ops, axis: int, what: str) -> Self:
        place, kind = one_axis(axis, self.ndim, what), sum_dtype(self.dtype)
        return self._with(_on_axis(op, cast_to(self.uop, kind), place))


def _on_axis(op: Ops, value: UOp, axis: int) -> UOp:
    """Return `value` combined along `axis` up to each element."""
    if not value.size or not value.shape or value.shape[axis] == 1:
        return value
    kind, value = value.dtype, cast_to(value, wide_dtype(value.dtype))
    last = len(value.shape) - 1
    order = tuple(
        last if i == axis else axis if i == last else i for i in range(last + 1)
    )
    if axis == last:
        return cast_to(_running(op, value), kind)
    moved = UOp(Ops.PERMUTE, value.dtype, (value,), order)
    made = UOp(Ops.PERMUTE, value.dtype, (_running(op, moved),), order)
    return cast_to(made, kind)


def _running(op: Ops, value: UOp) -> UOp:
    """Return the running reduction of the last axis.

    Rewrite: running(x)[i] -> the reduction over j of x[j] where j <= i, else the op's identity.
    """
    *lead, size = value.shape
    if size > _DIRECT:
        return _in_blocks(op, value)
    row, column = (
        reshaped(numbered(size), (1, size)),
        reshaped(numbered(size), (size, 1)),
    )
    square, cube = (size, size), (*lead, size, size)
    before = expanded(row, square).alu(Ops.CMPLE, expanded(column, square))
    held = expanded(reshaped(value, (*lead, 1, size)), cube)
    chosen = expanded(before, cube).where(held, value.like(_identity(op, value)))
    made = combined(op, chosen, (len(lead) + 1,))
    return reshaped(made, (*lead, size))


def _in_blocks(op: Ops, value: UOp) -> UOp:
    *lead, size = value.shape
    axis, count = len(lead), -(-size // _BLOCK)
    identity = _identity(op, value)
    more = ((0, 0),) * axis + ((0, count * _BLOCK - size),)
    blocks = reshaped(padded(value, more, identity), (*lead, count, _BLOCK))
    totals = combined(op, blocks, (axis + 1,))
    up_to = _running(op, reshaped(totals, (*lead, count)))
    # What is before a block is the total up to the block before; before the first, nothing.
    whole = tuple((0, n) for n in lead)
    before = padded(
        shrunk(up_to, (*whole, (0, count - 1))), ((0, 0),) * axis + ((1, 0),), identity
    )
    before = expanded(reshaped(before, (*lead, count, 1)), (*lead, count, _BLOCK))
    made = before.alu(op, _running(op, blocks))
    return shrunk(reshaped(made, (*lead, count * _BLOCK)), (*whole, (0, size)))


def _identity(op: Ops, value: UOp) -> Const:
    """Return what changes nothing: x op it = x."""
    if op is Ops.MAX:
        return value.dtype.min
    return 1 if op is Ops.MUL and value.dtype is not dtypes.bool else 0
