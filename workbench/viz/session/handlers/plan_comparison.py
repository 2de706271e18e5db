"""Comparison of two plans: before and after a decision was changed.

The kernels of both plans, with the default opts, are timed in turns in one run. The time of a plan
is the sum of its kernels' times, each warm. A kernel of both plans is timed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from workbench.base.errors import WorkbenchError
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import Decision
from workbench.kernel.kernel import Kernel
from workbench.measure.side_by_side import Ratio, added, common_rounds, compared
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.plan_differences import plan_estimates
from workbench.viz.schema.messages import NoResult
from workbench.viz.schema.plan import ComparedPlans
from workbench.viz.session.handlers import measurement, variants
from workbench.viz.session.live_record import LiveRecord, PreviousPlan
from workbench.worker.client import DATA_BYTES, TaskStopped
from workbench.worker.rows import Row

BUDGET_S = 1.5
"""Seconds for timing two plans."""
SAMPLES = 25
"""Most samples of each kernel of the plans."""
MOST_KERNELS = 40
"""Most kernels of both plans together that are timed: more would get too few samples."""
SAME_KERNELS = "the same kernels: their times do not depend on order or shared memory"
"""The comparison of plans that differ in nothing that is timed."""
AT = ("plan", "compared")
"""The path of the comparison in the record."""


def present_plan(session: LiveRecord) -> PreviousPlan:
    """Return the plan with which the next one is compared: the present one. Without a rule that it
    needs a plan does not compile, and has no time: then it is the last one that did."""
    record = session.record
    compiles = all(record.variants[kernel.root].error is None for kernel in record.kernels)
    if session.before is not None and not compiles:
        return session.before
    ex = session.recorder.exploration
    stored = {value: d.stored for value, d in _decided(ex).items()}
    runs = record.plan.runs
    times = [run.predicted_s for run in runs for run in [runs[run.like]]]
    known = [seconds for seconds in times if seconds is not None]
    predicted_s = sum(known) if len(known) == len(times) else None
    return PreviousPlan(session.number, ex, ex.kernels, stored, predicted_s)


def _decided(ex: Exploration) -> dict[UOp, Decision]:
    """Return the decisions by their values, named as without choices by hand."""
    return {ex.originals.get(d.node, d.node): d for d in ex.decisions}


def compare(session: LiveRecord, last_plan: PreviousPlan, target: UOp | None) -> None:
    """Write the comparison to the record: the numbers of kernels, and the positions of decisions,
    `change` of the one about `target` (None: a rule was switched), `moved` of the others that
    changed with it. `measure` adds the times.
    """
    ex = session.recorder.exploration
    values = [ex.originals.get(d.node, d.node) for d in ex.decisions]
    moved = [
        place for place, (value, d) in enumerate(zip(values, ex.decisions, strict=True))
        if value is not target and d.stored is not last_plan.stored.get(value, d.stored)
    ]  # fmt: skip
    session.before = last_plan
    places = [place for place, value in enumerate(values) if value is target]
    row = ComparedPlans(
        kernels=(len(last_plan.kernels), len(ex.kernels)),
        change=places[0] if places else None,
        moved=moved,
        seconds=None,
        speed="",
        verdict="",
        predicted_s=last_plan.predicted_s,
        bytes=(_peak(last_plan.exploration), _peak(ex)),
        operations=(plan_estimates(last_plan.exploration).flops, plan_estimates(ex).flops),
    )
    session.put(AT, row)


def _peak(ex: Exploration) -> int:
    return ex.memory_plan.peak_bytes


def is_small(session: LiveRecord, flops: float) -> bool:
    """Whether both plans together have at most `flops` operations."""
    return sum(k.estimates.flops for k in _kernels(session)) <= flops


def measure(session: LiveRecord) -> NoResult:
    """Time both plans; the record gets the time of each, and which is faster.

    Errors: WorkbenchError without another plan, and where plans cannot be timed; TaskStopped.
    """
    was, mine = session.before, session.recorder
    _check(session)
    assert was is not None
    device = session.device  # it may change meanwhile; both plans need the same one
    pairs = (was.number, was.kernels), (session.number, mine.exploration.kernels)
    places: dict[tuple[str, str], int] = {}
    tasks: list[Row] = []
    plans: list[list[int]] = []
    with session.jobs.use_worker(session.device) as worker:
        for number, kernels in pairs:
            plans.append([])
            for place, kernel in enumerate(kernels):
                candidate = variants.on_device(kernel, device).optimized()
                name = candidate.to_text(), ",".join(candidate.rules_off)
                if name not in places:
                    places[name] = len(tasks)
                    key = f"{number}-{place}"
                    measurement.hold(worker, candidate, key)
                    tasks.append(measurement.kernel_row(candidate) | {"data": key})
                plans[-1].append(places[name])
        task = {
            "do": "measure", "kernels": tasks, "cold": False, "budget_s": BUDGET_S,
            "samples": SAMPLES,
        }  # fmt: skip
        rows = measurement.measured(session, worker, task, "plans")
    seconds, busy_s, comparison = _plan_times(rows, plans)
    with session.lock:
        if session.recorder is mine:  # else it was planned again meanwhile
            row = mine.record.plan.compared
            assert row is not None
            same = sorted(plans[0]) == sorted(plans[1])
            text = SAME_KERNELS if same else str(comparison)
            verdict = f"now is {text}" if comparison.is_measurable else text
            row = replace(row, seconds=seconds, busy_s=busy_s, speed=text, verdict=verdict)
            session.put(AT, row)
            session.send_changes()
    return NoResult()


def _check(session: LiveRecord) -> None:
    """Errors: WorkbenchError without another plan, on an emulator, and for too large plans."""
    what = "these plans cannot be timed"
    if session.before is None or not session.recorder.exploration.kernels:
        because = "there is no other plan to compare this one with"
        raise WorkbenchError(what, because, '"cut here" or "fuse anyway" makes one')
    measurement.refuse_emulator(session, what)
    kernels = _kernels(session)
    size = measurement.data_bytes(kernels)
    if len(kernels) > MOST_KERNELS or size > DATA_BYTES // 2:
        because = f"together they have {len(kernels)} kernels on {size:,.0f} bytes"
        raise WorkbenchError(what, because, "smaller tensors")


def _kernels(session: LiveRecord) -> tuple[Kernel, ...]:
    was = () if session.before is None else session.before.kernels
    return was + session.recorder.exploration.kernels


def _plan_times(
    rows: Sequence[measurement.MeasuredKernel], plans: Sequence[Sequence[int]]
) -> tuple[tuple[float, float] | None, tuple[float, float] | None, Ratio]:
    """Return the seconds of each plan, those of plans that were disturbed in every round, which are
    not compared, and the comparison of the second with the first. Samples of one round were taken
    together, so the times of each round are added up. The seconds of the second are those of the
    first by the ratio: two medians of their own would be of other rounds, and have another ratio.

    Errors: WorkbenchError of a kernel that does not run; TaskStopped.
    """
    for row in rows:
        if row.error is not None:
            raise row.error.as_error()
        if not row.samples:
            raise TaskStopped()
    was, now = (added([rows[place].warm for place in places]) for places in plans)
    comparison = compared(was, now)
    if not comparison.rounds:
        return None, (was.median_s, now.median_s), comparison
    was_s = median(before_s for before_s, _ in common_rounds(was, now))
    return (was_s, was_s / comparison.median), None, comparison
