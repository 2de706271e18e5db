"""Random initial weights of a layer, scaled by the sizes of the layer.

The first axis counts outputs; the others are the inputs of one output.
"""

from __future__ import annotations

import math
from typing import Any, Self

from workbench.base.dtypes import DType
from workbench.ir.node.shapes import addressable
from workbench.tensor.creation.random import Random, float_dtype
from workbench.tensor.operands.arguments import number
from workbench.tensor.operands.axes import sizes
from workbench.tensor.operands.refuse import shape_error


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
        """Return numbers from -1 up to 1, divided by the square root of how many they are.

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
        """Return numbers of the uniform distribution within the square root of 6 / (outputs +
        inputs).

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
        """Return numbers of the uniform distribution within the square root of
        6 / ((1 + a**2) * inputs), where `a` is the slope of the leaky_relu that follows.

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
        """Return numbers of the normal distribution of the deviation that `kaiming_uniform` has.

        Errors: DTypeError if `dtype` is not a float.
        """
        size = addressable(sizes(shape, "kaiming_normal"))
        std = _kaiming(size, float(number(a, "kaiming_normal: a")))
        return cls.normal(size, mean=0.0, std=std, dtype=dtype, device=device)._leaf_if(
            requires_grad
        )


def _kaiming(size: tuple[int, ...], a: float) -> float:
    """Return the deviation that keeps the variance of what flows through a layer."""
    return math.sqrt(2.0 / (1 + a * a)) / math.sqrt(max(1, math.prod(size[1:])))
