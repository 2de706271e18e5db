"""Requests that run kernels in the worker process: timing and checking."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from workbench.backends.contract import require_room
from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.base.trace import unobserved
from workbench.base.typed import typed
from workbench.cost.kernel_cost import float_kind
from workbench.ir.node.ops import Ops
from workbench.ir.rewriting.rewrite import added_rules
from workbench.kernel.kernel import Kernel
from workbench.kernel.performance import require_times
from workbench.kernel.run import CheckRun
from workbench.measure.kernel_time import seconds_text
from workbench.measure.timing import Samples
from workbench.viz.schema.messages import NoResult, TimedVariants
from workbench.viz.schema.variant import CheckRow, ErrorWords, TimingRow
from workbench.viz.session.handlers import variants as tuning
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import run_name, spread_text, timing_row
from workbench.worker.benchmark import SETTLED
from workbench.worker.candidate import row_of
from workbench.worker.client import CRASHED, TaskStopped, Worker, WorkerEnded
from workbench.worker.rows import Row
from workbench.worker.sandbox import judged

BUDGET_S = 1.0
"""Seconds for timing one variant."""
MOST_BUDGET_S = 12.0
"""Most seconds for timing variants in turns, besides the last round."""
SAMPLES = 25
"""Most samples of one variant."""
SETTLED_SHARE = SETTLED
"""Timing ends early when the error of each median is at most this share of it."""
HEADLINE = ("plain", "auto")
MOST_BESIDE = 6
"""Most other variants that are timed again beside a new one."""
BESIDE_S = 0.1
"""Most seconds of one run of all these together: a click must not wait for slow ones."""
MOST_MEDIANS = 20
"""Most earlier measurements of a variant whose medians are shown."""
EDITED_S = 5.0
"""Seconds, besides the time of 20 runs of the original, after which edited source counts as
hanging."""


class MeasuredKernel(Struct):
    """The worker's measurement of a kernel: warm and cold samples with the shares of its cores that
    it had, the number of threads, and how many times slower than at rest the machine was (None:
    unknown); or an error. Units: seconds."""

    samples: list[float] = []
    shares: list[float] = []
    cold: list[float] = []
    cold_shares: list[float] = []
    threads: int = 1
    busy: float | None = None
    error: ErrorWords | None = None

    @property
    def warm(self) -> Samples:
        """The warm samples."""
        return Samples(tuple(self.samples), shares=tuple(self.shares))

    @property
    def flushed(self) -> Samples:
        """The samples with cold caches."""
        return Samples(tuple(self.cold), shares=tuple(self.cold_shares))


def measure(session: LiveRecord, variants: list[int], cold: bool | None) -> TimedVariants:
    """Time variants in turns, those of one kernel together, so that the drift of the machine
    cancels. An error of a variant is set at the variant. The budget is that of all of them: beside
    a slow variant the others would get one sample each, which a busy machine disturbs.

    Errors: DeviceError for a machine that is not here, and source edited for one.
    """
    refuse_elsewhere(session)
    variants_to_time = list(dict.fromkeys(variants))
    for variant in variants_to_time:
        refuse_compiled(session, variant)
    for number in dict.fromkeys(session.row(v).kernel for v in variants_to_time):
        group = [v for v in variants_to_time if session.row(v).kernel == number]
        group += [v for v in headline(session, number) if v not in group]
        budget_s = min(len(group) * BUDGET_S, MOST_BUDGET_S)
        group = with_latest(session, group)
        with use_worker(session, group) as worker:
            time_group(session, worker, group, bool(cold), budget_s, SAMPLES)
    return TimedVariants(variants_to_time)


def check(session: LiveRecord, variant: int) -> NoResult:
    """Compare the outputs of a variant with what the expression means.

    Errors: DeviceError for source edited for a machine that is not here; WorkbenchError without
    data.
    """
    refuse_compiled(session, variant)
    with use_worker(session, [variant]) as worker:
        check_variant(session, worker, variant)
    return NoResult()


# with the worker


def check_variant(session: LiveRecord, worker: Worker, variant: int) -> None:
    """Check a variant, and set the outcome. Errors: WorkbenchError if its data are not here."""
    with session.lock:
        kernel, candidate = session.kernels[variant], worker_row(session, variant)
    kernel.require_data("cannot check the answer")
    if Device[candidate["device"]].is_elsewhere:
        require_room(kernel.built(candidate["device"]).program)
    slots = kernel.original.outputs
    with unobserved():
        check = kernel.data.check_run(kernel.original, data_device(kernel))
    key = f"{session.number}-{session.row(variant).kernel}-check"
    task = {
        "do": "check",
        "kernel": candidate,
        "outputs": slots,
        "data": key,
        "silent_s": _first_run_limit_s(session, [variant]),
    }

    def asked(do: str) -> Row:
        worker.hold(key, lambda: [(b, s in slots) for s, b in enumerate(check.buffers)])
        return ask(session, worker, {**task, "do": do}, "check")

    def where() -> str:
        with suppress(WorkbenchError):  # it may crash
            return str(asked("where")["where"])
        return ""

    is_text = candidate["source"] is not None
    try:
        reply = asked("check")
    except WorkerEnded as error:
        place = where() if error.what == CRASHED and is_text else ""
        error.because += f" ({place})" if place else ""
        raise
    outcome = _outcome(check, slots, reply)
    if is_text and reply["is_quick"] and (place := where()):  # also of what is right by chance
        others = "" if outcome.ok else f"; {outcome.text.removeprefix('WRONG: ')}"
        outcome = CheckRow(False, f"WRONG: {place}{others}")
    with session.lock:
        session.checks[variant, candidate["device"]] = outcome
        if is_shown(session, variant, candidate):
            session.set(variant, "check", outcome)


def _outcome(check: CheckRun, slots: Sequence[int], reply: Row) -> CheckRow:
    """Return the verdict on the outputs of the worker's run, or its problem."""
    if reply["problem"]:
        return CheckRow(False, f"WRONG: the program {reply['problem']}")
    outputs = [
        np.frombuffer(blob, check.buffers[slot].dtype.numpy)
        for slot, blob in zip(slots, reply["blobs"], strict=True)
    ]
    with unobserved():
        result = check.verdict(outputs)
    return CheckRow(*judged(bool(result.ok), str(result), reply["reads"]))


