"""The OCLGRIND runtime: OpenCL C to a Program whose findings are errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import numpy as np

from workbench.backends.buffer import Buffer
from workbench.backends.compilers.child import CompilerProcess
from workbench.backends.compilers.refusal import errors_in, missing_kernel, require_arguments
from workbench.backends.oclgrind.report import findings
from workbench.backends.oclgrind.simulate import Outcome, Simulation, compile_text, simulate
from workbench.backends.program.launch import group_size, item_counts
from workbench.backends.program.source import Source
from workbench.base.errors import CompileError, DefectError, DeviceError

LIMIT_S = 120.0
"""Seconds after which a run counts as hanging."""
_process = CompilerProcess()
P = ParamSpec("P")
R = TypeVar("R")


class OclgrindProgram:
    """A kernel in OpenCL C.

    Errors of a run: DefectError for what Oclgrind finds; CompileError if it refuses the text;
    DeviceError where it crashes or does not end.
    """

    def __init__(self, source: Source):
        self.source = source

    def require_code(self) -> None:
        """Errors: CompileError."""
        with errors_in(self.source):
            count = _ask(compile_text, self.source.text, self.source.name)
            if count < 0:
                raise missing_kernel("opencl", self.source)
            require_arguments("opencl", count, self.source)

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> OclgrindLaunch:
        """Return the kernel with its memory."""
        return OclgrindLaunch(self.source, buffers)


class OclgrindLaunch:
    """A kernel and its memory."""

    def __init__(self, source: Source, buffers: Sequence[Buffer]):
        self.source, self.buffers = source, [*buffers]
        self.slots = source.slots

    def move(self, slot: int, buffer: Buffer) -> None:
        """Give a slot other memory."""
        self.buffers[slot] = buffer

    def __call__(self, wait: bool = True) -> None:
        """Run it; the outputs are written where nothing is wrong."""
        source = self.source
        items, group = item_counts(source.launch), group_size(source.launch)
        before = [self.buffers[s].as_array().tobytes() for s in self.slots]
        request = Simulation(source.text, source.name, before, items, group)
        with errors_in(source):
            outcome = simulated(request)
        _refuse(source, outcome.report)
        for slot, old, new in zip(self.slots, before, outcome.arguments, strict=True):
            if new != old:
                self.buffers[slot].copy_in(np.frombuffer(new, np.uint8))


def simulated(request: Simulation) -> Outcome:
    """Run a kernel in the process of simulations. Errors as of a run of OclgrindProgram."""
    outcome = _ask(simulate, request)
    if outcome.is_last:
        _process.end()
    return outcome


def _ask(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what a function returns in the process of simulations.

    Errors: as of a run of OclgrindProgram.
    """
    try:
        return _process.call(LIMIT_S, function, *args, **kwargs)
    except CompileError as error:
        if error.stage != function.__module__.rpartition(".")[2]:
            raise
        raise DeviceError("the kernel cannot be simulated", error.because, error.hint) from error


def _refuse(source: Source, report: str) -> None:
    """Raise a DefectError for the first finding of a report, if there is one."""
    listed = findings(report)
    if not listed:
        return
    first, texts = listed[0], source.text.split("\n")
    lines = [n for n in dict.fromkeys(first.lines) if n <= len(texts)]
    more = f"; and {len(listed) - 1} more" if len(listed) > 1 else ""
    raise DefectError(
        f"the kernel {source.name} has a defect: {first.kind}",
        first.words + more,
        first.hint,
        "; ".join(f"line {n}: {texts[n - 1].strip()}" for n in lines),
        first.lines,
        tuple(p for n in lines if source.lines for p in source.lines[n - 1]),
    )
