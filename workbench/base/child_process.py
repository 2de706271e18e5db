"""Python processes that answer messages, and the messages between two processes on pipes.

    8 bytes: length of the head | head: JSON | the bytes of each blob, whose "sizes" the head gives

The parent's side is a ChildProcess, or a LastingProcess that replaces one that has ended; the
child's side is a Parent. Every limit, kill, fork and Ctrl-C is handled in this file. A child ends
with its parent, and has a process group of its own. What it prints goes to stderr; the end of that
text is stored as its last words. The pipes have no buffers in Python: a fork would copy half a
message, and a lock that is held.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import queue
import select
import signal
import struct
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Generic, NamedTuple, TypeVar, cast
from weakref import WeakSet

from workbench.base.interrupts import Uninterrupted, free_lock

LAST_WORDS_BYTES = 2000
"""The maximal size of a child's last words, in bytes."""
ENDS_WITHIN_S = 1.0
"""Seconds that a child has to end by itself when its parent does: it may have files to delete."""
CHILD_CHECK_S = 1.0
"""Seconds of silence after which the parent checks that a child still runs."""
PARENT_CHECK_S = 1.0
"""Seconds between two checks of a child that its parent still runs."""
MOST_HEAD_BYTES = 1 << 30
"""The maximal size of a head, in bytes; a longer one is not a message."""
NO_LIMIT_S = 1e6
"""A limit that is never reached, in seconds: the system counts milliseconds in 32 bits."""
PIPE_BYTES = 1 << 16
"""Capacity of a pipe in bytes; a shorter message is written at once."""
_LENGTH = struct.Struct("<Q")
Head = dict[str, Any]
Blob = bytes | bytearray | memoryview
Message = tuple[Head, list[bytearray]]


def send(pipe: io.FileIO, head: Head, blobs: Sequence[Blob] = ()) -> None:
    """Write a message to a pipe."""
    views = [memoryview(blob) for blob in blobs]
    if views:
        head = head | {"sizes": [view.nbytes for view in views]}
    text = json.dumps(head).encode()
    parts: list[Blob] = [_LENGTH.pack(len(text)) + text]
    parts += (view.cast("B") for view in views if view.nbytes)
    if sum(map(len, parts)) < PIPE_BYTES:  # one write, so that the other side wakes once
        parts = [b"".join(parts)]
    for part in parts:
        written = pipe.write(part)
        while written < len(part):
            written += pipe.write(memoryview(part)[written:])


def receive(read: Callable[[memoryview], int | None]) -> Message:
    """Return the next message. `read` waits for bytes, writes them into a memory, and returns their
    number, 0 or None at the end.

    Errors: EOFError at the end, also in the middle of a message; ValueError for bytes that are not
    a message.
    """

    def exactly(size: int) -> bytearray:
        data, filled = bytearray(size), 0
        while filled < size:
            count = read(memoryview(data)[filled:])
            if not count:
                raise EOFError
            filled += count
        return data

    prefix = exactly(_LENGTH.size)
    (length,) = _LENGTH.unpack(prefix)
    if length > MOST_HEAD_BYTES:
        raise ValueError(repr(bytes(prefix)))
    head = json.loads(exactly(length))
    if not isinstance(head, dict):
        raise ValueError(repr(head))
    return head, [exactly(size) for size in head.pop("sizes", ())]


class Ending(NamedTuple):
    """How a child ended: its exit status (after a signal minus the signal's number, and 0 if its
    parent killed it), and its last words."""

    status: int
    words: str

    @property
    def signal(self) -> str:
        """The name of the signal that ended it, "" where none did."""
        number = -self.status
        return (signal_name(number) or f"signal {number}") if number > 0 else ""

    @property
    def last_line(self) -> str:
        """The last line of its words that is not empty, "" where there is none."""
        lines = [line.strip() for line in self.words.splitlines() if line.strip()]
        return lines[-1] if lines else ""


