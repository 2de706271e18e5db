"""Transposed convolution: each element of the input adds the kernel, scaled, to the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from workbench.ir.node.shapes import Shape
from workbench.tensor.movement.windows import Window, per_axis, windows_of
from workbench.tensor.operands.arguments import whole
from workbench.tensor.operands.refuse import shape_error
from workbench.tensor.reductions.convolution import Convolution, checked_bias

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
        Rewrite: of `stride` neighbours of the output each is a convolution by itself, with every
        stride-th tap of the kernel: one conv2d computes them as channels, which are interleaved.
        """
        kernel, count = (self._lift(weight, "convolve"), whole(groups, f"{_WHAT}: groups"))
        _check(self.shape, kernel.shape, count)
        inputs, channels, *sizes = kernel.shape
        each = windows_of(_WHAT, sizes, stride, dilation, padding)
        more = per_axis(_WHAT, "output_padding", output_padding, len(sizes), 0)
        box = _box(self.shape[2:], each, more)
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
        """Return self with `axis` cut into taps and phases; where there is more than one phase,
        zeros stand between taps that are dilated."""
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
        """Return self with its phases, the inner part of the channels, in the places of each.

        Shapes: (batch, channels * phases, y, x) -> (batch, channels, y * stride, x * stride).
        """
        axes, (batch, _, *sizes) = len(strides), self.shape
        split = self.reshape(batch, -1, *strides, *sizes)
        order = [axis for i in range(axes) for axis in (2 + axes + i, 2 + i)]
        ends = (n * stride for n, stride in zip(sizes, strides, strict=True))
        return split.permute(0, 1, *order).reshape(batch, split.shape[1], *ends)


def _box(shape: Shape, each: Sequence[Window], more: Shape) -> list[tuple[int, int]]:
    """Return the part of all sums, as (begin, end) per axis, that is the output.

    Errors: ShapeError for an axis of which nothing is left, or too large an `output_padding`.
    """
    box = []
    for axis, (size, window, extra) in enumerate(zip(shape, each, more, strict=True), 2):
        if extra and extra >= max(window.stride, window.dilation):
            raise shape_error(
                f"{_WHAT}: output_padding = {extra} is too large for axis {axis}",
                f"it is below the stride, {window.stride}, or the dilation, {window.dilation}",
            )
        length = (size - 1) * window.stride + window.extent + extra
        if length - window.before - window.after < 1 or not size:
            raise shape_error(
                f"{_WHAT}: nothing of axis {axis} is left",
                f"it has {max(0, length)} elements, and {window.before + window.after} are cut off",
                "less padding",
            )
        box.append((window.before, length - window.after))
    return box


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
            f"cannot convolve shape {image} with a transposed kernel of {weight}", because, hint
        )
