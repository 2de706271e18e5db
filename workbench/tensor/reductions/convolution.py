"""Convolution: a sum of windows of the input times the kernel, which scheduling fuses.

A large convolution of stride 1 has a rule for its gradients. The gradient of its input is then a
transposed convolution: one sum for each element, where the rules of the ops would sum over channels
for each window, and then over windows.

Sections: Convolution; Transposed convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Self, TypeVar

from workbench.base.dtypes import DType, promote
from workbench.ir.gradient.occurrences import with_gradient
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import Shape
from workbench.tensor.base import Base
from workbench.tensor.movement.windows import (
    Window,
    check_fits,
    padded_for,
    per_axis,
    windows,
    windows_of,
)
from workbench.tensor.operands.arguments import shape_error, whole
from workbench.tensor.operands.broadcast import cast_to, wide_dtype
from workbench.tensor.operands.literal import as_dtype
from workbench.tensor.reductions.reduce import modular_dtype

# --------------------------------------------------------------------------------------------------
# Convolution.

LEAST_RULE_PRODUCTS = 1 << 18
"""The minimal number of products of a convolution with a rule for its gradients: with fewer,
launches take more time than the products, and the rules of the ops need fewer kernels."""

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
        """Return the convolution (elsewhere, too, a correlation) with `weight`, plus `bias`.

        Shapes: (batch, groups * c, y, x) with (channels, c, ky, kx) -> (batch, channels, ..);
        one or three axes in the place of y, x work as well; bias is (channels,). `padding` is
        a number for all sides, one per axis, or PyTorch's flat form.
        Dtypes: as `matmul`. Errors: ShapeError if channels or groups do not fit together, or
        the kernel is larger than the padded input.
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

        Shapes: (batch, group, channel, y, x, depth, ky, kx), with 1 for an axis that one lacks.
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
    """Return the node of `output`, the convolution of `image` with `weight`, with a rule for its
    gradients if it is large and has stride 1: with a stride, phases of the transposed convolution
    would lack taps. The rule holds nodes, and no tensors: a tensor may be written to."""
    sources = image.uop, weight.uop
    is_large = output.uop.size * prod(weight.shape[1:]) >= LEAST_RULE_PRODUCTS
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
    """Return the gradients of `image` and `weight` from `g`, the gradient of the output."""
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
    because, hint = "", _GROUPS
    if len(weight) < 3 or len(image) != len(weight):
        because = (
            f"the input is (batch, channels, y, x) and the kernel (out, in, ky, kx),"
            f" and they have {len(image)} and {len(weight)} axes"
        )
        hint = _hint_of_axes(image, weight)
    elif groups < 1 or weight[0] % groups:
        because = f"{groups} groups do not divide the {weight[0]} output channels"
    elif image[1] != groups * weight[1]:
        because = f"the input has {image[1]} channels, and the kernel {weight[1]}" + (
            f" for each of {groups} groups" if groups > 1 else ""
        )
        fitting = image[1] // max(1, weight[1])
        is_possible = fitting and fitting * weight[1] == image[1] and weight[0] % fitting == 0
        kernel = (weight[0], max(1, image[1] // groups), *weight[2:])
        hint = f"groups={fitting}" if is_possible else f"a kernel of shape {kernel}"
    if because:
        raise shape_error(f"cannot convolve shape {image} with a kernel of {weight}", because, hint)


_GROUPS = "groups=1"


def _hint_of_axes(image: Shape, weight: Shape) -> str:
    """Return what to do about a kernel and an image of other numbers of axes."""
    if 3 <= len(weight) == len(image) + 1:
        return "unsqueeze(0) for a batch of one"
    return "an input of shape (1, 3, 8, 8) and a kernel of (4, 3, 3, 3), say"


def checked_bias(bias: T, channels: int) -> T:
    """Return `bias`. Errors: ShapeError unless it has one number for each of `channels`."""
    if bias.shape != (channels,):
        raise shape_error(
            f"cannot add a bias of shape {bias.shape}",
            f"there are {channels} output channels",
            f"a bias of shape ({channels},)",
        )
    return bias


# --------------------------------------------------------------------------------------------------
# Transposed convolution: each element of the input adds the kernel, scaled, to the output.

_TRANSPOSED = "conv_transpose2d"


class TransposedConvolution(Convolution):
    """conv_transpose2d: the gradient of conv2d with respect to its input."""

    __slots__ = ()

    def conv_transpose2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: int | Sequence[int] = 1,
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
    ) -> Self:
        """Return the transposed convolution with `weight`, plus `bias`.

        Shapes: (batch, groups * c, y, x) with (groups * c, channels, ky, kx)
        -> (batch, groups * channels, ..); one or three axes in the place of y, x work as well.
        `padding` (as that of `conv2d`) is cut off the output, and `output_padding` added at the
        end of each axis.
        Dtypes: as `conv2d`. Errors: ShapeError if channels or groups do not fit together, nothing
        of an axis is left, or `output_padding` is neither below `stride` nor below `dilation`.
        Rewrite: each of `stride` neighbouring outputs, the phases, is a convolution with every
        stride-th tap of the kernel. One conv2d computes the phases as channels, which are
        interleaved.
        """
        kernel, count = (self._lift(weight, "convolve"), whole(groups, f"{_TRANSPOSED}: groups"))
        _check_transposed(self.shape, kernel.shape, count)
        inputs, channels, *sizes = kernel.shape
        each = windows_of(_TRANSPOSED, sizes, stride, dilation, padding)
        more = check_output_padding(_TRANSPOSED, output_padding, each)
        box = _box(self.shape, each, more)
        steps = [w.dilation if w.stride == 1 else 1 for w in each]
        taps = kernel.reshape(count, inputs // count, channels, *sizes)._phases(each)
        counts = taps.shape[2:]
        margins = [step * (n - 1) for step, n in zip(steps, counts, strict=True)]
        image = self.pad((None, None, *((n, n) for n in margins)))
        output = image.conv2d(taps, groups=count, dilation=steps)
        output = output._interleaved(tuple(w.stride for w in each))
        ends = [after - n for (_, after), n in zip(box, output.shape[2:], strict=True)]
        sides = [(-before, end) for (before, _), end in zip(box, ends, strict=True)]
        output = output.pad((None, None, *sides))
        if bias is None:
            return output
        column = checked_bias(self._lift(bias, "convolve"), count * channels)
        return output + column.reshape(1, count * channels, *(1,) * len(sizes))

    def _phases(self, each: Sequence[Window]) -> Self:
        """Return a kernel of conv2d with every stride-th tap of self, for each phase.

        Shapes: (groups, in, out, ky, kx) -> (groups * out * phases, in, taps along y, along x).
        """
        kernel, axes = self, len(each)
        for axis, window in enumerate(each):
            kernel = kernel._split_taps(3 + 2 * axis, window)
        taps, phases = range(3, 3 + 2 * axes, 2), range(4, 4 + 2 * axes, 2)
        flipped = kernel.flip(tuple(taps)).permute(0, 2, *phases, 1, *taps)
        depth = self.shape[1]
        return flipped.reshape(-1, depth, *flipped.shape[-axes:])

    def _split_taps(self, axis: int, window: Window) -> Self:
        """Return self with `axis` cut into taps and phases; for several phases, dilated taps have
        zeros between them."""
        kernel, none = self, [None] * self.ndim
        count, stride = self.shape[axis], window.stride
        if stride == 1:
            return kernel.unsqueeze(axis + 1)
        if window.dilation > 1:
            kernel = kernel.unsqueeze(axis + 1)
            between = (0, window.dilation - 1)
            kernel = kernel.pad((*none[: axis + 1], between, *none[axis + 1 :]))
            kernel = kernel.flatten(axis, axis + 1)
            count *= window.dilation
        kernel = kernel.pad((*none[:axis], (0, -count % stride), *none[axis + 1 :]))
        return kernel.unflatten(axis, (-1, stride))

    def _interleaved(self, strides: Shape) -> Self:
        """Return self with its phases, the inner part of the channels, interleaved along the axes.

        Shapes: (batch, channels * phases, y, x) -> (batch, channels, y * stride, x * stride).
        """
        axes, (batch, depth, *sizes) = len(strides), self.shape
        channels = depth // prod(strides)
        split = self.reshape(batch, channels, *strides, *sizes)
        order = [axis for i in range(axes) for axis in (2 + axes + i, 2 + i)]
        ends = (n * stride for n, stride in zip(sizes, strides, strict=True))
        return split.permute(0, 1, *order).reshape(batch, channels, *ends)


def check_output_padding(
    what: str, output_padding: int | Sequence[int], each: Sequence[Window]
) -> Shape:
    """Return `output_padding` for each axis. Errors: ShapeError for one that is too large."""
    more = per_axis(what, "output_padding", output_padding, len(each), 0)
    for axis, (window, extra) in enumerate(zip(each, more, strict=True), 2):
        if extra and extra >= max(window.stride, window.dilation):
            raise shape_error(
                f"{what}: output_padding = {extra} is too large for axis {axis}",
                f"it must be below the stride, {window.stride}, or the dilation, {window.dilation}",
                "output_padding=0",
            )
    return more


def _box(shape: Shape, each: Sequence[Window], more: Shape) -> list[tuple[int, int]]:
    """Return the part of all sums, as (begin, end) per axis, that is the output of images of a
    shape.

    Errors: ShapeError for an axis of which nothing is left, unless there are no images.
    """
    box = []
    fewest = min(shape[0], 1)
    for axis, (size, window, extra) in enumerate(zip(shape[2:], each, more, strict=True), 2):
        length = (size - 1) * window.stride + window.extent + extra
        if length - window.before - window.after < fewest or not size:
            raise shape_error(
                f"{_TRANSPOSED}: nothing of axis {axis} is left",
                f"it has {max(0, length)} elements, and {window.before + window.after} are cut off",
                "less padding",
            )
        box.append((window.before, length - window.after))
    return box


def _check_transposed(image: Shape, weight: Shape, groups: int) -> None:
    because, hint = "", _GROUPS
    if len(weight) < 3 or len(image) != len(weight):
        because = (
            f"the input is (batch, channels, y, x) and the kernel (in, out, ky, kx),"
            f" and they have {len(image)} and {len(weight)} axes"
        )
        hint = _hint_of_axes(image, weight)
    elif groups < 1 or weight[0] % groups:
        because = f"{groups} groups do not divide the {weight[0]} input channels"
    elif image[1] != weight[0]:
        because = f"the input has {image[1]} channels, and the kernel {weight[0]}"
        kernel = (image[1], *weight[1:])
        is_swapped = weight[1] == image[1]
        hint = "weight.transpose(0, 1)" if is_swapped else f"a kernel of shape {kernel}"
    if because:
        raise shape_error(
            f"cannot convolve shape {image} with a transposed kernel of {weight}", because, hint
        )
