"""A kernel of a machine that is not here as a Program: the emulator runs it."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.buffer import Buffer
from workbench.backends.program.source import Source
from workbench.base.errors import WorkbenchError
from workbench.base.target import Target
from workbench.emulator.checks.limits import require_time
from workbench.emulator.emulate import emulated
from workbench.ir.node.uop import UOp

MOST_S = 20.0
"""A kernel that would take longer is refused."""


class WorkItemProgram:
    """A linear program for a target, run by the emulator."""

    def __init__(self, linear: Sequence[UOp], target: Target, source: Source):
        self.linear, self.target, self.source = tuple(linear), target, source

    def __call__(self, buffers: Sequence[Buffer]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[Buffer]) -> WorkItemLaunch:
        """Return the kernel with its memory. Errors: as `require_room`."""
        self.require_room()
        return WorkItemLaunch(self, [*buffers])

    def require_room(self) -> None:
        """Errors: DeviceError where it is too large to be emulated."""
        require_time(self.linear, self.target, MOST_S)


class WorkItemLaunch:
    """A program and its memory."""

    def __init__(self, program: WorkItemProgram, buffers: list[Buffer]):
        self.program, self.buffers = program, buffers

    def __call__(self, wait: bool = True) -> None:
        """Run. Errors: WorkbenchError for a race, a read of what nobody wrote, and their like."""
        program, arrays = self.program, [buffer.array for buffer in self.buffers]
        findings = emulated(program.linear, arrays, program.target).findings
        if findings:
            what = (
                f"the kernel {program.source.name} is wrong on {program.target.device}"
            )
            more = f", and {len(findings) - 1} more" if len(findings) > 1 else ""
            raise WorkbenchError(what, f"{findings[0]}{more}", "emulate(kernel)")

    def move(self, slot: int, buffer: Buffer) -> None:
        self.buffers[slot] = buffer


def emulated_program(
    linear: Sequence[UOp], target: Target, source: Source
) -> WorkItemProgram:
    """Return the Program of a linear program for a machine that is not here."""
    return WorkItemProgram(linear, target, source)
