"""Formulas of functions of float nodes, in EXP2, LOG2 and arithmetic, accurate at extremes.

Sections: Multiply-adds and polynomials, the parts of the formulas of functions; The sign of
float nodes, removed or copied from another node; Formulas of functions of float nodes, in EXP2,
LOG2 and arithmetic, accurate at extremes; The error function of float nodes; Rounding of float
nodes to whole numbers, by TRUNC, comparisons and sums that round; x ** y of floats, as 2 **
(log2(x) * y) with IEEE's results at the edges; Trigonometric and hyperbolic functions of float
nodes, and their inverses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# Multiply-adds and polynomials, the parts of the formulas of functions.
#
# Formulas contain their multiply-adds explicitly. Of all other sums only those of a REDUCE become
# multiply-adds (the rule form-fma).


def fma(a: UOp, b: UOp, c: UOp) -> UOp:
    """Return a * b + c, rounded once where the machine can."""
    return a.alu(Ops.FMA, b, c)


def polynomial(x: UOp, coefficients: Sequence[float]) -> UOp:
    """Return the polynomial of x, by Horner's rule; `coefficients` start with the lowest power."""
    *rest, value = [x.like(c) for c in coefficients]
    for coefficient in reversed(rest):
        value = fma(value, x, coefficient)
    return value


# --------------------------------------------------------------------------------------------------
# The sign of float nodes, removed or copied from another node: an op of the tensor level, and bit
# operations in a kernel.


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
    """Return `size`, a float without a sign bit, with the sign bit of x."""
    bits = dtypes.named(f"int{x.dtype.bits}")
    sign = x.bitcast(bits) & int(bits.min)
    return (size.bitcast(bits) | sign).bitcast(x.dtype)


def copysign(x: UOp, y: UOp) -> UOp:
    """Return the magnitude of x with the sign of y."""
    return with_sign_of(magnitude(x), y)


# --------------------------------------------------------------------------------------------------
# Formulas of functions of float nodes, in EXP2, LOG2 and arithmetic, accurate at extremes.

Formula = Callable[[UOp], UOp]

LOG2_E = math.log2(math.e)
NEGLIGIBLE = -60 * math.log(2)
"""The logarithm of a number that is lost beside 1 in every float, and is a normal one in all. A
product that is not, or is 0 because it is too small, takes a processor some 150 cycles."""


def exp(x: UOp) -> UOp:
    """Return e ** x, as a power of two whose exponent is carried to twice the precision."""
    return exp_from(-_exp_constants(x.dtype)[0], x)


def exp_from(least: float, x: UOp) -> UOp:
    """Return e ** x, or e ** least for an x below that.

    It is 2 ** (x * log2(e)), with the product carried to twice the precision.

    Rounding x * log2(e) once would cost up to 60 units in the last place of a float32, because the
    integer part takes bits from the fraction. So x is split into whole + rest, and log2(e) into a
    short high part and a low part. Then whole * high is exact, and the rounding error of the sum
    can be computed: it corrects the result. Source: Dekker 1971.
    """
    limit, high, low = _exp_constants(x.dtype)
    exponent = x.max(least).min(limit)
    whole = exponent.trunc()
    rest = exponent - whole
    large = whole, x.like(high)
    small = fma(whole, x.like(low), rest * LOG2_E)
    power = fma(*large, small)
    error = fma(*large, -power) + small
    return power.exp2() * fma(error, x.like(math.log(2)), x.like(1.0))


def sigmoid(x: UOp) -> UOp:
    """Return 1 / (1 + e ** -x); where e ** -x is infinite, this is 0, as it should be."""
    return 1.0 / (exp_from(NEGLIGIBLE, -x) + 1.0)


def softplus(x: UOp) -> UOp:
    """Return log(1 + e ** x) as max(x, 0) + log(1 + e ** -|x|), which does not overflow."""
    return x.max(0.0) + log1p(exp(-magnitude(x)))


def tanh(x: UOp) -> UOp:
    """Return tanh(x): near 0 a rational function, else (1 - u) / (1 + u) with u = e ** -2|x|.

    Near 0 the second formula would subtract nearly equal numbers. The sign of x is put back last.
    """
    size = magnitude(x)
    u = exp_from(NEGLIGIBLE, size * -2.0)
    far = (1.0 - u) / (u + 1.0)
    signed = (x < 0.0).where(-far, far)
    # The rational function is used below 0.625; clamped to 1, it cannot overflow.
    near = x.max(-1.0).min(1.0)
    upper, lower = _tanh_fraction(4 if x.dtype is dtypes.float32 else 8)
    square = near * near
    ratio = polynomial(square, upper) / polynomial(square, lower)
    return (size < 0.625).where(near * ratio, signed)


