"""Equality of two arrays but for rounding, with one tolerance for each dtype.

Sections: Equality of two arrays but for rounding, with one tolerance for each dtype; Perturbed
roundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.ir.meaning.values import cast_array
from workbench.ir.node.ops import OPS, Ops

Array = np.ndarray[Any, Any]

# --------------------------------------------------------------------------------------------------
# Equality of two arrays but for rounding, with one tolerance for each dtype.

STEPS = 1 << 16
"""Number of values that a reduction combines, if it is not known."""
LONG_STEPS = 1 << 22
"""The same number for long reductions, or for many in sequence."""


def tolerance(dtype: DType, steps: int = STEPS) -> float:
    """Return the tolerance for an element, relative to the greatest element; 0 for integers.

    An operation loses some units in the last place. A reduction of `steps` values, which is
    computed at least in float32, loses the square root of `steps` times as many.
    """
    return units(dtype, steps) * 2.0**-dtype.fraction_bits if dtype.is_float else 0.0


def units(dtype: DType, steps: int = STEPS) -> float:
    """Return the tolerance of a dtype in units in the last place: 16 or more, but at most half of
    the value; 16 for integers."""
    if not dtype.is_float:
        return 16.0
    most = 2.0 ** (dtype.fraction_bits - 1)  # half of the value, with few bits of a fraction
    unit, float32_unit = 2.0**-dtype.fraction_bits, 2.0**-dtypes.float32.fraction_bits
    lost = 16 + 4 * math.sqrt(steps) * min(1.0, float32_unit / unit)
    return min(most, lost)


def errors(actual: Array, expected: Array) -> Array:
    """Return the error of each element of `actual`: 0 or 1 for integers; infinity where only one of
    the arrays is NaN or infinite, or their infinities differ."""
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
    """Return the largest error that is allowed for an element of `actual`."""
    kind = dtypes.from_numpy(actual.dtype)
    return tolerance(kind, steps) * greatest(expected) if kind.is_float else 0.0


# --------------------------------------------------------------------------------------------------
# Perturbed roundings: the values of a graph whose inexact operations are off by some more units.
#
# A kernel may add in another order, contract a product and a sum, or compute a function by another
# formula. In `with other_roundings(..):` the reference interpreters give each inexact operation of
# floats a slightly different result; exact operations are unchanged. Where the results of several
# such runs differ, rounding decides them. Source of the idea: Monte Carlo arithmetic (Parker 1997).

_EXACT = frozenset(
    {Ops.NEG, Ops.ABS, Ops.COPYSIGN, Ops.MAX, Ops.MIN, Ops.WHERE, Ops.TRUNC, Ops.FMOD}
)


class _Roundings(NamedTuple):
    """A random generator, the units in the last place by which an operation may be off, and the
    side: 1, or -1 for the opposite of each step."""

    random: np.random.Generator
    ulps: float
    side: int


_roundings: ContextVar[_Roundings | None] = ContextVar("_roundings", default=None)


@contextmanager
def other_roundings(seed: int, ulps: float, side: int) -> Iterator[None]:
    """Perturb the roundings in a block: inexact operations are off by 0.5 to 1.5 times `ulps` (at
    most 1 for low-precision floats). The same seed with the other `side`, 1 or -1, moves each in
    the opposite direction."""
    roundings = _Roundings(np.random.default_rng(seed), ulps, side)
    token = _roundings.set(roundings)
    try:
        yield
    finally:
        _roundings.reset(token)


def rounded(op: Ops, result: Array, sources: Sequence[Array], dtype: DType) -> Array:
    """Return the result of an elementwise op, perturbed where it is inexact."""
    if _roundings.get() is None or not dtype.is_float or op in _EXACT:
        return result
    with np.errstate(all="ignore"):
        wide = _wide(result)
        exact = _is_exact(op, wide, [_wide(source) for source in sources], dtype)
        return _moved(result, np.where(exact, 0.0, np.abs(wide)), dtype)


def rounded_sum(
    result: Array, combine: Callable[[Callable[[Array], Array]], Array], count: int,
    grain: Array, dtype: DType,
) -> Array:  # fmt: skip
    """Return a sum of `count` terms as if added in another order. `combine(f)` is the sum of f(t)
    over the terms t, in float64; each term is a multiple of `grain`, a power of two."""
    if _roundings.get() is None or not dtype.is_float or count < 2:
        return result
    with np.errstate(all="ignore"):
        exact = combine(np.abs) <= grain * 2.0 ** (dtype.fraction_bits + 1)
        greatest = np.maximum(np.abs(_wide(result)), np.sqrt(combine(np.square)))
        size = greatest * max(1.0, math.sqrt(count) / 4)
        return _moved(result, np.where(exact, 0.0, size), dtype)


def rounded_reduction(
    op: Ops, result: Array, value: Array, axes: tuple[int, ...], dtype: DType,
    keepdims: bool,
) -> Array:  # fmt: skip
    """Return a reduction as if its terms were combined in another order."""
    if _roundings.get() is None or not dtype.is_float or op not in (Ops.ADD, Ops.MUL):
        return result
    count = math.prod(value.shape[axis] for axis in axes)
    if op is Ops.MUL:
        size = np.abs(_wide(result)) * math.sqrt(count) * (count > 1)
        return _moved(result, size, dtype)
    wide = _wide(value)

    def combine(of: Callable[[Array], Array]) -> Array:
        return np.asarray(of(wide).sum(axis=axes, keepdims=keepdims))

    grain = _grain(wide).min(axis=axes, keepdims=keepdims, initial=np.inf)
    return rounded_sum(result, combine, count, grain, dtype)


def is_rounding_otherwise() -> bool:
    """Return whether roundings are perturbed at present."""
    return _roundings.get() is not None


def grain_of(array: Array) -> float:
    """Return a power of two that divides all elements."""
    return float(_grain(_wide(array)).min(initial=np.inf))


def _wide(array: Array) -> Array:
    return np.asarray(array).astype(np.float64)


def _is_exact(op: Ops, result: Array, sources: Sequence[Array], dtype: DType) -> Array:
    """Return where the result is exact: where it needs no rounding."""
    most = 2.0 ** (dtype.fraction_bits + 1)
    if op is Ops.ADD:
        a, b = sources
        return np.abs(a) + np.abs(b) <= np.minimum(_grain(a), _grain(b)) * most
    if op is Ops.MUL:
        a, b = sources
        return _is_product(result, a, b, most)
    if op in (Ops.FDIV, Ops.RECIP):
        a, b = sources if op is Ops.FDIV else (np.ones(()), *sources)
        return np.asarray(_is_product(a, result, b, most) & (result * b == a))
    if op is Ops.SQRT:
        (a,) = sources
        return np.asarray(_is_product(a, result, result, most) & (result * result == a))
    return np.asarray(result == 0.0)  # a function, whose zeros are exact


def _is_product(result: Array, a: Array, b: Array, most: float) -> Array:
    return np.abs(result) <= _grain(a) * _grain(b) * most


def _grain(array: Array) -> Array:
    """Return the greatest power of two that divides each element; infinity for 0."""
    fraction, exponent = np.frexp(np.where(np.isfinite(array), array, 0.0))
    whole = np.ldexp(fraction, 53).astype(np.int64)
    lowest = np.ldexp((whole & -whole).astype(np.float64), exponent - 53)
    return np.where(whole == 0, np.inf, lowest)


def _moved(result: Array, size: Array, dtype: DType) -> Array:
    """Return the result moved by some units in the last place of `size`; unchanged where `size` is
    0."""
    roundings = _roundings.get()
    assert roundings is not None
    steps = roundings.random.random(np.shape(result), np.float32) * 2 - 1
    steps = steps + np.copysign(np.float32(0.5), steps)  # 0.5 to 1.5, up or down
    unit = np.maximum(size * 2.0**-dtype.fraction_bits, _least(dtype) * (size > 0))
    wide = _wide(result)
    ulps = min(1.0, roundings.ulps) if dtype.is_low_precision else roundings.ulps
    step = steps * roundings.side * ulps * unit
    moves = np.isfinite(wide) & np.isfinite(step) & (step != 0)
    own = dtypes.from_numpy(result.dtype)
    other = cast_array(np.where(moves, wide + step, 0.0), dtypes.float64, own)
    return np.where(moves, other, result)


def _least(dtype: DType) -> float:
    """Return the least positive number of a dtype."""
    return float(np.nextafter(dtype.numpy.type(0), dtype.numpy.type(1)))


assert all(OPS[op].python is not None for op in _EXACT)
