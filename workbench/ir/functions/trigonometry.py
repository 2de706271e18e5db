"""Trigonometric and hyperbolic functions of float nodes, and their inverses.

The polynomials are minimax fits of the relative error (Remez exchange, 60 digits, rounded to
the float at hand), in powers of z = t**2. Each formula is exact for small results, too: none
subtracts nearly equal numbers.
"""

from __future__ import annotations

import math

from workbench.base.dtypes import dtypes
from workbench.ir.functions.formulas import exp, log1p
from workbench.ir.functions.polynomial import fma, polynomial
from workbench.ir.functions.signs import magnitude, with_sign_of
from workbench.ir.node.uop import UOp

# (atan(t)/t - 1) / z for |t| <= tan(pi/8). Error of t + t*z*p(z): 2**-30.4 and 2**-59.4.
ATAN = {
    dtypes.float32: (
        -0.33333316445350647, 0.19998528063297272, -0.14244391024112701,
        0.10599168390035629, -0.060900524258613586,
    ),
    dtypes.float64: (
        -0.333333333333332, 0.1999999999995368, -0.14285714280200829, 0.11111110783578268,
        -0.09090897760455535, 0.07692060269159598, -0.0666310482700773,
        0.058478964515550416, -0.050393442421009696, 0.03806575861041661,
        -0.01790873456776564,
    ),
}  # fmt: skip

# (asin(t)/t - 1) / z for |t| <= 1/2. Error of t + t*z*p(z): 2**-31.7 and 2**-58.8.
ASIN = {
    dtypes.float32: (
        0.16666659712791443, 0.07500521838665009, 0.04451338201761246,
        0.031838830560445786, 0.014317150227725506, 0.0376909114420414,
    ),
    dtypes.float64: (
        0.1666666666666676, 0.07499999999970863, 0.04464285717456482, 0.03038194270965154,
        0.02237221494221643, 0.01735161273944777, 0.013980812640278673,
        0.011398971965839168, 0.010779940114212265, 0.0037075186806296233,
        0.021704901372928343, -0.020995654631453368, 0.03262658757703738,
    ),
}  # fmt: skip

# (sinh(t)/t - 1) / z for |t| <= 1. Error of t + t*z*p(z): 2**-31.6 and 2**-61.8.
SINH = {
    dtypes.float32: (
        0.1666666716337204, 0.00833331048488617, 0.00019842895562760532,
        2.7822131869470468e-06,
    ),
    dtypes.float64: (
        0.16666666666666669, 0.008333333333332912, 0.0001984126984159341,
        2.755731910675638e-06, 2.5052130998813605e-08, 1.6056659158841829e-10,
        7.77660040253731e-13,
    ),
}  # fmt: skip

# pi/2 and e/2 as floats, each with its rounding error.
HALF_PI = {
    dtypes.float32: (1.5707963705062866, -4.371138828673793e-08),
    dtypes.float64: (1.5707963267948966, 6.123233995736766e-17),
}
HALF_E = {
    dtypes.float32: (1.3591408729553223, 4.1274201834085034e-08),
    dtypes.float64: (1.3591409142295225, 7.228234458646251e-17),
}


def tan(x: UOp) -> UOp:
    """Return tan(x) as sin(x) / cos(x), which have all but their last steps in common."""
    return x.sin() / x.cos()


def atan(x: UOp) -> UOp:
    """Return the angle whose tangent is x, from -pi/2 to pi/2.

    Rewrite: atan(a) -> pi/2 + atan(-1/a) for large a, pi/4 + atan((a - 1) / (a + 1)) near 1
    """
    size = magnitude(x)
    large, middle = size > math.tan(3 * math.pi / 8), size > math.tan(math.pi / 8)
    one, zero = x.like(1.0), x.like(0.0)
    upper = large.where(x.like(-1.0), middle.where(size - 1.0, size))
    lower = large.where(size, middle.where(size + 1.0, one))
    high, low = HALF_PI[x.dtype]
    base = large.where(x.like(high), middle.where(x.like(high / 2), zero))
    rest = large.where(x.like(low), middle.where(x.like(low / 2), zero))
    t = upper / lower
    cubic = fma(t * t * t, polynomial(t * t, ATAN[x.dtype]), rest)
    return _with_sign_of(x, base + (t + cubic))


