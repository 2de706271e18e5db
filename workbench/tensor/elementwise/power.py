"""Powers: products where the exponent is a whole number, else POW."""

from __future__ import annotations

import math

from workbench.ir.functions.power import has_no_root
from workbench.ir.functions.signs import absolute
from workbench.ir.gradient.custom import Formula, independent, with_formula
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.operands.broadcast import cast_to, expanded, filled, wide_dtype

_LARGEST = 16
"""Up to this exponent a product is at least as exact as the general formula."""


def whole_power(x: UOp, exponent: float) -> UOp | None:
    """Return the float `x` to a whole or half power of at most 16; None for others.

    The power 0.5 is the square root, also where IEEE's pow differs from it: at -inf and -0.0.
    Rewrite: x ** -2.5 -> 1 / (x * x * sqrt(x))
    """
    if not abs(exponent) <= _LARGEST or 2 * exponent != math.trunc(2 * exponent):
        return None
    whole, base = math.trunc(abs(exponent)), x
    kind, x = x.dtype, cast_to(x, wide_dtype(x.dtype))
    if whole == abs(exponent):
        value = _product(x, whole)
    elif exponent == 0.5:
        value = x.sqrt()
    else:
        size = absolute(x)
        root = size.sqrt()
        value = has_no_root(x).where(x.like(math.nan), _product(size, whole) * root)
    value = cast_to(1.0 / value if exponent < 0 else value, kind)
    if whole == exponent or exponent == 0.5:
        return value
    # A quotient or a root has no number for a gradient where the power's is infinite or 0.
    return with_formula(value, [base], Formula("power", exponent, _of_power))


def power(x: UOp, y: UOp) -> UOp:
    """Return x ** y of floats, by the op POW; a float below 32 bits is computed in 32."""
    kind = x.dtype
    x, y = (cast_to(v, wide_dtype(kind)) for v in filled(x, y))
    return cast_to(x.alu(Ops.POW, y), kind)


def _of_power(g: UOp, exponent: float, x: UOp) -> list[UOp]:
    """Return the gradient of x ** exponent: exponent * x ** (exponent - 1)."""
    slope = whole_power(x, exponent - 1)
    if slope is None:
        slope = power(x, x.like(exponent - 1))
    return [g * (slope * exponent)]


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
        return independent(expanded(x.like(1), x.shape), x)
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
