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


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult(Printed):
    """The outcome. `tolerance` bounds the absolute error; `checked` of `total` elements were
    compared. `relative` has the error and the tolerance as shares of the greatest value of the
    output that is nearest to its tolerance, or furthest beyond it; None where there is no such
    value: of whole numbers, of which the error is how many differ, and of zeros. `against` says
    what it was compared with."""

    ok: bool
    max_abs_error: float
    checked: int
    total: int
    tolerance: float
    relative: tuple[float, float] | None = None
    against: str = ""

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        against = f"; compared with {self.against}" if self.against else ""
        return self.summary + against

    @property
    def summary(self) -> str:
        """The verdict in words, without what it was compared with."""
        verdict = "right" if self.ok else "WRONG"
        count = f"{self.checked:,} of {self.total:,} elements compared"
        return f"{verdict}: {count}, {self._error_text()}"

    def _error_text(self) -> str:
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
    worst, allowed, right = 0.0, 0.0, True
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
                error, limit = as_narrow(actual, expected, narrow, part.steps)
                if error > limit:
                    lost = _usual_loss(part, number)
                    error, limit = as_narrow(actual, expected, narrow, part.steps, lost)
            worst, allowed = max(worst, error), max(allowed, limit)
            one = _Comparison(error, limit, closeness.greatest(expected))
            nearest = max(nearest, one, key=_Comparison.rank)
            right = right and error <= limit
    checked = sum(int(np.count_nonzero(places)) for places in masks)
    return CheckResult(
        right, worst, checked, total, allowed, nearest.relative(), reference.against
    )


def with_results(own: CheckResult, results: CheckResult) -> CheckResult:
    """Return the verdict on a kernel whose value a rule made: it stands for none of the user's, so
    the results that come of it must be right, too."""
    verdict = own if not own.ok else results
    against = f"{own.against}, and all results with {results.against}"
    return replace(verdict, ok=own.ok and results.ok, against=against)


class _Comparison(NamedTuple):
    """An error, what is allowed (0 for whole numbers), and the greatest right value."""

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
    """Return (greatest error, tolerance): rounding errors grow with the square root of the length
    of the reduction, which is computed in float32 at least."""
    errors = closeness.errors(actual, expected)
    if not dtypes.from_numpy(actual.dtype).is_float:
        return float(np.count_nonzero(errors)), 0.0
    limit = closeness.limit_of(actual, expected, steps)
    return float(errors.max(initial=0.0)), limit


def as_narrow(
    actual: Array, expected: Array, narrow: Array, steps: int, lost: float = 0.0
) -> tuple[float, float]:
    """Return (greatest error, tolerance) beside the reference in the kernel's own dtypes: where it
    overflows to an infinity or NaN, so must `actual`; elsewhere its error (`lost`, where that is
    greater) tells how large the numbers were that cancelled: the usual tolerance holds for those.
    A whole number may be that of either, since a rounding may have decided it; as many as differ
    between the two may be another one.
    """
    if not dtypes.from_numpy(actual.dtype).is_float:
        decided = np.count_nonzero(narrow != expected)
        differ = np.count_nonzero((actual != expected) & (actual != narrow))
        return float(differ), float(decided)
    limit = closeness.limit_of(actual, expected, steps)
    overflows = ~np.isfinite(narrow) & np.isfinite(expected)
    if np.any(np.isfinite(actual[overflows])):
        return math.inf, limit
    rest = ~overflows
    kind = dtypes.from_numpy(actual.dtype)
    lost = max(lost, _greatest(narrow[rest], expected[rest]))
    allowed = max(limit, lost * closeness.units(kind, steps) / 2)
    return _greatest(actual[rest], expected[rest]), allowed


def _usual_loss(part: ReferencePart, number: int) -> float:
    """Return the greatest error of the reference in the kernel's own dtypes on inputs beside the
    given ones, on which it may be exact by chance."""
    random = np.random.default_rng(0)
    worst, size = 0.0, part.values(True)[number].size
    for _ in range(math.ceil(ENOUGH / max(1, size))):
        near = [_near(array, random) for array in part.inputs]
        wide, narrow = (part.compute(near, widen)[number] for widen in (True, False))
        finite = np.isfinite(narrow) & np.isfinite(wide)
        worst = max(worst, _greatest(narrow[finite], wide[finite]))
    return worst


def _near(array: Array, random: np.random.Generator) -> Array:
    """Return the array with its floats off by up to 0.1 %."""
    if not dtypes.from_numpy(array.dtype).is_float:
        return array
    factors = random.uniform(0.999, 1.001, array.shape)
    with np.errstate(all="ignore"):
        return (array * factors).astype(array.dtype)


def _greatest(actual: Array, expected: Array) -> float:
    return float(closeness.errors(actual, expected).max(initial=0.0))
