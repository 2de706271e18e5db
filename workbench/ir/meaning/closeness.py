"""Whether two arrays are equal but for rounding: one tolerance for each dtype, for all who ask."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes

Array = np.ndarray[Any, Any]
STEPS = 1 << 16
"""Values that a reduction combines, where nobody knows how many."""
LONG_STEPS = 1 << 22
"""The same for a long one, or for many one after the other."""


def tolerance(dtype: DType, steps: int = STEPS) -> float:
    """Return by which share of the greatest element an element may be off; 0 for whole numbers.

    Each operation loses some units in the last place, and a reduction of so many steps the root
    of them more: it is made in float32 at least.
    """
    if not dtype.is_float:
        return 0.0
    unit = 2.0**-dtype.fraction_bits
    summed = min(unit, 2.0**-dtypes.float32.fraction_bits) * 4 * math.sqrt(steps)
    return 16 * unit + summed


def errors(actual: Array, expected: Array) -> Array:
    """Return how far each element of `actual` is off: by infinity where a NaN or an infinity
    stands in one array alone, and of whole numbers by 1 or not at all."""
    if not dtypes.from_numpy(actual.dtype).is_float:
        return np.asarray(actual != expected, np.float64)
    with np.errstate(all="ignore"):
        difference = np.abs(actual.astype(np.float64) - expected)
        same = actual == expected.astype(actual.dtype)
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
