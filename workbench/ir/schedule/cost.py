"""The scheduler's cost figures: what a value costs to compute, and what storing it costs.

Unit: about one float operation. Rough on purpose: the decisions they feed are recorded with
the figures, so that a reader can disagree.
"""

from __future__ import annotations

from collections import Counter

from workbench.ir.ops import CASTS, ELEMENTWISE, Ops
from workbench.ir.uop import UOp

STORE_COST = 8.0
"""Per element: written once and read back."""
LAUNCH_COST = 10_000.0
"""Per kernel: compiling apart, a launch and its bookkeeping."""
TILE_REUSE = 8.0
"""A register tile computes an elementwise operand once for about this many uses."""
PARALLEL_WORK = 1 << 16
"""A full reduction of more elements than this, fused before a loop, holds up the other cores."""

_OP_COST = {Ops.EXP2: 20.0, Ops.LOG2: 20.0, Ops.IDIV: 10.0, Ops.MOD: 10.0}
_OP_COST |= {Ops.FDIV: 5.0, Ops.SQRT: 5.0, Ops.RECIP: 5.0}
_CAP = 1e30


def totals(nodes: dict[UOp, None]) -> dict[UOp, float]:
    """Return per node what computing all of it costs, everything below it fused once.

    The cost of a value that several others use is shared out among them.
    """
    users = Counter(s for node in nodes for s in set(node.src))
    cost: dict[UOp, float] = {}
    for node in nodes:
        below = sum(cost[s] / users[s] for s in set(node.src))
        cost[node] = min(_CAP, below + _own(node))
    return cost


def _own(node: UOp) -> float:
    if node.op in ELEMENTWISE:
        return node.size * (0.0 if node.op in CASTS else _OP_COST.get(node.op, 1.0))
    if node.op is Ops.REDUCE_AXIS:
        return float(node.src[0].size)
    if node.op in (Ops.BUFFER, Ops.IOTA):
        return float(node.size)
    return 0.0


def reducing(nodes: dict[UOp, None], boundaries: set[UOp]) -> dict[UOp, bool]:
    """Return per node whether it has a reduction below it, up to the values already stored."""
    found: dict[UOp, bool] = {}
    for node in nodes:
        found[node] = node.op is Ops.REDUCE_AXIS or any(
            found[s] and s not in boundaries for s in node.src
        )
    return found
