"""Facts of a value that are known before it is computed, for renderers."""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

QUOTIENT_SCALE = {dtypes.float32: 2.0**100, dtypes.float64: 2.0**1000}
"""Factor by which a divisor is scaled where the quotient overflows; scaled twice, no quotient
overflows."""


def is_number(node: UOp) -> bool:
    """Whether `node` is a constant without NaN."""
    if node.op is Ops.BROADCAST:
        return is_number(node.src[0])
    values = node.arg if node.op is Ops.LANES else (node.arg,)
    return node.op in (Ops.CONST, Ops.LANES) and all(v == v for v in values)


def may_overflow(node: UOp) -> bool:
    """Whether a signed division might be INT_MIN / -1, on which a machine may trap."""
    a, b = node.src
    if node.dtype.kind == "uint":
        return False
    return int(a.vmin) == int(a.dtype.min) and int(b.vmin) <= -1 <= int(b.vmax)
