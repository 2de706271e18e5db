"""Transposed convolution: each element of the input adds the kernel, scaled, to the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from workbench.ir.node.shapes import Shape
from workbench.tensor.movement.windows import Window, per_axis, windows_of
from workbench.tensor.operands.arguments import whole
from workbench.tensor.operands.refuse import shape_error
from workbench.tensor.reductions.convolution import Convolution

_WHAT = "conv_transpose2d"


class TransposedConvolution(Convolution):
    """conv_transpose2d, which is the gradient of conv2d towards its input."""

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
        Rewrite: -> conv2d of the input with stride - 1 zeros between its elements, the kernel
        flipped and its channels swapped.
        """
        kernel, count = (
            self._lift(weight, "convolve"),
            whole(groups, f"{_WHAT}: groups"),
        )
        _check(self.shape, kernel.shape, count)
        inputs, channels, *sizes = kernel.shape
        each = windows_of(_WHAT, sizes, stride, dilation, padding)
        more = per_axis(_WHAT, "output_padding", output_padding, len(sizes), 0)
        sides = _sides(self.shape[2:], each, more)
        grouped = kernel.reshape(count, inputs // count, channels, *sizes)
        flipped = grouped.transpose(1, 2).flip(tuple(range(3, 3 + len(sizes))))
        taps = flipped.reshape(count * channels, inputs // count, *sizes)
        image = self._spread(tuple(w.stride for w in each))
        image = image.pad((None, None, *sides))
        steps = tuple(w.dilation for w in each)
        return image.conv2d(taps, bias, groups=count, dilation=steps)

    def _spread(self, strides: Shape) -> Self:
        """Return self with stride - 1 zeros between neighbours along each of the last axes."""
        image = self
        for axis, stride in enumerate(strides, 2):
            if stride == 1:
                continue
            size, none = image.shape[axis], [None] * image.ndim
            image = image.unsqueeze(axis + 1)
            image = image.pad((*none[: axis + 1], (0, stride - 1), *none[axis + 1 :]))
            image = image.flatten(axis, axis + 1)
            box = (0, (size - 1) * stride + 1)
            image = image.shrink((*none[:axis], box, *none[axis + 1 :]))
        return image


def _sides(shape: Shape, each: Sequence[Window], more: Shape) -> list[tuple[int, int]]:
    """Return the padding of each axis that makes a convolution of a transposed one.

    Errors: ShapeError for an axis of which nothing is left, or too large an `output_padding`.
    """
    sides = []
    for axis, (size, window, extra) in enumerate(
        zip(shape, each, more, strict=True), 2
    ):
        if extra and extra >= max(window.stride, window.dilation):
            raise shape_error(
                f"{_WHAT}: output_padding = {extra} is too large for axis {axis}",
                f"it is below the stride, {window.stride}, or the dilation, {window.dilation}",
            )
        margin = window.extent - 1
        length = (size - 1) * window.stride + 1 + margin + extra
        if length - window.before - window.after < 1 or not size:
            raise shape_error(
                f"{_WHAT}: nothing of axis {axis} is left",
                f"it has {max(0, length)} elements, and {window.before + window.after} are cut off",
                "less padding",
            )
        sides.append((margin - window.before, margin - window.after + extra))
    return sides


def _check(image: Shape, weight: Shape, groups: int) -> None:
    because = hint = ""
    if len(weight) < 3 or len(image) != len(weight):
        because = (
            f"the input is (batch, channels, y, x) and the kernel (in, out, ky, kx),"
            f" and they have {len(image)} and {len(weight)} axes"
        )
        hint = "unsqueeze(0) for a batch of one" if len(image) < len(weight) else ""
    elif groups < 1 or weight[0] % groups:
        because = f"{groups} groups do not divide the {weight[0]} input channels"
    elif image[1] != weight[0]:
        because = f"the input has {image[1]} channels, and the kernel {weight[0]}"
        hint = "weight.transpose(0, 1)" if weight[1] == image[1] else ""
    if because:
        raise shape_error(
            f"cannot convolve shape {image} with a transposed kernel of {weight}",
            because,
            hint,
        )
