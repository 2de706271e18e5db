"""The record of a run, of what was recorded: its rows sorted into lanes, gaps named, times added.

Sections: The record of a run; Lanes and spans; Kernels of a run; Memory of a run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Any, get_args

from workbench.base.errors import plural
from workbench.base.recording import LaunchedKernel, RunRecording, Span, SpanKind
from workbench.measure.kernel_time import seconds_text
from workbench.viz.run.intervals import Interval, cut, depths, gaps, innermost
from workbench.viz.schema.run import (
    GapCause,
    RunError,
    RunGaps,
    RunKernel,
    RunLane,
    RunMemory,
    RunRecord,
    RunShare,
    RunSpans,
)

# --------------------------------------------------------------------------------------------------
# The record of a run.

KINDS: tuple[SpanKind, ...] = get_args(SpanKind)
CAUSES: tuple[GapCause, ...] = get_args(GapCause)
RECORDING: GapCause = "recording"
LEAST_RECORDING = 0.01
"""Share of a run from which on it is said what the recording itself took."""
_CAUSE_OF: Mapping[str, GapCause] = {
    "realize": "launch", "replay": "launch", "schedule": "schedule", "compile": "compile",
    "search": "search", "capture": "capture", "copy": "copy", "memory": "memory",
    "wait": "waiting", "recording": "recording",
}  # fmt: skip
"""The cause of a gap in which a span of this kind is the innermost."""
LEAST_NS = 1000.0
"""Least time, measured or predicted, whose ratio says something: shorter ones are the call's."""
_OF_KERNELS = ("kernel", "part")
KernelFacts = Callable[[LaunchedKernel], RunKernel]
"""Returns the row of a kernel without its times."""
PlannedMemory = Callable[[Callable[[str], int]], RunMemory]
"""Returns the memory of a plan; its argument returns the place of a name in the record."""


def run_record(
    recording: RunRecording,
    facts: KernelFacts,
    title: str,
    machine: str,
    rounds: Sequence[int] = (),
    memory: PlannedMemory | None = None,
) -> RunRecord:
    """Return the record of what was recorded. `facts` describes its kernels; `rounds` are the
    starts of repetitions on the clock of the recording; `memory` makes that of a plan, if it was
    not recorded. What is strange (a clock that jumped, rows that were not stored) is noticed."""
    builder = _Builder(recording, facts)
    builder.add_spans()
    builder.add_gaps()
    own = memory_of_recording(recording, builder) if memory is None else memory(builder.name)
    kernels = builder.timed_kernels()
    return RunRecord(
        title=title,
        machine=machine,
        length_ns=builder.length_ns,
        rounds=[max(0, start - recording.start_ns) for start in rounds],
        kinds=[*KINDS],
        causes=[*CAUSES],
        names=[*builder.names],
        kernels=kernels,
        lanes=builder.lanes,
        spans=builder.spans,
        gaps=builder.gaps,
        memory=own,
        phases=_phases(builder, kernels),
        modules=_shares(kernels, lambda kernel: kernel.module),
        by_kind=_shares(kernels, lambda kernel: kernel.kind),
        help=[],
        errors=builder.errors,
        error=recording.error,
        notices=builder.notices(),
    )


