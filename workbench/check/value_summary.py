"""Summaries of arrays: extremes, mean and histogram of all values, and a picture in few cells.

Values that are not finite are counted, and stand outside of mean, histogram and colours.

Sections: The summary of an array; The picture of a matrix, in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.base.dtypes import dtypes

Array = np.ndarray[Any, Any]

# --------------------------------------------------------------------------------------------------
# The summary of an array.

BINS = 16
"""Bins of a histogram; whole numbers in a smaller range have a bin each."""
BAR_WIDTH = 24
"""Characters of the longest bar of a printed histogram."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Numbers of finite values in bins: bin i goes from `edges[i]` to `edges[i + 1]`, the last one
    with its end. `is_whole`: each bin is the one whole number at its left edge."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    is_whole: bool

    def __str__(self) -> str:
        names = [f"{edge:.4g}" for edge in self.edges]
        ranges = [f"{low} to {high}" for low, high in pairwise(names)]
        labels = names[:-1] if self.is_whole else ranges
        width = max(map(len, labels), default=0)
        most = max(self.counts, default=0)
        bars = ["#" * -(-count * BAR_WIDTH // most) for count in self.counts]
        rows = zip(labels, bars, self.counts, strict=True)
        return "\n".join(f"  {label:>{width}}  {bar:{BAR_WIDTH}} {n:,}" for label, bar, n in rows)


@dataclass(frozen=True, slots=True)
class Summary:
    """The number of values, of those that are NaN, infinite or zero; the least and the greatest
    finite value with the first place of each, and the mean of the finite values (None where there
    is none)."""

    size: int
    nans: int
    infinite: int
    zeros: int
    least: float | None
    greatest: float | None
    mean: float | None
    least_at: tuple[int, ...] | None
    greatest_at: tuple[int, ...] | None
    histogram: Histogram | None


def summary_of(array: Array) -> Summary:
    """Return the summary of an array of numbers or bools."""
    numbers = _comparable(array)
    is_float = numbers.dtype.kind == "f"
    finite = np.isfinite(numbers) if is_float else np.ones(numbers.shape, bool)
    nans = int(np.isnan(numbers).sum()) if is_float else 0
    infinite = array.size - int(finite.sum()) - nans
    zeros = array.size - int(np.count_nonzero(numbers))
    if not finite.any():
        nothing = (None, None, None, None, None, None)
        return Summary(array.size, nans, infinite, zeros, *nothing)
    (least, least_at), (greatest, greatest_at) = (
        _extreme(numbers, finite, lowest) for lowest in (True, False)
    )
    values = numbers[finite]
    return Summary(
        array.size, nans, infinite, zeros, least, greatest, _mean(values),
        least_at, greatest_at, _histogram(values, least, greatest),
    )  # fmt: skip


def _comparable(array: Array) -> Array:
    """Return an array in a dtype of numpy's own: low-precision floats are computed in float32."""
    if dtypes.from_numpy(array.dtype).is_float:
        return array.astype(np.float64)
    return array.astype(np.int64) if array.dtype == bool else array


def _extreme(numbers: Array, finite: Array, lowest: bool) -> tuple[float, tuple[int, ...]]:
    if numbers.dtype.kind == "f":
        numbers = np.where(finite, numbers, np.inf if lowest else -np.inf)
    place = int(np.argmin(numbers) if lowest else np.argmax(numbers))
    at = tuple(int(i) for i in np.unravel_index(place, numbers.shape))
    return numbers.reshape(-1)[place].item(), at


def _mean(values: Array) -> float:
    """Return the mean of values, without an overflow of their sum."""
    largest = float(np.abs(values.astype(np.float64)).max())
    if largest > np.finfo(np.float64).max / values.size:
        return float((values / values.size).sum())
    return float(values.mean(dtype=np.float64))


def _histogram(values: Array, least: float, greatest: float) -> Histogram:
    if values.dtype.kind != "f" and greatest - least < BINS:
        counts = [int((values == n).sum()) for n in range(int(least), int(greatest) + 1)]
        edges = tuple(float(n) for n in range(int(least), int(greatest) + 2))
        return Histogram(edges, tuple(counts), True)
    if least == greatest:
        return Histogram((least, greatest), (values.size,), False)
    shares = np.arange(BINS + 1) / BINS
    edges_array = least * (1 - shares) + greatest * shares  # greatest - least may overflow
    edges_array[[0, -1]] = least, greatest
    bins = np.searchsorted(edges_array, values.astype(np.float64), side="right") - 1
    counts_array = np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS)
    return Histogram(tuple(edges_array.tolist()), tuple(counts_array.tolist()), False)


# --------------------------------------------------------------------------------------------------
# The picture of a matrix, in blocks.

MOST_CELLS = 96
"""Most rows, and most columns, of a picture."""


class Mark(IntFlag):
    """What a cell of a picture has besides finite values: some NaN, some infinity; the first place
    of the least or of the greatest value of the matrix."""

    NAN = 1
    POSITIVE_INFINITY = 2
    NEGATIVE_INFINITY = 4
    LEAST = 8
    GREATEST = 16


@dataclass(frozen=True, slots=True)
class Picture:
    """A matrix in blocks of `block` rows and columns, the last ones smaller: `means` has the mean
    of each block's finite values, NaN where it has none, and `marks` its Marks."""

    block: tuple[int, int]
    means: Array
    marks: Array


def picture_of(matrix: Array, most: int = MOST_CELLS) -> Picture:
    """Return the picture of a matrix, of at most `most` rows and columns."""
    numbers = _comparable(matrix).astype(np.float64)
    block = tuple(max(1, -(-n // most)) for n in numbers.shape)
    finite = np.isfinite(numbers)
    share = np.where(finite, numbers, 0.0) / (block[0] * block[1])  # a sum may overflow
    counts = _per_block(finite.astype(np.int64), block)
    with np.errstate(all="ignore"):
        means = _per_block(share, block) * (block[0] * block[1] / counts)
    marks = np.zeros(means.shape, np.int64)
    for mark, mask in _masks(numbers, finite):
        marks |= np.where(_per_block(mask.astype(np.int64), block) > 0, int(mark), 0)
    return Picture((block[0], block[1]), np.where(counts > 0, means, np.nan), marks)


def _masks(numbers: Array, finite: Array) -> list[tuple[Mark, Array]]:
    masks = [
        (Mark.NAN, np.isnan(numbers)),
        (Mark.POSITIVE_INFINITY, np.isposinf(numbers)),
        (Mark.NEGATIVE_INFINITY, np.isneginf(numbers)),
    ]
    if not finite.any():
        return masks
    (least, least_at), (greatest, greatest_at) = (
        _extreme(numbers, finite, lowest) for lowest in (True, False)
    )
    for mark, at in ((Mark.LEAST, least_at), (Mark.GREATEST, greatest_at)):
        mask = np.zeros(numbers.shape, bool)
        mask[at] = least < greatest
        masks.append((mark, mask))
    return masks


def _per_block(numbers: Array, block: tuple[int, ...]) -> Array:
    """Return the sum of each block of a matrix."""
    for axis, size in enumerate(block):
        starts = np.arange(0, numbers.shape[axis], size)
        if not starts.size:
            return np.zeros([-(-n // b) for n, b in zip(numbers.shape, block, strict=True)])
        numbers = np.add.reduceat(numbers, starts, axis=axis)
    return numbers
