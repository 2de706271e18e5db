"""multinomial and randperm: tinygrad's indices after the same seeds, and how often each comes;
draws in a TinyJit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import LONG
from workbench.base.context import Context
from workbench.base.dtypes import dtypes
from workbench.base.errors import DTypeError, ShapeError
from workbench.tensor import Tensor
from workbench.tensor.jit import TinyJit

pytestmark = pytest.mark.usefixtures("device")

# fmt: off
RECORDED: list[dict[str, Any]] = [
    {"perm6": [0, 4, 5, 1, 3, 2], "perm7": [0, 6, 1, 5, 4, 2, 3], "one": [3],
     "many": [1, 1, 3, 3, 2, 2, 1], "some": [3, 0, 2],
     "rows": [[0, 2, 2, 1], [0, 2, 0, 0]], "few": [[2, 1], [0, 1]]},
    {"perm6": [5, 0, 1, 3, 4, 2], "perm7": [4, 0, 6, 2, 1, 3, 5], "one": [1],
     "many": [1, 3, 2, 3, 0, 3, 2], "some": [3, 2, 1],
     "rows": [[0, 1, 0, 1], [1, 1, 2, 1]], "few": [[2, 1], [1, 0]]},
    {"perm6": [3, 5, 2, 4, 1, 0], "perm7": [0, 1, 5, 3, 4, 6, 2], "one": [3],
     "many": [1, 1, 3, 2, 3, 1, 3], "some": [2, 3, 0],
     "rows": [[0, 2, 2, 2], [0, 0, 0, 2]], "few": [[1, 0], [1, 0]]},
    {"perm6": [1, 2, 4, 3, 0, 5], "perm7": [5, 2, 4, 0, 6, 1, 3], "one": [3],
     "many": [2, 3, 0, 3, 1, 0, 2], "some": [2, 3, 1],
     "rows": [[1, 0, 1, 1], [1, 2, 0, 0]], "few": [[0, 2], [2, 0]]},
]  # fmt: on
"""What tinygrad 0.14 returns after the seeds 0, 1, .."""


@pytest.mark.parametrize("seed", range(len(RECORDED)))
def test_as_in_tinygrad(seed: int) -> None:
    weights, matrix = Tensor([1, 2, 3, 4]), Tensor([[1.0, 2, 3], [3, 2, 1]])
    calls = {
        "perm6": lambda: Tensor.randperm(6),
        "perm7": lambda: Tensor.randperm(7),
        "one": weights.multinomial,
        "many": lambda: weights.multinomial(7, True),
        "some": lambda: weights.multinomial(3),
        "rows": lambda: matrix.multinomial(4, True),
        "few": lambda: matrix.multinomial(2),
    }
    for name, call in calls.items():
        Tensor.manual_seed(seed)
        result = call()
        assert result.dtype is dtypes.int32
        assert result.tolist() == RECORDED[seed][name], name


def test_how_often_each_comes() -> None:
    Tensor.manual_seed(1)
    index = Tensor([1.0, 0, 3, 4]).multinomial(8000, replacement=True).numpy()
    shares = np.bincount(index, minlength=4) / 8000
    np.testing.assert_allclose(shares, [0.125, 0, 0.375, 0.5], atol=0.02)
    first = Tensor([[1.0, 3.0]] * 4000).multinomial(2).numpy()
    assert (np.sort(first, axis=1) == [0, 1]).all()
    assert abs(first[:, 0].mean() - 0.75) < 0.03
    order = Tensor.randperm(500).numpy()
    assert sorted(order) == list(range(500))
    assert (order != np.arange(500)).any()


@pytest.mark.parametrize("count", [100_000, 600_000] if LONG else [5_000])
def test_neighbours_in_a_long_order_rise_as_often_as_they_fall(
    count: int, device: str
) -> None:
    """Equal keys stay in order, so that with 23 bits too many rise."""
    if device != "LLVM":
        return
    Tensor.manual_seed(2)
    order = Tensor.randperm(count).numpy()
    assert (np.bincount(order, minlength=count) == 1).all()
    rises = int((np.diff(order) > 0).sum())
    assert abs(rises - count / 2) < 3 * (count / 12) ** 0.5


def test_classes_of_many_are_drawn_alike(device: str) -> None:
    """A fraction of 23 bits has 8,388,608 values, which five million classes do not share alike."""
    if device != "LLVM":
        return
    Tensor.manual_seed(3)
    classes = 5_000_000
    index = Tensor.ones(classes).multinomial(400, replacement=True).numpy()
    shares = np.bincount(index % 5, minlength=5)
    assert 0 <= index.min() and index.max() < classes
    assert abs(shares - 80).max() < 40


def test_sizes_and_refusals() -> None:
    assert Tensor.randperm(0).shape == (0,)
    assert Tensor.randperm(1).tolist() == [0]
    assert Tensor.randperm(3, dtype="float32").dtype is dtypes.float32
    weights = Tensor([1.0, 2])
    for call, text in (
        (lambda: Tensor.randperm(-1), "n = -1 is too small"),
        (lambda: weights.multinomial(0), "num_samples = 0 is too small"),
        (lambda: weights.multinomial(3), "cannot draw 3 of 2 elements"),
        (lambda: weights.reshape(1, 1, 2).multinomial(), "one row, or several"),
        (lambda: Tensor(1.0).multinomial(), "one row, or several"),
        (lambda: Tensor.zeros(2, 0).multinomial(), "of one weight or more"),
    ):
        with pytest.raises(ShapeError, match=text):
            call()
    with pytest.raises(DTypeError):
        weights.multinomial(1, replacement=2.5)  # type: ignore[arg-type]


def test_replays_draw_what_the_function_would() -> None:
    unused = []

    def function(x: Tensor) -> tuple[Tensor, ...]:
        unused.append(Tensor.rand(5))
        dropped = x.dropout(0.5)
        return x + Tensor.rand(3), Tensor.randn(2, dtype="float64"), dropped

    x, jit = Tensor([0.5, 1.0, 2.0]).realize(), TinyJit(function)
    with Context(TRAINING=1):
        for seed in (5, 5, 6):
            results = []
            for call in (function, jit):
                Tensor.manual_seed(seed)
                results.append([[t.tolist() for t in call(x)] for _ in range(4)])
            assert results[0] == results[1]
            assert results[0][2] != results[0][3]
    assert jit.count > 0
