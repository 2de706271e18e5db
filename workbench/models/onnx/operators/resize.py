"""Resampling of pictures: Resize, Upsample and GridSample.

Resize is a sum over neighbours along each axis by itself; positions and shares are numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.base.dtypes import dtypes
from workbench.base.errors import ModelError
from workbench.models.arithmetic import wide
from workbench.models.onnx.operators.elementwise import numbers
from workbench.models.onnx.table import row
from workbench.models.onnx.values import axis_of, check_positions
from workbench.models.sampling import Array, grid_sampled, neighbours, resampled, taken
from workbench.tensor.tensor import Tensor


class ResizeOptions(NamedTuple):
    """The attributes of Resize that say which elements are read."""

    coordinates: str
    mode: str
    nearest: str
    cubic: float
    excludes_outside: bool
    antialiases: bool
    outside: float


@row("Upsample", since=7)
def upsample_fixed(x: Tensor, *, scales: Sequence[float], mode: str = "nearest") -> Tensor:
    return upsample(x, np.array(scales, np.float32), mode=mode)


@row("Upsample", since=9, known=("scales",))
@row("Resize", since=10, known=("scales",))
def upsample(x: Tensor, scales: Array, *, mode: str = "nearest") -> Tensor:
    sampling = ResizeOptions("asymmetric", mode, "floor", -0.75, False, False, 0.0)
    return _resized(x, sampling, scales.reshape(-1).tolist(), None, range(x.ndim), None, "stretch")


@row("Resize", since=11, known=("roi", "scales", "sizes"))
def resize(
    x: Tensor,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    antialias: int = 0,
    axes: Sequence[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    along = range(x.ndim) if axes is None else [axis_of(a, x.ndim) for a in axes]
    sampling = ResizeOptions(
        coordinate_transformation_mode,
        mode,
        nearest_mode,
        cubic_coeff_a,
        bool(exclude_outside),
        bool(antialias),
        extrapolation_value,
    )
    has_scales = scales is not None and scales.size > 0
    given = scales.reshape(-1).tolist() if scales is not None and has_scales else None
    wanted = numbers(sizes) if not has_scales else None
    region = None if roi is None or not roi.size else roi.reshape(-1).tolist()
    if given is None and not wanted:
        raise ModelError("cannot resize", "there are neither scales nor sizes")
    return _resized(x, sampling, given, wanted, along, region, keep_aspect_ratio_policy)


def _resized(
    x: Tensor,
    sampling: ResizeOptions,
    scales: Sequence[float] | None,
    sizes: Sequence[int] | None,
    axes: Sequence[int],
    roi: Sequence[float] | None,
    policy: str,
) -> Tensor:
    shape = [x.shape[a] for a in axes]
    if scales is None:
        assert sizes is not None
        scales = [n / m for n, m in zip(sizes, shape, strict=True)]
        if policy != "stretch":
            scale = min(scales) if policy == "not_larger" else max(scales)
            scales = [scale] * len(shape)
            sizes = [int(scale * n + 0.5) for n in shape]
    else:
        sizes = [int(math.floor(n * s)) for n, s in zip(shape, scales, strict=True)]
    dtype = x.dtype
    y = x if sampling.mode == "nearest" else wide(x)
    y = y if sampling.mode == "nearest" or y.dtype.is_float else y.cast(dtypes.float32)
    for place, axis in enumerate(axes):
        region = None if roi is None else (roi[place], roi[place + len(axes)])
        is_whole = region is None or region == (0.0, 1.0)
        if scales[place] == 1 and sizes[place] == shape[place] and is_whole:
            continue
        y = _along(y, axis, scales[place], sizes[place], sampling, region)
    if y.dtype is dtype:
        return y
    return y if dtype.is_float else y.trunc().clamp(dtype.min, dtype.max).cast(dtype)


def _along(
    x: Tensor,
    axis: int,
    scale: float,
    count: int,
    sampling: ResizeOptions,
    region: tuple[float, float] | None,
) -> Tensor:
    """Return `x` with `count` elements along an axis."""
    size = x.shape[axis]
    shrink = min(scale, 1.0) if sampling.antialiases else 1.0
    check_positions(math.ceil(count * max(1.0, 2 / shrink)))
    points = _points(sampling.coordinates, size, count, scale, region)
    if sampling.mode == "nearest":
        y = taken(x, axis, _nearest(points, sampling.nearest))
    else:
        if sampling.mode not in ("linear", "cubic"):
            raise ModelError("cannot resize", f"there is no mode {sampling.mode!r}")
        places, shares = neighbours(points, sampling.mode, shrink, sampling.cubic)
        if sampling.excludes_outside:
            shares = np.where((places < 0) | (places >= size), 0, shares)
            totals = shares.sum(1, keepdims=True)
            shares = shares / np.where(totals == 0, 1, totals)
        y = resampled(x, axis, places, shares)
    if sampling.coordinates == "tf_crop_and_resize":
        is_outside = Tensor((points < 0) | (points > size - 1))
        is_outside = is_outside.reshape((count,) + (1,) * (x.ndim - axis - 1))
        y = is_outside.where(sampling.outside, y)
    return y


def _points(
    kind: str, size: int, count: int, scale: float, region: tuple[float, float] | None
) -> Array:
    """Return the position in the input of each element of the output."""
    steps = np.arange(count, dtype=np.float64)
    whole = scale * size
    match kind:
        case "half_pixel":
            return (steps + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (steps + 0.5) / scale - 0.5 if count > 1 else np.zeros(count)
        case "half_pixel_symmetric":
            return size / 2 * (1 - count / whole) + (steps + 0.5) / scale - 0.5
        case "align_corners":
            return steps * (size - 1) / (whole - 1) if whole != 1 else np.zeros(count)
        case "asymmetric":
            return steps / scale
        case "tf_half_pixel_for_nn":
            return (steps + 0.5) / scale
        case "tf_crop_and_resize":
            if region is None:
                raise ModelError("cannot resize", "there is no region of interest")
            start, end = region
            if count == 1:
                return np.full(1, (start + end) / 2 * (size - 1))
            return start * (size - 1) + steps * (end - start) * (size - 1) / (whole - 1)
    raise ModelError("cannot resize", f"there is no coordinate_transformation_mode {kind!r}")


def _nearest(points: Array, mode: str) -> Array:
    low = np.floor(points)
    rest = points - low
    match mode:
        case "floor":
            up = np.zeros(points.shape, bool)
        case "ceil":
            up = rest > 0
        case "round_prefer_floor":
            up = rest > 0.5
        case "round_prefer_ceil":
            up = rest >= 0.5
        case _:
            raise ModelError("cannot resize", f"there is no nearest_mode {mode!r}")
    return (low + up).astype(np.int64)


MODES = {"bilinear": "linear", "bicubic": "cubic"}


@row("GridSample", since=16)
def grid_sample(
    x: Tensor,
    grid: Tensor,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Tensor:
    """Elements of pictures at the points of a grid, from -1 to 1 across the picture."""
    return grid_sampled(x, grid, MODES.get(mode, mode), padding_mode, bool(align_corners))


@row("AffineGrid", since=20, known=("size",))
def affine_grid(theta: Tensor, size: Array, *, align_corners: int = 0) -> Tensor:
    """The points of a grid, moved by an affine transformation of each picture."""
    sizes = numbers(size)[2:]
    check_positions(math.prod(sizes))
    axes = []
    for axis, count in enumerate(sizes):
        if align_corners:
            line = np.linspace(-1, 1, count) if count > 1 else np.zeros(1)
        else:
            line = (np.arange(count) * 2 + 1) / count - 1
        shape = [1] * len(sizes)
        shape[axis] = count
        axes.append(np.broadcast_to(line.reshape(shape), sizes))
    points = np.stack([*axes[::-1], np.ones(sizes)], -1).reshape(1, -1, len(sizes) + 1)
    grid = Tensor(points).cast(theta.dtype) @ theta.transpose(1, 2)
    return grid.reshape((theta.shape[0], *sizes, len(sizes)))
