"""Argument reduction: the exact multiple of pi/2 in an angle, as x * 2/pi in integers, modulo 4.

x is m * 2**e with m of 24 or 53 bits. The bits of 2/pi that are worth 4 or more once
multiplied by 2**e are multiples of 2 pi and drop out, the far ones are too small to matter. A
window of 96 or 192 bits is left, whose position depends on e alone. The greatest float
nearest to a multiple of pi/2 is 2**-30 (float32) or 2**-62 (float64) times pi/2 from it;
the product keeps 62 and 126 bits after the point. Source: Payne and Hanek 1983.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from workbench.base.dtypes import DType, dtypes
from workbench.ir.functions.polynomial import fma
from workbench.ir.lower.math.float_bits import FORMATS, FloatFormat, shl, shr
from workbench.ir.node.uop import UOp

LIMB = 0xFFFFFFFF
WINDOW = 3
"""Words of the float's width in the window."""


def reduce_argument(x: UOp) -> tuple[UOp, UOp, UOp]:
    """Return (n, high, low): x is (n + high + low) * pi/2, n modulo 4.

    `high` is from -1/2 to 1/2 and `low` at most half of its last bit. They are undefined for x
    below 1/2.
    """
    layout = FORMATS[x.dtype]
    bits = x.bitcast(layout.uint)
    mantissa = (bits & ((1 << layout.fraction_bits) - 1)) | (1 << layout.fraction_bits)
    place = shr(bits, layout.fraction_bits) + (1 - layout.bias)
    window = _window(place, two_over_pi(layout))
    product = _product(_limbs(mantissa), [n for w in window for n in _limbs(w)])
    high, low = _words(product, layout)
    # Adding half of pi/2, and half of `high`'s last bit, makes truncation round to the nearest.
    half = 1 << (layout.uint.bits - 3)
    high = high + (half | half >> layout.fraction_bits)
    return shr(high, layout.uint.bits - 2), *_fraction(high, low, x.dtype)


@cache
def two_over_pi(layout: FloatFormat) -> tuple[int, ...]:
    """Return the bits of 2/pi as words, most significant first, after the zeros that x = 1/2
    needs."""
    # The last window is that of the greatest exponent, 2 * bias.
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
    """Return the window that begins at bit `place` of `words`, least word first.

    Whole words are skipped by powers of two, the greatest first, which takes few selections; then
    each word and its neighbour are shifted together.
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
    # In two shifts, because one by the whole width has no meaning.
    pairs = zip(candidates, candidates[1:], strict=False)
    window = [shl(a, left) | shr(shr(b, 1), right) for a, b in pairs]
    return window[::-1]


def _limbs(word: UOp) -> list[UOp]:
    """Return the 32-bit parts of a word, each in a uint64, least first."""
    if word.dtype.bits == 32:
        return [word.cast(dtypes.uint64)]
    return [word & LIMB, shr(word, 32)]


def _product(a: Sequence[UOp], b: Sequence[UOp]) -> list[UOp]:
    """Return the limbs of a * b modulo the width of b, without the len(a) least of them.

    A product of limbs and two more limbs fit into 64 bits.
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
    """Return the fraction, the bits after the two of the count, less the two halves, as two floats.

    The bits are cut into pieces as long as the fraction of a float: with the exponent of 1 each
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
