"""Reductions: axes combined to one element each."""

from __future__ import annotations

import math
from typing import Never, Self

from workbench.base.dtypes import Const, DType, dtypes
from workbench.ir.functions.formulas import absolute
from workbench.ir.gradient.occurrences import independent
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.arguments import flag, refuse_keywords, shape_error
from workbench.tensor.operands.axes import Axes, iota, many_axes, one_axis
from workbench.tensor.operands.broadcast import cast_to, expanded, wide_dtype
from workbench.tensor.operands.literal import as_dtype


class Reduce(Base):
    """sum, prod, mean, max, min, any, all, argmax, argmin.

    Shapes: `axis` is one axis, several, or None for all; `keepdim` keeps them with size 1.
    """

    __slots__ = ()

    def sum(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        dtype: DType | str | None = None,
        **others: Never,
    ) -> Self:
        """Return the sum over `axis`; 0 over no elements.

        Dtypes: bool and integers give int64, uint64 gives uint64; floats below 32 bits are summed
        in float32; with `dtype` the values are cast before (to float32 if it is a float below 32
        bits), and the result has it.
        """
        if others:
            refuse_keywords(Reduce.sum, others)
        return self._accumulate(Ops.ADD, axis, keepdim, dtype, 0)

    def prod(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        dtype: DType | str | None = None,
        **others: Never,
    ) -> Self:
        """Return the product over `axis`; 1 over no elements. Dtypes: as `sum`."""
        if others:
            refuse_keywords(Reduce.prod, others)
        return self._accumulate(Ops.MUL, axis, keepdim, dtype, 1)

    def mean(self, axis: Axes = None, keepdim: bool = False, **others: Never) -> Self:
        """Return the mean over `axis`; NaN over no elements.

        Dtypes: bool and integers give float32; integers below 64 bits are summed exactly.
        """
        if others:
            refuse_keywords(Reduce.mean, others)
        axes = many_axes(axis, self.ndim, "mean")
        count = math.prod(self.shape[a] for a in axes)
        kind = self.dtype if self.dtype.is_float else dtypes.default_float
        wide = wide_dtype(kind)
        # A sum of float16 may be too large for float16, and one of int64 too large for int64.
        value = self if self.dtype.bits <= 32 and not self.dtype.is_float else self.cast(wide)
        return (value.sum(axis, keepdim).cast(wide) / count).cast(kind)

    def max(self, axis: Axes = None, keepdim: bool = False, **others: Never) -> Self:
        """Return the greatest value over `axis`; NaN if there is one.

        Errors: ShapeError for a result element over no elements.
        """
        if others:
            refuse_keywords(Reduce.max, others)
        op = Ops.ADD if self.dtype.is_bool else Ops.MAX
        return self._combine(op, axis, keepdim, "max")

    def min(self, axis: Axes = None, keepdim: bool = False, **others: Never) -> Self:
        """Return the least value over `axis`; NaN if there is one.

        Errors: ShapeError for a result element over no elements.
        """
        if others:
            refuse_keywords(Reduce.min, others)
        op = Ops.MUL if self.dtype.is_bool else Ops.MIN
        return self._combine(op, axis, keepdim, "min")

    def any(self, axis: Axes = None, keepdim: bool = False, **others: Never) -> Self:
        """Return whether any value over `axis` is true; False over no elements."""
        if others:
            refuse_keywords(Reduce.any, others)
        return self.cast(dtypes.bool)._combine(Ops.ADD, axis, keepdim, "any", False)

    def all(self, axis: Axes = None, keepdim: bool = False, **others: Never) -> Self:
        """Return whether all values over `axis` are true; True over no elements."""
        if others:
            refuse_keywords(Reduce.all, others)
        return self.cast(dtypes.bool)._combine(Ops.MUL, axis, keepdim, "all", True)

    def argmax(self, axis: int | None = None, keepdim: bool = False, **others: Never) -> Self:
        """Return the first position of the greatest value (of a NaN, if there is one), as int32
        (int64 if there are 2**31 positions or more).

        Shapes: None for `axis` means the position in row-major order.
        """
        if others:
            refuse_keywords(Reduce.argmax, others)
        return self._position_of("argmax", axis, keepdim)

    def argmin(self, axis: int | None = None, keepdim: bool = False, **others: Never) -> Self:
        """Return the first position of the least value, as `argmax` does.

        Shapes: None for `axis` means the position in row-major order.
        """
        if others:
            refuse_keywords(Reduce.argmin, others)
        return self._position_of("argmin", axis, keepdim)

    def _accumulate(
        self, op: Ops, axis: Axes, keepdim: bool, dtype: DType | str | None, empty: Const
    ) -> Self:
        what = "sum" if op is Ops.ADD else "prod"
        count = math.prod(self.shape[a] for a in many_axes(axis, self.ndim, what))
        kind = sum_dtype(self.dtype) if dtype is None else as_dtype(dtype)
        inside = total_dtype(op, self.uop, count) if dtype is None else wide_dtype(kind)
        value = self._with(cast_to(self.uop, inside))
        return value._combine(op, axis, keepdim, what, empty).cast(kind)

    def _combine(
        self, op: Ops, axis: Axes, keepdim: bool, what: str, empty: Const | None = None
    ) -> Self:
        axes = many_axes(axis, self.ndim, what)
        shape = reduced_shape(self.shape, axes, keepdim)
        if any(self.shape[i] == 0 for i in axes):
            if empty is None and 0 not in shape:
                raise self._nothing_to(what, axes)
            nothing = expanded(self.uop.like(empty or 0), shape)
            return self._with(independent(nothing, self.uop))
        # An axis of size 1 needs no reduction.
        long = tuple(i for i in axes if self.shape[i] != 1)
        value = self.uop
        if long:
            value = combined(op, value, long)
        return self._with(reshaped(value, shape))

    def _position_of(self, what: str, axis: int | None, keepdim: bool) -> Self:
        if axis is None:
            if not self.numel():
                raise self._nothing_to(what, tuple(range(self.ndim)))
            position = self.reshape(-1)._position_of(what, 0, False)
            keeps_axes = flag(keepdim, "keepdim")
            return position.reshape((1,) * self.ndim) if keeps_axes else position
        place = one_axis(axis, self.ndim, what)
        size = self.shape[place] if self.ndim else 1
        if size == 0 and 0 not in reduced_shape(self.shape, (place,), False):
            raise self._nothing_to(what, (place,))
        best = (self.max if what == "argmax" else self.min)(axis, keepdim=True)
        # If there is a NaN, `best` is NaN, which equals nothing: then the NaNs themselves count.
        is_best = self.eq(best)
        if self.dtype.is_float:
            is_best = is_best | self.isnan()
        column = (size,) + (1,) * (self.ndim - 1 - place) if self.ndim else ()
        positions = self._with(reshaped(iota(size), column))
        return is_best.where(positions, size).min(axis, keepdim)

    def _nothing_to(self, what: str, axes: tuple[int, ...]) -> Exception:
        empty = [i for i in axes if self.shape[i] == 0]
        return shape_error(
            f"cannot take the {what} over axis {empty[0]} of shape {self.shape}",
            "it has no elements, so there is no greatest or least one",
            "check for .numel() == 0 first, or pad",
        )


