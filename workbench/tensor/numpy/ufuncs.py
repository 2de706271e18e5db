"""numpy's ufuncs over Tensors: a row for each, or the reason why there is none.

numpy calls `__array_ufunc__` for `np.exp(t)`, and for `array + t`, whose left operand is an array.
Operands are cast to the dtypes that the ufunc computes in, the row is a function of them, and its
result is cast to the ufunc's dtype. But an operator with an array on the left is the Tensor's:
`array + t` equals `t + array`, in its dtype, too.

Source: numpy enhancement proposal 13 (`__array_ufunc__`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.tensor.base import Base
from workbench.tensor.numpy import formulas
from workbench.tensor.numpy.promotion import (
    as_tensor,
    first_tensor,
    is_scalar,
    kind_after,
    kind_of_dtype,
    loop_dtypes,
)
from workbench.tensor.operands.arguments import dtype_error, shape_error

T = Any  # a Tensor; this room is below the class
Row = Callable[..., Any]


def _method(name: str) -> Row:
    return lambda x, *others: getattr(x, name)(*others)


def _unless(is_kept: Callable[[Any], bool], name: str) -> Row:
    """Return the method `name`; it returns values of dtypes that it does not change."""
    return lambda x: x if is_kept(x.dtype) else getattr(x, name)()


def _of_floats(name: str, otherwise: bool) -> Row:
    """Return a question about floats, whose answer is the same for all other numbers."""
    return lambda x: (
        getattr(x, name)()
        if x.dtype.is_float
        else x.cast(dtypes.bool) * False | (formulas.like(x.cast(dtypes.bool), otherwise))
    )


UFUNCS: dict[str, Row] = {
    # arithmetic
    "add": _method("add"),
    "subtract": _method("sub"),
    "multiply": _method("mul"),
    "divide": _method("div"),
    "floor_divide": _method("idiv"),
    "remainder": _method("mod"),
    "fmod": _method("fmod"),
    "divmod": lambda x, y: (x.idiv(y), x.mod(y)),
    "power": _method("pow"),
    "float_power": _method("pow"),
    "negative": _method("neg"),
    "positive": lambda x: x,
    "conjugate": lambda x: x,
    "absolute": _unless(lambda kind: kind.kind in ("bool", "uint"), "abs"),
    "fabs": _method("abs"),
    "sign": _method("sign"),
    "square": _method("square"),
    "reciprocal": lambda x: x.reciprocal() if x.dtype.is_float else formulas.whole_reciprocal(x),
    "heaviside": formulas.heaviside,
    "copysign": _method("copysign"),
    "signbit": formulas.is_negative,
    "modf": formulas.modf,
    "nextafter": formulas.nextafter,
    # products of matrices
    "matmul": formulas.product,
    "matvec": formulas.matvec,
    "vecmat": formulas.vecmat,
    "vecdot": formulas.vecdot,
    # bits
    "bitwise_and": _method("bitwise_and"),
    "bitwise_or": _method("bitwise_or"),
    "bitwise_xor": _method("bitwise_xor"),
    "bitwise_count": formulas.bit_count,
    "invert": _method("bitwise_not"),
    "left_shift": _method("lshift"),
    "right_shift": formulas.right_shift,
    # comparisons
    **{name: partial(formulas.compared, method) for name, method in formulas.COMPARISONS.items()},
    "maximum": _method("maximum"),
    "minimum": _method("minimum"),
    "clip": lambda x, least, most: x.maximum(least).minimum(most),
    "fmax": formulas.fmax,
    "fmin": formulas.fmin,
    "logical_and": _method("bitwise_and"),
    "logical_or": _method("bitwise_or"),
    "logical_xor": _method("bitwise_xor"),
    "logical_not": _method("logical_not"),
    "isfinite": _of_floats("isfinite", True),
    "isinf": _of_floats("isinf", False),
    "isnan": _of_floats("isnan", False),
    # whole numbers
    **{name: _unless(lambda kind: not kind.is_float, name) for name in ("floor", "ceil", "trunc")},
    "rint": _method("round"),
    # functions
    **{name: _method(name) for name in ("exp", "exp2", "log", "log2", "log10", "sqrt", "sin")},
    **{name: _method(name) for name in ("cos", "tan", "sinh", "cosh", "tanh", "logaddexp")},
    **{f"arc{name[1:]}": _method(name) for name in ("asin", "acos", "atan")},
    **{f"arc{name[1:]}": _method(name) for name in ("asinh", "acosh", "atanh")},
    "expm1": formulas.expm1,
    "log1p": formulas.log1p,
    "logaddexp2": formulas.logaddexp2,
    "cbrt": formulas.cbrt,
    "hypot": formulas.hypot,
    "arctan2": formulas.arctan2,
    "degrees": lambda x: x * (180 / math.pi),
    "rad2deg": lambda x: x * (180 / math.pi),
    "radians": lambda x: x * (math.pi / 180),
    "deg2rad": lambda x: x * (math.pi / 180),
}
"""A function of Tensors for each ufunc, by its name."""

_BITS = "it steps through the bits of a number, and no expression for it has been written"
_LOOP = "the values decide how many steps it takes"
_TEXT = "it is for text, and no Tensor has text"
REASONS: dict[str, str] = {
    "frexp": _BITS,
    "ldexp": _BITS,
    "spacing": _BITS,
    "gcd": _LOOP,
    "lcm": _LOOP,
    "isnat": "it is for dates, and no Tensor has dates",
    "_ones_like": "numpy alone calls it",
    **dict.fromkeys(
        (
            *("count", "endswith", "find", "index", "isalnum", "isalpha", "isdecimal", "isdigit"),
            *("islower", "isnumeric", "isspace", "istitle", "isupper", "rfind", "rindex"),
            *("startswith", "str_len", "_center", "_expandtabs", "_expandtabs_length", "_ljust"),
            *("_lstrip_chars", "_lstrip_whitespace", "_partition", "_partition_index", "_replace"),
            *("_rjust", "_rpartition", "_rpartition_index", "_rstrip_chars", "_rstrip_whitespace"),
            *("_slice", "_strip_chars", "_strip_whitespace", "_zfill"),
        ),
        _TEXT,
    ),
}
"""Why a ufunc has no row."""

OPERATORS = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__",
    "remainder": "__rmod__",
    "power": "__rpow__",
    "matmul": "__rmatmul__",
    "bitwise_and": "__rand__",
    "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__",
    "left_shift": "__rlshift__",
    "right_shift": "__rrshift__",
    "less": "__gt__",
    "less_equal": "__ge__",
    "greater": "__lt__",
    "greater_equal": "__le__",
    "equal": "__eq__",
    "not_equal": "__ne__",
}
"""The Tensor's methods for numpy's operators with an array on the left."""

_IGNORED = {"order": ("K", "C", "A"), "subok": (True, False), "casting": ("same_kind",)}
"""Arguments that say nothing to a Tensor, with the values that it accepts."""


def apply_ufunc(ufunc: np.ufunc, method: str, operands: Any, keywords: dict[str, Any]) -> Any:
    """Return what a ufunc, or its `method`, makes of operands, of which at least one is a Tensor.

    Errors: DTypeError for a ufunc without a row, for arguments that a Tensor has no meaning for,
    and where numpy has a TypeError; ShapeError for shapes that do not fit.
    """
    written = keywords.pop("out", None)  # of `array += tensor`, which then names the tensor
    name = ufunc.__name__
    is_operator = name in OPERATORS and isinstance(operands[0], np.ndarray)
    is_in_place = is_operator and written is not None and written[0] is operands[0]
    if written is not None and not is_in_place and any(each is not None for each in written):
        raise _refused(f"np.{name}: out", "a Tensor is an expression, and is not written into")
    if method == "__call__":
        operator = OPERATORS.get(name)
        if operator and not keywords and not isinstance(operands[0], Base) and len(operands) == 2:
            result = getattr(operands[1], operator)(operands[0])
            if result is not NotImplemented:
                return result
        return call(name, *operands, **keywords)
    kinds: Mapping[str, Row] = {"reduce": reduce, "accumulate": accumulate, "outer": outer}
    if method not in kinds:
        because = "it is for pieces of an array" if method == "reduceat" else "it writes to one"
        raise _refused(f"np.{name}.{method}", because)
    return kinds[method](name, *operands, **keywords)


def call(name: str, *operands: Any, dtype: Any = None, **keywords: Any) -> Any:
    """Return a ufunc of operands, in numpy's dtypes."""
    row, ufunc = UFUNCS.get(name), _ufunc(name)
    if row is None:
        because = REASONS.get(name, "no expression for it has been written")
        raise _refused(f"np.{name} of a Tensor", because, f"np.{name}(t.numpy())")
    extra = _plain(f"np.{name}", keywords, allowed=("axis",) if name == "vecdot" else ())
    tensor = first_tensor(list(operands))
    inputs, outputs = loop_dtypes(ufunc, operands, dtype)
    if name.startswith("logical_"):  # its operands are True where they are not 0
        inputs = [dtypes.bool] * len(inputs)
    values = [
        _operand(name, place, value, kind, tensor)
        for place, (value, kind) in enumerate(zip(operands, inputs, strict=True))
    ]
    result = row(*values, **extra)
    if isinstance(result, tuple):
        return tuple(r.cast(kind) for r, kind in zip(result, outputs, strict=True))
    return result.cast(outputs[0])


