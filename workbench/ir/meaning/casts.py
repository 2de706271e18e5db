"""What CAST and BITCAST mean, on numpy arrays: one decision for all levels and devices.

Float to integer truncates and saturates and NaN gives 0; integers wrap; bool is "not 0".
To a float it rounds to the nearest, the even one of two, and what is too large is infinite;
float64 to float16 rounds once, integers to float16 and all else to bfloat16 by way of float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.base.dtypes import DType

Array = Any  # numpy arrays and numpy scalars of any dtype


def cast_array(a: Array, src: DType, dst: DType) -> Array:
    """Return values of dtype `src` as dtype `dst`."""
    with np.errstate(all="ignore"):
        if dst.is_bool:
            return a != 0
        if src.is_float and dst.is_int:
            # float16 does not have the limits of integers: they are compared in a type that has
            # them.
            small = np.asarray(a).dtype.itemsize < 4
            return _saturate(a.astype(np.float32) if small else a, dst)
        return np.asarray(a).astype(dst.numpy, copy=False)


def bitcast_array(a: Array, src: DType, dst: DType) -> Array:
    """Return the same bits as values of `dst`, which is as wide as `src`."""
    return np.ascontiguousarray(a, src.numpy).view(dst.numpy).reshape(np.shape(a))


def _saturate(a: Array, dst: DType) -> Array:
    """Truncate and clamp. The greatest integer need not be a float, but the one after it is;
    only values that fit are converted."""
    above = a >= float(int(dst.max) + 1)
    below = a < float(dst.min)
    fits = ~(above | below | np.isnan(a))
    inside = np.where(fits, a, np.zeros_like(a)).astype(dst.numpy)
    high, low = dst.numpy.type(dst.max), dst.numpy.type(dst.min)
    return np.where(above, high, np.where(below, low, inside))
