"""Convolution: windows of the input times the kernel, summed, which scheduling fuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeVar

from workbench.base.dtypes import DType, promote
from workbench.ir.node.shapes import Shape
from workbench.tensor.base import Base
from workbench.tensor.movement.windows import (
    check_fits,
    padded_for,
    windows,
    windows_of,
)
from workbench.tensor.operands.arguments import whole
from workbench.tensor.operands.broadcast import wide_dtype
from workbench.tensor.operands.literal import as_dtype
from workbench.tensor.operands.refuse import shape_error

T = TypeVar("T", bound=Base)


class Convolution(Base):
    """conv2d."""

    __slots__ = ()

    def conv2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dtype: DType | str | None = None,
    ) -> Self:
        """Return the convolution (the correlation, as everywhere) with `weight`, plus `bias`.

        Shapes: (batch, groups * c, y, x) with (channels, c, ky, kx) -> (batch, channels, ..);
        one or three axes in the place of y, x work as well; bias is (channels,). `padding` is
        a number for all sides, one per axis, or PyTorch's flat form.
        Dtypes: as `matmul`. Errors: ShapeError if channels or groups do not fit together, or
        the kernel is larger than the input.
        """
        weight, groups = self._lift(weight, "convolve"), whole(groups, "conv2d: groups")
        _check(self.shape, weight.shape, groups)
        channels, depth, *kernel = weight.shape
        each = windows_of("conv2d", kernel, stride, dilation, padding)
        check_fits("conv2d", self.shape, each)
        axes, batch, per_group = len(kernel), self.shape[0], channels // groups
        image, taps = (t.cast(wide_dtype(t.dtype)) for t in (self, weight))
        patches = image._with(windows(padded_for(image.uop, each, 0), each))
        outs = patches.shape[2 : 2 + axes]
        # (batch, group, channel, y, x, depth, ky, kx): the last 1 + axes are summed
        spread = patches.reshape(batch, groups, 1, depth, *outs, *kernel)
        order = (0, 1, 2, *range(4, 4 + axes), 3, *range(4 + axes, 4 + 2 * axes))
        shape = (1, groups, per_group, *(1,) * axes, depth, *kernel)
        kind = promote(self.dtype, weight.dtype) if dtype is None else as_dtype(dtype)
        products = spread.permute(order) * taps.reshape(shape)
        summed = products.sum(tuple(range(-1 - axes, 0)), dtype=dtype).cast(kind)
        output = summed.reshape(batch, channels, *outs)
        if bias is None:
            return output
        column = checked_bias(self._lift(bias, "convolve"), channels)
        return output + column.reshape(1, channels, *(1,) * axes)


def _check(image: Shape, weight: Shape, groups: int) -> None:
    because = hint = ""
    if len(weight) < 3 or len(image) != len(weight):
        because = (
            f"the input is (batch, channels, y, x) and the kernel (out, in, ky, kx),"
            f" and they have {len(image)} and {len(weight)} axes"
        )
        hint = "unsqueeze(0) for a batch of one" if len(image) < len(weight) else ""
    elif groups < 1 or weight[0] % groups:
        because = f"{groups} groups do not divide the {weight[0]} output channels"
    elif image[1] != groups * weight[1]:
        because = f"the input has {image[1]} channels, and the kernel {weight[1]}" + (
            f" for each of {groups} groups" if groups > 1 else ""
        )
        whole = image[1] % max(1, weight[1]) == 0 and image[1] and weight[1]
        hint = f"groups={image[1] // weight[1]}" if whole else ""
    if because:
        raise shape_error(
            f"cannot convolve shape {image} with a kernel of {weight}", because, hint
        )


def checked_bias(bias: T, channels: int) -> T:
    """Return `bias`. Errors: ShapeError unless it has one number for each of `channels`."""
    if bias.shape != (channels,):
        raise shape_error(
            f"cannot add a bias of shape {bias.shape}",
            f"there are {channels} output channels",
            f"a bias of shape ({channels},)",
        )
    return bias
