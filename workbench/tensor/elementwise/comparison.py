"""Comparisons: bool tensors, with IEEE's rule that NaN differs from everything."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Self

from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base, Operand
from workbench.tensor.operands.arguments import flag, plain
from workbench.tensor.operands.broadcast import cast_to, expanded


class ComparisonMixin(Base):
    """< <= > >= == !=, by operator and by PyTorch's names.

    Dtypes: operands promote; the result is bool. A Python int out of range of the tensor's integer
    type compares as that number, without wrapping; one beyond 448 beside fp8e4m3, too.
    """

    __slots__ = ()

    __hash__ = object.__hash__

    def lt(self, x: Operand) -> Self:
        """Return self < x."""
        return self._compare(Ops.CMPLT, x, operator.lt)

    def le(self, x: Operand) -> Self:
        """Return self <= x."""
        return self._compare(Ops.CMPLE, x, operator.le)

    def gt(self, x: Operand) -> Self:
        """Return self > x."""
        return self._compare(Ops.CMPLT, x, operator.gt, swap=True)

    def ge(self, x: Operand) -> Self:
        """Return self >= x."""
        return self._compare(Ops.CMPLE, x, operator.ge, swap=True)

    def eq(self, x: Operand) -> Self:
        """Return self == x."""
        return self._compare(Ops.CMPEQ, x, operator.eq)

    def ne(self, x: Operand) -> Self:
        """Return self != x."""
        return self._compare(Ops.CMPNE, x, operator.ne)

    def isnan(self) -> Self:
        """Return where self is not a number."""
        return self.ne(self)

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Self:
        """Return where self is infinite, in fp8e4m3 nowhere; an argument that is False leaves out
        that sign."""
        is_above = flag(detect_positive, "isinf: detect_positive")
        is_below = flag(detect_negative, "isinf: detect_negative")
        has_infinity = self.dtype.is_float and not self.dtype.saturates
        if not has_infinity or not (is_above or is_below):
            return self._with(expanded(UOp.const(dtypes.bool, False), self.shape))
        if is_above and is_below:
            return self.abs().eq(math.inf)
        return self.eq(math.inf if is_above else -math.inf)

    def isfinite(self) -> Self:
        """Return where self is a number and not infinite."""
        if not self.dtype.is_float:
            return self._with(expanded(UOp.const(dtypes.bool, True), self.shape))
        return self.eq(self) if self.dtype.saturates else self.abs().lt(math.inf)

    def _compare(
        self, op: Ops, x: Operand, python: Callable[[Any, Any], Any], swap: bool = False
    ) -> Self:
        x = plain(x)
        if self.dtype.is_int and type(x) is int and not self._holds(x):
            # Every value of the type compares with x as 0 does, since x is out of range.
            answer = UOp.const(dtypes.bool, python(0, x))
            return self._with(expanded(answer, self.shape))
        mine = self._beside(x)
        a, b, other = mine._meet(x, "compare")
        a, b = (b, a) if swap else (a, b)
        return self._with(a.alu(op, b), other)

    def _beside(self, x: Operand) -> Self:
        """Return self, or in float32 where x is a number that would saturate."""
        if self.dtype.saturates and isinstance(x, int | float):
            is_held = abs(x) <= self.dtype.const(math.inf)
            return self if is_held else self._with(cast_to(self.uop, dtypes.float32))
        return self

    def _holds(self, value: int) -> bool:
        return self.dtype.min <= value <= self.dtype.max

    __lt__, __le__, __gt__, __ge__ = lt, le, gt, ge
    # The elements are compared, as in numpy, where Python expects a bool.
    __eq__, __ne__ = eq, ne  # type: ignore[assignment]