@dataclass
class _Builder:
    """The parts of a record while it is made. Times are since the start of the recording."""

    recording: RunRecording
    facts: KernelFacts
    spans: RunSpans = field(default_factory=lambda: RunSpans([], [], [], [], [], []))
    gaps: RunGaps = field(default_factory=lambda: RunGaps([], [], [], []))
    lanes: list[RunLane] = field(default_factory=list)
    errors: list[RunError] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    kernels: list[RunKernel] = field(default_factory=list)
    launched: list[LaunchedKernel] = field(default_factory=list)
    """The launches of the spans of kernels: by place in `kernel_spans`."""
    kernel_spans: list[tuple[int, int, int]] = field(default_factory=list)
    """Start, end and kernel of each launch, in order."""

    def __post_init__(self) -> None:
        start = self.recording.start_ns
        self.backward = 0
        self.overlapping = 0
        rows = []
        end = self.recording.end_ns
        for row in self.recording.rows:
            each = Span(*row)
            if each.end_ns < each.start_ns or each.start_ns < start:
                self.backward += 1
                first = max(each.start_ns, start)
                each = each._replace(start_ns=first, end_ns=max(first, each.end_ns))
            rows.append(each)
            end = max(end, each.end_ns)
        rows.sort(key=lambda each: (each.start_ns, -each.end_ns))
        self.rows: list[Span] = rows
        self.length_ns = max(0, end - start)
        self._places: dict[Any, int] = {}
        self._lane_places: dict[tuple[str, str, int], int] = {}
        self._threads: dict[int, int] = {}

    # lanes and spans

    def add_spans(self) -> None:
        """Add the columns of the spans, with their lanes."""
        start = self.recording.start_ns
        by_lane: dict[int, list[Interval]] = defaultdict(list)
        columns = self.spans
        for place, row in enumerate(self.rows):
            lane = self._lane(row)
            interval = Interval(row.start_ns - start, row.end_ns - start, place)
            by_lane[lane].append(interval)
            columns.start_ns.append(interval.start)
            columns.length_ns.append(interval.end - interval.start)
            columns.lane.append(lane)
            columns.depth.append(0)
            columns.kind.append(KINDS.index(row.kind))
            columns.subject.append(self._subject(row))
            if row.kind == "kernel":
                self.launched.append(row.subject)
                self.kernel_spans.append((interval.start, interval.end, columns.subject[-1]))
            if row.error:
                self.errors.append(RunError(place, row.error))
        for lane, intervals in by_lane.items():
            if self.lanes[lane].kind == "python":
                for interval, depth in zip(intervals, depths(intervals), strict=True):
                    columns.depth[interval.value] = depth
            else:
                pairs = zip(intervals, intervals[1:], strict=False)
                self.overlapping += sum(later.start < each.end for each, later in pairs)
        self._by_lane = by_lane

    def _lane(self, row: Span) -> int:
        """Return the lane of a row."""
        if row.kind == "kernel":
            key = ("device", row.subject.device, row.thread)
        elif row.kind == "part":
            key = ("worker", row.subject.device, row.thread)
        else:
            key = ("python", "", row.thread)
        if key not in self._lane_places:
            kind, device, ident = key
            number = self._threads.setdefault(ident, len(self._threads))
            self._lane_places[key] = len(self.lanes)
            thread = self.recording.thread_names.get(ident, f"thread {number + 1}, which ended")
            name = f"{device or 'Python'}, {thread}"
            self.lanes.append(RunLane(name, kind, device, number))  # type: ignore[arg-type]
        return self._lane_places[key]

    def _subject(self, row: Span) -> int:
        """Return the place of a row's subject among the kernels or the names."""
        if row.kind in _OF_KERNELS:
            launch: LaunchedKernel = row.subject
            key = launch._replace(written=())
            if key not in self._places:
                self._places[key] = len(self.kernels)
                self.kernels.append(self.facts(launch))
            return self._places[key]
        return self.name(_subject_words(row))

    def name(self, words: str) -> int:
        """Return the place of a name; -1 for ""."""
        return self.names.setdefault(words, len(self.names)) if words else -1

    # gaps

    def add_gaps(self) -> None:
        """Add the gaps of the lanes on which threads launched kernels."""
        by_thread = {lane.thread: n for n, lane in enumerate(self.lanes) if lane.kind == "python"}
        outside = CAUSES.index("outside")
        for place, lane in enumerate(self.lanes):
            if lane.kind != "device":
                continue
            own = self._by_lane.get(by_thread.get(lane.thread, -1), [])
            work = [
                Interval(each.start, each.end, CAUSES.index(_CAUSE_OF[self.rows[each.value].kind]))
                for each in own
            ]
            other = CAUSES.index("Python") if own else outside
            idle = gaps(self._by_lane[place], 0, self.length_ns)
            for gap in cut(idle, list(innermost(work)), other):
                self.gaps.start_ns.append(gap.start)
                self.gaps.length_ns.append(gap.end - gap.start)
                self.gaps.lane.append(place)
                self.gaps.cause.append(gap.value)

    # times

    def timed_kernels(self) -> list[RunKernel]:
        """Return the kernels with the times of their launches."""
        lengths: dict[int, list[int]] = defaultdict(list)
        for start, end, place in self.kernel_spans:
            lengths[place].append(end - start)
        whole = sum(map(sum, lengths.values()))
        for place, kernel in enumerate(self.kernels):
            add_times(kernel, lengths[place], whole)
        return self.kernels

    def notices(self) -> list[str]:
        """Return in words what is missing or strange."""
        words = []
        causes = zip(self.gaps.length_ns, self.gaps.cause, strict=True)
        recorded = sum(length for length, cause in causes if CAUSES[cause] == RECORDING)
        if recorded > LEAST_RECORDING * self.length_ns:
            words.append(
                f"the recording itself took {seconds_text(recorded / 1e9)} of"
                f" {seconds_text(self.length_ns / 1e9)}, which no share below counts"
            )
        if self.recording.dropped:
            count = self.recording.dropped
            words.append(f"cut: {plural(count, 'further row')} came, and only a count is stored")
        if self.backward:
            number = plural(self.backward, "row")
            words.append(
                f"the clock jumped: {number} began before the run, or ended before it began"
            )
        if self.overlapping:
            number = plural(self.overlapping, "kernel")
            words.append(f"negative gaps: {number} began before the one before it had ended")
        return words


def add_times(kernel: RunKernel, lengths: Sequence[int], whole: int) -> None:
    """Set the times of a kernel, by those of its launches; `whole` is the time in all kernels."""
    if not lengths:
        return
    kernel.launches, kernel.total_ns, kernel.least_ns = len(lengths), sum(lengths), min(lengths)
    kernel.low_ns, kernel.median_ns, kernel.high_ns = middle(lengths)
    kernel.share = kernel.total_ns / whole if whole else 0.0
    if kernel.predicted_ns and max(kernel.median_ns, kernel.predicted_ns) >= LEAST_NS:
        kernel.ratio = kernel.median_ns / kernel.predicted_ns


