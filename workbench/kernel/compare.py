"""Two variants of a kernel side by side: opts, counts, source, answers and, on request, times."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, fields

import numpy as np

from workbench.base.display import Printed
from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.check.answer import compare, reduce_steps
from workbench.ir.nest.estimates import Counts
from workbench.kernel.performance import beside
from workbench.kernel.runnable import RunnableKernel
from workbench.measure.side_by_side import SideBySide

MOST_LINES = 40
"""Most lines of difference that are printed."""


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Printed):
    """The differences of two kernels, in pairs: this one, the other. `difference` is the unified
    diff of their sources, "" where they are equal; `error` is the greatest difference of their
    answers, within `tolerance` where they are `equal` (None where the two compute different
    things); `times` were measured in turns: "this" and "other"."""

    device: str
    opts: tuple[str, str]
    counts: tuple[Counts, Counts]
    difference: str
    equal: bool | None
    error: float
    tolerance: float
    times: SideBySide | None = None

    def __str__(self) -> str:
        rows = [("opts", *self.opts)]
        rows += [
            (f.name.replace("_", " "), f"{one:,}", f"{other:,}")
            for f in fields(Counts)
            if (one := getattr(self.counts[0], f.name)) + (other := getattr(self.counts[1], f.name))
        ]
        widths = [max(len(r[i]) for r in rows) for i in range(2)]
        lines = [f"{a:{widths[0]}}  {b:{widths[1]}}  {c}" for a, b, c in rows]
        lines += [] if self.times is None else [str(self.times)]
        lines.append(self._answers())
        diff_lines = self.difference.split("\n")
        more = len(diff_lines) - MOST_LINES
        lines += diff_lines[:MOST_LINES] if self.difference else ["the sources are equal"]
        return "\n".join([*lines, f"and {more:,} lines more"] if more > 0 else lines)

    def _answers(self) -> str:
        if self.equal is None:
            return "answers: these are different computations"
        verdict = "equal" if self.equal else "DIFFERENT"
        numbers = f"greatest difference {self.error:.3g}, tolerance {self.tolerance:.3g}"
        return f"answers: {verdict} ({numbers})"


def compared(
    one: RunnableKernel, other: RunnableKernel, device: str, budget_s: float = 0.0
) -> Comparison:
    """Return the differences of two kernels on a device, timed for `budget_s` seconds."""
    if not isinstance(other, type(one)):
        because = f"{type(other).__name__} is not a Kernel"
        raise WorkbenchError("cannot compare", because, "k.compare(k.optimized())")
    with unobserved():
        programs = one.compile(device), other.compile(device)
    sources = [c.source.splitlines() for c in programs]
    unified = difflib.unified_diff(sources[0], sources[1], "this", "other", lineterm="", n=2)
    error, tolerance, equal = _answers(one, other, device)
    times = beside(one, {"other": other}, device, budget_s) if budget_s > 0 else None
    return Comparison(
        device, (_opts(one), _opts(other)), (programs[0].counts, programs[1].counts),
        "\n".join(unified), equal, error, tolerance, times,
    )  # fmt: skip


def _opts(kernel: RunnableKernel) -> str:
    words = [str(o) for o in kernel.applied_opts]
    words += [f"without {name}" for name in kernel.rules_off]
    return ", ".join(words) or "none"


def _answers(
    one: RunnableKernel, other: RunnableKernel, device: str
) -> tuple[float, float, bool | None]:
    """Return (greatest difference, tolerance, whether it is within)."""
    if one.original is not other.original or one.data != other.data:
        return 0.0, 0.0, None
    error, tolerance = 0.0, 0.0
    steps = reduce_steps(one.original)
    for actual, expected in zip(other.run(device), one.run(device), strict=True):
        exact = expected.dtype.kind in "iub"
        wide = expected if exact else expected.astype(np.float64)
        difference, limit = compare(actual, wide, steps)
        error, tolerance = max(error, difference), max(tolerance, 2 * limit)
    if error > tolerance:
        # both may have lost much by cancellation: each may be off by what it is checked with
        results = one.check(device), other.check(device)
        tolerance = max(tolerance, sum(result.tolerance for result in results))
        return error, tolerance, all(results)
    return error, tolerance, True