def _operand(name: str, place: int, value: Any, kind: Any, tensor: Any) -> Any:
    """Return an operand in the dtype that the ufunc computes in."""
    if is_scalar(value):
        if kind.is_int and not kind.min <= value <= kind.max:
            raise dtype_error(
                f"np.{name}: {kind} does not hold the number {value}",
                f"it holds integers from {kind.min} to {kind.max}",
                f'x.cast("int64"), or another dtype that holds {value}',
            )
        number = kind.const(value)
        # A power, and a shift, by a number that is known is a shorter expression.
        return (
            number
            if place and name in ("power", "float_power", "left_shift")
            else type(tensor)(number, dtype=kind)
        )
    return as_tensor(value, tensor).cast(kind)


_REDUCTIONS: dict[str, Callable[[T, Any, bool], T]] = {
    "add": lambda x, axis, keep: (
        x.any(axis, keep) if x.dtype.is_bool else x.sum(axis, keep, x.dtype)
    ),
    "multiply": lambda x, axis, keep: (
        x.all(axis, keep) if x.dtype.is_bool else x.prod(axis, keep, x.dtype)
    ),
    "maximum": lambda x, axis, keep: x.max(axis, keep),
    "minimum": lambda x, axis, keep: x.min(axis, keep),
    "logical_and": lambda x, axis, keep: x.all(axis, keep),
    "logical_or": lambda x, axis, keep: x.any(axis, keep),
    "logaddexp": lambda x, axis, keep: x.logsumexp(axis, keep),
}
"""Reductions by a ufunc. Shapes: as numpy's, with `axis` None for all."""
_SCANS: dict[str, Callable[[T, int], T]] = {
    "add": lambda x, axis: x.cumsum(axis, x.dtype),
    "multiply": lambda x, axis: x.cumprod(axis, x.dtype),
    "maximum": lambda x, axis: x.cummax(axis)[0],
    "minimum": lambda x, axis: x.cummin(axis)[0],
}
_UNSET = getattr(np, "_NoValue", None)