def asin(x: UOp) -> UOp:
    """Return the angle whose sine is x, from -pi/2 to pi/2; NaN beyond 1.

    Rewrite: asin(a) -> pi/2 - 2 asin(sqrt((1 - a) / 2)) for a above 1/2
    """
    size = magnitude(x)
    large = size > 0.5
    t, cubic = _half_angle(size, large)
    high, low = HALF_PI[x.dtype]
    two = x.like(-2.0)
    far = fma(t, two, fma(cubic, two, x.like(low))) + high
    return _with_sign_of(x, large.where(far, t + cubic))


def acos(x: UOp) -> UOp:
    """Return the angle whose cosine is x, from 0 to pi; NaN beyond 1.

    Rewrite: acos(a) -> 2 asin(sqrt((1 - a) / 2)) for a above 1/2, acos(-a) -> pi - acos(a)
    """
    size = magnitude(x)
    large, negative = size > 0.5, x < 0.0
    t, cubic = _half_angle(size, large)
    high, low = HALF_PI[x.dtype]
    far = (t + cubic) * 2.0
    two = x.like(-2.0)
    beyond = fma(t, two, fma(cubic, two, x.like(2 * low))) + 2 * high
    signed, bent = negative.where(-t, t), negative.where(-cubic, cubic)
    near = (-signed + (-bent + low)) + high
    return large.where(negative.where(beyond, far), near)


def sinh(x: UOp) -> UOp:
    """Return (e**x - e**-x) / 2: a polynomial up to 1, where that would lose digits."""
    size = magnitude(x)
    grown, shrunk = _half_exponentials(size)
    near = size.min(1.0)
    square = near * near
    cubic = near * square * polynomial(square, SINH[x.dtype])
    return _with_sign_of(x, (size < 1.0).where(near + cubic, grown - shrunk))


def cosh(x: UOp) -> UOp:
    """Return (e**x + e**-x) / 2."""
    grown, shrunk = _half_exponentials(magnitude(x))
    return grown + shrunk


def asinh(x: UOp) -> UOp:
    """Return log(x + sqrt(x**2 + 1)) as log1p(a + a**2 / (1 + sqrt(a**2 + 1))), a = |x|."""
    size = magnitude(x)
    argument, large = _below_overflow(size)
    square = argument * argument
    root = (square + 1.0).sqrt()
    near = log1p(argument + square / (root + 1.0))
    return _with_sign_of(x, large.where(_log_of_twice(size), near))


def acosh(x: UOp) -> UOp:
    """Return log(x + sqrt(x**2 - 1)) as log1p(t + sqrt(t * (t + 2))), t = x - 1; NaN below 1."""
    argument, large = _below_overflow(x)
    t = (x < 1.0).where(x.like(math.nan), argument - 1.0)
    return large.where(_log_of_twice(x), log1p(t + (t * (t + 2.0)).sqrt()))


def atanh(x: UOp) -> UOp:
    """Return log((1 + x) / (1 - x)) / 2; infinite at 1 and -1, NaN beyond."""
    size = magnitude(x)
    inside = log1p(size * 2.0 / (1.0 - size)) * 0.5
    edge = size.eq(1.0)
    return _with_sign_of(x, edge.where(x.like(math.inf), inside))


def _with_sign_of(x: UOp, value: UOp) -> UOp:
    """Return `value`, which is not negative, with the sign of x; -0.0 has one, too."""
    return with_sign_of(magnitude(value), x)


def _half_angle(size: UOp, large: UOp) -> tuple[UOp, UOp]:
    """Return t and asin(t) - t for t = sqrt((1 - size) / 2) where `large`, else t = size."""
    square = large.where((1.0 - size) * 0.5, size * size)
    t = large.where(square.sqrt(), size)
    return t, t * square * polynomial(square, ASIN[size.dtype])


def _half_exponentials(size: UOp) -> tuple[UOp, UOp]:
    """Return e**size / 2 and e**-size / 2. The first is finite where e**size no longer is."""
    reduced = exp(size - 1.0)
    high, low = HALF_E[size.dtype]
    return fma(reduced, reduced.like(high), reduced * low), 1 / (2 * math.e) / reduced


def _below_overflow(x: UOp) -> tuple[UOp, UOp]:
    """Return x, clamped to where its square is finite and adding 1 matters, and whether it is
    larger."""
    limit = 2.0**28
    return x.min(limit), x > limit


def _log_of_twice(x: UOp) -> UOp:
    return (x.log2() + 1.0) * math.log(2)
