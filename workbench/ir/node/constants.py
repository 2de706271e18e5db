"""Constants: the neutral element of each combining op, and constants of a shape. EXPAND(CONST) is
one value at every point, and needs no memory.
"""

from __future__ import annotations

from workbench.base.dtypes import DType
from workbench.ir.node.ops import MOVEMENT, REDUCTIONS, Ops
from workbench.ir.node.uop import UOp


def identity(combines: Ops, dtype: DType) -> UOp:
    """Return what an accumulator of ADD, MUL, MAX or MIN starts from."""
    return UOp.const(dtype, REDUCTIONS[combines].identity(dtype))


def full(shape: tuple[int, ...], value: UOp) -> UOp:
    """Return the constant `value` at every point of `shape`."""
    return value if shape == () else UOp(Ops.EXPAND, value.dtype, (value,), shape)


def constant_of(node: UOp) -> UOp | None:
    """Return the CONST that a node is everywhere, or None."""
    if node.op is Ops.EXPAND and node.src[0].op is Ops.CONST:
        return node.src[0]
    return node if node.op is Ops.CONST else None


def is_known(node: UOp) -> bool:
    """Whether a value is a constant under movement ops and casts: no kernel has to run for it."""
    while node.op in MOVEMENT or node.op in (Ops.CAST, Ops.DETACH):
        node = node.src[0]
    return node.op is Ops.CONST
