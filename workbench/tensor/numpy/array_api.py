"""The Python array API standard over Tensors: what `tensor.__array_namespace__()` returns.

Functions have the standard's names and arguments. They are those of numpy's rows, so that what has
an expression computes nothing. What the values decide (`unique_values`, `nonzero`) computes them.
The default dtypes are float32 (`dtypes.default_float`), int64 and uint64. There are no complex
dtypes.

Source: the array API standard, version 2024.12.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.backends.device import Device
from workbench.base.dtypes import DType, dtypes
from workbench.tensor.base import Base
from workbench.tensor.lazily import refuse_to_compute
from workbench.tensor.numpy import array_api_linalg
from workbench.tensor.numpy.functions import (
    creation,
    elementwise,
    joining,
    movement,
    products,
    reductions,
    statistics,
)
from workbench.tensor.numpy.functions.reasons import VALUES, hint_of
from workbench.tensor.numpy.promotion import first_tensor
from workbench.tensor.numpy.tensor_class import tensor_class
from workbench.tensor.numpy.ufuncs import call
from workbench.tensor.operands.arguments import axis_error, dtype_error

T = Any  # a Tensor; this room is below the class

__array_api_version__ = "2024.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The versions of the standard whose functions are all here, but for those of `REASONS`."""
REASONS = {
    **dict.fromkeys(("complex64", "complex128"), "no Tensor has complex numbers"),
    "fft": "its results are complex, and no Tensor has complex numbers",
}
"""Why a name of the standard is absent."""
DEVIATIONS = {
    "size": "a method, as PyTorch's; the number of elements is x.numel()",
    "__bool__": "refused: x.item() is the value",
    "__index__": "absent: int(x) is the value",
    "__complex__": "absent: no Tensor has complex numbers",
}
"""What of a Tensor is not as the standard says."""
linalg = array_api_linalg

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi
bool = dtypes.bool
int8, int16, int32, int64 = dtypes.sints
uint8, uint16, uint32, uint64 = dtypes.uints
float32, float64 = dtypes.float32, dtypes.float64


def __getattr__(name: str) -> Any:
    reason = f": {REASONS[name]}" if name in REASONS else ""
    raise AttributeError(f"the array API of Tensors has no {name!r}{reason}")


# elementwise functions


