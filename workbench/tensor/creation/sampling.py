"""Random choices: which elements are dropped, which indices are taken, in which order."""

from __future__ import annotations

from typing import Self

from workbench.base.context import TRAINING
from workbench.base.dtypes import dtypes
from workbench.tensor.creation.initial_weights import InitialWeights
from workbench.tensor.operands.arguments import number
from workbench.tensor.operands.refuse import shape_error


class Sampling(InitialWeights):
    """dropout, multinomial, randperm."""

    __slots__ = ()

    def dropout(self, p: float = 0.5) -> Self:
        """Return the tensor with each element 0 with probability `p`, the others divided by 1 - p.

        Nothing is dropped unless the setting TRAINING is 1, as in `with Context(TRAINING=1):`.
        Dtypes: integers and bools give the default float. Errors: ShapeError unless `p` is from 0
        to 1. Source: Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov 2014, "Dropout".
        """
        share = number(p, "dropout: p")
        if not 0 <= share <= 1:
            raise shape_error(
                f"cannot drop elements with probability p={share}",
                "a probability is a number from 0 to 1",
            )
        if not TRAINING.value or share == 0:
            return self
        if share == 1:
            return self.zeros_like()
        draws = self.rand_like(dtype=dtypes.default_float, contiguous=False)
        return draws.ge(share).where(self, 0) / (1 - share)
