"""Shapes, axes and places of elements; padding, repetition and windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.base.errors import short
from workbench.tensor.numpy.functions.table import T, row
from workbench.tensor.numpy.promotion import as_tensor, is_scalar
from workbench.tensor.operands.arguments import axis_error, dtype_error, shape_error
from workbench.tensor.operands.axes import many_axes


def axis_of(axis: Any, ndim: int, extra: int = 0) -> int:
    """Return an axis counted from 0. Errors: AxisError if there is none, of a scalar, too."""
    count = ndim + extra
    if not -count <= int(axis) < count:
        raise axis_error(
            f"axis={axis} is out of range",
            f"there are {count} axes",
            f"an axis from {-count} to {count - 1}" if count else "an array with axes",
        )
    return int(axis) % count


def part(x: T, axis: int, lo: int | None, hi: int | None, step: int | None = None) -> T:
    """Return the elements from `lo` up to `hi` of an axis."""
    return x[(slice(None),) * axis + (slice(lo, hi, step),)]


def moved_to(x: T, source: int, target: int) -> T:
    """Return `x` with one axis in another place."""
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return x.permute(*order) if order else x


def at_places(x: T, axis: int, places: Any) -> T:
    """Return the elements at known places along an axis, each as often as it is named."""
    places = np.asarray(places)
    if places.size and (np.diff(places) == 1).all():
        return part(x, axis, int(places[0]), int(places[-1]) + 1)
    index = type(x)(places.astype(np.int32), device=x._device)
    return x[(slice(None),) * axis + (index,)]


@row("reshape")
def reshape(a: T, shape: Any = None, order: Any = "C") -> T:
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if order not in ("C", "A", "F"):
        raise dtype_error(
            f"np.reshape: order={short(order)} is not computed for Tensors",
            "elements are in row-major order",
            'order="C", or "F" for the first index fastest',
        )
    if order != "F":
        return a.reshape(*sizes)
    return _axes_reversed(_axes_reversed(a).reshape(*sizes[::-1]))


def _axes_reversed(x: T) -> T:
    return x.permute(*range(x.ndim)[::-1]) if x.ndim > 1 else x


@row("ravel")
def ravel(a: T, order: Any = "C") -> T:
    return reshape(a, -1, "C" if order == "K" else order)


@row("transpose")
def transpose(a: T, axes: Any = None) -> T:
    if a.ndim == 0:
        return a
    order = range(a.ndim)[::-1] if axes is None else [axis_of(axis, a.ndim) for axis in axes]
    return a.permute(*order)


@row("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x: T) -> T:
    return x.transpose(-1, -2)


@row("swapaxes")
def swapaxes(a: T, axis1: int, axis2: int) -> T:
    return a.transpose(axis_of(axis1, a.ndim), axis_of(axis2, a.ndim))


@row("moveaxis")
def moveaxis(a: T, source: Any, destination: Any) -> T:
    sources = _axes(source, a.ndim)
    targets = _axes(destination, a.ndim)
    if len(sources) != len(targets):
        raise shape_error(
            "np.moveaxis: an axis has no destination",
            "there is one for each source",
            f"as many axes in destination as in source, {len(sources)}",
        )
    order = [i for i in range(a.ndim) if i not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return a.permute(*order) if order else a


def _axes(axes: Any, ndim: int) -> list[int]:
    many = axes if isinstance(axes, tuple | list) else (axes,)
    found = [axis_of(axis, ndim) for axis in many]
    if len(set(found)) < len(found):
        raise shape_error(
            f"axes {tuple(many)} name one twice", "an axis is moved once", "each axis once"
        )
    return found


@row("rollaxis")
def rollaxis(a: T, axis: int, start: int = 0) -> T:
    axis = axis_of(axis, a.ndim)
    start = start + a.ndim if start < 0 else start
    return moved_to(a, axis, start - (axis < start))


@row("expand_dims")
def expand_dims(a: T, axis: Any) -> T:
    many = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = a.ndim + len(many)
    places = {axis_of(each, ndim) for each in many}
    if len(places) < len(many):
        raise shape_error(
            f"np.expand_dims: axes {axis} name one twice",
            "a new axis has one place",
            "each axis once",
        )
    sizes = iter(a.shape)
    return a.reshape(*[1 if i in places else next(sizes) for i in range(ndim)])


@row("squeeze")
def squeeze(a: T, axis: Any = None) -> T:
    if axis is None:
        return a.reshape(*[n for n in a.shape if n != 1])
    axes = many_axes(axis, a.ndim, "np.squeeze")
    if any(a.shape[i] != 1 for i in axes):
        raise shape_error(
            f"np.squeeze: axis={axis} of shape {a.shape}",
            "only axes of size 1 are removed",
            "axis=None, which removes every axis of size 1",
        )
    return a.reshape(*[n for i, n in enumerate(a.shape) if i not in axes])


@row("flip")
def flip(m: T, axis: Any = None) -> T:
    axes = range(m.ndim) if axis is None else many_axes(axis, m.ndim, "np.flip")
    return m.flip(list(axes)) if len(axes) else m


@row("fliplr")
def fliplr(m: T) -> T:
    return m.flip(axis_of(1, m.ndim))


@row("flipud")
def flipud(m: T) -> T:
    return m.flip(axis_of(0, m.ndim))


@row("rot90")
def rot90(m: T, k: int = 1, axes: Any = (0, 1)) -> T:
    first, second = (axis_of(axis, m.ndim) for axis in axes)
    if first == second:
        raise shape_error("np.rot90: the axes of the plane are one", f"axes={axes}", "axes=(0, 1)")
    k %= 4
    if k == 0:
        return m
    if k == 2:
        return m.flip([first, second])
    return (
        m.flip(second).transpose(first, second)
        if k == 1
        else m.transpose(first, second).flip(second)
    )


@row("roll")
def roll(a: T, shift: Any, axis: Any = None) -> T:
    if axis is None:
        total = int(np.sum(shift))
        return a.reshape(-1).roll(total, 0).reshape(a.shape) if a.numel() else a
    pairs = np.broadcast(np.asarray(shift), np.asarray(axis))
    for by, one in pairs:
        place = axis_of(one, a.ndim)
        a = a.roll(int(by), place) if a.shape[place] else a
    return a


@row("broadcast_to")
def broadcast_to(array: T, shape: Any) -> T:
    return array.expand(*(shape if isinstance(shape, tuple | list) else (shape,)))


@row("broadcast_arrays")
def broadcast_arrays(*args: Any, beside: T) -> tuple[T, ...]:
    tensors = [as_tensor(each, beside) for each in args]
    shape = np.broadcast_shapes(*[each.shape for each in tensors])
    return tuple(each.expand(shape) for each in tensors)


def _at_least(count: int, arys: Sequence[Any], beside: T) -> Any:
    results = []
    for each in arys:
        x = as_tensor(each, beside)
        if x.ndim < count:
            left = {2: (1, 0), 1: (0, 0)}.get(count, ((1, 1), (1, 0), (0, 0))[min(x.ndim, 2)])
            before = left[0] if x.ndim else 0
            sizes = [1] * before + list(x.shape)
            x = x.reshape(*sizes, *[1] * (count - len(sizes)))
        results.append(x)
    return results[0] if len(results) == 1 else tuple(results)


@row("atleast_1d")
def atleast_1d(*arys: Any, beside: T) -> Any:
    return _at_least(1, arys, beside)


@row("atleast_2d")
def atleast_2d(*arys: Any, beside: T) -> Any:
    return _at_least(2, arys, beside)


@row("atleast_3d")
def atleast_3d(*arys: Any, beside: T) -> Any:
    x = [as_tensor(each, beside) for each in arys]
    x = [t.reshape(1, -1, 1) if t.ndim == 1 else t.unsqueeze(-1) if t.ndim == 2 else t for t in x]
    x = [t.reshape(1, 1, 1) if t.ndim == 0 else t for t in x]
    return x[0] if len(x) == 1 else tuple(x)


@row("repeat")
def repeat(a: T, repeats: Any, axis: Any = None) -> T:
    x, place = (a.reshape(-1), 0) if axis is None else (a, axis_of(axis, a.ndim))
    counts = np.asarray(repeats)
    if counts.ndim == 0:
        return x.repeat_interleave(int(counts), place) if int(counts) else part(x, place, 0, 0)
    return at_places(x, place, np.repeat(np.arange(x.shape[place]), counts))


@row("tile")
def tile(A: T, reps: Any) -> T:
    counts = tuple(int(n) for n in np.atleast_1d(reps))
    x = A.reshape(*(1,) * (len(counts) - A.ndim), *A.shape)
    counts = (1,) * (x.ndim - len(counts)) + counts
    if 0 in counts:
        sizes = [n * count for n, count in zip(x.shape, counts, strict=True)]
        return type(A).full(tuple(sizes), 0, dtype=A.dtype)
    return x.repeat(*counts) if counts else x


@row("resize")
def resize(a: T, new_shape: Any) -> T:
    sizes = tuple(new_shape) if isinstance(new_shape, tuple | list) else (int(new_shape),)
    count, flat = int(np.prod(sizes)), a.reshape(-1)
    if not a.numel():
        return type(a).full(sizes, 0, dtype=a.dtype)
    times = -(-count // a.numel())
    return (flat.repeat(max(times, 1)) if times > 1 else flat)[:count].reshape(*sizes)


_BY_PLACES = ("edge", "reflect", "symmetric", "wrap", "empty")


@row("pad")
def pad(array: T, pad_width: Any, mode: Any = "constant", **options: Any) -> T:
    widths = _widths(pad_width, array.ndim)
    if mode == "constant" or mode == "empty":
        values = np.broadcast_to(np.asarray(options.get("constant_values", 0)), (array.ndim, 2))
        for axis, (before, after) in enumerate(widths):
            for side, fill in (((before, 0), values[axis, 0]), ((0, after), values[axis, 1])):
                box = [side if i == axis else (0, 0) for i in range(array.ndim)]
                if any(side):
                    array = array.pad(box, value=array.dtype.const(fill.item()))
        return array
    if mode not in _BY_PLACES:
        raise dtype_error(
            f"np.pad: mode={mode!r} is not computed for Tensors",
            "what it adds is computed from the values, and has no expression yet",
            "mode= constant, edge, reflect, symmetric or wrap",
        )
    for axis, width in enumerate(widths):
        if any(width):
            places = np.pad(np.arange(array.shape[axis]), width, mode=mode, **options)
            if (np.diff(places) == 1).all() or places.min() < 0:
                raise shape_error(
                    "np.pad: there is no such place",
                    f"pad_width={pad_width}",
                    'a narrower pad_width, or mode="constant"',
                )
            array = at_places(array, axis, places)
    return array


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        full = [(0, 0)] * ndim
        for axis, width in pad_width.items():
            full[axis_of(axis, ndim)] = width if isinstance(width, tuple) else (width, width)
        return [(int(a), int(b)) for a, b in full]
    try:
        both = np.broadcast_to(np.asarray(pad_width), (ndim, 2))
    except ValueError as error:
        raise shape_error(
            "np.pad: the widths do not fit the axes",
            str(error),
            f"one number, one pair, or {ndim} pairs (before, after)",
        ) from None
    if (both < 0).any():
        raise shape_error(
            "np.pad: a width is negative",
            f"pad_width={pad_width}",
            "slicing the array to make it smaller",
        )
    return [(int(a), int(b)) for a, b in both]


@row("diagonal")
def diagonal(a: T, offset: int = 0, axis1: int = 0, axis2: int = 1) -> T:
    first, second = axis_of(axis1, a.ndim), axis_of(axis2, a.ndim)
    return a.diagonal(int(offset), first, second)


@row("linalg.diagonal")
def matrix_diagonal(x: T, offset: int = 0) -> T:
    return diagonal(x, offset, -2, -1)


@row("diag")
def diag(v: T, k: int = 0) -> T:
    if v.ndim == 1:
        side = (int(k), 0) if k >= 0 else (0, -int(k))
        return v.diag().pad([side[::-1], side]) if k else v.diag()
    if v.ndim != 2:
        raise shape_error(
            f"np.diag of shape {v.shape}",
            "it is for vectors and matrices",
            "np.diagonal of two axes of it",
        )
    return diagonal(v, k)


@row("diagflat")
def diagflat(v: T, k: int = 0) -> T:
    return diag(v.reshape(-1), k)


@row("tril")
def tril(m: T, k: int = 0) -> T:
    return (m.expand(m.shape[0], m.shape[0]) if m.ndim == 1 else m).tril(int(k))


@row("triu")
def triu(m: T, k: int = 0) -> T:
    return (m.expand(m.shape[0], m.shape[0]) if m.ndim == 1 else m).triu(int(k))


@row("delete")
def delete(arr: T, obj: Any, axis: Any = None) -> T:
    x, place = (arr.reshape(-1), 0) if axis is None else (arr, axis_of(axis, arr.ndim))
    return at_places(x, place, np.delete(np.arange(x.shape[place]), obj))


@row("lib.stride_tricks.sliding_window_view")
def sliding_window_view(x: T, window_shape: Any, axis: Any = None) -> T:
    sizes = window_shape if isinstance(window_shape, tuple | list) else (window_shape,)
    axes = tuple(range(x.ndim)) if axis is None else axis
    axes = axes if isinstance(axes, tuple | list) else (axes,)
    if len(sizes) != len(axes):
        raise shape_error(
            f"{len(sizes)} window sizes for {len(axes)} axes",
            "there is one for each",
            f"{len(axes)} window sizes",
        )
    for each, size in zip(axes, sizes, strict=True):
        x = x.unfold(axis_of(each, x.ndim) if each >= 0 else int(each), int(size), 1)
    return x


@row("ix_")
def ix_(*args: Any, beside: T) -> tuple[T, ...]:
    vectors = [as_tensor(each, beside) for each in args]
    if any(v.ndim != 1 or v.dtype.is_bool for v in vectors):
        raise shape_error(
            "np.ix_ takes vectors of positions",
            "a mask has as many as are True",
            "np.ix_([0, 2], [1, 3])",
        )
    count = len(vectors)
    return tuple(
        v.reshape(*[-1 if i == place else 1 for i in range(count)])
        for place, v in enumerate(vectors)
    )


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python's or numpy's."""
    return is_scalar(value) or isinstance(value, np.generic)
