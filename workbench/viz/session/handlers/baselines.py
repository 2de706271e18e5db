"""Baselines: functions of the user, timed in the user's own process.

Baselines run in a thread of their own, in turns with the pinned variant, if there is one, and with
others on request, so that all see the same machine. One holds the GIL unless it releases it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread
from typing import TypeVar

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError, plural
from workbench.base.trace import unobserved
from workbench.cost.kernel_cost import float_kind
from workbench.ir.nest.estimates import Estimates
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.kernel import Kernel
from workbench.kernel.run import computing
from workbench.measure.kernel_time import calibration
from workbench.measure.timing import Samples, interleave
from workbench.models.baselines import FrameworkRun
from workbench.pipeline import build
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.record.variants import error_row
from workbench.viz.schema.messages import NoResult
from workbench.viz.schema.record import BaselineRow, ModuleTime
from workbench.viz.schema.variant import ErrorWords, TimingRow
from workbench.viz.session.handlers import measurement
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import run_name, timing_row
from workbench.worker.client import TaskStopped

BUDGET_S = 0.4
"""Seconds for timing one baseline or variant."""
SAMPLES = 15
"""Most samples of each."""
LIMIT_S = 30.0
"""Seconds after which a baseline that has not returned is given up."""
Run = Callable[[], object]
T = TypeVar("T")


def by_name(session: LiveRecord) -> dict[str, Run]:
    """Return the user's baselines, by name."""
    return dict(session.recorder.exploration.display.baselines)


def measure_all(session: LiveRecord, variants: list[int] | None = None) -> NoResult:
    """Time every baseline, the pinned variant and `variants` in turns, in this process; edited
    source, which may end it, is left out.

    Errors: WorkbenchError without a baseline, and on an emulator, whose times are not compared;
    DeviceError for a machine that is not here; TaskStopped.
    """
    if not by_name(session):
        hint = session.record.recipes.baseline
        because = "you choose what to compare with, and no function was added"
        raise WorkbenchError("there is no baseline to time", because, hint)
    measurement.refuse_elsewhere(session)
    if Device[session.device].is_emulator:
        because = "an emulator's times cannot be compared with others"
        raise WorkbenchError("baselines are not timed here", because, "another device")
    with session.lock:  # the pin and the device may change while they run
        places = dict.fromkeys((session.record.pinned, *(variants or ())))
        kernels = {
            v: session.kernels[v] for v in places if v is not None and v not in session.edited
        }
    try:
        with session.jobs.use_worker(session.device):  # no other measurement runs meanwhile
            _measure(session, kernels)
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


def _measure(session: LiveRecord, kernels: Mapping[int, Kernel]) -> None:
    """Time the baselines that return a result in turns with kernels, and show the errors of the
    others. Errors: TaskStopped."""
    theirs = _baselines_that_run(session)
    if not theirs:
        return
    session.status("baseline", 0, 1, ", ".join(theirs))
    runs = {f"baseline {name}": run for name, run in theirs.items()}
    runs |= {f"variant {place}": _our_run(kernel) for place, kernel in kernels.items()}
    rest = session.recorder.speeds
    beside = calibration(rest, 1) if rest else None
    before = beside.take if beside else lambda: None
    times = _in_time(
        lambda: interleave(runs, BUDGET_S * len(runs), SAMPLES, before=before), "timing in turns"
    )
    busy, turns = beside.busy if beside else None, run_name()
    with session.lock:
        for name in theirs:
            if isinstance(times, ErrorWords):
                _show(session, name, None, times)
            else:
                row = _their_row(session, name, times[f"baseline {name}"], busy, turns)
                _show(session, name, row, None)
        for place, kernel in kernels.items():
            if not isinstance(times, ErrorWords):
                samples = times[f"variant {place}"]
                _show_ours(session, place, _our_row(kernel, samples, busy, turns))
        session.send_changes()
    _measure_modules(session, theirs)


