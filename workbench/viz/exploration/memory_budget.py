"""Plans within a budget of memory: kernels in another order, and values that are computed again.

The order comes first, since it costs nothing. Then, again and again, one of the values that are
live where the plan needs most is no longer stored: every kernel that reads it computes it. Those
whose computation the scheduler estimates to cost the fewest operations per byte are tried first,
and the first that lowers the peak stays. The search is greedy: another choice may reach less.
Source of the idea: rematerialization (Chen and others 2016, "Training deep nets with sublinear
memory cost").

Sections: The budget; Plans that need less; The cost of a plan.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Real
from typing import Any

from workbench.base.errors import WorkbenchError, plural
from workbench.base.trace import unobserved
from workbench.execution.item_order import ordered_for_memory
from workbench.execution.memory_plan import plan_memory
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.by_hand import HandChoices, reordered
from workbench.ir.schedule.plan import Decision, ScheduleItem
from workbench.kernel.kernel import Kernel
from workbench.measure.timing import BINARY, bytes_text
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors

# --------------------------------------------------------------------------------------------------
# The budget.

HINT = 'ex.replan(memory="64 MiB"), or a number of bytes'
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|[kMGT]B|[KMGT]iB)\s*")
_UNITS = {
    **{unit: 1024**place for place, unit in enumerate(BINARY)},
    **{unit: 1000**place for place, unit in enumerate(("B", "kB", "MB", "GB", "TB"))},
}


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """How a plan came to need at most `limit_bytes`, and what that costs: the peak, the number of
    kernels and the sum of their predicted times (None: not known), each before and after."""

    limit_bytes: int
    peak_bytes: tuple[int, int]
    kernels: tuple[int, int]
    predicted_s: tuple[float | None, float | None]
    recomputed: int
    moved: int

    def __str__(self) -> str:
        before, after = map(bytes_text, self.peak_bytes)
        what = f"within {bytes_text(self.limit_bytes)}: "
        if not self.recomputed and not self.moved:
            return f"{what}at most {after} are held without a change"
        changes = []
        if self.moved:
            changes.append(f"{plural(self.moved, 'kernel')} moved")
        if self.recomputed:
            changes.append(f"{plural(self.recomputed, 'value')} computed again by each reader")
        words = f"{what}at most {after} are held instead of {before}; {', '.join(changes)}"
        first, last = self.kernels
        words += f"; {last} kernels instead of {first}" if first != last else ""
        old_s, new_s = self.predicted_s
        if old_s is not None and new_s is not None and old_s:
            share = new_s / old_s - 1
            words += f"; {new_s * 1e3:.3g} ms predicted, not {old_s * 1e3:.3g} ({share:+.0%})"
        return words


def bytes_of(memory: Any) -> int:
    """Return a budget in bytes. Errors: WorkbenchError for what is no number of bytes."""
    what = f"cannot plan in memory={memory!r:.40}"
    if isinstance(memory, str):
        match = _TEXT.fullmatch(memory)
        if match is None or match[2] not in _UNITS:
            because = f"a budget is a number and a unit: {', '.join(_UNITS)}"
            raise WorkbenchError(what, because, HINT)
        memory = float(match[1]) * _UNITS[match[2]]
    is_number = isinstance(memory, Real) and not isinstance(memory, bool)
    if not is_number:
        because = f"{type(memory).__name__} is no number of bytes"
        raise WorkbenchError(what, because, HINT)
    if not 1 <= memory < math.inf:
        raise WorkbenchError(what, "a budget is at least 1 byte, and finite", HINT)
    return int(memory)


# --------------------------------------------------------------------------------------------------
# Plans that need less.

MOST_PLANS = 60
"""Most plans that are tried."""
MOST_AGAIN = 100.0
"""The most that computing a value again may cost, in times of storing it: products of matrices that
every reader computes would take hours."""

Planner = Callable[[HandChoices], ScheduledTensors]


def within(
    ex: ScheduledTensors, memory: object, plan_again: Planner
) -> tuple[HandChoices, MemoryBudget]:
    """Return choices by hand, after those of `ex`, with which its values need at most `memory`
    while the kernels run, and their cost. `plan_again` plans the expression with other choices.

    Errors: WorkbenchError for what is no budget, and, with the least that was reached, for one that
    cannot be kept to.
    """
    limit, before = bytes_of(memory), ex.memory_plan.peak_bytes
    best = _Candidate.of(ex, {})
    if before <= limit:
        best = replace(best, pairs={}, peak_bytes=before)
    trials = _Trials(plan_again)
    while best.peak_bytes > limit:
        better = trials.better(best)
        if better is None:
            because = (
                f"the least that another order and recomputation reach is "
                f"{bytes_text(best.peak_bytes)}, of {bytes_text(before)}"
            )
            hint = f"ex.replan(memory={best.peak_bytes})"
            raise WorkbenchError(f"cannot plan in {bytes_text(limit)}", because, hint)
        best = better
    choices = replace(best.ex.choices, before={**best.ex.choices.before, **best.pairs})
    peaks = before, best.peak_bytes
    kernels = len(ex.kernels), len(best.ex.kernels)
    times = predicted_s(ex), predicted_s(best.ex)
    return choices, MemoryBudget(limit, peaks, kernels, times, len(best.fused), len(best.pairs))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A plan, the values that it no longer stores, and the pairs of its kernels that run in another
    order. `peak_bytes` is what it then needs."""

    ex: ScheduledTensors
    fused: dict[UOp, bool]
    pairs: dict[UOp, UOp]
    peak_bytes: int
    live: tuple[UOp, ...]
    """The values that are live at the peak, the largest first."""

    @staticmethod
    def of(ex: ScheduledTensors, fused: dict[UOp, bool]) -> _Candidate:
        plan, items, pairs = ex.memory_plan, ex.items, dict[UOp, UOp]()
        inner = ex.inner_buffers
        if not ex.choices.before and not ex.choices.in_place:
            order = [i for run in ex.runs for i in ordered_for_memory(run.items, inner)]
            other = plan_memory(order, inner)
            if other.peak_bytes < plan.peak_bytes:
                plan, items, pairs = other, tuple(order), _pairs(ex, order)
        values = {b: n for item in items for b, n in zip(item.outputs, item.nodes, strict=True)}
        live = sorted(
            [b for b in plan.live(_busiest(plan.lives, len(items))) if b in inner],
            key=lambda b: -b.size * b.dtype.itemsize,
        )
        return _Candidate(ex, fused, pairs, plan.peak_bytes, tuple([values[b] for b in live]))


