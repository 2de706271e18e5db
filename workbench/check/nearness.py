"""The tolerance of each element, and the distance of an answer from its references.

References are computed in float64, in the expression's own dtypes, and in these with other
roundings (`ir/meaning/closeness.py`). Where the references of an element differ little, their
differences set its tolerance. Where they differ much, a rounding decides the value (by a floor or a
comparison), and the element must equal one of them, or lie between two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.execution.buffers import Array
from workbench.ir.meaning import closeness
from workbench.ir.meaning.closeness import other_roundings
from workbench.ir.meaning.values import cast_array

ULPS = (1.0, 1.0, 4.0, 16.0)
"""Units in the last place by which operations are off in a run with other roundings; two runs each.
"""
SMALL_RUNS = 4
"""The first runs, in which operations are off by one unit: they measure rounding errors."""
LOSSES = 8.0
"""An element may be off by this multiple of the differences of these runs: functions lose several
units."""
FLIPPED = 64
"""One element in this many, and at least one, may be decided by a rounding."""
BY_CHANCE = 16
"""Where roundings decide many elements, one in this many may be far from all runs by chance."""
MOST_TOLERANCE = 1 / 8
"""The greatest useful tolerance, as a share of the greatest value."""


class References(NamedTuple):
    """The right values of an output: in float64 (`wide`), in its own dtype (`narrow`), and with
    other roundings (`others`, in the order of `rounded_otherwise`). `steps` is the length of the
    longest reduction, `scale` the greatest magnitude of an input. An element may be off by a share
    of itself where `is_close`, else by a share of the greatest value."""

    wide: Array
    narrow: Array
    others: Sequence[Array]
    steps: int
    scale: float = 1.0
    is_close: bool = False


class Nearness(NamedTuple):
    """The verdict on an output. `error` and `limit` are those of the element with the greatest
    error / limit; of whole numbers, the number of wrong elements and 0. `flipped` elements were
    decided by a rounding. `is_told` is False where these are too many for a verdict."""

    error: float
    limit: float
    flipped: int = 0
    is_told: bool = True

    @property
    def ok(self) -> bool:
        return self.error <= self.limit


def rounded_otherwise(compute: Callable[[], list[Array]]) -> list[list[Array]]:
    """Return the results of each run of `compute` with other roundings, in pairs of opposites."""
    runs = []
    for seed, ulps in enumerate(ULPS):
        for side in (1, -1):
            with other_roundings(seed, ulps, side):
                runs.append(compute())
    return runs


def usual_limits(references: References, kind: DType) -> Array:
    """Return how far each element may be off if its expression loses little: some units in the last
    place of the element itself (`is_close`) or of the greatest value. Low-precision floats may be
    off by one unit of their own and some of float32, in which they are computed; whole numbers by
    0."""
    wide, steps = references.wide, references.steps
    if not kind.is_float:
        return np.zeros(wide.shape)
    size = np.abs(cast_array(wide, dtypes.float64, kind).astype(np.float64))
    size = np.where(np.isfinite(size), size, 0.0)
    unit = 2.0**-kind.fraction_bits * size if kind.is_low_precision else 0.0
    computed = dtypes.float32 if kind.is_low_precision else kind
    greatest = size if references.is_close else np.full_like(size, size.max(initial=0))
    return greatest * closeness.tolerance(computed, steps) + unit + _least(kind)


def _least(kind: DType) -> float:
    """Return the least positive normal number: some devices flush smaller ones to 0."""
    return float(ml_dtypes.finfo(kind.numpy).smallest_normal)  # type: ignore[no-untyped-call]


def usual_nearness(actual: Array, references: References) -> Nearness:
    """Return the verdict on `actual` by the reference in float64 alone."""
    errors = closeness.errors(actual, references.wide)
    kind = dtypes.from_numpy(actual.dtype)
    if not kind.is_float:
        return Nearness(float(np.count_nonzero(errors)), 0.0)
    return _nearest(errors, usual_limits(references, kind))


def nearness(actual: Array, references: References) -> Nearness:
    """Return the verdict on `actual` by all of its references."""
    if dtypes.from_numpy(actual.dtype).is_float:
        return _of_floats(actual, references)
    return _of_whole(actual, references)


def _of_floats(actual: Array, references: References) -> Nearness:
    wide, narrow, others = references[:3]
    near, is_open, slack = _limits(references)
    errors = np.minimum(closeness.errors(actual, wide), closeness.errors(actual, narrow))
    like_other = np.zeros(errors.shape, bool)
    for other in others:
        like_other |= closeness.errors(actual, other) <= slack
    values = np.array([_in_dtype_of(narrow, wide), narrow, *others], np.float64)
    own = actual.astype(np.float64)
    with np.errstate(all="ignore"):
        low, high = _range(values)
        between = (own >= low - slack) & (own <= high + slack)
    near = np.where(between, near, np.minimum(near, slack))
    rest = errors > near
    around = is_open & _are_near(own, low, high)
    within = _are_near(own, low.min(initial=np.inf), high.max(initial=-np.inf))
    exceptions = _Exceptions(rest, like_other, between, around, within, is_open)
    failures = exceptions.failures()
    flipped = exceptions.flipped if failures is None else 0
    among = ~rest if failures is None else failures
    nearest = _nearest(errors[among], near[among])
    return nearest._replace(flipped=flipped, is_told=exceptions.is_told)


def _range(values: Array) -> tuple[Array, Array]:
    """Return the least and the greatest value of each element; if infinities of both signs are
    among its values, the least and the greatest finite one."""
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    finite = np.where(np.isfinite(values), values, np.nan)
    is_all = np.isneginf(low) & np.isposinf(high)
    ends: list[Array] = [np.fmin.reduce(finite), np.fmax.reduce(finite)]
    return np.where(is_all, ends[0], low), np.where(is_all, ends[1], high)


def _are_near(own: Array, low: Array, high: Array) -> Array:
    """Return which values are in a range, or beyond it by no more than its width."""
    with np.errstate(all="ignore"):
        room = high - low
        return np.asarray((own >= low - room) & (own <= high + room))


def _nearest(errors: Array, limits: Array) -> Nearness:
    """Return error and limit of the element with the greatest error / limit."""
    if not errors.size:
        return Nearness(0.0, 0.0)
    with np.errstate(all="ignore"):
        share = np.where(limits > 0, errors / limits, np.where(errors > 0, np.inf, 0.0))
    at = int(np.argmax(share))
    return Nearness(float(errors.flat[at]), float(limits.flat[at]))


def limits(references: References) -> Array:
    """Return how far each float of an output may be off."""
    return _limits(references)[0]


def _limits(references: References) -> tuple[Array, Array, Array]:
    """Return three arrays: how far each float may be off, whether a rounding decides it, and how
    far it may be off the value of a run with other roundings."""
    wide, narrow, others, steps, scale, _ = references
    kind = dtypes.from_numpy(narrow.dtype)
    usual = usual_limits(references, kind)
    noise = min(MOST_TOLERANCE, 64 * closeness.tolerance(kind, steps))
    if kind.is_low_precision:
        noise = min(MOST_TOLERANCE, 4 * 2.0**-kind.fraction_bits)
    telling = max(closeness.greatest(wide) * MOST_TOLERANCE, noise * scale)
    losses = 1.0 if kind.is_low_precision else LOSSES
    exact = _in_dtype_of(narrow, wide)
    loss = losses * _spread([exact, narrow, *others[:SMALL_RUNS]])
    is_open = ~(_spread([exact, narrow, *others]) <= telling)
    finite = loss[np.isfinite(loss)]
    slack = usual + min(float(np.quantile(finite, 0.9)) if finite.size else 0.0, telling)
    near = np.where(is_open, slack, usual + np.minimum(loss, telling))
    return near, is_open, np.where(is_open, slack, usual)


def _in_dtype_of(narrow: Array, wide: Array) -> Array:
    """Return the reference in float64, `wide`, cast to the dtype of `narrow`."""
    kind = dtypes.from_numpy(narrow.dtype)
    return np.asarray(cast_array(wide, dtypes.float64, kind))


def _spread(arrays: Sequence[Array]) -> Array:
    """Return the greatest difference between the values of each element: 0 where all are equal or
    all NaN, else infinity where one is infinite or NaN."""
    values = np.array(arrays, np.float64)
    with np.errstate(all="ignore"):
        spread = values.max(0) - values.min(0)
        same = (values == values[0]).all(0) | np.isnan(values).all(0)
    return np.where(same, 0.0, np.where(np.isnan(spread), np.inf, spread))


def _of_whole(actual: Array, references: References) -> Nearness:
    """Return the verdict on whole numbers. They must be exact, unless the references differ, as
    whole numbers that are computed from floats may."""
    wide, narrow, others = references[:3]
    values = np.array([wide.astype(narrow.dtype), narrow, *others])
    low, high = values.min(0), values.max(0)
    spread = high.astype(np.float64) - low.astype(np.float64)
    size = np.maximum(np.abs(high.astype(np.float64)), np.abs(low.astype(np.float64)))
    # If the values are indexes, one between two right ones is wrong.
    is_open = spread > size * MOST_TOLERANCE
    between = (actual >= low) & (actual <= high)
    rest = (actual != wide) & (actual != narrow) & (is_open | ~between)
    like_other = (values == actual).any(0)
    own, least, greatest = (a.astype(np.float64) for a in (actual, low, high))
    around = is_open & _are_near(own, least, greatest)
    ends = least.min(initial=np.inf), greatest.max(initial=-np.inf)
    exceptions = _Exceptions(rest, like_other, between, around, _are_near(own, *ends), is_open)
    failures = exceptions.failures()
    if failures is None:
        return Nearness(0.0, 0.0, exceptions.flipped)
    return Nearness(float(np.count_nonzero(failures)), 0.0, 0, exceptions.is_told)


class _Exceptions(NamedTuple):
    """Masks of the elements of an output. `rest`: not near the references. `like_other`: as with
    other roundings; `between`: between two references; `around`: not far from these; `within`: not
    far from the range of all elements' references. `is_open`: decided by a rounding."""

    rest: Array
    like_other: Array
    between: Array
    around: Array
    within: Array
    is_open: Array

    @property
    def flipped(self) -> int:
        return int(np.count_nonzero(self.rest))

    @property
    def is_told(self) -> bool:
        """Whether some are wrong, or few enough were decided by roundings."""
        return bool(self._wrong.any()) or not self._are_too_many()

    @property
    def _is_chaotic(self) -> bool:
        """Whether roundings decide so many elements that a few runs cannot show their possible
        values."""
        return bool(np.count_nonzero(self.is_open) > self.rest.size * MOST_TOLERANCE)

    @property
    def _wrong(self) -> Array:
        """The elements that no rounding explains. Where roundings decide many elements, a few may
        be far from all runs by chance."""
        explained = self.like_other | self.between
        if not self._is_chaotic:
            return self.rest & ~explained
        wrong = self.rest & ~(explained | self.around)
        if np.count_nonzero(wrong) > max(1, self.rest.size // BY_CHANCE):
            return wrong
        return self.rest & ~self.within

    def _are_too_many(self) -> bool:
        if self._is_chaotic:
            return self.flipped > 0
        few = self.rest.size // FLIPPED
        unlike = np.count_nonzero(self.rest & ~self.like_other)
        return bool(unlike > few or self.flipped > max(1, few))

    def failures(self) -> Array | None:
        """Return the elements that make an answer not right; None if it is right."""
        wrong = self._wrong
        if wrong.any():
            return wrong
        return self.rest if self._are_too_many() else None
