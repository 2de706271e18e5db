"""Summaries and pictures of arrays are what numpy says, value by value, for every dtype."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support import count
from workbench.check.value_summary import BINS, Mark, picture_of, summary_of

Array = np.ndarray[Any, Any]
DTYPES = (
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int32, np.int64,
    np.uint8, np.uint64, np.bool_,
)  # fmt: skip


def random_array(seed: int, ndim: int) -> Array:
    """Return an array of any dtype and of odd sizes, also 0; floats with NaN and infinities."""
    generator = np.random.default_rng(seed)
    shape = tuple(int(n) for n in generator.choice((0, 1, 2, 3, 5, 8, 13, 29), ndim))
    dtype: Any = DTYPES[seed % len(DTYPES)]
    array: Array = generator.standard_normal(shape) * 10 ** float(generator.integers(-3, 4))
    if dtype in (np.uint8, np.uint64):
        array = np.abs(array) % 200
    elif dtype is np.int8:
        array = array % 100
    array = array.astype(dtype)
    is_float = dtype in DTYPES[:4]
    for value in (np.nan, np.inf, -np.inf):
        if is_float and array.size and generator.random() < 0.5:
            array.reshape(-1)[generator.integers(0, array.size, 1 + array.size // 7)] = value
    return array


def test_a_summary_is_that_of_its_values_one_by_one() -> None:
    for seed in range(count(400)):
        array = random_array(seed, seed % 4)
        summary = summary_of(array)
        values = [float(v) for v in array.reshape(-1)]
        finite = [v for v in values if math.isfinite(v)]
        assert summary.size == len(values)
        assert summary.nans == sum(map(math.isnan, values))
        assert summary.infinite == sum(map(math.isinf, values))
        assert summary.zeros == values.count(0.0)
        if not finite:
            assert summary.least is summary.mean is summary.histogram is None
            continue
        assert (summary.least, summary.greatest) == (min(finite), max(finite))
        assert summary.mean == pytest.approx(math.fsum(finite) / len(finite), abs=1e-6)
        assert summary.least_at is not None and summary.greatest_at is not None
        assert float(array[summary.least_at]) == min(finite)
        assert float(array[summary.greatest_at]) == max(finite)
        histogram = summary.histogram
        assert histogram is not None and sum(histogram.counts) == len(finite)
        edges = histogram.edges
        for bin_, number in enumerate(histogram.counts):
            low, high = edges[bin_], edges[bin_ + 1]
            is_last = bin_ == len(histogram.counts) - 1
            inside = [v for v in finite if low <= v < high or is_last and v == high]
            assert number == len(inside), seed


def test_whole_numbers_of_a_small_range_have_a_bin_each() -> None:
    histogram = summary_of(np.array([3, 5, 5, 6], np.int32)).histogram
    assert histogram is not None and histogram.is_whole
    assert histogram.edges[:-1] == (3, 4, 5, 6) and histogram.counts == (1, 0, 2, 1)
    assert "5  ######################## 2" in str(histogram)
    wide = summary_of(np.arange(100)).histogram
    assert wide is not None and not wide.is_whole and len(wide.counts) == BINS


def test_values_at_the_ends_of_a_dtype_do_not_overflow() -> None:
    most = np.finfo(np.float64).max
    summary = summary_of(np.array([most, -most, most]))
    assert summary.mean == pytest.approx(most / 3) and summary.histogram is not None
    assert summary.histogram.counts[0] == 1 and summary.histogram.counts[-1] == 2
    assert picture_of(np.full((4, 4), most), most=2).means == pytest.approx(most)
    large = summary_of(np.array([2**64 - 1, 1], np.uint64))
    assert (large.least, large.greatest) == (1, 2**64 - 1)


def test_a_picture_has_the_mean_of_each_block() -> None:
    for seed in range(count(300)):
        array = random_array(seed, 2)
        most = 1 + seed % 9
        picture = picture_of(array, most)
        high, wide = picture.block
        assert max(picture.means.shape, default=0) <= most
        numbers = array.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        kinds = {
            Mark.NAN: np.isnan(numbers),
            Mark.POSITIVE_INFINITY: np.isposinf(numbers),
            Mark.NEGATIVE_INFINITY: np.isneginf(numbers),
        }
        for row, column in np.ndindex(*picture.means.shape):
            place = np.s_[row * high : (row + 1) * high, column * wide : (column + 1) * wide]
            own = numbers[place][np.isfinite(numbers[place])]
            mean = picture.means[row, column]
            assert np.isnan(mean) if not own.size else mean == pytest.approx(own.mean(), abs=1e-6)
            marks = int(picture.marks[row, column])
            for mark, mask in kinds.items():
                assert bool(marks & mark) == bool(mask[place].any())
            if marks & Mark.LEAST:
                assert own.min() == finite.min()
            if marks & Mark.GREATEST:
                assert own.max() == finite.max()
        ends = [int((picture.marks & mark > 0).sum()) for mark in (Mark.LEAST, Mark.GREATEST)]
        assert ends == ([1, 1] if len({*finite.tolist()}) > 1 else [0, 0])
