"""Equality of two arrays but for rounding, with one tolerance for each dtype."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.ir.meaning.casts import cast_array

Array = np.ndarray[Any, Any]
STEPS = 1 << 16
"""Number of values that a reduction combines, where it is not known."""
LONG_STEPS = 1 << 22
"""The same number for a long reduction, or for many in sequence."""


def tolerance(dtype: DType, steps: int = STEPS) -> float:
    """Return the share of the greatest element by which an element may be off; 0 for whole numbers.

    An operation loses some units in the last place; a reduction of `steps` values, in float32 at
    least, loses the square root of `steps` times as many.
    """
    return units(dtype, steps) * 2.0**-dtype.fraction_bits if dtype.is_float else 0.0


def units(dtype: DType, steps: int = STEPS) -> float:
    """Return the tolerance of a float dtype in its units in the last place: at least 16, which
    stands for whole numbers too, but not above half of a value."""
    if not dtype.is_float:
        return 16.0
    most = 2.0 ** (dtype.fraction_bits - 1)  # half of the value, with few bits of a fraction
    unit, float32_unit = 2.0**-dtype.fraction_bits, 2.0**-dtypes.float32.fraction_bits
    lost = 16 + 4 * math.sqrt(steps) * min(1.0, float32_unit / unit)
    return min(most, lost)


def errors(actual: Array, expected: Array) -> Array:
    """Return the error of each element of `actual`: infinity where one array alone has a NaN or an
    infinity; 1 or 0 for whole numbers."""
    if not dtypes.from_numpy(actual.dtype).is_float:
        return np.asarray(actual != expected, np.float64)
    with np.errstate(all="ignore"):
        difference = np.abs(actual.astype(np.float64) - expected)
        kind = dtypes.from_numpy(actual.dtype)
        same = actual == cast_array(expected, dtypes.from_numpy(expected.dtype), kind)
        same |= np.isnan(actual) & np.isnan(expected)
        is_number = np.isfinite(difference)
    return np.where(is_number, difference, np.where(same, 0.0, np.inf))


def greatest(array: Array) -> float:
    """Return the greatest magnitude among the finite elements."""
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def limit_of(actual: Array, expected: Array, steps: int = STEPS) -> float:
    """Return how far an element of `actual` may be off."""
    kind = dtypes.from_numpy(actual.dtype)
    return tolerance(kind, steps) * greatest(expected) if kind.is_float else 0.0


def are_close(actual: Array, expected: Array, steps: int = STEPS) -> bool:
    """Return whether no element is off by more than the tolerance."""
    limit = limit_of(actual, expected, steps)
    return bool((errors(actual, expected) <= limit).all())
