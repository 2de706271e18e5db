"""Smooth activation functions of neural networks, element by element."""

from __future__ import annotations

import math
from typing import Self

from workbench.ir.functions.signs import absolute
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import number, text
from workbench.tensor.operands.refuse import dtype_error, shape_error


class Activations(Base):
    """sigmoid, tanh, softplus and what is gated by them.

    Dtypes: integers and bools are taken as float32. NaN stays NaN; at the infinities each has its
    limit.
    """

    __slots__ = ()

    def sigmoid(self) -> Self:
        """Return 1 / (1 + e ** -self): 0 and 1 at the infinities."""
        return self._function(Ops.SIGMOID)

    def logsigmoid(self) -> Self:
        """Return log(sigmoid(self)), without its loss of precision."""
        return self._float(lambda x: -(-x).alu(Ops.SOFTPLUS))

    def tanh(self) -> Self:
        """Return the hyperbolic tangent: -1 and 1 at the infinities, exact in sign near 0."""
        return self._function(Ops.TANH)

    def softsign(self) -> Self:
        """Return self / (1 + |self|): -1 and 1 at the infinities."""
        return self._float(_softsign)

    def softplus(self, beta: float = 1.0) -> Self:
        """Return log(1 + e ** (beta * self)) / beta, which is smooth and close to relu."""
        scale = number(beta, "softplus: beta")
        if not scale:
            raise shape_error("softplus: beta = 0", "it is divided by", "beta=1.0")
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
        """Return self * P(normal < self), by the tanh formula, or exactly ("none").

        Rewrite: x/2 * (1 + tanh(y)) -> x * sigmoid(2y), y = sqrt(2/pi) * (x + 0.044715 x^3),
        which does not subtract nearly equal numbers. Source: Hendrycks and Gimpel 2016.
        """
        scale = 2.0 * math.sqrt(2 / math.pi)
        way = text(approximate, "gelu: approximate")
        if way == "none":
            return self._float(_exact_gelu)
        if way != "tanh":
            raise dtype_error(f"gelu: there is no approximation {way!r}", 'it is "tanh" or "none"')
        return self._float(lambda x: _gated(x, x * (x * x * (0.044715 * scale) + scale)))

    def quick_gelu(self) -> Self:
        """Return self * sigmoid(1.702 * self), which is close to `gelu`."""
        return self._float(lambda x: _gated(x, x * 1.702))


def _gated(x: UOp, y: UOp) -> UOp:
    """Return x * sigmoid(y), for y that falls without bound with x: 0 at minus infinity."""
    return _above_limit(x) * y.alu(Ops.SIGMOID)


def _above_limit(x: UOp) -> UOp:
    """Return x, for a product with a gate that is 0 where x is below -1000, in every float type."""
    return x.max(-1000.0)


def _exact_gelu(x: UOp) -> UOp:
    gate = (x * math.sqrt(0.5)).alu(Ops.ERF) + 1.0
    return _above_limit(x) * gate * 0.5


def _softsign(x: UOp) -> UOp:
    """Return x / (1 + |x|), which rounds to 1 far below the limit here."""
    inside = x.max(-(2.0**60)).min(2.0**60)
    return inside / (absolute(inside) + 1.0)
