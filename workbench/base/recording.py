"""Recordings of what this process does: its kernels, its copies, its Python work, and its memory.

    begin(recording) ... end(recording)   the rows of all threads of the process
    with span("schedule"): ...            a row, if something records
    if active: ...                        the one test where nothing records

A row is a plain tuple, appended by the thread that does the work when the work is done; its objects
are resolved when the recording has ended. All times are of one clock, `clock_ns`, which native code
reads, too. Source of the idea: the trace buffers of PyTorch's and Chrome's profilers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from threading import get_ident
from types import TracebackType
from typing import Any, Literal, NamedTuple

from workbench.base.interrupts import free_lock

clock_ns = time.perf_counter_ns
"""The clock of all rows: nanoseconds, of a monotonic clock of the system."""
MOST_ROWS = 400_000
"""Most rows of a recording, and most rows of its memory: further ones are only counted."""
SpanKind = Literal[
    "kernel", "copy", "schedule", "compile", "search", "capture", "replay", "realize", "memory",
    "wait", "part", "recording",
]  # fmt: skip
"""What a row is about. `memory` is new memory from the system, `wait` a wait for a device's queue,
`part` the part of a kernel that a worker of the pool ran, `recording` what the recording itself
takes."""


class Span(NamedTuple):
    """A row: `thread` did a work of a `kind` from `start_ns` to `end_ns`, for the `subject`.
    `error` is the error that ended it ("": none). A plain tuple is stored; this names its parts."""

    start_ns: int
    end_ns: int
    thread: int
    kind: SpanKind
    subject: Any
    error: str = ""


class LaunchedKernel(NamedTuple):
    """The subject of a kernel's row: the kernel without opts, the one that ran, the device, the
    blocks of memory that it wrote (as in MemoryChange), and the file and number of the user's line
    that launched it (None: unknown). `place` is its position in an exploration (-1: none)."""

    plain: Any
    tuned: Any
    device: str
    written: tuple[int, ...] = ()
    line: tuple[str, int] | None = None
    place: int = -1


class MemoryChange(NamedTuple):
    """A block of memory of a device, by its identity, that came into use or was released (negative
    bytes) at some time. A block in use has one identity."""

    time_ns: int
    size_bytes: int
    block: int
    memory: Any


class RunRecording:
    """The rows of a process from `start_ns` to `end_ns` (0: it records). `dropped` is the number of
    rows beyond the most that are stored; `used_bytes` what was in use at the start, by memory;
    `thread_names` those of the threads that lived at its end."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.memory: list[tuple[Any, ...]] = []
        self.used_bytes: dict[Any, int] = {}
        self.thread_names: dict[int, str] = {}
        self.dropped = 0
        self.error = ""
        self.start_ns, self.end_ns = clock_ns(), 0

    def add(self, row: tuple[Any, ...]) -> None:
        """Append a row, a Span as a tuple, or count it."""
        if len(self.rows) < MOST_ROWS:
            self.rows.append(row)
        else:
            self.dropped += 1

    def add_memory(self, row: tuple[Any, ...]) -> None:
        """Append a MemoryChange as a tuple, or count it."""
        if len(self.memory) < MOST_ROWS:
            self.memory.append(row)
        else:
            self.dropped += 1


active: tuple[RunRecording, ...] = ()
"""The recordings that see what this process does. Read it as `recording.active`: it is replaced, so
that reading it needs no lock."""
_changes = free_lock()


def note(start_ns: int, end_ns: int, kind: SpanKind, subject: Any, error: str = "") -> None:
    """Add a row of this thread to all recordings."""
    note_of((start_ns, end_ns, get_ident(), kind, subject, error))


def note_of(row: tuple[Any, ...]) -> None:
    """Add a row, a Span or its plain tuple, of any thread, to all recordings."""
    for recording in active:
        recording.add(row)


def stamp_rows(
    subjects: Mapping[int, Any], stamps: Sequence[tuple[int, int, int, int]]
) -> Iterator[Span]:
    """Yield the rows of launches that ran in one native call of this thread. `stamps` has the
    number of a launch, start, end and thread of each of its parts. A launch lasts from the first
    part to the last one; parts of other threads are rows of their own, and so is the time in which
    this thread waits for them."""
    thread = get_ident()
    parts: dict[int, list[tuple[int, int, int]]] = {}
    for number, start_ns, end_ns, other in stamps:
        parts.setdefault(number, []).append((start_ns, end_ns, other))
    for number, own in parts.items():
        subject = subjects[number]
        start_ns, end_ns = min(part[0] for part in own), max(part[1] for part in own)
        yield Span(start_ns, end_ns, thread, "kernel", subject)
        for first_ns, last_ns, other in own:
            if other != thread:
                yield Span(first_ns, last_ns, other, "part", subject)
        mine = [last_ns for _, last_ns, other in own if other == thread]
        if mine and max(mine) < end_ns:
            yield Span(max(mine), end_ns, thread, "wait", "for other threads")


def note_memory(size_bytes: int, block: int, memory: Any) -> None:
    """Add a change of memory to all recordings."""
    row = (clock_ns(), size_bytes, block, memory)
    for recording in active:
        recording.add_memory(row)


class span:
    """A block that is a row of all recordings, with its error if it fails. Without recordings it
    costs two tests."""

    __slots__ = ("_kind", "_start_ns", "subject")

    def __init__(self, kind: SpanKind, subject: Any = None):
        self._kind, self.subject = kind, subject
        self._start_ns = 0

    def __enter__(self) -> span:
        if active:
            self._start_ns = clock_ns()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if active and self._start_ns:
            note(self._start_ns, clock_ns(), self._kind, self.subject, error_words(error))


def error_words(error: BaseException | None) -> str:
    """Return an error in one line; "" for None."""
    if error is None:
        return ""
    words = str(getattr(error, "what", "") or error).partition("\n")[0]
    return f"{type(error).__name__}: {words}"[:200].rstrip(": ")


def begin(recording: RunRecording) -> None:
    """Let a recording see all threads of the process, until `end`. Several may lie in each other,
    or overlap in different threads: each sees everything in its time."""
    global active
    with _changes:
        active = (*active, recording)
    recording.start_ns = clock_ns()


def end(recording: RunRecording) -> None:
    """End a recording; without effect on one that has ended."""
    global active
    with _changes:
        active = tuple([each for each in active if each is not recording])
    if not recording.end_ns:
        recording.end_ns = clock_ns()
        recording.thread_names = {each.ident or 0: each.name for each in threading.enumerate()}
