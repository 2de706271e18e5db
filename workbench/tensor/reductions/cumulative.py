"""Running reductions: each element combined with all before it."""

from __future__ import annotations

from typing import Self

from workbench.base.dtypes import DType
from workbench.ir.gradient.occurrences import Formula, with_formula
from workbench.ir.node.ops import Ops
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.axes import numbered, one_axis
from workbench.tensor.operands.broadcast import cast_to, wide_dtype
from workbench.tensor.operands.literal import as_dtype
from workbench.tensor.reductions.reduce import sum_dtype, total_dtype
from workbench.tensor.reductions.scans import (
    extremes_gradient,
    running,
    running_exponentials,
    running_product,
    running_sum,
    scan_of,
)


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
        return self._with(running_exponentials(value.uop, place)).cast(self._fraction())

    def _extremes(self, op: Ops, axis: int, what: str) -> tuple[Self, Self]:
        place = one_axis(axis, self.ndim, what)
        if self.dtype.is_bool:
            op = Ops.ADD if op is Ops.MAX else Ops.MUL
        values = self._with(running(scan_of(op, self.dtype), self.uop, place))
        size = self.shape[place] if self.ndim else 1
        column = (size,) + (1,) * (self.ndim - 1 - place) if self.ndim else ()
        numbers = self._with(reshaped(numbered(size), column))
        is_last = self.eq(values)
        if self.dtype.is_float:
            is_last = is_last | self.isnan()
        positions = is_last.where(numbers, -1)
        last = scan_of(Ops.MAX, positions.dtype)
        positions = self._with(running(last, positions.uop, place))
        if self.dtype.is_float and size > 1:
            formula = Formula("running-extreme", place, extremes_gradient)
            sources = self.uop, positions.uop
            values = self._with(with_formula(values.uop, sources, formula))
        return values, positions

    def _accumulated(self, op: Ops, axis: int, what: str, dtype: DType | str | None) -> Self:
        place = one_axis(axis, self.ndim, what)
        kind = sum_dtype(self.dtype) if dtype is None else as_dtype(dtype)
        inside = wide_dtype(kind)
        if dtype is None:
            size = self.shape[place] if self.ndim else 1
            inside = total_dtype(op, self.uop, size)
        combine = running_sum if op is Ops.ADD else running_product
        return self._with(cast_to(combine(cast_to(self.uop, inside), place), kind))
