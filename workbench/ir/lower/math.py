"""Functions of machines without them: EXP2, LOG2, SIN and COS as arithmetic and bit operations.

Sections: The bit layout of floats, and arithmetic that the polynomials of functions share;
Argument reduction; EXP2 as a branch-free polynomial; LOG2 as a branch-free polynomial; SIN and
COS without branches, accurate up to the greatest finite number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from workbench.base.dtypes import DType, dtypes
from workbench.ir.functions.formulas import fma, polynomial
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# The bit layout of floats, and arithmetic that the polynomials of functions share.


class FloatFormat(NamedTuple):
    """The bit layout of a float dtype: `uint` is the integer of its width; a normal value is
    2**(exponent - bias) * 1.fraction. `least` is the least normal number."""

    uint: DType
    fraction_bits: int
    bias: int
    least: float

    @property
    def one(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.fraction_bits

    def bits(self, value: float) -> int:
        """Return the bits of a positive normal float."""
        fraction, exponent = math.frexp(value)
        mantissa = int(math.ldexp(fraction, self.fraction_bits + 1))
        return ((exponent - 2 + self.bias) << self.fraction_bits) + mantissa


FORMATS = {
    dtypes.float32: FloatFormat(dtypes.uint32, 23, 127, 2.0**-126),
    dtypes.float64: FloatFormat(dtypes.uint64, 52, 1023, 2.0**-1022),
}


def shl(x: UOp, amount: int | UOp) -> UOp:
    """Return x << amount; the amount is known to be less than the width."""
    return x << amount


def shr(x: UOp, amount: int | UOp) -> UOp:
    """Return x >> amount; the amount is known to be less than the width. The sign bit of a signed x
    is repeated."""
    return x >> amount


# --------------------------------------------------------------------------------------------------
# Argument reduction: the exact multiple of pi/2 in an angle, as x * 2/pi in integers, modulo 4.
#
# x is m * 2**e with m of 24 or 53 bits. Bits of 2/pi that are worth 4 or more after multiplication
# by 2**e give multiples of 2 pi and are left out; bits far behind the point are too small to
# matter. What remains is a window of 96 or 192 bits, whose position depends on e alone. No float is
# nearer to a multiple of pi/2 than 2**-30 (float32) or 2**-62 (float64) times pi/2; the product has
# 62 or 126 bits after the point. Source: Payne and Hanek 1983.

LIMB = 0xFFFFFFFF
WINDOW = 3
"""Words of the float's width in the window."""


def reduce_argument(x: UOp) -> tuple[UOp, UOp, UOp]:
    """Return (n, high, low): x is (n + high + low) * pi/2, n modulo 4.

    `high` is from -1/2 to 1/2, and `low` is at most half of the last bit of `high`. For x below 1/2
    the three are undefined.
    """
    layout = FORMATS[x.dtype]
    bits = x.bitcast(layout.uint)
    mantissa = (bits & ((1 << layout.fraction_bits) - 1)) | (1 << layout.fraction_bits)
    place = shr(bits, layout.fraction_bits) + (1 - layout.bias)
    window = _window(place, two_over_pi(layout))
    product = _product(_limbs(mantissa), [n for w in window for n in _limbs(w)])
    high, low = _words(product, layout)
    # Adding half of pi/2 and half of the last bit of `high` makes truncation round to the nearest.
    half = 1 << (layout.uint.bits - 3)
    high = high + (half | half >> layout.fraction_bits)
    return shr(high, layout.uint.bits - 2), *_fraction(high, low, x.dtype)


@cache
def two_over_pi(layout: FloatFormat) -> tuple[int, ...]:
    """Return the bits of 2/pi as words, most significant first, with as many zeros in front as
    x = 1/2 needs."""
    # The greatest exponent, 2 * bias, needs the last window.
    width = layout.uint.bits
    count = (layout.bias + 1) // width + WINDOW + 1
    total = count * width
    bits = (2 << (2 * total)) // _pi(total) >> (layout.fraction_bits + 3)
    mask = (1 << width) - 1
    return tuple((bits >> (total - width * (i + 1))) & mask for i in range(count))


def _pi(bits: int) -> int:
    """Return pi * 2**bits as an integer. Source: Machin 1706."""
    guard = 32

    def arctan_of_inverse(n: int) -> int:
        total, term, k = 0, (1 << (bits + guard)) // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term, k = term // (n * n), k + 2
        return total

    return (16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)) >> guard