def log(x: UOp) -> UOp:
    """Return the natural logarithm; -inf of 0, NaN of negative numbers."""
    return x.log2() * math.log(2)


def log1p(x: UOp) -> UOp:
    """Return log(1 + x), also where rounding 1 + x loses most of x. Source: Kahan 1984.

    `y` is 1 + x, rounded; the factor x / (y - 1) corrects log(y) for this rounding. At infinity the
    result is NaN: callers exclude it.
    """
    y = x + 1.0
    lost = y.eq(1.0)
    rest = lost.where(x.like(1.0), y - 1.0)
    return lost.where(x, y.log2() * math.log(2) * (x / rest))


def cos_of_turns(turns: UOp) -> UOp:
    """Return cos(2 pi turns) for turns from 0 up to 1.

    Rewrite: -> sin(2 pi r), r = |turns - 1/2| - 1/4, which is exact and from -1/4 to 1/4; there
    the Taylor series converges fast.
    """
    r = magnitude(turns - 0.5) - 0.25
    count = 7 if turns.dtype is dtypes.float32 else 12
    series = tuple(
        (-1) ** i * (2 * math.pi) ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(count)
    )
    return r * polynomial(r * r, series)


@cache
def _exp_constants(dtype: DType) -> tuple[float, float, float]:
    """Return (limit, high, low): beyond `limit`, exp is 0 or infinite; high + low is log2(e).

    `high` is so short that its product with any whole number up to the limit is exact; `low` is the
    rest of log2(e), to 40 decimal places.
    """
    limit, bits = (200.0, 15) if dtype is dtypes.float32 else (800.0, 42)
    mantissa, exponent = math.frexp(LOG2_E)
    high = math.ldexp(math.trunc(math.ldexp(mantissa, bits)), exponent - bits)
    scaled = 14426950408889634073599246810018921374266
    low = (scaled - int(high * 2**60) * 10**40 // 2**60) / 10**40
    return limit, high, low


@cache
def _tanh_fraction(depth: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the coefficients of p and q, lowest power first, where tanh(x) = x p(x^2) / q(x^2).

    They are the continued fraction 1 / (1 + z / (3 + z / (5 + ...))) cut after `depth` steps.
    Source: Lambert 1768.
    """
    upper, lower = [1], [2 * depth + 1]
    for odd in range(2 * depth - 1, 0, -2):
        # 1 / (odd + z * upper / lower)
        longest = max(len(lower), len(upper) + 1)
        sums = [0] * longest
        for i, c in enumerate(lower):
            sums[i] += odd * c
        for i, c in enumerate(upper):
            sums[i + 1] += c
        upper, lower = lower, sums
    scale = lower[0]
    return tuple(c / scale for c in upper), tuple(c / scale for c in lower)


# --------------------------------------------------------------------------------------------------
# The error function of float nodes: a polynomial near 0, and 1 minus a power of 2 farther out.
#
# The polynomials are minimax fits (Remez exchange, 60 digits, rounded to the dtype). The errors are
# relative errors of erf.

# erf(t)/t - 1 for t from 0 to 1, in powers of t**2. Error: 2**-28.6 and 2**-56.0.
ERF_NEAR_ZERO = {
    dtypes.float32: (
        0.12837916612625122, -0.3761262595653534, 0.1128358542919159,
        -0.026853814721107483, 0.005188330542296171, -0.0008010202436707914,
        7.853849820094183e-05,
    ),
    dtypes.float64: (
        0.1283791670955126, -0.3761263890318375, 0.11283791670954858, -0.02686617064507296,
        0.00522397762478137, -0.0008548326978765149, 0.00012055331037551108,
        -1.4925593518728226e-05, 1.6460972954153765e-06, -1.635002619207727e-07,
        1.4657883530919653e-08, -1.136567067182716e-09, 5.945255584223488e-11,
    ),
}  # fmt: skip

# log2(1 - erf(t)) for t from 1 to END, in powers of t. Error: 2**-27.8 and 2**-57.5.
ERF_TAIL = {
    dtypes.float32: (
        -0.0004927966510877013, -1.62604558467865, -0.920648992061615,
        -0.14875109493732452, 0.031505417078733444, -0.004252508282661438,
        0.00026888176216743886,
    ),
    dtypes.float64: (
        -2.591984145139335e-07, -1.6279043765663077, -0.9184607667286877,
        -0.1482329427412697, 0.027523942644526567, 0.00040468651583624657,
        -0.0025521592362325765, 0.0009250439503807928, -6.468425858220264e-05,
        -0.00010150690147793367, 6.497041145116697e-05, -2.382287517462256e-05,
        6.242127477840366e-06, -1.2270171994892423e-06, 1.8133734121891624e-07,
        -1.9657208777943506e-08, 1.4796116151807572e-09, -6.918395040576088e-11,
        1.5140873320340335e-12,
    ),
}  # fmt: skip

# From here on, erf rounds to 1.
END = {dtypes.float32: 4.0, dtypes.float64: 6.0}


def erf(x: UOp) -> UOp:
    """Return 2 / sqrt(pi) times the integral of e ** -t**2 from 0 to x, which is odd.

    Beyond 1, 1 - erf(x) is at most 0.16, so its rounding error matters little.
    """
    size = magnitude(x)
    small = size.min(1.0)
    near = fma(small, polynomial(small * small, ERF_NEAR_ZERO[x.dtype]), small)
    far = 1.0 - polynomial(size.min(END[x.dtype]), ERF_TAIL[x.dtype]).exp2()
    return with_sign_of((size < 1.0).where(near, far), x)


# --------------------------------------------------------------------------------------------------
# Rounding of float nodes to whole numbers, by TRUNC, comparisons and sums that round.


def floored(x: UOp) -> UOp:
    """Return the greatest whole number that is not above x; NaN and infinity stay."""
    whole = x.trunc()
    return (x < whole).where(whole - 1.0, whole)


def ceiled(x: UOp) -> UOp:
    """Return the least whole number that is not below x; NaN and infinity stay."""
    whole = x.trunc()
    return (whole < x).where(whole + 1.0, whole)


def rounded(x: UOp) -> UOp:
    """Return the nearest whole number (of two equally near, the even one), with the sign of x.

    A float of 2**fraction_bits or more has no bits for a fraction, so adding this number rounds.
    TRUNC changes no value here: it makes the gradient 0.
    """
    size, shift = absolute(x), 2.0**x.dtype.fraction_bits
    whole = ((size + shift) - shift).trunc()
    return (size < shift).where(whole.alu(Ops.COPYSIGN, x), x.trunc())


def is_odd(whole: UOp) -> UOp:
    """Return whether a whole float is odd."""
    half = whole * 0.5
    return half.trunc().ne(half)


# --------------------------------------------------------------------------------------------------
# x ** y of floats, as 2 ** (log2(x) * y) with IEEE's results at the edges.


def power(x: UOp, y: UOp) -> UOp:
    """Return x ** y of floats, with IEEE's results for zero, negative and infinite x.

    For a finite negative x the result is NaN, unless y is whole. The relative error grows with the
    exponent of the result: about abs(y * log2(x)) units in the last place.
    """
    size = magnitude(x)
    # 1 and -1 to an infinite power are 1, as is every x to the power 0; the product would be NaN.
    is_one = y.eq(0.0) | size.eq(1.0)
    positive = is_one.where(x.like(1.0), (size.log2() * y).exp2())
    whole = y.trunc().eq(y)
    swapped = whole & is_odd(y)
    signed = swapped.where(with_sign_of(positive, x), positive)
    undefined = has_no_root(x) & ~whole
    return undefined.where(x.like(math.nan), signed)


def has_no_root(x: UOp) -> UOp:
    """Return whether x is finite and negative: it has whole powers only."""
    return (x < 0.0) & (x > -math.inf)


# --------------------------------------------------------------------------------------------------
# Trigonometric and hyperbolic functions of float nodes, and their inverses.
#
# The polynomials are minimax fits of the relative error (Remez exchange, 60 digits, rounded to the
# dtype), in powers of z = t**2. Each formula keeps its precision for small results: none subtracts
# nearly equal numbers.

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
    """Return tan(x) as sin(x) / cos(x), which share all but their last steps."""
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
    """Return (e**x - e**-x) / 2; for |x| < 1 by a polynomial, as the difference loses digits."""
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
    """Return e**size / 2 and e**-size / 2. The first may be finite where e**size is not."""
    reduced = exp(size - 1.0)
    high, low = HALF_E[size.dtype]
    return fma(reduced, reduced.like(high), reduced * low), 1 / (2 * math.e) / reduced


def _below_overflow(x: UOp) -> tuple[UOp, UOp]:
    """Return (x clamped to 2**28, so that its square is finite; whether x is larger)."""
    limit = 2.0**28
    return x.min(limit), x > limit


def _log_of_twice(x: UOp) -> UOp:
    return (x.log2() + 1.0) * math.log(2)
