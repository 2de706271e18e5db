"""A kernel on Oclgrind, twice: once to look for races, and once, compiled without optimisations, to
look for reads of what nobody wrote (which Oclgrind cannot do with all that a compiler makes of
vectors). It runs in a process of its own.
"""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from typing import Any, NamedTuple

from workbench.base.errors import CompileError
from workbench.base.libraries import library

MOST_MESSAGES = 20_000
"""Oclgrind says nothing after so many, for as long as its process lives."""
_messages: list[int] = []
_LANGUAGE = "-cl-std=CL1.2"


class Request(NamedTuple):
    """A kernel by its text and name, the bytes of its arguments, and along x, y and z the
    work-items of all groups and of one."""

    text: str
    name: str
    arguments: list[bytes]
    items: tuple[int, ...]
    group: tuple[int, ...]


class _Check(NamedTuple):
    """What Oclgrind is to look for: the variable that says so, and how kernels are compiled."""

    variable: str
    options: str


RACES = _Check("OCLGRIND_DATA_RACES", _LANGUAGE)
UNWRITTEN = _Check("OCLGRIND_UNINITIALIZED", f"{_LANGUAGE} -cl-opt-disable")


class Outcome(NamedTuple):
    """The arguments after a run, what Oclgrind wrote, and whether its process should end: it has
    said half of what it can say."""

    arguments: list[bytes]
    report: str
    is_last: bool


def simulate(request: Request) -> Outcome:
    """Run a kernel.

    Errors: CompileError where it refuses the text.
    """
    with tempfile.TemporaryFile() as log:
        stderr = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            arguments = _context(RACES).run(request)
            _context(UNWRITTEN).run(request)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        log.seek(0)
        report = log.read().decode(errors="replace")
    _messages.append(report.count("\n\n"))
    return Outcome(arguments, report, sum(_messages) > MOST_MESSAGES // 2)


@lru_cache
def _context(check: _Check) -> _Context:
    return _Context(check)


class _Context:
    """Oclgrind's device with one check, and the programs that it has compiled."""

    def __init__(self, check: _Check):
        os.environ |= {
            "PYOPENCL_NO_CACHE": "1",
            "OCLGRIND_MAX_ERRORS": str(MOST_MESSAGES),
        }
        cl = self.cl = library("pyopencl")
        names = [(p.name.lower(), p) for p in cl.get_platforms()]
        platform = next(p for name, p in names if "oclgrind" in name)
        os.environ[check.variable] = "1"  # read when a context is made
        self.context = cl.Context(platform.get_devices()[:1])
        del os.environ[check.variable]
        self.queue = cl.CommandQueue(self.context)
        self.options = check.options
        self.programs: dict[str, Any] = {}

    def run(self, request: Request) -> list[bytes]:
        """Return the arguments after a run."""
        cl, text = self.cl, request.text
        try:
            if text not in self.programs:
                program = cl.Program(self.context, text).build(options=self.options)
                self.programs[text] = program
            return self._launch(cl.Kernel(self.programs[text], request.name), request)
        except cl.Error as error:
            because = " ".join(str(error).split())[-400:]
            raise CompileError("oclgrind", because) from error

    def _launch(self, kernel: Any, request: Request) -> list[bytes]:
        cl, flags = self.cl, self.cl.mem_flags.READ_WRITE
        arrays = [bytearray(data) for data in request.arguments]
        memory = [cl.Buffer(self.context, flags, max(1, len(a))) for a in arrays]
        for buffer, array in zip(memory, arrays, strict=True):
            if array:
                cl.enqueue_copy(self.queue, buffer, array)
        if memory:
            kernel.set_args(*memory)
        cl.enqueue_nd_range_kernel(self.queue, kernel, request.items, request.group)
        self.queue.finish()
        for buffer, array in zip(memory, arrays, strict=True):
            if array:
                cl.enqueue_copy(self.queue, array, buffer)
            buffer.release()
        return [bytes(array) for array in arrays]
