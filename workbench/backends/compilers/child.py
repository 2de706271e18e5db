"""Compilers in child processes: a crash or a hang of a compiler is an error, and no more.

A compiler that is a library is called in a CompilerProcess; libraries for other machines are loaded
only there. A compiler that is a program starts further programs, which a signal to it does not end.
So all of them are in one process group. It is led by a guard, a shell that reads a pipe whose other
end is in this process. When this process ends, in whatever way, the pipe ends, and the guard kills
the group.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ParamSpec, TypeVar

from workbench.backends.compilers.refusal import LAST_WORDS, first_error
from workbench.base import function_process
from workbench.base.child_process import signal_name
from workbench.base.errors import CompileError, DeviceError, WorkbenchError
from workbench.base.function_process import FunctionFailed, FunctionProcess, FunctionProcessEnded

LIMIT_S = 50.0
"""Seconds that a compiler may take, fewer than a worker may be silent: a worker that is silent for
longer is reported as a kernel that does not end."""
TOO_MUCH_HINT = "other opts, or a shorter text: this one is too much for the compiler"
"""Hint where a compiler takes too long, or crashes."""
MEMORY_HINT = "a shorter text, or other opts; or close what holds much memory, and compile it again"
"""Hint where memory ran out."""
RETRY_HINT = "again: the text is not at fault"
"""Hint where a compiler was ended from outside."""
DOCTOR_HINT = "`workbench doctor`, which says what is missing"
"""Hint where a compiler is not completely installed."""
_OUT_OF_MEMORY = re.compile(
    r"^(?=\S).*(?:out of memory|bad_alloc|MemoryError|cannot allocate memory|Killed signal"
    r"|memory exhausted)",
    re.IGNORECASE | re.MULTILINE,
)
"""Lines that begin with a space do not match: there a compiler quotes the text."""
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS")
_SYSTEM_SIGNALS = ("SIGKILL", "SIGXCPU")
_NO_START = (126, 127)
"""The exit statuses of a shell that cannot start a program."""
_SHELL = 128
"""A shell's exit status is this plus the number of the signal that ended its program."""
_MARKS = ("error:", "unreachable", "assert", "cannot select", "unsupported", "fatal")
MEMORY_GIB = 4
"""Most GiB of memory of each process of a group. Reserved address space does not count."""
IS_POSIX = os.name == "posix"
"""Whether there are process groups and limits; without them only the program itself is ended."""
_GUARD = ("/bin/sh", "-c", "read _; kill -KILL 0")
# a lower limit that is set already stays
_LIMITED = f'ulimit -d {MEMORY_GIB << 20} 2>/dev/null; exec "$@"'
P = ParamSpec("P")
R = TypeVar("R")


class CompilerEnded(CompileError):
    """A compiler's process ended, or was ended because it took too long."""


