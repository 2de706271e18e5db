"""Functions of two tensors, element by element, beside the operators."""

from __future__ import annotations

from typing import Self

from workbench.base.dtypes import dtypes
from workbench.ir.functions.signs import absolute
from workbench.ir.gradient.custom import depending
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base, Operand
from workbench.tensor.elementwise.division import truncated_remainder
from workbench.tensor.operands.arguments import plain
from workbench.tensor.operands.broadcast import cast_to, filled, wide_dtype


class Pairs(Base):
    """fmod, copysign, lerp, logaddexp. Operands promote and broadcast as those of `+`."""

    __slots__ = ()

    def fmod(self, x: Operand) -> Self:
        """Return self - trunc(self / x) * x: the sign is that of self.

        Dtypes: bools are taken as int32; an integer modulo zero is 0, a float NaN.
        """
        a, b, other = self._meet(x, "take the remainder of")
        if a.dtype.is_bool:
            a, b = (cast_to(v, dtypes.default_int) for v in (a, b))
        return self._with(truncated_remainder(a, b), other)

    def copysign(self, other: Operand) -> Self:
        """Return |self| with the sign of `other`, whose zeros have a sign, too.

        Dtypes: operands promote, and bools are taken as int32; integers stay.
        """
        a, b, sign = self._meet(other, "take the sign of")
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
        stop, share = self._lift(end, "interpolate"), plain(weight)
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
        a, b, operand = self._meet(other, "add the exponentials of")
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
