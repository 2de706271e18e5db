"""Medians and quantiles, covariance, differences, integrals and convolutions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.tensor.base import Base
from workbench.tensor.numpy.formulas import like
from workbench.tensor.numpy.functions.joining import joined
from workbench.tensor.numpy.functions.movement import axis_of, part
from workbench.tensor.numpy.functions.products import dot
from workbench.tensor.numpy.functions.reductions import float_of, mean
from workbench.tensor.numpy.functions.table import T, row
from workbench.tensor.numpy.promotion import as_tensor, common_kind
from workbench.tensor.numpy.ufuncs import call
from workbench.tensor.operands.arguments import dtype_error, shape_error
from workbench.tensor.operands.axes import many_axes


def _in_order(a: T, axis: Any) -> tuple[T, tuple[int, ...]]:
    """Return the values in order along a last axis that stands for `axis`, and its axes."""
    axes = many_axes(axis, a.ndim, "np.quantile")
    kept = [i for i in range(a.ndim) if i not in axes]
    count = math.prod(a.shape[i] for i in axes)
    if not count:
        raise shape_error(
            "no median of no values",
            f"axis {axis} of shape {a.shape} has none",
            "an axis with values",
        )
    rows = a.permute(*kept, *axes) if a.ndim else a
    rows = rows.reshape(*[a.shape[i] for i in kept], count)
    return (rows.sort(-1)[0] if count > 1 else rows), axes


def _with_axes(result: T, a: T, axes: tuple[int, ...], keepdims: bool) -> T:
    if not keepdims:
        return result
    return result.reshape(*[1 if i in axes else n for i, n in enumerate(a.shape)])


@row("median")
def median(a: T, axis: Any = None, keepdims: bool = False) -> T:
    kind = float_of(np.median, a)
    values, axes = _in_order(a, axis)
    count = values.shape[-1]
    middle = part(values, values.ndim - 1, (count - 1) // 2, count // 2 + 1)
    result = mean(middle, -1).cast(kind)
    if kind.is_float and a.dtype.is_float:
        last = values[..., count - 1]
        result = last.isnan().where(last.cast(kind), result)
    return _with_axes(result, a, axes, keepdims)


@row("quantile")
def quantile(a: T, q: Any, axis: Any = None, method: str = "linear", keepdims: bool = False) -> T:
    if isinstance(q, Base) or method != "linear":
        raise dtype_error(
            f"np.quantile(q={'a Tensor' if isinstance(q, Base) else q}, method={method!r})",
            "q is a number, or an array of them, and lies linearly between two values",
            'a number from 0 to 1, and method="linear"',
        )
    if a.dtype.is_bool:
        raise dtype_error(
            "np.quantile of bools", "a bool lies between no two others", 'a.cast("float32")'
        )
    points = np.asarray(q, np.float64)
    if ((points < 0) | (points > 1)).any():
        raise shape_error(
            f"np.quantile: q={q} is out of range", "it is from 0 to 1", "q=0.5, the median"
        )
    values, axes = _in_order(a, axis)
    kind = a.dtype if a.dtype.is_float else dtypes.float64
    if points.ndim or isinstance(q, np.ndarray | np.generic):
        kind = common_kind(like(a, 0), points) if a.dtype.is_float else dtypes.float64
    found = [_with_axes(_between(values, float(point), kind), a, axes, keepdims)
             for point in points.reshape(-1)]  # fmt: skip
    if not points.ndim:
        return found[0]
    rows = joined([each.unsqueeze(0) for each in found], 0, None, a)
    return rows.reshape(*points.shape, *found[0].shape)


def _between(values: T, point: float, kind: Any) -> T:
    count = values.shape[-1]
    place = point * (count - 1)
    low = min(int(math.floor(place)), count - 1)
    high, share = min(low + 1, count - 1), place - low
    first, second, last = (values[..., i] for i in (low, high, count - 1))
    gap = (second - first).cast(kind)
    first, second, last = (each.cast(kind) for each in (first, second, last))
    result = first + gap * share if share < 0.5 else second - gap * (1 - share)
    result = gap.eq(0).where(first, result)
    return last.isnan().where(last, result)


@row("percentile")
def percentile(a: T, q: Any, axis: Any = None, method: str = "linear",
               keepdims: bool = False) -> T:  # fmt: skip
    if not isinstance(q, Base):
        q = q / 100 if isinstance(q, int | float) else np.true_divide(q, 100)
    return quantile(a, q, axis, method, keepdims)


@row("cov")
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
        beside: T = None) -> T:  # fmt: skip
    x = as_tensor(m, beside)
    rows = [x] if y is None else [x, as_tensor(y, beside)]
    kind = common_kind(*rows, np.float64(0))
    if any(each.ndim > 2 for each in rows):
        raise shape_error(
            "np.cov of more than 2 axes",
            "variables are rows, and observations columns",
            "m.reshape(len(m), -1)",
        )
    rows = [each.reshape(1, -1) if each.ndim < 2 else each if rowvar else each.transpose(0, 1)
            for each in rows]  # fmt: skip
    table = joined([each.cast(kind) for each in rows], 0, None, x)
    free = table.shape[1] - (ddof if ddof is not None else 0 if bias else 1)
    table = table - mean(table, 1, keepdims=True)
    result = dot(table, table.transpose(0, 1)) / like(table, float(max(free, 0)))
    return result.reshape(*[n for n in result.shape if n != 1])


@row("corrcoef")
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, beside: T = None) -> T:
    table = cov(x, y, rowvar, beside=beside)
    if table.ndim == 0:
        return table / table
    deviation = table.diagonal().sqrt()
    return (table / deviation.unsqueeze(1) / deviation.unsqueeze(0)).clip(-1.0, 1.0)


# differences and integrals


@row("diff")
def diff(a: T, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue,
         beside: T = None) -> T:  # fmt: skip
    x = as_tensor(a, beside)
    place = axis_of(axis, x.ndim)
    if n < 0:
        raise shape_error(f"np.diff: n={n}", "it is 0 or more", "n=1")
    if n == 0:
        return x
    ends: list[list[T]] = []
    for each in (prepend, append):
        if each is np._NoValue:
            ends.append([])
            continue
        end = as_tensor(each if isinstance(each, Base) else np.asarray(each), beside)
        if end.ndim == 0:
            end = end.expand(*[1 if i == place else size for i, size in enumerate(x.shape)])
        ends.append([end])
    if any(ends):
        x = joined([*ends[0], x, *ends[1]], place, None, beside)
    name = "not_equal" if x.dtype.is_bool else "subtract"
    for _ in range(n):
        if not x.shape[place]:
            break
        x = call(name, part(x, place, 1, None), part(x, place, None, -1))
    return x


@row("gradient")
def gradient(*spacing: Any, f: T, axis: Any = None, edge_order: int = 1) -> Any:
    axes = many_axes(axis, f.ndim, "np.gradient")
    steps = spacing * len(axes) if len(spacing) == 1 else spacing or (1.0,) * len(axes)
    if edge_order != 1 or len(steps) != len(axes) or any(np.ndim(step) for step in steps):
        raise dtype_error(
            "np.gradient with these arguments is not computed for Tensors",
            "there is one step, or one for each axis, and edge_order is 1",
            "np.gradient(x, step)",
        )
    x = f if f.dtype.is_float else f.cast(dtypes.float64)
    if any(x.shape[i] < 2 for i in axes):
        raise shape_error(
            f"np.gradient of shape {f.shape}", "an axis has 2 elements or more", "a longer axis"
        )
    slopes = []
    for place, step in zip(axes, steps, strict=True):
        steps_of_one = part(x, place, 1, None) - part(x, place, None, -1)
        steps_of_two = part(x, place, 2, None) - part(x, place, None, -2)
        ends = [part(steps_of_one, place, *at) / step for at in ((0, 1), (-1, None))]
        slopes.append(ends[0].cat(steps_of_two / (2.0 * step), ends[1], dim=place))
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


@row("ediff1d")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None, beside: T = None) -> T:
    x = as_tensor(ary, beside).reshape(-1)
    steps = diff(x, beside=beside)
    ends = [[] if each is None else [as_tensor(each, beside).cast(x.dtype).reshape(-1)]
            for each in (to_begin, to_end)]  # fmt: skip
    return joined([*ends[0], steps, *ends[1]], 0, None, beside) if any(ends) else steps


@row("trapezoid")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, beside: T = None) -> T:
    y = as_tensor(y, beside)
    place = axis_of(axis, y.ndim)
    step = dx
    if x is not None:
        step = diff(as_tensor(x, beside), axis=-1 if np.ndim(x) == 1 else axis, beside=beside)
        if step.ndim == 1:
            step = step.reshape(*[-1 if i == place else 1 for i in range(y.ndim)])
    pairs = call("add", part(y, place, 1, None), part(y, place, None, -1))
    areas = call("divide", call("multiply", step, pairs), 2.0)
    return areas.sum(place, dtype=areas.dtype)


@row("vander")
def vander(x: T, N: Any = None, increasing: bool = False) -> T:
    if x.ndim != 1:
        raise shape_error(f"np.vander of shape {x.shape}", "it is for a vector", "x.reshape(-1)")
    count = x.shape[0] if N is None else int(N)
    kind = common_kind(x, np.int64(0))
    column = x.cast(kind).unsqueeze(1)
    if not count:
        return type(x).full((x.shape[0], 0), 0, dtype=kind)
    powers = [like(column, 1).expand(*column.shape)]
    for _ in range(count - 1):
        powers.append(powers[-1] * column)
    return joined(powers if increasing else powers[::-1], 1, None, x)


# convolutions


@row("convolve")
def convolve(a: Any, v: Any, mode: str = "full", beside: T = None) -> T:
    x, y = as_tensor(a, beside), as_tensor(v, beside)
    x, y = (t.reshape(1) if t.ndim == 0 else t for t in (x, y))
    if x.ndim != 1 or y.ndim != 1 or 0 in (*x.shape, *y.shape):
        raise shape_error(
            f"np.convolve of shapes {x.shape} and {y.shape}",
            "both are vectors",
            "vectors with one element or more",
        )
    if y.shape[0] > x.shape[0]:
        x, y = y, x
    return _correlated(x, y.flip(0), mode)


def _correlated(x: T, y: T, mode: str) -> T:
    """Return the products of `y`, which is not longer, with the pieces of `x` below it."""
    size = y.shape[0]
    sides = {
        "full": (size - 1, size - 1),
        "same": (size // 2, size - 1 - size // 2),
        "valid": (0, 0),
    }.get(mode)
    if sides is None:
        raise shape_error(
            f"mode={mode!r} is no mode", "the modes are full, same and valid", 'mode="same"'
        )
    kind = common_kind(x, y)
    wide = x.cast(kind).pad([sides]) if any(sides) else x.cast(kind)
    return call("matmul", wide.unfold(0, size, 1), y.cast(kind))


@row("correlate")
def correlate(a: Any, v: Any, mode: str = "valid", beside: T = None) -> T:
    x, y = as_tensor(a, beside), as_tensor(v, beside)
    if x.ndim != 1 or y.ndim != 1 or 0 in (*x.shape, *y.shape):
        raise shape_error(
            f"np.correlate of shapes {x.shape} and {y.shape}",
            "both are vectors",
            "vectors with one element or more",
        )
    if y.shape[0] > x.shape[0]:
        return _correlated(y, x, mode).flip(0)
    return _correlated(x, y, mode)
