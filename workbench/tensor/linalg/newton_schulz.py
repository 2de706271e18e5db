"""Newton-Schulz orthogonalisation: the matrix with the same singular vectors and singular values
near 1, by a polynomial.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import listed, number, short, whole
from workbench.tensor.operands.refuse import shape_error

_MOST_STEPS = 100
"""Steps, of which each is kernels of their own; singular values near 1 need about 5, others 20."""


class NewtonSchulz(Base):
    """newton_schulz."""

    __slots__ = ()

    def newton_schulz(self, steps: int, params: Sequence[float], eps: float = 1e-7) -> Self:
        """Return self over its Frobenius norm plus `eps`, with an odd polynomial applied `steps`
        times: the sum of params[i] * (X X^T) ** i X.

        Shapes: (.., m, n), each matrix on its own.
        Dtypes: integers and bools are taken as float32.
        Errors: ShapeError for fewer than two axes, more than 100 steps, or no `params`.
        Source: Kovarik 1970; Bjorck and Bowie 1971.
        """
        times = whole(steps, "newton_schulz: steps", 0)
        factors = [
            number(p, "newton_schulz: a number of params")
            for p in listed(params, "newton_schulz: params")
        ]
        small = number(eps, "newton_schulz: eps")
        if times > _MOST_STEPS:
            raise shape_error(
                f"newton_schulz: steps = {short(times)} is too large",
                f"it is {_MOST_STEPS} or less: each step is kernels of its own",
                "steps=5",
            )
        if self.ndim < 2 or not factors:
            raise shape_error(
                f"newton_schulz: shape {self.shape} and {len(factors)} params",
                "it needs matrices, which have two axes, and one number of params or more",
                "steps=5, params=(3.4445, -4.775, 2.0315)",
            )
        value = self._wide()
        value = value / (value.square().sum((-2, -1), keepdim=True).sqrt() + small)
        is_tall = self.shape[-2] > self.shape[-1]
        value = value.transpose(-1, -2) if is_tall else value
        for _ in range(times):
            value = value._odd_polynomial(factors)
        value = value.transpose(-1, -2) if is_tall else value
        return value.cast(self._fraction())

    def _odd_polynomial(self, factors: Sequence[float]) -> Self:
        """Return the sum of factors[i] * (X X^T) ** i X, by Horner's rule."""
        square = self.matmul(self.transpose(-1, -2)).contiguous()
        total, scale = self, factors[-1]
        for factor in reversed(factors[:-1]):
            total, scale = square.matmul(total) * scale + self * factor, 1
        return (total * scale).contiguous()
