"""Data sets: their shapes, that they are the same at each call, and that they can be learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import ROOT
from workbench import Context, Tensor, dtypes
from workbench.base.errors import ShapeError
from workbench.nn import datasets


def test_digits_are_all_there_once() -> None:
    x, y, x_test, y_test = datasets.digits()
    assert x.shape == (1437, 1, 8, 8) and x_test.shape == (360, 1, 8, 8)
    assert {t.dtype for t in (x, y, x_test, y_test)} == {dtypes.uint8}
    with np.load(ROOT / "notebooks/data/digits.npz") as file:
        want = sorted(
            (i.tobytes(), int(n)) for i, n in zip(file["images"], file["labels"], strict=True)
        )
    images = np.concatenate([x.numpy(), x_test.numpy()])
    labels = np.concatenate([y.numpy(), y_test.numpy()])
    assert pairs(images, labels) == want
    assert np.bincount(y_test.numpy()).min() >= 25
    again = datasets.digits(device="PYTHON")
    assert again[1].device == "PYTHON" and again[1].tolist() == y.tolist()


def pairs(images: Any, labels: Any) -> list[tuple[bytes, int]]:
    return sorted((i.tobytes(), int(n)) for i, n in zip(images, labels, strict=True))


def test_digits_can_be_told_apart_by_their_neighbours() -> None:
    x, y, x_test, y_test = (t.numpy().astype(float) for t in datasets.digits())
    points, others = x.reshape(-1, 64), x_test.reshape(-1, 64)
    distance = (points**2).sum(1) - 2 * others @ points.T  # less what is the same for all
    assert (y[distance.argmin(1)] == y_test).mean() > 0.97


@pytest.mark.parametrize("make", [datasets.spirals, datasets.blobs])
def test_points_are_drawn_by_their_seed(make: object) -> None:
    assert callable(make)
    x, y = make(100, 4)
    assert x.shape == (100, 2) and y.shape == (100,)
    assert (x.dtype, y.dtype) == (dtypes.float32, dtypes.int32)
    assert np.bincount(y.numpy()).tolist() == [25] * 4
    assert make(100, 4)[0].tolist() == x.tolist() != make(100, 4, seed=1)[0].tolist()
    with Context(DEV="PYTHON"):
        assert make(10)[0].device == "PYTHON"
    with pytest.raises(ShapeError, match="count"):
        make(0)


def test_noise_is_what_keeps_points_from_their_arm() -> None:
    x, _ = datasets.spirals(500, noise=0.0)
    assert isinstance(x, Tensor) and np.hypot(*x.numpy().T).max() <= 1.0
    x, y = datasets.blobs(500, features=3, noise=0.0)
    assert len(np.unique(x.numpy(), axis=0)) == 3


@pytest.mark.parametrize("noise", [float("nan"), -1.0])
def test_a_noise_that_is_none_is_refused(noise: float) -> None:
    with pytest.raises(TypeError, match="noise=0"):
        datasets.blobs(8, noise=noise)