def time_group(
    session: LiveRecord,
    worker: Worker,
    variants: Sequence[int],
    cold: bool,
    budget_s: float,
    samples: int,
    also_on: str = "",
) -> None:
    """Set the timings of variants of one kernel, taken in turns, also those on other devices, those
    of the texts that edits were made from, and the first variant's on the device `also_on`.

    Errors: WorkbenchError where the worker ended.
    """
    with session.lock:
        # devices that this worker does not serve, or that are not here, are left out
        first, devices = variants[0], {v: device_of(session, v) for v in variants}
        variants = [
            v for v, device in devices.items()
            if worker.serves(device) and not Device[device].is_elsewhere
        ]  # fmt: skip
        rows = [(v, worker_row(session, v)) for v in variants]
        others = [(v, device) for v in variants for device in other_devices(session, worker, v)]
        others += _unedited_texts(session, variants)
        if also_on not in ("", session.device) and first in variants and worker.serves(also_on):
            others.append((first, also_on))
        for variant, device in dict.fromkeys(others):
            kernel = tuning.on_device(session.kernels[variant], device)
            rows.append((variant, kernel_row(kernel)))
    candidates = [row for _, row in rows]
    if not rows:  # the device changed: nothing is timed there
        return
    timings = times(session, worker, variants[0], candidates, cold, budget_s, samples)
    with session.lock:
        set_timings(session, rows, timings, run_name())
        session.send_changes()


def other_devices(session: LiveRecord, worker: Worker, variant: int) -> list[str]:
    """Return the other devices that a variant was timed on. It is timed there again, in the same
    turns, so that the times can be compared; an emulator's times are not compared."""
    if variant in session.edited or Device[session.device].is_emulator:
        return []
    return [
        device for v, device in session.timings
        if v == variant and device not in (session.device, "")
        and Device.available(device) and worker.serves(device)
        and not Device[device].is_emulator
    ]  # fmt: skip


