"""One tolerance for each dtype: what rounding explains is equal, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workbench.base.dtypes import DType, dtypes
from workbench.ir.meaning.closeness import LONG_STEPS, STEPS, errors, limit_of, tolerance


def are_close(actual: Any, expected: Any, steps: int = STEPS) -> bool:
    return bool((errors(actual, expected) <= limit_of(actual, expected, steps)).all())


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
def test_rounding_is_equal_and_more_is_not(dtype: DType) -> None:
    expected = np.array([1.0, -100.0, 0.0], dtype.numpy)
    limit = 100 * tolerance(dtype)
    for share, is_equal in ((0.4, True), (3.0, False)):
        actual = expected.astype(np.float64)
        actual[1] += share * limit
        assert are_close(actual.astype(dtype.numpy), expected) is is_equal


def test_longer_sums_may_be_off_by_more() -> None:
    assert tolerance(dtypes.float32) < tolerance(dtypes.float32, LONG_STEPS) < 1.1e-3
    assert tolerance(dtypes.float64, LONG_STEPS) < 1e-9
    assert tolerance(dtypes.int32) == tolerance(dtypes.bool) == 0.0


def test_whole_numbers_are_exact() -> None:
    one, other = np.array([1, 2**30]), np.array([1, 2**30 + 1])
    assert are_close(one, one) and not are_close(one, other)


def test_nan_and_infinity_stand_where_they_should() -> None:
    inf, nan = np.inf, np.nan
    expected = np.array([inf, -inf, nan, 1.0, inf, 1.0, nan])
    actual = np.array([inf, -inf, nan, 1.0, -inf, nan, 1.0], np.float32)
    assert errors(actual, expected).tolist() == [0, 0, 0, 0, inf, inf, inf]
    assert are_close(actual[:4], expected[:4])
    assert not are_close(actual, expected)
    assert errors(np.array([inf], np.float32), np.array([1e39])).tolist() == [0.0]


def test_nothing_is_equal_to_nothing() -> None:
    empty = np.zeros(0, np.float32)
    assert are_close(empty, empty)


CLOSE: list[tuple[Any, Any, str, bool]] = [
    ([1.0, 2.0], [1.0, 2.0001], "float32", True),
    ([1.0, 2.0], [1.0, 2.1], "float32", False),
    ([1.0, np.nan], [1.0, np.nan], "float32", True),
    ([1.0, np.nan], [1.0, 2.0], "float32", False),
    ([1.0, 2.0], [1.0, np.inf], "float32", False),
    ([np.inf], [np.inf], "float32", True),
    ([1.0, np.inf], [1.0, -np.inf], "float32", False),
    ([np.nan], [np.inf], "float32", False),
    ([1.0, 1000.0], [1.001, 1000.0], "float32", True),
    ([1.0, 2.0], [1.0, 2.0001], "float64", False),
    ([1, 2], [1, 2], "int32", True),
    ([1, 200], [1, 201], "int32", False),
    ([True], [False], "bool", False),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "actual", "dtype", "close"), CLOSE, ids=str)
def test_what_counts_as_the_same_answer(
    expected: Any, actual: Any, dtype: str, close: bool
) -> None:
    assert are_close(np.array(actual, dtype), np.array(expected, dtype), LONG_STEPS) is close
