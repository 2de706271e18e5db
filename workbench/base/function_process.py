"""Functions called in a process of their own, which is started once, and again after it has ended.

A request is a function of a module and its arguments, pickled: both sides are our own. One that
crashes or hangs costs an error, never this process.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from workbench.base.child_process import (
    ENDS_WITHIN_S,
    ChildProcess,
    Ending,
    Head,
    LastingProcess,
    Message,
    Parent,
)
from workbench.base.errors import CompileError, WorkbenchError

COMMAND = ("-c", "from workbench.base.function_process import main; main()")
RECEIPT: Head = {"kind": "receipt"}
"""The first message to each request: from here on its end is the request's doing."""
P = ParamSpec("P")
R = TypeVar("R")


class FunctionProcessEnded(Exception):
    """The process ended; `has_started` is whether it had taken the request."""

    def __init__(self, ending: Ending, has_started: bool):
        super().__init__(ending, has_started)
        self.ending, self.has_started = ending, has_started


class FunctionFailed(Exception):
    """A function raised an error that is not ours: its class, and its text."""

    def __init__(self, kind: str, text: str):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class FunctionProcess:
    """The process; `variables` are its environment, this process's if left out."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._lasting = LastingProcess(lambda: ChildProcess(COMMAND, variables))

    def call(
        self, limit_s: float, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Return what a function returns there.

        Errors: its own WorkbenchError, FunctionFailed for another one; TimeoutError where it does
        not return within the limit; FunctionProcessEnded.
        """
        request = pickle.dumps((function, args, kwargs))
        head, blobs = self._lasting.converse(lambda: self._ask(request, limit_s))
        if head["kind"] == "failed":
            raise FunctionFailed(*head["error"])
        value: Any = pickle.loads(blobs[0])
        if head["kind"] == "error":
            raise value
        result: R = value
        return result

    def end(self) -> None:
        """End the process, after the request at hand; the next request starts another."""
        self._lasting.converse(self._lasting.end)

    def _ask(self, request: bytes, limit_s: float) -> Message:
        """Return the reply; a process that was killed before, and so takes no request, is replaced
        once."""
        for is_last in (False, True):
            process, has_started = self._lasting.running(), False
            process.send({}, [request])
            try:
                process.receive(limit_s)
                has_started = True
                return process.receive(limit_s)
            except EOFError:
                ending = self._lasting.end(ENDS_WITHIN_S)
                if has_started or is_last:
                    raise FunctionProcessEnded(ending, has_started) from None
        raise AssertionError


def main() -> None:
    """Call one function after another, until the input ends."""
    parent = Parent()
    for _, blobs in parent:
        parent.send(RECEIPT)
        parent.send(*_reply(blobs[0]))


def _reply(request: bytes | bytearray) -> tuple[Head, list[bytes]]:
    try:
        function, args, kwargs = pickle.loads(request)
        return {"kind": "value"}, [pickle.dumps(function(*args, **kwargs))]
    except CompileError as error:  # its subclasses, and its last state, stay here
        stage, because, hint, line = error.stage, error.because, error.hint, error.line
        plain: Exception = CompileError(stage, because, hint=hint, line=line)
        return {"kind": "error"}, [pickle.dumps(plain)]
    except WorkbenchError as error:
        return {"kind": "error"}, [pickle.dumps(error)]
    except Exception as error:
        return {"kind": "failed", "error": [type(error).__name__, str(error)]}, []
