"""Chained operands and functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Self

from workbench.tensor.base import Base, Operand
from workbench.tensor.operands.arguments import listed, short
from workbench.tensor.operands.refuse import dtype_error


class Several(Base):
    """usum, uprod, ufix, sequential."""

    __slots__ = ()

    def usum(self, *uops: Operand) -> Self:
        """Return the sum of this tensor and `uops`."""
        return reduce(lambda total, x: total + x, uops, self)

    def uprod(self, *uops: Operand) -> Self:
        """Return the product of this tensor and `uops`."""
        return reduce(lambda total, x: total * x, uops, self)

    def ufix(self, x: Operand) -> Self:
        """Return `x` as a tensor; a number takes this one's dtype where it fits.

        Errors: DTypeError if it is not a number, an array or a tensor.
        """
        return self._lift(x, "combine")

    def sequential(self, ll: Sequence[Callable[[Any], Any]]) -> Self:
        """Return the result of the functions `ll`, each of what the one before it returns.

        Errors: DTypeError for one that cannot be called.
        """
        result: Any = self
        for layer in listed(ll, "sequential: ll"):
            if not callable(layer):
                raise dtype_error(
                    f"sequential: {short(layer)} cannot be called",
                    "each layer is a function of a tensor",
                    "x.sequential([f, g]), which is g(f(x))",
                )
            result = layer(result)
        return result  # type: ignore[no-any-return]