def _unedited_texts(session: LiveRecord, variants: Sequence[int]) -> list[tuple[int, str]]:
    """Return the variants that edits were made from, each with the device whose compiler makes the
    edit: on the session's device another compiler makes their code, so that times of the two would
    compare the compilers."""
    edits = [v for v in variants if v in session.edited and not session.edited[v].level]
    origins = [(unedited(session, v), device_of(session, v)) for v in edits]
    return [
        (origin, device) for origin, device in origins
        if origin is not None and device != session.device
        and not Device[session.device].is_emulator
    ]  # fmt: skip


def unedited(session: LiveRecord, variant: int) -> int | None:
    """Return a variant, or for edited source the variant that it was first edited from (None: it
    is not here)."""
    place: int | None = variant
    while place in session.edited:
        place = session.row(place).parent
    return place


def times(
    session: LiveRecord,
    worker: Worker,
    variant: int,
    kernels: list[Row],
    cold: bool,
    budget_s: float,
    samples: int,
) -> list[MeasuredKernel]:
    """Return the worker's measurements, taken in turns, of `kernels`: candidates of the kernel of
    `variant`."""
    kernel, number = session.kernels[variant], session.row(variant).kernel
    task = {
        "do": "measure",
        "kernels": kernels,
        "data": data_key(session, worker, kernel, number),
        "cold": cold,
        "budget_s": budget_s,
        "samples": samples,
        "settled": SETTLED_SHARE,
        "silent_s": _first_run_limit_s(session, [variant]),
    }
    return measured(session, worker, task, "measure")


def measured(session: LiveRecord, worker: Worker, task: Row, name: str) -> list[MeasuredKernel]:
    """Return the worker's measurement of each kernel of a task.

    Errors: as `Worker.ask`.
    """
    return typed(ask(session, worker, task, name)["kernels"], list[MeasuredKernel])


def set_timings(
    session: LiveRecord,
    candidates: Sequence[tuple[int, Row]],
    results: Sequence[MeasuredKernel],
    run: str,
) -> None:
    """Set the results of candidates that were measured in a run, each with its variant. Times on
    the session's device are the variant's own, those on other devices are listed beside them."""
    rows_here: dict[int, TimingRow] = {}
    for (variant, candidate), result in zip(candidates, results, strict=True):
        is_here = is_shown(session, variant, candidate)
        if result.error is not None and is_here:
            session.set(variant, "error", result.error)
        if result.samples:
            kernel = session.kernels[variant]
            row = timing_row(
                result.warm, kernel.estimates, candidate["device"],
                float_kind(kernel.original), result.threads, result.flushed, run,
                random_inputs=not kernel.has_data, busy=result.busy,
            )  # fmt: skip
            row = add_timing(session, variant, row)
            if is_here:
                rows_here[variant] = row
    for variant, row in rows_here.items():
        show_timing(session, variant, row)
    for variant in dict.fromkeys(variant for variant, _ in candidates):
        tuning.show_elsewhere(session, variant)


def add_timing(session: LiveRecord, variant: int, row: TimingRow) -> TimingRow:
    """Return the row of a variant's time after it was measured again: the new one, which knows the
    medians before it; or the former one, if that has several undisturbed samples and the new one
    has not: a better time is not lost to a moment in which the machine was busy. The median of an
    uncertain one says nothing of how far later ones differ."""
    before = session.timings.get((variant, row.device))
    if before is not None and not (before.earlier or before.machine):
        is_as_before = row.random_inputs == before.random_inputs
        if is_as_before and not row.is_founded and before.is_founded:
            again = f"timed again: {seconds_text(row.median_s)}, {spread_text(row)}"
            row = replace(before, later=f"{again}, which does not replace several runs")
        else:
            medians = [*before.medians, *([] if before.doubts else [before.median_s])]
            row.medians = [] if row.had else medians[-MOST_MEDIANS:]
    session.timings[variant, row.device] = row
    return row


