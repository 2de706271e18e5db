"""Repeated runs of the kernels of an exploration, warm, in memory of their own.

A round runs all kernels and copies in their order, producers included, each with the opts that were
chosen for it: those of the variant that was added last, or else the default opts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby, takewhile
from threading import enumerate as threads_alive
from threading import get_ident
from types import MappingProxyType
from typing import Any, NamedTuple

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.base.errors import DTypeError, WorkbenchError, integer_of
from workbench.base.recording import (
    LaunchedKernel,
    RunRecording,
    SpanKind,
    clock_ns,
    error_words,
    stamp_rows,
)
from workbench.base.trace import unobserved
from workbench.execution.memory_plan import MemoryPlan
from workbench.ir.rewriting.rewrite import without
from workbench.ir.schedule.by_hand import stored_by
from workbench.ir.schedule.plan import ScheduleItem
from workbench.kernel.kernel import Kernel
from workbench.kernel.performance import require_times
from workbench.kernel.run import ScheduleRun
from workbench.pipeline import build
from workbench.search.realization import tuned
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.title import value_title
from workbench.viz.model.words import plural
from workbench.viz.run.build import peak, run_record
from workbench.viz.run.facts import facts_of_kernels
from workbench.viz.run.help import Measured, help_rows
from workbench.viz.run.run import Run, machine_words
from workbench.viz.schema.run import RunMemory, RunRecord

MOST_ROUNDS = 100_000
"""Most rounds of a run."""
NOTHING_MEASURED: Measured = MappingProxyType({})
MOST_BLOCKS = 20_000
"""Most blocks of memory that are shown: those of the first rounds."""


class _RoundStep(NamedTuple):
    """A launch of a kernel or a copy, and its item's number in the exploration."""

    launch: Any
    kind: SpanKind
    subject: LaunchedKernel | int
    item: int

    @property
    def device(self) -> str:
        """The device of a kernel; "" for a copy."""
        return self.subject.device if isinstance(self.subject, LaunchedKernel) else ""


class _NativeGroup(NamedTuple):
    """Kernels that run in one native call of a `graph` of their device."""

    steps: Sequence[_RoundStep]
    graph: Any


def repeated(
    ex: ScheduledTensors,
    chosen: Mapping[int, Kernel],
    device: str,
    repeat: int,
    measured: Measured = NOTHING_MEASURED,
    before_round: Callable[[], None] = lambda: None,
) -> Run:
    """Return the run of `repeat` rounds of all kernels on a `device` ("": the exploration's), after
    one that is not recorded. `chosen` has the kernels with opts by hand, by place, `measured` the
    times of their variants. Ctrl-C ends it, and so do a kernel that fails and an error that
    `before_round` raises: the run then has what ran before, and its `record.error`.

    Errors: DTypeError for a `repeat` that is no number of rounds; WorkbenchError if there are no
    kernels because a rule failed; DeviceError for a machine that is not here.
    """
    rounds = rounds_of(repeat, "run", 1)
    if ex.error is not None:
        because = "scheduling failed, so that nothing can run"
        raise WorkbenchError("cannot run this exploration", because, "print(ex), which says where")
    is_own = isinstance(device, str) and not device
    on = ex.device if is_own else Device.canonical(device)
    require_times(on)
    recording = RunRecording()
    kernels = {place: chosen.get(place, kernel) for place, kernel in enumerate(ex.kernels)}
    starts: list[int] = []
    with unobserved():
        steps = _steps(ex, chosen, on)
        grouped = [*_grouped(steps)]
        recording.start_ns = clock_ns()
        try:
            for _ in range(rounds):
                before_round()
                starts.append(clock_ns())
                _round(grouped, recording)
        except (Exception, KeyboardInterrupt) as error:
            recording.error = error_words(error)
            if starts and not _has_kernel_since(recording, starts[-1]):
                del starts[-1]  # it was ended before anything of it was seen
        recording.end_ns = clock_ns()
    recording.thread_names = {each.ident or 0: each.name for each in threads_alive()}
    counts = ex.kernel_counts if is_own else f"{plural(len(ex.kernels), 'kernel')} on {on}"
    title = f"of {ex.kernels[0].title if len(ex.kernels) == 1 else counts}"

    def record() -> RunRecord:
        facts = facts_of_kernels(kernels)
        memory = partial(_memory, ex, steps, recording)
        made = run_record(recording, facts, title, machine_words(), starts, memory)
        kernels_run = [s.subject for s in steps if isinstance(s.subject, LaunchedKernel)]
        made.help = help_rows(made.kernels, {k.place: k for k in kernels_run}, measured)
        return made

    run = Run(make=record)
    with suppress(WorkbenchError):
        _ = run.record  # the exploration may change
    return run


def _has_kernel_since(recording: RunRecording, start_ns: int) -> bool:
    rows = takewhile(lambda row: row[0] >= start_ns, reversed(recording.rows))
    return any(row[3] == "kernel" for row in rows)


def rounds_of(repeat: object, verb: str, least: int) -> int:
    """Return a number of rounds, from `least` on. Errors: DTypeError for another value."""
    rounds = integer_of(repeat)
    if rounds is None or not least <= rounds <= MOST_ROUNDS:
        because = f"it is a number of rounds, from {least} to {MOST_ROUNDS:,}"
        raise DTypeError(f"cannot {verb} with repeat={repeat!r:.40}", because, "repeat=10")
    return rounds


