"""Calls of the page's JavaScript from Python, run by V8 in a process of its own.

V8 (the package mini-racer) reserves a large part of a process's address space, so that LLVM's JIT
in the same process finds no room for a program near its data, and ends the process. In another
process neither that nor an error in a script can harm the notebook.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.base.forking import free_lock

PROCESS = Path(__file__).with_name("javascript_process.py")


class JavaScript:
    """A script whose functions can be called. Its process starts at the first call, and again after
    it ended; a forked process starts one of its own (see `layout.py`)."""

    def __init__(self, script: str):
        self.script = script
        self._lock = free_lock()
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0
        atexit.register(self.end)

    def call(self, function: str, argument: object) -> Any:
        """Return the result of a function (an expression) for an argument; both are JSON.
        Errors: WorkbenchError where V8 is not installed, and for an error of the function.
        """
        with self._lock:
            try:
                if self._process is None:
                    self._begin()
                return self._ask({"function": function, "argument": argument})
            except _Raised as error:
                raise WorkbenchError("JavaScript failed", str(error)) from None
            except BaseException:
                # also at Ctrl-C: a late answer would be read as that of the next call
                self.end()
                raise

    def end(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return  # a fork's copy: the process is its parent's
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # bytes that are not written yet
                if pipe is not None:
                    pipe.close()

    def _begin(self) -> None:
        if find_spec("py_mini_racer") is None:
            raise _cannot_load("the package mini-racer is not installed")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(PROCESS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for this process
        )
        self._owner = os.getpid()
        try:
            self._ask({"script": self.script})
        except _Raised as error:
            raise _cannot_load(str(error)) from None

    def _ask(self, request: object) -> Any:
        process = self._process
        assert process is not None and process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            because = "the process that runs it has ended"
            raise WorkbenchError("JavaScript gave no answer", because, "again")
        reply = json.loads(line)
        if "error" in reply:
            raise _Raised(reply["error"])
        return reply["value"]


class _Raised(Exception):
    """An error of a script."""


def _cannot_load(problem: str) -> WorkbenchError:
    because = f"V8 cannot be loaded: {problem}"
    hint = "pip install mini-racer"
    return WorkbenchError("the graph cannot be laid out", because, hint)
