"""Compilers in a process of their own: one that crashes or hangs costs an error, never this
process. Compilers of other machines are loaded there alone."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from workbench.backends.compilers.ending import (
    DOCTOR,
    LIMIT_S,
    MEMORY,
    ending,
    lateness,
)
from workbench.base import function_process
from workbench.base.errors import CompileError, DeviceError, WorkbenchError
from workbench.base.function_process import (
    FunctionFailed,
    FunctionProcess,
    FunctionProcessEnded,
)

P = ParamSpec("P")
R = TypeVar("R")


class CompilerProcess:
    """A FunctionProcess whose end is an error of a compiler."""

    def __init__(self) -> None:
        self._functions = FunctionProcess()

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
        try:
            return self._functions.call(limit_s, function, *args, **kwargs)
        except TimeoutError:
            raise lateness(_stage(function), limit_s) from None
        except FunctionProcessEnded as end:
            if not end.has_started:
                raise _no_start(end) from None
            raise ending(_stage(function), *end.ending) from None
        except FunctionFailed as error:
            if error.kind == "MemoryError":
                because = "its memory ran out"
                raise CompileError("compiler", because, hint=MEMORY) from None
            what = "the compiler's process failed"
            raise WorkbenchError(what, str(error), DOCTOR) from None

    def end(self) -> None:
        """End the process; the next request starts another."""
        self._functions.end()


def _stage(function: Callable[..., object]) -> str:
    """Return the compiler's name: that of its module, or of a device's folder."""
    *_, folder, module = f".{function.__module__}".split(".")
    return folder if module == "compile" else module


def _no_start(end: FunctionProcessEnded) -> DeviceError:
    silence = f"it said nothing, and ended with status {end.ending.status}"
    return DeviceError(
        "the process of compilers does not start",
        end.ending.last_line or silence,
        f"`python {shlex.join(('-P', *function_process.COMMAND))}`, which says more",
    )


_process = CompilerProcess()


def in_child(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what a function of a module returns in the process of compilers; errors as
    `CompilerProcess.call`."""
    return _process.call(LIMIT_S, function, *args, **kwargs)


def end_child() -> None:
    """End the process of compilers; the next call starts another."""
    _process.end()
