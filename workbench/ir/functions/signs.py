"""The sign of float nodes, removed or copied from another node: an op of the tensor level, and bit
operations in a kernel.
"""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


def absolute(x: UOp) -> UOp:
    """Return the absolute value of a float as the op ABS."""
    return x.like(abs(x.arg)) if x.is_const else x.alu(Ops.ABS)


def magnitude(x: UOp) -> UOp:
    """Return the absolute value of a float: its bits without the sign, so that -0.0 gives 0.0."""
    if x.is_const:
        return x.like(abs(x.arg))
    bits = dtypes.named(f"int{x.dtype.bits}")
    return (x.bitcast(bits) & int(bits.max)).bitcast(x.dtype)


def with_sign_of(size: UOp, x: UOp) -> UOp:
    """Return the float `size`, which has no sign bit, with that of x."""
    bits = dtypes.named(f"int{x.dtype.bits}")
    sign = x.bitcast(bits) & int(bits.min)
    return (size.bitcast(bits) | sign).bitcast(x.dtype)


def copysign(x: UOp, y: UOp) -> UOp:
    """Return the magnitude of x with the sign of y."""
    return with_sign_of(magnitude(x), y)
