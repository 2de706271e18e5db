"""The log of kernel runs (the logger `workbench`, a line per run at INFO), and totals of all runs.

`Context(DEBUG=2)` prints the lines; `logging.getLogger("workbench")` receives them.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from workbench.backends.device import Device
from workbench.backends.memory import Buffer, memories
from workbench.backends.native.host_memory import HOST
from workbench.base import recording
from workbench.base.context import DEBUG
from workbench.base.interrupts import free_lock
from workbench.base.recording import LaunchedKernel, clock_ns, note, note_of, stamp_rows
from workbench.base.source import users_frame
from workbench.ir.nest.estimates import Estimates, estimate
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import axes

LOG = logging.getLogger("workbench")
SHOWN_FROM = 2
MOST_WAITING = 1024
"""Most kernels that wait to be counted."""

_estimate = lru_cache(maxsize=1024)(estimate)


class _Totals:
    """The totals. Attributes of an object are quicker to change than those of a class."""

    __slots__ = ("_bytes", "_operations", "kernels", "seconds", "waiting")

    def __init__(self) -> None:
        self.kernels = self._operations = self._bytes = 0
        self.seconds = 0.0
        self.waiting: deque[UOp] = deque()
        """Kernels that ran and whose operations are not counted yet: that takes milliseconds for a
        new one, and most programs never ask."""

    def add(self, operations: int, nbytes: int) -> None:
        self._operations += operations
        self._bytes += nbytes

    def wait(self, kernel: UOp) -> None:
        self.waiting.append(kernel)
        if len(self.waiting) > MOST_WAITING:
            self._count()

    @property
    def operations(self) -> int:
        self._count()
        return self._operations

    @property
    def bytes(self) -> int:
        self._count()
        return self._bytes

    def _count(self) -> None:
        with suppress(IndexError):  # another thread may take the last one
            while self.waiting:
                counts = _estimate(self.waiting.popleft())
                self.add(counts.flops, counts.bytes)


_totals = _Totals()


class _Memory(type):
    @property
    def kernel_count(cls) -> int:
        """The number of kernels that ran."""
        return _totals.kernels

    @property
    def global_ops(cls) -> int:
        """The operations of these kernels."""
        return _totals.operations

    @property
    def global_mem(cls) -> int:
        """The bytes that they touched."""
        return _totals.bytes

    @property
    def time_sum_s(cls) -> float:
        """The seconds that they took."""
        return _totals.seconds

    @property
    def mem_used(cls) -> int:
        """The bytes of all devices in this process that tensors and running kernels use now."""
        host = memories[HOST]  # the user's data, not yet copied to a device
        return sum(m.pool.used_bytes for m in {*memories.values()} - {host})


class GlobalCounters(metaclass=_Memory):
    """Totals since the start or the last `reset()`, and `mem_used`, the bytes in use now.

    Units: `global_ops` is arithmetic operations of the algorithm; `global_mem` is bytes, each
    element that a kernel touches counted once (see `Estimates`); `time_sum_s` is seconds in
    kernels, launches included.
    """

    @classmethod
    def reset(cls) -> None:
        """Set all totals to zero."""
        _totals.__init__()  # type: ignore[misc]  # the same object: all that count have it


CountedKernel = tuple[UOp, UOp, str]
"""A kernel without opts, which has the operations of the algorithm; the kernel that runs; and its
device."""


def count_launch(
    kernel: CountedKernel, start_ns: int, end_ns: int, written: Sequence[Buffer], error: str = ""
) -> None:
    """Count one launch of a kernel as `count_run` does, unless an `error` ended it. Recordings get
    it, too, with the memory that it has `written`."""
    if recording.active:
        note(start_ns, end_ns, "kernel", launched(kernel, written), error)
    if not error:
        count_run(*kernel, (end_ns - start_ns) / 1e9)


def run_recorded(
    graph: Any, kernels: Sequence[CountedKernel], written: Sequence[Sequence[Buffer]]
) -> None:
    """Run launches of kernels together, by a `graph` of their device that has `recorded()`, and add
    each to recordings; what the recording itself takes is a row, too."""
    begin_ns = clock_ns()
    for stamps in graph.recorded():
        numbers = dict.fromkeys(stamp[0] for stamp in stamps)
        subjects = {number: launched(kernels[number], written[number]) for number in numbers}
        rows = [*stamp_rows(subjects, stamps)]
        note(begin_ns, min(row.start_ns for row in rows), "recording", None)
        for row in rows:
            note_of(row)
        end_ns = max(row.end_ns for row in rows)
        begin_ns = clock_ns()
        note(end_ns, begin_ns, "recording", None)


def launched(kernel: CountedKernel, written: Sequence[Buffer]) -> LaunchedKernel:
    """Return what a recording has of a launch: it keeps no memory alive."""
    frame = users_frame()
    line = None if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    return LaunchedKernel(*kernel, tuple([id(b.owner.block) for b in written]), line)


class _KernelCounts:
    """The runs of each kernel in a block; `first` is called after the first run of each."""

    def __init__(self, first: Callable[[CountedKernel], None]):
        self.runs: Counter[CountedKernel] = Counter()
        self._first, self._lock = first, free_lock()

    def add(self, kernel: CountedKernel) -> None:
        with self._lock:
            is_first = kernel not in self.runs
            self.runs[kernel] += 1
        if is_first:
            self._first(kernel)


_counting: tuple[_KernelCounts, ...] = ()
_changes = free_lock()


@contextmanager
def counting_kernels(
    first: Callable[[CountedKernel], None] = lambda kernel: None,
) -> Iterator[Counter[CountedKernel]]:
    """Count the runs of each kernel, in all threads, in the block. `first` is called after the
    first run of each, by the thread that ran it."""
    global _counting
    counting = _KernelCounts(first)
    with _changes:
        _counting = (*_counting, counting)
    try:
        yield counting.runs
    finally:
        with _changes:
            _counting = tuple([each for each in _counting if each is not counting])


def count_run(plain: UOp, tuned: UOp, device: str, seconds: float) -> None:
    """Count one run of a kernel; log it if the logger is enabled, and print it from DEBUG=2 on. The
    kernel without opts, `plain`, has the operations of the algorithm; `tuned` is the one that ran.
    """
    _totals.kernels += 1
    _totals.seconds += seconds
    _totals.wait(plain)
    if not _is_heard():
        return
    for counting in _counting:
        counting.add((plain, tuned, device))
    line = _line(tuned, device, seconds, _estimate(plain))
    LOG.info(line)
    if DEBUG.value >= SHOWN_FROM:
        print(line, file=sys.stderr)


class CountedTogether:
    """Kernels, each (plain, tuned, device) as in `count_run`, that run together: `add` counts all
    of them at once, and gives each the same part of the time."""

    def __init__(self, kernels: Sequence[CountedKernel]):
        self._kernels = kernels
        estimates = [_estimate(plain) for plain, _, _ in kernels]
        self._flops = sum(each.flops for each in estimates)
        self._bytes = sum(each.bytes for each in estimates)

    def add(self, seconds: float) -> None:
        """Count one run of all kernels, in `seconds` together."""
        if _is_heard():
            for kernel in self._kernels:
                count_run(*kernel, seconds / len(self._kernels))
            return
        _totals.kernels += len(self._kernels)
        _totals.seconds += seconds
        _totals.add(self._flops, self._bytes)


def _is_heard() -> bool:
    """Whether runs are counted by kernel, or a line a run is printed or logged."""
    return bool(_counting) or DEBUG.value >= SHOWN_FROM or LOG.isEnabledFor(logging.INFO)


def _line(kernel: UOp, device: str, seconds: float, estimates: Estimates) -> str:
    shape = " ".join(f"{a.name}={a.size}" for a in axes(kernel))
    number = GlobalCounters.kernel_count
    begin = f"{device:6} {number:4} {kernel.arg.name:24} {shape:40} {seconds * 1e6:10.1f} µs "
    if Device[device].is_emulator:
        return f"{begin}  EMULATOR"
    return (
        f"{begin}{estimates.flops / max(seconds, 1e-9) / 1e9:8.2f} GFLOP/s "
        f"{estimates.bytes / max(seconds, 1e-9) / 1e9:8.2f} GB/s"
    )