def _busiest(lives: Mapping[UOp, tuple[int, int]], count: int) -> int:
    """Return the item at which the live values have most bytes."""
    sizes = [0] * (count + 2)
    for buffer, (first, last) in lives.items():
        nbytes = buffer.size * buffer.dtype.itemsize
        sizes[first] += nbytes
        sizes[last + 1] -= nbytes
    best = live = place = 0
    for number, change in enumerate(sizes[:count]):
        live += change
        if live > best:
            best, place = live, number
    return place


def _pairs(ex: ScheduledTensors, order: list[ScheduleItem]) -> dict[UOp, UOp]:
    """Return choices of `before` that bring the items of a plan into an order."""
    pairs: dict[UOp, UOp] = {}
    nodes = dict.fromkeys(node for item in ex.items for node in item.nodes)
    while True:
        actual = reordered(ex.items, pairs, nodes)
        wrong = next((n for n, item in enumerate(order) if actual[n] is not item), None)
        if wrong is None:
            name = ex.originals.get
            return {name(a, a): name(b, b) for a, b in pairs.items()}
        pairs[order[wrong].nodes[0]] = actual[wrong].nodes[0]


class _Trials:
    """Plans that store one value fewer, each tried once."""

    def __init__(self, plan_again: Planner):
        self._plan_again = plan_again
        self._count = 0
        self._refused: set[UOp] = set()

    def better(self, best: _Candidate) -> _Candidate | None:
        """Return a plan that needs fewer bytes; None where none of those tried does."""
        for value in self._values(best):
            if self._count >= MOST_PLANS:
                return None
            self._count += 1
            choices = best.ex.choices
            stored = {**choices.stored, value: False}
            with suppress(WorkbenchError), unobserved():
                ex = self._plan_again(replace(choices, stored=stored))
                candidate = _Candidate.of(ex, {**best.fused, value: False})
                if ex.error is None and candidate.peak_bytes < best.peak_bytes:
                    return candidate
            self._refused.add(value)
        return None

    def _values(self, best: _Candidate) -> Iterator[UOp]:
        """Yield the stored values to compute again, those that cost least per byte first."""
        decisions = {d.node: d for d in best.ex.decisions if d.stored}
        costs = {
            node: cost
            for node in best.live
            if node in decisions and (cost := _cost(decisions[node])) is not None
        }
        order = sorted(costs, key=lambda n: costs[n] / max(1, n.size * n.dtype.itemsize))
        for node in islice(order, MOST_PLANS):
            original = best.ex.originals.get(node, node)
            if original not in self._refused and original not in best.ex.choices.nodes:
                yield original


def _cost(decision: Decision) -> float | None:
    """Return the estimated operations that computing a value again adds; None if it stays stored:
    it must be, or the cost is not known or too large."""
    again = decision.estimates.get("cost_to_recompute")
    store = decision.estimates.get("cost_to_store")
    if again is None or store is None or decision.forced or again > MOST_AGAIN * store:
        return None
    return again - store


# --------------------------------------------------------------------------------------------------
# The cost of a plan.

MOST_KERNELS = 200
"""Most kernels of a plan whose times are predicted."""


def predicted_s(ex: ScheduledTensors) -> float | None:
    """Return the sum of the predicted times of the kernels of a plan, with the default opts; None
    where one is not known."""
    if len(ex.kernels) > MOST_KERNELS:
        return None
    times: dict[UOp, float] = {}
    for kernel in ex.kernels:
        if kernel.original not in times:
            seconds = _kernel_s(kernel)
            if seconds is None:
                return None
            times[kernel.original] = seconds
    return sum([times[kernel.original] for kernel in ex.kernels])


def _kernel_s(kernel: Kernel) -> float | None:
    with suppress(WorkbenchError), unobserved():
        return kernel.optimized().cost.predicted_s
    return None
