"""Sums, extremes, means and other reductions, and running totals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.tensor.numpy.functions.table import T, row
from workbench.tensor.numpy.promotion import as_tensor, kind_after, kind_of_dtype
from workbench.tensor.numpy.ufuncs import accumulate, call, reduce
from workbench.tensor.operands.arguments import dtype_error, shape_error
from workbench.tensor.operands.axes import many_axes

UNSET = np._NoValue


def axes_of(axis: Any) -> Any:
    """Return the argument `axis` as Tensor's methods take it."""
    return axis if axis is None or isinstance(axis, tuple | list) else int(axis)


def keeps(keepdims: Any) -> bool:
    """Return the argument `keepdims`, which may be left out."""
    return keepdims is not UNSET and bool(keepdims)


def _mask(a: T, where: Any) -> T:
    """Return the argument `where` as bools of the shape of `a`; None if it leaves out nothing."""
    if where is True or where is UNSET:
        return None
    mask = as_tensor(where, a)
    if not mask.dtype.is_bool:
        raise dtype_error(f"where= has dtype {mask.dtype}", "it is a mask of bools", "where=x != 0")
    return mask.expand(a.shape)


def _chosen(a: T, where: Any, value: Any) -> T:
    """Return `a` with `value` for the elements that `where` leaves out."""
    mask = _mask(a, where)
    return a if mask is None else mask.where(a, as_tensor(value, a).cast(a.dtype))


@row("sum")
def sum_of(a: T, axis: Any = None, dtype: Any = None, keepdims: Any = False,
           initial: Any = UNSET, where: Any = True) -> T:  # fmt: skip
    return reduce("add", _chosen(a, where, 0), axis, dtype, keepdims, initial)


@row("prod")
def prod(a: T, axis: Any = None, dtype: Any = None, keepdims: Any = False,
         initial: Any = UNSET, where: Any = True) -> T:  # fmt: skip
    return reduce("multiply", _chosen(a, where, 1), axis, dtype, keepdims, initial)


@row("max", "amax")
def maximum(a: T, axis: Any = None, keepdims: Any = False, initial: Any = UNSET,
            where: Any = True) -> T:  # fmt: skip
    return _extreme("maximum", a, axis, keepdims, initial, where)


@row("min", "amin")
def minimum(a: T, axis: Any = None, keepdims: Any = False, initial: Any = UNSET,
            where: Any = True) -> T:  # fmt: skip
    return _extreme("minimum", a, axis, keepdims, initial, where)


def _extreme(name: str, a: T, axis: Any, keepdims: Any, initial: Any, where: Any) -> T:
    if initial is UNSET and _mask(a, where) is not None:
        raise dtype_error(
            f"np.{name} of the elements that where= chooses",
            "of none of them there is no extreme, and initial= says what it is then",
            f"initial={'-np.inf' if name == 'maximum' else 'np.inf'} for floats",
        )
    return reduce(name, _chosen(a, where, initial), axis, None, keepdims, initial)


@row("any")
def any_of(a: T, axis: Any = None, keepdims: Any = False, where: Any = True) -> T:
    return _chosen(a, where, 0).any(axes_of(axis), keeps(keepdims))


@row("all")
def all_of(a: T, axis: Any = None, keepdims: Any = False, where: Any = True) -> T:
    return _chosen(a, where, 1).all(axes_of(axis), keeps(keepdims))


@row("ptp")
def ptp(a: T, axis: Any = None, keepdims: Any = False) -> T:
    return call("subtract", maximum(a, axis, keepdims), minimum(a, axis, keepdims))


@row("count_nonzero")
def count_nonzero(a: T, axis: Any = None, keepdims: bool = False) -> T:
    return a.ne(0).sum(axes_of(axis), keepdims, dtypes.int64)


@row("argmax")
def argmax(a: T, axis: Any = None, keepdims: Any = False) -> T:
    return a.argmax(axes_of(axis), keeps(keepdims)).cast(dtypes.int64)


@row("argmin")
def argmin(a: T, axis: Any = None, keepdims: Any = False) -> T:
    return a.argmin(axes_of(axis), keeps(keepdims)).cast(dtypes.int64)