def middle(lengths: Sequence[float]) -> tuple[float, float, float]:
    """Return the ends of the middle half of some times, with their median between them."""
    if len(lengths) < 2:
        return lengths[0], lengths[0], lengths[0]
    low, median, high = quantiles(lengths, n=4, method="inclusive")
    return low, median, high


def _subject_words(row: Span) -> str:
    """Return the name of a span of Python's work."""
    subject = row.subject
    if isinstance(subject, int):
        return f"{row.kind} of {subject:,} bytes"
    info = getattr(subject, "arg", None)
    return str(getattr(info, "name", subject) or "") if subject is not None else ""


# --------------------------------------------------------------------------------------------------
# Shares of the time.


def _phases(builder: _Builder, kernels: Iterable[RunKernel]) -> list[RunShare]:
    """Return the time of the launching threads: in kernels, by phase, and between them, by cause,
    without what the recording itself took."""
    sums, counts = Counter[str](), Counter[str]()
    for kernel in kernels:
        name = f"kernels: {kernel.phase}" if kernel.phase else "kernels"
        sums[name] += kernel.total_ns
        counts[name] += kernel.launches
    for length, cause in zip(builder.gaps.length_ns, builder.gaps.cause, strict=True):
        if CAUSES[cause] != RECORDING:
            sums[CAUSES[cause]] += length
            counts[CAUSES[cause]] += 1
    return _rows(sums, counts)


def _shares(kernels: Iterable[RunKernel], name_of: Callable[[RunKernel], str]) -> list[RunShare]:
    sums, counts = Counter[str](), Counter[str]()
    for kernel in kernels:
        sums[name_of(kernel)] += kernel.total_ns
        counts[name_of(kernel)] += kernel.launches
    return [] if set(sums) == {""} else _rows(sums, counts)


def _rows(sums: Counter[str], counts: Counter[str]) -> list[RunShare]:
    whole = sum(sums.values())
    return [
        RunShare(name, ns, ns / whole if whole else 0.0, counts[name])
        for name, ns in sums.most_common()
    ]


# --------------------------------------------------------------------------------------------------
# Memory of a run.


def memory_of_recording(recording: RunRecording, builder: _Builder) -> RunMemory:
    """Return the memory that was in use during a recording. A block is named after the kernel that
    wrote it first; else after the Python work in which it came into use."""
    memories: dict[Any, int] = {memory: n for n, memory in enumerate(recording.used_bytes)}
    before = [*recording.used_bytes.values()]
    rows = RunMemory([], before, [], [], [], [], [], 0, 0)
    open_blocks: dict[int, int] = {}
    writers = _first_writers(builder)
    for time_ns, size_bytes, block, memory in sorted(recording.memory, key=lambda row: row[0]):
        at = max(0, time_ns - recording.start_ns)
        if memory not in memories:
            memories[memory] = len(memories)
            before.append(0)
        if size_bytes > 0:
            open_blocks[block] = len(rows.bytes)
            rows.start_ns.append(at)
            rows.end_ns.append(-1)
            rows.bytes.append(size_bytes)
            rows.memory.append(memories[memory])
            rows.label.append(-1)
        elif block in open_blocks:
            place = open_blocks.pop(block)
            rows.end_ns[place] = at
            rows.label[place] = writers(block, rows.start_ns[place], at)
        else:  # it was in use before
            rows.start_ns.append(0)
            rows.end_ns.append(at)
            rows.bytes.append(-size_bytes)
            rows.memory.append(memories[memory])
            rows.label.append(builder.name("in use before the run"))
            place = memories[memory]
            before[place] = max(0, before[place] + size_bytes)
    for block, place in open_blocks.items():
        rows.label[place] = writers(block, rows.start_ns[place], builder.length_ns)
    rows.memories = [type(memory).__name__ for memory in memories]
    rows.peak_bytes, rows.peak_ns = peak(rows)
    return rows


def _first_writers(builder: _Builder) -> Callable[[int, int, int], int]:
    """Return a function that names the first kernel that wrote a block between two times."""
    writes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (start, _, kernel), launch in zip(builder.kernel_spans, builder.launched, strict=True):
        for block in launch.written:
            writes[block].append((start, kernel))

    def label(block: int, start: int, end: int) -> int:
        own = next((k for at, k in writes.get(block, ()) if start <= at <= end), None)
        return -1 if own is None else builder.name(builder.kernels[own].title)

    return label


def peak(memory: RunMemory) -> tuple[int, int]:
    """Return the most bytes that were in use at once, in all memories, and when that was first."""
    changes: list[tuple[int, int]] = []
    for start, end, size in zip(memory.start_ns, memory.end_ns, memory.bytes, strict=True):
        changes.append((start, size))
        if end >= 0:
            changes.append((end, -size))
    now = most = sum(memory.before_bytes)
    when = 0
    for at, change in sorted(changes):
        now += change
        if now > most:
            most, when = now, at
    return most, when
