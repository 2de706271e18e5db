"""What operations mean in numpy: a row each, with the text of the tensor's side.

A meaning takes and returns what is `Known`. The sign of a zero is known of data and of what only
moves or negates it, and unknown of sums and products. The documented exceptions to numpy stand
here too: integers divided by zero give 0, shifts by the width or more give 0, bools add as "or"
and multiply as "and", sums of narrow integers have 32 bits. Nothing here knows of workbench.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.agreement.intervals import (
    BITS,
    INTEGERS,
    SMALL,
    Ambiguous,
    Array,
    Known,
    between,
    bits,
    cast,
    corners,
    elements,
    exactly,
    held,
    known,
    promoted,
    stored,
    to_dtype,
    widened,
)

Meaning = Callable[..., Known]
GREATEST = {
    "fp8e4m3": 448.0,
    "fp8e5m2": 57344.0,
    "float16": 65504.0,
    "bfloat16": 3.3895e38,
    "float32": 3.4028e38,
    "float64": 1.79e308,
}


def as_float(x: Known) -> Known:
    """Return integers and bools as float32, which functions take them as."""
    return x if x.dtype in BITS else cast(x, "float32")


def met(a: Known, b: Known) -> tuple[Known, Known]:
    """Return both in the dtype in which they meet."""
    dtype = promoted(a.dtype, b.dtype)
    return cast(a, dtype), cast(b, dtype)


def numbers(x: Known) -> Known:
    """Return bools as int32, for what bools do not have."""
    return cast(x, "int32") if x.dtype == "bool" else x


# elements


def sums(f: Callable[[Array, Array], Array], fused: bool = False) -> Meaning:
    """Return the meaning of + - *: monotone, rounded once; `fused` where an FMA may come of it,
    which has no infinity in the middle."""

    def meaning(a: Known, b: Known) -> Known:
        a, b = met(a, b)
        low, high = corners(f, a, b)
        if a.dtype not in BITS:
            return between(a.dtype, low, high)
        interval = widened(a.dtype, low, high)
        finite = np.isfinite(a.low) & np.isfinite(b.low)
        if fused and (finite & ~np.isfinite(interval.low)).any():
            raise Ambiguous("an FMA would not overflow")
        return interval

    return meaning


add, subtract = sums(np.add), sums(np.subtract)
multiply = sums(np.multiply, fused=True)


def divide(a: Known, b: Known) -> Known:
    a, b = (as_float(x) for x in met(a, b))
    _no_zero_inside(b)
    low, high = corners(np.divide, a, b)
    return widened(a.dtype, low, high)


def _no_zero_inside(b: Known) -> None:
    if not b.exact and ((b.low <= 0) & (b.high >= 0)).any():
        raise Ambiguous("perhaps divided by zero")
    if not b.signed and (b.low == 0).any():
        raise Ambiguous("divided by a zero of unknown sign")


def floor_divide(a: Known, b: Known) -> Known:
    return _divided(np.floor_divide, a, b)


def remainder(a: Known, b: Known) -> Known:
    return _divided(np.remainder, a, b)


def _divided(f: Callable[[Array, Array], Array], a: Known, b: Known) -> Known:
    a, b = (numbers(x) for x in met(a, b))
    if b.dtype in BITS:
        _no_zero_inside(b)
        exactly(a), exactly(b)
    with np.errstate(all="ignore"):
        values = np.asarray(f(a.low, b.low))
    if a.dtype not in BITS:
        return between(a.dtype, values, values)
    if a.dtype == "float64" and (np.abs(values) >= 2.0**52).any():
        raise Ambiguous("numpy rounds such a quotient by steps")
    return widened(a.dtype, values, values)


def power(a: Known, b: Known) -> Known:
    """Floats only. The error grows with the exponent of the result."""
    a, b = met(a, b)
    x, y = exactly(a), exactly(b)
    with np.errstate(all="ignore"):
        values = np.power(x, y)
        size = np.abs(np.log2(np.abs(x)) * y)
        ulps = 4.0 + np.where(np.isfinite(size), size, 0.0)
    if ((x == 0) & np.logical_not(a.signed)).any():
        raise Ambiguous("a power of a zero of unknown sign")
    trivial = (y == 0) | (x == 1)
    return widened(a.dtype, values, values, np.where(trivial, 0.0, ulps))


def whole_power(a: Known, n: int) -> Known:
    """Integers: exact, and wraps."""
    x = numbers(a)
    with np.errstate(all="ignore"):
        return between(x.dtype, *(np.asarray(np.power(x.low, x.low.dtype.type(n))),) * 2)


def compared(f: Callable[[Array, Array], Array]) -> Meaning:
    def meaning(a: Known, b: Known) -> Known:
        return between("bool", *corners(f, *met(a, b)))

    return meaning


def equal(a: Known, b: Known) -> Known:
    below, above = compared(np.less_equal)(a, b), compared(np.greater_equal)(a, b)
    return known(below.low & above.low)


def different(a: Known, b: Known) -> Known:
    return known(~equal(a, b).low)


def extreme(f: Callable[[Array, Array], Array]) -> Meaning:
    """Return the meaning of maximum and minimum: exact; which of two zeros, nobody knows."""

    def meaning(a: Known, b: Known) -> Known:
        a, b = met(a, b)
        return between(a.dtype, *corners(f, a, b))

    return meaning


maximum, minimum = extreme(np.maximum), extreme(np.minimum)


def bitwise(f: Callable[[Array, Array], Array]) -> Meaning:
    def meaning(a: Known, b: Known) -> Known:
        a, b = met(a, b)
        if a.dtype in BITS:
            raise Ambiguous("no integers")
        return known(np.asarray(f(a.low, b.low)))

    return meaning


def shifted(f: Callable[[Array, Array], Array]) -> Meaning:
    """Return the meaning of << and >>: 0 by a negative number and by the width or more."""

    def meaning(a: Known, b: Known) -> Known:
        a, b = met(a, b)
        if a.dtype not in INTEGERS:
            raise Ambiguous("no integers")
        fits = (b.low >= 0) & (b.low < bits(a.dtype))
        moved = f(a.low, np.where(fits, b.low, 0).astype(a.low.dtype))
        return known(np.asarray(np.where(fits, moved, 0).astype(a.low.dtype)))

    return meaning


def shifted_by(f: Callable[[Array, Array], Array]) -> Meaning:
    """Return the meaning of a shift by a Python number, which may be beyond the dtype."""

    def meaning(a: Known, n: int) -> Known:
        a = numbers(a)
        if not 0 <= n < bits(a.dtype):
            return known(np.zeros_like(a.low))
        return known(np.asarray(f(a.low, a.low.dtype.type(n))))

    return meaning


def clipped(a: Known, low: float | None, high: float | None) -> Known:
    kind = held(a.dtype).type
    if low is not None:
        end = float(to_dtype(np.float64(low), a.dtype)) if a.dtype in BITS else low
        a = elements(a, lambda v: np.maximum(v, kind(end)), signed=False)
    if high is not None:
        top = float(to_dtype(np.float64(high), a.dtype)) if a.dtype in BITS else high
        a = elements(a, lambda v: np.minimum(v, kind(top)), signed=False)
    return a


def chosen(c: Known, a: Known, b: Known) -> Known:
    condition = cast(c, "bool").low
    a, b = met(a, b)
    low = np.where(condition, a.low, b.low)
    high = low if a.exact and b.exact else np.where(condition, a.high, b.high)
    return between(a.dtype, low, high, a.signed and b.signed)


def negative(a: Known) -> Known:
    if a.exact:
        return elements(a, lambda v: np.negative(v))
    return between(a.dtype, -a.high, -a.low, a.signed)


def absolute(a: Known) -> Known:
    if a.exact:
        return elements(a, np.abs, signed=True)
    inside = (a.low < 0) & (a.high > 0)
    low = np.where(inside, 0.0, np.minimum(np.abs(a.low), np.abs(a.high)))
    return between(a.dtype, low, a.sizes, True)


def squared(a: Known) -> Known:
    a = absolute(a) if a.dtype in BITS else a
    return multiply(a, a)


def whole(f: Callable[[Array], Array]) -> Meaning:
    """Return the meaning of a step function of floats; integers stay as they are."""

    def meaning(a: Known) -> Known:
        if a.dtype not in BITS:
            return a
        return between(a.dtype, *corners(f, a))

    return meaning


def in_float32(meaning: Callable[[Known], Known]) -> Callable[[Known], Known]:
    """Return a function of one tensor, which floats below 32 bits have computed in 32 and
    rounded."""

    def rounded(a: Known) -> Known:
        return cast(meaning(cast(a, "float32")), a.dtype) if a.dtype in SMALL else meaning(a)

    return rounded


def function(f: Callable[[Array], Array], ulps: float, lost: float = 0.0) -> Meaning:
    """Return the meaning of a monotone function of floats that may be off by `ulps` units, and
    by the number `lost` more, where its formula cancels or has no denormals."""

    @in_float32
    def meaning(a: Known) -> Known:
        a = as_float(a)
        low, high = corners(f, a)
        return widened(a.dtype, low, high, ulps, lost * 2.0 ** (23 - min(BITS[a.dtype], 23)))

    return meaning


def wave(f: Callable[[Array], Array], ulps: float) -> Meaning:
    """Return the meaning of sin and cos, whose slope is at most 1."""

    @in_float32
    def meaning(a: Known) -> Known:
        a = as_float(a)
        if not a.exact and float(np.nanmax(a.sizes, initial=0.0)) > 1e6:
            raise Ambiguous("an unknown part of a turn")
        with np.errstate(all="ignore"):
            values = np.asarray(f(a.low))
            lost = 0.0 if a.exact else np.nan_to_num(a.high - a.low)
        return widened(a.dtype, values, values, ulps, lost + ulps * TINY_STEP)

    return meaning


TINY_STEP = 2.0**-149
sqrt = function(np.sqrt, 1.0)
exp = function(np.exp, 4.0)
log = function(np.log, 4.0, 2.0**-22)


def inverted(a: Known) -> Known:
    one = known(np.ones((), stored(as_float(a).dtype)))
    return divide(one, as_float(a))


@in_float32
def root_inverted(a: Known) -> Known:
    a = as_float(a)
    if ((a.low == 0) & ~np.bool_(a.signed)).any():
        raise Ambiguous("a zero of unknown sign")
    low, high = corners(lambda v: 1.0 / np.sqrt(v), a)
    return widened(a.dtype, low, high, 3.0)


def bits_as(a: Known, dtype: str) -> Known:
    """The same bits as another dtype. A NaN's bits are not fixed, nor a zero's of unknown sign."""
    values = exactly(a)
    if a.dtype in BITS and (np.isnan(values).any() or (not a.signed and (values == 0).any())):
        raise Ambiguous("bits that are not fixed")
    return known(np.ascontiguousarray(values.astype(stored(a.dtype))).view(stored(dtype)))


# several tensors


def joined(f: Callable[..., Array]) -> Meaning:
    """Return the meaning of cat and stack."""

    def meaning(a: Known, b: Known, dim: int) -> Known:
        a, b = met(a, b)
        low = f([a.low, b.low], axis=dim)
        high = low if a.exact and b.exact else f([a.high, b.high], axis=dim)
        return between(a.dtype, low, high, a.signed and b.signed)

    return meaning


def moved(f: Callable[..., Array]) -> Meaning:
    """Return the meaning of what moves or repeats elements."""

    def meaning(a: Known, **how: Any) -> Known:
        return elements(a, lambda v: f(v, **how))

    return meaning


def padded(a: Known, padding: Any, value: float = 0) -> Known:
    kind = held(a.dtype).type
    fill = float(to_dtype(np.float64(value), a.dtype)) if a.dtype in BITS else value
    return elements(a, lambda v: np.pad(v, padding, constant_values=kind(fill)))


def taken(a: Known, index: Known, axis: int) -> Known:
    return elements(a, lambda v: np.take(v, index.low.astype(np.int64), axis=axis))


def one_hot(a: Known, count: int) -> Known:
    return known((a.low[..., None] == np.arange(count)).astype(np.int32))
