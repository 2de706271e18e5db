"""Writes of numpy's to its arguments: `out=`, `x += y`, `np.add.at`, `np.copyto` and others.

An array that stands for a Tensor is written to. An array of numpy itself holds no expression:
`total += x` binds the name `total` to a Tensor, and leaves the array as it is. That is numpy's
meaning where this name is all that leads to the array, and refused elsewhere.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from workbench.base.errors import short
from workbench.base.source import users_frame
from workbench.tensor.base import Base
from workbench.tensor.numpy.promotion import as_tensor, kind_of_dtype
from workbench.tensor.operands.arguments import dtype_error, shape_error

T = Any  # a Tensor that stands for an array


def written(name: str, place: Any, value: T) -> T:
    """Write `value` to the array `place`, which is a Tensor, and return it.

    Errors: DTypeError for an array of numpy itself, and for a cast to another kind of dtype.
    """
    if not isinstance(place, Base):
        raise dtype_error(
            f"np.{name}: out= is {short(place)}",
            "an array of numpy's holds no expression",
            f"y = np.{name}(..) without it, or np.zeros_like(x) to write to",
        )
    return place.assign(_cast(name, value, place.dtype))  # type: ignore[attr-defined]


def _cast(name: str, value: T, kind: Any) -> T:
    if not np.can_cast(value.dtype.numpy, kind.numpy, "same_kind"):
        raise dtype_error(
            f"np.{name}: cannot write {value.dtype} to an array of {kind}",
            "numpy casts within a kind alone: floats to floats, not to integers",
            f"x = np.{name}(x, ..), or x.astype({str(value.dtype)!r}) first",
        )
    return value.cast(kind)


# --------------------------------------------------------------------------------------------------
# `total += x`, with an array of numpy itself in `total`.


def bound_in_place(name: str, array: Any, value: T, references: int) -> T:
    """Return what `array += x` binds: a Tensor of the array's dtype and shape.

    `references` is sys.getrefcount(array) in `__array_ufunc__`. Errors: DTypeError if more than
    the name that the statement binds leads to the array.
    """
    if array.base is not None or references > _fewest_references() or not _binds_a_name():
        raise dtype_error(
            f"np.{name}: an array of numpy's is written to",
            "it holds no expression, and other code can see it: it is no variable of its own here",
            "y = y + x in place of y += x, or np.zeros(.., like=x) for what is written to",
        )
    value = _cast(name, value, kind_of_dtype(array.dtype))
    return value if value.shape == array.shape else value.expand(array.shape)


class _Counter:
    """An operand that notes how many references its left operand has."""

    count = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any) -> Any:
        _Counter.count = sys.getrefcount(out[0])
        return None


def _fewest_references() -> int:
    """Return the references to an array in `array += x` whose only name is `array`: this depends
    on the version of Python."""
    if not _Counter.count:
        array: Any = np.zeros(1)
        array += _Counter()
    return _Counter.count


def _binds_a_name() -> bool:
    """Whether the user's statement binds a variable of its function, and no attribute, element or
    global name."""
    frame = users_frame()
    return frame is not None and _next_name(frame.f_code, frame.f_lasti).startswith(
        ("STORE_FAST", "STORE_DEREF")
    )


def _next_name(code: CodeType, place: int) -> str:
    names = (each.opname for each in dis.get_instructions(code) if each.offset > place)
    return next((name for name in names if name != "CACHE"), "")


# --------------------------------------------------------------------------------------------------
# Functions that write to their first argument.


def copyto(dst: T, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    value = as_tensor(src, dst)
    if casting == "same_kind" and isinstance(src, Base | np.ndarray):
        value = _cast("copyto", value, dst.dtype)
    if where is True:
        dst[...] = value
        return
    dst[...] = as_tensor(where, dst).where(value.cast(dst.dtype), dst)


def fill_diagonal(a: T, val: Any, wrap: bool = False) -> None:
    if a.ndim != 2 and len(set(a.shape)) != 1:
        raise shape_error(
            f"np.fill_diagonal of shape {a.shape}",
            "it is for matrices, and for arrays whose axes are equal",
            "a[np.arange(n), np.arange(n)] = value",
        )
    count = min(a.shape)
    if wrap and a.ndim == 2 and a.shape[0] > a.shape[1] + 1:
        raise dtype_error(
            "np.fill_diagonal: wrap=True is not computed for Tensors",
            "the diagonal of a tall matrix begins anew there",
            "np.fill_diagonal without it",
        )
    value = as_tensor(val, a)
    places = as_tensor(np.arange(count), a)
    a[(places,) * a.ndim] = (value.reshape(-1)[:count] if value.ndim else value).cast(a.dtype)


def putmask(a: T, mask: Any, values: Any) -> None:
    value = as_tensor(values, a)
    if value.ndim and value.shape != a.shape:
        raise shape_error(
            f"np.putmask: values of shape {value.shape} for {a.shape}",
            "numpy repeats them in an order of its own",
            "values of the array's shape, or a number",
        )
    a[...] = as_tensor(mask, a).ne(0).where(value.cast(a.dtype), a)


def put_along_axis(arr: T, indices: Any, values: Any, axis: Any = -1) -> None:
    index, place = as_tensor(indices, arr), int(axis) % arr.ndim
    sizes = [n if i != place else index.shape[place] for i, n in enumerate(arr.shape)]
    entries: list[Any] = [
        as_tensor(np.arange(n), arr).reshape(*[n if i == j else 1 for j in range(arr.ndim)])
        for i, n in enumerate(sizes)
    ]
    entries[place] = index
    arr[tuple(entries)] = as_tensor(values, arr).cast(arr.dtype)


WRITERS: dict[str, Callable[..., None]] = {
    "copyto": copyto,
    "fill_diagonal": fill_diagonal,
    "put_along_axis": put_along_axis,
    "putmask": putmask,
}
"""numpy's functions that write to their first argument, over Tensors that stand for arrays."""


