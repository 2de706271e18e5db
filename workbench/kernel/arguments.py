"""Checking the plain arguments of a Kernel's methods."""

from __future__ import annotations

import math
import sys

from workbench.base.errors import DTypeError, ShapeError


def seed(value: object) -> int:
    """Return a seed of random data. Errors: DTypeError unless it is an integer, 0 or more."""
    if isinstance(value, int) and value >= 0:
        return value
    raise DTypeError(
        f"cannot use seed={value!r:.40}", "a seed must be an integer, 0 or more", "seed=0"
    )


def budget(value: object) -> float:
    """Return a time in seconds. Errors: DTypeError unless it is a number, 0 or more."""
    if isinstance(value, int | float) and 0 <= value <= sys.float_info.max:
        return value
    raise DTypeError(
        f"cannot use budget_s={value!r:.40}", "it must be seconds, 0 or more", "budget_s=0.5"
    )


def shape_of(value: object, size: int) -> tuple[int, ...]:
    """Return a shape of `size` elements. Errors: ShapeError unless it is one."""
    if isinstance(value, tuple | list):
        shape = tuple(value)
        if all(type(n) is int for n in shape) and math.prod(shape) == size:
            return shape
    raise ShapeError(
        f"shape {value!r:.40} does not fit", f"the output has {size} elements", f"({size},)"
    )