def _window(place: UOp, words: Sequence[int]) -> list[UOp]:
    """Return the words of the window that begins at bit `place` of `words`, least word first.

    Whole words are skipped in steps of powers of two, the greatest first: this takes few
    selections. Then each word and the one behind it are shifted together.
    """
    width = place.dtype.bits
    candidates = [place.like(word) for word in words]
    step = 1 << ((len(words) - WINDOW - 1).bit_length() - 1)
    while step:
        skip = (place & (step * width)).ne(0)
        candidates = [
            skip.where(candidates[i + step], candidates[i])
            if i + step < len(candidates)
            else candidates[i]
            for i in range(min(len(candidates), WINDOW + step))
        ]
        step //= 2
    left, right = place & (width - 1), ~place & (width - 1)
    # Two shifts each, because a shift by the whole width is undefined.
    pairs = zip(candidates, candidates[1:], strict=False)
    window = [shl(a, left) | shr(shr(b, 1), right) for a, b in pairs]
    return window[::-1]


def _limbs(word: UOp) -> list[UOp]:
    """Return the 32-bit parts of a word, each in a uint64, least first."""
    if word.dtype.bits == 32:
        return [word.cast(dtypes.uint64)]
    return [word & LIMB, shr(word, 32)]


def _product(a: Sequence[UOp], b: Sequence[UOp]) -> list[UOp]:
    """Return the limbs of a * b modulo the width of b, without the len(a) least ones.

    A product of two limbs plus two more limbs fits into 64 bits.
    """
    limbs: list[UOp] = []
    for i, factor in enumerate(a):
        carry: UOp | None = None
        for j, limb in enumerate(b[: len(b) - i]):
            value = factor * limb
            if i > 0:
                value = value + limbs[i + j]
            if carry is not None:
                value = value + carry
            limbs[i + j : i + j + 1] = [value & LIMB]
            carry = shr(value, 32)
    return limbs[len(a) :]


def _words(limbs: Sequence[UOp], layout: FloatFormat) -> tuple[UOp, UOp]:
    """Return limbs, least first, as two words of the float's width, the greater first."""
    if layout.uint.bits == 32:
        low, high = limbs
        return high.cast(layout.uint), low.cast(layout.uint)
    a, b, c, d = limbs
    return shl(d, 32) | c, shl(b, 32) | a


def _fraction(high: UOp, low: UOp, dtype: DType) -> tuple[UOp, UOp]:
    """Return two floats, high and low, whose sum is the fraction after the two bits of n, less what
    `reduce_argument` added: 1/2, and half of the last bit of `high`.

    The bits are cut into pieces as long as the fraction of a float. With the exponent of 1, each
    piece is a float without a conversion, which vectors of 64-bit integers do not have.
    """
    layout = FORMATS[dtype]
    width, size = layout.uint.bits, layout.fraction_bits
    first = shl(high, 2)
    second = shl(high, 2 + size) | shr(low, width - 2 - size)
    third = shl(low, 2 + 2 * size - width)
    a, b, c = (
        (shr(piece, width - size) | layout.one).bitcast(dtype) for piece in (first, second, third)
    )
    rest = (b + -1.5) * 2.0**-size
    return a - 1.5, fma(c - 1.0, c.like(2.0 ** (-2 * size)), rest)


# --------------------------------------------------------------------------------------------------
# EXP2 as a branch-free polynomial.
#
# The polynomial is a minimax fit of the relative error (Remez exchange, 60 digits, rounded to the
# dtype). Source of the reduction: Cody and Waite 1980.

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
    """Return 2**x as 2**n * 2**f with n the nearest integer and |f| <= 1/2: a polynomial gives
    2**f, exponent bits give 2**n, in two factors so that subnormals are rounded once."""
    layout = FORMATS[x.dtype]
    # At the lower limit a factor is 0. A product of small factors would be 0 by underflow, and a
    # processor takes some 100 cycles for that: e ** -infinity is common, it stands for a mask.
    x = _clamp(x, -2 * layout.bias, layout.bias + 3)
    # Adding 1.5 * 2**fraction_bits rounds to a whole number: n is in the low bits.
    shift = 1.5 * 2.0**layout.fraction_bits
    shifted = x + shift
    n = shifted + -shift
    f = x + -n
    power = fma(f, polynomial(f, COEFFICIENTS[x.dtype]), x.like(1.0))
    # 2 * bias + n is not negative; its half rounded down and its half rounded up are the exponents.
    both = shifted.bitcast(layout.uint) + (2 * layout.bias - layout.bits(shift))
    for exponent in (shr(both, 1), shr(both + 1, 1)):
        power = power * shl(exponent, layout.fraction_bits).bitcast(x.dtype)
    return power


