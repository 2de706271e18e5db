"""Scans and their gradients: values at sizes with one block, blocks of blocks and stored totals,
and the kernels that they take."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.support import LONG, by_rows
from workbench import Tensor
from workbench.tensor.reductions.scans import _block_sizes

INF, NAN = math.inf, math.nan
SCANS = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
SHAPES = [
    ((2,), 0), ((33,), 0), ((61,), 0), ((997,), 0), ((1000,), 0), ((4097,), 0), ((40, 3), 0),
    ((2, 70, 3), 1), ((16, 1100), 1), ((0, 70), 1), ((2, 0, 70), 2),
]  # fmt: skip


def scan(x: Tensor, name: str, axis: int) -> Tensor:
    result = getattr(x, name)(axis)
    return result if isinstance(result, Tensor) else result[0]


def numbers(shape: tuple[int, ...], name: str) -> Any:
    rng = np.random.default_rng(len(shape) * 1000 + math.prod(shape))
    values = rng.normal(size=shape)
    if name == "cumprod":  # products that neither vanish nor grow without limit, and a zero
        values = np.sign(values) * (0.95 + 0.1 * rng.random(shape))
        values[(rng.random(shape) < 0.001) | (np.arange(values.size) == 50).reshape(shape)] = 0
    if name in ("cummax", "cummin"):
        values = np.round(values * 3)
    if name == "logcumsumexp":
        values *= 40
    return np.float32(values)


def values_of(x: Any, name: str, axis: int) -> Any:
    wide = x.astype(np.float64)
    ufuncs: dict[str, Any] = {
        "cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum,
        "logcumsumexp": np.logaddexp,
    }  # fmt: skip
    return ufuncs[name].accumulate(wide, axis)


def gradient_of(x: Any, w: Any, name: str, axis: int) -> Any:
    """Return the gradient of sum(w * scan), element by element, in 64 bits."""
    rows, weights = (np.moveaxis(v.astype(np.float64), axis, -1) for v in (x, w))
    y = values_of(rows, name, -1)
    result = np.zeros_like(rows)
    for place in np.ndindex(rows.shape[:-1]):
        row, g, values = rows[place], weights[place], y[place]
        if name == "cumsum":
            result[place] = g[::-1].cumsum()[::-1]
        elif name == "logcumsumexp":
            for j in range(len(row)):
                result[place][j] = (g[j:] * np.exp(row[j] - values[j:])).sum()
        elif name == "cumprod":
            follows = 0.0
            before = np.concatenate([[1.0], values[:-1]])
            for j in reversed(range(len(row))):
                after = row[j + 1] if j + 1 < len(row) else 0.0
                follows = g[j] + after * follows
                result[place][j] = before[j] * follows
        else:
            last = np.maximum.accumulate(np.where(row == values, np.arange(len(row)), -1))
            np.add.at(result[place], last, g)
    return np.moveaxis(result, -1, axis)


PAIRS = [(*shape, name) for shape in SHAPES for name in SCANS]


@by_rows(("shape", "axis", "name"), PAIRS if LONG else PAIRS[::4])
def test_values_and_gradients(shape: tuple[int, ...], axis: int, name: str) -> None:
    x = numbers(shape, name)
    w = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    t = Tensor(x)
    y = scan(t, name, axis)
    (gradient,) = (y * Tensor(w)).sum().gradient(t)
    wanted, wanted_gradient = values_of(x, name, axis), gradient_of(x, w, name, axis)
    assert y.shape == gradient.shape == shape
    scale = np.abs(wanted_gradient).max(initial=1.0)
    np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gradient.numpy() / scale, wanted_gradient / scale, atol=2e-4)


@pytest.mark.parametrize("size", [20, 300, 5000])
def test_infinities_and_nans_stay_where_they_are(size: int) -> None:
    x = np.linspace(-1, 1, size, dtype=np.float32)
    low, place = x.copy(), size // 2
    low[:place] = -INF
    high = x.copy()
    high[place] = INF
    for array in (low, high):
        t = Tensor(array)
        y = t.logcumsumexp()
        g = y.sum().gradient(t)[0].numpy()
        wanted = np.logaddexp.accumulate(array.astype(np.float64))
        np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5)
        if array is low:  # the first elements are the results; then they have no share
            assert not np.isnan(g).any() and (g[: place - 1] >= 1).all()
        else:
            assert (g[place + 1 :] == 0).all() and g[place] == size - place
    x[place] = NAN
    for name in SCANS:
        y = scan(Tensor(x), name, 0).numpy()
        assert np.isnan(y[place:]).all() and not np.isnan(y[:place]).any()


@pytest.mark.parametrize("size", [40, 5000])
def test_integers_and_narrow_floats(size: int) -> None:
    x = np.random.default_rng(size).integers(-3, 4, size)
    for dtype in ("int8", "int32", "int64"):
        narrow = x.astype(dtype)
        result = Tensor(narrow).cumsum()
        assert result.numpy().dtype == np.int64
        np.testing.assert_array_equal(result.numpy(), x.cumsum())
        wrapped = np.cumprod(narrow | 1, dtype=np.int64)
        np.testing.assert_array_equal(Tensor(narrow | 1).cumprod(0).numpy(), wrapped)
        values = Tensor(narrow).cummax()[0].numpy()
        np.testing.assert_array_equal(values, np.maximum.accumulate(narrow))
    positive = x > 0
    np.testing.assert_array_equal(Tensor(positive).cumsum().numpy(), positive.cumsum())
    for dtype in ("half", "bfloat16"):
        t = Tensor(np.float32(x)).cast(dtype)
        assert t.cumsum().dtype == t.dtype
        exact = x.cumsum()
        np.testing.assert_allclose(t.cumsum().cast("float32").numpy(), exact, rtol=2**-8)
        (g,) = t.cumsum().sum().gradient(t)
        assert g.dtype == t.dtype


@pytest.mark.parametrize("name", SCANS)
def test_second_gradients(name: str) -> None:
    """Those of a gradient are those of finite differences of it."""
    rng = np.random.default_rng(5)
    x = rng.permutation(np.linspace(-1.5, 1.6, 40))
    w, v = rng.normal(size=(2, 40))

    def first(t: Tensor) -> Tensor:
        y = scan(t, name, 0)
        return (y * y * Tensor(w)).sum().gradient(t)[0]

    t = Tensor(x)
    (second,) = (first(t) * Tensor(v)).sum().gradient(t)
    step = 1e-5
    sides = [(first(Tensor(x + s * v)).numpy()) for s in (step, -step)]
    wanted = (sides[0] - sides[1]) / (2 * step)  # the matrix of second gradients is symmetric
    np.testing.assert_allclose(second.numpy(), wanted, rtol=1e-4, atol=1e-5)


def kernels(*tensors: Tensor) -> int:
    first, *others = tensors
    return len([item for item in first.schedule(*others) if item.kernel is not None])


# Kernels: of the scan, of its gradient.
COUNTS = {
    ("cumsum", (1000,), 0): (1, 1), ("cumprod", (1000,), 0): (1, 5),
    ("cummax", (1000,), 0): (1, 3), ("cummin", (1000,), 0): (1, 3),
    ("logcumsumexp", (1000,), 0): (1, 2), ("logcumsumexp", (32,), 0): (1, 2),
    ("logcumsumexp", (512,), 0): (1, 2), ("cumsum", (997,), 0): (2, 2),
    ("cumsum", (100_000,), 0): (3, 3), ("logcumsumexp", (100_000,), 0): (3, 7),
    ("cumsum", (64, 1024), 1): (2, 2), ("logcumsumexp", (64, 1024), 1): (2, 4),
    ("cumsum", (64, 1024), 0): (3, 3), ("cumsum", (4096,), 0): (1, 1),
}  # fmt: skip


@pytest.mark.parametrize(("name", "shape", "axis"), COUNTS, ids=str)
def test_kernel_counts(name: str, shape: tuple[int, ...], axis: int) -> None:
    t = Tensor(np.ones(shape, np.float32)).realize()
    y = scan(t, name, axis)
    (gradient,) = y.sum().gradient(t)
    assert (kernels(y), kernels(gradient)) == COUNTS[name, shape, axis]


def test_blocks_multiply_to_the_size_or_a_little_more() -> None:
    for size in range(1, 6000):
        sizes = _block_sizes(size)
        whole = math.prod(sizes)
        assert size <= whole <= max(size * 1.1, size + 8)
        assert max(sizes) <= 32 or size > 4096
        # what each result reads in the same kernel
        assert sum(sizes[size > 4096 :]) <= 64
