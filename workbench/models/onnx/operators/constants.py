"""Constants, ranges and random numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import ModelError
from workbench.models.onnx.operators.elementwise import numbers
from workbench.models.onnx.table import row
from workbench.models.onnx.values import Array, axis_of, dtype_of, tensor_of
from workbench.tensor.tensor import Tensor


@row("Constant")
def constant(
    *,
    value: Array | None = None,
    value_float: float | None = None,
    value_floats: Sequence[float] | None = None,
    value_int: int | None = None,
    value_ints: Sequence[int] | None = None,
) -> Array:
    """The array of the attribute that is given."""
    if value is not None:
        return value
    if value_float is not None or value_floats is not None:
        floats = value_float if value_floats is None else value_floats
        return np.array(floats, np.float32)
    if value_int is None and value_ints is None:
        raise ModelError("a constant has no value")
    return np.array(value_int if value_ints is None else value_ints, np.int64)


@row("ConstantOfShape", since=9, known=("shape",))
def constant_of_shape(shape: Array, *, value: Array | None = None) -> Tensor:
    number = tensor_of(np.zeros((), np.float32) if value is None else value.reshape(()))
    sizes = tuple(numbers(shape))
    return number.reshape((1,) * len(sizes)).expand(sizes)


@row("Range", since=11, known=("start", "limit", "delta"))
def range_of(start: Array, limit: Array, delta: Array, *, stash_type: int = 1) -> Tensor:
    dtype = tensor_of(start.reshape(())).dtype
    return Tensor.arange(start.item(), limit.item(), delta.item(), dtype=dtype)


@row("EyeLike", since=9)
def eye_like(x: Tensor, *, dtype: int | None = None, k: int = 0) -> Tensor:
    kind = x.dtype if dtype is None else dtype_of(dtype)
    rows = Tensor.arange(x.shape[0], dtype=dtypes.int64).unsqueeze(1)
    columns = Tensor.arange(x.shape[1], dtype=dtypes.int64).unsqueeze(0)
    return (columns - rows).eq(k).cast(kind)


@row("OneHot", since=9, known=("depth",))
def one_hot(indices: Tensor, depth: Array, values: Tensor, *, axis: int = -1) -> Tensor:
    """values[1] where an index is, counted from the end if negative; elsewhere values[0]."""
    size = int(depth.item())
    axis = axis_of(axis, indices.ndim + 1)
    index = indices.cast(dtypes.int64).unsqueeze(axis)
    index = (index < 0).where(index + size, index)
    shape = [1] * index.ndim
    shape[axis] = size
    is_there = index.eq(Tensor.arange(size, dtype=dtypes.int64).reshape(tuple(shape)))
    return is_there.where(values[1], values[0])


@row("RandomNormal")
def random_normal(
    *, shape: Sequence[int], dtype: int = 1, mean: float = 0.0, scale: float = 1.0, seed: float = 0
) -> Tensor:
    """Normal numbers of this library's generator: other ones than those of another runtime."""
    return (Tensor.randn(*shape) * scale + mean).cast(dtype_of(dtype))


@row("RandomNormalLike")
def random_normal_like(
    x: Tensor, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0, seed: float = 0
) -> Tensor:
    return (Tensor.randn(*x.shape) * scale + mean).cast(_kind(x, dtype))


@row("RandomUniform")
def random_uniform(
    *, shape: Sequence[int], dtype: int = 1, low: float = 0.0, high: float = 1.0, seed: float = 0
) -> Tensor:
    """Uniform numbers of this library's generator: other ones than those of another runtime."""
    return (Tensor.rand(*shape) * (high - low) + low).cast(dtype_of(dtype))


@row("RandomUniformLike")
def random_uniform_like(
    x: Tensor, *, dtype: int | None = None, low: float = 0.0, high: float = 1.0, seed: float = 0
) -> Tensor:
    return (Tensor.rand(*x.shape) * (high - low) + low).cast(_kind(x, dtype))


def _kind(x: Tensor, dtype: int | None) -> DType:
    return x.dtype if dtype is None else dtype_of(dtype)
