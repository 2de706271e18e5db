"""The ends of the blocks of a linear program."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def ends_of(linear: Sequence[UOp]) -> dict[int, int]:
    """Return the position of the end of each LOOP and IF."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for position, node in enumerate(linear):
        if node.op in (Ops.LOOP, Ops.IF):
            opened.append(position)
        elif node.op in (Ops.ENDLOOP, Ops.ENDIF):
            ends[opened.pop()] = position
    return ends
