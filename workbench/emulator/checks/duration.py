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


def work_of(linear: Sequence[UOp]) -> int:
    """Return how many nodes all work-items of a launch execute together."""
    return _items(linear) * sum(times for _, times in repeats(linear))


def emulation_s(linear: Sequence[UOp]) -> float:
    """Return about how many seconds the emulator takes for a program."""
    items = _items(linear)
    rounds = -(-items // LANES_AT_ONCE)
    return sum(
        times * (rounds * STEP_S + items * max(1, node.dtype.count) * LANE_S)
        for node, times in repeats(linear)
    )


def _items(linear: Sequence[UOp]) -> int:
    launch = launch_shape(linear)
    return math.prod((*launch.grid, *launch.group))