def signal_name(number: int) -> str:
    """Return the name of a signal, "" where none has that number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


class ChildProcess:
    """A Python process, from its start to its end. `arguments` are the interpreter's; `variables`
    are its environment (this process's, if left out)."""

    def __init__(self, arguments: Sequence[str], variables: Mapping[str, str] | None = None):
        self.is_ended = False
        """Whether `end` was called: then the process did not crash."""
        self._was_killed = False
        self._words, self._protocol_error = b"", ""
        self._parent = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-P", *arguments],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=python_environment(variables),
            process_group=None if sys.platform == "win32" else 0,
        )
        pipes = self._process.stdin, self._process.stdout, self._process.stderr
        self._input, self._output, self._errors = cast("list[io.FileIO]", pipes)
        self.pid = self._process.pid
        _processes.add(self)
        self._reading, self._writing, self._waking = (free_lock(), free_lock(), free_lock())
        self._interjected: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._wake_pipe = [*map(io.FileIO, os.pipe(), "rw")]
        for pipe in self._wake_pipe:
            os.set_blocking(pipe.fileno(), False)
        self._poll = select.poll() if hasattr(select, "poll") else None
        if self._poll is not None:
            for pipe in (self._output, self._wake_pipe[0]):
                self._poll.register(pipe.fileno(), select.POLLIN)
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def is_running(self) -> bool:
        """Whether the child runs; False in a fork of the process that started it. The test leaves
        its exit status with the system, which then gives its number to no other process: `_kill`
        needs it as the number of the group."""
        if self._parent != os.getpid() or self._process.returncode is not None:
            return False
        if not hasattr(os, "waitid"):
            return self._process.poll() is None
        with suppress(ChildProcessError):
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self.pid, options) is None
        return False

    def send(self, head: Head, blobs: Sequence[Blob] = ()) -> None:
        """Send a message. A message to a child that has ended, or in a fork, is lost; `receive`
        then raises EOFError."""
        if self._parent != os.getpid():
            return
        try:
            with self._writing:
                send(self._input, head, blobs)
        except (OSError, ValueError):
            pass
        except BaseException:  # interrupted: half a message cannot be decoded
            self.end()
            raise

    def receive(self, limit_s: float = NO_LIMIT_S) -> Message:
        """Return the next message.

        Errors: TimeoutError if it is not complete after `limit_s` seconds; EOFError if the child
        has ended, or has sent bytes that are not a message. The caller must then `end` the child.
        """
        deadline, has_output = time.monotonic() + limit_s, False

        def read(memory: memoryview) -> int | None:
            nonlocal has_output
            while not has_output:
                has_output = self._has_output(deadline)
            has_output = False
            return self._output.readinto(memory)

        with self._reading:
            while self._interjected.empty() and not has_output:
                has_output = self._has_output(deadline)
            if not self._interjected.empty():
                return self._interjected.get()
            try:
                return receive(read)
            except ValueError as error:
                self._kill()
                self._protocol_error = f"\nit sent what is not a message: {error}"
                raise EOFError from None

    def interject(self, message: Head) -> None:
        """Return `message` from the `receive` that waits now, or else from the next one."""
        self._interjected.put((message, []))
        self._wake()

    def end(self, within_s: float = 0.0) -> Ending:
        """End the child and the processes that it started; return how it ended. For `within_s`
        seconds it may end by itself, with a status of its own; then it is killed. In a fork of its
        parent, the child is left alone."""
        self.is_ended = True
        self._close(self._writing, 0.0, self._input)
        if self._parent != os.getpid():
            self._process.returncode = 0  # not a child of this process: `wait` would fail
        deadline = time.monotonic() + within_s
        while self.is_running and time.monotonic() < deadline:
            time.sleep(0.01)
        self._kill()
        self._process.wait()
        self._listener.join(ENDS_WITHIN_S + within_s)
        self._wake()
        self._close(self._writing, ENDS_WITHIN_S, self._input)
        self._close(self._reading, ENDS_WITHIN_S, self._output)
        self._close(self._waking, ENDS_WITHIN_S, *self._wake_pipe)
        if not self._listener.is_alive():
            self._errors.close()
        status = 0 if self._was_killed else self._process.returncode
        words = self._words.decode("utf-8", "replace")
        return Ending(status, words + self._protocol_error)

    def _close(self, lock: Lock, within_s: float, *pipes: io.FileIO) -> None:
        """Close pipes once no other thread uses them, since the system gives their numbers out
        again. After `within_s` seconds of waiting they stay open."""
        if lock.acquire(timeout=within_s):
            for pipe in pipes:
                pipe.close()
            lock.release()

    def _has_output(self, deadline: float) -> bool:
        """Wait for output, or for `_wake`; return whether there is output."""
        while True:
            if self.is_ended or self._parent != os.getpid():
                raise EOFError
            if self._poll is None:  # this system cannot wait for pipes: there is no limit
                return True
            left_s = deadline - time.monotonic()
            most_s = max(0.0, min(left_s, CHILD_CHECK_S))
            ready = [pipe for pipe, _ in self._poll.poll(1000 * most_s)]
            if self._output.fileno() in ready:
                return True
            if ready:
                self._wake_pipe[0].read(PIPE_BYTES)
                return False
            if not self.is_running and not self._poll.poll(0):
                raise EOFError  # processes that it started hold its pipes open
            if left_s <= most_s:
                raise TimeoutError

    def _wake(self) -> None:
        with self._waking, suppress(ValueError):  # closed
            self._wake_pipe[1].write(b"!")

    def _kill(self) -> None:
        """Kill the child and the processes that it started, even if the child has ended."""
        self._was_killed = self._was_killed or self.is_running
        with suppress(OSError):
            if self._process.returncode is None and hasattr(os, "killpg"):
                os.killpg(self.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def _listen(self) -> None:
        """Store the last words, so that the child never waits for a reader of them."""
        with suppress(OSError, ValueError):
            while piece := self._errors.read(PIPE_BYTES):
                self._words = (self._words + piece)[-LAST_WORDS_BYTES:]


_processes: WeakSet[ChildProcess] = WeakSet()
"""The children that this process, or one that forked it, has started."""


@atexit.register
def _end_all() -> None:
    """End all children; for ENDS_WITHIN_S after the end of their input they may end by
    themselves."""
    processes = [process for process in _processes if process.is_running]
    deadline = time.monotonic() + ENDS_WITHIN_S
    for process in processes:
        process._close(process._writing, 0.0, process._input)
    for process in processes:
        process.end(max(0.0, deadline - time.monotonic()))


Child = TypeVar("Child", bound=ChildProcess)
R = TypeVar("R")


class LastingProcess(Generic[Child]):
    """A child that the function `start` makes at its first use. It is started again if it has
    ended, or if this process is a fork of the one that started it."""

    def __init__(self, start: Callable[[], Child]):
        self._start = start
        self.current: Child | None = None
        self._lock, self._turn = free_lock(), free_lock()

    def converse(self, talk: Callable[[], R]) -> R:
        """Return the result of `talk`, which sends and receives; one thread at a time. An error, or
        Ctrl-C, ends the child: the next talk would read this one's reply."""
        with self._turn:
            try:
                return talk()
            except BaseException:
                self.end()
                raise

    def running(self) -> Child:
        """Return the child; it is started if it does not run."""
        with self._lock:
            if self.current is None or not self.current.is_running:
                if self.current is not None:
                    self.current.end()
                with Uninterrupted():  # Ctrl-C would lose a child that was just started
                    self.current = self._start()
            return self.current

    def end(self, within_s: float = 0.0) -> Ending:
        """End the child, if there is one (see `ChildProcess.end`)."""
        with Uninterrupted():
            with self._lock:
                process, self.current = self.current, None
            return Ending(0, "") if process is None else process.end(within_s)


class Parent:
    """The parent, as the child sees it: an iterator over the messages that it sends.

    Once this is made, Ctrl-C is for the parent alone, and this process's prints go to stderr.
    """

    def __init__(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
        self._incoming, self._outgoing = map(io.FileIO, (os.dup(0), os.dup(1)), "rw")
        os.dup2(2, 1)

    def __iter__(self) -> Iterator[Message]:
        with suppress(EOFError):
            while True:
                yield receive(self._incoming.readinto)

    def send(self, head: Head, blobs: Sequence[Blob] = ()) -> None:
        """Send a message to the parent."""
        send(self._outgoing, head, blobs)


def _end_with(parent: int) -> None:
    """End this process after its parent has ended, even if it is at work; if it is idle, it ends
    at the end of its input."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_S)
    time.sleep(ENDS_WITHIN_S)
    os._exit(0)


def python_environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return `variables` (if left out, this process's environment), changed so that Python imports
    this package from the folder of this process, but no modules of the current folder."""
    environment = dict(os.environ if variables is None else variables)
    home = str(Path(__file__).resolve().parents[2])
    if home not in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        paths = [environment.get("PYTHONPATH", ""), home]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    return environment
