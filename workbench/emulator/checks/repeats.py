"""How often a program's steps are executed: what every limit of the emulator is a sum of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


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