def _elementwise(name: str, of: str = "") -> Callable[..., T]:
    """Return the standard's function `name`, which is numpy's ufunc `of`."""
    ufunc = of or name
    count = getattr(np, ufunc).nin

    if count == 1:

        def function(x: T, /) -> T:
            return call(ufunc, x)
    else:

        def function(x1: T, x2: T, /) -> T:  # type: ignore[misc]
            return call(ufunc, x1, x2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return numpy's {ufunc} of each element."
    return function


abs = _elementwise("abs", "absolute")
acos, acosh = _elementwise("acos", "arccos"), _elementwise("acosh", "arccosh")
add = _elementwise("add")
asin, asinh = _elementwise("asin", "arcsin"), _elementwise("asinh", "arcsinh")
atan, atanh = _elementwise("atan", "arctan"), _elementwise("atanh", "arctanh")
atan2 = _elementwise("atan2", "arctan2")
bitwise_and = _elementwise("bitwise_and")
bitwise_left_shift = _elementwise("bitwise_left_shift", "left_shift")
bitwise_invert = _elementwise("bitwise_invert", "invert")
bitwise_or = _elementwise("bitwise_or")
bitwise_right_shift = _elementwise("bitwise_right_shift", "right_shift")
bitwise_xor = _elementwise("bitwise_xor")
ceil = _elementwise("ceil")
conj = _elementwise("conj", "conjugate")
copysign = _elementwise("copysign")
cos, cosh = _elementwise("cos"), _elementwise("cosh")
divide = _elementwise("divide")
equal = _elementwise("equal")
exp, expm1 = _elementwise("exp"), _elementwise("expm1")
floor = _elementwise("floor")
floor_divide = _elementwise("floor_divide")
greater, greater_equal = _elementwise("greater"), _elementwise("greater_equal")
hypot = _elementwise("hypot")
isfinite, isinf, isnan = _elementwise("isfinite"), _elementwise("isinf"), _elementwise("isnan")
less, less_equal = _elementwise("less"), _elementwise("less_equal")
log, log1p = _elementwise("log"), _elementwise("log1p")
log2, log10 = _elementwise("log2"), _elementwise("log10")
logaddexp = _elementwise("logaddexp")
logical_and, logical_not = _elementwise("logical_and"), _elementwise("logical_not")
logical_or, logical_xor = _elementwise("logical_or"), _elementwise("logical_xor")
maximum, minimum = _elementwise("maximum"), _elementwise("minimum")
multiply = _elementwise("multiply")
negative = _elementwise("negative")
nextafter = _elementwise("nextafter")
not_equal = _elementwise("not_equal")
positive = _elementwise("positive")
pow = _elementwise("pow", "power")
reciprocal = _elementwise("reciprocal")
remainder = _elementwise("remainder")
sign, signbit = _elementwise("sign"), _elementwise("signbit")
sin, sinh = _elementwise("sin"), _elementwise("sinh")
sqrt, square = _elementwise("sqrt"), _elementwise("square")
subtract = _elementwise("subtract")
tan, tanh = _elementwise("tan"), _elementwise("tanh")
trunc = _elementwise("trunc")


def round(x: T, /) -> T:
    return elementwise.round_to(x)


def clip(x: T, /, min: Any = None, max: Any = None) -> T:
    return elementwise.clip(x, min, max).cast(x.dtype)


def real(x: T, /) -> T:
    return creation.real(x)


def imag(x: T, /) -> T:
    return creation.imag(x)


# creation


def asarray(obj: Any, /, *, dtype: DType | None = None, device: str | None = None,
            copy: Any = None) -> T:  # fmt: skip
    tensor = tensor_class()
    if isinstance(obj, Base):
        result = tensor(obj, device=device, dtype=dtype)
        return result.clone() if copy else result
    if copy is False:
        raise ValueError("a Tensor of an array, a list or a number is a copy of it")
    if isinstance(obj, list | tuple) and (one := first_tensor(obj)) is not None:
        return creation.array(obj, dtype, beside=one)
    kind = dtype
    if kind is None and not hasattr(obj, "__array__"):
        kind = default_dtype(np.asarray(obj).dtype.kind)
    return tensor(obj, device=device, dtype=kind)


def default_dtype(kind: str) -> DType:
    """Return the dtype of Python's numbers: of bools, ints or floats."""
    return {"b": dtypes.bool, "i": dtypes.int64, "u": dtypes.uint64}.get(kind, dtypes.default_float)


def arange(start: float, /, stop: float | None = None, step: float = 1, *,
           dtype: DType | None = None, device: str | None = None) -> T:  # fmt: skip
    if dtype is None:
        dtype = default_dtype(np.result_type(start, stop or 0, step).kind)
    return tensor_class().arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: Any, *, dtype: DType | None = None, device: str | None = None) -> T:
    return tensor_class().empty(_sizes(shape), dtype=dtype, device=device)


def zeros(shape: Any, *, dtype: DType | None = None, device: str | None = None) -> T:
    return tensor_class().zeros(_sizes(shape), dtype=dtype, device=device)


def ones(shape: Any, *, dtype: DType | None = None, device: str | None = None) -> T:
    return tensor_class().ones(_sizes(shape), dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: DType | None = None,
         device: str | None = None) -> T:  # fmt: skip
    kind = dtype or default_dtype(np.asarray(fill_value).dtype.kind)
    return tensor_class().full(_sizes(shape), fill_value, dtype=kind, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DType | None = None,
        device: str | None = None) -> T:  # fmt: skip
    kind = dtype or dtypes.default_float
    return tensor_class()(np.eye(n_rows, n_cols, k, kind.numpy), device=device)


