"""Gradients of functions, at the level of functions: the gradient of TANH uses TANH, not its
formula. `g` is the gradient of the node `n`, whose source is `x`.
"""

from __future__ import annotations

import math

from workbench.ir.gradient.rule import GradientRule
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def root(x: UOp) -> UOp:
    """Return 1 / sqrt(x)."""
    return x.sqrt().recip()


def power(g: UOp, n: UOp, x: UOp, y: UOp) -> tuple[UOp, UOp]:
    """Return the gradients of x ** y: y * x ** (y - 1), and x ** y * log(x), which is 0 where x is
    0 and y is not negative."""
    to_base = g * (y * x.alu(Ops.POW, y - 1.0))
    to_exponent = g * (n * x.alu(Ops.LOG))
    is_zero = x.eq(0.0) & (y >= 0.0)
    return (y.eq(0.0).where(g.like(0), to_base), is_zero.where(g.like(0), to_exponent))


def with_sign(g: UOp, n: UOp, x: UOp, y: UOp) -> tuple[UOp, UOp]:
    """Return the gradients of COPYSIGN, n = x with the sign of y: g, or -g where the sign of x is
    another one."""
    return ((x < 0.0) ^ (n < 0.0)).where(-g, g), g.like(0)


# fmt: off
FUNCTIONS: dict[Ops, GradientRule] = {
    Ops.EXP2:      lambda g, n, x: (g * (n * math.log(2)),),
    Ops.LOG2:      lambda g, n, x: (g / (x * math.log(2)),),
    Ops.EXP:       lambda g, n, x: (g * n,),
    Ops.LOG:       lambda g, n, x: (g / x,),
    Ops.SQRT:      lambda g, n, x: (g / (n * 2.0),),
    Ops.SIN:       lambda g, n, x: (g * x.cos(),),
    Ops.COS:       lambda g, n, x: (-g * x.sin(),),
    Ops.TAN:       lambda g, n, x: (g * (n * n + 1.0),),
    Ops.ASIN:      lambda g, n, x: (g * root(1.0 - x * x),),
    Ops.ACOS:      lambda g, n, x: (-g * root(1.0 - x * x),),
    Ops.ATAN:      lambda g, n, x: (g / (x * x + 1.0),),
    Ops.SINH:      lambda g, n, x: (g * x.alu(Ops.COSH),),
    Ops.COSH:      lambda g, n, x: (g * x.alu(Ops.SINH),),
    Ops.ASINH:     lambda g, n, x: (g * root(x * x + 1.0),),
    Ops.ACOSH:     lambda g, n, x: (g * root(x * x - 1.0),),
    Ops.ATANH:     lambda g, n, x: (g / (1.0 - x * x),),
    Ops.SIGMOID:   lambda g, n, x: (g * (n * (1.0 - n)),),
    Ops.SOFTPLUS:  lambda g, n, x: (g * x.alu(Ops.SIGMOID),),
    Ops.TANH:      lambda g, n, x: (g * (1.0 - n * n),),
    Ops.ERF:       lambda g, n, x: (g * ((-(x * x)).alu(Ops.EXP) * (2 / math.sqrt(math.pi))),),
    Ops.POW:       power,
    Ops.ABS:       lambda g, n, x: ((x.like(0) < x).where(g, (x < 0.0).where(-g, g.like(0))),),
    Ops.COPYSIGN:  with_sign,
    Ops.TRUNC:     lambda g, n, x: (g.like(0),),
}
# fmt: on
