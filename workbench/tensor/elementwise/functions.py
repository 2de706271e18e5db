"""Functions of one tensor, element by element. The formulas are in ir/functions."""

from __future__ import annotations

import math
from typing import Self

from workbench.base.dtypes import dtypes
from workbench.ir.functions.formulas import Formula as Function
from workbench.ir.functions.rounding import ceiled, floored, rounded
from workbench.ir.functions.signs import absolute
from workbench.ir.gradient.custom import Formula, with_formula
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base, Operand
from workbench.tensor.operands.broadcast import cast_to, filled
from workbench.tensor.operands.refuse import shape_error


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
        """Return the sine of angles in radians, exact to the last digits however large."""
        return self._function(Ops.SIN)

    def cos(self) -> Self:
        """Return the cosine of angles in radians, exact to the last digits however large."""
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
        # NaN is neither below nor above 0, and stays; TRUNC keeps the gradient from it.
        rest = x.trunc() if self.dtype.is_float else x
        not_above = x if self.dtype.kind == "uint" else (x < 0).where(x.like(-1), rest)
        return self._with((x.like(0) < x).where(x.like(1), not_above))

    def clip(self, min_: Operand | None = None, max_: Operand | None = None) -> Self:
        """Return self, clamped to `min_` and `max_`; one of them may be None.

        Dtypes: a Python int out of range of an integer type does not limit that side.
        Errors: ShapeError if both are None.
        """
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
        value, limit, other = self._meet(bound, "compare")
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
        """Return the greatest whole number that is not above; integers stay."""
        return self._whole(floored)

    def ceil(self) -> Self:
        """Return the least whole number that is not below; integers stay."""
        return self._whole(ceiled)

    def round(self) -> Self:
        """Return the nearest whole number, the even one of two; integers stay."""
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
    """Return the gradients of a value that is limited on one side: at the limit, it has all."""
    low, high = (limit, x) if op is Ops.MAX else (x, limit)
    is_beyond, is_inside = high < low, (low < high) | x.eq(limit)
    return [is_beyond.where(g, g.like(0)), is_inside.where(g, g.like(0))]
