"""Piecewise activation functions: the identity above 0, and a line, a constant or an exponential
below.

At a place where two pieces meet, the value and the gradient are those of the lower one; at a limit
the gradient is 0.
"""

from __future__ import annotations

from typing import Self

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import number
from workbench.tensor.operands.refuse import shape_error


class Rectifiers(Base):
    """relu, elu, hardtanh and their like.

    Dtypes: all but `relu`, `relu6` and `hardtanh` take integers and bools as float32. NaN stays
    NaN; at the infinities each has its limit.
    """

    __slots__ = ()

    def relu(self) -> Self:
        """Return the greater of self and 0."""
        if self.dtype.is_bool or self.dtype.kind == "uint":
            return self
        return self._with(self.uop.max(0))

    def relu6(self) -> Self:
        """Return self, clamped to 0 and 6."""
        value = self.relu()
        return value.minimum(6) if value.dtype.is_bool else value._with(value.uop.min(6))

    def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Self:
        """Return self, clamped to `min_val` and `max_val`.

        Errors: ShapeError if `min_val` is above `max_val`.
        """
        low = number(min_val, "hardtanh: min_val")
        high = number(max_val, "hardtanh: max_val")
        if low > high:
            raise shape_error(
                f"hardtanh: min_val = {low} and max_val = {high}",
                "no number lies between them",
                f"hardtanh({high}, {low})",
            )
        if not self.dtype.is_float:
            return self.clip(low, high)
        return self._with(self.uop.max(low).min(high))

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """Return self above 0, and `neg_slope` * self below."""
        slope = number(neg_slope, "leaky_relu: neg_slope")
        return self._float(lambda x: (x > 0.0).where(x, x * slope))

    def elu(self, alpha: float = 1.0) -> Self:
        """Return self above 0, and `alpha` * (e ** self - 1) below."""
        scale = number(alpha, "elu: alpha")
        return self._float(lambda x: _exponential_below(x, scale))

    def celu(self, alpha: float = 1.0) -> Self:
        """Return self above 0, and `alpha` * (e ** (self / alpha) - 1) below.

        Errors: ShapeError for `alpha` = 0. Source: Barron 2017.
        """
        scale = number(alpha, "celu: alpha")
        if not scale:
            raise shape_error("celu: alpha = 0", "self is divided by it", "alpha=1.0")
        return self._float(lambda x: _exponential_below(x, scale, 1.0 / scale))

    def selu(self, alpha: float = 1.67326, gamma: float = 1.0507) -> Self:
        """Return `gamma` * `elu(alpha)`, which keeps mean 0 and variance 1 from layer to layer.

        Source: Klambauer et al. 2017.
        """
        scale = number(alpha, "selu: alpha")
        factor = number(gamma, "selu: gamma")
        return self._float(lambda x: _exponential_below(x, scale) * factor)

    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
        """Return `alpha` * self + `beta`, clamped to 0 and 1, which is close to `sigmoid`."""
        slope = number(alpha, "hardsigmoid: alpha")
        middle = number(beta, "hardsigmoid: beta")
        return self._float(lambda x: (x * slope + middle).max(0.0).min(1.0))

    def hardswish(self) -> Self:
        """Return self * relu6(self + 3) / 6, which is close to `silu`."""
        return self._float(_hardswish)


def _hardswish(x: UOp) -> UOp:
    """Return x * relu6(x + 3) / 6."""
    gate = (x + 3.0).max(0.0).min(6.0)
    # Below -3 the gate is 0: clamped there, minus infinity gives 0 and not NaN.
    return x.max(-3.0) * gate * (1 / 6)


def _exponential_below(x: UOp, alpha: float, slope: float = 1.0) -> UOp:
    """Return x above 0, else alpha * (e ** (slope * x) - 1).

    Rewrite: e ** y - 1 -> 2t / (1 - t), t = tanh(y / 2), which is exact near 0.
    """
    is_above = x > 0.0
    # Values above 0 do not reach the exponential: where it overflows, its gradient is NaN.
    rest = is_above.where(x.like(0.0), x)
    t = (rest * (0.5 * slope)).alu(Ops.TANH)
    # At t = 1, where the slope is negative, the exponential is infinite.
    below = (t * 2.0) / (1.0 - t)
    return is_above.where(x, below * alpha)
