"""Compilers in a process of their own: one that crashes or hangs costs an error, never this
process.

The process is started once, and again after it has ended. A request is a function of a module, by
its name, and its arguments; compilers of other machines are loaded there alone.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import queue
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import IO, Any, ParamSpec, TypeVar

from workbench.backends.compilers.ending import LIMIT_S, ending, lateness
from workbench.base.errors import CompileError, DeviceError, WorkbenchError
from workbench.base.forking import free_lock

ENDS_WITHIN_S = 1.0
"""Seconds that it may take to end by itself."""
_LAST_WORDS_BYTES = 2000
_LENGTH_BYTES = 8
_COMMAND = ("-P", "-m", "workbench.backends.compilers.server")
RECEIPT = b""
"""The first message to each request: from here on its end is the request's doing."""
P = ParamSpec("P")
R = TypeVar("R")


class CompilerProcess:
    """The process; it is started with the first request, and ends with this one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._parent = 0
        self._replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stderr: IO[bytes] | None = None
        self._lock = free_lock()
        atexit.register(self._at_exit)

    def call(
        self,
        limit_s: float,
        function: Callable[P, R],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Return what a function returns there.

        Errors: its own CompileError or DeviceError; CompileError where its process ends, or it does
        not return within the limit; DeviceError where the process does not start.
        """
        request = pickle.dumps((function, args, kwargs))
        with self._lock:
            try:
                # one that somebody has killed before takes no request: the next one does
                if not self._takes(request, limit_s):
                    self._end()
                    if not self._takes(request, limit_s):
                        raise _no_start(*self._end(ENDS_WITHIN_S))
                reply = self._replies.get(timeout=limit_s)
            except queue.Empty:
                self._end()
                raise lateness(_stage(function), limit_s) from None
            except BaseException:
                self._end()  # Ctrl-C: the next request would read this one's reply
                raise
            if reply is None:
                raise ending(_stage(function), *self._end(ENDS_WITHIN_S))
        value: R = _result(pickle.loads(reply))
        return value

    def end(self) -> None:
        """End the process; the next request starts another."""
        with self._lock:
            self._end()

    def _at_exit(self) -> None:
        """Let the process end by itself, as it does at the end of its input: it has files to
        delete. One that is at work, or takes long, is killed."""
        process = self._process
        if process is None or self._parent != os.getpid():
            return
        if self._lock.acquire(blocking=False):
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                assert process.stdin is not None
                process.stdin.close()
                process.wait(ENDS_WITHIN_S)
        self._end()

    def _takes(self, request: bytes, limit_s: float) -> bool:
        """Send a request; return whether the process has taken it, and has not ended."""
        process = self._running()
        assert process.stdin is not None
        try:
            send(process.stdin, request)
        except OSError:
            return False
        return self._replies.get(timeout=limit_s) == RECEIPT

    def _running(self) -> subprocess.Popen[bytes]:
        if self._parent != os.getpid():  # a fork: the process is that of another one
            self._process, self._parent = None, os.getpid()
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._stderr = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, *_COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=python_environment(),
        )
        self._replies = queue.SimpleQueue()
        assert self._process.stdout is not None
        arguments = self._process.stdout, self._replies
        Thread(target=_listen, args=arguments, daemon=True).start()
        return self._process

    def _end(self, within_s: float = 0.0) -> tuple[int, str]:
        """End the process; return its status, and the last that it wrote. One that is about to end
        gets some seconds for it: else its status would be that of our signal."""
        process, self._process = self._process, None
        if process is None or self._parent != os.getpid():
            return 0, ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(within_s)
        process.kill()
        process.wait()
        if process.stdin is not None:  # who listens to the other pipe closes that
            with contextlib.suppress(OSError):
                process.stdin.close()
        words = ""
        if self._stderr is not None:
            self._stderr.seek(0, 2)
            self._stderr.seek(max(0, self._stderr.tell() - _LAST_WORDS_BYTES))
            words = self._stderr.read().decode("utf-8", "replace")
            self._stderr.close()
            self._stderr = None
        return process.returncode, words


def python_environment() -> dict[str, str]:
    """Return the environment of a process that imports this package from where this one has it, but
    no modules of the current folder."""
    home = str(Path(__file__).resolve().parents[3])
    installed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    if home in installed:
        return dict(os.environ)
    paths = [os.environ.get("PYTHONPATH", ""), home]
    return os.environ | {"PYTHONPATH": os.pathsep.join(p for p in paths if p)}


def _listen(pipe: IO[bytes], replies: queue.SimpleQueue[bytes | None]) -> None:
    """Put each message into a queue, and None at the end."""
    try:
        while (message := receive(pipe)) is not None:
            replies.put(message)
    finally:
        replies.put(None)
        pipe.close()


def send(pipe: IO[bytes], message: bytes) -> None:
    """Write a message: its length, and its bytes."""
    pipe.write(len(message).to_bytes(_LENGTH_BYTES, "little") + message)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """Read a message, waiting for it; None at the end."""
    head = pipe.read(_LENGTH_BYTES)
    if len(head) < _LENGTH_BYTES:
        return None
    length = int.from_bytes(head, "little")
    message = pipe.read(length)
    return message if len(message) == length else None


def _stage(function: Callable[..., Any]) -> str:
    """Return the compiler's name: that of its module, or of a device's folder."""
    *_, folder, module = function.__module__.split(".")
    return folder if module == "compile" else module


def _no_start(status: int, output: str) -> DeviceError:
    """Return the error of a process that ended before it took a request."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    because = lines[-1] if lines else f"it said nothing, and ended with status {status}"
    what = "the process of compilers does not start"
    return DeviceError(what, because, f"`python {' '.join(_COMMAND)}`, which says more")


def _result(reply: tuple[str, Any]) -> Any:
    kind, value = reply
    if kind == "value":
        return value
    if kind == "compile":
        stage, because, hint, line = value
        raise CompileError(stage, because, hint=hint, line=line)
    if kind == "device":
        raise DeviceError(*value)
    raise WorkbenchError(*value)


_process = CompilerProcess()


def in_child(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what a function of a module returns in the process of compilers; errors as
    `CompilerProcess.call`."""
    return _process.call(LIMIT_S, function, *args, **kwargs)


def end_child() -> None:
    """End the process of compilers; the next call starts another."""
    _process.end()