def reduce(
    name: str,
    x: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: Any = False,
    initial: Any = _UNSET,
    **keywords: Any,
) -> Any:
    """Return `np.add.reduce(x, ..)`, and so for other ufuncs: axes combined to one element each."""
    what = f"np.{name}.reduce"
    _plain(what, keywords)
    if name not in _REDUCTIONS:
        raise _refused(what, "no reduction of Tensors is by this ufunc")
    x = x.cast(_kind_of_total(_ufunc(name), x, dtype))
    axis = _axes(what, axis, x.ndim)
    keep = keepdims is True or (keepdims is not _UNSET and bool(keepdims))
    if initial is _UNSET or initial is None:
        return _REDUCTIONS[name](x, axis, keep)
    if 0 in x.shape and name in ("maximum", "minimum"):
        sizes = _reduced(x.shape, axis, keep)
        return type(x).full(sizes, initial, dtype=x.dtype)
    return call(name, _REDUCTIONS[name](x, axis, keep), initial).cast(x.dtype)


def accumulate(name: str, x: Any, axis: int = 0, dtype: Any = None, **keywords: Any) -> Any:
    """Return `np.add.accumulate(x, ..)`, and so for other ufuncs: the total up to each element."""
    what = f"np.{name}.accumulate"
    _plain(what, keywords)
    if name not in _SCANS:
        raise _refused(what, "no running total of Tensors is by this ufunc")
    if x.ndim == 0:
        raise shape_error(f"cannot {what} of a scalar", "it has no axis", "np.atleast_1d(t)")
    x = x.cast(_kind_of_total(_ufunc(name), x, dtype))
    if x.dtype.is_bool:
        scanned = _SCANS[name](x.cast(dtypes.int64), axis)
        return scanned.ne(0)
    return _SCANS[name](x, axis)


