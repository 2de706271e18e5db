"""The search of a model's kernels: the time goes to those where it can save most.

Equal kernels are searched once. The share of a kernel is what all its runs could save: their time
with the default opts less the time that the machine needs at least for their operations and bytes.
What was found for a kernel is tried first for kernels of other sizes. Each result is written when
it is there: whatever ends the search, nothing is lost.

Sections: The result of the search of a model; The share of each kernel; Executors, a pool for each
machine; The search.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.backends.device import Device
from workbench.backends.native.thread_pool import cores
from workbench.base.context import Context
from workbench.base.errors import DeviceError, FileError, WorkbenchError, plural
from workbench.base.files import writable_path
from workbench.base.terminal import Printed
from workbench.base.trace import unobserved
from workbench.base.typed import to_json, typed_json
from workbench.cost.kernel_cost import float_kind
from workbench.ir.nest.estimates import estimate
from workbench.ir.node.uop import UOp
from workbench.ir.text.printer import to_text
from workbench.kernel.inputs import Seeded, written
from workbench.kernel.kernel import Kernel
from workbench.measure.kernel_time import seconds_text
from workbench.measure.speeds import speeds
from workbench.measure.timing import measure
from workbench.search.kernel_task import INTERRUPTED, KernelOutcome, KernelTask, done, task_text
from workbench.search.search import checked
from workbench.search.tuning import default_path
from workbench.search.tuning_file import (
    TUNING_FILE,
    TuningFile,
    TuningRow,
    kernel_hash,
    machine_of,
    structure_hash,
)
from workbench.worker.client import Worker
from workbench.worker.workers import worker_for

# --------------------------------------------------------------------------------------------------
# The result of the search of a model.

Report = Callable[["KernelResult"], None]


@dataclass(frozen=True, slots=True)
class ModelKernel:
    """A kernel without opts of a model, on a device; how often it runs, and what it computes."""

    kernel: UOp
    device: str
    runs: int = 1
    title: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class KernelResult(Printed):
    """What the search of one kernel on one machine came to: the `row` for a tuning file, or None
    and a `note` that says why. Units: `seconds` of searching; `default_us` microseconds of a run
    with the default opts (None: not measured)."""

    kernel: ModelKernel
    machine: str
    seconds: float = 0.0
    tried: int = 0
    row: TuningRow | None = None
    note: str = ""
    default_us: float | None = None

    @property
    def default_s(self) -> float:
        """The seconds of all runs of the kernel with the default opts; 0 if not measured."""
        return self.kernel.runs * (self.default_us or 0.0) * 1e-6

    @property
    def found_s(self) -> float:
        """The seconds of all runs of the kernel as the tuning file has it."""
        return self.default_s if self.row is None else self.default_s / self.row.speedup

    def __str__(self) -> str:
        name = f"{self.kernel.kernel.arg.name} {self.kernel.title}".strip()
        head = f"{name} x{self.kernel.runs}: "
        if self.row is None:
            time = "" if self.default_us is None else f"{seconds_text(self.default_us * 1e-6)}, "
            return f"{head}{time}{self.note}"
        times = (seconds_text(us * 1e-6) for us in (self.row.default_us, self.row.time_us))
        faster = f"{self.row.speedup:.3g} times as fast"
        return f"{head}{' -> '.join(times)}, {faster}: {self.row.opts or 'no opts'}"


@dataclass(frozen=True, slots=True, repr=False)
class ModelSearch(Printed):
    """The result of the search of a model: `kernels`, those that take longest first, and the `path`
    of the tuning file that has what was found. `ended` says why the search ended. Units: `seconds`
    of the whole search."""

    kernels: tuple[KernelResult, ...]
    path: Path
    seconds: float
    ended: str

    @property
    def file(self) -> TuningFile:
        """What this search has found, as a tuning file."""
        return TuningFile.of(result.row for result in self.kernels if result.row is not None)

    def __str__(self) -> str:
        rows = [result for result in self.kernels if result.row is not None]
        sums = sum(r.default_s for r in self.kernels), sum(r.found_s for r in self.kernels)
        times = " -> ".join(map(seconds_text, sums))
        head = (
            f"{len(rows)} of {plural(len(self.kernels), 'kernel')} faster, the sum of all runs"
            f" {times}; {self.seconds:.3g} s, {self.ended}"
        )
        file = f"tuning file {self.path}" if rows else "no tuning file was written"
        return "\n".join([head, file, *(f"  {result}" for result in self.kernels)])


# --------------------------------------------------------------------------------------------------
# The share of each kernel.

LEAST_S = 1.0
"""Least seconds of the search of a kernel, but half of a smaller budget are enough."""
MOST_S = 20.0
"""Seconds that the search of a kernel may always take: a lost process loses no more."""
MOST_SHARE = 0.25
"""Share of a longer budget that the search of one kernel may take."""
LEAST_SHARE = 0.001
"""A kernel that may save less than this share of all is not searched, even if there is time."""
OVER = "the time was over"
RANKING_SHARE = 0.1
"""Share of the budget for timing the default opts; later kernels' times are predicted."""
ROOF_SHARE = 0.05
"""Share of its time that a kernel at the roof counts for: the roof may be too low."""
RANKING = (0.05, 5)
"""Seconds and samples of timing the default opts of a kernel."""
UNKNOWN_S = 1e-6
"""Seconds of a run of a kernel whose time cannot be known here, but maybe on another machine."""


