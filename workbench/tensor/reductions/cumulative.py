"""Running reductions: each element combined with all before it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Self

from workbench.base.dtypes import Const, DType
from workbench.ir.gradient.custom import Formula, with_formula
from workbench.ir.node.ops import REDUCTIONS, Ops
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.elementwise.pairs import added_exponentials
from workbench.tensor.movement.movement import padded, reshaped, shrunk
from workbench.tensor.operands.axes import one_axis
from workbench.tensor.operands.broadcast import cast_to, expanded, wide_dtype
from workbench.tensor.operands.literal import as_dtype
from workbench.tensor.operands.numbered import numbered
from workbench.tensor.reductions.reduce import (
    combined,
    exponential_total,
    sum_dtype,
    total_dtype,
)

_DIRECT = 32
_BLOCK = 8
"""Elements of a block. Up to _DIRECT elements every result is a reduction of its own, in one kernel
and quadratic time; longer axes are cut into blocks, and each block is combined with the total of
those before it. In a block each result is one of _BLOCK lanes, to which its elements are added one
by one: _BLOCK operations per result, a vector at a time, and one more kernel for each power of
_BLOCK."""


class Cumulative(Base):
    """cumsum, cumprod, cummax, cummin, logcumsumexp."""

    __slots__ = ()

    def cumsum(self, axis: int = 0, dtype: DType | str | None = None) -> Self:
        """Return at each place along `axis` the sum up to it. Dtypes: as `sum`."""
        return self._accumulated(Ops.ADD, axis, "cumsum", dtype)

    def cumprod(self, axis: int, dtype: DType | str | None = None) -> Self:
        """Return at each place along `axis` the product up to it. Dtypes: as `prod`."""
        return self._accumulated(Ops.MUL, axis, "cumprod", dtype)

    def cummax(self, axis: int = 0) -> tuple[Self, Self]:
        """Return at each place along `axis` the greatest value up to it, and its position.

        NaN is the greatest. Dtypes: positions are int32; of equal values, the last one's.
        """
        return self._extremes(Ops.MAX, axis, "cummax")

    def cummin(self, axis: int = 0) -> tuple[Self, Self]:
        """Return at each place along `axis` the least value up to it, and its position.

        NaN is the least. Dtypes: positions are int32; of equal values, the last one's.
        """
        return self._extremes(Ops.MIN, axis, "cummin")

    def logcumsumexp(self, axis: int = 0) -> Self:
        """Return at each place along `axis` the logarithm of the sum of e ** self up to it, which
        overflows nowhere.

        Dtypes: integers and bools are taken as float32.
        """
        place, value = one_axis(axis, self.ndim, "logcumsumexp"), self._wide()
        scan = Scan(added_exponentials, exponential_total, -math.inf)
        return self._with(_on_axis(scan, value.uop, place)).cast(self._fraction())

    def _extremes(self, op: Ops, axis: int, what: str) -> tuple[Self, Self]:
        place = one_axis(axis, self.ndim, what)
        if self.dtype.is_bool:
            op = Ops.ADD if op is Ops.MAX else Ops.MUL
        values = self._with(_on_axis(scan_of(op, self.dtype), self.uop, place))
        size = self.shape[place] if self.ndim else 1
        column = (size,) + (1,) * (self.ndim - 1 - place) if self.ndim else ()
        numbers = self._with(reshaped(numbered(size), column))
        is_last = self.eq(values)
        if self.dtype.is_float:
            is_last = is_last | self.isnan()
        positions = is_last.where(numbers, -1)
        last = scan_of(Ops.MAX, positions.dtype)
        positions = self._with(_on_axis(last, positions.uop, place))
        if self.dtype.is_float and size > 1:
            formula = Formula("running-extreme", place, _of_extremes)
            sources = self.uop, positions.uop
            values = self._with(with_formula(values.uop, sources, formula))
        return values, positions

    def _accumulated(
        self, op: Ops, axis: int, what: str, dtype: DType | str | None
    ) -> Self:
        place = one_axis(axis, self.ndim, what)
        kind = sum_dtype(self.dtype) if dtype is None else as_dtype(dtype)
        inside = wide_dtype(kind)
        if dtype is None:
            size = self.shape[place] if self.ndim else 1
            inside = total_dtype(op, self.uop, size)
        value = _on_axis(scan_of(op, inside), cast_to(self.uop, inside), place)
        return self._with(cast_to(value, kind))


def _of_extremes(g: UOp, axis: int, x: UOp, positions: UOp) -> list[UOp | None]:
    """Return the gradient of running extrema: of equal values, the one at the position has it."""
    lead, size, rest = _around(x, axis)
    cube, ones = (*lead, size, size, *rest), (1,) * len(rest)
    row = reshaped(cast_to(numbered(size), positions.dtype), (size, 1, *ones))
    places, shares = (
        expanded(reshaped(v, (*lead, 1, size, *rest)), cube) for v in (positions, g)
    )
    is_here = places.eq(expanded(row, cube))
    total = combined(Ops.ADD, is_here.where(shares, g.like(0)), (axis + 1,))
    return [reshaped(total, x.shape), None]


class Scan(NamedTuple):
    """An associative combination: of two values, of all along an axis (which keeps size 1), and
    the value that changes nothing."""

    pair: Callable[[UOp, UOp], UOp]
    total: Callable[[UOp, int], UOp]
    neutral: Const


def scan_of(op: Ops, dtype: DType) -> Scan:
    """Return the combination by a reduction's op."""
    return Scan(
        lambda a, b: a.alu(op, b),
        lambda value, axis: combined(op, value, (axis,)),
        REDUCTIONS[op].identity(dtype),
    )


