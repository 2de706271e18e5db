"""Resampling of pictures: elements at points between those of a tensor.

The positions of a resized axis are numbers, and each element is a sum over neighbours along one
axis after the other. The points of a grid are a tensor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.base.dtypes import dtypes
from workbench.tensor.tensor import Tensor

Array = npt.NDArray[Any]
CUBIC = -0.75
"""The usual parameter of cubic convolution."""


def taken(x: Tensor, axis: int, places: Array) -> Tensor:
    """Return the elements of an axis at positions."""
    return x[(slice(None),) * axis + (Tensor(places.clip(0, x.shape[axis] - 1)),)]


def neighbours(
    points: Array, mode: str, shrink: float = 1.0, cubic: float = CUBIC
) -> tuple[Array, Array]:
    """Return the positions whose elements make up the one at each point, and their shares, by
    "linear" or "cubic" interpolation. `shrink` widens the filter: an element of a smaller picture
    is a mean of many."""
    reach = 1 if mode == "linear" else 2
    span = math.ceil(reach / shrink)
    low = np.floor(points).astype(np.int64)
    places = low[:, None] + np.arange(1 - span, span + 1)[None, :]
    away = np.abs(places - points[:, None]) * shrink
    shares = np.clip(1 - away, 0, 1) if reach == 1 else _cubic(away, cubic)
    return places, shares / shares.sum(1, keepdims=True)


def _cubic(away: Array, a: float) -> Array:
    """Return the weights of cubic convolution. Source: Keys 1981."""
    near = ((a + 2) * away - (a + 3)) * away * away + 1
    far = ((a * away - 5 * a) * away + 8 * a) * away - 4 * a
    return np.where(away <= 1, near, np.where(away < 2, far, 0))


def resampled(x: Tensor, axis: int, places: Array, shares: Array) -> Tensor:
    """Return sums of the elements of an axis at positions, by their shares."""
    parts = []
    for tap in range(places.shape[1]):
        if shares[:, tap].any():
            factor = Tensor(shares[:, tap]).cast(x.dtype)
            factor = factor.reshape((len(shares),) + (1,) * (x.ndim - axis - 1))
            parts.append(taken(x, axis, places[:, tap]) * factor)
    return reduce(lambda total, part: total + part, parts)


def grid_sampled(x: Tensor, grid: Tensor, mode: str, padding: str, align_corners: bool) -> Tensor:
    """Return elements of pictures at the points of a grid, from -1 to 1 across the picture. The
    last axis of the picture comes first in a point. `mode` is "nearest", "linear" or "cubic";
    `padding` says what is read outside: "zeros", "border" or "reflection"."""
    sizes, rank = x.shape[2:], x.ndim - 2
    points = []
    for axis, size in enumerate(sizes):
        point = grid[..., rank - 1 - axis]
        point = (point + 1) / 2 * (size - 1) if align_corners else ((point + 1) * size - 1) / 2
        points.append(point)
    return sum_of(weighted_neighbours(x, points, mode, padding, align_corners))


def weighted_neighbours(
    x: Tensor,
    points: Sequence[Tensor],
    mode: str = "linear",
    padding: str = "zeros",
    align_corners: bool = True,
) -> list[Tensor]:
    """Return the tensors whose sum are the elements at points, which have a tensor for each axis,
    in elements from the first one on."""
    sizes, rank = x.shape[2:], x.ndim - 2

    def moved(points: Sequence[Tensor]) -> list[Tensor]:
        pairs = zip(points, sizes, strict=True)
        return [_inside(point, size, padding, align_corners) for point, size in pairs]

    if mode == "nearest":
        return [_elements(x, [point.round() for point in moved(points)])]
    if mode == "linear":
        points = moved(points)
    taps = range(2) if mode == "linear" else range(-1, 3)
    share_of = _linear_share if mode == "linear" else _cubic_share
    lows = [point.floor() for point in points]
    parts = []
    for corner in product(taps, repeat=rank):
        shares = [share_of(p - low, tap) for p, low, tap in zip(points, lows, corner, strict=True)]
        places = [low + tap for low, tap in zip(lows, corner, strict=True)]
        part = _elements(x, places if mode == "linear" else moved(places))
        parts.append(part * reduce(lambda one, other: one * other, shares).unsqueeze(1))
    return parts


def sum_of(parts: Sequence[Tensor]) -> Tensor:
    return reduce(lambda total, part: total + part, parts)


def _linear_share(rest: Tensor, tap: int) -> Tensor:
    return rest if tap else 1 - rest


def _cubic_share(rest: Tensor, tap: int) -> Tensor:
    """Return the weight of the neighbour number `tap`, from -1 on, of a point `rest` beyond 0."""
    a, away = CUBIC, (rest - tap if tap < 1 else tap - rest)
    if tap in (0, 1):
        return ((a + 2) * away - (a + 3)) * away * away + 1
    return ((a * away - 5 * a) * away + 8 * a) * away - 4 * a


def _inside(point: Tensor, size: int, padding: str, align_corners: bool) -> Tensor:
    """Return points where those outside are moved to, for paddings that have none outside."""
    if padding == "zeros":
        return point
    if padding == "reflection":
        low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
        if span == 0:
            return point * 0
        away = (point - low).abs()
        turns, rest = (away / span).floor(), away.fmod(span)
        point = (turns % 2).eq(0).where(rest + low, span - rest + low)
    return point.clamp(0, size - 1)


def _elements(x: Tensor, points: Sequence[Tensor]) -> Tensor:
    """Return the elements at whole positions of each picture; 0 outside."""
    count, channels, *sizes = x.shape
    pairs = list(zip(points, sizes, strict=True))
    inside = _all([(point >= 0) & (point < size) for point, size in pairs])
    index = Tensor.zeros(*points[0].shape, dtype=dtypes.int64)
    for point, size in pairs:
        index = index * size + point.clamp(0, size - 1).cast(dtypes.int64)
    flat = x.reshape((count, channels, math.prod(sizes)))
    places = index.reshape((count, 1, -1))
    values = flat.gather(2, places.expand((count, channels, places.shape[2])))
    return inside.unsqueeze(1).where(values.reshape((count, channels, *points[0].shape[1:])), 0)


def _all(conditions: Sequence[Tensor]) -> Tensor:
    return reduce(lambda one, other: one & other, conditions)
