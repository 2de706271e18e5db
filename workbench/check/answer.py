"""Checking a kernel's answer against the un-optimised kernel on the reference interpreter.

Up to 2**24 lane-steps the whole kernel is interpreted, in float64; of a larger one output positions
are sampled with a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.base.display import Printed
from workbench.base.dtypes import dtypes
from workbench.execution.buffers import Array
from workbench.ir.meaning import closeness
from workbench.ir.meaning.interpret_kernel import interpret_kernel
from workbench.ir.nest.loops import statements
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

FULL_STEPS = 1 << 24
SAMPLES = 32
ENOUGH = 24
"""Results of which one at least tells how much a kernel loses by cancellation."""


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult(Printed):
    """The outcome. `tolerance` bounds the absolute error; `checked` of `total` elements were
    compared. `relative` has the error and the tolerance as shares of the greatest value of the
    output that is nearest to its tolerance, or furthest beyond it; None where there is no such
    value: of whole numbers, of which the error is how many differ, and of zeros."""

    ok: bool
    max_abs_error: float
    checked: int
    total: int
    tolerance: float
    relative: tuple[float, float] | None = None

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        verdict = "right" if self.ok else "WRONG"
        compared = f"{self.checked:,} of {self.total:,} elements compared"
        return f"{verdict}: {compared}, {self._error_text()}"

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
    """Compare `actual_arrays`, which some opts of `kernel` wrote to `slots`, with the reference.

    `kernel` is the un-optimised one; `inputs` holds an array per slot.
    """
    checked = 0
    worst, allowed, right = 0.0, 0.0, True
    nearest = _Comparison(0.0, 0.0, 0.0)
    total = sum(result.size for result in actual_arrays)
    for part in _parts(kernel):
        empty, steps = blank(inputs, slots), reduce_steps(part)
        want = dict(zip(slots, interpret_kernel(part, empty, widen=True), strict=True))
        written = dict(zip(slots, interpret_kernel(_marked(part), empty), strict=True))
        for slot, result in zip(slots, actual_arrays, strict=True):
            mask = np.asarray(written[slot], bool)
            expected, actual = want[slot][mask], result[mask]
            checked += expected.size
            error, limit = compare(actual, expected, steps)
            if error > limit:
                # the kernel's own dtypes may lose more by cancellation, which is not an opt's fault
                narrow = dict(zip(slots, interpret_kernel(part, empty), strict=True))
                beside = narrow[slot][mask]
                error, limit = as_narrow(actual, expected, beside, steps)
                if error > limit:
                    lost = _usual_loss(part, empty, slots, slot)
                    error, limit = as_narrow(actual, expected, beside, steps, lost)
            worst, allowed = max(worst, error), max(allowed, limit)
            one = _Comparison(error, limit, closeness.greatest(expected))
            nearest = max(nearest, one, key=_Comparison.rank)
            right = right and error <= limit
    return CheckResult(right, worst, checked, total, allowed, nearest.relative())


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


def blank(inputs: Sequence[Array], slots: Sequence[int]) -> list[Array]:
    """Return the arrays of a kernel with zeros for its outputs: a run must not read the results of
    the run before."""
    return [np.zeros_like(a) if i in slots else a for i, a in enumerate(inputs)]


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
    """
    limit = closeness.limit_of(actual, expected, steps)
    overflows = ~np.isfinite(narrow) & np.isfinite(expected)
    if np.any(np.isfinite(actual[overflows])):
        return math.inf, limit
    rest = ~overflows
    kind = dtypes.from_numpy(actual.dtype)
    lost = max(lost, _greatest(narrow[rest], expected[rest]))
    allowed = max(limit, lost * closeness.units(kind, steps) / 2)
    return _greatest(actual[rest], expected[rest]), allowed


def _usual_loss(
    kernel: UOp, inputs: Sequence[Array], slots: Sequence[int], slot: int
) -> float:
    """Return the greatest error of the reference in the kernel's own dtypes on inputs beside the
    given ones, on which it may be exact by chance."""
    random = np.random.default_rng(0)
    place, worst = list(slots).index(slot), 0.0
    for _ in range(math.ceil(ENOUGH / max(1, inputs[slot].size))):
        near = [_near(array, random) for array in inputs]
        wide = interpret_kernel(kernel, near, widen=True)[place]
        narrow = interpret_kernel(kernel, near)[place]
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


def reduce_steps(kernel: UOp) -> int:
    """Return the number of values that the longest reduction of a kernel combines."""
    steps = [
        math.prod(r.extent for r in n.src[1:])
        for n in kernel.toposort()
        if n.op is Ops.REDUCE
    ]
    return max(steps, default=1)


def lane_steps(kernel: UOp) -> int:
    """Return the number of lane-steps of all statements of a kernel together."""
    kernel_statements = statements(kernel).values()
    return sum(
        math.prod(r.extent for r in (*s.nest, *s.lanes, *s.reduction_lanes))
        for s in kernel_statements
    )


def _parts(kernel: UOp) -> Iterator[UOp]:
    """Yield the whole kernel, or, where it is too large, kernels with output axes fixed at sampled
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
