"""The verdict on a kernel's answer: its elements compared with those of a reference.

A `Reference` is the meaning of the user's expression (`check/meanings.py`), or the kernel before
its opts (`kernel_reference`).

Sections: The reference of an answer; The verdict on a kernel's answer, and the tolerance of an
element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.base.terminal import Printed
from workbench.check.nearness import (
    Nearness,
    References,
    nearness,
    rounded_otherwise,
    usual_nearness,
)
from workbench.execution.buffers import Array
from workbench.ir.meaning import closeness
from workbench.ir.meaning.interpret import interpret_kernel
from workbench.ir.nest.loops import statements
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.pickles import pickled

# --------------------------------------------------------------------------------------------------
# The reference of an answer: the right values of all elements of a kernel's outputs, or of some.
#
# A kernel without an expression is compared with itself before its opts. Up to 2**24 lane-steps it
# is interpreted whole; a larger kernel with output axes fixed at random positions (fixed seed).

FULL_STEPS = 1 << 24
SAMPLES = 32
CLOSE_WORK = 1 << 18
"""Elements of all values up to which each element has a limit of its own (`is_close`)."""
BEFORE_OPTS = "the kernel before its opts, which came without its expression"


@dataclass(frozen=True, slots=True)
class ReferencePart:
    """Elements that are compared together. `compute(inputs, widen)` returns an array of right
    values for each of `places`, in float64 (`widen`) or in the dtypes of the expression. A place is
    the number of an output and the index of the elements in it, flat. `steps` is the length of the
    longest reduction, `work` the number of elements of all values that are computed (of a kernel:
    its lane-steps). `right` and `runs` memoise results."""

    places: Sequence[tuple[int, Any]]
    inputs: Sequence[Array]
    compute: Callable[[Sequence[Array], bool], list[Array]]
    steps: int
    work: int
    right: dict[bool, list[Array]] = field(default_factory=dict, compare=False)
    runs: list[list[Array]] = field(default_factory=list, compare=False)

    def values(self, widen: bool) -> list[Array]:
        """Return the right values for `inputs`, computed once for all answers."""
        if widen not in self.right:
            self.right[widen] = self.compute(self.inputs, widen)
        return self.right[widen]

    @property
    def is_close(self) -> bool:
        """Whether an element's limit is a share of its own value, not of the greatest one."""
        return self.work <= CLOSE_WORK

    def others(self) -> list[list[Array]]:
        """Return the values of each run with other roundings, in the dtypes of the expression."""
        if not self.runs:
            self.runs.extend(rounded_otherwise(lambda: self.compute(self.inputs, False)))
        return self.runs


@dataclass(frozen=True, slots=True)
class Reference:
    """The right values of outputs, in parts; `against` says in words what they are."""

    parts: Callable[[], Iterable[ReferencePart]]
    against: str

    def outputs(self, sizes: Sequence[int]) -> list[References] | None:
        """Return the right values of each output, flat, without other roundings; `sizes` are the
        outputs' numbers of elements. None where not all elements of all outputs are compared."""
        right: dict[int, References] = {}
        for part in self.parts():
            wide, narrow = part.values(True), part.values(False)
            for number, (output, _) in enumerate(part.places):
                if wide[number].size != sizes[output]:
                    return None
                arrays = wide[number].reshape(-1), narrow[number].reshape(-1)
                right.setdefault(output, References(*arrays, (), part.steps))
        if len(right) < len(sizes):
            return None
        return [right[output] for output in range(len(sizes))]


def kernel_reference(
    kernel: UOp, slots: Sequence[int], inputs: Sequence[Array], against: str = ""
) -> Reference:
    """Return the reference of a kernel with opts: the results of `kernel`, the same without opts,
    on the reference interpreter. `inputs` has an array per slot; those of outputs count as 0."""
    empty = blank(inputs, slots)

    @cache
    def parts() -> list[ReferencePart]:
        return list(each_part())

    def each_part() -> Iterator[ReferencePart]:
        for part in _sampled(kernel):
            masks = [np.asarray(m, bool) for m in interpret_kernel(_marked(part), empty)]

            def compute(
                inputs: Sequence[Array],
                widen: bool,
                part: UOp = part,
                masks: Sequence[Array] = masks,
            ) -> list[Array]:
                arrays = interpret_kernel(part, inputs, widen=widen)
                return [a[mask] for a, mask in zip(arrays, masks, strict=True)]

            places = list(enumerate(masks))
            yield ReferencePart(places, empty, compute, reduce_steps(part), lane_steps(part))

    return Reference(parts, against or BEFORE_OPTS)


def blank(inputs: Sequence[Array], slots: Sequence[int]) -> list[Array]:
    """Return the arrays of a kernel with zeros for its outputs, so that no run reads the results of
    an earlier one."""
    return [np.zeros_like(a) if i in slots else a for i, a in enumerate(inputs)]


def reduce_steps(kernel: UOp) -> int:
    """Return the number of values that the longest reduction of a kernel combines, at least 1."""
    steps = [
        math.prod(r.extent for r in n.src[1:]) for n in kernel.toposort() if n.op is Ops.REDUCE
    ]
    return max(steps, default=1)


def lane_steps(kernel: UOp) -> int:
    """Return the number of lane-steps of all statements of a kernel together."""
    kernel_statements = statements(kernel).values()
    return sum(
        math.prod(r.extent for r in (*s.nest, *s.lanes, *s.reduction_lanes))
        for s in kernel_statements
    )


