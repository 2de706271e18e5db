"""Other roundings change what is inexact, by as much as was asked for, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from workbench import Tensor
from workbench.check.node_values import memory_below
from workbench.ir.meaning.closeness import other_roundings
from workbench.ir.meaning.interpret import interpret_tensor

Array = np.ndarray[Any, Any]
random = np.random.default_rng(0)
X = random.standard_normal(512).astype(np.float32)
Y = random.standard_normal(512).astype(np.float32)
WHOLE = random.integers(-99, 100, 512).astype(np.float32)


def computed(value: Tensor, *roundings: Any) -> Array:
    memory = memory_below(value.uop.toposort())
    if not roundings:
        return np.array(interpret_tensor(value.uop, memory))
    with other_roundings(*roundings):
        return np.array(interpret_tensor(value.uop, memory))


EXACT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sum of whole numbers": lambda x, y: x + y,
    "product": lambda x, y: x * y,
    "quotient": lambda x, y: (x * 8) / 4,
    "reciprocal": lambda x, y: (x * 0 + 4).reciprocal(),
    "square root": lambda x, y: (x * x).sqrt(),
    "reduction": lambda x, y: (x * y).reshape(8, 64).sum(1),
    "rounding": lambda x, y: (x * 0.25).round(),
    "floor": lambda x, y: (x * 0.25).floor(),
    "greatest": lambda x, y: x.maximum(y).max(),
    "remainder": lambda x, y: x % (y.abs() + 1),
    "integers": lambda x, y: x.cast("int32") * 3 // 7,
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_exact_stays(name: str, dtype: str) -> None:
    value = EXACT[name](Tensor(WHOLE).cast(dtype), Tensor(WHOLE[::-1]).cast(dtype))
    np.testing.assert_array_equal(computed(value, 0, 16.0, 1), computed(value))


INEXACT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "sum": lambda x, y: x + y * 1e-3,
    "product": lambda x, y: x * y,
    "quotient": lambda x, y: x / y,
    "exponential": lambda x, y: x.exp(),
    "reduction": lambda x, y: x.reshape(8, 64).sum(1),
}


ROUNDED = [
    (name, dtype)
    for dtype in ("float32", "float64", "float16", "bfloat16")
    for name in INEXACT
    if "16" not in dtype or name not in ("exponential", "reduction")
]
"""Functions and sums of low-precision floats are computed in float32, and rounded once."""


@pytest.mark.parametrize(("name", "dtype"), ROUNDED)
def test_what_is_inexact_moves_to_either_side(name: str, dtype: str) -> None:
    x, y = (Tensor(a.astype(np.float64) / 3).cast(dtype).realize() for a in (X, Y))
    value = INEXACT[name](x, y)
    own = computed(value).astype(np.float64)
    up, down = (computed(value, 0, 1.0, s).astype(np.float64) for s in (1, -1))
    moved = (up != own) & (down != own)
    assert moved.mean() > 0.9
    assert (np.sign(up - own) == -np.sign(down - own))[moved].mean() > 0.9
    epsilon = 2.0**-value.dtype.fraction_bits
    terms = 64 * np.abs(own).max() if name == "reduction" else 3 * np.abs(own) + 1e-3
    assert (np.abs(up - own) <= 3 * epsilon * terms).all()


def test_a_seed_gives_the_same_roundings() -> None:
    value = Tensor(X) * Tensor(Y)
    first, again, other = (computed(value, seed, 1.0, 1) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(computed(value), X * Y)
