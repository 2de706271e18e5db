"""Functions of one tensor, element by element. The formulas are in ir/functions.

Sections: Functions of one tensor, element by element; Powers; Functions of two tensors, element
by element, besides the operators.
"""

from __future__ import annotations

import math
from typing import Never, Self

from workbench.base.dtypes import dtypes
from workbench.ir.functions.formulas import Formula as Function
from workbench.ir.functions.formulas import absolute, ceiled, floored, has_no_root, rounded
from workbench.ir.gradient.occurrences import Formula, depending, independent, with_formula
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base, Operand
from workbench.tensor.elementwise.division import truncated_remainder
from workbench.tensor.operands.arguments import python_scalar, refuse_keywords, shape_error
from workbench.tensor.operands.broadcast import cast_to, expanded, filled, wide_dtype

# --------------------------------------------------------------------------------------------------
# Functions of one tensor, element by element.


class Functions(Base):
    """exp, log, sqrt, trigonometry, rounding, clip.

    Dtypes: functions whose values are fractions take integers and bools as float32.
    """

    __slots__ = ()

    def exp(self) -> Self:
        """Return e ** self, to within about 3 units in the last place."""
        return self._function(Ops.EXP)

    def exp2(self) -> Self:
        """Return 2 ** self."""
        return self._function(Ops.EXP2)

    def log(self) -> Self:
        """Return the natural logarithm; -inf of 0, NaN of negative numbers."""
        return self._function(Ops.LOG)

    def log2(self) -> Self:
        """Return the logarithm to base 2."""
        return self._function(Ops.LOG2)

    def log10(self) -> Self:
        """Return the logarithm to base 10."""
        return self._float(lambda x: x.log2() * math.log10(2))

    def sqrt(self) -> Self:
        """Return the square root; NaN of negative numbers."""
        return self._function(Ops.SQRT)

    def rsqrt(self) -> Self:
        """Return 1 / sqrt(self)."""
        return self._float(lambda x: 1.0 / x.sqrt())

    def reciprocal(self) -> Self:
        """Return 1 / self."""
        return self._float(lambda x: 1.0 / x)

    def sin(self) -> Self:
        """Return the sine of angles in radians, accurate to the last digits however large."""
        return self._function(Ops.SIN)

    def cos(self) -> Self:
        """Return the cosine of angles in radians, accurate to the last digits however large."""
        return self._function(Ops.COS)

    def tan(self) -> Self:
        """Return the tangent of angles in radians."""
        return self._function(Ops.TAN)

    def asin(self) -> Self:
        """Return the angle from -pi/2 to pi/2 whose sine is self; NaN beyond 1."""
        return self._function(Ops.ASIN)

    def acos(self) -> Self:
        """Return the angle from 0 to pi whose cosine is self; NaN beyond 1."""
        return self._function(Ops.ACOS)

    def atan(self) -> Self:
        """Return the angle from -pi/2 to pi/2 whose tangent is self."""
        return self._function(Ops.ATAN)

    def sinh(self) -> Self:
        """Return the hyperbolic sine."""
        return self._function(Ops.SINH)

    def cosh(self) -> Self:
        """Return the hyperbolic cosine."""
        return self._function(Ops.COSH)

    def asinh(self) -> Self:
        """Return the inverse of sinh."""
        return self._function(Ops.ASINH)

    def acosh(self) -> Self:
        """Return the inverse of cosh, not negative; NaN below 1."""
        return self._function(Ops.ACOSH)

    def atanh(self) -> Self:
        """Return the inverse of tanh; infinite at 1 and -1, NaN beyond."""
        return self._function(Ops.ATANH)

    def erf(self) -> Self:
        """Return the error function, from -1 to 1, to within 2 units in the last place."""
        return self._function(Ops.ERF)

    def square(self) -> Self:
        """Return self * self."""
        return self * self

    def abs(self) -> Self:
        """Return the absolute value; of the least integer, itself (it wraps)."""
        if self.dtype.is_float:
            return self._with(absolute(self.uop))
        if self.dtype.kind != "int":
            return self
        return self._with(self.uop.max(-self.uop))

    def __abs__(self) -> Self:
        return self.abs()

    def sign(self) -> Self:
        """Return -1, 0 or 1; NaN of NaN."""
        x = self.uop
        if self.dtype.is_bool:
            return self
        # NaN is neither below nor above 0, and stays; TRUNC lets no gradient through.
        rest = x.trunc() if self.dtype.is_float else x
        not_above = x if self.dtype.kind == "uint" else (x < 0).where(x.like(-1), rest)
        return self._with((x.like(0) < x).where(x.like(1), not_above))

    def clip(
        self, min_: Operand | None = None, max_: Operand | None = None, **others: Never
    ) -> Self:
        """Return self, clamped between `min_` and `max_`; one of them may be None.

        Dtypes: a Python int out of range of an integer type does not limit that side.
        Errors: ShapeError if both are None.
        """
        if others:
            refuse_keywords(Functions.clip, others)
        if min_ is None and max_ is None:
            raise shape_error("cannot clip", "neither min_ nor max_ is given", "clip(0, 1)")
        low, high = self._bound(min_), self._bound(max_)
        value = self if low is None else self._limited(Ops.MAX, low)
        return value if high is None else value._limited(Ops.MIN, high)

    def clamp(self, min_: Operand | None = None, max_: Operand | None = None) -> Self:
        """Return `clip(min_, max_)`. Also known as: PyTorch clamp."""
        return self.clip(min_, max_)

    def _limited(self, op: Ops, bound: Operand) -> Self:
        """Return self limited on one side: where it is equal to the bound, its gradient is 1."""
        value, limit, other = self._matched(bound, "compare")
        if not value.dtype.is_float:
            return self.maximum(bound) if op is Ops.MAX else self.minimum(bound)
        if limit.is_const and not value.is_const:
            return self._with(limit.alu(op, value), other)
        limit, value = filled(limit, value)
        formula = Formula("clip", op, _of_limited)
        return self._with(with_formula(limit.alu(op, value), [limit, value], formula), other)

    def _bound(self, bound: Operand | None) -> Operand | None:
        if not self.dtype.is_int or type(bound) is not int:
            return bound
        return max(int(self.dtype.min), min(int(self.dtype.max), bound))

    def trunc(self) -> Self:
        """Return self rounded towards zero; integers stay."""
        return self._whole(lambda x: x.trunc())

    def floor(self) -> Self:
        """Return the greatest whole number that is not above self; integers stay."""
        return self._whole(floored)

    def ceil(self) -> Self:
        """Return the least whole number that is not below self; integers stay."""
        return self._whole(ceiled)

    def round(self, **others: Never) -> Self:
        """Return the nearest whole number, of two the even one; integers stay."""
        if others:
            refuse_keywords(Functions.round, others)
        return self._whole(rounded)

    def _function(self, op: Ops) -> Self:
        return self._float(lambda x: x.alu(op))

    def _float(self, formula: Function) -> Self:
        """Return the formula of self as a float; a float below 32 bits is computed in 32."""
        kind = self.dtype if self.dtype.is_float else dtypes.default_float
        wide = kind if kind.bits >= 32 else dtypes.float32
        return self._with(cast_to(formula(cast_to(self.uop, wide)), kind))

    def _whole(self, formula: Function) -> Self:
        return self._with(formula(self.uop)) if self.dtype.is_float else self


