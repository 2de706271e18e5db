"""The gradient of sliding windows, against what each element of a window is of its axis."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import count
from workbench import Tensor
from workbench.ir.gradient.windows import rows_of
from workbench.tensor.movement.windows import Window, windows

SEEDS = range(count(200))


def drawn(seed: int) -> tuple[tuple[int, ...], list[Window]]:
    rng = np.random.default_rng(seed)
    each = [
        Window(*[int(n) for n in rng.integers(1, (5, 4, 4))], 0, 0)
        for _ in range(rng.integers(1, 3))
    ]
    sizes = [int(w.extent + rng.integers(0, 6)) for w in each]
    return (int(rng.integers(1, 3)), *sizes), each


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_window_sees_gets_its_gradient(seed: int) -> None:
    shape, each = drawn(seed)
    numbers = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    x = Tensor(numbers, requires_grad=True)
    y = x._with(windows(x.uop, each))
    weights = np.random.default_rng(seed).integers(-4, 5, y.shape).astype(np.float64)
    (y * Tensor(weights)).sum().backward()
    expected = np.zeros(numbers.size)
    np.add.at(expected, y.numpy().astype(int), weights)  # a value is its position
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), expected.reshape(shape))


def test_the_rows_are_told() -> None:
    """Without them the sum would be over all copies of the axis."""
    x = Tensor.zeros(2, 10).contiguous()
    node = windows(x.uop, [Window(3, 1, 2, 0, 0)])
    rows = [r for n in node.toposort() if (r := rows_of(n, lambda n: n.src[0])) is not None]
    assert [(r.length, r.size, r.shift, r.columns) for r in rows] == [(10, 3, 2, 6)]