def is_possible(session: LiveRecord, kernel: Kernel, threads: int, seconds: float) -> bool:
    """Whether this machine can be as fast as a measurement says."""
    speeds, info = session.recorder.speeds, Device[session.device]
    if speeds is None or not info.is_processor:
        return True
    return speeds.is_possible(float_kind(kernel.original), threads, kernel.estimates, seconds)


def show_timing(session: LiveRecord, variant: int, row: TimingRow) -> None:
    """Set the timing of a variant, raise the machine's speeds that it exceeds, and renew the cost
    of a kernel whose launch takes most of its time."""
    session.set(variant, "timing", row)
    session.recorder.runs.show_timing(variant)
    session.recorder.machine.fit_timings(variant)
    cost = session.row(variant).cost
    if cost is not None and cost.launch_s > max(cost.seconds.values()):
        session.recorder.add_cost(variant)


def refuse_elsewhere(session: LiveRecord) -> None:
    """Errors: DeviceError if the session's device is a machine that is not here."""
    require_times(session.device)


def is_shown(session: LiveRecord, variant: int, candidate: Row) -> bool:
    """Whether a measured candidate has the device that its variant runs on now."""
    return bool(candidate["device"] == device_of(session, variant))


def reference(session: LiveRecord, variant: int) -> int:
    """Return the variant that ratios of a variant refer to: the pinned one, or the plain one."""
    pinned, number = session.record.pinned, session.row(variant).kernel
    if pinned is not None and session.row(pinned).kernel == number:
        return pinned
    return session.record.kernels[number].root


def headline(session: LiveRecord, number: int) -> list[int]:
    """Return the timed variants of a kernel whose times stand at the top of the page: they are
    timed in every measurement, so that all these times are of one run. [] on an emulator, whose
    times are not compared."""
    if Device[session.device].is_emulator:
        return []
    return [
        v for v, row in enumerate(session.record.variants)
        if row.kernel == number and row.name in HEADLINE and row.timing
        and not row.deleted
    ]  # fmt: skip


def with_latest(session: LiveRecord, variants: Sequence[int]) -> list[int]:
    """Return variants of a kernel and those that are timed beside them: what stands at the top of
    the page, the pinned one, and the latest ones that are not slow. So what was tried one after
    the other is of one run, and has ratios. Edited source is left out: it may crash."""
    number, pinned = session.row(variants[0]).kernel, session.record.pinned
    group = list(dict.fromkeys([*variants, *headline(session, number)]))
    if Device[session.device].is_emulator:
        return group
    others = [
        (v != pinned, -v, row.timing)
        for v, row in enumerate(session.record.variants)
        if row.kernel == number and row.timing and row.error is None
        and not row.deleted and v not in group and v not in session.edited
    ]  # fmt: skip
    left_s = BESIDE_S
    for _, place, timing in sorted(others, key=lambda other: other[:2])[:MOST_BESIDE]:
        seconds = timing.median_s / (timing.had or 1.0)
        if seconds <= left_s:
            left_s -= seconds
            group.append(-place)
    return group


def use_worker(session: LiveRecord, variants: Sequence[int]) -> AbstractContextManager[Worker]:
    """Yield a worker that may run variants; edited source that can abort gets one of its own."""
    edited = [v for v in variants if v in session.edited]
    device = device_of(session, edited[0]) if edited else session.device
    return session.jobs.use_worker(device, exclusive=bool(edited) and Device[device].can_abort)


def ask(session: LiveRecord, worker: Worker, task: Row, name: str) -> Row:
    """Return the worker's result of a task, and send its progress to the pages.

    Errors: as `Worker.ask`.
    """

    def progress(message: Row) -> None:
        session.status(name, message["done"], message["total"], message["text"])
        if session.jobs.is_stopped():
            worker.stop()

    if session.jobs.is_stopped():
        raise TaskStopped()
    try:
        session.status(name, 0, 1, "starting")
        return worker.ask(task, progress)
    finally:
        session.status(None)


