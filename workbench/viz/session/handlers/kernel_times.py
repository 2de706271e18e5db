"""Times of all kernels with the default opts; equal kernels are timed once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.measure.timing import Samples
from workbench.viz.schema.messages import NoResult
from workbench.viz.session.handlers import measurement
from workbench.viz.session.live_record import LiveRecord
from workbench.worker.client import TaskStopped, Worker

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
    if Device[session.device].is_emulator:
        what, because = ("these kernels cannot be timed", "an emulator's times say nothing")
        raise WorkbenchError(what, because, "another device")
    for _ in measured(session):
        if session.jobs.is_stopped():
            raise TaskStopped()
    return NoResult()


def measured(session: LiveRecord, flops: float = float("inf")) -> Iterator[None]:
    """Time the kernels of at most `flops` operations that have no time yet, a group per step.

    Errors: WorkbenchError if no kernel of a group runs.
    """
    places = untimed(session, flops)
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
                samples = Samples(tuple(row.samples))
                median_s = samples.median_s
                mine.runs.set_time(number, median_s, samples.spread_s / median_s)
        session.send_changes()
    errors = [row.error for row in rows if row.error is not None]
    if len(errors) == len(rows):
        raise WorkbenchError(errors[0].what, errors[0].because, errors[0].hint)
