"""Arithmetic of nodes as Python writes it: `a + 1`, `a < b`, `a.max(b)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from workbench.base.dtypes import Const, DType
from workbench.ir.node.ops import Ops


class Operators:
    """Python's operators on a UOp. A plain number on the other side becomes a constant of the
    node's dtype."""

    __slots__ = ()

    dtype: DType
    arg: Any

    if TYPE_CHECKING:

        @property
        def is_const(self) -> bool: ...
        def like(self, value: Const) -> Self: ...
        def alu(self, op: Ops, *others: Self) -> Self: ...

    def _operand(self, other: Self | Const) -> Self:
        return other if isinstance(other, Operators) else self.like(other)

    def __add__(self, other: Self | Const) -> Self:
        return self.alu(Ops.ADD, self._operand(other))

    def __mul__(self, other: Self | Const) -> Self:
        return self.alu(Ops.MUL, self._operand(other))

    # a sum and a product have their constant on the right
    __radd__ = __add__
    __rmul__ = __mul__

    def __sub__(self, other: Self | Const) -> Self:
        other = self._operand(other)
        if other.is_const and not other.dtype.is_bool:
            return self + other.like(-other.arg)
        return self + (other * -1 if other.dtype.is_int else -other)

    def __rsub__(self, other: Const) -> Self:
        return (self * -1 if self.dtype.is_int else -self) + other

    def __truediv__(self, other: Self | Const) -> Self:
        return self.alu(Ops.FDIV, self._operand(other))

    def __rtruediv__(self, other: Const) -> Self:
        return self.recip() if other == 1 else self.like(other) / self

    def __floordiv__(self, other: Self | Const) -> Self:
        return self.alu(Ops.IDIV, self._operand(other))

    def __mod__(self, other: Self | Const) -> Self:
        return self.alu(Ops.MOD, self._operand(other))

    def __lt__(self, other: Self | Const) -> Self:
        return self.alu(Ops.CMPLT, self._operand(other))

    def __le__(self, other: Self | Const) -> Self:
        return self.alu(Ops.CMPLE, self._operand(other))

    def __gt__(self, other: Self | Const) -> Self:
        return self._operand(other).alu(Ops.CMPLT, self)

    def __ge__(self, other: Self | Const) -> Self:
        return self._operand(other).alu(Ops.CMPLE, self)

    def eq(self, other: Self | Const) -> Self:
        """Return where this equals `other`. `==` is identity: nodes are keys of dictionaries."""
        return self.alu(Ops.CMPEQ, self._operand(other))

    def ne(self, other: Self | Const) -> Self:
        """Return where this differs from `other`."""
        return self.alu(Ops.CMPNE, self._operand(other))

    def __and__(self, other: Self | Const) -> Self:
        return self.alu(Ops.AND, self._operand(other))

    def __or__(self, other: Self | Const) -> Self:
        return self.alu(Ops.OR, self._operand(other))

    def __xor__(self, other: Self | Const) -> Self:
        return self.alu(Ops.XOR, self._operand(other))

    def __lshift__(self, other: Self | Const) -> Self:
        return self.alu(Ops.SHL, self._operand(other))

    def __rshift__(self, other: Self | Const) -> Self:
        return self.alu(Ops.SHR, self._operand(other))

    def __neg__(self) -> Self:
        return self.alu(Ops.NEG)

    def __invert__(self) -> Self:
        return self.alu(Ops.NOT)

    def max(self, other: Self | Const) -> Self:
        """Return the greater of this and `other`; NaN if either is."""
        return self.alu(Ops.MAX, self._operand(other))

    def min(self, other: Self | Const) -> Self:
        """Return the lesser of this and `other`; NaN if either is."""
        return self.alu(Ops.MIN, self._operand(other))

    def sqrt(self) -> Self:
        """Return the square root."""
        return self.alu(Ops.SQRT)

    def recip(self) -> Self:
        """Return 1 / this."""
        return self.alu(Ops.RECIP)

    def trunc(self) -> Self:
        """Return this rounded towards zero."""
        return self.alu(Ops.TRUNC)

    def exp2(self) -> Self:
        """Return 2 to the power of this."""
        return self.alu(Ops.EXP2)

    def log2(self) -> Self:
        """Return the logarithm to base 2."""
        return self.alu(Ops.LOG2)

    def sin(self) -> Self:
        """Return the sine of this in radians."""
        return self.alu(Ops.SIN)

    def cos(self) -> Self:
        """Return the cosine of this in radians."""
        return self.alu(Ops.COS)
