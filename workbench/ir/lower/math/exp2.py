"""EXP2 as a branch-free polynomial.

The polynomial is a minimax fit of the relative error (Remez exchange, 60 digits, rounded to
the float at hand). Source of the reduction: Cody and Waite 1980.
"""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.ir.functions.polynomial import fma, polynomial
from workbench.ir.lower.math.float_bits import FORMATS, shl, shr
from workbench.ir.node.uop import UOp

# (2**f - 1) / f on [-1/2, 1/2], lowest power first. Error of 1 + f*p(f) relative to 2**f:
# 2**-28.9 and 2**-58.0.
COEFFICIENTS = {
    dtypes.float32: (
        0.6931471824645996, 0.24022647738456726, 0.055503323674201965,
        0.00961843691766262, 0.0013398873852565885, 0.00015353361959569156,
    ),
    dtypes.float64: (
        0.6931471805599453, 0.2402265069591013, 0.055504108664820084,
        0.00961812910759412, 0.0013333558146774623, 0.00015403530457111994,
        1.5252733493125617e-05, 1.3215435282355252e-06, 1.0178199572916699e-07,
        7.0737832408016595e-09, 4.4347711022828345e-10,
    ),
}  # fmt: skip


def exp2(x: UOp) -> UOp:
    """2**x is 2**n * 2**f with n the nearest integer and |f| <= 1/2: a polynomial for 2**f,
    exponent bits for 2**n, in two steps so that subnormals are rounded once."""
    layout = FORMATS[x.dtype]
    x = _clamp(x, -layout.bias - layout.fraction_bits - 3, layout.bias + 3)
    # Adding 1.5 * 2**fraction_bits leaves no room for a fraction: n is in the low bits.
    shift = 1.5 * 2.0**layout.fraction_bits
    shifted = x + shift
    n = shifted + -shift
    f = x + -n
    power = fma(f, polynomial(f, COEFFICIENTS[x.dtype]), x.like(1.0))
    # 2 * bias + n is positive; its halves (rounded down, up) are the two exponents.
    both = shifted.bitcast(layout.uint) + (2 * layout.bias - layout.bits(shift))
    for exponent in (shr(both, 1), shr(both + 1, 1)):
        power = power * shl(exponent, layout.fraction_bits).bitcast(x.dtype)
    return power


def _clamp(x: UOp, low: float, high: float) -> UOp:
    """x within [low, high]; comparisons instead of MAX and MIN let NaN through for free."""
    x = (x < low).where(x.like(low), x)
    return (x.like(high) < x).where(x.like(high), x)
