"""Formulas of functions of float nodes, in EXP2, LOG2 and arithmetic, accurate at extremes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from workbench.base.dtypes import DType, dtypes
from workbench.ir.functions.polynomial import fma, polynomial
from workbench.ir.functions.signs import magnitude
from workbench.ir.node.uop import UOp

Formula = Callable[[UOp], UOp]

LOG2_E = math.log2(math.e)


def exp(x: UOp) -> UOp:
    """Return e ** x as 2 ** (x * log2(e)), with the product carried to twice the precision.

    Rounding the product alone would cost up to 60 units in the last place of a float32,
    because the integer part takes bits from the fraction. So x is split into whole + rest and
    log2(e) into a short high part and a low one; whole * high is then exact, the sum's rounding
    error is known, and corrects the result. Source: Dekker 1971.
    """
    limit, high, low = _exp_constants(x.dtype)
    exponent = x.max(-limit).min(limit)
    whole = exponent.trunc()
    rest = exponent - whole
    large = whole, x.like(high)
    small = fma(whole, x.like(low), rest * LOG2_E)
    power = fma(*large, small)
    error = fma(*large, -power) + small
    return power.exp2() * fma(error, x.like(math.log(2)), x.like(1.0))


def sigmoid(x: UOp) -> UOp:
    """Return 1 / (1 + e ** -x). Where e ** -x overflows, 1 / infinity is the right 0."""
    return 1.0 / (exp(-x) + 1.0)


def softplus(x: UOp) -> UOp:
    """Return log(1 + e ** x) as max(x, 0) + log(1 + e ** -|x|), which does not overflow."""
    return x.max(0.0) + log1p(exp(-magnitude(x)))


def tanh(x: UOp) -> UOp:
    """Return tanh(x): a rational function near 0, (1 - u) / (1 + u) with u = e ** -2|x| beyond.

    Near 0 the second formula would subtract nearly equal numbers.
    """
    size = magnitude(x)
    u = exp(size * -2.0)
    far = (1.0 - u) / (u + 1.0)
    signed = (x < 0.0).where(-far, far)
    # Beyond 1 the rational function is not used; clamped there, it cannot overflow.
    near = x.max(-1.0).min(1.0)
    upper, lower = _tanh_fraction(4 if x.dtype is dtypes.float32 else 8)
    square = near * near
    ratio = polynomial(square, upper) / polynomial(square, lower)
    return (size < 0.625).where(near * ratio, signed)


def log(x: UOp) -> UOp:
    """Return the natural logarithm; -inf of 0, NaN of negative numbers."""
    return x.log2() * math.log(2)


def log1p(x: UOp) -> UOp:
    """Return log(1 + x), also where 1 + x loses most of x. Source: Kahan 1984.

    The rounding of 1 + x to y is undone by the factor x / (y - 1). It is NaN at infinity: a caller
    that may have one tests for it first.
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
    """Return (limit beyond which exp is 0 or infinite, high and low part of log2(e)).

    The high part is short enough that its product with any whole number up to the limit is
    exact; the low part is the rest of log2(e), to 40 decimal places.
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
