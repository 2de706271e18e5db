"""Sums, means, extremes, sorting and scans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from workbench.base.dtypes import DType, dtypes
from workbench.ir.gradient.occurrences import Formula, with_formula
from workbench.ir.node.uop import UOp
from workbench.models.arithmetic import wide
from workbench.models.torch.operators.elementwise import floats
from workbench.models.torch.table import row
from workbench.tensor.movement.movement import reshaped
from workbench.tensor.operands.axes import iota
from workbench.tensor.operands.broadcast import expanded
from workbench.tensor.tensor import Tensor

Dims = int | Sequence[int] | None


def axes(x: Tensor, dim: Dims) -> tuple[int, ...]:
    """Return the axes that ATen names: all of them for None and for an empty list."""
    if dim is None or (not isinstance(dim, int) and not len(dim)):
        return tuple(range(x.ndim))
    listed = (dim,) if isinstance(dim, int) else dim
    return tuple(d % x.ndim for d in listed) if x.ndim else ()


@row("sum", "sum.dim_IntList")
def total(
    x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    kind = dtype or (x.dtype if x.dtype.is_float else dtypes.int64)
    return x.cast(kind).sum(axes(x, dim), keepdim, dtype=kind) if x.ndim else x.cast(kind)


@row("mean", "mean.dim")
def mean(
    x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    x = x if dtype is None else x.cast(dtype)
    return x.mean(axes(x, dim), keepdim) if x.ndim else x


@row("prod", "prod.dim_int")
def prod(
    x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    kind = dtype or (x.dtype if x.dtype.is_float else dtypes.int64)
    return x.cast(kind).prod(axes(x, dim), keepdim, dtype=kind) if x.ndim else x.cast(kind)


@row("amax")
def amax(x: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    return x.max(axes(x, dim), keepdim) if x.ndim else x


@row("amin")
def amin(x: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    return x.min(axes(x, dim), keepdim) if x.ndim else x


@row("max")
def greatest(x: Tensor) -> Tensor:
    return amax(x)


@row("min")
def least(x: Tensor) -> Tensor:
    return amin(x)


@row("any", "any.dim", "any.dims")
def any_of(x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    x = x.cast(dtypes.bool)
    return x.any(axes(x, dim), keepdim) if x.ndim else x


@row("all", "all.dim", "all.dims")
def all_of(x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    x = x.cast(dtypes.bool)
    return x.all(axes(x, dim), keepdim) if x.ndim else x


@row("argmax")
def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    return _position(x, "argmax", dim, keepdim)


@row("argmin")
def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    return _position(x, "argmin", dim, keepdim)


def _position(x: Tensor, method: str, dim: int | None, keepdim: bool) -> Any:
    if not x.ndim:
        return Tensor.zeros(dtype=dtypes.int64)
    return getattr(x, method)(dim, keepdim).cast(dtypes.int64)


@row("max.dim")
def max_at(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _at(x, amax(x, dim, True), argmax(x, dim, True), dim, keepdim)


@row("min.dim")
def min_at(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _at(x, amin(x, dim, True), argmin(x, dim, True), dim, keepdim)


def _at(x: Tensor, value: Tensor, place: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Return an extreme value and its place. Of equal values, that of the place has the
    gradient."""
    if not x.ndim:
        return value, place
    if x.dtype.is_float:
        formula = Formula("value-at", dim % x.ndim, _of_value_at)
        value = value._with(with_formula(value.uop, [x.uop, place.uop], formula), x, place)
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


def _of_value_at(g: UOp, dim: int, x: UOp, place: UOp) -> list[UOp | None]:
    along = [n if axis == dim else 1 for axis, n in enumerate(x.shape)]
    places = reshaped(iota(x.shape[dim], place.dtype), tuple(along))
    is_there = expanded(places, x.shape).eq(expanded(place, x.shape))
    return [is_there.where(expanded(g, x.shape), x.like(0)), None]


