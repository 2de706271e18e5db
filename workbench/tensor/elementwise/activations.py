"""Activation functions of neural networks, element by element."""

from __future__ import annotations

import math
from typing import Self

from workbench.ir.functions.formulas import log1p
from workbench.ir.functions.signs import magnitude
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import number
from workbench.tensor.operands.refuse import shape_error


class Activations(Base):
    """relu and its smooth relatives, sigmoid, tanh.

    Dtypes: all but `relu` and `relu6` take integers and bools as float32. NaN stays NaN; at the
    infinities each has its limit.
    """

    __slots__ = ()

    def relu(self) -> Self:
        """Return the greater of self and 0."""
        if self.dtype.is_bool or self.dtype.kind == "uint":
            return self
        return self.maximum(0)

    def relu6(self) -> Self:
        """Return self, clamped to 0 and 6."""
        return self.relu().minimum(6)

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """Return self above 0, and `neg_slope` * self below."""
        slope = number(neg_slope, "leaky_relu: neg_slope")
        return self._float(lambda x: (x < 0.0).where(x * slope, x))

    def elu(self, alpha: float = 1.0) -> Self:
        """Return self above 0, and `alpha` * (e ** self - 1) below."""
        scale = number(alpha, "elu: alpha")
        return self._float(lambda x: _elu(x, scale))

    def sigmoid(self) -> Self:
        """Return 1 / (1 + e ** -self): 0 and 1 at the infinities."""
        return self._function(Ops.SIGMOID)

    def tanh(self) -> Self:
        """Return the hyperbolic tangent: -1 and 1 at the infinities, exact in sign near 0."""
        return self._function(Ops.TANH)

    def silu(self) -> Self:
        """Return self * sigmoid(self). Also known as: swish."""
        return self._float(lambda x: _gated(x, x))

    def swish(self) -> Self:
        """Return `silu()`."""
        return self.silu()

    def gelu(self) -> Self:
        """Return self * P(normal < self), by the tanh formula.

        Rewrite: x/2 * (1 + tanh(y)) -> x * sigmoid(2y), y = sqrt(2/pi) * (x + 0.044715 x^3),
        which does not subtract nearly equal numbers. Source: Hendrycks and Gimpel 2016.
        """
        scale = 2.0 * math.sqrt(2 / math.pi)
        return self._float(
            lambda x: _gated(x, x * (x * x * (0.044715 * scale) + scale))
        )

    def softplus(self, beta: float = 1.0) -> Self:
        """Return log(1 + e ** (beta * self)) / beta, which is smooth and close to relu."""
        scale = number(beta, "softplus: beta")
        if not scale:
            raise shape_error("softplus: beta = 0", "it is divided by", "beta=1.0")
        return self._float(lambda x: _softplus(x * scale) * (1.0 / scale))

    def hardswish(self) -> Self:
        """Return self * relu6(self + 3) / 6, which is close to `silu`."""
        return self._float(_hardswish)


def _gated(x: UOp, y: UOp) -> UOp:
    """Return x * sigmoid(y), for y that falls without bound with x: 0 at minus infinity."""
    # Where x is below -1000 the gate is 0 in every float type.
    return x.max(-1000.0) * y.alu(Ops.SIGMOID)


def _hardswish(x: UOp) -> UOp:
    """Return x * relu6(x + 3) / 6."""
    gate = (x + 3.0).max(0.0).min(6.0)
    # Below -3 the gate is 0: clamped there, minus infinity gives 0 and not NaN.
    return x.max(-3.0) * gate * (1 / 6)


def _elu(x: UOp, alpha: float) -> UOp:
    """Return x above 0, else alpha * (e ** x - 1).

    Rewrite: e ** x - 1 -> 2t / (1 - t), t = tanh(x / 2), which is exact near 0.
    """
    t = (x.min(0.0) * 0.5).alu(Ops.TANH)
    below = t * 2.0 / (1.0 - t)
    return (x > 0.0).where(x, below * alpha)


def _softplus(x: UOp) -> UOp:
    """Return log(1 + e ** x) as max(x, 0) + log(1 + e ** -|x|), which does not overflow."""
    return x.max(0.0) + log1p((-magnitude(x)).alu(Ops.EXP))
