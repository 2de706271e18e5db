"""Splitting large reductions to few values: partial reductions, then a reduction of their results.

A sum of a million numbers to one has no output axis: cores cannot share it, and it cannot be
stopped half way. As 256 partial sums and a small sum of those it allows both, and rounds less:
errors grow with the length of a chain. Source of the idea: the two-stage reductions of GPUs.
"""

from __future__ import annotations

from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet
from workbench.ir.schedule.cost import FEW_RESULTS, SPLIT_WORK

PARTS = 256
"""Most partial results per result."""
FEWEST_PARTS = 16
"""Fewest partial results per result: fewer would not occupy the cores of a large machine."""


def is_large(n: UOp, x: UOp) -> bool:
    """Whether the reduction is long enough, and its results few enough, to share the work out."""
    return x.size >= SPLIT_WORK and 0 < n.size <= FEW_RESULTS


def split(n: UOp, x: UOp) -> UOp | None:
    """A large reduction is a reduction of partial ones, each over a stretch of one axis."""
    axes = n.reduced_axes
    for axis in sorted(axes):
        parts = _divisor(x.shape[axis])
        if parts:
            break
    else:
        return None
    shape = (*x.shape[:axis], parts, x.shape[axis] // parts, *x.shape[axis + 1 :])
    stretches = UOp(Ops.RESHAPE, x.dtype, (x,), shape)
    inner = tuple(a + (a >= axis) for a in sorted(axes))
    partial = construct.reduce_axis(stretches, inner, n.combines)
    ones = tuple(1 if a in axes and a != axis else s for a, s in enumerate(x.shape))
    rows = (*ones[:axis], parts, *ones[axis + 1 :])
    row = UOp(Ops.RESHAPE, x.dtype, (partial,), rows)
    return construct.reduce_axis(row, (axis,), n.combines)


def _divisor(size: int) -> int:
    """Return the largest divisor of `size` between FEWEST_PARTS and PARTS, or 0."""
    return next((d for d in range(PARTS, FEWEST_PARTS - 1, -1) if size % d == 0), 0)


SPLIT_RULES = RuleSet(
    "split-reductions",
    [Rule("split-reduction", op(Ops.REDUCE_AXIS, var("x"), name="n"), split, where=is_large)],
)
