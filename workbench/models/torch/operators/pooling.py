"""Pools, and resampling of pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.models.sampling import grid_sampled, neighbours, resampled, taken
from workbench.models.torch.operators.reductions import max_at
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
    for place, (size, step, before) in enumerate(
        zip(window, steps, options["padding"], strict=True)
    ):
        axis = x.ndim - axes + place
        starts = np.arange(inside.shape[axis]) * step - before
        count = np.minimum(starts + size, x.shape[axis]) - np.maximum(starts, 0)
        along = (-1,) + (1,) * (axes - place - 1)
        inside = inside * Tensor(count).cast(x.dtype).reshape(along)
    return inside / divisor_override


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
    lead = (slice(None),) * axis
    bounds = _bounds(size, count)
    parts = [x[(*lead, slice(a, b))].mean(axis, keepdim=True) for a, b in bounds]
    return parts[0].cat(*parts[1:], dim=axis)


def _bounds(size: int, count: int) -> list[tuple[int, int]]:
    """Return the begin and end of windows that cover an axis."""
    return [(n * size // count, -(-(n + 1) * size // count)) for n in range(count)]


@row("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(x: Tensor, output_size: Numbers) -> tuple[Tensor, Tensor]:
    """Maxima over windows that cover a picture or a volume, and their positions in it."""
    axes = len(output_size)
    lead, sizes = x.shape[:-axes], x.shape[-axes:]
    if not math.prod(output_size):
        shape = (*lead, *output_size)
        return Tensor.zeros(*shape, dtype=x.dtype), Tensor.zeros(*shape, dtype=dtypes.int64)
    position = Tensor.arange(math.prod(sizes), dtype=dtypes.int64).reshape(sizes)
    values, places = [], []
    for bounds in product(*map(_bounds, sizes, output_size)):
        window = tuple(slice(*each) for each in bounds)
        value, place = max_at(x[(..., *window)].flatten(-axes), -1)
        values.append(value)
        places.append(position[window].flatten()[place])
    shape = (*lead, *output_size)
    first, second = (each[0].stack(*each[1:], dim=-1).reshape(shape) for each in (values, places))
    return first, second


@row("upsample_nearest2d.vec", "upsample_nearest1d.vec", "upsample_nearest3d.vec")
def upsample_nearest(
    x: Tensor, output_size: Numbers | None, scale_factors: Sequence[float] | None
) -> Tensor:
    for place, (count, scale) in enumerate(_sizes(x, output_size, scale_factors)):
        step = 1 / scale if scale else x.shape[2 + place] / count
        x = taken(x, 2 + place, np.array([int(n * step) for n in range(count)]))
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
        steps = np.arange(count, dtype=np.float64)
        if align_corners:
            points = steps * ((size - 1) / (count - 1) if count > 1 else 0.0)
        else:
            points = (steps + 0.5) * (1 / scale if scale else size / count) - 0.5
        x = resampled(x, axis, *neighbours(points, "linear"))
    return x


INTERPOLATIONS = "linear", "nearest", "cubic"
PADDINGS = "zeros", "border", "reflection"
"""The words for the numbers that grid_sampler has."""


@row("grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(
    x: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    words = INTERPOLATIONS[interpolation_mode], PADDINGS[padding_mode]
    return grid_sampled(x, grid, *words, align_corners)


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
