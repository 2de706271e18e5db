"""Random choices: which elements are dropped, which indices are taken, in which order."""

from __future__ import annotations

from typing import Self

from workbench.base.context import TRAINING
from workbench.base.dtypes import DType, dtypes
from workbench.tensor.creation.initial_weights import InitialWeights
from workbench.tensor.operands.arguments import flag, number, short, whole
from workbench.tensor.operands.literal import as_dtype
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

    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """Return indices of elements of this tensor, each drawn as often as its weight says.

        Without `replacement` no index is drawn twice. Shapes: (n,) gives (num_samples,), and (rows,
        n) gives (rows, num_samples). Dtypes: int32. Errors: ShapeError for another number of axes,
        no samples, or more than there are elements. Source, without replacement: Efraimidis and
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
        weights = self.reshape(-1, self.shape[-1]).cast(dtypes.float32)
        rows, classes = weights.shape
        if not is_repeated and count > classes:
            raise shape_error(
                f"cannot draw {short(count)} of {classes} elements, each once at most",
                "there are fewer",
                "replacement=True",
            )
        if is_repeated or count == 1:
            below = weights.cumsum(1)
            below = below / below.shrink([None, (classes - 1, classes)])
            draws = self.rand(count, rows, 1, device=self.device)
            index = draws.ge(below).sum(2).permute(1, 0).cast(dtypes.int32)
        else:
            draws = self.rand(rows, classes, device=self.device)
            waits = draws.log().neg() / weights
            index = waits.topk(count, 1, False)[1].cast(dtypes.int32)
        return index.reshape(count) if self.ndim == 1 else index

    @classmethod
    def randperm(
        cls,
        n: int,
        device: str | None = None,
        dtype: DType | str = dtypes.int32,
    ) -> Self:
        """Return 0, 1, .. n - 1 in a random order, each order as likely as the others.

        Errors: ShapeError if `n` is negative.
        """
        count, kind = whole(n, "randperm: n", 0), as_dtype(dtype)
        return cls.rand(count, device=device).argsort().cast(kind)