def _round(steps: Sequence[_RoundStep | _NativeGroup], recording: RunRecording) -> None:
    thread, first_ns = get_ident(), clock_ns()
    try:
        for step in steps:
            if isinstance(step, _NativeGroup):
                _run_group(step, recording)
                continue
            start_ns = clock_ns()
            try:
                step.launch()
            except BaseException as error:
                words = error_words(error)
                recording.add((start_ns, clock_ns(), thread, step.kind, step.subject, words))
                raise
            recording.add((start_ns, clock_ns(), thread, step.kind, step.subject, ""))
    finally:
        recording.add((first_ns, clock_ns(), thread, "replay", "a round", ""))


def _run_group(group: _NativeGroup, recording: RunRecording) -> None:
    begin_ns, thread = clock_ns(), get_ident()
    subjects = dict(enumerate(step.subject for step in group.steps))
    for stamps in group.graph.recorded():
        rows = [*stamp_rows(subjects, stamps)]
        start_ns, end_ns = min(row.start_ns for row in rows), max(row.end_ns for row in rows)
        recording.add((begin_ns, start_ns, thread, "recording", None, ""))
        for row in rows:
            recording.add(row)
        begin_ns = clock_ns()
        recording.add((end_ns, begin_ns, thread, "recording", None, ""))


def _grouped(steps: Sequence[_RoundStep]) -> Iterator[_RoundStep | _NativeGroup]:
    """Yield the steps; neighbouring kernels that their device can run in one native call are one
    group, so that no gap between them comes from Python."""
    for device, group in groupby(steps, key=lambda step: step.device):
        own = [*group]
        info = Device[device] if device else None
        graph: Any = None
        if info is not None and not info.queues:
            graph = info.graph([step.launch for step in own])
        if hasattr(graph, "recorded"):
            graph()  # it then knows which kernels are short
            _ = [*graph.recorded()]  # its code is loaded
            yield _NativeGroup(own, graph)
        else:
            yield from own


def _steps(ex: ScheduledTensors, chosen: Mapping[int, Kernel], on: str) -> list[_RoundStep]:
    """Return the steps of a round, after one run of all items."""
    steps: list[_RoundStep] = []
    kernel_place = item_place = 0
    for own in ex.runs:
        run = replace(own, memory={}, counts={})
        device = Device.runner(on or own.device)
        memory = run.upto(len(run.items), device)
        for item in run.items:
            buffers = [run._buffer(b, device, memory, fill=True) for b in item.buffers]
            if item.kernel is None:
                steps.append(_copy(item, buffers, item_place))
            else:
                kernel = chosen.get(kernel_place)
                steps.append(_launch(run, item, buffers, kernel, device, kernel_place, item_place))
                kernel_place += 1
            item_place += 1
    for step in steps:  # warm, also those with opts by hand
        step.launch()
    return steps


def _copy(item: ScheduleItem, buffers: Sequence[Buffer], number: int) -> _RoundStep:
    return _RoundStep(lambda: buffers[0].copy_from(buffers[1]), "copy", buffers[0].nbytes, number)


def _launch(
    run: ScheduleRun,
    item: ScheduleItem,
    buffers: Sequence[Buffer],
    kernel: Kernel | None,
    device: str,
    place: int,
    number: int,
) -> _RoundStep:
    assert item.kernel is not None
    ast = tuned(item.kernel, device) if kernel is None else kernel.ast
    with without(run.rules_off if kernel is None else kernel.rules_off):
        launch = build(ast, device).program.bind(buffers)
    subject = LaunchedKernel(item.kernel, ast, device, place=place)
    return _RoundStep(launch, "kernel", subject, number)


def _memory(
    ex: ScheduledTensors,
    steps: Sequence[_RoundStep],
    recording: RunRecording,
    name: Callable[[str], int],
) -> RunMemory:
    """Return the memory of the plan, each value from the kernel that writes it to its last reader,
    in every round."""
    plan: MemoryPlan = ex.memory_plan
    written = {b: node for node, b in stored_by(ex.items).items()}
    last_item = len(ex.items) - 1
    lives = {b: (first, min(last, last_item)) for b, (first, last) in plan.lives.items()}
    inputs = {b for item in ex.items for b in item.inputs if b not in written}
    before = sum(b.size * b.dtype.itemsize for b in inputs)
    rows = RunMemory(["the plan"], [before], [], [], [], [], [], 0, 0, is_planned=True)
    spans = [row for row in recording.rows if row[3] in ("kernel", "copy")]
    at = {step.item: place for place, step in enumerate(steps)}
    for first in range(0, len(spans), max(1, len(steps))):
        mine = spans[first : first + len(steps)]
        if len(rows.bytes) + len(lives) > MOST_BLOCKS:
            break
        for buffer, (begin, end) in lives.items():
            if at.get(begin, len(mine)) >= len(mine):
                continue
            last = min(at.get(end, len(mine) - 1), len(mine) - 1)
            rows.start_ns.append(max(0, mine[at[begin]][0] - recording.start_ns))
            rows.end_ns.append(max(0, mine[last][1] - recording.start_ns))
            rows.bytes.append(buffer.size * buffer.dtype.itemsize)
            rows.memory.append(0)
            rows.label.append(name(value_title(written[buffer], ex.lines)))
    rows.peak_bytes, rows.peak_ns = peak(rows)
    return rows