@dataclass(slots=True)
class _Entry:
    """A kernel to search; the seconds of a run with the default opts, and those that all its runs
    may save at most. `seconds` are those of its search."""

    kernel: ModelKernel
    default_s: float
    saving_s: float
    structure: str
    failures: int = 0
    seconds: float = 0.0


def _entries(kernels: Iterable[ModelKernel], budget_s: float) -> list[_Entry]:
    """Return the kernels with what each may save, the greatest first; what is below LEAST_SHARE
    counts as nothing."""
    ends_at = time.monotonic() + RANKING_SHARE * budget_s
    entries = []
    for each in kernels:
        seconds = _default_seconds(each, time.monotonic() < ends_at)
        saving_s = max(seconds - _roof_seconds(each), ROOF_SHARE * seconds)
        structure = structure_hash(each.kernel)
        entries.append(_Entry(each, seconds, each.runs * saving_s, structure))
    least_s = LEAST_SHARE * sum(entry.saving_s for entry in entries)
    for entry in entries:
        entry.saving_s = entry.saving_s if entry.saving_s >= least_s else 0.0
    return sorted(entries, key=lambda entry: -entry.saving_s)


def _default_seconds(each: ModelKernel, is_measured: bool) -> float:
    """Return the seconds of a run with the default opts, measured or predicted; UNKNOWN_S if they
    cannot be known here."""
    shapes = tuple((param.length,) for param in written(each.kernel))
    try:
        with unobserved(), Context(DEV=each.device, BEAM=0):
            plain = Kernel(each.kernel, each.kernel, Seeded(), shapes)
            default = plain.optimized()
            if is_measured:
                return measure(default.launch(), *RANKING).median_s
            return default.cost.predicted_s
    except WorkbenchError:
        return UNKNOWN_S


def _roof_seconds(each: ModelKernel) -> float:
    """Return the seconds that a kernel needs at least, by its operations and bytes, with all bytes
    from the smallest cache that holds them; 0 for a device whose speeds are not measured."""
    info = Device[each.device].source_device
    if not info.is_processor:
        return 0.0
    try:
        machine = speeds()
    except WorkbenchError:
        return 0.0
    work = estimate(each.kernel)
    levels = [name for name, size in info.target.caches if work.bytes <= size]
    read = next((machine.read[n] for n in levels if n in machine.read), machine.read["memory"])
    kind = float_kind(each.kernel)
    operations_s = work.flops / machine.peak[kind].of(cores()) if kind else 0.0
    return max(operations_s, work.bytes / read.of(cores()))


# --------------------------------------------------------------------------------------------------
# Executors, a pool for each machine.

TRIES = 3
"""How often a task is given to an executor, which may lose the process that does it."""
WAIT_S = 1.0
"""Seconds after which tasks that are late are looked for."""
LATE_S = 60.0
"""Seconds that a task may take beside its search: to start a process, to compile, to compare."""
MOST_STARTS = 3
"""Most lists of opts of other sizes that are tried first."""


class _Here(Executor):
    """Does tasks at once, in this process with one worker process for all."""

    def __init__(self, worker: Worker):
        self._worker = worker

    def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        """Return the future of an outcome, which is there."""
        future: Future[Any] = Future()
        future.set_result(to_json(done(typed_json(args[0], KernelTask), self._worker)))
        return future


