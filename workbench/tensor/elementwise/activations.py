"""Activation functions of neural networks, element by element.

Sections: Smooth activation functions; Piecewise activation functions.
"""

from __future__ import annotations

import math
from typing import Self

from workbench.ir.functions.formulas import absolute
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import choice, number, shape_error

# --------------------------------------------------------------------------------------------------
# Smooth activation functions.


class Activations(Base):
    """sigmoid, tanh, softplus, and functions that are gated by them.

    Dtypes: integers and bools are taken as float32. NaN stays NaN; at the infinities each function
    has its limit.
    """

    __slots__ = ()

    def sigmoid(self) -> Self:
        """Return 1 / (1 + e ** -self): 0 and 1 at the infinities."""
        return self._function(Ops.SIGMOID)

    def logsigmoid(self) -> Self:
        """Return log(sigmoid(self)), without its loss of precision."""
        return self._float(lambda x: -(-x).alu(Ops.SOFTPLUS))

    def tanh(self) -> Self:
        """Return the hyperbolic tangent: -1 and 1 at the infinities, with the right sign near 0."""
        return self._function(Ops.TANH)

    def softsign(self) -> Self:
        """Return self / (1 + |self|): -1 and 1 at the infinities."""
        return self._float(_softsign)

    def softplus(self, beta: float = 1.0) -> Self:
        """Return log(1 + e ** (beta * self)) / beta, which is smooth and close to relu.

        Errors: ShapeError for `beta` = 0.
        """
        scale = number(beta, "softplus: beta")
        if not scale:
            raise shape_error("softplus: beta = 0", "the logarithm is divided by it", "beta=1.0")
        return self._float(lambda x: (x * scale).alu(Ops.SOFTPLUS) * (1.0 / scale))

    def silu(self) -> Self:
        """Return self * sigmoid(self). Also known as: swish."""
        return self._float(lambda x: _gated(x, x))

    def swish(self) -> Self:
        """Return `silu()`."""
        return self.silu()

    def mish(self) -> Self:
        """Return self * tanh(softplus(self)). Source: Misra 2019."""
        return self._float(lambda x: _above_limit(x) * x.alu(Ops.SOFTPLUS).alu(Ops.TANH))

    def gelu(self, approximate: str = "tanh") -> Self:
        """Return self * P(normal < self), by the tanh formula; exactly with "none".

        Rewrite: x/2 * (1 + tanh(y)) -> x * sigmoid(2y), y = sqrt(2/pi) * (x + 0.044715 x^3),
        which does not subtract nearly equal numbers. Source: Hendrycks and Gimpel 2016.
        Errors: DTypeError for another `approximate`.
        """
        scale = 2.0 * math.sqrt(2 / math.pi)
        way = choice(approximate, "gelu: approximate", ("tanh", "none"))
        if way == "none":
            return self._float(_exact_gelu)
        return self._float(lambda x: _gated(x, x * (x * x * (0.044715 * scale) + scale)))

    def quick_gelu(self) -> Self:
        """Return self * sigmoid(1.702 * self), which is close to `gelu`."""
        return self._float(lambda x: _gated(x, x * 1.702))


def _gated(x: UOp, y: UOp) -> UOp:
    """Return x * sigmoid(y), where y falls without bound as x does: 0 at minus infinity."""
    return _above_limit(x) * y.alu(Ops.SIGMOID)


def _above_limit(x: UOp) -> UOp:
    """Return x, but at least -1000: below that its gate is 0 in every float type."""
    return x.max(-1000.0)


def _exact_gelu(x: UOp) -> UOp:
    gate = (x * math.sqrt(0.5)).alu(Ops.ERF) + 1.0
    return _above_limit(x) * gate * 0.5


def _softsign(x: UOp) -> UOp:
    """Return x / (1 + |x|). Far beyond where this rounds to 1, x is clamped: infinities would give
    NaN."""
    inside = x.max(-(2.0**60)).min(2.0**60)
    return inside / (absolute(inside) + 1.0)


# --------------------------------------------------------------------------------------------------
# Piecewise activation functions: the identity above 0, and a line, a constant or an exponential
# below.
#
# Where two pieces meet, the value and the gradient are those of the lower piece; at a limit the
# gradient is 0.


class Rectifiers(Base):
    """relu, elu, hardtanh and their like.

    Dtypes: all but `relu`, `relu6` and `hardtanh` take integers and bools as float32. NaN stays
    NaN; at the infinities each function has its limit.
    """

    __slots__ = ()

    def relu(self) -> Self:
        """Return the greater of self and 0."""
        if self.dtype.is_bool or self.dtype.kind == "uint":
            return self
        return self._with(self.uop.max(0))

    def relu6(self) -> Self:
        """Return self, clamped between 0 and 6."""
        value = self.relu()
        return value.minimum(6) if value.dtype.is_bool else value._with(value.uop.min(6))

    def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Self:
        """Return self, clamped between `min_val` and `max_val`.

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
        """Return `alpha` * self + `beta`, clamped between 0 and 1: it is close to `sigmoid`."""
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
    # With a negative slope t may be 1: the exponential is then infinite.
    below = (t * 2.0) / (1.0 - t)
    return is_above.where(x, below * alpha)
