"""The meaning of elementwise ops on numpy arrays, where numpy has no function of that meaning.

Integers: floor division and modulo by zero give 0, INT_MIN // -1 wraps, shifts by the width or
more, or by a negative amount, give 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

Array = Any  # numpy arrays of any dtype; numpy's own generics are no more precise


def wrap(fn: Callable[..., Array]) -> Callable[..., Array]:
    """Silence numpy's warnings: overflow wraps and 0/0 is NaN, by definition here. A caller that
    has silenced them for many calls unwraps the function."""

    @wraps(fn)
    def quiet(*args: Array) -> Array:
        with np.errstate(all="ignore"):
            return fn(*args)

    return quiet


def floor_div(a: Array, b: Array) -> Array:
    """Return a // b, floored."""
    zero = b == 0
    minus = (b == -1) if np.issubdtype(np.asarray(b).dtype, np.signedinteger) else np.False_
    safe = np.where(zero | minus, np.ones_like(b), b)
    return np.where(zero, np.zeros_like(a), np.where(minus, -a, a // safe))


def floor_mod(a: Array, b: Array) -> Array:
    """Return a % b, with the sign of b."""
    safe = np.where(b == 0, np.ones_like(b), b)
    if np.issubdtype(np.asarray(b).dtype, np.signedinteger):
        safe = np.where(b == -1, np.ones_like(b), safe)
    return np.where(b == 0, np.zeros_like(a), a % safe)


def trunc_div(a: Array, b: Array) -> Array:
    """Return a // b, truncated."""
    quotient, rest = floor_div(a, b), floor_mod(a, b)
    up = (rest != 0) & ((a < 0) != (b < 0))
    return np.where(up, quotient + np.ones_like(quotient), quotient)


def shift_left(a: Array, b: Array) -> Array:
    """Return a << b."""
    bits = np.asarray(a).dtype.itemsize * 8
    fits = (b >= 0) & (b < bits)
    return np.where(fits, np.left_shift(a, np.where(fits, b, np.zeros_like(b))), np.zeros_like(a))


def shift_right(a: Array, b: Array) -> Array:
    """Return a >> b."""
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
    """numpy has none: Python's, one element after the other."""
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(a)).astype(np.asarray(a).dtype)
