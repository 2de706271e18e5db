"""Values that were read before others are computed from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support import count
from workbench import Tensor

EXTREMES: dict[str, Callable[[Tensor], Tensor]] = {
    "max": lambda x: x.max(-1),
    "running maximum": lambda x: x.cummax(-1)[0],
    "largest in windows": lambda x: x.max_pool2d((2, 2)),
}


def numbers(seed: int) -> Callable[..., Any]:
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.standard_normal(shape).astype(np.float32)


def normalized(x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt()


def gradient(name: str, seed: int, is_read: bool) -> Any:
    make = numbers(seed)
    rows, columns = 4 + seed % 3, 3 + seed % 4
    x, bias = Tensor(make(2, rows, 3)), Tensor(make(columns))
    weights = Tensor(make(3, columns), requires_grad=True)
    largest = EXTREMES[name](normalized(normalized(x @ weights + bias) * 1.1))
    if is_read:
        largest.detach().numpy()
    factors = Tensor(np.sin(np.arange(largest.numel()) * 0.7).astype(np.float32))
    (largest.flatten() * factors).sum().backward()
    assert weights.grad is not None
    return weights.grad.numpy()


@pytest.mark.parametrize("name", EXTREMES)
def test_a_gradient_is_the_same_after_its_value_was_read(name: str) -> None:
    """The elements are computed again, and compared with the largest: both are of one computation,
    or none may equal it."""
    for seed in range(count(30)):
        plain = gradient(name, seed, is_read=False)
        again = gradient(name, seed, is_read=True)
        np.testing.assert_allclose(again, plain, atol=1e-3 * np.abs(plain).max())
