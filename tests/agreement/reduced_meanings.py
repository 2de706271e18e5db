"""What reductions mean in numpy, and what is made of them; as `meanings.py` has the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.agreement.intervals import (
    BITS,
    SMALL,
    Ambiguous,
    Array,
    Known,
    between,
    cast,
    elements,
    exactly,
    known,
    stored,
    widened,
)
from tests.agreement.meanings import (
    GREATEST,
    TINY_STEP,
    Meaning,
    as_float,
    divide,
    exp,
    met,
    subtract,
)


def sum_dtype(dtype: str) -> str:
    """Return the dtype of a sum: 64 bits for integers, as in torch; uint64 as in numpy."""
    return dtype if dtype in BITS or dtype == "uint64" else "int64"


def total(a: Known, axis: Any = None, keepdim: bool = False) -> Known:
    return _summed(lambda v, **k: np.sum(v, axis=axis, keepdims=keepdim, **k), a, axis)


def running_total(a: Known, axis: int) -> Known:
    return _summed(lambda v, **k: np.cumsum(v, axis=axis, **k), a, axis)


def _summed(f: Callable[..., Array], a: Known, axis: Any) -> Known:
    a = cast(a, sum_dtype(a.dtype))
    if a.dtype not in BITS:
        return _whole(f, a)
    wide = "float32" if a.dtype in SMALL else a.dtype
    with np.errstate(all="ignore"):
        low = np.asarray(f(a.low))
        high = low if a.exact else np.asarray(f(a.high))
        finite = np.where(np.isfinite(a.sizes), a.sizes, 0.0)
        sizes = np.asarray(f(finite))
    _below_overflow(sizes, a.dtype)
    if a.exact and _all_whole(finite) and (sizes < 2.0 ** (BITS[wide] + 1)).all():
        return widened(a.dtype, low, high)
    lost = sizes * _length(a.shape, axis) * 2.0 ** -BITS[wide]
    return widened(a.dtype, low, high, 1.0, lost)


def _whole(f: Callable[..., Array], a: Known) -> Known:
    """A reduction of whole numbers, which wraps as their dtype does."""
    values = np.asarray(f(a.low, dtype=a.low.dtype))
    return between(a.dtype, values, values)


def _all_whole(values: Array) -> bool:
    return bool((np.trunc(values) == values).all())


def _below_overflow(sizes: Array, dtype: str) -> None:
    if (sizes >= GREATEST[dtype] / 2).any():
        raise Ambiguous("may overflow on the way, in some order")


def _length(shape: tuple[int, ...], axis: Any) -> int:
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return max(1, math.prod(shape[i] for i in axes))


def product(a: Known, axis: Any = None, keepdim: bool = False) -> Known:
    return _multiplied(lambda v, **k: np.prod(v, axis=axis, keepdims=keepdim, **k), a, axis)


def running_product(a: Known, axis: int) -> Known:
    return _multiplied(lambda v, **k: np.cumprod(v, axis=axis, **k), a, axis)


def _multiplied(f: Callable[..., Array], a: Known, axis: Any) -> Known:
    a = cast(a, sum_dtype(a.dtype))
    if a.dtype not in BITS:
        return _whole(f, a)
    x, wide = exactly(a), "float32" if a.dtype in SMALL else a.dtype
    with np.errstate(all="ignore"):
        values, sizes = np.asarray(f(x)), np.abs(x)
        there = np.where(np.isfinite(sizes) & (sizes > 0), sizes, 1.0)
        most = np.asarray(f(np.maximum(there, 1.0)))
        least = np.asarray(f(np.minimum(there, 1.0)))
    _below_overflow(most, a.dtype)
    if (least < 1e-30).any():
        raise Ambiguous("may underflow on the way, in some order")
    if _all_whole(there) and (most < 2.0 ** (BITS[wide] + 1)).all():
        return widened(a.dtype, values, values)
    return widened(a.dtype, values, values, 2.0 * _length(a.shape, axis))


def average(a: Known, axis: Any = None, keepdim: bool = False) -> Known:
    fraction = as_float(a)
    wide = cast(fraction, "float32") if fraction.dtype in SMALL else fraction
    count = known(np.asarray(float(_count(a.shape, axis)), stored(wide.dtype)))
    # Below 64 bits the sum of integers is exact.
    source = wide if a.dtype in (*BITS, "int64", "uint64") else a
    summed = cast(total(source, axis, keepdim), wide.dtype)
    return cast(divide(summed, count), fraction.dtype)


def _count(shape: tuple[int, ...], axis: Any) -> int:
    axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return math.prod(shape[i] for i in axes)


def reduced(f: Callable[..., Any]) -> Meaning:
    """Return the meaning of max and min over axes: exact."""

    def meaning(a: Known, axis: Any = None, keepdim: bool = False) -> Known:
        return elements(a, lambda v: np.asarray(f(v, axis=axis, keepdims=keepdim)), False)

    return meaning


def position(f: Callable[..., Any]) -> Meaning:
    def meaning(a: Known, axis: int | None = None) -> Known:
        return known(np.asarray(f(exactly(a), axis=axis)).astype(np.int32))

    return meaning


def truth(f: Callable[..., Any]) -> Meaning:
    def meaning(a: Known, axis: Any = None) -> Known:
        return known(np.asarray(f(cast(a, "bool").low, axis=axis)))

    return meaning


def running_greatest(a: Known, axis: int) -> Known:
    return elements(a, lambda v: np.maximum.accumulate(v, axis=axis), False)


def matrix_product(a: Known, b: Known) -> Known:
    a, b = met(a, b)
    wide = "float32" if a.dtype in SMALL else a.dtype
    x, y = exactly(a), exactly(b)
    if a.dtype not in BITS:
        return known(np.matmul(x, y))
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise Ambiguous("which numpy's own product may have otherwise")
    values = np.matmul(x, y)
    sizes = np.matmul(np.abs(x), np.abs(y))
    _below_overflow(sizes, a.dtype)
    if _all_whole(x) and _all_whole(y) and (sizes < 2.0 ** (BITS[wide] + 1)).all():
        return widened(a.dtype, values, values)
    lost = sizes * x.shape[-1] * 2.0 ** -BITS[wide] + x.shape[-1] * TINY_STEP
    return widened(a.dtype, values, values, 1.0, lost)


def softmax(a: Known, axis: int) -> Known:
    a = as_float(a)
    wide = cast(a, "float32") if a.dtype in SMALL else a
    powers = exp(subtract(wide, reduced(np.max)(wide, axis, True)))
    return cast(divide(powers, total(powers, axis, True)), a.dtype)
