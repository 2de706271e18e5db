"""The constant that changes nothing when combined: where an accumulator starts."""

from __future__ import annotations

from workbench.base.dtypes import DType
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def identity(kind: Ops, dtype: DType) -> UOp:
    """Return the identity of ADD, MUL, MAX or MIN on `dtype`."""
    value = {Ops.ADD: 0, Ops.MUL: 1, Ops.MAX: dtype.min, Ops.MIN: dtype.max}[kind]
    return UOp.const(dtype, value)