def data_key(session: LiveRecord, worker: Worker, kernel: Kernel, number: int) -> str:
    """Return the key of a kernel's data, after sending them to the worker."""
    key = f"{session.number}-{number}"
    hold(worker, kernel, key)
    return key


def data_bytes(kernels: Sequence[Kernel]) -> int:
    """Return the bytes of the data of kernels together."""
    nodes = (node for kernel in kernels for node in kernel.original.toposort())
    return sum(n.length * n.dtype.itemsize for n in nodes if n.op is Ops.PARAM)


def hold(worker: Worker, kernel: Kernel, key: str) -> None:
    """Send a kernel's data to the worker unless it has them; the kernels that compute them run
    first."""
    device = data_device(kernel)

    def buffers() -> list[tuple[Buffer, bool]]:
        written = kernel.original.outputs
        memory = kernel.data.buffers(kernel.original, device)
        return [(buffer, slot in written) for slot, buffer in enumerate(memory)]

    worker.hold(key, buffers)


def data_device(kernel: Kernel) -> str:
    """Return the device on which a kernel's data are computed: the processor if it is available and
    the kernel's device is the package's own, else the kernel's device."""
    fastest, is_own = Device.processor, Device.is_own(kernel.device)
    return fastest.name if fastest.is_available and is_own else kernel.device


def worker_row(session: LiveRecord, variant: int) -> Row:
    """Return a variant as plain data for the worker.

    Errors: WorkbenchError if rules were registered or removed since its code was shown, and for
    source that another user edited.
    """
    if session.recorder.rules != added_rules():
        because = "rules were registered or removed since it was shown"
        what = "the kernel that would run is not the one that is shown"
        raise WorkbenchError(what, because, "run the cell again")
    edited, candidate = (session.edited.get(variant), kernel_row(session.kernels[variant]))
    if edited is None:
        return candidate
    refuse_foreign(session, variant)
    return candidate | edited.fields


def refuse_emulator(session: LiveRecord, what: str) -> None:
    """Errors: WorkbenchError on an emulator, where `what` says what cannot be done."""
    if Device[session.device].is_emulator:
        raise WorkbenchError(what, "an emulator's times say nothing", "another device")


def refuse_compiled(session: LiveRecord, variant: int) -> None:
    """Errors: DeviceError for source edited for a machine that is not here."""
    edited = session.edited.get(variant)
    if edited is not None and Device[edited.device].is_elsewhere:
        what = f"{session.row(variant).name} was edited for {edited.device}, and is not run"
        because = "that machine is not here, and the emulator has no times"
        raise DeviceError(what, because, "the variant that it was edited from")


def refuse_foreign(session: LiveRecord, variant: int) -> None:
    """Errors: WorkbenchError for source that another user edited."""
    edited = session.edited.get(variant)
    if edited is not None and edited.is_foreign:
        name = session.row(variant).name
        what = f"{name} was edited elsewhere, and does not run here"
        because = "it came with a file, and would run with all that you may do"
        raise WorkbenchError(what, because, 'read it; "edit" and "run" make it yours')


def kernel_row(kernel: Kernel) -> Row:
    """Return a kernel as plain data for the worker."""
    return row_of(kernel.ast, kernel.device, kernel.rules_off)


def device_of(session: LiveRecord, variant: int) -> str:
    """Return the device that a variant runs on."""
    edited = session.edited.get(variant)
    return session.kernels[variant].device if edited is None else edited.device


def _first_run_limit_s(session: LiveRecord, variants: Sequence[int]) -> float | None:
    """Return the limit, in seconds, of the first run of edited source; None for other variants,
    which have the limit of any task. Starting a process and compiling have limits of their own: on
    a busy machine they take longer than many programs run."""
    edited = [session.edited[v] for v in variants if v in session.edited]
    devices = [Device[source.device] for source in edited if source.level]
    if not edited or any(device.is_elsewhere or device.is_emulator for device in devices):
        return None  # an emulator refuses what takes long
    parents = [session.row(v).parent for v in variants if v in session.edited]
    timings = [session.row(p).timing for p in parents if p is not None]
    return EDITED_S + 20 * max((t.median_s for t in timings if t), default=0.0)
