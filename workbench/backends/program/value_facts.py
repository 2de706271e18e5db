"""Facts of a value that are known before it is computed."""

from __future__ import annotations

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.bounds import unwrapped_bounds
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


def wrapping_dtype(node: UOp) -> DType | None:
    """Return the unsigned dtype in which a sum, product, shift or negative must be written in C,
    None where it can be written as it is. C computes narrow integers as int; a result that leaves a
    signed type is undefined, and compilers conclude that there is none: x + x has the sign of x."""
    dtype = node.dtype.scalar
    if not dtype.is_int or node.op not in (Ops.ADD, Ops.MUL, Ops.SHL, Ops.NEG):
        return None
    if dtype.kind == "index" or dtype.kind == "uint" and dtype.bits >= 32:
        return None
    is_long = dtype.bits > 32
    least, greatest = unwrapped_bounds(node)
    type_in_c = dtypes.int64 if is_long else dtypes.int32
    if type_in_c.min <= least and greatest <= type_in_c.max:
        return None
    return dtypes.uint64 if is_long else dtypes.uint32
