"""Pools, and resampling of pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from workbench.base.dtypes import dtypes
from workbench.base.errors import ModelError
from workbench.models.torch.table import row
from workbench.tensor.tensor import Tensor

Numbers = Sequence[int]


@row("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(
    x: Tensor,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = (0,),
    dilation: Numbers = (1,),
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    axes = _axes(x, kernel_size)
    values, places = x.max_pool2d(
        _each(kernel_size, axes),
        _each(stride or kernel_size, axes),
        _each(dilation, axes),
        _each(padding, axes),
        ceil_mode,
        return_indices=True,
    )
    return values, places.cast(dtypes.int64)


@row("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(
    x: Tensor,
    kernel_size: Numbers,
    stride: Numbers = (),
    padding: Numbers = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    axes = _axes(x, kernel_size)
    window = _each(kernel_size, axes)
    options: dict[str, Any] = {"padding": _each(padding, axes), "ceil_mode": ceil_mode}
    steps = _each(stride or kernel_size, axes)
    if divisor_override is None:
        return x.avg_pool2d(window, steps, count_include_pad=count_include_pad, **options)
    # The sum of a window: its mean over the elements inside times their number.
    inside = x.avg_pool2d(window, steps, count_include_pad=False, **options)
    ones = Tensor.ones_like(x)
    padded = ones.pad([(0, 0)] * (x.ndim - axes) + [(p, p) for p in _each(padding, axes)])
    counts = padded.avg_pool2d(window, steps, ceil_mode=ceil_mode, count_include_pad=False)
    return inside * counts * math.prod(window) / divisor_override


@row("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def adaptive_avg_pool(x: Tensor, output_size: Numbers) -> Tensor:
    """Means over windows that cover the input, one for each output."""
    for place, count in enumerate(output_size):
        axis = x.ndim - len(output_size) + place
        x = _adapted(x, axis, count)
    return x


def _adapted(x: Tensor, axis: int, count: int) -> Tensor:
    size = x.shape[axis]
    if count and size % count == 0:
        shape = (*x.shape[:axis], count, size // count, *x.shape[axis + 1 :])
        return x.reshape(shape).mean(axis + 1)
    bounds = [(n * size // count, -(-(n + 1) * size // count)) for n in range(count)]
    lead = (slice(None),) * axis
    parts = [x[(*lead, slice(a, b))].mean(axis, keepdim=True) for a, b in bounds]
    return parts[0].cat(*parts[1:], dim=axis)


@row("upsample_nearest2d.vec", "upsample_nearest1d.vec", "upsample_nearest3d.vec")
def upsample_nearest(
    x: Tensor, output_size: Numbers | None, scale_factors: Sequence[float] | None
) -> Tensor:
    for place, (count, scale) in enumerate(_sizes(x, output_size, scale_factors)):
        axis = 2 + place
        step = 1 / scale if scale else x.shape[axis] / count
        places = [min(int(n * step), x.shape[axis] - 1) for n in range(count)]
        x = x[(slice(None),) * axis + (Tensor(places),)]
    return x


@row("upsample_bilinear2d.vec", "upsample_linear1d.vec", "upsample_trilinear3d.vec")
def upsample_linear(
    x: Tensor,
    output_size: Numbers | None,
    align_corners: bool,
    scale_factors: Sequence[float] | None,
) -> Tensor:
    for place, (count, scale) in enumerate(_sizes(x, output_size, scale_factors)):
        axis = 2 + place
        size = x.shape[axis]
        if align_corners:
            step = (size - 1) / (count - 1) if count > 1 else 0.0
            points = [n * step for n in range(count)]
        else:
            step = 1 / scale if scale else size / count
            points = [max(0.0, (n + 0.5) * step - 0.5) for n in range(count)]
        low = [min(int(p), size - 1) for p in points]
        high = [min(n + 1, size - 1) for n in low]
        shares = Tensor([p - n for p, n in zip(points, low, strict=True)], dtype=x.dtype)
        lead = (slice(None),) * axis
        shares = shares.reshape((count,) + (1,) * (x.ndim - axis - 1))
        below, above = x[(*lead, Tensor(low))], x[(*lead, Tensor(high))]
        x = below * (1 - shares) + above * shares
    return x


BILINEAR, NEAREST, BICUBIC = 0, 1, 2
"""Interpolations of grid_sampler."""
ZEROS, BORDER, REFLECTION = 0, 1, 2
"""What grid_sampler reads outside of the picture."""


@row("grid_sampler_2d")
def grid_sampler(
    x: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Elements of pictures at the points of a grid, from -1 to 1 across the picture."""
    height, width = x.shape[2:]
    points = [
        _position(grid[..., place], size, align_corners)
        for place, size in ((0, width), (1, height))
    ]
    if interpolation_mode == BICUBIC:
        raise ModelError("cannot sample a grid by bicubic interpolation", "it is not built here")
    px, py = (
        _reflected(p, n, padding_mode, align_corners)
        for p, n in zip(points, (width, height), strict=True)
    )
    if interpolation_mode == NEAREST:
        return _sampled(x, px.round(), py.round())
    left, top = px.floor(), py.floor()
    right, down = px - left, py - top
    corners = [
        (left, top, (1 - right) * (1 - down)),
        (left + 1, top, right * (1 - down)),
        (left, top + 1, (1 - right) * down),
        (left + 1, top + 1, right * down),
    ]
    parts = [_sampled(x, cx, cy) * share.unsqueeze(1) for cx, cy, share in corners]
    return parts[0] + parts[1] + parts[2] + parts[3]


def _position(point: Tensor, size: int, align_corners: bool) -> Tensor:
    return (point + 1) / 2 * (size - 1) if align_corners else ((point + 1) * size - 1) / 2


def _reflected(point: Tensor, size: int, padding_mode: int, align_corners: bool) -> Tensor:
    """Return points where those outside are moved to, for modes that have none outside."""
    if padding_mode == ZEROS:
        return point
    if padding_mode == REFLECTION:
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        away = (point - low).abs()
        if span == 0:
            return point * 0
        turns, rest = (away / span).floor(), away.fmod(span)
        point = (turns % 2).eq(0).where(rest + low, span - rest + low)
    return point.clamp(0, size - 1)


def _sampled(x: Tensor, column: Tensor, line: Tensor) -> Tensor:
    """Return the elements at whole positions of each picture; 0 outside."""
    count, channels, height, width = x.shape
    inside = (column >= 0) & (column < width) & (line >= 0) & (line < height)
    column = column.clamp(0, width - 1).cast(dtypes.int64)
    line = line.clamp(0, height - 1).cast(dtypes.int64)
    index = (line * width + column).reshape((count, 1, -1))
    flat = x.reshape((count, channels, height * width))
    found = flat.gather(2, index.expand((count, channels, index.shape[2])))
    return inside.unsqueeze(1).where(found.reshape((count, channels, *line.shape[1:])), 0)


def _sizes(
    x: Tensor, output_size: Numbers | None, scale_factors: Sequence[float] | None
) -> list[tuple[int, float]]:
    """Return the size of each resampled axis, and the factor that is given for it, or 0."""
    if output_size is not None:
        return [(n, 0.0) for n in output_size]
    assert scale_factors is not None
    return [(int(x.shape[2 + a] * s), s) for a, s in enumerate(scale_factors)]


def _axes(x: Tensor, kernel_size: Numbers) -> int:
    return len(kernel_size) if len(kernel_size) > 1 else x.ndim - 2


def _each(numbers: Numbers, axes: int) -> tuple[int, ...]:
    return tuple(numbers) * axes if len(numbers) == 1 else tuple(numbers)
