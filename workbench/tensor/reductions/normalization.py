"""Normalisation: values shifted and scaled to a fixed mean and variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from workbench.ir.node.shapes import Shape
from workbench.tensor.base import Base
from workbench.tensor.operands.arguments import number
from workbench.tensor.operands.axes import Axes, many_axes, one_axis
from workbench.tensor.operands.refuse import shape_error


class Normalization(Base):
    """layernorm, batchnorm, normalize. Dtypes: integers and bools are taken as float32."""

    __slots__ = ()

    def layernorm(self, axis: Axes = -1, eps: float = 1e-5) -> Self:
        """Return (self - mean) / sqrt(variance + `eps`) over `axis`; the variance is that of
        all elements (correction 0)."""
        many_axes(axis, self.ndim, "layernorm")
        small, value = number(eps, "layernorm: eps"), self._wide()
        centred = value - value.mean(axis, keepdim=True)
        spread = centred.square().mean(axis, keepdim=True) + small
        return (centred * spread.rsqrt()).cast(self._fraction())

    def batchnorm(
        self,
        weight: Self | None,
        bias: Self | None,
        mean: Self,
        invstd: Self,
        axis: int | Sequence[int] = 1,
    ) -> Self:
        """Return (self - `mean`) * `invstd` * `weight` + `bias`, of which each has a value for each
        place along `axis`.

        Shapes: each has the sizes of `axis` (of self, in order), or of all axes, 1 elsewhere.
        Errors: ShapeError for another shape.
        """
        axes = many_axes(axis, self.ndim, "batchnorm")
        columns = {
            name: self._channels(operand, axes, name)
            for name, operand in (("mean", mean), ("invstd", invstd))
        }
        scale = columns["invstd"]
        if weight is not None:
            scale = scale * self._channels(weight, axes, "weight")
        value = (self - columns["mean"]) * scale
        return value if bias is None else value + self._channels(bias, axes, "bias")

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """Return self over its `p`-norm along `dim`, which is taken as `eps` where it is less.

        Shapes: `p` is 0 (the number of elements that are not 0), infinity (the greatest), or
        another number (the p-th root of the sum of |self| ** p).
        """
        power, least = number(p, "normalize: p"), number(eps, "normalize: eps")
        one_axis(dim, self.ndim, "normalize")
        value = self._wide()
        norm = value._norm(power, dim).maximum(least)
        return (value / norm).cast(self._fraction())

    def _norm(self, power: float, dim: int) -> Self:
        if power == 0:
            return self.ne(0).sum(dim, keepdim=True).cast(self.dtype)
        size = self if power % 2 == 0 else self.abs()
        if math.isinf(power):
            return (size.max if power > 0 else size.min)(dim, keepdim=True)
        total = size.pow(power).sum(dim, keepdim=True)
        # The root of 0 has no finite gradient: there another number takes its place.
        is_zero = total.eq(0)
        return is_zero.where(0.0, is_zero.where(1.0, total).pow(1.0 / power))

    def _channels(self, operand: Self, axes: tuple[int, ...], name: str) -> Self:
        """Return `operand` in the shape that broadcasts along all axes but `axes`."""
        column = self._lift(operand, "normalise")
        sizes = tuple(self.shape[a] for a in axes)
        full = tuple(n if i in axes else 1 for i, n in enumerate(self.shape))
        if column.shape == sizes or _has_shape(column.shape, full):
            return column.reshape(full)
        raise shape_error(
            f"batchnorm: {name} of shape {column.shape} does not fit shape {self.shape}",
            f"it has a value for each place along axis {', '.join(map(str, axes))}",
            f"a {name} of shape {sizes}",
        )


def _has_shape(shape: Shape, full: Shape) -> bool:
    """Whether a shape is the full one, of which leading axes of size 1 may lack."""
    return math.prod(shape) == math.prod(full) and full[len(full) - len(shape) :] == shape
