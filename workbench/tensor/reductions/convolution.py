"""Convolution: a sum of windows of the input times the kernel, which scheduling fuses.

Its gradients are given directly where the stride is 1 and there is much to compute. That of the
input is a transposed convolution: one sum for each element, where the rules of the ops would sum
over channels for each window, and then over windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Self, TypeVar

from workbench.base.dtypes import DType, promote
from workbench.ir.gradient.custom import with_gradient
from workbench.ir.node.shapes import Shape
from workbench.ir.node.uop import UOp
from workbench.tensor.base import Base
from workbench.tensor.movement.windows import Window, check_fits, padded_for, windows, windows_of
from workbench.tensor.operands.arguments import whole
from workbench.tensor.operands.broadcast import cast_to, wide_dtype
from workbench.tensor.operands.literal import as_dtype
from workbench.tensor.operands.refuse import shape_error
from workbench.tensor.reductions.reduce import modular_dtype

TOLD_WORK = 1 << 18
"""Fewest products of a convolution whose gradients are given: for fewer, launches take longest, and
the rules of the ops need fewer kernels."""

T = TypeVar("T", bound=Base)
C = TypeVar("C", bound="Convolution")


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
        channels, _, *kernel = weight.shape
        each = windows_of("conv2d", kernel, stride, dilation, padding)
        check_fits("conv2d", self.shape, each)
        kind = promote(self.dtype, weight.dtype) if dtype is None else as_dtype(dtype)
        image = self
        if dtype is not None:
            image, weight = (t.cast(wide_dtype(kind)) for t in (self, weight))
        spread, taps = image._factors(weight, groups, each)
        axes, inside = len(kernel), modular_dtype(kind)
        summed = (spread * taps).sum(tuple(range(-1 - axes, 0)), dtype=inside)
        shape = self.shape[0], channels, *summed.shape[3 : 3 + axes]
        output = summed.cast(kind).reshape(shape)
        output = output._with(_with_gradients(output, image, weight, groups, each))
        if bias is None:
            return output
        column = checked_bias(self._lift(bias, "convolve"), channels)
        return output + column.reshape(1, channels, *(1,) * axes)

    def _factors(self, weight: Self, groups: int, each: Sequence[Window]) -> tuple[Self, Self]:
        """Return the windows of self and the taps of `weight`, whose products are summed along the
        last 1 + len(each) axes.

        Shapes: (batch, group, channel, y, x, depth, ky, kx), with 1 where one of them is the same.
        """
        channels, depth, *kernel = weight.shape
        axes, batch = len(kernel), self.shape[0]
        image, taps = (t.cast(wide_dtype(t.dtype)) for t in (self, weight))
        patches = image._with(windows(padded_for(image.uop, each, 0), each))
        outs = patches.shape[2 : 2 + axes]
        spread = patches.reshape(batch, groups, 1, depth, *outs, *kernel)
        order = (0, 1, 2, *range(4, 4 + axes), 3, *range(4 + axes, 4 + 2 * axes))
        shape = (1, groups, channels // groups, *(1,) * axes, depth, *kernel)
        return spread.permute(order), taps.reshape(shape)


def _with_gradients(output: C, image: C, weight: C, groups: int, each: Sequence[Window]) -> UOp:
    """Return the node of `output`, the convolution of `image` with `weight`, whose gradients are
    those of a convolution. They hold nodes, and no tensors: a tensor may be written to. With a
    stride, a transposed convolution has phases that lack taps, and the rules of the ops do."""
    sources = image.uop, weight.uop
    is_large = output.uop.size * prod(weight.shape[1:]) >= TOLD_WORK
    if not (is_large and output.dtype.is_float) or any(w.stride > 1 for w in each):
        return output.uop
    kind, device = type(output), output._device

    def rule(g: UOp) -> list[UOp | None]:
        of_output, *inputs = [kind._on(node, device) for node in (g, *sources)]
        shares = _gradients(of_output, inputs[0], inputs[1], groups, each)
        return [
            cast_to(share.uop, source.dtype) if source.dtype.is_float else None
            for share, source in zip(shares, sources, strict=True)
        ]

    return with_gradient(output.uop, sources, "conv2d", rule)


def _gradients(g: C, image: C, weight: C, groups: int, each: Sequence[Window]) -> tuple[C, C]:
    """Return the gradients of `image` and `weight`, where the output's is `g`."""
    axes = len(each)
    dilations = [w.dilation for w in each]
    sides = [n for w in reversed(each) for n in (w.before, w.after)]
    towards_image = g.conv_transpose2d(weight, None, groups, 1, dilations, sides)
    spread, _ = image._factors(weight, groups, each)
    shape = (g.shape[0], groups, -1, *g.shape[2:], *(1,) * (1 + axes))
    wide = g.cast(wide_dtype(g.dtype)).reshape(shape)
    products = (spread * wide).sum((0, *range(3, 3 + axes)))
    return towards_image, products.reshape(weight.shape)


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
        raise shape_error(f"cannot convolve shape {image} with a kernel of {weight}", because, hint)


def checked_bias(bias: T, channels: int) -> T:
    """Return `bias`. Errors: ShapeError unless it has one number for each of `channels`."""
    if bias.shape != (channels,):
        raise shape_error(
            f"cannot add a bias of shape {bias.shape}",
            f"there are {channels} output channels",
            f"a bias of shape ({channels},)",
        )
    return bias
