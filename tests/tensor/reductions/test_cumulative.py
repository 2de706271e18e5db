"""Running sums, products and maxima against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.agree import assert_agrees, numbers
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

INF, NAN = float("inf"), float("nan")

# fmt: off
SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((7,), 0), ((1,), 0), ((0,), 0), ((5, 3), 0), ((5, 3), 1), ((2, 3, 4), 1), ((2, 3, 4), -3),
    ((1, 4, 1), 1), ((1, 4, 1), 0), ((3, 0), 0), ((3, 0), 1), ((64,), 0), ((512,), 0),
    ((513,), 0), ((700,), 0), ((600, 2), 0), ((2, 1025), 1),
]
SUMMED = [("bool", "int64"), ("int8", "int64"), ("int16", "int64"), ("int32", "int64"),
          ("int64", "int64"), ("uint8", "int64"), ("uint32", "int64"), ("uint64", "uint64"),
          ("float32", "float32"), ("float64", "float64")]
# fmt: on


@by_rows(("shape", "axis"), SHAPES, ids=str)
def test_cumsum_and_cummax(shape: tuple[int, ...], axis: int) -> None:
    x = numbers(shape, "int32")
    assert_agrees(Tensor(x).cumsum(axis), x.cumsum(axis, dtype=np.int64))
    values, positions = Tensor(x).cummax(axis)
    want = np.maximum.accumulate(x, axis)
    assert_agrees(values, want)
    assert_agrees(positions, _last_positions(x, want, axis))
    f = numbers(shape)
    actual = Tensor(f).cumsum(axis).numpy()
    wide = f.cumsum(axis, dtype=np.float64)
    np.testing.assert_allclose(actual, wide, rtol=1e-4, atol=1e-4)


def _last_positions(x: Any, running: Any, axis: int) -> Any:
    column = [1] * x.ndim
    column[axis] = -1
    places = np.arange(x.shape[axis], dtype=np.int32).reshape(column)
    return np.maximum.accumulate(np.where(x == running, places, np.int32(-1)), axis)


@by_rows(("dtype", "summed"), SUMMED)
def test_dtypes(dtype: str, summed: str) -> None:
    x = numbers((3, 9), dtype)
    assert_agrees(Tensor(x).cumsum(1), x.cumsum(1, dtype=summed), 64)
    small = (np.abs(x.astype("f8")) % 3).astype(dtype)
    assert_agrees(Tensor(small).cumprod(1), small.cumprod(1, dtype=summed), 64)
    assert_agrees(Tensor(x).cummax(1)[0], np.maximum.accumulate(x, 1))


def test_scalars() -> None:
    assert_agrees(Tensor(3).cumsum(), np.int64(3))
    assert_agrees(Tensor(3.0).cumprod(0), np.float32(3))
    values, positions = Tensor(np.float32(2.5)).cummax(-1)
    assert_agrees(values, np.float32(2.5))
    assert_agrees(positions, np.int32(0))


def test_special_values() -> None:
    x = np.float32([1, INF, 2, -INF, 3, NAN, 4])
    assert_agrees(Tensor(x).cumsum(), np.float32([1, INF, INF, NAN, NAN, NAN, NAN]))
    y = np.float32([-INF, -INF, -3, NAN, 9])
    values, positions = Tensor(y).cummax()
    assert_agrees(values, np.float32([-INF, -INF, -3, NAN, NAN]))
    assert positions.tolist() == [0, 1, 2, 3, 3]
    # before a NaN nothing is NaN, across blocks too
    long = np.ones(900, np.float32)
    long[600] = NAN
    actual = Tensor(long).cumsum().numpy()
    np.testing.assert_array_equal(actual, long.cumsum())


def test_of_expressions() -> None:
    x = numbers((4, 33))
    actual = (Tensor(x) * 2 + 1).exp().cumsum(1) - 1
    want = np.exp(x.astype("f8") * 2 + 1).cumsum(1) - 1
    np.testing.assert_allclose(actual.numpy(), want, rtol=1e-5)
    assert_agrees(Tensor.ones(600).cumsum(), np.arange(1, 601, dtype=np.float32))
