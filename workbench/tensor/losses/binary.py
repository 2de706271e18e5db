"""Binary losses: the negative logarithm of the probability of the true class of two."""

from __future__ import annotations

from typing import Self

from workbench.ir.node.ops import Ops
from workbench.tensor.base import Base
from workbench.tensor.losses.reduction import reduced, reduction_of

LEAST_LOG = -100.0
"""A logarithm is taken as this where it is less, so that a loss is finite, as in PyTorch."""


class BinaryLosses(Base):
    """binary_crossentropy, binary_crossentropy_logits.

    Shapes: `Y`, which has the probability of "true" for each element of self, broadcasts with it.
    `reduction` is "mean", "sum", or "none" for a loss of each element.
    Dtypes: integers and bools are taken as float32, and low-precision floats computed in float32.
    """

    __slots__ = ()

    def binary_crossentropy(self, Y: Self, reduction: str = "mean") -> Self:
        """Return -Y log(self) - (1 - Y) log(1 - self) of probabilities from 0 to 1, where a
        logarithm is at least -100."""
        how = reduction_of(reduction, "binary_crossentropy")
        chance, truth = self._wide(), self._lift(Y, "compare")._wide()
        yes, no = chance._bounded_log(), (1 - chance)._bounded_log()
        losses = (truth * yes + (1 - truth) * no).neg()
        return reduced(losses, how).cast(self._fraction())

    def binary_crossentropy_logits(
        self, Y: Self, reduction: str = "mean", pos_weight: Self | None = None
    ) -> Self:
        """Return `binary_crossentropy` of sigmoid(self), without its loss of precision.

        `pos_weight`, which broadcasts, is the factor of losses where "true" is.
        Rewrite: -> (1 - Y) x + (1 + (pos_weight - 1) Y) log(1 + e ** -x)
        """
        how = reduction_of(reduction, "binary_crossentropy_logits")
        x, truth = self._wide(), self._lift(Y, "compare")._wide()
        losses = x.neg()._function(Ops.SOFTPLUS)
        if pos_weight is not None:
            factor = self._lift(pos_weight, "weigh")._wide()
            losses = losses * ((factor - 1) * truth + 1)
        losses = losses + (1 - truth) * x
        return reduced(losses, how).cast(self._fraction())

    def _bounded_log(self) -> Self:
        """Return the logarithm, at least `LEAST_LOG`, with the gradient 0 at 0."""
        is_zero = self.eq(0)
        logs = is_zero.where(1.0, self).log()
        return is_zero.where(LEAST_LOG, logs.maximum(LEAST_LOG))
