"""SIN and COS without branches, accurate up to the greatest finite number.

x is n * pi/2 + r with r at most pi/4; sin and cos of r are polynomials, and n says which of them
is the answer, and its sign. n and r come from one integer product (argument_reduction.py), because
subtracting multiples of pi/2 in floats fails for large x; a second method for small x would only
add cost: without branches both are computed.

The polynomials are minimax fits of the relative error (Remez exchange, 60 digits, rounded to
the float at hand). SIN and COS of one x share all but the last selection.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from workbench.base.dtypes import dtypes
from workbench.ir.functions.polynomial import fma, polynomial
from workbench.ir.lower.math.argument_reduction import reduce_argument
from workbench.ir.lower.math.float_bits import FORMATS, shl
from workbench.ir.node.uop import UOp

# (sin(r)/r - 1) / r**2 in powers of r**2 for |r| <= pi/4. Error of r + r**3 * p(r**2)
# relative to sin(r): 2**-27.9 and 2**-57.9.
SINE = {
    dtypes.float32: (
        -0.16666655242443085, 0.008332189172506332, -0.00019518291810527444,
    ),
    dtypes.float64: (
        -0.1666666666666663, 0.00833333333332184, -0.0001984126982935851,
        2.7557313538498488e-06, -2.505073438527801e-08, 1.5895432974473673e-10,
    ),
}  # fmt: skip

# (cos(r) - 1) / r**2 likewise. Error of 1 + r**2 * q(r**2): 2**-33.0 and 2**-63.9.
COSINE = {
    dtypes.float32: (
        -0.5, 0.04166664555668831, -0.0013887309469282627, 2.4432327336398885e-05,
    ),
    dtypes.float64: (
        -0.5, 0.041666666666666595, -0.0013888888888873342, 2.4801587289002076e-05,
        -2.7557314217035774e-07, 2.087570539521945e-09, -1.1358749174703334e-11,
    ),
}  # fmt: skip

# pi/2 as a float, and its rounding error.
HALF_PI = {
    dtypes.float32: (1.5707963705062866, -4.371138828673793e-08),
    dtypes.float64: (1.5707963267948966, 6.123233995736766e-17),
}


class _Reduced(NamedTuple):
    """|x| is `quadrant` times pi/2 (mod 4), and a remainder with this sine and cosine."""

    quadrant: UOp
    sine: UOp
    cosine: UOp


def sin(x: UOp) -> UOp:
    """sin(-x) is -sin(x), -0.0 included: the sign of x is put back last."""
    size, sign = _split(x)
    part = _reduce(size)
    return _sine_in_quadrant(size, part.quadrant, part, sign)


def cos(x: UOp) -> UOp:
    """cos(x) is sin(|x| + pi/2), which costs no digit: the quadrant is an integer."""
    size, _ = _split(x)
    part = _reduce(size)
    return _sine_in_quadrant(size, part.quadrant + 1, part)


def _split(x: UOp) -> tuple[UOp, UOp]:
    """Return |x| and the sign bit of x, alone in an integer."""
    layout = FORMATS[x.dtype]
    bits, sign = x.bitcast(layout.uint), 1 << (layout.uint.bits - 1)
    return (bits & (sign - 1)).bitcast(x.dtype), bits & sign


def _reduce(x: UOp) -> _Reduced:
    quadrant, high, low = reduce_argument(x)
    half_pi, missing = (x.like(part) for part in HALF_PI[x.dtype])
    rest = high * half_pi
    # The rounding error of the product (0 where an FMA rounds twice), and the terms left out.
    lost = fma(low, half_pi, fma(high, missing, fma(high, half_pi, -rest)))
    small = x < math.pi / 4
    rest, lost = small.where(x, rest), small.where(x.like(0.0), lost)
    square = rest * rest
    curve = polynomial(square, COSINE[x.dtype])
    cosine = fma(square, curve, -(rest * lost)) + 1.0
    cubic = polynomial(square, SINE[x.dtype])
    sine = fma(rest * square, cubic, lost * cosine) + rest
    return _Reduced(small.where(quadrant.like(0), quadrant), sine, cosine)


def _sine_in_quadrant(size: UOp, quadrant: UOp, part: _Reduced, sign: UOp | None = None) -> UOp:
    """Return sin(`part` + `quadrant` * pi/2) with `sign`; NaN for infinities and NaN."""
    uint = quadrant.dtype
    odd = (quadrant & 1).ne(0)
    value = odd.where(part.cosine, part.sine)
    # Two quadrants change the sign: their bit is moved to where the sign is.
    flip = shl(quadrant & 2, uint.bits - 2)
    flip = flip if sign is None else flip ^ sign
    value = (value.bitcast(uint) ^ flip).bitcast(size.dtype)
    return (size < math.inf).where(value, size.like(math.nan))
