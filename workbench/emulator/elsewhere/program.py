"""A kernel of a machine that is not here as a Program: the emulator runs it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.backends.buffer import Buffer
from workbench.backends.program.launch import launch_shape
from workbench.backends.program.source import Source
from workbench.base.errors import DeviceError, WorkbenchError
from workbench.base.target import Target
from workbench.base.words import plural
from workbench.emulator.checks.repeats import repeats
from workbench.emulator.emulate import emulated
from workbench.emulator.machine import LANES_AT_ONCE
from workbench.ir.node.uop import UOp

STEP_S = 2e-5
"""Seconds of a step of the program for all work-items that run together, however few."""
LANE_S = 2e-8
"""Seconds of a step for one lane of one work-item more."""
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
        seconds = emulation_s(self.linear)
        if seconds > MOST_S:
            name = self.target.device
            raise DeviceError(
                f"the kernel {self.source.name} is too large to be emulated for {name}",
                f"it would take about {plural(round(seconds), 'second')}, and at most"
                f" {MOST_S:g} are allowed",
                "smaller tensors, of which the kernel has the same loops",
            )


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


def emulation_s(linear: Sequence[UOp]) -> float:
    """Return about how many seconds the emulator takes for a program."""
    launch = launch_shape(linear)
    items = math.prod(launch.grid) * math.prod(launch.group)
    rounds = -(-items // LANES_AT_ONCE)
    return sum(
        times * (rounds * STEP_S + items * max(1, node.dtype.count) * LANE_S)
        for node, times in repeats(linear)
    )
