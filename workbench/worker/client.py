"""The parent's side of the worker process: it sends tasks and receives results.

A worker that crashes, hangs or does not stop is ended, and its task raises an error that says so.
The next `hold` or `start` starts a new process.
"""

from __future__ import annotations

import itertools
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.base.child_process import ChildProcess, Ending, Head, LastingProcess
from workbench.base.errors import WorkbenchError
from workbench.base.interrupts import free_lock
from workbench.worker.rows import error_of

NICE = 5
"""Niceness of a worker: it must not slow down the user's own programs."""
STOPS_WITHIN_S = 0.5
"""Seconds that a worker has to stop before it is ended."""
QUIET_S = 60.0
"""Seconds of silence after which a worker counts as hanging."""
LATE_FACTOR = 1.5
"""A worker is late after this multiple of the limit that it announced, and `LATE_S` more."""
LATE_S = 1.0
"""Seconds that a worker gets beyond a limit that it announced."""
LAST_WORDS_S = 20.0
"""Seconds that a busy machine may take to end a process that crashed."""
DATA_BYTES = 1 << 30
"""Most bytes of data that a worker stores; the oldest are dropped first."""
DEATH_HINTS = {
    "SIGSEGV": "look for an index outside its buffer",
    "SIGBUS": "look for an index outside its buffer",
    "SIGILL": "look for a division by 0, or another step that has no meaning",
    "SIGFPE": "look for a division of whole numbers by 0",
    "SIGKILL": "close what holds much memory, and run it again",
}
"""Hints for signals that end a worker."""
CRASHED = "the program crashed"
"""The error of a program that ended its worker by itself."""
Row = Head
Progress = Callable[[Row], None]
MODULE = "workbench.worker.process"


class WorkerEnded(WorkbenchError):
    """The worker process crashed or hung, because of the program that it ran, or was killed,
    perhaps for another reason."""


class TaskStopped(WorkbenchError):
    """The task was stopped on request."""

    def __init__(self) -> None:
        super().__init__("stopped", "this was requested")


