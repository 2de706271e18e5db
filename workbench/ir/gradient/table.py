"""The gradient rule of each op, and the reason of each op without one."""

from __future__ import annotations

from workbench.ir.gradient.arithmetic import ARITHMETIC
from workbench.ir.gradient.custom import own_gradient
from workbench.ir.gradient.functions import FUNCTIONS
from workbench.ir.gradient.movement import MOVEMENT
from workbench.ir.gradient.reductions import reduction
from workbench.ir.gradient.rule import GradientRule
from workbench.ir.node.ops import Ops

GRADIENTS: dict[Ops, GradientRule] = {
    **ARITHMETIC,
    **FUNCTIONS,
    **MOVEMENT,
    Ops.REDUCE_AXIS: reduction,
    Ops.DETACH: own_gradient,
}
"""An op of the tensor level whose result is a float and which is not here has no gradient: an
error names it where one is asked for."""
OF_RESULT = frozenset(
    {Ops.RECIP, Ops.EXP2, Ops.EXP, Ops.SQRT, Ops.TAN, Ops.SIGMOID, Ops.TANH, Ops.POW}
)
"""Ops whose gradient is written in their result: it can be differentiated by that."""