# means


def float_of(function: Any, a: T, dtype: Any = None) -> DType:
    """Return the dtype of a mean: the values' own if they are floats, else float64."""
    return kind_after(function, a.dtype) if dtype is None else kind_of_dtype(dtype)


def _inner(kind: DType) -> DType:
    return dtypes.float32 if kind.is_low_precision else kind


def _total(a: T, axis: Any, keepdims: bool, kind: DType) -> T:
    """Return the sum of floats in a dtype with enough bits for it."""
    return a.cast(kind).sum(axes_of(axis), keepdims, kind)


def _count(a: T, axis: Any, keepdims: bool, where: Any, kind: DType) -> T:
    """Return the number of the elements of each mean."""
    mask = _mask(a, where)
    if mask is not None:
        return mask.sum(axes_of(axis), keepdims, dtypes.int64).cast(kind)
    count = math.prod(a.shape[i] for i in many_axes(axes_of(axis), a.ndim, "mean"))
    return type(a)(float(count), dtype=kind)


@row("mean")
def mean(a: T, axis: Any = None, dtype: Any = None, keepdims: Any = False,
         where: Any = True) -> T:  # fmt: skip
    kind, keep = float_of(np.mean, a, dtype), keeps(keepdims)
    wide = _inner(kind)
    total = _total(_chosen(a, where, 0), axis, keep, wide)
    return (total / _count(a, axis, keep, where, wide)).cast(kind)


@row("var")
def var(a: T, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False,
        correction: Any = UNSET, where: Any = True) -> T:  # fmt: skip
    kind = float_of(np.var, a, dtype)
    ddof = ddof if correction is UNSET else correction
    return _variance(a, axis, kind, ddof, keepdims, where).cast(kind)


@row("std")
def std(a: T, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False,
        correction: Any = UNSET, where: Any = True) -> T:  # fmt: skip
    kind = float_of(np.std, a, dtype)
    ddof = ddof if correction is UNSET else correction
    return _variance(a, axis, kind, ddof, keepdims, where).sqrt().cast(kind)


def _variance(a: T, axis: Any, kind: DType, ddof: float, keepdims: Any, where: Any) -> T:
    wide, keep = _inner(kind), keeps(keepdims)
    total = _total(_chosen(a, where, 0), axis, True, wide)
    middle = total / _count(a, axis, True, where, wide)
    squares = _chosen((a.cast(wide) - middle).square(), where, 0)
    free = _count(a, axis, keep, where, wide) - ddof
    return _total(squares, axis, keep, wide) / free.maximum(0)


@row("average")
def average(a: T, axis: Any = None, weights: Any = None, keepdims: Any = False,
            beside: T = None) -> T:  # fmt: skip
    a = as_tensor(a, beside)
    if weights is None:
        return mean(a, axis, keepdims=keepdims)
    weights = as_tensor(weights, a)
    kind = call("add", a, weights).dtype
    kind = kind if kind.is_float else dtypes.float64
    if weights.shape != a.shape:
        if weights.ndim != 1 or not isinstance(axis, int) or weights.shape[0] != a.shape[axis]:
            raise shape_error(
                f"np.average: weights of shape {weights.shape} do not fit {a.shape}",
                "they have the shape of the values, or are a vector for one axis",
                f"weights of shape {a.shape}",
            )
        place = axis % a.ndim
        weights = weights.reshape(*[n if i == place else 1 for i, n in enumerate(a.shape)])
    weights = weights.expand(a.shape).cast(kind)
    total = (a.cast(kind) * weights).sum(axes_of(axis), keeps(keepdims), kind)
    return total / weights.sum(axes_of(axis), keeps(keepdims), kind)


# without NaNs


def _numbers(a: T, where: Any) -> Any:
    """Return the argument `where` without the places of NaNs."""
    if not a.dtype.is_float:
        return where
    mask = _mask(a, where)
    return ~a.isnan() if mask is None else mask & ~a.isnan()


@row("nansum")
def nansum(a: T, axis: Any = None, dtype: Any = None, keepdims: Any = False,
           initial: Any = UNSET, where: Any = True) -> T:  # fmt: skip
    return sum_of(a, axis, dtype, keepdims, initial, _numbers(a, where))


