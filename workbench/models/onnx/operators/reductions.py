"""Sums, means, extremes, scans, sorting and softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.models.arithmetic import wide
from workbench.models.onnx.operators.elementwise import numbers
from workbench.models.onnx.operators.movement import placed
from workbench.models.onnx.table import row
from workbench.models.onnx.values import Array, axis_of
from workbench.tensor.tensor import Tensor

Axes = tuple[int, ...]
Reduction = Callable[[Tensor, Axes], Tensor]


def _log_sum_exp(x: Tensor, axes: Axes) -> Tensor:
    """log(sum(exp(x))), where exp(x) may be infinite, and `x` too."""
    if 0 in (x.shape[a] for a in axes):
        return x.sum(axes, keepdim=True).log()
    most = x.max(axes, keepdim=True)
    most = most.isfinite().where(most, 0)
    return (x - most).exp().sum(axes, keepdim=True).log() + most


REDUCTIONS: dict[str, Reduction] = {
    "ReduceL1": lambda x, axes: x.abs().sum(axes, keepdim=True),
    "ReduceL2": lambda x, axes: (x * x).sum(axes, keepdim=True).sqrt(),
    "ReduceLogSum": lambda x, axes: x.sum(axes, keepdim=True).log(),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": lambda x, axes: x.max(axes, keepdim=True),
    "ReduceMean": lambda x, axes: x.mean(axes, keepdim=True),
    "ReduceMin": lambda x, axes: x.min(axes, keepdim=True),
    "ReduceProd": lambda x, axes: x.prod(axes, keepdim=True),
    "ReduceSum": lambda x, axes: x.sum(axes, keepdim=True),
    "ReduceSumSquare": lambda x, axes: (x * x).sum(axes, keepdim=True),
}
"""Reductions that keep the axes, each of length 1."""
OF_FLOATS = frozenset({"ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean"})


def _reduced(name: str, x: Tensor, axes: Sequence[int], keepdims: int) -> Tensor:
    along = tuple(sorted(placed(axes, x.ndim)))
    mine = wide(x)
    if name in OF_FLOATS and not x.dtype.is_float:
        mine = x.cast(dtypes.float64)
    if not x.ndim:  # one element, as along an axis of length 1
        return REDUCTIONS[name](mine.reshape((1,)), (0,)).reshape(()).cast(x.dtype)
    is_empty = 0 in (x.shape[a] for a in along)
    if is_empty and name in ("ReduceMax", "ReduceMin"):
        least = x.dtype.min if name == "ReduceMax" else x.dtype.max
        shape = tuple(1 if a in along else n for a, n in enumerate(x.shape))
        y = Tensor.full(shape, least, dtype=x.dtype)
    else:
        y = REDUCTIONS[name](mine, along).cast(x.dtype) if along else _alone(name, mine, x)
    if keepdims:
        return y
    return y.reshape(tuple(n for a, n in enumerate(x.shape) if a not in along))


def _alone(name: str, mine: Tensor, x: Tensor) -> Tensor:
    """Return the reduction of each element by itself."""
    return REDUCTIONS[name](mine.unsqueeze(-1), (mine.ndim,)).squeeze(-1).cast(x.dtype)


def _with_attribute(name: str) -> Callable[..., Tensor]:
    def function(x: Tensor, *, axes: Sequence[int] | None = None, keepdims: int = 1) -> Tensor:
        return _reduced(name, x, range(x.ndim) if axes is None else axes, keepdims)

    return function


def _with_input(name: str) -> Callable[..., Tensor]:
    def function(
        x: Tensor, axes: Array | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Tensor:
        if axes is not None and axes.size:
            return _reduced(name, x, numbers(axes), keepdims)
        return _reduced(name, x, () if noop_with_empty_axes else range(x.ndim), keepdims)

    return function


for each in REDUCTIONS:
    row(each)(_with_attribute(each))
    row(each, since=13 if each == "ReduceSum" else 18, known=("axes",))(_with_input(each))


@row("ArgMax")
def argmax(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _position(x, "argmax", axis, keepdims, select_last_index)


@row("ArgMin")
def argmin(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _position(x, "argmin", axis, keepdims, select_last_index)


def _position(x: Tensor, method: str, axis: int, keepdims: int, from_end: int) -> Tensor:
    axis = axis_of(axis, x.ndim)
    place: Tensor = getattr(x.flip(axis) if from_end else x, method)(axis, bool(keepdims))
    place = place.cast(dtypes.int64)
    return x.shape[axis] - 1 - place if from_end else place


@row("CumSum", since=11, known=("axis",))
def cumsum(x: Tensor, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _scanned(x, axis, exclusive, reverse, 0, lambda t, a: t.cumsum(a))


@row("CumProd", since=26, known=("axis",))
def cumprod(x: Tensor, axis: Array, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    return _scanned(x, axis, exclusive, reverse, 1, lambda t, a: t.cumprod(a))


def _scanned(
    x: Tensor,
    axis: Array,
    exclusive: int,
    reverse: int,
    neutral: int,
    scan: Callable[[Tensor, int], Tensor],
) -> Tensor:
    """Sums or products of the elements up to each, or before each."""
    along = axis_of(int(axis.item()), x.ndim)
    y = x.flip(along) if reverse else x
    if exclusive:
        sides = [(0, 0)] * x.ndim
        sides[along] = (1, 0)
        y = y.pad(sides, value=neutral)[(slice(None),) * along + (slice(0, x.shape[along]),)]
    y = scan(y, along).cast(x.dtype)
    return y.flip(along) if reverse else y


@row("TopK")
def topk_fixed(x: Tensor, *, k: int, axis: int = -1) -> Any:
    values, places = x.topk(k, axis)
    return values, places.cast(dtypes.int64)


@row("TopK", since=10, known=("k",))
def topk(x: Tensor, k: Array, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:
    values, places = x.topk(int(k.item()), axis, bool(largest))
    return values, places.cast(dtypes.int64)


def _softmax(x: Tensor, axis: int) -> Tensor:
    return wide(x).softmax(axis)


def _log_softmax(x: Tensor, axis: int) -> Tensor:
    return wide(x).log_softmax(axis)


def _hardmax(x: Tensor, axis: int) -> Tensor:
    """1 at the first of the greatest elements along an axis, 0 elsewhere."""
    axis = axis_of(axis, x.ndim)
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    steps = Tensor.arange(x.shape[axis], dtype=dtypes.int32).reshape(tuple(shape))
    return x.argmax(axis, True).cast(dtypes.int32).eq(steps).cast(x.dtype)


def _of_matrix(function: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    """Before opset 13 all axes from `axis` on are one."""

    def computed(x: Tensor, *, axis: int = 1) -> Tensor:
        axis = axis if axis == x.ndim else axis_of(axis, x.ndim)
        flat = x.reshape((math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))
        return function(flat, 1).reshape(x.shape)

    return computed


def _of_axis(function: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
    def computed(x: Tensor, *, axis: int = -1) -> Tensor:
        return function(x, axis)

    return computed


for each, compute in {"Softmax": _softmax, "LogSoftmax": _log_softmax, "Hardmax": _hardmax}.items():
    row(each)(_of_matrix(compute))
    row(each, since=13)(_of_axis(compute))
