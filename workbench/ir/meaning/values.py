"""The meaning of elementwise ops and casts on numpy arrays, where numpy has no function of that
meaning.

Sections: The meaning of elementwise ops on numpy arrays, where numpy has no function of that
meaning; The meaning of CAST and BITCAST on numpy arrays, the same for all levels and devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes

Array = Any  # numpy arrays of any dtype; numpy's own generics are no more precise


# --------------------------------------------------------------------------------------------------
# The meaning of elementwise ops on numpy arrays, where numpy has no function of that meaning.
#
# Integers: floor division and modulo by zero are 0; INT_MIN // -1 wraps; shifts by the width or
# more, or by a negative amount, are 0.


def wrap(fn: Callable[..., Array]) -> Callable[..., Array]:
    """Return `fn` without numpy's warnings: overflow wraps and 0/0 is NaN by definition. A caller
    that silences them for many calls unwraps the function."""

    @wraps(fn)
    def quiet(*args: Array) -> Array:
        with np.errstate(all="ignore"):
            return fn(*args)

    return quiet


def floor_div(a: Array, b: Array) -> Array:
    """Return a // b, floored; 0 for b = 0."""
    zero = b == 0
    minus = (b == -1) if np.issubdtype(np.asarray(b).dtype, np.signedinteger) else np.False_
    safe = np.where(zero | minus, np.ones_like(b), b)
    return np.where(zero, np.zeros_like(a), np.where(minus, -a, a // safe))


def floor_mod(a: Array, b: Array) -> Array:
    """Return a % b, with the sign of b; 0 for b = 0."""
    safe = np.where(b == 0, np.ones_like(b), b)
    if np.issubdtype(np.asarray(b).dtype, np.signedinteger):
        safe = np.where(b == -1, np.ones_like(b), safe)
    return np.where(b == 0, np.zeros_like(a), a % safe)


def trunc_div(a: Array, b: Array) -> Array:
    """Return a // b, truncated; 0 for b = 0."""
    quotient, rest = floor_div(a, b), floor_mod(a, b)
    up = (rest != 0) & ((a < 0) != (b < 0))
    return np.where(up, quotient + np.ones_like(quotient), quotient)


def shift_left(a: Array, b: Array) -> Array:
    """Return a << b; 0 for a negative b, and for one of the width or more."""
    bits = np.asarray(a).dtype.itemsize * 8
    fits = (b >= 0) & (b < bits)
    return np.where(fits, np.left_shift(a, np.where(fits, b, np.zeros_like(b))), np.zeros_like(a))


def shift_right(a: Array, b: Array) -> Array:
    """Return a >> b; 0 for a negative b, and for one of the width or more."""
    bits = np.asarray(a).dtype.itemsize * 8
    fits = (b >= 0) & (b < bits)
    return np.where(fits, np.right_shift(a, np.where(fits, b, np.zeros_like(b))), np.zeros_like(a))


def sigmoid(a: Array) -> Array:
    """Return 1 / (1 + e ** -a)."""
    return np.ones_like(a) / (np.ones_like(a) + np.exp(-a))


def softplus(a: Array) -> Array:
    """Return log(1 + e ** a)."""
    return np.logaddexp(a, np.zeros_like(a))


def erf(a: Array) -> Array:
    """Return the error function by Python's, element by element: numpy has none."""
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(a)).astype(np.asarray(a).dtype)


# --------------------------------------------------------------------------------------------------
# The meaning of CAST and BITCAST on numpy arrays, the same for all levels and devices.
#
# Float to integer truncates and saturates, and NaN gives 0; integers wrap; bool is "not 0". To a
# float, values are rounded to the nearest (of two, to the even one), and those that are too large
# become infinity; 448 in fp8e4m3, which has no infinity. float64 to float16 rounds once; integers
# to float16, and all other dtypes to bfloat16 and to 8-bit floats, go through float32.


def cast_array(a: Array, src: DType, dst: DType) -> Array:
    """Return values of dtype `src` as dtype `dst`."""
    with np.errstate(all="ignore"):
        if dst.is_bool:
            return a != 0
        if src.is_float and dst.is_int:
            # float16 cannot represent the limits of integers: compare in float32.
            small = np.asarray(a).dtype.itemsize < 4
            return _saturate(a.astype(np.float32) if small else a, dst)
        if dst in dtypes.fp8s and src is not dst:
            return _to_fp8(np.asarray(a).astype(np.float32), dst)
        return np.asarray(a).astype(dst.numpy, copy=False)


def bitcast_array(a: Array, src: DType, dst: DType) -> Array:
    """Return the bits of `a` as values of `dst`, which is as wide as `src`."""
    return np.ascontiguousarray(a, src.numpy).view(dst.numpy).reshape(np.shape(a))


def cast_elementwise(
    meaning: Callable[..., Array], sources: Sequence[DType], dtype: DType, values: Sequence[Array]
) -> Array:
    """Return `meaning` of values with the dtypes `sources`, as `dtype`. 8-bit floats are computed
    in float32 and converted, as the arithmetic of ml_dtypes does not saturate."""
    if not any(s in dtypes.fp8s for s in sources):
        return meaning(*values)
    wide = [
        v.astype(np.float32) if s in dtypes.fp8s else v
        for s, v in zip(sources, values, strict=True)
    ]
    result = meaning(*wide)
    return cast_array(result, dtypes.float32, dtype) if dtype in dtypes.fp8s else result


def _to_fp8(single: Array, dtype: DType) -> Array:
    """Round a float32, and saturate it if `dtype` does. In other dtypes a NaN has all bits of the
    fraction set, as in PyTorch."""
    if dtype.saturates:
        return np.clip(single, -448.0, 448.0).astype(dtype.numpy)
    bits = np.asarray(single.astype(dtype.numpy)).view(np.uint8)
    return (bits | np.isnan(single)).view(dtype.numpy)


def _saturate(a: Array, dst: DType) -> Array:
    """Truncate and clamp. The greatest integer may not be a float, but the integer after it is.
    Only values that fit are converted; NaN gives 0."""
    above = a >= float(int(dst.max) + 1)
    below = a < float(dst.min)
    fits = ~(above | below | np.isnan(a))
    inside = np.where(fits, a, np.zeros_like(a)).astype(dst.numpy)
    high, low = dst.numpy.type(dst.max), dst.numpy.type(dst.min)
    return np.where(above, high, np.where(below, low, inside))
