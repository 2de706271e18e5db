"""The constant that changes nothing when combined: where an accumulator starts."""

from __future__ import annotations

from workbench.base.dtypes import DType
from workbench.ir.node.ops import REDUCTIONS, Ops
from workbench.ir.node.uop import UOp


def identity(kind: Ops, dtype: DType) -> UOp:
    """Return the identity of ADD, MUL, MAX or MIN on `dtype`."""
    return UOp.const(dtype, REDUCTIONS[kind].identity(dtype))
