"""Calls of the page's JavaScript from Python, run by V8 in a process of its own.

V8 (the package mini-racer) reserves a large part of a process's address space, so that LLVM's JIT
in the same process finds no room for a program near its data, and ends the process. In another
process neither that nor an error in a script can harm the notebook.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workbench.base.child_process import ChildProcess, Head, LastingProcess
from workbench.base.errors import WorkbenchError

PROCESS = Path(__file__).with_name("javascript_process.py")


class JavaScript:
    """A script whose functions can be called. Its process starts at the first call, and again after
    it ended (see `layout.py`)."""

    def __init__(self, script: str):
        self.script = script
        self._lasting = LastingProcess(_Engine)

    def call(self, function: str, argument: object) -> Any:
        """Return the result of a function (an expression) for an argument; both are JSON.
        Errors: WorkbenchError where V8 is not installed, and for an error of the function.
        """
        request = {"function": function, "argument": argument}
        try:
            reply = self._lasting.converse(lambda: self._ask(request))
        except EOFError:
            because = "the process that runs it has ended"
            raise WorkbenchError("JavaScript gave no answer", because, "again") from None
        if "error" in reply:
            raise WorkbenchError("JavaScript failed", reply["error"])
        return reply["value"]

    def end(self) -> None:
        """End the process, if there is one."""
        self._lasting.end()

    def _ask(self, request: Head) -> Head:
        engine = self._lasting.running()
        if not engine.has_script:
            engine.send({"script": self.script})
            reply, _ = engine.receive()
            if "error" in reply:
                raise _cannot_load(reply["error"])
            engine.has_script = True
        engine.send(request)
        return engine.receive()[0]


class _Engine(ChildProcess):
    """A process with V8, and whether it has evaluated the script."""

    def __init__(self) -> None:
        if find_spec("py_mini_racer") is None:
            raise _cannot_load("the package mini-racer is not installed")
        super().__init__([str(PROCESS)])
        self.has_script = False


def _cannot_load(problem: str) -> WorkbenchError:
    because = f"V8 cannot be loaded: {problem}"
    hint = "pip install mini-racer"
    return WorkbenchError("the graph cannot be laid out", because, hint)
