"""Division of nodes that are one dtype and shape: true, truncated, floored, and what is left."""

from __future__ import annotations

import math

from workbench.dtypes import dtypes
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp
from workbench.tensor.broadcast import cast_to, filled
from workbench.tensor.rounding import floored


def divided(a: UOp, b: UOp, rounding: str | None) -> UOp:
    """Return a / b; with `rounding` "trunc" or "floor" rounded so. No bools.

    Dtypes: integers give float32; rounded, they stay integers.
    """
    if rounding is None and not a.dtype.is_float:
        a, b = cast_to(a, dtypes.default_float), cast_to(b, dtypes.default_float)
    if not a.dtype.is_float:
        return a.alu(Ops.IDIV, b) if rounding == "floor" else _truncated(a, b)
    if rounding == "floor":
        return _floored(a, b)[0]
    quotient = a.alu(Ops.FDIV, b)
    return quotient if rounding is None else quotient.alu(Ops.TRUNC)


def remainder(a: UOp, b: UOp) -> UOp:
    """Return a - floor(a / b) * b, which has the sign of b. No bools.

    Of floats it is exact while abs(a / b) < 2**26; beyond that it is as good as its parts.
    """
    return _floored(a, b)[1] if a.dtype.is_float else a.alu(Ops.MOD, b)


def _floored(a: UOp, b: UOp) -> tuple[UOp, UOp]:
    """Return floor(a / b) of floats, and what is left, as numpy has them at the infinities.

    The rounded quotient may be the whole number above: 1 / 0.1 is 10, but 0.1 is a little more
    than a tenth, and goes only 9 times. The rest then has the wrong sign, and one is given back.
    """
    kind = a.dtype
    a, b = filled(a, b)
    a, b = cast_to(a, dtypes.float64), cast_to(b, dtypes.float64)
    whole = floored(a.alu(Ops.FDIV, b))
    # Half of the bits of b times a whole number of up to 26 bits is exact.
    half = b.bitcast(dtypes.int64).alu(Ops.AND, UOp.const(dtypes.int64, -1 << 27))
    high = half.bitcast(dtypes.float64)
    low = b + high.alu(Ops.NEG)
    rest = a + (whole * high).alu(Ops.NEG) + (whole * low).alu(Ops.NEG)
    over = _differ(rest, b)
    whole, rest = over.where(whole + (-1.0), whole), over.where(rest + b, rest)
    # An infinite b goes 0 times, or, against the sign, once less.
    against = _differ(a, b)
    is_number = a.alu(Ops.CMPEQ, a).alu(Ops.AND, _is_infinite(a).alu(Ops.NOT))
    by_infinity = _is_infinite(b).alu(Ops.AND, is_number)
    whole = by_infinity.where(against.where(a.like(-1.0), a.like(0.0)), whole)
    rest = by_infinity.where(against.where(b, a), rest)
    no_number = _is_infinite(a).alu(Ops.AND, b.alu(Ops.CMPNE, b.like(0.0)))
    whole = no_number.where(a.like(math.nan), whole)
    return cast_to(whole, kind), cast_to(rest, kind)


def _differ(x: UOp, y: UOp) -> UOp:
    """Return whether x is on the other side of 0 than y; 0 is on no side."""
    return (x < 0.0).alu(Ops.XOR, y < 0.0).alu(Ops.AND, x.alu(Ops.CMPNE, x.like(0.0)))


def _is_infinite(x: UOp) -> UOp:
    low, high = x.like(-math.inf), x.like(math.inf)
    return x.alu(Ops.CMPEQ, low).alu(Ops.OR, x.alu(Ops.CMPEQ, high))


def _truncated(a: UOp, b: UOp) -> UOp:
    """Return the integer quotient rounded towards zero.

    Floored and truncated differ by one where the signs differ and something is left over.
    """
    a, b = filled(a, b)
    quotient = a.alu(Ops.IDIV, b)
    left_over = a.alu(Ops.MOD, b).alu(Ops.CMPNE, a.like(0))
    differ = (a < 0).alu(Ops.XOR, b < 0)
    up = left_over.alu(Ops.AND, differ)
    return up.where(quotient + a.like(1), quotient)
