"""Functions of each element that are no ufuncs, and choices between elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.tensor.base import Base
from workbench.tensor.lazily import refuse_to_compute
from workbench.tensor.numpy.formulas import is_negative, like
from workbench.tensor.numpy.functions.movement import axis_of
from workbench.tensor.numpy.functions.reasons import VALUES, hint_of
from workbench.tensor.numpy.functions.table import T, row
from workbench.tensor.numpy.promotion import as_tensor, common_kind, is_scalar, kind_after
from workbench.tensor.numpy.ufuncs import call
from workbench.tensor.operands.arguments import dtype_error, shape_error


@row("where")
def where(condition: Any, x: Any = None, y: Any = None, *, beside: T) -> Any:
    if x is None and y is None:
        what = "np.where(condition) needs the values of a Tensor"
        refuse_to_compute(what, VALUES, hint_of("nonzero"))
        return np.nonzero(condition.numpy())
    kind = (
        common_kind(x, y)
        if not (is_scalar(x) and is_scalar(y))
        else common_kind(np.asarray(x), np.asarray(y))
    )
    mask = as_tensor(condition, beside)
    mask = mask if mask.dtype.is_bool else mask.ne(0)
    yes, no = (as_tensor(each, beside).cast(kind) for each in (x, y))
    return mask.where(yes, no)


@row("clip")
def clip(a: Any, a_min: Any = np._NoValue, a_max: Any = np._NoValue, min: Any = np._NoValue,
         max: Any = np._NoValue, dtype: Any = None) -> T:  # fmt: skip
    unset = (None, np._NoValue)
    least = a_min if not _is_in(a_min, unset) else min
    most = a_max if not _is_in(a_max, unset) else max
    if _is_in(least, unset) and _is_in(most, unset):
        return call("positive", a) if not a.dtype.is_bool else a
    if _is_in(most, unset):
        return call("maximum", a, least, dtype=dtype)
    if _is_in(least, unset):
        return call("minimum", a, most, dtype=dtype)
    return call("clip", a, least, most, dtype=dtype)


def _is_in(value: Any, options: tuple[Any, ...]) -> bool:
    return any(value is option for option in options)


@row("select")
def select(condlist: Any, choicelist: Any, default: Any = 0, beside: T = None) -> T:
    if len(condlist) != len(choicelist) or not condlist:
        raise shape_error(
            "np.select: there is a choice for each condition",
            "their numbers differ",
            f"{len(condlist)} choices, and one condition at least",
        )
    kind = common_kind(*choicelist, default)
    result = as_tensor(default, beside).cast(kind)
    for condition, choice in list(zip(condlist, choicelist, strict=True))[::-1]:
        mask, value = as_tensor(condition, beside), as_tensor(choice, beside).cast(kind)
        if not mask.dtype.is_bool:
            raise dtype_error(
                "np.select: a condition is not of bools",
                f"it is {mask.dtype}",
                "a comparison, as in x > 0",
            )
        result = mask.where(value, result)
    return result


@row("round", "around")
def round_to(a: T, decimals: int = 0) -> T:
    if a.dtype.is_bool:
        return a.cast(kind_after(np.round, a.dtype))
    if not a.dtype.is_float:
        if decimals < 0:
            raise dtype_error(
                f"np.round({a.dtype}, {decimals}) is not computed for Tensors",
                "tens of integers have no expression yet",
                "t.cast(dtypes.float64) first",
            )
        return a
    if decimals == 0:
        return a.round()
    wide = a.cast(dtypes.float32) if a.dtype.is_low_precision else a
    power = like(wide, 10.0 ** abs(decimals))
    scaled = (wide * power).cast(a.dtype) if decimals > 0 else (wide / power).cast(a.dtype)
    whole = scaled.round().cast(wide.dtype)
    return (whole / power if decimals > 0 else whole * power).cast(a.dtype)


@row("fix")
def fix(x: T) -> T:
    return x.trunc() if x.dtype.is_float else x


@row("isposinf")
def isposinf(x: T) -> T:
    return call("isinf", x) & ~call("signbit", x)


@row("isneginf")
def isneginf(x: T) -> T:
    return call("isinf", x) & call("signbit", x)


@row("isclose")
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False,
            beside: T = None) -> T:  # fmt: skip
    x, y = as_tensor(a, beside), as_tensor(b, beside)
    y = y if y.dtype.is_float else y.cast(dtypes.float64)
    bound = call("add", atol, call("multiply", rtol, call("absolute", y)))
    is_near = call("less_equal", call("absolute", call("subtract", x, y)), bound)
    result = (is_near & call("isfinite", y)) | call("equal", x, y)
    return result | (call("isnan", x) & call("isnan", y)) if equal_nan else result


@row("nan_to_num")
def nan_to_num(x: T, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> T:
    if not x.dtype.is_float:
        return x
    ends = np.finfo(x.dtype.numpy)
    high = float(ends.max) if posinf is None else posinf
    low = float(ends.min) if neginf is None else neginf
    result = x.isnan().where(as_tensor(nan, x).cast(x.dtype), x)
    infinite = is_negative(x).where(
        as_tensor(low, x).cast(x.dtype), as_tensor(high, x).cast(x.dtype)
    )
    return x.isinf().where(infinite, result)


@row("sinc")
def sinc(x: T) -> T:
    x = call("multiply", math.pi, x)
    safe = x.eq(0).where(like(x, 1.0), x)
    return x.eq(0).where(like(x, 1.0), safe.sin() / safe)


@row("angle")
def angle(z: T, deg: bool = False) -> T:
    turned = call("arctan2", 0, z)
    return call("degrees", turned) if deg else turned


@row("polyval")
def polyval(p: Any, x: Any, beside: T = None) -> T:
    p, x = as_tensor(p, beside), as_tensor(x, beside)
    total = x.zeros_like()
    for i in range(p.shape[0]):
        total = call("add", call("multiply", total, x), p[i])
    return total


# elements at places


@row("take")
def take(a: Any, indices: Any, axis: Any = None, mode: str = "raise", beside: T = None) -> T:
    x = as_tensor(a, beside)
    x, place = (x.reshape(-1), 0) if axis is None else (x, axis_of(axis, x.ndim))
    index, count = as_tensor(indices, beside), x.shape[place]
    if not index.dtype.is_int:
        raise dtype_error(
            f"np.take by places of {index.dtype}", "a place is an integer", 'indices.cast("int64")'
        )
    if mode == "wrap":
        index = index % count
    elif mode == "clip":
        index = index.clip(0, count - 1)
    return x[(slice(None),) * place + (index,)]


@row("take_along_axis")
def take_along_axis(arr: T, indices: Any, axis: Any = -1, beside: T = None) -> T:
    x, index = as_tensor(arr, beside), as_tensor(indices, beside)
    if axis is None:
        x, axis = x.reshape(-1), 0
    place = axis_of(axis, x.ndim)
    if index.ndim != x.ndim:
        raise shape_error(
            f"np.take_along_axis: places of {index.ndim} axes for {x.ndim}",
            "they have as many",
            f"places of {x.ndim} axes, as np.argsort(x, axis) gives them",
        )
    sizes = np.broadcast_shapes(
        tuple(1 if i == place else n for i, n in enumerate(x.shape)),
        tuple(1 if i == place else n for i, n in enumerate(index.shape)),
    )
    x = x.expand(*[n if i != place else x.shape[place] for i, n in enumerate(sizes)])
    index = index.expand(*[n if i != place else index.shape[place] for i, n in enumerate(sizes)])
    return x.gather(place, index)


@row("sort")
def sort(a: T, axis: Any = -1) -> T:
    x, place = (a.reshape(-1), 0) if axis is None else (a, axis_of(axis, a.ndim))
    return x.sort(place)[0] if x.numel() else x


@row("argsort")
def argsort(a: T, axis: Any = -1) -> T:
    x, place = (a.reshape(-1), 0) if axis is None else (a, axis_of(axis, a.ndim))
    if not x.numel():
        return type(a).full(x.shape, 0, dtype=dtypes.int64)
    return x.argsort(place).cast(dtypes.int64)


@row("searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", beside: T = None) -> T:
    edges, values = as_tensor(a, beside), as_tensor(v, beside)
    if edges.ndim != 1:
        raise shape_error(
            f"np.searchsorted in shape {edges.shape}", "it is for a vector", "the edges as a vector"
        )
    kind = common_kind(edges, values)
    edges, values = edges.cast(kind), values.cast(kind).unsqueeze(-1)
    is_before = edges < values if side == "left" else edges <= values
    if kind.is_float:  # NaN comes last
        last = values.isnan()
        is_before = is_before | (last if side == "right" else last & ~edges.isnan())
    return is_before.sum(-1, dtype=dtypes.int64)


@row("digitize")
def digitize(x: Any, bins: Any, right: bool = False, beside: T = None) -> T:
    if isinstance(bins, Base):
        what, because = "np.digitize needs the values of its bins", "they rise or fall"
        refuse_to_compute(what, because, "np.searchsorted(bins, x), for bins that rise")
        bins = bins.numpy()  # type: ignore[attr-defined]
    edges = np.asarray(bins)
    if edges.ndim != 1 or not ((edges[:-1] <= edges[1:]).all() or (edges[:-1] >= edges[1:]).all()):
        raise shape_error(
            "np.digitize: the bins neither rise nor fall", f"bins={edges}", "np.sort(bins)"
        )
    if edges.size and edges[0] > edges[-1]:
        side = "right" if right else "left"
        return edges.size - searchsorted(edges[::-1].copy(), x, side, beside)
    return searchsorted(edges, x, "left" if right else "right", beside)


@row("isin")
def isin(element: Any, test_elements: Any, invert: bool = False, beside: T = None) -> T:
    x, tests = as_tensor(element, beside), as_tensor(test_elements, beside).reshape(-1)
    found = call("equal", x.unsqueeze(-1), tests).any(-1)
    return ~found if invert else found


@row("interp")
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, beside: T = None) -> T:
    x, xp, fp = (as_tensor(each, beside).cast(dtypes.float64) for each in (x, xp, fp))
    count = xp.shape[0]
    if count < 2:
        raise shape_error(
            "np.interp between fewer than 2 points",
            f"there are {count}",
            "two points or more in xp and fp",
        )
    place = (searchsorted(xp, x, "right", beside) - 1).clip(0, count - 2)
    low, high = xp[place], xp[place + 1]
    value = (fp[place + 1] - fp[place]) / (high - low) * (x - low) + fp[place]
    value = (x >= xp[count - 1]).where(fp[count - 1], value)
    value = (x > xp[count - 1]).where(fp[count - 1] if right is None else like(x, right), value)
    value = (x < xp[0]).where(fp[0] if left is None else like(x, left), value)
    return x.isnan().where(x, value)
