"""How a compiler ended that gave no answer: it was killed, crashed, or took too long or too much
memory. Only some of that is the fault of the text."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence

from workbench.backends.compilers.messages import first_error
from workbench.backends.compilers.process_group import program
from workbench.base.child_process import signal_name
from workbench.base.errors import CompileError

LIMIT_S = 50.0
"""Seconds that a compiler may take: fewer than a worker may be silent, or its silence would be told
as a program that does not end."""
TOO_MUCH = "other opts, or a shorter text: this one is too much for the compiler"
"""What to try where a compiler takes too long, or crashes."""
MEMORY = "a shorter text, or other opts; or close what holds much memory, and compile it again"
"""What to try where memory ran out."""
AGAIN = "again: the text is not at fault"
"""What to try where somebody ended a compiler."""
DOCTOR = "`workbench doctor`, which says what is missing"
"""What to try where a compiler is not whole."""
_OUT_OF_MEMORY = re.compile(
    r"^(?=\S).*(?:out of memory|bad_alloc|MemoryError|cannot allocate memory|Killed signal"
    r"|memory exhausted)",
    re.IGNORECASE | re.MULTILINE,
)
"""It stands in no line that begins with a space: there a compiler quotes the text."""
_CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS")
_OF_MACHINE = ("SIGKILL", "SIGXCPU")
_NO_START = (126, 127)
"""A shell ends with one of these where it cannot start a program."""
_SHELL = 128
"""A program that starts another one ends with this, and the number of the signal that ended it."""
_MARKS = ("error:", "unreachable", "assert", "cannot select", "unsupported", "fatal")
_LAST_WORDS = 400


def ending(stage: str, status: int, output: str) -> CompileError:
    """Return the error of a compiler's process that ended with a status, below zero for a signal,
    after some output."""
    words = _first_words(output)
    if _is_out_of_memory(output):
        return CompileError(stage, f"its memory ran out: {words}", hint=MEMORY)
    name = _signal_name(status)
    if name in _OF_MACHINE:
        because = f"its process was ended by {name}, by the system, as it does when memory runs out"
        return CompileError(stage, because + ", or by somebody", hint=MEMORY)
    if name and name not in _CRASHES:
        because = f"its process was ended from outside, by {name}"
        return CompileError(stage, because, hint=AGAIN)
    how = f"by {name}" if name else f"with status {status}"
    because = f"it ended its process: {words}"
    if not words:
        because = f"it ended its process: it said nothing, and ended {how}"
    return CompileError(stage, because, hint=TOO_MUCH)


def lateness(stage: str, limit_s: float, text: str = "") -> CompileError:
    """Return the error of a compiler that was ended because it took longer than a limit."""
    because = f"it took more than {limit_s:g} s"
    return CompileError(stage, because, text or None, TOO_MUCH)


def run_compiler(
    stage: str,
    command: Sequence[str],
    limit_s: float,
    text: str = "",
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Return what a compiler that is a program writes, also where it refuses the `text`. None of
    its processes outlives the call.

    Errors: CompileError where it does not start, is ended, or takes longer than the limit, or more
    than `process_group.MEMORY_GIB`.
    """
    try:
        with program(command, environment) as process:
            output, errors = process.communicate(text, limit_s)
    except OSError as error:
        raise _no_start(stage, command, str(error)) from None
    except subprocess.TimeoutExpired:
        raise lateness(stage, limit_s, text) from None
    status = process.returncode
    if status in _NO_START:
        raise _no_start(stage, command, _first_words(errors))
    if _signal_name(status) or (status and _is_out_of_memory(errors)):
        raise ending(stage, status, errors)
    return subprocess.CompletedProcess(command, status, output, errors)


def _no_start(stage: str, command: Sequence[str], words: str) -> CompileError:
    because = f"{command[0]} does not start: {words}"
    return CompileError(stage, because, hint=DOCTOR)


def _is_out_of_memory(output: str) -> bool:
    """Whether a compiler says so of itself, and not of a line of the text."""
    first = first_error(output)
    is_of_line = first is not None and first[0].line is not None
    return not is_of_line and _OUT_OF_MEMORY.search(output) is not None


def _signal_name(status: int) -> str:
    """Return the signal that ended a process, "" where none did."""
    return signal_name(-status if status < 0 else status - _SHELL)


def _first_words(text: str) -> str:
    """Return the line of an output that says best why a process ended."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = (x for x in lines if any(mark in x.lower() for mark in _MARKS))
    return next(telling, lines[0] if lines else "")[:_LAST_WORDS]
