"""The predicted duration of an emulation: the number of executions of each step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from workbench.backends.program.launch import launch_shape
from workbench.emulator.loops.ends import ends_of
from workbench.emulator.loops.rounds import rounds_plan
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
    goes = -(-items // LANES_AT_ONCE)
    at_once = rounds_at_once(linear, max(1, min(items, LANES_AT_ONCE)))
    return sum(
        times * goes / at_once.get(position, 1) * STEP_S
        + times * items * max(1, node.dtype.count) * LANE_S
        for position, (node, times) in enumerate(repeats(linear))
    )


def rounds_at_once(linear: Sequence[UOp], items: int) -> Mapping[int, int]:
    """Return how many rounds of its loop are done at once, by the position of each step that is not
    done round by round."""
    at_once: dict[int, int] = {}
    ends = ends_of(linear)
    for position, node in enumerate(linear):
        if node.op is not Ops.LOOP:
            continue
        plan = rounds_plan(linear, position + 1, ends[position], node.axis)
        if plan is None:
            continue
        rounds = min(plan.at_once(items), node.axis.extent)
        steps = range(position, ends[position])
        at_once |= {p: rounds for p in steps if linear[p] not in plan.by_round}
    return at_once
