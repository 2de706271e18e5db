"""Function calls in a process of their own, which is started once, and again after it has ended.

A request is a pickled function of a module with its arguments; pickle is safe, since both sides are
this package. A request that crashes or hangs is an error for its caller, and never ends the
caller's process.
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
"""The first of two replies to a request: if the process ends after it, the request is to blame."""
P = ParamSpec("P")
R = TypeVar("R")


class FunctionProcessEnded(Exception):
    """The process ended; `has_started` says whether it had received the request."""

    def __init__(self, ending: Ending, has_started: bool):
        super().__init__(ending, has_started)
        self.ending, self.has_started = ending, has_started


class FunctionFailed(Exception):
    """A function raised an error that is no WorkbenchError; `kind` is the name of its class."""

    def __init__(self, kind: str, text: str):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class FunctionProcess:
    """The process that calls functions; `variables` are its environment (if left out, this
    process's)."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._lasting = LastingProcess(lambda: ChildProcess(COMMAND, variables))

    def call(
        self, limit_s: float, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Return the result of `function`, which the process calls.

        Errors: the function's WorkbenchError; FunctionFailed for its other errors; TimeoutError if
        it does not return within `limit_s` seconds; FunctionProcessEnded.
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
        """End the process after the current request; the next request starts another."""
        self._lasting.converse(self._lasting.end)

    def _ask(self, request: bytes, limit_s: float) -> Message:
        """Return the reply. A process that ended before it received the request is replaced
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
    """Call the function of each request, until the input ends."""
    parent = Parent()
    for _, blobs in parent:
        parent.send(RECEIPT)
        parent.send(*_reply(blobs[0]))


def _reply(request: bytes | bytearray) -> tuple[Head, list[bytes]]:
    try:
        function, args, kwargs = pickle.loads(request)
        return {"kind": "value"}, [pickle.dumps(function(*args, **kwargs))]
    except CompileError as error:  # sent as this class: __init__ of a subclass may differ
        stage, because, hint, line = error.stage, error.because, error.hint, error.line
        picklable: Exception = CompileError(stage, because, hint=hint, line=line)
        return {"kind": "error"}, [pickle.dumps(picklable)]
    except WorkbenchError as error:
        return {"kind": "error"}, [pickle.dumps(error)]
    except Exception as error:
        return {"kind": "failed", "error": [type(error).__name__, str(error)]}, []
