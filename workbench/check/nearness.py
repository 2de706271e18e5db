"""The tolerance of each element, and the distance of an answer from its references.

There are three kinds of reference: float64, the expression's own dtypes, and these with other
roundings (`ir/meaning/closeness.py`). Where these differ little, they say how far an element may be
off. Where they differ much, a rounding decides (a floor, a comparison), and the element must have
a value that one of them has, or one between.
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
"""Units in the last place by which operations round otherwise, each in two runs."""
SMALL_RUNS = 4
"""The runs of which each operation is off by one unit: they tell how large an error is."""
LOSSES = 8.0
"""Times these differ by that an element may be off: functions lose several units."""
FLIPPED = 64
"""Of this many elements one at most may be like neither reference, where roundings decide."""
BY_CHANCE = 16
"""Of this many elements that roundings decide, one may be far from all runs."""
TELLING = 1 / 8
"""A tolerance above this share of the greatest value tells too little."""


class References(NamedTuple):
    """The right values of an output: in float64, in its own dtypes, and with `others`, other
    roundings, in the order of `rounded_otherwise`. `steps` is the length of the longest reduction,
    `scale` the greatest input. Where `is_close`, an element may be off by a share of itself and by
    what it loses; else by a share of the greatest."""

    wide: Array
    narrow: Array
    others: Sequence[Array]
    steps: int
    scale: float = 1.0
    is_close: bool = False


class Nearness(NamedTuple):
    """The verdict on an output. `error` and `limit` are those of the element that is nearest to its
    limit, or furthest beyond; of whole numbers, how many are wrong, and 0. `flipped` elements were
    decided by a rounding. `is_told` is whether there is an answer."""

    error: float
    limit: float
    flipped: int = 0
    is_told: bool = True

    @property
    def ok(self) -> bool:
        return self.error <= self.limit


def rounded_otherwise(compute: Callable[[], list[Array]]) -> list[list[Array]]:
    """Return what `compute` returns with other roundings, each pair of runs with opposite ones."""
    runs = []
    for seed, ulps in enumerate(ULPS):
        for side in (1, -1):
            with other_roundings(seed, ulps, side):
                runs.append(compute())
    return runs


def usual_limits(references: References, kind: DType) -> Array:
    """Return how far each element may be off wherever its expression loses little: some units in
    the last place of itself where `is_close`, else of the greatest value that the dtype has; of
    low-precision floats one of its own, and some of float32, which they are computed in."""
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
    """Return the least positive number that is not subnormal, a few times: some devices have no
    others."""
    return float(ml_dtypes.finfo(kind.numpy).smallest_normal)  # type: ignore[no-untyped-call]


def usual_nearness(actual: Array, references: References) -> Nearness:
    """Return how `actual` stands beside the reference in float64 alone."""
    errors = closeness.errors(actual, references.wide)
    kind = dtypes.from_numpy(actual.dtype)
    if not kind.is_float:
        return Nearness(float(np.count_nonzero(errors)), 0.0)
    return _nearest(errors, usual_limits(references, kind))


def nearness(actual: Array, references: References) -> Nearness:
    """Return how `actual` stands beside its references."""
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
    around = is_open & _nearness(own, low, high)
    nearness = _nearness(own, low.min(initial=np.inf), high.max(initial=-np.inf))
    rule = _Exceptions(rest, like_other, between, around, nearness, is_open)
    failures = rule.deciding()
    flipped = rule.flipped if failures is None else 0
    among = ~rest if failures is None else failures
    nearest = _nearest(errors[among], near[among])
    return nearest._replace(flipped=flipped, is_told=rule.is_told)


def _range(values: Array) -> tuple[Array, Array]:
    """Return the least and the greatest value of each element: the finite ones where infinities of
    both signs are among them, between which everything is."""
    low, high = np.fmin.reduce(values), np.fmax.reduce(values)
    finite = np.where(np.isfinite(values), values, np.nan)
    is_all = np.isneginf(low) & np.isposinf(high)
    ends: list[Array] = [np.fmin.reduce(finite), np.fmax.reduce(finite)]
    return np.where(is_all, ends[0], low), np.where(is_all, ends[1], high)


def _nearness(own: Array, low: Array, high: Array) -> Array:
    """Return which values are not far from a range."""
    with np.errstate(all="ignore"):
        room = high - low
        return np.asarray((own >= low - room) & (own <= high + room))


def _nearest(errors: Array, limits: Array) -> Nearness:
    """Return the error that is nearest to its limit, or furthest beyond."""
    if not errors.size:
        return Nearness(0.0, 0.0)
    with np.errstate(all="ignore"):
        share = np.where(limits > 0, errors / limits, np.where(errors > 0, np.inf, 0.0))
    at = int(np.argmax(share))
    return Nearness(float(errors.flat[at]), float(limits.flat[at]))


def limits(references: References) -> Array:
    """Return how far each float may be off."""
    return _limits(references)[0]


def _limits(references: References) -> tuple[Array, Array, Array]:
    """Return how far each float may be off, which a rounding decides, and how far these may be off
    a value that they can have."""
    wide, narrow, others, steps, scale, _ = references
    kind = dtypes.from_numpy(narrow.dtype)
    usual = usual_limits(references, kind)
    noise = min(TELLING, 64 * closeness.tolerance(kind, steps))
    if kind.is_low_precision:
        noise = min(TELLING, 4 * 2.0**-kind.fraction_bits)
    telling = max(closeness.greatest(wide) * TELLING, noise * scale)
    losses = 1.0 if kind.is_low_precision else LOSSES
    exact = _in_dtype_of(narrow, wide)
    loss = losses * _spread([exact, narrow, *others[:SMALL_RUNS]])
    is_open = ~(_spread([exact, narrow, *others]) <= telling)
    finite = loss[np.isfinite(loss)]
    slack = usual + min(float(np.quantile(finite, 0.9)) if finite.size else 0.0, telling)
    near = np.where(is_open, slack, usual + np.minimum(loss, telling))
    return near, is_open, np.where(is_open, slack, usual)


def _in_dtype_of(narrow: Array, wide: Array) -> Array:
    """Return values of the reference in float64 as the dtype of the expression holds them."""
    kind = dtypes.from_numpy(narrow.dtype)
    return np.asarray(cast_array(wide, dtypes.float64, kind))


def _spread(arrays: Sequence[Array]) -> Array:
    """Return the greatest difference of each element; infinity where some values are infinite or no
    numbers, and others are not."""
    values = np.array(arrays, np.float64)
    with np.errstate(all="ignore"):
        spread = values.max(0) - values.min(0)
        same = (values == values[0]).all(0) | np.isnan(values).all(0)
    return np.where(same, 0.0, np.where(np.isnan(spread), np.inf, spread))


def _of_whole(actual: Array, references: References) -> Nearness:
    """Whole numbers must be exact, unless they come of floats: these keep the error of floats."""
    wide, narrow, others = references[:3]
    values = np.array([wide.astype(narrow.dtype), narrow, *others])
    low, high = values.min(0), values.max(0)
    spread = high.astype(np.float64) - low.astype(np.float64)
    size = np.maximum(np.abs(high.astype(np.float64)), np.abs(low.astype(np.float64)))
    is_open = spread > size * TELLING  # of an index, too: what is between means nothing
    between = (actual >= low) & (actual <= high)
    rest = (actual != wide) & (actual != narrow) & (is_open | ~between)
    like_other = (values == actual).any(0)
    own, least, greatest = (a.astype(np.float64) for a in (actual, low, high))
    around = is_open & _nearness(own, least, greatest)
    ends = least.min(initial=np.inf), greatest.max(initial=-np.inf)
    rule = _Exceptions(rest, like_other, between, around, _nearness(own, *ends), is_open)
    failures = rule.deciding()
    if failures is None:
        return Nearness(0.0, 0.0, rule.flipped)
    return Nearness(float(np.count_nonzero(failures)), 0.0, 0, rule.is_told)


class _Exceptions(NamedTuple):
    """The elements that are not near the references (`rest`): which of these are like one with
    other roundings, between those, not far from those (`around`), or `within` the range of all
    elements; and which elements a rounding decides."""

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
        """Whether roundings decide more elements than a few runs can show the values of, and than a
        wrong one can be told from."""
        return bool(np.count_nonzero(self.is_open) > self.rest.size * TELLING)

    @property
    def _wrong(self) -> Array:
        """Elements that no rounding explains. Where roundings decide many, a few have had similar
        values in all runs by chance."""
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

    def deciding(self) -> Array | None:
        """Return the elements for which an answer is not right, None where it is."""
        wrong = self._wrong
        if wrong.any():
            return wrong
        return self.rest if self._are_too_many() else None