def _baselines_that_run(session: LiveRecord) -> dict[str, Run]:
    """Return the baselines that return a result, after a run of each; show the errors of the
    others. Beside a model of a framework stand all kernels of the plan, if there are several.

    Errors: TaskStopped.
    """
    own = by_name(session)
    ex = session.recorder.exploration
    if len(ex.kernels) > 1 and any(isinstance(run, FrameworkRun) for run in own.values()):
        name = f"all {plural(len(ex.kernels), 'kernel')} here"
        session.put(("baselines", add_row(session, name), "is_ours"), True)
        own[name] = _RunOfAll(ex, session.device)
    theirs: dict[str, Run] = {}
    for name, run in own.items():
        if session.jobs.is_stopped():
            raise TaskStopped()
        session.status("baseline", 0, 1, name)
        limit_s = run.limit_s if isinstance(run, FrameworkRun) else LIMIT_S
        error = _in_time(computing(name, run), name, limit_s)
        if isinstance(error, ErrorWords):
            _show(session, name, None, error)
        else:
            theirs[name] = run
        if isinstance(run, FrameworkRun):
            session.put(("baselines", add_row(session, name), "about"), run.about)
    return theirs


class _RunOfAll:
    """A run of all kernels of an exploration with the default opts, one after another."""

    def __init__(self, ex: Exploration, device: str):
        self._ex, self._device = ex, device
        self._launches: list[Run] = []

    def __call__(self) -> None:
        if not self._launches:
            with unobserved():
                self._launches = [go for run in self._ex.runs for go in run.launches(self._device)]
        for launch in self._launches:
            launch()


def _measure_modules(session: LiveRecord, theirs: Mapping[str, Run]) -> None:
    """Show the times of the modules of baselines that were timed. Errors: TaskStopped."""
    for name, run in theirs.items():
        place = add_row(session, name)
        row = session.record.baselines[place]
        if not isinstance(run, FrameworkRun) or row.timing is None:
            continue
        if session.jobs.is_stopped():
            raise TaskStopped()
        session.status("baseline", 0, 1, f"modules of {name}")
        times = _in_time(run.module_times, f"modules of {name}")
        if not isinstance(times, ErrorWords):  # the whole model has a time, and says how it runs
            modules = [ModuleTime(path, seconds) for path, seconds in times.items() if path]
            session.put(("baselines", place, "modules"), modules)


def _in_time(do: Callable[[], T], what: str, limit_s: float | None = None) -> T | ErrorWords:
    """Return what a function returns, or its error; it runs in a thread of its own, and is given up
    after `limit_s` (None: LIMIT_S)."""
    limit_s = LIMIT_S if limit_s is None else limit_s
    results: list[T | ErrorWords] = []

    def work() -> None:
        try:
            results.append(do())
        except Exception as error:
            results.append(error_row(error))

    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(limit_s)
    late = WorkbenchError(f"{what} did not return", f"in {limit_s:g} s")
    return next(iter(results), error_row(late))


def _our_run(kernel: Kernel) -> Run:
    """Return a function that launches a kernel in this process."""
    device = kernel.device
    with unobserved(), without(kernel.rules_off):
        program = build(kernel.ast, device).program
        launch: Run = program.bind(kernel.data.buffers(kernel.original, device))
    return launch


def _show(
    session: LiveRecord, name: str, timing: TimingRow | None, error: ErrorWords | None
) -> None:
    place = add_row(session, name)
    session.put(("baselines", place, "timing"), timing)
    session.put(("baselines", place, "error"), error and _in_words(error))


def _their_row(
    session: LiveRecord, name: str, samples: Samples, busy: float | None, run: str
) -> TimingRow:
    kernels = session.record.kernels
    flops, size_bytes = sum(k.flops for k in kernels), sum(k.bytes for k in kernels)
    return timing_row(samples, Estimates(round(flops), round(size_bytes)), name, run=run, busy=busy)


def _our_row(kernel: Kernel, samples: Samples, busy: float | None, run: str) -> TimingRow:
    with unobserved(), without(kernel.rules_off):
        threads = build(kernel.ast, kernel.device).source.launch.threads
    return timing_row(
        samples, kernel.estimates, kernel.device, float_kind(kernel.original),
        threads, run=run, busy=busy,
    )  # fmt: skip


def _show_ours(session: LiveRecord, variant: int, row: TimingRow) -> None:
    row = measurement.add_timing(session, variant, row)
    if session.kernels[variant].device == row.device:
        measurement.show_timing(session, variant, row)


def _in_words(error: ErrorWords) -> str:
    hint = f"try {error.hint}" if error.hint else ""
    return ": ".join(part for part in (error.what, error.because, hint) if part)
