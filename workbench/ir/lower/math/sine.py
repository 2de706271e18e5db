"""SIN and COS without branches, right up to the greatest finite number.

x is n quarter turns and a rest r of at most an eighth of a turn; sin and cos of r are
polynomials, and n says which of them is wanted and with which sign. n and r come from one
integer product (turns.py), because subtracting multiples of pi/2 in floats fails for large x,
and a second way for small x would only come on top: without branches both are computed.

The polynomials are minimax fits of the relative error (Remez exchange, 60 digits, rounded to
the float at hand). SIN and COS of one x share all but the last selection.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from workbench.base.dtypes import dtypes
from workbench.ir.lower.math.argument_reduction import quarter_turns
from workbench.ir.lower.math.float_bits import FORMATS, fma, polynomial, shl
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

# pi/2 as a float and what that float lacks.
QUARTER = {
    dtypes.float32: (1.5707963705062866, -4.371138828673793e-08),
    dtypes.float64: (1.5707963267948966, 6.123233995736766e-17),
}


class _Reduced(NamedTuple):
    """|x| is `quarters` quarter turns (mod 4) and a rest with this sine and cosine."""

    quarters: UOp
    sine: UOp
    cosine: UOp


def sin(x: UOp) -> UOp:
    """sin(-x) is -sin(x), -0.0 included: the sign of x is put back last."""
    size, sign = _split(x)
    part = _reduce(size)
    return _turned(size, part.quarters, part, sign)


def cos(x: UOp) -> UOp:
    """cos(x) is sin(|x| and a quarter turn more), which costs no digit: the turn is a count."""
    size, _ = _split(x)
    part = _reduce(size)
    return _turned(size, part.quarters + 1, part)


def _split(x: UOp) -> tuple[UOp, UOp]:
    """Return |x| and the sign bit of x, alone in an integer."""
    form = FORMATS[x.dtype]
    bits, sign = x.bitcast(form.uint), 1 << (form.uint.bits - 1)
    return (bits & (sign - 1)).bitcast(x.dtype), bits & sign


def _reduce(x: UOp) -> _Reduced:
    quarters, high, low = quarter_turns(x)
    quarter, lacks = (x.like(part) for part in QUARTER[x.dtype])
    rest = high * quarter
    # What the product lost in rounding (0 where an FMA rounds twice), and the parts left out.
    lost = fma(low, quarter, fma(high, lacks, fma(high, quarter, -rest)))
    small = x < math.pi / 4
    rest, lost = small.where(x, rest), small.where(x.like(0.0), lost)
    square = rest * rest
    curve = polynomial(square, COSINE[x.dtype])
    cosine = fma(square, curve, -(rest * lost)) + 1.0
    cubic = polynomial(square, SINE[x.dtype])
    sine = fma(rest * square, cubic, lost * cosine) + rest
    return _Reduced(small.where(quarters.like(0), quarters), sine, cosine)


def _turned(size: UOp, quarters: UOp, part: _Reduced, sign: UOp | None = None) -> UOp:
    """Return sin(`part` and `quarters` quarter turns), with `sign`; NaN for what is not finite."""
    uint = quarters.dtype
    odd = (quarters & 1).ne(0)
    value = odd.where(part.cosine, part.sine)
    # Two quarter turns change the sign: their bit is moved to where the sign is.
    flip = shl(quarters & 2, uint.bits - 2)
    flip = flip if sign is None else flip ^ sign
    value = (value.bitcast(uint) ^ flip).bitcast(size.dtype)
    return (size < math.inf).where(value, size.like(math.nan))
