"""Regions of pictures: elements at points between those of a picture, which values say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from workbench.base.errors import ModelError
from workbench.models.onnx.operators.products import Windows
from workbench.models.onnx.table import row
from workbench.models.sampling import sum_of, weighted_neighbours
from workbench.tensor.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Regions:
    """The attributes of RoiAlign that all opsets have."""

    mode: str = "avg"
    output_height: int = 1
    output_width: int = 1
    sampling_ratio: int = 0
    spatial_scale: float = 1.0


@row("RoiAlign", since=10, shared=Regions)
def roi_align_fixed(x: Tensor, rois: Tensor, batch_indices: Tensor, **options: Any) -> Tensor:
    return _aligned(x, rois, batch_indices, Regions(**options), False)


@row("RoiAlign", since=16, shared=Regions)
def roi_align(
    x: Tensor,
    rois: Tensor,
    batch_indices: Tensor,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    **options: Any,
) -> Tensor:
    is_half = coordinate_transformation_mode == "half_pixel"
    return _aligned(x, rois, batch_indices, Regions(**options), is_half)


def _aligned(
    x: Tensor, rois: Tensor, batch_indices: Tensor, regions: Regions, is_half: bool
) -> Tensor:
    """Return means or maxima of points in the parts of regions, by linear interpolation. With
    `is_half` positions are those of the middles of pixels."""
    ratio = regions.sampling_ratio
    if ratio < 1:
        because = "its sampling_ratio is 0: how many points there are depends on values"
        raise ModelError("cannot align regions", because)
    corners = rois * regions.spatial_scale - (0.5 if is_half else 0.0)
    counts = regions.output_height, regions.output_width
    points, inside = [], []
    for axis, count in enumerate(counts):
        start, end = corners[:, 1 - axis], corners[:, 3 - axis]
        extent = end - start if is_half else (end - start).maximum(1)
        steps = (Tensor.arange(count * ratio, dtype=x.dtype) + 0.5) / ratio
        point = start.unsqueeze(1) + steps.unsqueeze(0) * (extent / count).unsqueeze(1)
        inside.append((point >= -1) & (point <= x.shape[2 + axis]))
        points.append(point.clamp(0, x.shape[2 + axis] - 1))
    shape = (rois.shape[0], *(count * ratio for count in counts))
    rows, columns = points[0].unsqueeze(2).expand(shape), points[1].unsqueeze(1).expand(shape)
    is_inside = (inside[0].unsqueeze(2) & inside[1].unsqueeze(1)).unsqueeze(1)
    parts = weighted_neighbours(x[batch_indices], [rows, columns])
    grid = counts[0], ratio, counts[1], ratio
    grouped = [is_inside.where(part, 0).reshape((*part.shape[:2], *grid)) for part in parts]
    if regions.mode == "avg":
        return sum_of(grouped).mean((3, 5))
    maxima = [part.max((3, 5)) for part in grouped]
    return maxima[0].stack(*maxima[1:], dim=0).max(0)


@row("DeformConv", since=19, shared=Windows)
def deform_conv(
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    group: int = 1,
    offset_group: int = 1,
    **options: Any,
) -> Tensor:
    """A convolution whose elements are read at points that are moved by offsets."""
    if x.ndim != 4:
        raise ModelError("cannot convolve", f"a picture has 2 axes, and {x.shape} is given")
    windows, taps = Windows(**options), weight.shape[2:]
    batch, channels, *sizes = x.shape
    count, many, made = math.prod(taps), batch * offset_group, offset.shape[2:]
    moves = offset.reshape((many, *taps, 2, *made))
    points = []
    for axis, before in enumerate(windows.sides(sizes, taps)[:2]):
        within = Tensor.arange(taps[axis]) * windows.gaps(2)[axis] - before
        starts = Tensor.arange(made[axis]) * windows.steps(2)[axis]
        place = _along(within, axis) + _along(starts, 2 + axis)
        points.append((moves[:, :, :, axis] + place).reshape((many, count, -1)))
    pictures = x.reshape((many, channels // offset_group, *sizes))
    columns = sum_of(weighted_neighbours(pictures, points))
    if mask is not None:
        columns = columns * mask.reshape((many, 1, count, -1))
    columns = columns.reshape((batch, group, channels // group * count, -1))
    y = weight.reshape((group, weight.shape[0] // group, -1)) @ columns
    y = y.reshape((batch, weight.shape[0], *made))
    return y if bias is None else y + bias.reshape((1, -1, 1, 1))


def _along(line: Tensor, axis: int) -> Tensor:
    """Return elements along one of four axes."""
    return line.reshape(tuple(-1 if a == axis else 1 for a in range(4)))
