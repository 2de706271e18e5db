"""Baselines: functions of the user, timed in the user's own process.

A baseline runs in a thread of its own, in turns with the pinned variant if there is one, so that
both see the same machine. It holds the GIL unless it releases it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Thread

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.cost.kernel_cost import float_kind
from workbench.ir.nest.estimates import Estimates
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.kernel import Kernel
from workbench.kernel.run import computing
from workbench.measure.kernel_time import calibration
from workbench.measure.timing import Samples, interleave
from workbench.pipeline import build
from workbench.viz.record.variants import error_row
from workbench.viz.schema.messages import NoResult
from workbench.viz.schema.record import BaselineRow
from workbench.viz.schema.variant import ErrorWords, TimingRow
from workbench.viz.session.handlers import measurement
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import run_name, timing_row
from workbench.worker.client import TaskStopped

BUDGET_S = 0.6
"""Seconds for timing one baseline."""
SAMPLES = 15
"""Most samples of each baseline."""
LIMIT_S = 30.0
"""Seconds after which a baseline that has not returned is given up."""
OURS = "ours"
THEIRS = "theirs"
Run = Callable[[], object]


def by_name(session: LiveRecord) -> dict[str, Run]:
    """Return the user's baselines, by name."""
    return dict(session.recorder.exploration.display.baselines)


def measure_all(session: LiveRecord) -> NoResult:
    """Time every baseline.

    Errors: WorkbenchError without a baseline, and on an emulator, whose times are not compared;
    DeviceError for a machine that is not here; TaskStopped.
    """
    baselines = by_name(session)
    if not baselines:
        hint = session.record.recipes.baseline
        because = "you choose what to compare with, and no function was added"
        raise WorkbenchError("there is no baseline to time", because, hint)
    measurement.refuse_elsewhere(session)
    if Device[session.device].is_emulator:
        because = "an emulator's times cannot be compared with others"
        raise WorkbenchError("baselines are not timed here", because, "another device")
    for name, run in baselines.items():
        if session.jobs.is_stopped():
            raise TaskStopped()
        session.status("baseline", 0, 1, name)
        try:
            with session.jobs.use_worker(session.device):  # no other measurement runs meanwhile
                _measure(session, name, run)
        finally:
            session.status(None)
    return NoResult()


def add_rows(session: LiveRecord) -> None:
    """Add rows for the user's baselines to the record, before they are timed."""
    for name in by_name(session):
        add_row(session, name)


def add_row(session: LiveRecord, name: str) -> int:
    """Return the position of a baseline's row, added if it is new."""
    rows = session.record.baselines
    for place, row in enumerate(rows):
        if row.name == name:
            return place
    table = [*rows, BaselineRow(name, None, None)]
    session.put(("baselines",), table)
    return len(rows)


@dataclass(slots=True)
class _Outcome:
    """The outcome of timing a baseline: samples by THEIRS and OURS, or an error."""

    samples: Mapping[str, Samples] | None = None
    error: ErrorWords | None = None


def _measure(session: LiveRecord, name: str, run: Run) -> None:
    running = _Outcome()
    with session.lock:  # the pin and the device may change while it runs
        pinned = session.record.pinned
        if pinned is None or pinned in session.edited:
            kernel = None
        else:
            kernel = session.kernels[pinned]
    runs: dict[str, Run] = {THEIRS: computing(name, run)}
    if kernel is not None:
        runs[OURS] = _our_run(kernel)

    rest = session.recorder.speeds
    beside = calibration(rest, 1) if rest else None
    before = beside.take if beside else lambda: None

    def work() -> None:
        try:
            running.samples = interleave(runs, BUDGET_S, SAMPLES, before=before)
        except Exception as error:
            running.error = error_row(error)

    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    outcome, busy = running, beside.busy if beside else None
    if outcome.samples is None and outcome.error is None:
        late = WorkbenchError(f"{name} did not return", f"in {LIMIT_S:g} s")
        outcome = _Outcome(error=error_row(late))  # later results are dropped
    with session.lock:
        ours = None
        if kernel is not None and pinned is not None and outcome.samples is not None:
            ours = _our_row(kernel, outcome.samples[OURS], busy)
            _show_ours(session, pinned, ours)
        _show(session, name, outcome, ours, busy)
        session.send_changes()


def _our_run(kernel: Kernel) -> Run:
    """Return a function that launches a kernel in this process."""
    device = kernel.device
    with unobserved(), without(kernel.rules_off):
        program = build(kernel.ast, device).program
        launch: Run = program.bind(kernel.data.buffers(kernel.original, device))
    return launch


def _show(
    session: LiveRecord, name: str, outcome: _Outcome, ours: TimingRow | None, busy: float | None
) -> None:
    place, timing = add_row(session, name), None
    if outcome.samples is not None:
        samples = outcome.samples[THEIRS]
        kernels = session.record.kernels
        flops, size_bytes = sum(k.flops for k in kernels), sum(k.bytes for k in kernels)
        work = Estimates(round(flops), round(size_bytes))
        run = run_name() if ours is None else ours.run
        timing = timing_row(samples, work, name, run=run, busy=busy)
    error = outcome.error
    session.put(("baselines", place, "timing"), timing)
    session.put(("baselines", place, "error"), error and _in_words(error))


def _our_row(kernel: Kernel, samples: Samples, busy: float | None) -> TimingRow:
    with unobserved(), without(kernel.rules_off):
        threads = build(kernel.ast, kernel.device).source.launch.threads
    return timing_row(
        samples, kernel.estimates, kernel.device, float_kind(kernel.original),
        threads, run=run_name(), busy=busy,
    )  # fmt: skip


def _show_ours(session: LiveRecord, variant: int, row: TimingRow) -> None:
    session.timings[variant, row.device] = row
    if session.kernels[variant].device == row.device:
        measurement.show_timing(session, variant, row)


def _in_words(error: ErrorWords) -> str:
    hint = f"try {error.hint}" if error.hint else ""
    return ": ".join(part for part in (error.what, error.because, hint) if part)
