"""Run: what ran, when, on which thread, and why it waited, as a value; and profiles of code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import to_builtins
from msgspec.structs import replace

from workbench.backends.memory import memories
from workbench.backends.native import machine
from workbench.base.errors import WorkbenchError, kind_of, require
from workbench.base.files import PAGE, FileKind, Unpicklable, write_whole
from workbench.base.installation import library, version
from workbench.base.interrupts import DynamicScope
from workbench.base.recording import RunRecording, begin, end, error_words
from workbench.base.terminal import Printed
from workbench.viz.page.document import export_html
from workbench.viz.run.build import run_record
from workbench.viz.run.chrome_trace import trace_text
from workbench.viz.run.difference import RunDifference, difference
from workbench.viz.run.facts import facts_of
from workbench.viz.run.page import RUN_VIEW, page_record
from workbench.viz.run.text import run_text
from workbench.viz.schema.run import RunGaps, RunRecord, RunShare, RunSpans

RUN_FORMAT = "workbench run"
"""The field `format` of a run's file."""
RUN_VERSION = 1
"""The version of files of runs that is read here."""
RUN_FILE = FileKind("saved run", rf'\{{"format": "{RUN_FORMAT}"')
TRACE = FileKind("trace", r'\{"displayTimeUnit":')


class KernelLaunch(NamedTuple):
    """A launch of a kernel: a row of `run.kernels`. Texts are "" where unknown; `ratio` is its time
    by the predicted one."""

    start_s: float
    duration_s: float
    thread: str
    device: str
    kernel: str
    module: str
    line: str
    phase: str
    bytes: float
    flops: float
    predicted_s: float | None
    ratio: float | None


class Gap(NamedTuple):
    """Time of a device's lane without a kernel: a row of `run.gaps`. `cause` is what the thread
    did."""

    start_s: float
    duration_s: float
    lane: str
    cause: str


THROUGHOUT = "in use before, during and after"
"""The name of the memory of a run that it neither took nor released."""


class MemoryBlock(NamedTuple):
    """Memory in use from `start_s` to `end_s` (None: to the end of the run and after): a row of
    `run.memory`. `name` is what wrote it first."""

    start_s: float
    end_s: float | None
    bytes: int
    memory: str
    name: str


class TimeShare(NamedTuple):
    """The time of a part of a run: a row of `run.phases`, `run.by_module()`, `run.by_kind()`."""

    name: str
    seconds: float
    share: float
    times: int


MOST_PRINTED = 40
"""Most rows of a table that are printed."""


class RunTable(Printed, tuple[Any, ...]):
    """Rows of a run, which are named tuples; printed, a line each. `pandas.DataFrame(table)` has
    them as columns."""

    __slots__ = ()

    def to_pandas(self) -> Any:
        """Return the rows as a pandas.DataFrame. Errors: WorkbenchError where pandas is missing."""
        return library("pandas").DataFrame(list(self))

    def __str__(self) -> str:
        if not self:
            return "no rows"
        rows = [self[0]._fields, *[[_cell(value) for value in row] for row in self[:MOST_PRINTED]]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(f"{c:{w}}" for c, w in zip(r, widths, strict=True)).rstrip() for r in rows
        ]
        more = len(self) - MOST_PRINTED
        return "\n".join([*lines, *([f"and {more:,} more"] if more > 0 else [])])


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else f"{value}"


