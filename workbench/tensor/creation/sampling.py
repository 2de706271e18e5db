"""Initial weights of layers; random choices: dropped elements, indices and permutations.

Sections: Random initial weights of a layer, scaled by the sizes of the layer; Random choices.
"""

from __future__ import annotations

import math
from typing import Any, Self

from workbench.base.context import TRAINING
from workbench.base.dtypes import DType, dtypes
from workbench.ir.gradient.occurrences import independent
from workbench.ir.node.views import addressable
from workbench.tensor.creation.random import Random, float_dtype
from workbench.tensor.operands.arguments import dtype_error, flag, number, shape_error, short, whole
from workbench.tensor.operands.axes import sizes
from workbench.tensor.operands.literal import as_dtype

# --------------------------------------------------------------------------------------------------
# Random initial weights of a layer, scaled by the sizes of the layer.
#
# The first axis counts outputs; the others are the inputs of one output.


class InitialWeights(Random):
    """scaled_uniform, glorot_uniform, kaiming_uniform, kaiming_normal."""

    __slots__ = ()

    @classmethod
    def scaled_uniform(
        cls,
        *shape: Any,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return uniform numbers from -1 up to 1, divided by the square root of their number.

        Errors: DTypeError if `dtype` is not a float.
        """
        size = addressable(sizes(shape, "scaled_uniform"))
        factor = max(1, math.prod(size)) ** -0.5
        kind = float_dtype(dtype, "scaled_uniform")
        return cls._scaled("scaled_uniform", (size,), 2, kind, device, -1, factor)._leaf_if(
            requires_grad
        )

    @classmethod
    def glorot_uniform(
        cls,
        *shape: Any,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return numbers of the uniform distribution from -b up to b, where b is the square root of
        6 / (outputs + inputs).

        Errors: ShapeError for a scalar; DTypeError if `dtype` is not a float.
        Source: Glorot and Bengio 2010, "Understanding the difficulty of training deep feedforward
        neural networks".
        """
        size = addressable(sizes(shape, "glorot_uniform"))
        if not size:
            raise shape_error(
                "cannot draw the weights of a layer as a scalar",
                "the first axis counts its outputs",
                "Tensor.glorot_uniform(outputs, inputs)",
            )
        factor = (6 / max(1, size[0] + math.prod(size[1:]))) ** 0.5
        kind = float_dtype(dtype, "glorot_uniform")
        return cls._scaled("glorot_uniform", (size,), 2, kind, device, -1, factor)._leaf_if(
            requires_grad
        )

    @classmethod
    def kaiming_uniform(
        cls,
        *shape: Any,
        a: float = 0.01,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return numbers of the uniform distribution from -b up to b, where b is the square root of
        6 / ((1 + a**2) * inputs), and `a` the slope of the leaky_relu that follows.

        Errors: DTypeError if `dtype` is not a float. Source: He, Zhang, Ren and Sun 2015,
        "Delving deep into rectifiers".
        """
        size = addressable(sizes(shape, "kaiming_uniform"))
        slope = float(number(a, "kaiming_uniform: a"))
        bound = math.sqrt(3.0) * _kaiming(size, slope)
        return cls.uniform(size, low=-bound, high=bound, dtype=dtype, device=device)._leaf_if(
            requires_grad
        )

    @classmethod
    def kaiming_normal(
        cls,
        *shape: Any,
        a: float = 0.01,
        dtype: DType | str | None = None,
        device: str | None = None,
        requires_grad: bool | None = None,
    ) -> Self:
        """Return numbers of the normal distribution, with the deviation of `kaiming_uniform`.

        Errors: DTypeError if `dtype` is not a float.
        """
        size = addressable(sizes(shape, "kaiming_normal"))
        std = _kaiming(size, float(number(a, "kaiming_normal: a")))
        return cls.normal(size, mean=0.0, std=std, dtype=dtype, device=device)._leaf_if(
            requires_grad
        )


def _kaiming(size: tuple[int, ...], a: float) -> float:
    """Return the deviation of weights that keeps the variance of activations through a layer."""
    return math.sqrt(2.0 / (1 + a * a)) / math.sqrt(max(1, math.prod(size[1:])))


# --------------------------------------------------------------------------------------------------
# Random choices.

_MOST_CLASSES = 1 << 18
"""The maximal number of classes that fractions of 23 bits draw."""
_MOST_SHORT_KEYS = 1 << 12
"""The maximal number of elements that keys of 23 bits order."""
_MOST_LONG_KEYS = 1 << 19
"""The maximal number of elements that keys of 32 bits order: in longer rows too many keys would be
equal, and elements of equal keys stay in order."""


class Sampling(InitialWeights):
    """dropout, multinomial, randperm."""

    __slots__ = ()

    def dropout(self, p: float = 0.5) -> Self:
        """Return the tensor with each element 0 with probability `p`, the others divided by 1 - p.

        Nothing is dropped unless the setting TRAINING is 1, as in `with Context(TRAINING=1):`.
        Errors: ShapeError unless `p` is from 0 to 1; DTypeError for integers and bools that would
        be divided. Source: Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov 2014,
        "Dropout".
        """
        share = number(p, "dropout: p")
        if not 0 <= share <= 1:
            raise shape_error(
                f"cannot drop elements with probability p={share}",
                "a probability is a number from 0 to 1",
                "p=0.5",
            )
        if not TRAINING.value or share == 0:
            return self
        if share == 1:
            return self._with(independent(self.zeros_like().uop, self.uop))
        if not self.dtype.is_float:
            raise dtype_error(
                f"cannot drop elements of {self.dtype} with probability p={share}",
                "the others are divided by 1 - p, and the quotients are fractions",
                ".float() first",
            )
        draws = self.rand_like(dtype=dtypes.default_float, contiguous=False)
        return draws.ge(share).where(self, 0) / (1 - share)

    def multinomial(self, num_samples: int = 1, replacement: bool = False) -> Self:
        """Return random indices of elements of this tensor; each element is the weight of its
        index.

        Without `replacement` no index is drawn twice. Shapes: (n,) gives (num_samples,), and (rows,
        n) gives (rows, num_samples). Dtypes: int32. Errors: ShapeError for another number of axes,
        for no samples and, without `replacement`, for more than n; LanguageError, when it is
        computed, for more than 262,144 elements on a device without float64. Source, without
        replacement: Efraimidis and Spirakis 2006, "Weighted random sampling with a reservoir".
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
        # Each of a million equal classes would get 8 or 9 of 2**23 fractions; 8.4 is right.
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
            # Half a step is added: a draw of 0 would wait for ever, as a weight of 0 does.
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
        if count <= _MOST_SHORT_KEYS:
            keys = cls.rand(count, device=device)
        else:
            whole_kind = dtypes.int32 if count <= _MOST_LONG_KEYS else dtypes.int64
            low, high = int(whole_kind.min), int(whole_kind.max) + 1
            keys = cls.randint(count, low=low, high=high, dtype=whole_kind, device=device)
        return keys.argsort().cast(kind)._leaf_if(requires_grad)