def _clamp(x: UOp, low: float, high: float) -> UOp:
    """Return x within [low, high]; comparisons, unlike MAX and MIN, pass NaN through for free."""
    x = (x < low).where(x.like(low), x)
    return (x.like(high) < x).where(x.like(high), x)


# --------------------------------------------------------------------------------------------------
# LOG2 as a branch-free polynomial.
#
# The polynomials are minimax fits of the relative error (Remez exchange, 60 digits, rounded to the
# dtype). Source of the reduction in float64: fdlibm's log.

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
    """Return log2(2**e * m) as e + log2(m) with m in [sqrt(1/2), sqrt(2)), so that no digit is lost
    near 1. Subnormals are scaled first; results for 0, negative, infinite and NaN are put in
    last."""
    layout = FORMATS[x.dtype]
    half_root = HALF_ROOT[x.dtype]
    width = layout.fraction_bits
    small = x < layout.least
    normal = small.where(x * 2.0**width, x)
    bits = normal.bitcast(layout.uint) + (layout.one - half_root)
    mantissa = (bits & ((1 << width) - 1)) + half_root
    t = mantissa.bitcast(x.dtype) - 1.0
    # The biased exponent in the low bits of the float 2**width gives a float without a cast.
    exponent = (shr(bits, width) | ((layout.bias + width) << width)).bitcast(x.dtype)
    bias = 2.0**width + layout.bias
    exponent = exponent + small.where(x.like(-(bias + width)), x.like(-bias))
    return _edges(x, exponent + _near_one(t))


def _near_one(t: UOp) -> UOp:
    """Return log2(1 + t) for 1 + t in [sqrt(1/2), sqrt(2)): t / ln 2, exact to twice the width,
    plus a small remainder."""
    high, low = (t.like(part) for part in PER_LN2[t.dtype])
    if t.dtype is dtypes.float32:
        rest = t * fma(t, polynomial(t, FLOAT32), low)
    else:
        half_square = t * t * 0.5
        s = t / (t + 2.0)
        z = s * s
        # log(1 + t) is t - h + s*(h + z*p(z)) with h = t*t/2.
        inner = fma(z, polynomial(z, FLOAT64), half_square)
        rest = fma(t, low, fma(s, inner, -half_square) * high)
    return fma(t, high, rest)


def _edges(x: UOp, inside: UOp) -> UOp:
    outside = x.eq(0.0).where(x.like(-math.inf), x.like(math.nan))
    above = (x < math.inf).where(inside, x)
    return (x.like(0.0) < x).where(above, outside)


# --------------------------------------------------------------------------------------------------
# SIN and COS without branches, accurate up to the greatest finite number.
#
# x is n * pi/2 + r with |r| at most pi/4. The sine and cosine of r are polynomials; n selects one
# of them as the result, and its sign. n and r come from one integer product (the section on
# argument reduction), because subtracting multiples of pi/2 in floats fails for large x. A second
# method for small x would only add cost: without branches both are computed.
#
# The polynomials are minimax fits of the relative error (Remez exchange, 60 digits, rounded to the
# dtype). SIN and COS of one x share all but the last selection.

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
    """|x| modulo 2 pi: `quadrant` times pi/2, plus an angle with this `sine` and `cosine`."""

    quadrant: UOp
    sine: UOp
    cosine: UOp


def sin(x: UOp) -> UOp:
    """Return sin(x); since sin(-x) is -sin(x), -0.0 included, the sign of x is put back last."""
    size, sign = _split(x)
    part = _reduce(size)
    return _sine_in_quadrant(size, part.quadrant, part, sign)


def cos(x: UOp) -> UOp:
    """Return cos(x) as sin(|x| + pi/2), which costs no digit: the quadrant is an integer."""
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
    # The rounding error of the product (0 where FMA rounds twice), and the terms left out of it.
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
    # Two quadrants change the sign: bit 1 of the quadrant is moved to the sign bit.
    flip = shl(quadrant & 2, uint.bits - 2)
    flip = flip if sign is None else flip ^ sign
    value = (value.bitcast(uint) ^ flip).bitcast(size.dtype)
    return (size < math.inf).where(value, size.like(math.nan))