def write_by(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Run a function of `WRITERS`. Errors: DTypeError if it would write to an array of numpy's."""
    target = args[0] if args else next(iter(named.values()))
    if not isinstance(target, Base):
        raise _no_expression(f"np.{name}")
    WRITERS[name](*args, **named)


def _no_expression(what: str) -> Exception:
    return dtype_error(
        f"{what} writes to an array of numpy's",
        "the array holds no expression",
        "np.zeros(.., like=x), or np.zeros_like(x), for what is written to",
    )


# --------------------------------------------------------------------------------------------------
# np.add.at


_AT = {"add": "sum", "subtract": "sum", "multiply": "prod", "maximum": "amax", "minimum": "amin"}


def write_at(name: str, a: Any, indices: Any, *b: Any) -> None:
    """Write what `np.add.at(a, indices, b)` writes, and so for other ufuncs: elements whose index
    is named twice are added to twice.

    Errors: DTypeError for an array of numpy's, for ufuncs without such a reduction, and for slices
    and masks among the indices.
    """
    if not isinstance(a, Base):
        raise _no_expression(f"np.{name}.at")
    entries = indices if isinstance(indices, tuple) else (indices,)
    if name not in _AT or not b or any(not _is_places(entry) for entry in entries):
        raise dtype_error(
            f"np.{name}.at with {short(indices)} is not computed for Tensors",
            f"it is computed for {', '.join(_AT)}, and for arrays of integers as indices",
            "x[index] = value, where no index is named twice",
        )
    x: Any = a
    leading, rest = x.shape[: len(entries)], x.shape[len(entries) :]
    index = as_tensor(np.int64(0), x)
    for entry, size in zip(entries, leading, strict=True):
        places = as_tensor(entry, x).cast("int64")
        index = index * size + (places < 0).where(places + size, places)
    value = as_tensor(b[0], x)
    value = _cast(name, value, x.dtype) if isinstance(b[0], Base | np.ndarray) else value
    value = value.cast(x.dtype).expand(*index.shape, *rest).reshape(-1, *rest)
    value = -value if name == "subtract" else value
    index = index.reshape(-1, *(1,) * len(rest)).expand(*value.shape)
    rows = x.reshape(-1, *rest)
    x[...] = rows.scatter_reduce(0, index, value, _AT[name]).reshape(*x.shape)


def _is_places(entry: Any) -> bool:
    if isinstance(entry, slice) or entry is None or entry is Ellipsis:
        return False
    kind = entry.dtype if isinstance(entry, Base) else kind_of_dtype(np.asarray(entry).dtype)
    return bool(kind.is_int)