def _on_axis(scan: Scan, value: UOp, axis: int) -> UOp:
    """Return `value` combined along `axis` up to each element."""
    if not value.size or not value.shape or value.shape[axis] == 1:
        return value
    wide = cast_to(value, wide_dtype(value.dtype))
    return cast_to(_running(scan, wide, axis), value.dtype)


def _running(scan: Scan, value: UOp, axis: int) -> UOp:
    """Return the running combination along `axis`.

    Rewrite: running(x)[i] -> the total over j of x[j] where j <= i, else the neutral value.
    """
    lead, size, rest = _around(value, axis)
    if size > _DIRECT:
        return _in_blocks(scan, value, axis)
    ones = (1,) * len(rest)
    row = reshaped(numbered(size), (1, size, *ones))
    column = reshaped(numbered(size), (size, 1, *ones))
    square, cube = (size, size, *ones), (*lead, size, size, *rest)
    before = expanded(row, square) <= expanded(column, square)
    values = expanded(reshaped(value, (*lead, 1, size, *rest)), cube)
    prefix = expanded(before, cube).where(values, value.like(scan.neutral))
    return reshaped(scan.total(prefix, axis + 1), value.shape)


def _in_blocks(scan: Scan, value: UOp, axis: int) -> UOp:
    lead, size, rest = _around(value, axis)
    count = -(-size // _BLOCK)
    value = _padded(value, axis, (0, count * _BLOCK - size), scan.neutral)
    blocks = reshaped(value, (*lead, count, _BLOCK, *rest))
    totals = reshaped(scan.total(blocks, axis + 1), (*lead, count, *rest))
    # A block follows the total up to the block before; the first follows the neutral value.
    up_to = _cut(_running(scan, totals, axis), axis, count - 1)
    shifted = _padded(up_to, axis, (1, 0), scan.neutral)
    before = expanded(reshaped(shifted, (*lead, count, 1, *rest)), blocks.shape)
    whole = scan.pair(before, _running(scan, blocks, axis + 1))
    return _cut(reshaped(whole, value.shape), axis, size)


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
