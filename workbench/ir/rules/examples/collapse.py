"""Examples of the rules for reductions without a loop, checked by tests: graphs, and their results
in words.
"""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.example_graphs import axis, load, param, reduced

ROWS = 6
LENGTH = 9
g0, r0 = axis("g0", ROWS), axis("r0", LENGTH)
I32 = dtypes.int32
COLUMN = load(param(1, LENGTH), r0)
"""Element r0 of a row of floats."""
F32 = dtypes.float32
HALVES = load(param(1, LENGTH, dtypes.float16), r0)
CHOICE = load(param(2, ROWS, I32), g0)
"""A number from memory, one per row."""
OTHER_LOAD = load(param(3, ROWS), g0)


def picked(mask: UOp, value: UOp) -> UOp:
    return reduced(Ops.ADD, mask.where(value, value.like(0)), r0)


def equals(left: UOp, right: UOp) -> UOp:
    return left.alu(Ops.CMPEQ, right)


EXAMPLES: dict[str, list[tuple[UOp, str]]] = {
    "sum-one-position": [
        (
            picked(equals(CHOICE, r0.cast(I32)), COLUMN),
            "p1[index(p2[g0]) where (-1 < index(p2[g0])) & (index(p2[g0]) < 9)]",
        ),
        (picked(equals(g0, r0), COLUMN), "p1[g0]"),
        (
            reduced(Ops.ADD, equals(g0, r0).where(HALVES, HALVES.like(0)).cast(F32), r0),
            "float32(p1[g0])",
        ),
        (picked(equals(g0, r0 + 2), COLUMN), "p1[g0 - 2 where 1 < g0]"),
        (picked(equals(r0 * -1 + 8, g0), COLUMN), "p1[g0*-1 + 8]"),
    ],
    "sum-counted": [
        (picked(r0 < g0, OTHER_LOAD), "where(0 < g0, p3[g0]*float32(g0), 0.0)"),
        (picked(r0 < 4, OTHER_LOAD), "p3[g0]*4.0"),
        (reduced(Ops.ADD, (r0 < g0).cast(I32), r0), "int32(g0)"),
        (picked((r0 >= 2) & (r0 < 20), OTHER_LOAD), "p3[g0]*7.0"),
    ],
}  # fmt: skip
