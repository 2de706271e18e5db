"""Arithmetic: + - * / // % **, bitwise operations, and selection between elements.

Operands promote and broadcast (broadcast.py). On bool, + is "or" and * is "and". Integers wrap;
integer division floors, and by zero gives 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeVar

from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base, Operand, promoted_tensors
from workbench.tensor.elementwise.division import divided, remainder
from workbench.tensor.elementwise.functions import integer_power, power, whole_power
from workbench.tensor.operands.arguments import (
    choice,
    dtype_error,
    flag,
    python_scalar,
    shape_error,
)
from workbench.tensor.operands.broadcast import cast_to, filled, matched

T = TypeVar("T", bound=Base)


def _reflected(method: Callable[[T, Operand, bool], T]) -> Callable[[T, Operand], T]:
    """Return the operator of which the tensor is the right operand."""
    return lambda self, x: method(self, x, True)


class Arithmetic(Base):
    """Operators of two tensors, or of a tensor and a Python number on either side."""

    __slots__ = ()

    def add(self, x: Operand, reverse: bool = False) -> Self:
        """Return self + x. Dtypes: on bool it is "or"."""
        return self._binary(Ops.ADD, x, "add", reverse)

    def sub(self, x: Operand, reverse: bool = False) -> Self:
        """Return self - x. Errors: DTypeError for two bools."""
        a, b, other = self._matched(x, "subtract", reverse)
        if a.dtype.is_bool:
            raise dtype_error(
                "cannot subtract bool from bool",
                "their difference has more than two values",
                "^ for where they differ, or cast(dtypes.int32) first",
            )
        return self._with(a + _negative(b), other)

    def mul(self, x: Operand, reverse: bool = False) -> Self:
        """Return self * x. Dtypes: on bool it is "and"."""
        return self._binary(Ops.MUL, x, "multiply", reverse)

    def div(self, x: Operand, reverse: bool = False, rounding_mode: str | None = None) -> Self:
        """Return self / x; with `rounding_mode` "trunc" rounded towards zero, with "floor" down.

        Dtypes: integers and bools give float32; rounded, they stay integers.
        Errors: DTypeError for another `rounding_mode`.
        """
        if rounding_mode is not None:
            choice(rounding_mode, "rounding_mode", ("trunc", "floor"))
        a, b, other = self._matched(x, "divide", reverse)
        return self._with(divided(_numbers(a), _numbers(b), rounding_mode), other)

    def idiv(self, x: Operand, reverse: bool = False) -> Self:
        """Return self // x, floored; integers divided by zero give 0."""
        return self.div(x, reverse, "floor")

    def mod(self, x: Operand, reverse: bool = False) -> Self:
        """Return self - self // x * x: the sign is that of x; an integer modulo zero is 0."""
        a, b, other = self._matched(x, "take the remainder of", reverse)
        return self._with(remainder(_numbers(a), _numbers(b)), other)

    def pow(self, x: Operand, reverse: bool = False) -> Self:
        """Return self ** x. Whole and half powers up to 16 are products and square roots.

        Dtypes: an integer to the power of a Python int stays an integer, and wraps.
        Errors: DTypeError for an integer to the power of a negative Python int.
        """
        x, swapped = python_scalar(x), flag(reverse, "reverse")
        if not swapped and isinstance(x, int | float) and not isinstance(x, bool):
            small_power = self._scalar_power(x)
            if small_power is not None:
                return small_power
        a, b, other = self._matched(x, "take a power of", swapped)
        if a.dtype.is_float:
            return self._with(power(a, b), other)
        return self._with(integer_power(_numbers(a), _numbers(b)), other)

    def _scalar_power(self, exponent: float) -> Self | None:
        value = self.uop
        if not value.dtype.is_float and isinstance(exponent, float):
            value = cast_to(value, dtypes.default_float)
        if value.dtype.is_float:
            small_power = whole_power(value, exponent)
            return None if small_power is None else self._with(small_power)
        if exponent < 0:
            raise dtype_error(
                f"cannot raise {value.dtype} to the power {exponent}",
                "a negative power of an integer is not an integer",
                ".float() first, or a float exponent",
            )
        value = _numbers(value)
        return self._with(integer_power(value, int(exponent)))

    def neg(self) -> Self:
        """Return -self; of bool, "not"."""
        return self._with(~self.uop if self.dtype.is_bool else _negative(self.uop))

    # bits

    def bitwise_and(self, x: Operand, reverse: bool = False) -> Self:
        """Return self & x of bools or integers."""
        return self._bits(Ops.AND, x, "&", reverse)

    def bitwise_or(self, x: Operand, reverse: bool = False) -> Self:
        """Return self | x of bools or integers."""
        return self._bits(Ops.OR, x, "|", reverse)

    def bitwise_xor(self, x: Operand, reverse: bool = False) -> Self:
        """Return self ^ x of bools or integers."""
        return self._bits(Ops.XOR, x, "^", reverse)

    def bitwise_not(self) -> Self:
        """Return ~self of bools or integers."""
        _refuse_floats("~", self.dtype)
        return self._with(~self.uop)

    def logical_not(self) -> Self:
        """Return True where self is zero or False."""
        return self._with(~cast_to(self.uop, dtypes.bool))

    def lshift(self, x: Operand, reverse: bool = False) -> Self:
        """Return self << x of integers; 0 where x is negative, or as wide as the type or wider.

        Errors: DTypeError for floats and for two bools; ShapeError for a negative Python number.
        """
        return self._shift(Ops.SHL, x, "<<", reverse)

    def rshift(self, x: Operand, reverse: bool = False) -> Self:
        """Return self >> x of integers, which keeps the sign; 0 where x is out of range.

        Errors: as `lshift`.
        """
        return self._shift(Ops.SHR, x, ">>", reverse)

    # selection

    def maximum(self, x: Operand) -> Self:
        """Return the greater of each pair; NaN if either is."""
        return self._extreme(Ops.MAX, x)

    def minimum(self, x: Operand) -> Self:
        """Return the lesser of each pair; NaN if either is."""
        return self._extreme(Ops.MIN, x)

    def where(self, x: Operand, y: Operand) -> Self:
        """Return x where this tensor is true, else y.

        Shapes: all three broadcast. Dtypes: x and y promote; this one is bool.
        Errors: DTypeError if this one is not bool, or if x or y is no tensor, array or number.
        """
        if not self.dtype.is_bool:
            raise dtype_error(
                f"where: a condition of {self.dtype}",
                "a condition is a bool tensor, and this one has numbers",
                "a comparison: (t > 0).where(x, y), or (t != 0).where(x, y)",
            )
        yes, no = self._branches(x, y)
        nodes = matched("choose between", self.uop, *promoted_tensors("choose", yes, no))
        return self._with(UOp(Ops.WHERE, nodes[1].dtype, nodes), yes, no)

    def _branches(self, x: Operand, y: Operand) -> tuple[Self, Self]:
        """Return the branches as tensors: a scalar takes the dtype of the other one, if that has
        one."""
        x, y = python_scalar(x), python_scalar(y)
        if isinstance(x, bool | int | float) and isinstance(y, bool | int | float):
            free = self._with(UOp.const(dtypes.bool, False))
            return free._lift(x, "choose"), free._lift(y, "choose")
        if isinstance(x, bool | int | float):
            no = self._lift(y, "choose")
            return no._lift(x, "choose"), no
        yes = self._lift(x, "choose")
        return yes, yes._lift(y, "choose")

    # helpers

    def _binary(self, op: Ops, x: Operand, what: str, reverse: bool = False) -> Self:
        a, b, other = self._matched(x, what, reverse)
        return self._with(a.alu(op, b), other)

    def _extreme(self, op: Ops, x: Operand) -> Self:
        a, b, other = self._matched(x, "compare")
        if a.dtype.is_bool:
            op = Ops.OR if op is Ops.MAX else Ops.AND
        # a bare constant would take the whole gradient of a tie (ir/gradient/rules.py)
        a, b = filled(a, b)
        return self._with(a.alu(op, b), other)

    def _bits(self, op: Ops, x: Operand, sign: str, reverse: bool) -> Self:
        a, b, other = self._integers(x, sign, reverse)
        return self._with(a.alu(op, b), other)

    def _shift(self, op: Ops, x: Operand, sign: str, reverse: bool) -> Self:
        x, swapped = python_scalar(x), flag(reverse, "reverse")
        if isinstance(x, int) and not swapped:
            if x < 0:
                raise shape_error(
                    f"cannot shift by {x} places",
                    "a number of places is 0 or more",
                    f"{'>>' if sign == '<<' else '<<'} {-x}, to shift the other way",
                )
            kind = dtypes.default_int if self.dtype.is_bool else self.dtype
            x = min(x, kind.bits)  # longer shifts have the same result
        a, b, other = self._integers(x, sign, swapped)
        if a.dtype.is_bool:
            raise dtype_error(
                f"cannot apply {sign} to bool", "a bool has no bits to shift", ".int() first"
            )
        return self._with(a.alu(op, b), other)

    def _integers(self, x: Operand, sign: str, reverse: bool) -> tuple[UOp, UOp, Self]:
        """Return both operands as `_matched` does. Errors: DTypeError for floats, and for integers
        that promote to a float."""
        other = self._lift(x, f"apply {sign} to")
        _refuse_floats(sign, self.dtype, other.dtype)
        a, b, other = self._matched(other, f"apply {sign} to", reverse)
        if a.dtype.is_float:
            raise dtype_error(
                f"cannot apply {sign} to {self.dtype} and {other.dtype}",
                "no integer type holds the values of both",
                f".cast(dtypes.{self.dtype}) on the other",
            )
        return a, b, other

    # operators

    __add__, __radd__ = add, _reflected(add)
    __sub__, __rsub__ = sub, _reflected(sub)
    __mul__, __rmul__ = mul, _reflected(mul)
    __truediv__, __rtruediv__ = div, _reflected(div)
    __floordiv__, __rfloordiv__ = idiv, _reflected(idiv)
    __mod__, __rmod__ = mod, _reflected(mod)
    __pow__, __rpow__ = pow, _reflected(pow)
    __and__, __rand__ = bitwise_and, _reflected(bitwise_and)
    __or__, __ror__ = bitwise_or, _reflected(bitwise_or)
    __xor__, __rxor__ = bitwise_xor, _reflected(bitwise_xor)
    __lshift__, __rlshift__ = lshift, _reflected(lshift)
    __rshift__, __rrshift__ = rshift, _reflected(rshift)

    def __neg__(self) -> Self:
        return self.neg()

    def __pos__(self) -> Self:
        return self

    def __invert__(self) -> Self:
        return self.bitwise_not()


def _refuse_floats(sign: str, *kinds: DType) -> None:
    for dtype in kinds:
        if dtype.is_float:
            raise dtype_error(
                f"cannot apply {sign} to {dtype}",
                "it works on the bits of integers and bools",
                "a comparison, or .int() first, or .bitcast() for the bits of a float",
            )


def _negative(value: UOp) -> UOp:
    if value.is_const:
        return value.like(-value.arg)
    return -value


def _numbers(value: UOp) -> UOp:
    """Return bools as int32, for ops that bools do not have."""
    return cast_to(value, dtypes.default_int) if value.dtype.is_bool else value
