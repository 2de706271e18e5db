"""The verdict on a kernel's answer, and the tolerance of an element.

The answer is compared with a `Reference`: the meaning of the user's expression
(`check/meanings.py`), or the kernel before its opts (`check/reference.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from workbench.base.display import Printed
from workbench.base.dtypes import dtypes
from workbench.check.nearness import Nearness, References, nearness, usual_nearness
from workbench.check.reference import Reference, ReferencePart, kernel_reference
from workbench.execution.buffers import Array
from workbench.ir.meaning import closeness
from workbench.ir.node.uop import UOp


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult(Printed):
    """The outcome. Of floats, `max_abs_error` is the greatest error of an element that is judged by
    its size, and `tolerance` the greatest that was allowed; of whole numbers, how many elements
    differ, and how many may. `checked` of `total` elements were compared. `relative` has the error
    and the tolerance as shares of the greatest value of the output that is nearest to its
    tolerance, or furthest beyond it; None where there is no such value: of whole numbers and of
    zeros. `flipped` elements are as other roundings may have them, and few (`check/nearness.py`).
    `is_told` is whether there is an answer: where it is not, roundings decide too many elements,
    and `ok` is false. `against` says what it was compared with."""

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
            words += "; roundings decide too many elements"
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
    kernel: UOp, slots: Sequence[int], inputs: list[Array], actual_arrays: Sequence[Array]
) -> CheckResult:
    """Compare `actual_arrays`, which some opts of `kernel` wrote to `slots`, with the un-optimised
    `kernel` on the reference interpreter; `inputs` holds an array per slot."""
    return compared(kernel_reference(kernel, slots, inputs), actual_arrays)


def compared(reference: Reference, actual_arrays: Sequence[Array]) -> CheckResult:
    """Compare the arrays of a kernel's outputs with what is right."""
    worst, allowed, right, is_wrong, flipped = 0.0, 0.0, True, False, 0
    nearest = _Comparison(0.0, 0.0, 0.0)
    total = sum(result.size for result in actual_arrays)
    masks = [np.zeros(result.size, bool) for result in actual_arrays]
    for part in reference.parts():
        wide = part.values(True)
        for number, (output, place) in enumerate(part.places):
            expected, actual = wide[number], actual_arrays[output].reshape(-1)[place]
            masks[output][place] = True
            stands = _stands(actual, number, part)
            error, limit = stands.error, stands.limit
            flipped += stands.flipped
            is_wrong = is_wrong or not stands.ok and stands.is_told
            worst, allowed = max(worst, error), max(allowed, limit)
            is_float = dtypes.from_numpy(actual.dtype).is_float
            one = _Comparison(error, limit, closeness.greatest(expected) * is_float)
            nearest = max(nearest, one, key=_Comparison.rank)
            right = right and error <= limit
    checked = sum(int(np.count_nonzero(places)) for places in masks)
    whole = not any(dtypes.from_numpy(a.dtype).is_float for a in actual_arrays)
    return CheckResult(
        right, worst, checked, total, allowed, nearest.relative(), reference.against,
        flipped, right or is_wrong, whole,
    )  # fmt: skip


def _stands(actual: Array, number: int, part: ReferencePart) -> Nearness:
    """Return how output `number` of a part stands beside the references: where it is right, with
    the greatest error, beside the greatest value, if that is small."""
    wide = part.values(True)[number]
    references = References(wide, wide, (), part.steps)
    usual = usual_nearness(actual, references)
    close = usual
    references = references._replace(is_close=part.is_close)
    if usual.ok and part.is_close:
        close = usual_nearness(actual, references)
    if not close.ok:
        references = references._replace(
            narrow=part.values(False)[number],
            others=[run[number] for run in part.others()],
            scale=max(map(closeness.greatest, part.inputs), default=1.0),
        )
        close = nearness(actual, references)
    return usual if usual.ok and close.ok else close


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