def _of_limited(g: UOp, op: Ops, limit: UOp, x: UOp) -> list[UOp]:
    """Return the gradients of `limit` and of `x`; where they are equal, x has all of it."""
    low, high = (limit, x) if op is Ops.MAX else (x, limit)
    is_beyond, is_inside = high < low, (low < high) | x.eq(limit)
    return [is_beyond.where(g, g.like(0)), is_inside.where(g, g.like(0))]


# --------------------------------------------------------------------------------------------------
# Powers: products where the exponent is a whole number, else POW.

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
    # The gradient of a quotient or a root is NaN where that of the power is infinite or 0.
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

    A negative power is truncated towards zero: for the bases 1 and -1 it is exact, else 0.
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


# --------------------------------------------------------------------------------------------------
# Functions of two tensors, element by element, besides the operators.


class Pairs(Base):
    """fmod, copysign, lerp, logaddexp. Operands promote and broadcast as those of `+`."""

    __slots__ = ()

    def fmod(self, x: Operand) -> Self:
        """Return self - trunc(self / x) * x: the sign is that of self.

        Dtypes: bools are taken as int32; an integer modulo zero is 0, a float NaN.
        """
        a, b, other = self._matched(x, "take the remainder of")
        if a.dtype.is_bool:
            a, b = (cast_to(v, dtypes.default_int) for v in (a, b))
        return self._with(truncated_remainder(a, b), other)

    def copysign(self, other: Operand) -> Self:
        """Return |self| with the sign of `other`, whose zeros have a sign, too.

        Dtypes: operands promote, and bools are taken as int32; integers stay.
        """
        a, b, sign = self._matched(other, "take the sign of")
        if a.dtype.is_bool:
            a, b = (cast_to(v, dtypes.default_int) for v in (a, b))
        size, whole = self._with(a, sign).abs(), self._with(b, sign)
        if b.dtype.is_float:
            # The sign bit is that of the integer with the same bits, for -0.0 and NaN as well.
            whole = whole.bitcast(f"int{b.dtype.bits}")
        signed = whole.lt(0).where(size.neg(), size)
        return signed._with(depending(signed.uop, b), sign)

    def lerp(self, end: Operand, weight: Operand) -> Self:
        """Return the point between self and `end`: self at `weight` 0, `end` at 1, both exactly.

        Dtypes: all three promote.
        """
        stop, share = self._lift(end, "interpolate"), python_scalar(weight)
        difference = stop - self
        if isinstance(share, bool | int | float):
            is_near = share < 0.5
            return self + difference * share if is_near else stop - difference * (1 - share)
        part = self._lift(share, "interpolate")
        from_end = stop - difference * (1 - part)
        return part.lt(0.5).where(self + difference * part, from_end)

    def logaddexp(self, other: Operand) -> Self:
        """Return log(e ** self + e ** other), which overflows nowhere.

        Dtypes: integers and bools are taken as float32.
        """
        a, b, operand = self._matched(other, "add the exponentials of")
        kind = a.dtype if a.dtype.is_float else dtypes.default_float
        a, b = (cast_to(v, wide_dtype(kind)) for v in filled(a, b))
        return self._with(cast_to(added_exponentials(a, b), kind), operand)


def added_exponentials(a: UOp, b: UOp) -> UOp:
    """Return log(e ** a + e ** b) of floats of one shape.

    Rewrite: -> max(a, b) + log(1 + e ** -|a - b|)
    """
    # Where both are the same infinity, their difference would be NaN.
    difference = a.eq(b).where(a.like(0.0), a - b)
    return a.max(b) + (-absolute(difference)).alu(Ops.SOFTPLUS)