def _sampled(kernel: UOp) -> Iterator[UOp]:
    """Yield the whole kernel; if it is too large, copies with output axes fixed at random
    positions."""
    if lane_steps(kernel) <= FULL_STEPS:
        yield kernel
        return
    axes = list(dict.fromkeys(r for end in kernel.src for r in end.src[1:]))
    fixed: list[UOp] = []
    steps = lane_steps(kernel)
    for axis in axes:
        if steps <= FULL_STEPS // SAMPLES:
            break
        fixed.append(axis)
        steps //= axis.extent
    generator = np.random.default_rng(0)
    for _ in range(SAMPLES if fixed else 1):
        at = {axis: UOp.index(int(generator.integers(axis.extent))) for axis in fixed}
        yield kernel.substitute(at)


def _marked(kernel: UOp) -> UOp:
    """Return a kernel that writes 1 to each element that `kernel` writes."""
    changes = {}
    for end in kernel.src:
        store = end.store
        one = UOp.const(store.value.dtype.scalar, 1)
        changes[store] = construct.store(store.place, one)
    return kernel.substitute(changes)


# --------------------------------------------------------------------------------------------------
# The verdict on a kernel's answer, and the tolerance of an element.


@pickled
@dataclass(frozen=True, slots=True, repr=False)
class CheckResult(Printed):
    """The verdict on an answer; true if it is right.

    `max_abs_error` and `tolerance` are the greatest error and the greatest limit among the worst
    elements of the outputs; of whole numbers, how many differ and how many may. `checked` of
    `total` elements were compared. `relative` has the error and the limit of the output with the
    greatest error / limit, as shares of its greatest value; None for whole numbers and zeros.
    `flipped` elements were decided by a rounding (`check/nearness.py`). `is_told` is False where
    these are too many for a verdict; `ok` is False, too. `against` says what the answer was
    compared with; `whole`: no output has floats.
    """

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
        """The verdict in words, without `against`."""
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
        if tolerance >= 1:  # they underflow: shares of such values say nothing
            limit = f"tolerance {self.tolerance:.3g}; the values are smaller, and may become 0"
            return f"greatest error {self.max_abs_error:.3g} ({limit})"
        if not error:
            return f"greatest error 0 (tolerance {tolerance:.2g} of the greatest value)"
        return f"greatest error {error:.2g} of the greatest value (tolerance {tolerance:.2g} of it)"


def check(
    kernel: UOp, slots: Sequence[int], inputs: list[Array], actual_arrays: Sequence[Array]
) -> CheckResult:
    """Return the verdict on `actual_arrays`, the outputs of `kernel` with some opts: they are
    compared with those of `kernel` on the reference interpreter. `slots` are the slots of the
    outputs, `inputs` has an array per slot."""
    return compared(kernel_reference(kernel, slots, inputs), actual_arrays)


def compared(reference: Reference, actual_arrays: Sequence[Array]) -> CheckResult:
    """Return the verdict on the arrays of a kernel's outputs."""
    worst, allowed, right, is_wrong, flipped = 0.0, 0.0, True, False, 0
    nearest = _Comparison(0.0, 0.0, 0.0)
    total = sum(result.size for result in actual_arrays)
    masks = [np.zeros(result.size, bool) for result in actual_arrays]
    for part in reference.parts():
        wide = part.values(True)
        for number, (output, place) in enumerate(part.places):
            expected, actual = wide[number], actual_arrays[output].reshape(-1)[place]
            masks[output][place] = True
            verdict = _output_nearness(actual, number, part)
            error, limit = verdict.error, verdict.limit
            flipped += verdict.flipped
            is_wrong = is_wrong or not verdict.ok and verdict.is_told
            worst, allowed = max(worst, error), max(allowed, limit)
            is_float = dtypes.from_numpy(actual.dtype).is_float
            comparison = _Comparison(error, limit, closeness.greatest(expected) * is_float)
            nearest = max(nearest, comparison, key=_Comparison.rank)
            right = right and error <= limit
    checked = sum(int(np.count_nonzero(places)) for places in masks)
    whole = not any(dtypes.from_numpy(a.dtype).is_float for a in actual_arrays)
    return CheckResult(
        right, worst, checked, total, allowed, nearest.relative(), reference.against,
        flipped, right or is_wrong, whole,
    )  # fmt: skip


def _output_nearness(actual: Array, number: int, part: ReferencePart) -> Nearness:
    """Return the verdict on output `number` of a part. References in its own dtypes and with other
    other roundings are computed only where the one in float64 does not confirm it. If the output is
    right by both limits, error and limit are those relative to the greatest value."""
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
    """Return the verdict on a kernel with an output that stands for no value of the user's graph:
    `own`, on the value that a rule made, and `results`, on the results of the expression, must
    both be right."""
    verdict = own if not own.ok else results
    against = f"{own.against}, and all results with {results.against}"
    return replace(verdict, ok=own.ok and results.ok, against=against)


class _Comparison(NamedTuple):
    """An error, its limit, and the greatest right value (0 of whole numbers)."""

    error: float
    limit: float
    greatest: float

    def rank(self) -> tuple[float, float]:
        """Return a sort key: the error as a share of its limit (if that is not 0), the limit."""
        return self.error / self.limit if self.limit else self.error, self.limit

    def relative(self) -> tuple[float, float] | None:
        """Return error and limit as shares of the greatest value."""
        if not (self.limit and self.greatest):
            return None
        return self.error / self.greatest, self.limit / self.greatest


def compare(actual: Array, expected: Array, steps: int) -> tuple[float, float]:
    """Return (greatest error, tolerance); of whole numbers, (how many differ, 0). The tolerance
    grows with the square root of `steps`, the length of the reduction, which is computed in float32
    at least."""
    errors = closeness.errors(actual, expected)
    if not dtypes.from_numpy(actual.dtype).is_float:
        return float(np.count_nonzero(errors)), 0.0
    limit = closeness.limit_of(actual, expected, steps)
    return float(errors.max(initial=0.0)), limit