class Run(Unpicklable, Printed):
    """A run of kernels: what ran when, on which thread, the gaps between and their causes, memory
    over time. `record` has all of it as data. It prints as text.

    `ex.run(repeat=10)` makes one, and `with workbench.profile() as run:`, which has its rows when
    the block has ended. Units: seconds since the run began, bytes.
    """

    def __init__(
        self, record: RunRecord | None = None, make: Callable[[], RunRecord] | None = None
    ):
        self._record, self._make = record, make

    @property
    def record(self) -> RunRecord:
        """The run as data: see `viz/schema/run.py`. Errors: WorkbenchError while it runs."""
        if self._record is None:
            if self._make is None:
                because = "the block that it profiles has not ended"
                raise WorkbenchError(
                    "the run has no rows yet", because, "print(run) after the block"
                )
            self._record, self._make = self._make(), None
        return self._record

    @property
    def kernels(self) -> RunTable:
        """The launches of kernels in their order, a KernelLaunch each."""
        record, spans = self.record, self.record.spans
        kind = record.kinds.index("kernel")
        return RunTable(
            self._launch(place) for place in range(len(spans.kind)) if spans.kind[place] == kind
        )

    def _launch(self, place: int) -> KernelLaunch:
        record, spans = self.record, self.record.spans
        kernel, length = record.kernels[spans.subject[place]], spans.length_ns[place]
        predicted = kernel.predicted_ns
        return KernelLaunch(
            spans.start_ns[place] / 1e9, length / 1e9, record.lanes[spans.lane[place]].name,
            kernel.device, kernel.title, kernel.module, kernel.line, kernel.phase, kernel.bytes,
            kernel.flops, predicted and predicted / 1e9, length / predicted if predicted else None,
        )  # fmt: skip

    @property
    def gaps(self) -> RunTable:
        """The time of device lanes without a kernel, a Gap each, cut where the cause changes."""
        gaps, lanes, causes = self.record.gaps, self.record.lanes, self.record.causes
        columns = zip(gaps.start_ns, gaps.length_ns, gaps.lane, gaps.cause, strict=True)
        return RunTable(
            Gap(start / 1e9, length / 1e9, lanes[lane].name, causes[cause])
            for start, length, lane, cause in columns
        )

    @property
    def memory(self) -> RunTable:
        """The blocks of memory that were in use, a MemoryBlock each; of each memory first what was
        in use all the time."""
        rows, names = self.record.memory, self.record.names
        columns = zip(rows.start_ns, rows.end_ns, rows.bytes, rows.memory, rows.label, strict=True)
        held = zip(rows.before_bytes, rows.memories, strict=True)
        whole = [MemoryBlock(0.0, None, size, memory, THROUGHOUT) for size, memory in held if size]
        blocks = [
            MemoryBlock(
                start / 1e9, None if end < 0 else end / 1e9, size, rows.memories[memory],
                names[label] if label >= 0 else "",
            )
            for start, end, size, memory, label in columns
        ]  # fmt: skip
        return RunTable([*whole, *blocks])

    @property
    def phases(self) -> RunTable:
        """Where the time of the launching threads went: kernels, by phase of training, and causes
        of gaps; a TimeShare each."""
        return _shares(self.record.phases)

    def by_module(self) -> RunTable:
        """Return the time in kernels by module, a TimeShare each."""
        return _shares(self.record.modules)

    def by_kind(self) -> RunTable:
        """Return the time in kernels by what they compute, a TimeShare each."""
        return _shares(self.record.by_kind)

    def to_dict(self) -> dict[str, Any]:
        """Return the run as plain data, which JSON can hold."""
        data: dict[str, Any] = to_builtins(self.record)
        return data

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the run as one file, which `workbench.load` opens elsewhere; return its path.

        Errors: WorkbenchError if the file cannot be written.
        """
        return write_whole(path, RUN_FILE, lambda: run_file_text(self.record))

    def to_chrome_trace(self, path: str | os.PathLike[str]) -> Path:
        """Write the run as a trace that ui.perfetto.dev and chrome://tracing open; return its path.

        Errors: WorkbenchError if the file cannot be written.
        """
        return write_whole(path, TRACE, lambda: trace_text(self.record))

    def to_html(self, path: str | os.PathLike[str], *, before: Run | None = None) -> Path:
        """Write the run as one page that opens offline, the pane Run of the workbench; return its
        path. With an earlier run `before`, also of another device, version or machine, it has what
        differs beyond the noise of both, as `self - before` does.

            run.to_html("run.html", before=workbench.load("yesterday.run.json"))

        Errors: WorkbenchError if the file cannot be written, and for a `before` that is no run.
        """
        earlier = [] if before is None else [_run(before)]
        runs = run_rows([*earlier, self])
        return write_whole(path, PAGE, lambda: export_html(page_record(runs), RUN_VIEW))

    @property
    def is_over(self) -> bool:
        """Whether the run has its rows: the block that it profiles has ended."""
        return self._record is not None or self._make is not None

    def __str__(self) -> str:
        if not self.is_over:
            return "a run that has not ended"
        return run_text(self.record)

    def __sub__(self, other: object) -> RunDifference:
        """Return what differs from an earlier run beyond the noise of both: `after - before`. It
        prints a line for each kernel. Errors: WorkbenchError for a value that is no run."""
        return difference(self.record, _run(other).record)


def _run(value: object) -> Run:
    """Return a run to compare with. Errors: WorkbenchError for another value."""
    if isinstance(value, Run):
        return value
    because = f"only two runs are compared, and this is {kind_of(value)}"
    raise WorkbenchError("cannot compare these", because, "after - before, two runs")


def run_rows(runs: Sequence[Run]) -> list[RunRecord]:
    """Return the records of runs as a page has them: of those before the last only the kernels,
    with which it compares the last."""
    records = [run.record for run in runs]
    return [*map(without_timeline, records[:-1]), *records[-1:]]


def without_timeline(run: RunRecord) -> RunRecord:
    """Return a run without its spans, gaps and blocks of memory."""
    spans, gaps = RunSpans([], [], [], [], [], []), RunGaps([], [], [], [])
    memory = replace(run.memory, start_ns=[], end_ns=[], bytes=[], memory=[], label=[])
    return replace(run, spans=spans, gaps=gaps, memory=memory, errors=[], lanes=[], names=[])


def _shares(rows: Iterable[RunShare]) -> RunTable:
    return RunTable(TimeShare(row.name, row.ns / 1e9, row.share, row.count) for row in rows)


def run_file_text(record: RunRecord) -> str:
    """Return the text of the file of a run."""
    head = {"format": RUN_FORMAT, "v": RUN_VERSION, "program": version()}
    return json.dumps({**head, "run": to_builtins(record)}, allow_nan=False) + "\n"


# profiles


class profile(DynamicScope[Run]):
    """The scope of a Run: `with workbench.profile() as run:` around any code.

    The run has what every thread of the process does in the block: kernels (also those of TinyJit's
    replays), copies, schedules, compilations, captures, and memory. An exception or Ctrl-C ends it,
    and what was recorded before stays. A kernel of a replay is timed by itself, so that a profile
    of small kernels takes longer than the code without it. Its rows are made when they are first
    read; the speeds of this machine are then measured, if they never were, in a second. `title`
    says what runs: "of train.py".
    """

    def __init__(self, title: str = "of code") -> None:
        require(title, str, "profile: title", 'profile("of one epoch")')
        self._title = title
        self._recordings: list[RunRecording] = []
        super().__init__(self._block)

    def _block(self) -> Generator[Run, None, None]:
        run, recording = Run(), RunRecording()
        recording.used_bytes = memory_in_use()
        self._recordings.append(recording)
        begin(recording)
        try:
            yield run
        finally:
            end(recording)
            run._make = maker(recording, self._title)

    def __exit__(self, *error: object) -> None:
        recording = self._recordings.pop()
        end(recording)  # before anything else: what follows is no part of the block
        recording.error = error_words(error[1] if isinstance(error[1], BaseException) else None)
        super().__exit__(*error)


def maker(recording: RunRecording, title: str = "of code") -> Callable[[], RunRecord]:
    """Return the function that makes the record of a profile."""
    return lambda: run_record(recording, facts_of(), title, machine_words())


def memory_in_use() -> dict[Any, int]:
    """Return the bytes of each memory of this process that are in use."""
    return {memory: memory.pool.used_bytes for memory in dict.fromkeys(memories.values())}


def machine_words() -> str:
    """Return the processor of this machine, and its cores."""
    return f"{machine.cpu()}, {os.cpu_count() or 1} cores"
