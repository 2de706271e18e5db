"""Checking a kernel's answer: the verdict, and how far an element may be off.

What it is compared with, a `Reference` says: what the user's expression means
(`check/meanings.py`), or the kernel before its opts (`check/reference.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from workbench.base.display import Printed
from workbench.base.dtypes import dtypes
from workbench.check.reference import Reference, ReferencePart, kernel_reference
from workbench.execution.buffers import Array
from workbench.ir.meaning import closeness
from workbench.ir.node.uop import UOp

ENOUGH = 24
"""Results of which one at least tells how much a kernel loses by cancellation."""
FLIPPED = 64
"""Of this many elements one at most may be like neither reference, where roundings decide."""
TELLING = 1 / 8
"""A tolerance above this share of the greatest value tells too little."""


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult(Printed):
    """The outcome. Of floats, `max_abs_error` is the greatest error of an element that is judged by
    its size, and `tolerance` the greatest that was allowed; of whole numbers, how many elements
    differ, and how many may. `checked` of `total` elements were compared. `relative` has the error
    and the tolerance as shares of the greatest value of the output that is nearest to its
    tolerance, or furthest beyond it; None where there is no such value: of whole numbers and of
    zeros. `flipped` elements are like neither reference, but few: a rounding may have decided them.
    `is_told` is whether there is an answer: where it is not, the references differ on too many
    elements, and `ok` is false. `against` says what it was compared with."""

    ok: bool
    max_abs_error: float
    checked: int
    total: int
    tolerance: float
    relative: tuple[float, float] | None = None
    against: str = ""
    flipped: int = 0
    is_told: bool = True
    whole: bool = False

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        against = f"; compared with {self.against}" if self.against else ""
        return self.summary + against

    @property
    def summary(self) -> str:
        """The verdict in words, without what it was compared with."""
        verdict = "right" if self.ok else "WRONG" if self.is_told else "cannot be told"
        count = f"{self.checked:,} of {self.total:,} elements compared"
        words = f"{verdict}: {count}, {self._error_text()}"
        if self.flipped:
            words += f"; {self.flipped:,} may have been decided by a rounding"
        if not self.is_told:
            words += "; in float64 and in its own dtypes too many elements differ"
        return words

    def _error_text(self) -> str:
        if self.whole:
            return f"{self.max_abs_error:,.0f} of {self.checked:,} differ"
        if self.relative is None:
            return f"greatest error {self.max_abs_error:.3g} (tolerance {self.tolerance:.3g})"
        error, tolerance = self.relative
        if not error:
            return f"greatest error 0 (tolerance {tolerance:.2g} of the greatest value)"
        return f"greatest error {error:.2g} of the greatest value (tolerance {tolerance:.2g} of it)"


def check(
    kernel: UOp,
    slots: Sequence[int],
    inputs: list[Array],
    actual_arrays: Sequence[Array],
) -> CheckResult:
    """Compare `actual_arrays`, which some opts of `kernel` wrote to `slots`, with the un-optimised
    `kernel` on the reference interpreter; `inputs` holds an array per slot."""
    return compared(kernel_reference(kernel, slots, inputs), actual_arrays)


def compared(reference: Reference, actual_arrays: Sequence[Array]) -> CheckResult:
    """Compare the arrays of a kernel's outputs with what is right."""
    worst, allowed, right, is_told, flipped = 0.0, 0.0, True, True, 0
    nearest = _Comparison(0.0, 0.0, 0.0)
    total = sum(result.size for result in actual_arrays)
    masks = [np.zeros(result.size, bool) for result in actual_arrays]
    for part in reference.parts():
        wide = part.values(True)
        for number, (output, place) in enumerate(part.places):
            expected, actual = wide[number], actual_arrays[output].reshape(-1)[place]
            masks[output][place] = True
            error, limit = compare(actual, expected, part.steps)
            if error > limit:
                # the kernel's own dtypes may lose more by cancellation, which is not an opt's fault
                narrow = part.values(False)[number]
                scale = max(map(closeness.greatest, part.inputs), default=1.0)
                nearness = as_narrow(actual, expected, narrow, part.steps, scale)
                if not nearness.ok and dtypes.from_numpy(actual.dtype).is_float:
                    lost = _usual_loss(part, number)
                    nearness = as_narrow(
                        actual, expected, narrow, part.steps, scale, lost
                    )
                error, limit = nearness.error, nearness.limit
                flipped += nearness.flipped
                is_told = is_told and nearness.is_told
            worst, allowed = max(worst, error), max(allowed, limit)
            is_float = dtypes.from_numpy(actual.dtype).is_float
            one = _Comparison(error, limit, closeness.greatest(expected) * is_float)
            nearest = max(nearest, one, key=_Comparison.rank)
            right = right and error <= limit
    checked = sum(int(np.count_nonzero(places)) for places in masks)
    whole = not any(dtypes.from_numpy(a.dtype).is_float for a in actual_arrays)
    return CheckResult(
        right, worst, checked, total, allowed, nearest.relative(), reference.against,
        flipped, is_told, whole,
    )  # fmt: skip


def with_results(own: CheckResult, results: CheckResult) -> CheckResult:
    """Return the verdict on a kernel whose value a rule made: it stands for none of the user's, so
    the results that come of it must be right, too."""
    verdict = own if not own.ok else results
    against = f"{own.against}, and all results with {results.against}"
    return replace(verdict, ok=own.ok and results.ok, against=against)


