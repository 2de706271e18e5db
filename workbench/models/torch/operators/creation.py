"""Tensors of constants, of ranges and of random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.base.dtypes import DType, dtypes
from workbench.models.torch.table import row
from workbench.tensor.tensor import Tensor


@row("full")
def full(
    size: Sequence[int], fill_value: Any, *, dtype: DType | None = None, **_: object
) -> Tensor:
    return Tensor.full(tuple(size), fill_value, dtype=dtype or _kind(fill_value))


@row("full_like")
def full_like(x: Tensor, fill_value: Any, *, dtype: DType | None = None, **_: object) -> Tensor:
    return Tensor.full(x.shape, fill_value, dtype=dtype or x.dtype)


@row("fill.Scalar", "fill.Tensor")
def fill(x: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value.cast(x.dtype).expand(x.shape)
    return Tensor.full(x.shape, value, dtype=x.dtype)


@row("scalar_tensor")
def scalar_tensor(s: Any, *, dtype: DType | None = None, **_: object) -> Tensor:
    return Tensor.full((), s, dtype=dtype or _kind(s))


@row("empty.memory_format", "zeros")
def zeros(size: Sequence[int], *, dtype: DType | None = None, **_: object) -> Tensor:
    """Zeros, also where ATen leaves the elements open."""
    return Tensor.zeros(tuple(size), dtype=dtype or dtypes.float32)


@row("empty_strided", "empty_permuted")
def empty_strided(size: Sequence[int], stride: Sequence[int], **options: Any) -> Tensor:
    return zeros(size, **options)


@row("ones")
def ones(size: Sequence[int], *, dtype: DType | None = None, **_: object) -> Tensor:
    return Tensor.ones(tuple(size), dtype=dtype or dtypes.float32)


@row("arange.start_step")
def arange(
    start: float, end: float, step: float = 1, *, dtype: DType | None = None, **_: object
) -> Tensor:
    are_whole = all(isinstance(n, int) for n in (start, end, step))
    kind = dtype or (dtypes.int64 if are_whole else dtypes.float32)
    return Tensor.arange(start, end, step, dtype=kind)


@row("rand")
def rand(size: Sequence[int], *, dtype: DType | None = None, **_: object) -> Tensor:
    return Tensor.rand(*size, dtype=dtype)


@row("randn")
def randn(size: Sequence[int], *, dtype: DType | None = None, **_: object) -> Tensor:
    return Tensor.randn(*size, dtype=dtype)


@row("rand_like")
def rand_like(x: Tensor, *, dtype: DType | None = None, **_: object) -> Tensor:
    return Tensor.rand(*x.shape, dtype=dtype or x.dtype)


@row("randn_like")
def randn_like(x: Tensor, *, dtype: DType | None = None, **_: object) -> Tensor:
    return Tensor.randn(*x.shape, dtype=dtype or x.dtype)


@row("randperm")
def randperm(n: int, *, dtype: DType | None = None, **_: object) -> Tensor:
    return Tensor.randperm(n, dtype=dtype or dtypes.int64)


def _kind(value: Any) -> DType:
    kinds = {bool: dtypes.bool, int: dtypes.int64}
    return kinds.get(type(value), dtypes.float32)
