"""Ctrl-C at a chosen place of the package's code, of all where the interpreter handles signals.

CPython looks for signals where a function begins, after a call, and where a loop goes back; a
signal that comes in native code waits for the next of these. A place has the same number each time,
as long as the program does the same. At other lines and instructions no signal arrives: between the
body of `with lock:` and the release there is none, so a tool that raised there would find faults
that nobody can have.
"""

from __future__ import annotations

import dis
import gc
import signal
import sys
from collections.abc import Callable
from dis import get_instructions
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import workbench

PACKAGE = str(Path(workbench.__file__).parent)
CHECKS = ("RESUME", "CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD")
"""Instructions after which CPython looks for signals."""


class Interrupt:
    """A block in which Ctrl-C is pressed at place number `at` (0: never); `count` is the number of
    places until now."""

    def __init__(self, at: int = 0):
        self.at, self.count = at, 0

    def __enter__(self) -> Interrupt:
        self._before, self._collects = sys.gettrace(), gc.isenabled()
        gc.disable()  # what dies in a collection would add places, others each time
        sys.settrace(self._enter_frame)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)
        if self._collects:
            gc.enable()

    def _enter_frame(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        checks, last = _checks(frame.f_code), -1

        def trace(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal last
            if event == "opcode":
                before, last = last, frame.f_lasti
                if before in checks:
                    self.count += 1
                    if self.count == self.at:
                        signal.raise_signal(signal.SIGINT)
            return trace

        return trace


@cache
def _checks(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions after which signals are handled. The error is that of
    the instruction; a trace function can raise that of the next one alone, so those are left out
    where another `try` or `with` is around that one."""
    steps = [*get_instructions(code)]
    ranges = dis._parse_exception_table(code)  # type: ignore[attr-defined]

    def handler(offset: int) -> int:
        inner = [r.target for r in ranges if r.start <= offset < r.end]
        return inner[-1] if inner else -1

    return frozenset(
        step.offset
        for step, after in pairwise(steps)
        if step.opname in CHECKS and handler(step.offset) == handler(after.offset)
    )


def places(function: Callable[[], Any]) -> int:
    """Return the number of places of a function at which it can be interrupted. It runs twice: from
    CPython 3.12 on, instructions are traced where their code has been traced before."""
    for _ in range(2):
        with Interrupt() as counter:
            function()
    return counter.count


def is_interrupted(function: Callable[[], Any], at: int) -> bool:
    """Run a function, and press Ctrl-C at a place; return whether that ended it, or it has fewer
    places this time, and none was pressed."""
    try:
        with Interrupt(at) as press:
            function()
    except KeyboardInterrupt:
        return True
    return press.count < at
