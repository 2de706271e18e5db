"""LOG2 as a branch-free polynomial.

The polynomials are minimax fits of the relative error (Remez exchange, 60 digits, rounded to
the float at hand). Source of the reduction in float64: fdlibm's log.
"""

from __future__ import annotations

import math

from workbench.base.dtypes import dtypes
from workbench.ir.functions.polynomial import fma, polynomial
from workbench.ir.lower.math.float_bits import FORMATS, shr
from workbench.ir.node.uop import UOp

# The bits of sqrt(1/2).
HALF_ROOT = {dtypes.float32: 0x3F3504F3, dtypes.float64: 0x3FE6A09E667F3BCD}

# float32: (log2(1 + t) - t/ln 2) / t**2 for 1 + t in [sqrt(1/2), sqrt(2)); error relative to
# log2(1 + t): 2**-27.9.
FLOAT32 = (
    -0.7213473320007324, 0.4808982312679291, -0.36069658398628235,
    0.2885674834251404, -0.23961840569972992, 0.2046004831790924,
    -0.19105593860149384, 0.18617165088653564, -0.10995902121067047,
)  # fmt: skip

# float64: (2*atanh(s)/s - 2) / s**2 as a polynomial in s**2, for s = t / (2 + t) and the same
# t; error relative to log(1 + t): 2**-59.5.
FLOAT64 = (
    0.6666666666666734, 0.39999999999414676, 0.28571428742388133, 0.22222198573116778,
    0.18183564330322546, 0.15314050429515497, 0.1479595106060354,
)  # fmt: skip

# 1 / ln 2 as a float, and its rounding error.
PER_LN2 = {
    dtypes.float32: (1.4426950216293335, 1.925963033500011e-08),
    dtypes.float64: (1.4426950408889634, 2.0355273740931033e-17),
}


def log2(x: UOp) -> UOp:
    """log2(2**e * m) is e + log2(m) with m in [sqrt(1/2), sqrt(2)), so that no digit is lost
    near 1; subnormals are scaled first; 0, negative, infinite and NaN are selected last."""
    layout = FORMATS[x.dtype]
    half_root = HALF_ROOT[x.dtype]
    width = layout.fraction_bits
    small = x < layout.least
    normal = small.where(x * 2.0**width, x)
    bits = normal.bitcast(layout.uint) + (layout.one - half_root)
    mantissa = (bits & ((1 << width) - 1)) + half_root
    t = mantissa.bitcast(x.dtype) - 1.0
    # The biased exponent, or-ed into the fraction of 2**width, is a float without a cast.
    exponent = (shr(bits, width) | ((layout.bias + width) << width)).bitcast(x.dtype)
    bias = 2.0**width + layout.bias
    exponent = exponent + small.where(x.like(-(bias + width)), x.like(-bias))
    return _edges(x, exponent + _near_one(t))


def _near_one(t: UOp) -> UOp:
    """log2(1 + t) for 1 + t in [sqrt(1/2), sqrt(2)): t / ln 2, exact to twice the width, plus a
    small remainder."""
    high, low = (t.like(part) for part in PER_LN2[t.dtype])
    if t.dtype is dtypes.float32:
        rest = t * fma(t, polynomial(t, FLOAT32), low)
    else:
        half_square = t * t * 0.5
        s = t / (t + 2.0)
        z = s * s
        # log(1 + t) is t - h + s*(h + z*p(z)), with h half the square of t.
        inner = fma(z, polynomial(z, FLOAT64), half_square)
        rest = fma(t, low, fma(s, inner, -half_square) * high)
    return fma(t, high, rest)


def _edges(x: UOp, inside: UOp) -> UOp:
    outside = x.eq(0.0).where(x.like(-math.inf), x.like(math.nan))
    above = (x < math.inf).where(inside, x)
    return (x.like(0.0) < x).where(above, outside)