@row("var.dim")
def var_unbiased(x: Tensor, dim: Dims, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    return var(x, dim, correction=int(unbiased), keepdim=keepdim)


@row("var.correction")
def var(
    x: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    along = axes(x, dim)
    count = math.prod(x.shape[a] for a in along)
    centred = x - x.mean(along, keepdim=True) if x.ndim else x - x
    squares = (centred * centred).sum(along, keepdim) if x.ndim else centred
    left = max(0, count - (1 if correction is None else correction))
    return squares / left if left else squares * math.nan if count <= 1 else squares * math.inf


@row("var_mean.correction")
def var_mean(
    x: Tensor, dim: Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    return var(x, dim, correction=correction, keepdim=keepdim), mean(x, dim, keepdim)


@row("linalg_vector_norm")
def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The norm of each vector, of order `ord`: also 0 (how many are not 0) and infinities."""
    x = (x if dtype is None else x.cast(dtype)).abs()
    along = axes(x, dim)
    if not x.ndim:
        return x.ne(0).cast(x.dtype) if ord == 0 else x
    if math.isinf(ord):
        return x.max(along, keepdim) if ord > 0 else x.min(along, keepdim)
    if ord == 0:
        return x.ne(0).cast(x.dtype).sum(along, keepdim)
    if ord == 1:
        return x.sum(along, keepdim)
    if ord == 2:
        return (x * x).sum(along, keepdim).sqrt()
    return (x**ord).sum(along, keepdim) ** (1 / ord)


@row("cumsum")
def cumsum(x: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    kind = dtype or (x.dtype if x.dtype.is_float else dtypes.int64)
    return x.cast(kind).cumsum(dim) if x.ndim else x.cast(kind)


@row("cumprod")
def cumprod(x: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    kind = dtype or (x.dtype if x.dtype.is_float else dtypes.int64)
    return x.cast(kind).cumprod(dim) if x.ndim else x.cast(kind)


@row("cummax")
def cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _running(x, "cummax", dim)


@row("cummin")
def cummin(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _running(x, "cummin", dim)


def _running(x: Tensor, method: str, dim: int) -> tuple[Tensor, Tensor]:
    if not x.ndim:
        return x, Tensor.zeros(dtype=dtypes.int64)
    values, places = getattr(x, method)(dim)
    return values, places.cast(dtypes.int64)


@row("kthvalue")
def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The element number `k` from 1 on, in rising order, and its position."""
    values, places = (each.unsqueeze(0) if not each.ndim else each for each in sort(x, dim))
    lead = (slice(None),) * (dim % max(1, x.ndim))
    chosen = (each[(*lead, slice(k - 1, k))] for each in (values, places))
    shape = list(x.shape)
    if x.ndim:
        shape[dim : dim + 1 or None] = [1] if keepdim else []
    first, second = (each.reshape(tuple(shape)) for each in chosen)
    return first, second


@row("median.dim")
def median_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower of the middle elements; NaN where there is one."""
    size = x.shape[dim] if x.ndim else 1
    values, places = kthvalue(x, (size + 1) // 2, dim, keepdim)
    if not x.dtype.is_float or not x.ndim:
        return values, places
    largest, last = kthvalue(x, size, dim, keepdim)  # NaN is sorted last
    return largest.isnan().where(largest, values), largest.isnan().where(last, places)


@row("median")
def median(x: Tensor) -> Tensor:
    return median_along(x.flatten(), 0)[0]


@row("nanmedian.dim")
def nanmedian_along(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The lower of the middle elements that are not NaN; NaN where there is none."""
    if not x.dtype.is_float or not x.ndim:
        return median_along(x, dim, keepdim)
    values, places = sort(x, dim)  # NaN is sorted last
    count = (~x.isnan()).sum(dim, keepdim=True, dtype=dtypes.int64)
    middle = (count - 1).maximum(0) // 2
    value, place = (each.gather(dim, middle) for each in (values, places))
    return (value, place) if keepdim else (value.squeeze(dim), place.squeeze(dim))


@row("nanmedian")
def nanmedian(x: Tensor) -> Tensor:
    return nanmedian_along(x.flatten(), 0)[0]


@row("dist")
def dist(x: Tensor, y: Tensor, p: float = 2) -> Tensor:
    return vector_norm(x - y, p)


@row("sort")
def sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    if not x.ndim:
        return x, Tensor.zeros(dtype=dtypes.int64)
    values, places = x.sort(dim, descending)
    return values, places.cast(dtypes.int64)


@row("sort.stable")
def sort_stable(
    x: Tensor, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    return sort(x, dim, descending)


@row("topk")
def topk(
    x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    if not x.ndim:
        return x, Tensor.zeros(dtype=dtypes.int64)
    values, places = x.topk(k, dim, largest)
    return values, places.cast(dtypes.int64)


@row("_softmax")
def softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return wide(x).softmax(dim) if x.ndim else floats(x) * 0 + 1


@row("_log_softmax")
def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    return wide(x).log_softmax(dim) if x.ndim else floats(x) * 0