def empty_like(x: T, /, *, dtype: DType | None = None, device: str | None = None) -> T:
    return x.empty_like(dtype, device)


def zeros_like(x: T, /, *, dtype: DType | None = None, device: str | None = None) -> T:
    return x.zeros_like(dtype, device)


def ones_like(x: T, /, *, dtype: DType | None = None, device: str | None = None) -> T:
    return x.ones_like(dtype, device)


def full_like(x: T, /, fill_value: Any, *, dtype: DType | None = None,
              device: str | None = None) -> T:  # fmt: skip
    return x.full_like(fill_value, dtype, device)


def from_dlpack(x: Any, /, *, device: str | None = None, copy: Any = None) -> T:
    result = tensor_class().from_dlpack(x)
    if copy:  # now, before the owner of the memory writes to it
        result = tensor_class()(result.numpy().copy())
    return result if device is None else result.to(device)


def linspace(start: float, stop: float, /, num: int, *, dtype: DType | None = None,
             device: str | None = None, endpoint: Any = True) -> T:  # fmt: skip
    kind = dtype or dtypes.default_float
    return tensor_class()(np.linspace(start, stop, num, endpoint, dtype=kind.numpy), device=device)


def meshgrid(*arrays: T, indexing: str = "xy") -> tuple[T, ...]:
    return joining.meshgrid(*arrays, indexing=indexing, beside=arrays[0]) if arrays else ()


def tril(x: T, /, *, k: int = 0) -> T:
    return x.tril(k)


def triu(x: T, /, *, k: int = 0) -> T:
    return x.triu(k)


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, tuple | list) else (shape,)


# dtypes


