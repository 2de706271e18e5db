"""Gradients of arithmetic. `g` is the gradient of the node `n`, whose sources are `x`, `y`, ..

Where two sources of MAX or MIN are equal, each gets half. Where one is a constant, the right one
gets all: relu is MAX(x, 0), whose gradient at 0 is 0 and at NaN 1, and clip MAX(low, x), whose
gradient at the limit is 1 and at NaN 0, as in PyTorch.
"""

from __future__ import annotations

from workbench.ir.gradient.rule import GradientRule
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def greatest(g: UOp, n: UOp, x: UOp, y: UOp) -> tuple[UOp, UOp]:
    """Return the gradients of MAX or MIN: all to the source that is the result."""
    loses = (x < y) if n.op is Ops.MAX else (y < x)
    wins = (y < x) if n.op is Ops.MAX else (x < y)
    if n.src[0].is_const:
        return wins.where(g, g.like(0)), (loses | x.eq(y)).where(g, g.like(0))
    # NaN is neither: then both get all, as in PyTorch.
    if n.src[1].is_const:
        return (loses | x.eq(y)).where(g.like(0), g), wins.where(g.like(0), g)
    half = x.eq(y).where(g * 0.5, g)
    return loses.where(g.like(0), half), wins.where(g.like(0), half)


def chosen_by(g: UOp, n: UOp, b: UOp, x: UOp, y: UOp) -> tuple[UOp | None, UOp, UOp]:
    """Return the gradients of WHERE: each branch has that of the elements it gave."""
    return None, b.where(g, g.like(0)), b.where(g.like(0), g)


# fmt: off
ARITHMETIC: dict[Ops, GradientRule] = {
    Ops.ADD:   lambda g, n, x, y: (g, g),
    Ops.MUL:   lambda g, n, x, y: (g * y, g * x),
    Ops.NEG:   lambda g, n, x: (-g,),
    Ops.FDIV:  lambda g, n, x, y: (g / y, -g * n / y),
    Ops.FMOD:  lambda g, n, x, y: (g, -g * (x / y).trunc()),
    Ops.RECIP: lambda g, n, x: (-g * n * n,),
    Ops.MAX:   greatest,
    Ops.MIN:   greatest,
    Ops.WHERE: chosen_by,
    Ops.CAST:  lambda g, n, x: (g.cast(x.dtype),),
}
# fmt: on