class Worker:
    """A worker process, started with the first data. `close` it, or use it in a `with` block.

    `nice` is its niceness; 0 where a user waits for it.
    """

    def __init__(self, nice: int = NICE) -> None:
        self._lasting = LastingProcess(lambda: _Process(nice))
        self._tasks = itertools.count(1)
        self._current: int | None = None
        self._lock = free_lock()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process id, None where no process runs."""
        process = self._lasting.current
        return None if process is None else process.pid

    def serves(self, device: str) -> bool:
        """Whether the worker has a device; it lacks devices that are registered in this process."""
        return Device.is_own(device)

    def start(self) -> None:
        """Start the process unless it runs; needed before a task without data."""
        self._lasting.running()

    def hold(self, key: str, make: Callable[[], Sequence[tuple[Buffer, bool]]]) -> None:
        """Send the data `key` unless the worker has them, and start its process if it does not run.
        `make` returns the buffers by slot, and whether each is only written."""
        process = self._lasting.running()
        if key in process.data_bytes:
            process.data_bytes.move_to_end(key)
            return
        buffers = make()
        slots, blobs = slots_and_bytes(buffers)
        process.send({"do": "hold", "key": key, "slots": slots}, blobs)
        process.data_bytes[key] = sum(b.nbytes for b, _ in buffers)
        for oldest in evicted(process.data_bytes):
            process.send({"do": "drop", "key": oldest})

    def drop(self, key: str) -> None:
        """Drop the data `key` in the worker, if it has them."""
        process = self._lasting.current
        if process is not None and process.data_bytes.pop(key, None) is not None:
            process.send({"do": "drop", "key": key})

    def ask(self, task: Row, progress: Progress | None = None, quiet_s: float = QUIET_S) -> Row:
        """Return the result of a task, waiting for it. The task needs the process that has its
        data: if that has ended, no other one is started.

        Units: quiet_s, seconds without a message after which the worker is ended.
        Errors: TaskStopped, also if there is no process; WorkerEnded; WorkbenchError with the
        error of the task.
        """
        with self._lock:
            process = self._lasting.current
            if process is None:
                raise TaskStopped()
            self._current = number = next(self._tasks)
        try:
            process.send({**task, "task": number})
            return self._wait(process, number, progress, quiet_s)
        except WorkbenchError:
            raise
        except BaseException:  # Ctrl-C: the next task would wait until this one ends
            self.close()
            raise
        finally:
            self._current = None

    def stop(self) -> None:
        """Stop the current task: within STOPS_WITHIN_S it ends, or the worker is ended."""
        with self._lock:
            process, number = self._lasting.current, self._current
            if process is not None and number is not None:
                process.interject({"task": number, "kind": "stop"})

    def close(self) -> None:
        """End the process."""
        self._lasting.end()

    def _wait(
        self, process: _Process, number: int, progress: Progress | None, quiet_s: float
    ) -> Row:
        quiet, stopping = quiet_s, False
        deadline = time.monotonic() + quiet
        while True:
            try:
                left = max(0.0, deadline - time.monotonic())
                message, blobs = process.receive(left)
            except TimeoutError:
                self.close()
                raise TaskStopped() if stopping else _hung(quiet) from None
            except EOFError:
                was_stopped = stopping or process.is_ended
                ending = process.end(0.0 if was_stopped else LAST_WORDS_S)
                self.close()
                raise TaskStopped() if was_stopped else _crashed(ending) from None
            if message["task"] != number:
                continue  # left over from a task that was stopped
            if message["kind"] == "stop" and not stopping:  # a second stop changes no deadline
                process.send({"do": "stop", "task": number})
                deadline, stopping = time.monotonic() + STOPS_WITHIN_S, True
            elif message["kind"] == "progress" and not stopping:
                quiet = _silence_limit_s(message["value"], quiet_s)
                if progress is not None:
                    progress(message["value"])
                deadline = time.monotonic() + quiet  # `progress` may take long
            elif message["kind"] == "done":
                answer: Row = message["value"]
                return {**answer, "blobs": blobs} if blobs else answer
            elif message["kind"] == "stopped":
                raise TaskStopped()
            elif message["kind"] == "error":
                raise error_of(message["value"])


class _Process(ChildProcess):
    """A process of a worker, and the bytes of the data that it stores."""

    def __init__(self, nice: int) -> None:
        super().__init__(["-m", MODULE, str(nice)])
        self.data_bytes: OrderedDict[str, int] = OrderedDict()


def _silence_limit_s(progress: Row, quiet_s: float) -> float:
    """Return the seconds that a worker may be silent: the limit that it announced, or `quiet_s`."""
    silent_s = progress.get("silent_s")
    return quiet_s if silent_s is None else min(quiet_s, LATE_FACTOR * silent_s + LATE_S)


def evicted(data_bytes: OrderedDict[str, int]) -> Iterator[str]:
    """Take out, and yield, the keys used longest ago until the data fit DATA_BYTES; the last key
    stays."""
    while len(data_bytes) > 1 and sum(data_bytes.values()) > DATA_BYTES:
        yield data_bytes.popitem(last=False)[0]


def slots_and_bytes(
    buffers: Sequence[tuple[Buffer, bool]],
) -> tuple[list[tuple[str, int]], list[memoryview]]:
    """Return the dtype and size of each buffer, and its bytes: none of a buffer that is only
    written."""
    slots = [(buffer.dtype.name, buffer.size) for buffer, _ in buffers]
    nothing = memoryview(b"")
    blobs = [
        nothing if is_output else buffer.as_array().view(np.uint8).data
        for buffer, is_output in buffers
    ]
    return slots, blobs


def _hung(quiet_s: float) -> WorkerEnded:
    return WorkerEnded(
        "the program did not end",
        f"nothing was heard of it for {quiet_s:.3g} s, so its process was ended",
        "look for a loop whose condition stays true",
    )


def _crashed(ending: Ending) -> WorkerEnded:
    name = ending.signal
    how = f"its process ended with status {ending.status}"
    if name:
        how = f"its process was ended by {name}"
    if name == "SIGKILL":  # not an error of the program
        how += ", by the system, as it does when memory runs out, or by a user"
    because = f"{how}: {ending.last_line}" if ending.last_line else how
    what = "the program was killed" if name == "SIGKILL" else CRASHED
    return WorkerEnded(what, because, DEATH_HINTS.get(name, ""))