def outer(name: str, x: Any, y: Any, **keywords: Any) -> Any:
    """Return `np.add.outer(x, y)`, and so for other ufuncs: all pairs of elements."""
    if name not in UFUNCS or _ufunc(name).nin != 2:
        raise _refused(f"np.{name}.outer", "it is for ufuncs of two operands that have a row")
    tensor = first_tensor([x, y])
    if not is_scalar(x):
        x = as_tensor(x, tensor)
        x = x.reshape(*x.shape, *(1,) * np.ndim(y) if not isinstance(y, Base) else (1,) * y.ndim)
    return call(name, x, y, **keywords)


def _kind_of_total(ufunc: np.ufunc, x: Any, dtype: Any) -> Any:
    """Return the dtype in which numpy combines elements: of sums, at least as wide as an int."""
    if dtype is not None:
        return kind_of_dtype(dtype)
    if ufunc.__name__.startswith("logical_"):
        return dtypes.bool
    return kind_after(ufunc.reduce, x.dtype)


def _axes(what: str, axis: Any, ndim: int) -> Any:
    """Return the axes of a reduction; numpy allows () for none of them."""
    if axis is None:
        return None
    if isinstance(axis, tuple | list):
        return tuple(int(each) for each in axis)
    if ndim == 0 and axis in (0, -1):
        return None
    return int(axis)


def _reduced(shape: tuple[int, ...], axis: Any, keep: bool) -> tuple[int, ...]:
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    gone = {each % len(shape) for each in axes}
    return tuple(1 if i in gone else n for i, n in enumerate(shape) if keep or i not in gone)


def _ufunc(name: str) -> np.ufunc:
    found = getattr(np, name, None)
    if not isinstance(found, np.ufunc):  # np.clip is a function, which calls this one
        found = getattr(np._core.umath, name)  # type: ignore[attr-defined]
    return found


def _plain(what: str, keywords: dict[str, Any], allowed: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the `allowed` ones of further arguments. Errors: DTypeError for others."""
    for key, value in keywords.items():
        is_default = value is None or value is _UNSET or (key == "where" and value is True)
        if key in allowed or is_default or value in _IGNORED.get(key, ()):
            continue
        because = {
            "where": "the elements that it leaves out would have no value",
            "casting": "casts are those of 'same_kind', numpy's default",
            "out": "a Tensor is an expression, and is not written into",
        }.get(key, "it has no meaning for an expression")
        hint = "np.where(mask, f(t), otherwise)" if key == "where" else "f(t) without it"
        raise _refused(f"{what}: {key}", because, hint)
    return {key: keywords[key] for key in allowed if key in keywords}


def _refused(what: str, because: str, hint: str = "") -> Exception:
    return dtype_error(f"{what} is not computed for Tensors", because, hint)
