"""Convolution layers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.ir.node.views import Shape
from workbench.nn.linear import tensor_input
from workbench.tensor.operands.arguments import flag, listed, short, whole
from workbench.tensor.operands.refuse import shape_error
from workbench.tensor.tensor import Tensor

Sizes = int | Sequence[int]


class Conv2d:
    """The convolution of images with `weight`, plus `bias`.

    Shapes: (batch, in_channels, y, x) -> (batch, out_channels, ..); weight (out_channels,
    in_channels / groups, ky, kx). A `kernel_size` of one or of three sizes is that of 1-D or of
    3-D images. `padding="same"` keeps the sizes of an image.
    Initial values: uniform up to 1 / sqrt(in_channels * ky * kx) from 0, both.
    Errors: ShapeError for groups that do not divide both numbers of channels.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        what = type(self).__name__
        self.kernel_size = _sizes(kernel_size, 2, f"{what}: kernel_size")
        self.stride, self.dilation = stride, dilation
        self.groups = whole(groups, f"{what}: groups", 1)
        inputs = whole(in_channels, f"{what}: in_channels", 1)
        outputs = whole(out_channels, f"{what}: out_channels", 1)
        if inputs % self.groups or outputs % self.groups:
            raise shape_error(
                f"cannot make {what}({inputs}, {outputs}, ..) of {self.groups} groups",
                f"the groups must divide both {inputs} and {outputs} channels",
            )
        self.padding: Sizes = self._same(padding) if isinstance(padding, str) else padding
        self._bound = 1 / math.sqrt(inputs * math.prod(self.kernel_size))
        self.weight = self._uniform(outputs, inputs // self.groups, *self.kernel_size)
        self.bias: Tensor | None = None
        if flag(bias, f"{what}: bias"):
            self.bias = self._uniform(outputs)

    def _uniform(self, *shape: int) -> Tensor:
        return Tensor.uniform(*shape, low=-self._bound, high=self._bound)

    def _same(self, padding: str) -> tuple[int, ...]:
        """Return the padding, in PyTorch's flat form, that keeps the sizes of an image."""
        what = type(self).__name__
        if padding.lower() != "same":
            because = 'the padding must be a number, numbers, or "same"'
            raise shape_error(f"{what}: padding={short(padding)}", because)
        if any(step != 1 for step in _sizes(self.stride, 2, f"{what}: stride")):
            because = "with a stride an image becomes smaller, whatever the padding"
            raise shape_error(f'{what}: padding="same"', because, "stride=1")
        axes = len(self.kernel_size)
        dilation = _sizes(self.dilation, axes, f"{what}: dilation")
        pairs = [
            (whole // 2, whole - whole // 2)
            for whole in (d * (k - 1) for d, k in zip(dilation, self.kernel_size, strict=True))
        ]
        return tuple(side for pair in reversed(pairs) for side in pair)

    def __call__(self, x: Tensor) -> Tensor:
        return tensor_input(x, self).conv2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding
        )


class ConvTranspose2d(Conv2d):
    """The transposed convolution of images with `weight`, plus `bias`: the gradient of Conv2d with
    respect to its input, as a layer.

    Shapes: (batch, in_channels, y, x) -> (batch, out_channels, ..); weight (in_channels,
    out_channels / groups, ky, kx). `padding` is cut off the output, `output_padding` added at the
    end of each axis.
    Initial values: as those of Conv2d. Errors: as those of Conv2d.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias
        )
        self.output_padding = output_padding
        # A second draw, as tinygrad's: the same seed gives the same weights.
        columns = out_channels // self.groups
        self.weight = self._uniform(in_channels, columns, *self.kernel_size)

    def __call__(self, x: Tensor) -> Tensor:
        return tensor_input(x, self).conv_transpose2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation,
            self.padding, self.output_padding,
        )  # fmt: skip


def Conv1d(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int | str = 0,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = True,
) -> Conv2d:
    """Return a Conv2d for 1-D images.

    Shapes: (batch, in_channels, x) -> (batch, out_channels, ..).
    """
    return Conv2d(
        in_channels, out_channels, (kernel_size,), stride, padding, dilation, groups, bias
    )


def ConvTranspose1d(
    in_channels: int,
    out_channels: int,
    kernel_size: int,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    bias: bool = True,
) -> ConvTranspose2d:
    """Return a ConvTranspose2d for 1-D images.

    Shapes: (batch, in_channels, x) -> (batch, out_channels, ..).
    """
    return ConvTranspose2d(
        in_channels, out_channels, (kernel_size,), stride, padding, output_padding,
        dilation, groups, bias,
    )  # fmt: skip


def _sizes(value: Sizes, count: int, name: str) -> Shape:
    """Return a number for each of `count` axes, or the numbers that there are."""
    if isinstance(value, int | np.integer):
        return (whole(value, name, 1),) * count
    return tuple(whole(item, name, 1) for item in listed(value, name))