def sum_dtype(dtype: DType) -> DType:
    """Return the dtype of a sum of `dtype`: itself for floats and uint64, int64 for bools and other
    integers."""
    return dtype if dtype.is_float or dtype is dtypes.uint64 else dtypes.int64


def total_dtype(op: Ops, value: UOp, count: int) -> DType:
    """Return the dtype in which up to `count` elements of `value` are added or multiplied, before
    the total is cast to `sum_dtype`. For integers it is int32 if no total exceeds that: vectors
    have half as many lanes of 64 bits."""
    if value.dtype.is_float:
        return wide_dtype(value.dtype)
    size = max(abs(int(bound)) for bound in value.bounds)
    if op is Ops.MUL:
        is_small = size <= 1 or count * math.log2(size) < 31
    else:
        is_small = size * count <= dtypes.int32.max
    return dtypes.int32 if is_small else sum_dtype(value.dtype)


def modular_dtype(dtype: DType) -> DType:
    """Return the dtype in which products are added before their sum is cast to `dtype`. Integers
    wrap, so they need no more bits than `dtype`, but have at least 32, as processors do."""
    if not dtype.is_int:
        return wide_dtype(dtype)
    least = dtypes.uint32 if dtype.kind == "uint" else dtypes.int32
    return max(dtype, least, key=lambda kind: kind.bits)


def combined(op: Ops, value: UOp, axes: tuple[int, ...]) -> UOp:
    """Return `value` combined over `axes`, which keep size 1: what every reduction of a tensor
    calls. Low-precision floats are combined in float32, and the result is cast back."""
    wide = cast_to(value, wide_dtype(value.dtype))
    return cast_to(construct.reduce_axis(wide, axes, op), value.dtype)


def exponential_total(value: UOp, axes: tuple[int, ...], inside: UOp | None = None) -> UOp:
    """Return log(sum(e ** value)) of a float of at least 32 bits over `axes`, which keep size 1: of
    all elements, or of those `inside`.

    The greatest value is subtracted first and added last, unless it is infinite.
    """
    candidates = value
    if inside is not None:
        candidates = inside.where(value, value.like(-math.inf))
    # The result does not depend on what is subtracted, so neither does its gradient.
    greatest = combined(Ops.MAX, candidates, axes)
    greatest = UOp(Ops.DETACH, value.dtype, (greatest,))
    # Infinity minus infinity would be NaN.
    is_finite = absolute(greatest) < math.inf
    shift = is_finite.where(greatest, greatest.like(0.0))
    powers = (value - expanded(shift, value.shape)).alu(Ops.EXP)
    if inside is not None:
        powers = inside.where(powers, powers.like(0.0))
    return combined(Ops.ADD, powers, axes).alu(Ops.LOG) + shift


def reduced_shape(shape: Shape, axes: tuple[int, ...], keepdim: bool) -> Shape:
    """Return `shape` without `axes`; with `keepdim` they have size 1."""
    if flag(keepdim, "keepdim"):
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)
