"""Requests about all kernels: their times, and their checks.

Sections: Times of all kernels with the default opts; equal kernels are timed once; Checks of every
kernel, and of the results of the whole exploration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.measure.kernel_time import doubts
from workbench.viz.model.words import plural
from workbench.viz.schema.messages import NoResult
from workbench.viz.schema.variant import CheckRow
from workbench.viz.session.handlers import measurement
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import run_name
from workbench.worker.client import TaskStopped, Worker

# --------------------------------------------------------------------------------------------------
# Times of all kernels with the default opts; equal kernels are timed once.

BUDGET_S = 1.0
"""Seconds for timing one group of kernels."""
SAMPLES = 25
"""Most samples of each kernel."""
AT_ONCE = 16
"""Most kernels of a group, which is timed in turns."""


def measure(session: LiveRecord) -> NoResult:
    """Time the kernels that have no time yet; a kernel that fails stays without one.

    Errors: DeviceError for a machine that is not here; WorkbenchError on an emulator, and if no
    kernel of a group runs; TaskStopped.
    """
    measurement.refuse_elsewhere(session)
    measurement.refuse_emulator(session, "these kernels cannot be timed")
    for _ in measured(session, again=True):
        if session.jobs.is_stopped():
            raise TaskStopped()
    return NoResult()


def measured(
    session: LiveRecord, flops: float = float("inf"), again: bool = False
) -> Iterator[None]:
    """Time the kernels of at most `flops` operations that have no time yet, a group per step; those
    that were disturbed only `again`, since somebody asks for them.

    Errors: WorkbenchError if no kernel of a group runs.
    """
    runs = session.record.plan.runs
    places = [number for number in untimed(session, flops) if again or not runs[number].busy_s]
    for begin in range(0, len(places), AT_ONCE):
        with session.jobs.use_worker(session.device) as worker:
            _time(session, worker, places[begin : begin + AT_ONCE])
        yield


def untimed(session: LiveRecord, flops: float) -> list[int]:
    """Return the kernels of at most `flops` operations that have no time yet, equal ones once."""
    return [
        number for number, run in enumerate(session.record.plan.runs)
        if run.like == number and run.measured_s is None
        and session.record.kernels[number].flops <= flops
    ]  # fmt: skip


def _time(session: LiveRecord, worker: Worker, places: Sequence[int]) -> None:
    mine, device = session.recorder, session.device
    tasks = []
    for number in places:
        with session.lock:
            kernel = session.recorder.runs.default(number)
        key = f"{session.number}-{number}"
        measurement.hold(worker, kernel, key)
        tasks.append(measurement.kernel_row(kernel) | {"data": key})
    task = {
        "do": "measure", "kernels": tasks, "cold": False, "budget_s": BUDGET_S,
        "samples": SAMPLES,
    }  # fmt: skip
    rows = measurement.measured(session, worker, task, "kernels")
    with session.lock:
        if session.recorder is not mine or session.device != device:
            return  # these are no longer the kernels that are shown
        for number, row in zip(places, rows, strict=True):
            if row.samples:
                samples = row.warm
                median_s = samples.median_s
                spread = samples.spread_s / median_s
                is_certain = not doubts(row.busy, samples.times_s, samples.had)
                mine.runs.set_time(number, median_s, spread, samples.had, is_certain)
        autos = [
            (_timed_auto(session, number), task, row)
            for number, task, row in zip(places, tasks, rows, strict=True)
        ]
        found = [(auto, task, row) for auto, task, row in autos if auto is not None]
        candidates = [(auto, task) for auto, task, _ in found]
        measurement.set_timings(session, candidates, [row for _, _, row in found], run_name())
        session.send_changes()
    errors = [row.error for row in rows if row.error is not None]
    if len(errors) == len(rows):
        raise errors[0].as_error()


def _timed_auto(session: LiveRecord, number: int) -> int | None:
    """Return the variant of a kernel with the default opts if it has a time, which is then older
    than that of the kernel: both are shown, and must not differ."""
    ast = session.recorder.runs.default(number).ast
    return next(
        (
            v for v, row in enumerate(session.record.variants)
            if row.kernel == number and row.timing is not None
            and not row.edited and not row.deleted and session.kernels[v].ast is ast
        ),
        None,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------------
# Checks of every kernel, and of the results of the whole exploration.


def check_all(session: LiveRecord) -> NoResult:
    """Compare each kernel, with the default opts if that variant exists, and the results with what
    the expression means. Each verdict on a kernel is set at its variant, the one on all at the
    plan.

    Errors: WorkbenchError if data of a kernel are missing; TaskStopped.
    """
    mine, device = session.recorder, session.device
    for kernel in mine.exploration.kernels:
        kernel.require_data("cannot check this exploration")
    wrong: list[str] = []
    try:
        for number in range(len(session.record.kernels)):
            if session.jobs.is_stopped():
                raise TaskStopped()
            wrong += _wrong(session, number)
        session.status("check_all", len(session.record.kernels), 0, "all results")
        with unobserved():
            results = [run.check(device) for run in mine.exploration.runs]
    finally:
        session.status(None)
    wrong += ["the results" for result in results if not result.ok][:1]
    kernels = plural(len(session.record.kernels), "kernel")
    head = f"WRONG: {', '.join(wrong)}" if wrong else f"right: {kernels}, all results"
    text = "; ".join([f"{head} on {device}", *map(str, results)])
    with session.lock:
        if session.recorder is mine and session.device == device:
            session.put(("plan", "check"), CheckRow(not wrong, text))
            session.send_changes()
    return NoResult()


def _wrong(session: LiveRecord, number: int) -> list[str]:
    """Return the name of a kernel that is wrong or fails, in a list; [] if it is right."""
    variant = _variant(session, number)
    name = f"kernel {number + 1} {session.row(variant).name}"
    session.status("check_all", number, len(session.record.kernels), name)
    try:
        with measurement.use_worker(session, [variant]) as worker:
            measurement.check_variant(session, worker, variant)
    except TaskStopped:
        raise
    except WorkbenchError as error:
        return [f"{name} ({error.what})"]
    is_right = session.checks[variant, session.device].ok
    return [] if is_right else [name]


def _variant(session: LiveRecord, number: int) -> int:
    """Return the variant of a kernel that is checked: with the default opts, or the plain one."""
    return next(
        (
            v for v, row in enumerate(session.record.variants)
            if row.kernel == number and row.name == "auto" and not row.deleted
        ),
        session.record.kernels[number].root,
    )  # fmt: skip
