"""How long the emulator takes for a program, before it runs it: how often each step is executed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from workbench.backends.program.launch import launch_shape
from workbench.emulator.machine import LANES_AT_ONCE
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

STEP_S = 2e-5
"""Seconds of a step of the program for all work-items that run together, however few."""
LANE_S = 2e-8
"""Seconds of a step for one lane of one work-item more."""


def repeats(linear: Sequence[UOp]) -> Iterator[tuple[UOp, int]]:
    """Yield each step of a linear program with how often a work-item executes it at most: that of a
    loop as often as its body."""
    times = [1]
    for node in linear:
        if node.op is Ops.LOOP:
            times.append(times[-1] * node.axis.extent)
        elif node.op is Ops.ENDLOOP:
            times.pop()
        yield node, times[-1]


def emulation_s(linear: Sequence[UOp], groups: int | None = None) -> float:
    """Return about how many seconds the emulator takes for a program, or for a number of its
    work-groups."""
    launch = launch_shape(linear)
    count = math.prod(launch.grid) if groups is None else groups
    items = count * math.prod(launch.group)
    rounds = -(-items // LANES_AT_ONCE)
    return sum(
        times * (rounds * STEP_S + items * max(1, node.dtype.count) * LANE_S)
        for node, times in repeats(linear)
    )