@dataclass(slots=True)
class _Pool:
    """The workers of one machine, the kernels that are left for them, and the tasks under way, each
    with the time by which its answer is awaited. `machine` is "" if the executor does not say."""

    machine: str
    executor: Executor
    workers: int
    queue: list[_Entry]
    active: dict[Future[str], tuple[_Entry, float]] = field(default_factory=dict)

    def next_seconds(self, left_s: float, least_s: float, most_s: float) -> float:
        """Return the seconds for the next kernel of the queue: its share of what is left, at least
        `least_s` and at most `most_s`; 0 if there is nothing to save, or not enough time."""
        saving_s = self.queue[0].saving_s
        if not saving_s or left_s < least_s:
            return 0.0
        busy_s = sum(entry.seconds for entry, _ in self.active.values())
        free_s = max(0.0, left_s * self.workers - busy_s)
        share = saving_s / sum(entry.saving_s for entry in self.queue)
        return min(left_s, max(least_s, min(most_s, free_s * share)))

    def submit(self, entry: _Entry, task: str, seconds: float) -> None:
        entry.seconds = seconds
        try:
            future = self.executor.submit(task_text, task)
        except Exception as error:  # any error of a user's executor, such as that it was shut down
            future = Future()
            future.set_exception(error)
        self.active[future] = entry, time.monotonic() + 2 * seconds + LATE_S


@contextmanager
def _pools(
    executor: Any, entries: Sequence[_Entry], devices: Sequence[str]
) -> Iterator[list[_Pool]]:
    """Yield the pools of an executor: of Dask's client one for each kind of machine."""
    with ExitStack() as stack:
        if executor is None:
            worker = worker_for(devices[0], nice=0)
            stack.callback(worker.close)
            yield [_Pool(machine_of(devices[0]), _Here(worker), 1, [*entries])]
        elif hasattr(executor, "get_executor"):
            hosts: dict[str, list[str]] = {}
            for address, machine in executor.run(machine_of, devices[0]).items():
                hosts.setdefault(machine, []).append(address.rpartition(":")[0].split("//")[-1])
            yield [
                _Pool(
                    machine,
                    stack.enter_context(executor.get_executor(**_only(hosts, names))),
                    len(names),
                    [replace(entry) for entry in entries],
                )
                for machine, names in hosts.items()
            ]
        else:
            workers = getattr(executor, "_max_workers", None) or 1
            yield [_Pool("", executor, workers, [*entries])]


def _only(hosts: Mapping[str, Sequence[str]], names: Sequence[str]) -> dict[str, Any]:
    """Return the options of Dask for tasks on some hosts only. One kind of machine needs none."""
    return {"pure": False} | ({"workers": sorted(set(names))} if len(hosts) > 1 else {})


# --------------------------------------------------------------------------------------------------
# The search.


def search_model(
    kernels: Iterable[ModelKernel],
    budget_s: float = 60.0,
    width: int = 2,
    path: str | os.PathLike[str] | None = None,
    executor: Any = None,
    report: Report = lambda result: None,
) -> ModelSearch:
    """Return the result of a search of kernels for `budget_s` seconds, and write what it finds to
    the tuning file `path` (None: the one in force), beside what that has. Timing the default opts
    and reaching an executor come before these seconds. `executor` is None for
    this process, one of `concurrent.futures`, or Dask's client. `report` is called with the result
    of each kernel. Ctrl-C ends the search; what was found is in the file.

    Errors: DeviceError for a device without times, and for an `executor` that is none; FileError
    for a file that is no tuning file; DTypeError as `Kernel.search`.
    """
    budget_s = checked(width, budget_s, executor)[1]
    state = _ModelSearching(
        Path(path) if path is not None else default_path(), width, budget_s, report
    )
    began = time.monotonic()
    merged = _merged(kernels)
    searchable = [each for each in merged if not state.refused(each)]
    ended = "complete"
    if searchable:
        try:
            entries = _entries(searchable, budget_s)
            devices = [each.device for each in searchable]
            with _pools(executor, entries, devices) as pools:
                state.run(pools, time.monotonic() + budget_s)
            ended = OVER if state.is_over else ended
        except KeyboardInterrupt:
            ended = INTERRUPTED
    results = sorted(state.results, key=lambda result: -result.default_s)
    return ModelSearch(tuple(results), state.path, time.monotonic() - began, ended)


def _merged(kernels: Iterable[ModelKernel]) -> list[ModelKernel]:
    """Return equal kernels as one, with the sum of their runs. Errors: DeviceError."""
    merged: dict[tuple[UOp, str], ModelKernel] = {}
    for each in kernels:
        info = Device[each.device]
        if info.is_elsewhere or info.is_emulator:
            because = f"{each.device} has no times of its own: they are predicted, or an emulator's"
            raise DeviceError("cannot search this model", because, "kernel.search(), a kernel")
        key = each.kernel, each.device
        known = merged.get(key)
        merged[key] = each if known is None else replace(known, runs=known.runs + each.runs)
    return list(merged.values())


