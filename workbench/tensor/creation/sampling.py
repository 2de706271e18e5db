"""Random choices: dropped elements, indices and permutations."""

from __future__ import annotations

import math
from typing import Self

from workbench.base.context import TRAINING
from workbench.base.dtypes import DType, dtypes
from workbench.ir.gradient.custom import independent
from workbench.tensor.creation.initial_weights import InitialWeights
from workbench.tensor.operands.arguments import flag, number, short, whole
from workbench.tensor.operands.literal import as_dtype
from workbench.tensor.operands.refuse import shape_error

_MOST_CLASSES = 1 << 18
"""Most classes that are drawn by a fraction of 23 bits."""
_FEW = 1 << 12
"""Most elements that are ordered by keys of 23 bits."""
_MANY = 1 << 19
"""Most elements that are ordered by keys of 32 bits: in longer rows pairs of equal keys would show
among all neighbours."""


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
            return self._with(independent(self.zeros_like().uop, self.uop))
        draws = self.rand_like(dtype=dtypes.default_float, contiguous=False)
        return draws.ge(share).where(self, 0) / (1 - share)

    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """Return indices of elements of this tensor, each drawn as often as its weight says.

        Without `replacement` no index is drawn twice. Shapes: (n,) gives (num_samples,), and (rows,
        n) gives (rows, num_samples). Dtypes: int32. Errors: ShapeError for another number of axes,
        no samples, or more than there are elements; when it is computed LanguageError for more than
        262,144 elements on a device without float64. Source, without replacement: Efraimidis and
        Spirakis 2006, "Weighted random sampling with a reservoir".
        """
        count = whole(num_samples, "multinomial: num_samples", 1)
        is_repeated = flag(replacement, "multinomial: replacement")
        if self.ndim not in (1, 2) or not self.shape[-1]:
            raise shape_error(
                f"cannot draw from weights of shape {self.shape}",
                "they are one row, or several, of one weight or more",
                "t.reshape(-1) for a row",
            )
        rows, classes = math.prod(self.shape[:-1]), self.shape[-1]
        # With 23 bits a class of a million would be drawn 8 or 9 times where it should be 8.4.
        kind = dtypes.float32 if classes <= _MOST_CLASSES else dtypes.float64
        weights = self.reshape(rows, classes).cast(kind)
        if not is_repeated and count > classes:
            raise shape_error(
                f"cannot draw {short(count)} of {classes} elements, each once at most",
                "there are fewer",
                "replacement=True",
            )
        if is_repeated or count == 1:
            below = weights.cumsum(1)
            below = below / below.shrink([None, (classes - 1, classes)])
            draws = self.rand(count, rows, 1, device=self.device, dtype=kind)
            index = draws.ge(below).sum(2, dtype=dtypes.int32).permute(1, 0)
        else:
            draws = self.rand(rows, classes, device=self.device, dtype=kind)
            # Half a step keeps draws from 0, whose wait would be that of a weight of 0.
            waits = (draws + 2.0 ** -(kind.fraction_bits + 1)).log().neg() / weights
            index = waits.topk(count, 1, False)[1].cast(dtypes.int32)
        return index.reshape(count) if self.ndim == 1 else index

    @classmethod
    def randperm(
        cls,
        n: int,
        device: str | None = None,
        dtype: DType | str = dtypes.int32,
        *,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return 0, 1, .. n - 1 in a random order, each order as likely as the others.

        Errors: ShapeError if `n` is negative.
        """
        count, kind = whole(n, "randperm: n", 0), as_dtype(dtype)
        # Equal keys stay in order; keys are long enough to make them rare.
        if count <= _FEW:
            keys = cls.rand(count, device=device)
        else:
            whole_kind = dtypes.int32 if count <= _MANY else dtypes.int64
            low, high = int(whole_kind.min), int(whole_kind.max) + 1
            keys = cls.randint(count, low=low, high=high, dtype=whole_kind, device=device)
        return keys.argsort().cast(kind)._leaf_if(requires_grad)