class _Comparison(NamedTuple):
    """An error, what is allowed, and the greatest right value (0 of whole numbers)."""

    error: float
    limit: float
    greatest: float

    def rank(self) -> tuple[float, float]:
        """Return what is greater the nearer an error is to its limit; of equals, the limit."""
        return self.error / self.limit if self.limit else self.error, self.limit

    def relative(self) -> tuple[float, float] | None:
        """Return error and limit as shares of the greatest value."""
        if not (self.limit and self.greatest):
            return None
        return self.error / self.greatest, self.limit / self.greatest


def compare(actual: Array, expected: Array, steps: int) -> tuple[float, float]:
    """Return (greatest error, tolerance), of whole numbers how many differ and 0: rounding errors
    grow with the square root of the length of the reduction, which is computed in float32 at least.
    """
    errors = closeness.errors(actual, expected)
    if not dtypes.from_numpy(actual.dtype).is_float:
        return float(np.count_nonzero(errors)), 0.0
    limit = closeness.limit_of(actual, expected, steps)
    return float(errors.max(initial=0.0)), limit


class Nearness(NamedTuple):
    """How an answer stands beside both references (see `as_narrow`); `error` and `limit` count
    elements, where it is of whole numbers."""

    error: float
    limit: float
    flipped: int
    is_told: bool

    @property
    def ok(self) -> bool:
        return self.error <= self.limit


def as_narrow(
    actual: Array,
    expected: Array,
    narrow: Array,
    steps: int,
    scale: float = 1.0,
    lost: float = 0.0,
) -> Nearness:
    """Return how `actual` stands beside the reference in float64 and the one in the kernel's own
    dtypes: each element must be near one of them (see `limits`). Where a rounding decides (a floor,
    a comparison), a few may be like neither: no more than the references differ on, and one in
    `FLIPPED` at most. Where more are like neither, but nearly all of these are elements on which
    the references differ, it cannot be told.
    """
    near = limits(expected, narrow, steps, scale, lost)
    errors = np.minimum(_distances(actual, expected), _distances(actual, narrow))
    beyond = errors > near
    is_float = dtypes.from_numpy(actual.dtype).is_float
    apart = _distances(narrow, expected)
    decided = apart > near
    differ = int(np.count_nonzero(decided if is_float else apart))
    few = min(differ, actual.size // FLIPPED)
    count = int(np.count_nonzero(beyond))
    is_told = count <= few or int(np.count_nonzero(beyond & ~decided)) > few
    flipped = count if count <= few else 0
    if not is_float:
        return Nearness(float(count), float(few), flipped, is_told)
    if count > few:
        worst = np.argmax(np.where(beyond, errors, -1.0))
        return Nearness(float(errors.flat[worst]), float(near.flat[worst]), 0, is_told)
    error = float(errors[~beyond].max(initial=0.0))
    return Nearness(error, float(near.max(initial=0.0)), flipped, is_told)


def limits(
    expected: Array, narrow: Array, steps: int, scale: float = 1.0, lost: float = 0.0
) -> Array:
    """Return how far each element may be off. The kernel's own dtypes lose what the references
    differ by: at an element, and (`lost`, where that is greater) at nine in ten of all, which tells
    how large the numbers were that cancelled. The usual tolerance holds for those, while it tells
    right from wrong: it is small beside the greatest value, or beside the inputs' `scale`.
    """
    kind = dtypes.from_numpy(narrow.dtype)
    loss = _distances(narrow, expected)
    loss = np.where(np.isfinite(loss), loss, 0.0)
    greatest = closeness.greatest(expected)
    telling = greatest * TELLING
    if kind.is_float:
        base = np.full(loss.shape, closeness.limit_of(narrow, expected, steps))
        noise = min(TELLING, 64 * closeness.tolerance(kind, steps))
        telling = max(telling, noise * scale)
    else:
        # of floats, if the references differ: a cast keeps their error
        share = closeness.tolerance(dtypes.float32, steps) * bool(loss.any())
        base = np.abs(expected.astype(np.float64)) * share
    usual = max(lost, float(np.quantile(loss, 0.9)) if loss.size else 0.0)
    for each in (usual, loss):
        allowed = each * closeness.units(kind, steps) / 2
        base = np.maximum(base, np.where(allowed <= telling, allowed, 0.0))
    return base


def _distances(actual: Array, expected: Array) -> Array:
    """Return how far each element is off; of whole numbers, at least 1 where they differ."""
    errors = closeness.errors(actual, expected)
    if dtypes.from_numpy(actual.dtype).is_float:
        return errors
    far = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    return np.where(errors > 0, np.maximum(far, 1.0), 0.0)


def _usual_loss(part: ReferencePart, number: int) -> float:
    """Return the error that nine in ten do not exceed, of the reference in the kernel's own dtypes
    on inputs beside the given ones, on which it may be exact by chance."""
    random = np.random.default_rng(0)
    size, losses = part.values(True)[number].size, []
    for _ in range(math.ceil(ENOUGH / max(1, size))):
        near = [_near(array, random) for array in part.inputs]
        wide, narrow = (part.compute(near, widen)[number] for widen in (True, False))
        finite = np.isfinite(narrow) & np.isfinite(wide)
        losses.append(closeness.errors(narrow[finite], wide[finite]).reshape(-1))
    all_losses = np.concatenate(losses)
    return float(np.quantile(all_losses, 0.9)) if all_losses.size else 0.0


def _near(array: Array, random: np.random.Generator) -> Array:
    """Return the array with its floats off by up to 0.1 %."""
    if not dtypes.from_numpy(array.dtype).is_float:
        return array
    factors = random.uniform(0.999, 1.001, array.shape)
    with np.errstate(all="ignore"):
        return (array * factors).astype(array.dtype)