class _ModelSearching:
    """A search under way: its file, and the results so far."""

    def __init__(self, path: Path, width: int, budget_s: float, report: Report):
        self.path, self.results = path, list[KernelResult]()
        self.is_over = False
        """Whether kernels were left for lack of time."""
        self._least_s = min(LEAST_S, budget_s / 2)
        self._most_s = max(MOST_S, MOST_SHARE * budget_s)
        self._width, self._report = width, report
        self._file = _writable(path)

    def refused(self, each: ModelKernel) -> bool:
        """Whether a kernel has no opts to search; then that is its result."""
        note = ""
        if each.kernel.code is not None:
            note = f"it is written in {each.kernel.code.language}, and has no opts"
        elif each.kernel.arg.opts is not None:
            note = "its opts are in the code"
        if note:
            self._add(KernelResult(each, machine_of(each.device), note=note))
        return bool(note)

    def run(self, pools: Sequence[_Pool], ends_at: float) -> None:
        """Search the kernels of all pools."""
        try:
            while True:
                for pool in pools:
                    self._fill(pool, ends_at)
                active = [future for pool in pools for future in pool.active]
                if not active:
                    return
                wait(active, timeout=WAIT_S, return_when=FIRST_COMPLETED)
                for pool in pools:
                    self._collect(pool)
        finally:
            for pool in pools:
                for future in pool.active:
                    future.cancel()

    def _fill(self, pool: _Pool, ends_at: float) -> None:
        """Give tasks to the free workers of a pool."""
        while pool.queue and len(pool.active) < pool.workers:
            left_s = ends_at - time.monotonic()
            seconds = pool.next_seconds(left_s, self._least_s, self._most_s)
            entry = pool.queue.pop(0)
            each = entry.kernel
            if not seconds:
                why = OVER if entry.saving_s else "its runs could save too little"
                default_us = entry.default_s * 1e6
                note = f"not searched: {why}"
                self.is_over |= bool(entry.saving_s)
                self._add(KernelResult(each, pool.machine, note=note, default_us=default_us))
                continue
            starts = self._starts(entry)
            task = KernelTask(to_text(each.kernel), each.device, seconds, self._width, starts)
            pool.submit(entry, to_json(task), seconds)

    def _starts(self, entry: _Entry) -> dict[str, str]:
        """Return lists of opts to try first: of the kernel itself, then of those of the same
        structure and another size, the fastest first."""
        own = kernel_hash(entry.kernel.kernel)
        rows = [row for row in self._file.rows.values() if row.structure == entry.structure]
        rows.sort(key=lambda row: (row.hash != own, -row.speedup))
        lists = {row.opts: f"the opts of {row.kernel}" for row in reversed(rows)}
        return {name: opts for opts, name in [*lists.items()][-MOST_STARTS:]}

    def _collect(self, pool: _Pool) -> None:
        """Note the answers that are there; tasks whose executor failed go back to the queue."""
        for future, (entry, late) in list(pool.active.items()):
            if not future.done():
                if time.monotonic() > late:
                    del pool.active[future]
                    future.cancel()
                    self._fail(pool, entry, "no answer came from the executor")
                continue
            del pool.active[future]
            try:
                outcome = typed_json(future.result(), KernelOutcome)
            except (Exception, CancelledError) as error:  # any error of a user's executor
                name = f"{type(error).__name__}: {error}"
                self._fail(pool, entry, f"the executor failed: {name:.200}")
                continue
            self._note(entry, outcome)

    def _fail(self, pool: _Pool, entry: _Entry, note: str) -> None:
        entry.failures += 1
        if entry.failures < TRIES:
            pool.queue.insert(0, entry)
        else:
            self._add(KernelResult(entry.kernel, pool.machine, note=note))

    def _note(self, entry: _Entry, outcome: KernelOutcome) -> None:
        if outcome.row is not None:
            self._file = _writable(self.path).merged(self._file, TuningFile.of([outcome.row]))
            self._file.write(self.path)
        self._add(
            KernelResult(
                entry.kernel, outcome.machine, entry.seconds, outcome.tried, outcome.row,
                outcome.note, outcome.default_us,
            )
        )  # fmt: skip
        if outcome.ended == INTERRUPTED:
            raise KeyboardInterrupt

    def _add(self, result: KernelResult) -> None:
        self.results.append(result)
        self._report(result)


def _writable(path: Path) -> TuningFile:
    """Return the tuning file at a path, where rows will be added; an empty one if there is none.
    Errors: FileError for a file with lines that are no rows, which would be lost."""
    if not writable_path(path, TUNING_FILE).exists():
        return TuningFile({})
    file = TuningFile.read(path)
    if file.refused:
        because = f"it has lines that are no rows of one: {file.complaint}"
        raise FileError(f"cannot write a tuning file to {path}", because, "another path")
    return file
