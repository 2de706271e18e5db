"""Powers: products where the exponent is a whole number, else 2 ** (log2(x) * y)."""

from __future__ import annotations

import math

from workbench.ir.node.uop import UOp
from workbench.tensor.broadcast import cast_to, expanded, filled, wide_dtype
from workbench.tensor.rounding import is_odd
from workbench.tensor.signs import magnitude, with_sign_of

_LARGEST = 16
"""Up to this exponent a product is at least as exact as the general formula."""


def whole_power(x: UOp, exponent: float) -> UOp | None:
    """Return the float `x` to a whole or half power of at most 16; None for others.

    The power 0.5 is the square root, also where IEEE's pow differs from it: at -inf and -0.0.
    Rewrite: x ** -2.5 -> 1 / (x * x * sqrt(x))
    """
    if not abs(exponent) <= _LARGEST or 2 * exponent != math.trunc(2 * exponent):
        return None
    whole = math.trunc(abs(exponent))
    kind, x = x.dtype, cast_to(x, wide_dtype(x.dtype))
    if whole == abs(exponent):
        value = _product(x, whole)
    elif exponent == 0.5:
        value = x.sqrt()
    else:
        size = magnitude(x)
        root = size.sqrt()
        value = _no_root(x).where(x.like(math.nan), _product(size, whole) * root)
    return cast_to(1.0 / value if exponent < 0 else value, kind)


def power(x: UOp, y: UOp) -> UOp:
    """Return x ** y of floats, with IEEE's answers for zero, negative and infinite x.

    A negative x has a power where y is whole. The relative error grows with the exponent of
    the result: about abs(y * log2(x)) units in the last place.
    """
    kind = x.dtype
    x, y = (cast_to(v, wide_dtype(kind)) for v in filled(x, y))
    size = magnitude(x)
    # 1 and -1 to an infinite power are 1, and so is all to the power 0: not 0 * inf.
    is_one = y.eq(0.0) | size.eq(1.0)
    positive = is_one.where(x.like(1.0), (size.log2() * y).exp2())
    whole = y.trunc().eq(y)
    turned = whole & is_odd(y)
    signed = turned.where(with_sign_of(positive, x), positive)
    undefined = _no_root(x) & ~whole
    return cast_to(undefined.where(x.like(math.nan), signed), kind)


def _no_root(x: UOp) -> UOp:
    """Return where x has whole powers only: below 0, but for -inf and -0.0."""
    return (x < 0.0) & (x > -math.inf)


def integer_power(x: UOp, y: UOp | int) -> UOp:
    """Return x ** y of integers, which wraps as products do.

    A negative power is the fraction truncated towards zero: of 1 and -1 as it is, else 0.
    """
    if isinstance(y, int):
        # powers of a wrapping integer repeat after 2**64 at the latest
        return _product(x, y if y < 1 << 64 else y % (1 << 64) + (1 << 64))
    if y.is_const and y.arg >= 0:
        return _product(x, y.arg)
    x, y = filled(x, y)
    product, square = x.like(1), x
    for bit in range(int(y.dtype.max).bit_length()):
        is_set = (y & (1 << bit)).ne(0)
        product = is_set.where(product * square, product)
        square = square * square
    if y.vmin >= 0:
        return product
    one, minus = x.eq(1), x.eq(-1)
    is_even = (y & 1).eq(0)
    inverse = minus.where(is_even.where(x.like(1), x), one.where(x, x.like(0)))
    return (y < 0).where(inverse, product)


def _product(x: UOp, count: int) -> UOp:
    """Return x multiplied with itself `count` times, by repeated squaring."""
    if count == 0:
        return expanded(x.like(1), x.shape)
    product: UOp | None = None
    square = x
    while count:
        if count & 1:
            product = square if product is None else product * square
        count >>= 1
        if count:
            square = square * square
    assert product is not None
    return product
