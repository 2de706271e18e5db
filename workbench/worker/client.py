"""The parent's side of the worker process: it sends tasks and receives results.

A worker that crashes, hangs or does not stop is ended, the task raises an error that says so, and
the next task starts a new process.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import signal
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Thread
from typing import IO, Any

import numpy as np

from workbench.backends.buffer import Buffer
from workbench.backends.compilers.child import python_environment
from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.forking import free_lock
from workbench.base.interrupts import Uninterrupted
from workbench.worker import protocol

NICE = 5
"""Niceness of a worker: it must not slow down the user's own programs."""
STOPS_WITHIN_S = 0.5
"""Seconds in which a worker must stop before it is ended."""
QUIET_S = 60.0
"""Seconds of silence after which a worker counts as hanging."""
LOOKS_AFTER_S = 1.0
"""Seconds of silence after which it is looked whether the process still runs."""
LATE = 1.5
"""A worker is late after this many times the limit that it announced, and `LATE_S` more."""
LATE_S = 1.0
"""Seconds that a worker gets beyond a limit that it announced."""
LAST_WORDS = 2000
"""Most bytes of a worker's last output that are stored."""
LAST_WORDS_S = 20.0
"""Seconds that a busy machine may take to end a process that crashed."""
DATA_BYTES = 1 << 30
"""Most bytes of data that a worker stores; the oldest are dropped first."""
AFTER = {
    "SIGSEGV": "look for an index outside its buffer",
    "SIGBUS": "look for an index outside its buffer",
    "SIGKILL": "close what holds much memory, and run it again",
}
"""What to try after a signal ended a worker."""
Row = dict[str, Any]
Progress = Callable[[Row], None]
MODULE = "workbench.worker.process"


class WorkerEnded(WorkbenchError):
    """The worker process crashed or hung, because of the program that it ran, or was killed,
    perhaps for another reason."""


class TaskStopped(WorkbenchError):
    """The task was stopped on request."""

    def __init__(self) -> None:
        super().__init__("stopped", "somebody asked for it")


class Worker:
    """A worker process, started with the first data. `close` it, or use it in a `with` block.

    `nice` is its niceness; 0 where a user waits for it.
    """

    def __init__(self, nice: int = NICE) -> None:
        self._nice = nice
        self._process: _Process | None = None
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
        return None if self._process is None else self._process.pid

    def serves(self, device: str) -> bool:
        """Whether it has a device, which is false of devices registered in this process."""
        return Device.is_own(device)

    def start(self) -> None:
        """Start the process unless it runs: a task without data needs it."""
        self._running()

    def hold(self, key: str, make: Callable[[], Sequence[tuple[Buffer, bool]]]) -> None:
        """Send the data `key` unless the worker has them; `make` returns the buffers by slot, and
        whether each is only written."""
        process = self._running()
        if key in process.data_bytes:
            process.data_bytes.move_to_end(key)
            return
        buffers = make()
        slots, blobs = slots_and_bytes(buffers)
        process.send({"do": "hold", "key": key, "slots": slots}, blobs)
        process.data_bytes[key] = sum(b.nbytes for b, _ in buffers)
        while (
            len(process.data_bytes) > 1
            and sum(process.data_bytes.values()) > DATA_BYTES
        ):
            oldest, _ = process.data_bytes.popitem(last=False)
            process.send({"do": "drop", "key": oldest})

    def drop(self, key: str) -> None:
        """Let the worker forget the data `key`."""
        process = self._process
        if process is not None and process.data_bytes.pop(key, None) is not None:
            process.send({"do": "drop", "key": key})

    def ask(
        self, task: Row, progress: Progress | None = None, quiet_s: float = QUIET_S
    ) -> Row:
        """Return the result of a task, waiting for it. It runs in the process that has its data:
        one that has ended since is not started anew.

        Units: quiet_s, seconds without a message after which the worker is ended.
        Errors: TaskStopped, also where the worker was closed; WorkerEnded; WorkbenchError with the
        error of the task.
        """
        with self._lock:
            process = self._process
            if process is None:
                raise TaskStopped()
            self._current = number = next(self._tasks)
        try:
            process.send({**task, "task": number})
            return self._wait(process, number, progress, quiet_s)
        except WorkbenchError:
            raise
        except (
            BaseException
        ):  # Ctrl-C: the next task would wait for the end of this one
            self.close()
            raise
        finally:
            self._current = None

    def stop(self) -> None:
        """Stop the current task: within half a second it returns, or the worker is ended."""
        with self._lock:
            process, number = self._process, self._current
            if process is not None and number is not None:
                process.messages.put({"task": number, "kind": "stop"})

    def close(self) -> None:
        """End the process."""
        with Uninterrupted():
            with self._lock:
                process, self._process = self._process, None
            if process is not None:
                process.end()

    def _running(self) -> _Process:
        with self._lock:
            if self._process is not None and not self._process.is_running:
                self._process.end()
                self._process = None
            if self._process is None:
                with Uninterrupted():
                    self._process = _Process(self._nice)
            return self._process

    def _wait(
        self, process: _Process, number: int, progress: Progress | None, quiet_s: float
    ) -> Row:
        quiet, stopping = quiet_s, False
        deadline = time.monotonic() + quiet
        while True:
            try:
                left = max(0.0, deadline - time.monotonic())
                message = process.messages.get(timeout=min(left, LOOKS_AFTER_S))
            except queue.Empty:
                if time.monotonic() >= deadline:
                    self.close()
                    raise TaskStopped() if stopping else _hung(quiet) from None
                if process.is_running or not process.messages.empty():
                    continue
                message = {"kind": "ended"}  # a child of it holds the pipe open
            if message["kind"] == "ended":
                error = (
                    TaskStopped() if stopping or process.is_ended else _crashed(process)
                )
                self.close()
                raise error
            if message["task"] != number:
                continue  # left over from a task that was stopped
            if (
                message["kind"] == "stop" and not stopping
            ):  # a second call waits no longer
                process.send({"do": "stop", "task": number})
                deadline, stopping = time.monotonic() + STOPS_WITHIN_S, True
            elif message["kind"] == "progress" and not stopping:
                quiet = _quiet(message["value"], quiet_s)
                if progress is not None:
                    progress(message["value"])
                deadline = time.monotonic() + quiet  # `progress` may take long
            elif message["kind"] == "done":
                answer: Row = message["value"]
                return (
                    {**answer, "blobs": message["blobs"]}
                    if message.get("blobs")
                    else answer
                )
            elif message["kind"] == "stopped":
                raise TaskStopped()
            elif message["kind"] == "error":
                raise _failed(message["value"])


