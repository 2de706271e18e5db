"""New arrays beside a Tensor, copies, and questions that need no values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.tensor.base import Base
from workbench.tensor.numpy.functions.table import T, row
from workbench.tensor.numpy.promotion import (
    as_tensor,
    common_kind,
    first_tensor,
    kind_of_dtype,
    weak,
)
from workbench.tensor.operands.axes import many_axes


def _full(beside: T, shape: Any, value: Any, kind: Any) -> T:
    if isinstance(value, Base | np.ndarray | list | tuple):
        sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
        return as_tensor(value, beside).cast(kind).expand(*sizes)
    number = value.item() if isinstance(value, np.generic) else value
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (int(shape),)
    return type(beside).full(sizes, number, dtype=kind, device=beside._device)


@row("zeros", "empty")
def zeros(shape: Any, dtype: Any = None, beside: T = None) -> T:
    return _full(beside, shape, 0, kind_of_dtype(float if dtype is None else dtype))


@row("ones")
def ones(shape: Any, dtype: Any = None, beside: T = None) -> T:
    return _full(beside, shape, 1, kind_of_dtype(float if dtype is None else dtype))


@row("full")
def full(shape: Any, fill_value: Any, dtype: Any = None, beside: T = None) -> T:
    kind = kind_of_dtype(dtype) if dtype is not None else common_kind(_strong(fill_value))
    return _full(beside, shape, fill_value, kind)


def _strong(value: Any) -> Any:
    return value if isinstance(value, Base) else np.asarray(value)


@row("zeros_like", "empty_like")
def zeros_like(a: Any = None, dtype: Any = None, shape: Any = None, *, beside: T,
               prototype: Any = None) -> T:  # fmt: skip
    return full_like(prototype if a is None else a, 0, dtype, shape, beside=beside)


@row("ones_like")
def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, beside: T) -> T:
    return full_like(a, 1, dtype, shape, beside=beside)


@row("full_like")
def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, beside: T) -> T:
    x = as_tensor(a, beside)
    kind = x.dtype if dtype is None else kind_of_dtype(dtype)
    return _full(x, x.shape if shape is None else shape, fill_value, kind)


@row("arange")
def arange(start_or_stop: Any, stop: Any = None, step: Any = 1, dtype: Any = None,
           beside: T = None) -> T:  # fmt: skip
    kind: Any = None if dtype is None else kind_of_dtype(dtype).numpy
    numpy_arange: Any = np.arange  # its overloads know no dtype that is a variable
    values = numpy_arange(start_or_stop, stop, step, kind)
    return as_tensor(values, beside)


@row("eye")
def eye(N: int, M: Any = None, k: int = 0, dtype: Any = float, beside: T = None) -> T:
    return as_tensor(np.eye(N, M, k, kind_of_dtype(dtype).numpy), beside)


@row("identity")
def identity(n: int, dtype: Any = None, beside: T = None) -> T:
    return eye(n, dtype=float if dtype is None else dtype, beside=beside)


@row("tri")
def tri(N: int, M: Any = None, k: int = 0, dtype: Any = float, beside: T = None) -> T:
    return as_tensor(np.tri(N, M, k, kind_of_dtype(dtype).numpy), beside)


@row("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require")
def array(object: Any = None, dtype: Any = None, *, beside: T, a: Any = None) -> T:
    value = a if object is None else object
    if isinstance(value, list | tuple) and first_tensor(value) is not None:
        first, *others = [array(each, beside=beside).unsqueeze(0) for each in value]
        x = first.cat(*others, dim=0) if others else first
    else:
        x = as_tensor(value if isinstance(value, Base) else np.asarray(value), beside)
    return x if dtype is None else x.cast(kind_of_dtype(dtype))


@row("linspace")
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None,
             axis: int = 0, beside: T = None) -> T:  # fmt: skip
    kind = common_kind(start, stop, 1.0) if dtype is None else kind_of_dtype(dtype)
    wide = kind if kind.is_float else dtypes.float64
    low, high = (as_tensor(each, beside).cast(wide) for each in (start, stop))
    shape = np.broadcast_shapes(low.shape, high.shape)
    low, high = low.expand(shape).unsqueeze(0), high.expand(shape).unsqueeze(0)
    gaps = max(num - 1 if endpoint else num, 1)
    steps = as_tensor(np.arange(num), beside).cast(wide).reshape(num, *(1,) * len(shape))
    line = steps * ((high - low) / gaps) + low
    if endpoint and num > 1:
        line = line[:-1].cat(high, dim=0)
    line = line if kind.is_float else line.floor()
    order = list(range(1, line.ndim))
    order.insert(axis if axis >= 0 else line.ndim + axis, 0)
    return line.cast(kind).permute(*order)


@row("copy")
def copy(a: T) -> T:
    return a.clone()


@row("astype")
def astype(x: T, dtype: Any) -> T:
    return x.cast(kind_of_dtype(dtype))


# questions that need no values


@row("shape")
def shape_of(a: T) -> tuple[int, ...]:
    return tuple(a.shape)


@row("ndim")
def ndim(a: T) -> int:
    return int(a.ndim)


@row("size")
def size(a: T, axis: Any = None) -> int:
    return math.prod(a.shape[i] for i in many_axes(axis, a.ndim, "np.size"))


@row("result_type")
def result_type(*arrays_and_dtypes: Any) -> Any:
    return np.result_type(*[weak(each) for each in arrays_and_dtypes])


@row("can_cast")
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    return np.can_cast(weak(from_), to, casting)


@row("min_scalar_type")
def min_scalar_type(a: T) -> Any:
    return a.dtype.numpy


@row("common_type")
def common_type(*arrays: Any) -> Any:
    return np.common_type(*[np.empty(0, weak(_strong(each))) if isinstance(each, Base) else each
                            for each in arrays])  # fmt: skip


@row("iscomplexobj")
def iscomplexobj(x: T) -> bool:
    return False


@row("isrealobj")
def isrealobj(x: T) -> bool:
    return True


# the real numbers among the complex ones


@row("real")
def real(val: T) -> T:
    return val


@row("real_if_close")
def real_if_close(a: T) -> T:
    return a


@row("imag")
def imag(val: T) -> T:
    return full_like(val, 0, beside=val)


@row("iscomplex")
def iscomplex(x: T) -> T:
    return full_like(x, 0, bool, beside=x)


@row("isreal")
def isreal(x: T) -> T:
    return full_like(x, 1, bool, beside=x)