class FloatInfo(NamedTuple):
    """What `finfo` returns."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntInfo(NamedTuple):
    """What `iinfo` returns."""

    bits: int
    max: int
    min: int
    dtype: DType


def astype(x: T, dtype: DType, /, *, copy: Any = True, device: str | None = None) -> T:
    result = x.cast(dtype)
    result = result.clone() if copy and result is x else result
    return result if device is None else result.to(device)


def can_cast(from_: Any, to: DType, /) -> Any:
    kind = from_.dtype if isinstance(from_, Base) else from_
    return np.can_cast(kind.numpy, to.numpy)


def finfo(type: Any, /) -> FloatInfo:
    kind = _dtype(type)
    ends: Any = np.finfo(kind.numpy)
    eps, greatest, least, normal = map(float, (ends.eps, ends.max, ends.min, ends.smallest_normal))
    return FloatInfo(kind.bits, eps, greatest, least, normal, kind)


def iinfo(type: Any, /) -> IntInfo:
    kind = _dtype(type)
    return IntInfo(kind.bits, int(kind.max), int(kind.min), kind)


def isdtype(dtype: DType, kind: Any) -> Any:
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, DType):
        return dtype is kind
    kinds = {
        "bool": ("bool",),
        "signed integer": ("int",),
        "unsigned integer": ("uint",),
        "integral": ("int", "uint"),
        "real floating": ("float",),
        "complex floating": (),
        "numeric": ("int", "uint", "float"),
    }
    if kind not in kinds:
        raise dtype_error(
            f"isdtype: there is no kind {kind!r}",
            "it is one of " + ", ".join(kinds),
            'kind="numeric"',
        )
    return dtype.kind in kinds[kind]


def result_type(*arrays_and_dtypes: Any) -> DType:
    kinds = [
        each.dtype.numpy
        if isinstance(each, Base)
        else each.numpy
        if isinstance(each, DType)
        else each
        for each in arrays_and_dtypes
    ]
    return dtypes.from_numpy(np.result_type(*kinds))


def _dtype(value: Any) -> DType:
    return value.dtype if isinstance(value, Base) else value


# shapes


def broadcast_arrays(*arrays: T) -> tuple[T, ...]:
    return movement.broadcast_arrays(*arrays, beside=arrays[0])


def broadcast_to(x: T, /, shape: Any) -> T:
    return movement.broadcast_to(x, shape)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(np.broadcast_shapes(*shapes))


def concat(arrays: Sequence[T], /, *, axis: int | None = 0) -> T:
    return joining.concatenate(arrays, axis, beside=arrays[0])


def expand_dims(x: T, /, axis: Any = 0) -> T:
    return movement.expand_dims(x, axis)


def flip(x: T, /, *, axis: Any = None) -> T:
    return movement.flip(x, axis)


def moveaxis(x: T, source: Any, destination: Any, /) -> T:
    return movement.moveaxis(x, source, destination)


def permute_dims(x: T, /, axes: tuple[int, ...]) -> T:
    return movement.transpose(x, axes)


def repeat(x: T, repeats: Any, /, *, axis: int | None = None) -> T:
    if isinstance(repeats, Base):
        refuse_to_compute("repeat by a Tensor needs its values", VALUES, "repeats as a number")
        repeats = repeats.numpy()  # type: ignore[attr-defined]
    return movement.repeat(x, repeats, axis)


def reshape(x: T, /, shape: Any, *, copy: Any = None) -> T:
    result = movement.reshape(x, tuple(shape))
    return result.clone() if copy else result


def roll(x: T, /, shift: Any, *, axis: Any = None) -> T:
    return movement.roll(x, shift, axis)


def squeeze(x: T, /, axis: Any) -> T:
    return movement.squeeze(x, axis)


def stack(arrays: Sequence[T], /, *, axis: int = 0) -> T:
    return joining.stack(arrays, axis, beside=arrays[0])


def tile(x: T, repetitions: tuple[int, ...], /) -> T:
    return movement.tile(x, repetitions)


def unstack(x: T, /, *, axis: int = 0) -> tuple[T, ...]:
    return joining.unstack(x, axis)


# choices, order, sets


def take(x: T, indices: T, /, *, axis: int | None = None) -> T:
    if axis is None and x.ndim > 1:
        raise axis_error(
            "take: which axis the places are of is open", f"there are {x.ndim}", "axis=0"
        )
    return elementwise.take(x, indices, axis, beside=x)


def take_along_axis(x: T, indices: T, /, *, axis: int = -1) -> T:
    return elementwise.take_along_axis(x, indices, axis, beside=x)


def where(condition: T, x1: Any, x2: Any, /) -> T:
    return elementwise.where(condition, x1, x2, beside=condition)


def nonzero(x: T, /) -> tuple[T, ...]:
    refuse_to_compute("nonzero needs the values of a Tensor", VALUES, hint_of("nonzero"))
    return tuple(tensor_class()(each, device=x.device) for each in np.nonzero(x.numpy()))


def count_nonzero(x: T, /, *, axis: Any = None, keepdims: Any = False) -> T:
    return reductions.count_nonzero(x, axis, keepdims)


def argmax(x: T, /, *, axis: int | None = None, keepdims: Any = False) -> T:
    return reductions.argmax(x, axis, keepdims)


def argmin(x: T, /, *, axis: int | None = None, keepdims: Any = False) -> T:
    return reductions.argmin(x, axis, keepdims)


def searchsorted(x1: T, x2: T, /, *, side: str = "left", sorter: T | None = None) -> T:
    x1 = x1 if sorter is None else take(x1, sorter, axis=0)
    return elementwise.searchsorted(x1, x2, side, x1)


def argsort(x: T, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> T:
    place = movement.axis_of(axis, x.ndim)
    return (
        x.argsort(place, descending).cast(dtypes.int64)
        if x.numel()
        else (x.zeros_like(dtypes.int64))
    )


def isin(x1: Any, x2: Any, /, *, invert: Any = False) -> T:
    return elementwise.isin(x1, x2, invert, first_tensor([x1, x2]))


def sort(x: T, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> T:
    return x.sort(movement.axis_of(axis, x.ndim), descending)[0] if x.numel() else x


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: T
    indices: T
    inverse_indices: T
    counts: T


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: T
    counts: T


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: T
    inverse_indices: T


def unique_all(x: T, /) -> UniqueAll:
    refuse_to_compute("unique_all needs the values of a Tensor", VALUES, hint_of("unique_all"))
    array = x.numpy()
    values, indices, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    inverse = inverse.reshape(array.shape)
    parts = (values, indices, inverse, counts)
    return UniqueAll(*[tensor_class()(each, device=x.device) for each in parts])


def unique_counts(x: T, /) -> UniqueCounts:
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: T, /) -> UniqueInverse:
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: T, /) -> T:
    return unique_all(x).values


# statistics and totals


def cumulative_prod(x: T, /, *, axis: int | None = None, dtype: DType | None = None,
                    include_initial: Any = False) -> T:  # fmt: skip
    return reductions.cumulative_prod(x, axis, dtype, include_initial)


def cumulative_sum(x: T, /, *, axis: int | None = None, dtype: DType | None = None,
                   include_initial: Any = False) -> T:  # fmt: skip
    return reductions.cumulative_sum(x, axis, dtype, include_initial)


def max(x: T, /, *, axis: Any = None, keepdims: Any = False) -> T:
    return reductions.maximum(x, axis, keepdims)


def min(x: T, /, *, axis: Any = None, keepdims: Any = False) -> T:
    return reductions.minimum(x, axis, keepdims)


def mean(x: T, /, *, axis: Any = None, keepdims: Any = False) -> T:
    return reductions.mean(x, axis, keepdims=keepdims)


def prod(x: T, /, *, axis: Any = None, dtype: DType | None = None, keepdims: Any = False) -> T:
    return reductions.prod(x, axis, dtype, keepdims)


def std(x: T, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> T:
    return reductions.std(x, axis, ddof=correction, keepdims=keepdims)


def sum(x: T, /, *, axis: Any = None, dtype: DType | None = None, keepdims: Any = False) -> T:
    return reductions.sum_of(x, axis, dtype, keepdims)


def var(x: T, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> T:
    return reductions.var(x, axis, ddof=correction, keepdims=keepdims)


def all(x: T, /, *, axis: Any = None, keepdims: Any = False) -> T:
    return reductions.all_of(x, axis, keepdims)


def any(x: T, /, *, axis: Any = None, keepdims: Any = False) -> T:
    return reductions.any_of(x, axis, keepdims)


def diff(x: T, /, *, axis: int = -1, n: int = 1, prepend: T | None = None,
         append: T | None = None) -> T:  # fmt: skip
    unset = np._NoValue
    return statistics.diff(x, n, axis, unset if prepend is None else prepend,
                           unset if append is None else append, x)  # fmt: skip


# products


def matmul(x1: T, x2: T, /) -> T:
    return call("matmul", x1, x2)


def matrix_transpose(x: T, /) -> T:
    return movement.matrix_transpose(x)


def tensordot(x1: T, x2: T, /, *, axes: Any = 2) -> T:
    return products.tensordot(x1, x2, axes, x1)


def vecdot(x1: T, x2: T, /, *, axis: int = -1) -> T:
    return call("vecdot", x1, x2, axis=axis)


# what the namespace says of itself


class NamespaceInfo:
    """What `__array_namespace_info__` returns."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        return Device.DEFAULT

    def default_dtypes(self, *, device: str | None = None) -> dict[str, Any]:
        return {
            "real floating": dtypes.default_float,
            "complex floating": None,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: str | None = None, kind: Any = None) -> dict[str, DType]:
        own = (dtypes.bool, *dtypes.sints, *dtypes.uints, dtypes.float32, dtypes.float64)
        return {each.name: each for each in own if kind is None or isdtype(each, kind)}

    def devices(self) -> list[str]:
        return list(Device.names())


def __array_namespace_info__() -> NamespaceInfo:
    return NamespaceInfo()