class _Process:
    """One process of a worker: its pipes, and its last output."""

    def __init__(self, nice: int) -> None:
        self.messages: queue.SimpleQueue[Row] = queue.SimpleQueue()
        self.data_bytes: OrderedDict[str, int] = OrderedDict()
        self.is_ended = False
        """Whether this process ended it: then it did not crash."""
        self._last_words = b""
        self._parent = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", MODULE, str(nice)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=python_environment(),
            process_group=None if sys.platform == "win32" else 0,
        )
        self.pid = self._process.pid
        self._listener = Thread(target=self._listen, daemon=True)
        self._reader = Thread(target=self._read_words, daemon=True)
        self._listener.start()
        self._reader.start()

    @property
    def is_ours(self) -> bool:
        """Whether this process started it, not a parent that forked this one."""
        return self._parent == os.getpid()

    @property
    def is_running(self) -> bool:
        """Whether it runs. Its status is left to be read, so that its number stays its own: that of
        the group of its children, too."""
        if not self.is_ours or self._process.returncode is not None:
            return False
        if not hasattr(os, "waitid"):
            return self._process.poll() is None
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with contextlib.suppress(ChildProcessError):
            return os.waitid(os.P_PID, self.pid, options) is None
        return False

    def send(self, head: Row, blobs: Sequence[protocol.Blob] = ()) -> None:
        stream = self._process.stdin
        assert stream is not None
        try:
            protocol.send(stream, head, blobs)
        except (OSError, ValueError):
            pass  # ended: `messages` says so
        except (
            BaseException
        ):  # interrupted: the bytes after half a message cannot be decoded
            self.end()
            raise

    def end(self) -> None:
        """End the process and its children; a process of a forked parent goes on."""
        self.is_ended = True
        if not self.is_ours:
            return
        self._kill()
        self._process.wait()
        self._listener.join(1)
        self._reader.join(1)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _kill(self) -> None:
        """Kill the process and its children, also those of one that has ended: they hold its pipes
        open."""
        with contextlib.suppress(OSError):
            if self._process.returncode is None and hasattr(os, "killpg"):
                os.killpg(self.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def ending(self) -> tuple[int, str]:
        """Return the exit status and the last line of output."""
        deadline = time.monotonic() + LAST_WORDS_S
        while self.is_running and time.monotonic() < deadline:
            time.sleep(0.01)
        if not self.is_running:
            self._kill()
            self._process.wait()
        self._reader.join(LAST_WORDS_S)
        lines = self._last_words.decode(errors="replace").split("\n")
        words = [line.strip() for line in lines if line.strip()]
        status = self._process.returncode
        return (0 if status is None else status), (words[-1] if words else "")

    def _listen(self) -> None:
        stream: IO[bytes] | None = self._process.stdout
        assert stream is not None
        try:
            while True:
                head, blobs = protocol.receive(stream)
                self.messages.put({**head, "blobs": blobs})
        except (EOFError, OSError, ValueError, KeyError):
            self.messages.put({"kind": "ended"})

    def _read_words(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            while piece := os.read(stream.fileno(), 1 << 16):
                self._last_words = (self._last_words + piece)[-LAST_WORDS:]


def _quiet(progress: Row, quiet_s: float) -> float:
    """Return the seconds that a worker may be silent: the limit that it announced, or `quiet_s`."""
    silent_s = progress.get("silent_s")
    return quiet_s if silent_s is None else min(quiet_s, LATE * silent_s + LATE_S)


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


def _failed(failure: Row) -> WorkbenchError:
    error = WorkbenchError(failure["what"], failure["because"], failure["try"])
    error.line = failure.get("line")
    return error


def _hung(quiet_s: float) -> WorkerEnded:
    return WorkerEnded(
        "the program did not end",
        f"nothing was heard of it for {quiet_s:.3g} s, so its process was ended",
        "look for a loop whose condition stays true",
    )


def _crashed(process: _Process) -> WorkerEnded:
    status, last_line = process.ending()
    how = f"its process ended with status {status}"
    name = _signal_name(-status) if status < 0 else ""
    if name:
        how = f"its process was ended by {name}"
    if name == "SIGKILL":  # not an error of the program
        how += ", by the system, as it does when memory runs out, or by somebody"
    because = f"{how}: {last_line}" if last_line else how
    what = "the program was killed" if name == "SIGKILL" else "the program crashed"
    return WorkerEnded(what, because, AFTER.get(name, ""))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
