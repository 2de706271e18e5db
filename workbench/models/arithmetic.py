"""Arithmetic that operators of several frameworks share."""

from __future__ import annotations

from workbench.base.dtypes import dtypes
from workbench.tensor.tensor import Tensor


def wide(x: Tensor) -> Tensor:
    """Return floats of 32 bits for shorter ones: intermediate values are not rounded to fewer."""
    return x.cast(dtypes.float32) if x.dtype.is_low_precision else x


def moments(x: Tensor, axes: tuple[int, ...], epsilon: float) -> tuple[Tensor, Tensor]:
    """Return the mean along axes, which stay, and the inverse of the deviation."""
    mean = x.mean(axes, keepdim=True)
    centred = x - mean
    return mean, ((centred * centred).mean(axes, keepdim=True) + epsilon).rsqrt()


def standardized(x: Tensor, axes: tuple[int, ...], epsilon: float) -> Tensor:
    """Return `x` with mean 0 and deviation 1 along axes."""
    mean, inverse = moments(x, axes, epsilon)
    return (x - mean) * inverse