@row("nanprod")
def nanprod(a: T, axis: Any = None, dtype: Any = None, keepdims: Any = False,
            initial: Any = UNSET, where: Any = True) -> T:  # fmt: skip
    return prod(a, axis, dtype, keepdims, initial, _numbers(a, where))


@row("nancumsum")
def nancumsum(a: T, axis: Any = None, dtype: Any = None) -> T:
    return cumsum(_chosen(a, _numbers(a, True), 0), axis, dtype)


@row("nancumprod")
def nancumprod(a: T, axis: Any = None, dtype: Any = None) -> T:
    return cumprod(_chosen(a, _numbers(a, True), 1), axis, dtype)


@row("nanmax")
def nanmax(a: T, axis: Any = None, keepdims: Any = False) -> T:
    return _extreme_number(a, maximum, -math.inf, axis, keepdims)


@row("nanmin")
def nanmin(a: T, axis: Any = None, keepdims: Any = False) -> T:
    return _extreme_number(a, minimum, math.inf, axis, keepdims)


def _extreme_number(a: T, extreme: Any, least: float, axis: Any, keepdims: Any) -> T:
    if not a.dtype.is_float:
        return extreme(a, axis, keepdims)
    found = extreme(_chosen(a, _numbers(a, True), least), axis, keepdims)
    is_nan = a.isnan().all(axes_of(axis), keeps(keepdims))
    return is_nan.where(type(a)(math.nan, dtype=a.dtype), found)


@row("nanmean")
def nanmean(a: T, axis: Any = None, dtype: Any = None, keepdims: Any = False,
            where: Any = True) -> T:  # fmt: skip
    return mean(a, axis, dtype, keepdims, _numbers(a, where))


@row("nanvar")
def nanvar(a: T, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False,
           where: Any = True) -> T:  # fmt: skip
    kind = float_of(np.var, a, dtype)
    return _variance_of_numbers(a, axis, kind, ddof, keepdims, where).cast(kind)


@row("nanstd")
def nanstd(a: T, axis: Any = None, dtype: Any = None, ddof: Any = 0, keepdims: Any = False,
           where: Any = True) -> T:  # fmt: skip
    kind = float_of(np.std, a, dtype)
    return _variance_of_numbers(a, axis, kind, ddof, keepdims, where).sqrt().cast(kind)


def _variance_of_numbers(a: T, axis: Any, kind: DType, ddof: float, keepdims: Any,
                         where: Any) -> T:  # fmt: skip
    where = _numbers(a, where)
    result = _variance(a, axis, kind, ddof, keepdims, where)
    if not a.dtype.is_float:
        return result
    free = _count(a, axis, keeps(keepdims), where, _inner(kind)) - ddof
    return (free > 0).where(result, type(a)(math.nan, dtype=result.dtype))


# running totals


@row("cumsum")
def cumsum(a: T, axis: Any = None, dtype: Any = None) -> T:
    return accumulate("add", *_line(a, axis), dtype)


@row("cumprod")
def cumprod(a: T, axis: Any = None, dtype: Any = None) -> T:
    return accumulate("multiply", *_line(a, axis), dtype)


def _line(a: T, axis: Any) -> tuple[T, int]:
    return (a.reshape(-1), 0) if axis is None else (a, int(axis))


@row("cumulative_sum")
def cumulative_sum(x: T, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> T:
    return _cumulative("add", x, axis, dtype, include_initial, 0)


@row("cumulative_prod")
def cumulative_prod(x: T, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> T:
    return _cumulative("multiply", x, axis, dtype, include_initial, 1)


def _cumulative(name: str, x: T, axis: Any, dtype: Any, with_first: bool, first: int) -> T:
    if axis is None and x.ndim != 1:
        raise shape_error(
            "which axis the total runs along is open", f"there are {x.ndim}", "axis=0"
        )
    axis = 0 if axis is None else int(axis) % x.ndim
    total = accumulate(name, x, axis, dtype)
    if not with_first:
        return total
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    return type(x).full(shape, first, dtype=total.dtype).cat(total, dim=axis)