class CompilerProcess(FunctionProcess):
    """A FunctionProcess whose failures are errors of a compiler."""

    def call(
        self, limit_s: float, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Return the result of `function`, which the process calls.

        Errors: the function's own WorkbenchError; CompilerEnded if its process ends, or takes
        longer than the limit; CompileError if its memory runs out; DeviceError if the process does
        not start; WorkbenchError for any other error of the function.
        """
        try:
            return super().call(limit_s, function, *args, **kwargs)
        except TimeoutError:
            raise late_error(_stage(function), limit_s) from None
        except FunctionProcessEnded as end:
            if not end.has_started:
                raise _no_start(end) from None
            raise ended_error(_stage(function), *end.ending) from None
        except FunctionFailed as error:
            if error.kind == "MemoryError":
                because = "its memory ran out"
                raise CompileError("compiler", because, hint=MEMORY_HINT) from None
            what = "the compiler's process failed"
            raise WorkbenchError(what, str(error), DOCTOR_HINT) from None


_process = CompilerProcess()


def in_child(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return the result of a function of a module, called in the process of compilers; errors as
    `CompilerProcess.call`."""
    return _process.call(LIMIT_S, function, *args, **kwargs)


def end_child() -> None:
    """End the process of compilers; the next call starts another."""
    _process.end()


def ended_error(stage: str, status: int, output: str) -> CompilerEnded:
    """Return the error for a compiler whose process ended with `status` (below zero, or above 128,
    for a signal) after it wrote `output`."""
    words = _first_words(output)
    if _is_out_of_memory(output):
        return CompilerEnded(stage, f"its memory ran out: {words}", hint=MEMORY_HINT)
    name = _signal_name(status)
    if name in _SYSTEM_SIGNALS:
        because = f"its process was ended by {name}, by the system, as it does when memory runs out"
        return CompilerEnded(stage, because + ", or by a user", hint=MEMORY_HINT)
    if name and name not in _CRASHES:
        because = f"its process was ended from outside, by {name}"
        return CompilerEnded(stage, because, hint=RETRY_HINT)
    how = f"by {name}" if name else f"with status {status}"
    because = f"it ended its process: {words}"
    if not words:
        because = f"it ended its process: it said nothing, and ended {how}"
    return CompilerEnded(stage, because, hint=TOO_MUCH_HINT)


def late_error(stage: str, limit_s: float, text: str = "") -> CompilerEnded:
    """Return the error of a compiler that was ended because it took longer than a limit."""
    because = f"it took more than {limit_s:g} s"
    return CompilerEnded(stage, because, text or None, TOO_MUCH_HINT)


def run_compiler(
    stage: str,
    command: Sequence[str],
    limit_s: float,
    text: str = "",
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a compiler that is a program, with `text` as its input, and return its exit status and
    output, also if it refuses the text. None of its processes outlives the call.

    Errors: CompileError where it does not start, is ended, or takes longer than the limit, or more
    than `MEMORY_GIB`.
    """
    try:
        with _program(command, environment) as process:
            output, errors = process.communicate(text, limit_s)
    except OSError as error:
        raise _missing_program(stage, command, str(error)) from None
    except subprocess.TimeoutExpired:
        raise late_error(stage, limit_s, text) from None
    status = process.returncode
    if status in _NO_START:
        raise _missing_program(stage, command, _first_words(errors))
    if _signal_name(status) or (status and _is_out_of_memory(errors)):
        raise ended_error(stage, status, errors)
    return subprocess.CompletedProcess(command, status, output, errors)


def _stage(function: Callable[..., object]) -> str:
    """Return the compiler's name: that of the function's module; of its folder, if the module is
    `compile` or is named after the folder."""
    *_, folder, module = f".{function.__module__}".split(".")
    is_of_folder = module == "compile" or module.startswith(f"{folder}_")
    return folder if is_of_folder else module


def _no_start(end: FunctionProcessEnded) -> DeviceError:
    silence = f"it said nothing, and ended with status {end.ending.status}"
    return DeviceError(
        "the process of compilers does not start",
        end.ending.last_line or silence,
        f"`python {shlex.join(('-P', *function_process.COMMAND))}`, which says more",
    )


@contextlib.contextmanager
def _program(
    command: Sequence[str], environment: Mapping[str, str] | None
) -> Iterator[subprocess.Popen[str]]:
    """Yield a running program with three pipes; the end of the block kills it and its group.

    On POSIX a program that is missing ends with status 126 or 127. Errors: OSError.
    """
    with _group() as group:
        limited = ("/bin/sh", "-c", _LIMITED, "sh", *command)
        with subprocess.Popen(
            limited if IS_POSIX else command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env=environment,
            process_group=group,
        ) as process:
            try:
                yield process
            finally:
                if group is None:
                    process.kill()
                else:
                    _kill(group)


@contextlib.contextmanager
def _group() -> Iterator[int | None]:
    """Yield the number of a process group with a guard; None if the system has no groups."""
    if not IS_POSIX:
        yield None
        return
    with subprocess.Popen(
        _GUARD,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as guard:
        try:
            yield guard.pid
        finally:
            _kill(guard.pid)


def _kill(group: int) -> None:
    with contextlib.suppress(OSError):  # all have ended
        os.killpg(group, signal.SIGKILL)


def _missing_program(stage: str, command: Sequence[str], words: str) -> CompileError:
    because = f"{command[0]} does not start: {words}"
    return CompileError(stage, because, hint=DOCTOR_HINT)


def _is_out_of_memory(output: str) -> bool:
    """Whether a compiler reports that memory ran out, not in an error about a line of the text."""
    first = first_error(output)
    is_of_line = first is not None and first[0].line is not None
    return not is_of_line and _OUT_OF_MEMORY.search(output) is not None


def _signal_name(status: int) -> str:
    """Return the name of the signal that ended a process, "" if none did."""
    return signal_name(-status if status < 0 else status - _SHELL)


def _first_words(text: str) -> str:
    """Return the line of an output that best says why a process ended; "" for an empty output."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = (x for x in lines if any(mark in x.lower() for mark in _MARKS))
    return next(telling, lines[0] if lines else "")[:LAST_WORDS]
