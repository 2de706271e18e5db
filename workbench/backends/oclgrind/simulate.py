"""The simulation of a kernel by Oclgrind in a process of its own, which detects races and reads of
unwritten memory.

The kernel is compiled without optimisations: those remove conditions that depend on unwritten
memory, and Oclgrind's check of such reads crashes on some of their vectors.
"""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from typing import Any, NamedTuple

from workbench.backends.compilers.opencl import build
from workbench.base.errors import CompileError
from workbench.base.libraries import library

MOST_MESSAGES = 20_000
"""Oclgrind writes no more than this number of messages in the life of its process."""
_messages: list[int] = []
_ENVIRONMENT = {
    "OCLGRIND_NUM_THREADS": "1",  # so that it says the same each time
    "OCLGRIND_DATA_RACES": "1",
    "OCLGRIND_UNINITIALIZED": "1",
    "OCLGRIND_MAX_ERRORS": str(MOST_MESSAGES),
    "PYOPENCL_NO_CACHE": "1",
}


class Simulation(NamedTuple):
    """A kernel by its text and name, the bytes of its arguments, and along x, y and z the
    work-items of all groups and of one."""

    text: str
    name: str
    arguments: list[bytes]
    items: tuple[int, ...]
    group: tuple[int, ...]


class Outcome(NamedTuple):
    """The arguments after a run, what Oclgrind wrote, and whether its process should end: it has
    written half of what it can."""

    arguments: list[bytes]
    report: str
    is_last: bool


def compile_text(text: str, name: str) -> int:
    """Compile a kernel, which a run of it then finds compiled; return the number of its arguments,
    -1 where the text has no such kernel.

    Errors: CompileError where Oclgrind refuses the text.
    """
    simulator = _simulator()
    try:
        return int(simulator.cl.Kernel(simulator.program(text), name).num_args)
    except simulator.cl.Error:
        return -1


def simulate(request: Simulation) -> Outcome:
    """Run a kernel. Errors: as `compile_text`."""
    with tempfile.TemporaryFile() as log:
        stderr = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            arguments = _simulator().run(request)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        log.seek(0)
        report = log.read().decode(errors="replace")
    _messages.append(report.count("\n\n"))
    return Outcome(arguments, report, sum(_messages) > MOST_MESSAGES // 2)


@lru_cache
def _simulator() -> _Simulator:
    return _Simulator()


class _Simulator:
    """Oclgrind's device, and the programs that it has compiled."""

    def __init__(self) -> None:
        os.environ |= _ENVIRONMENT  # read when a context is made
        cl = self.cl = library("pyopencl")
        names = [(p.name.lower(), p) for p in cl.get_platforms()]
        platform = next(p for name, p in names if "oclgrind" in name)
        self.context = cl.Context(platform.get_devices()[:1])
        self.queue = cl.CommandQueue(self.context)
        self.programs: dict[str, Any] = {}

    def program(self, text: str) -> Any:
        """Return a text, compiled. Errors: CompileError."""
        if text not in self.programs:
            self.programs[text] = build(self.context, text, "-cl-opt-disable")
        return self.programs[text]

    def run(self, request: Simulation) -> list[bytes]:
        """Return the arguments after a run."""
        program = self.program(request.text)
        try:
            return self._launch(self.cl.Kernel(program, request.name), request)
        except self.cl.Error as error:
            because = " ".join(str(error).split())[-400:]
            raise CompileError("oclgrind", because) from error

    def _launch(self, kernel: Any, request: Simulation) -> list[bytes]:
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
