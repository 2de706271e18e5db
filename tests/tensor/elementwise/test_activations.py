"""Activations against formulas in float64, at ordinary, tiny, huge and special values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.agree import assert_agrees, numbers, quiet
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, 20.0, -20.0, 85.0, -85.0, 300.0, -300.0,
           1e-6, -1e-6, 1e30, -1e30, NAN]  # fmt: skip

Formula = Callable[..., Any]


def _gelu(x: Any) -> Any:
    y = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return x / (1 + np.exp(-2 * y))


# fmt: off
CASES: list[tuple[str, Formula, Formula, float]] = [
    ("relu", lambda t: t.relu(), lambda x: np.maximum(x, 0), 0),
    ("relu6", lambda t: t.relu6(), lambda x: np.clip(x, 0, 6), 0),
    ("leaky_relu", lambda t: t.leaky_relu(), lambda x: np.where(x < 0, 0.01 * x, x), 2),
    ("leaky_relu 2", lambda t: t.leaky_relu(-2.0), lambda x: np.where(x < 0, -2 * x, x), 0),
    ("elu", lambda t: t.elu(), lambda x: np.where(x > 0, x, np.expm1(x)), 6),
    ("elu 2.5", lambda t: t.elu(2.5), lambda x: np.where(x > 0, x, 2.5 * np.expm1(x)), 7),
    ("sigmoid", lambda t: t.sigmoid(), lambda x: 1 / (1 + np.exp(-x)), 5),
    ("tanh", lambda t: t.tanh(), np.tanh, 5),
    ("silu", lambda t: t.silu(), lambda x: x / (1 + np.exp(-x)), 6),
    ("swish", lambda t: t.swish(), lambda x: x / (1 + np.exp(-x)), 6),
    ("softplus", lambda t: t.softplus(), lambda x: np.logaddexp(x, 0), 8),
    ("softplus 3", lambda t: t.softplus(3.0), lambda x: np.logaddexp(3 * x, 0) / 3, 32),
    ("logsigmoid", lambda t: t.logsigmoid(), lambda x: -np.logaddexp(-x, 0), 8),
    ("softsign", lambda t: t.softsign(), lambda x: x / (1 + np.abs(x)), 2),
    ("mish", lambda t: t.mish(), lambda x: x * np.tanh(np.logaddexp(x, 0)), 8),
    ("hardtanh", lambda t: t.hardtanh(-2, 1.5), lambda x: np.clip(x, -2, 1.5), 0),
    ("celu", lambda t: t.celu(), lambda x: np.where(x > 0, x, np.expm1(x)), 6),
    ("celu 3", lambda t: t.celu(3), lambda x: np.where(x > 0, x, 3 * np.expm1(x / 3)), 8),
    ("selu", lambda t: t.selu(),
     lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * np.expm1(x)), 7),
    ("hardswish", lambda t: t.hardswish(), lambda x: x * np.clip(x + 3, 0, 6) / 6, 3),
]
LIMITS: list[tuple[str, float, float]] = [
    ("relu", 0, INF), ("relu6", 0, 6), ("leaky_relu", -INF, INF), ("elu", -1, INF),
    ("sigmoid", 0, 1), ("tanh", -1, 1), ("silu", 0, INF), ("gelu", 0, INF),
    ("softplus", 0, INF), ("hardswish", 0, INF), ("logsigmoid", -INF, 0), ("softsign", -1, 1),
    ("mish", 0, INF), ("hardtanh", -1, 1), ("hardsigmoid", 0, 1), ("celu", -1, INF),
    ("quick_gelu", 0, INF),
]
# fmt: on


@by_rows(("name", "ours", "numpys", "ulps"), CASES, ids=lambda c: c)
@by_rows("dtype", ["float32", "float64"])
def test_activation(name: str, ours: Formula, numpys: Formula, ulps: float, dtype: str) -> None:
    for x in (numbers((45, 7)) * 3, np.array(SPECIAL), np.linspace(-12, 12, 301)):
        x = x.astype(dtype)
        # What the formula itself loses in float64 is not ours.
        wide = x.astype(np.longdouble)
        assert_agrees(ours(Tensor(x)), quiet(numpys, wide).astype(dtype), max(ulps, 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gelu(dtype: str) -> None:
    """The exponent's rounding error grows with its size: a tolerance relative to x, not y."""
    x = np.linspace(-6, 6, 1001).astype(dtype)
    want = quiet(_gelu, x.astype(np.longdouble)).astype(dtype)
    assert_agrees(Tensor(x).gelu(), want, 80)
    near = x[np.abs(x) < 2]
    assert_agrees(Tensor(near).gelu(), want[np.abs(x) < 2], 8)
    assert_agrees(Tensor([0.0, 1e30, -1e30]).gelu(), np.float32([0, 1e30, 0]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hardsigmoid(dtype: str) -> None:
    """Near its corners it is a small difference: a tolerance relative to 1."""
    x = np.linspace(-6, 6, 301).astype(dtype)
    want = np.clip(x.astype(np.longdouble) / 6 + 0.5, 0, 1).astype(dtype)
    error = np.abs(Tensor(x).hardsigmoid().numpy() - want).max()
    assert error < 4 * np.finfo(dtype).eps


@by_rows(("name", "low", "high"), LIMITS)
def test_at_the_infinities(name: str, low: float, high: float) -> None:
    for dtype in ("float32", "float64"):
        x = np.array([-INF, INF, NAN], dtype)
        assert_agrees(getattr(Tensor(x), name)(), np.array([low, high, NAN], dtype))


@by_rows("name", [row[0] for row in LIMITS])
@by_rows("shape", [(), (1,), (0,), (3, 1, 5), (0, 4)], ids=str)
def test_shapes_and_integers(name: str, shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    actual = getattr(Tensor(x), name)()
    assert actual.shape == shape
    # A scalar is a constant, of which numpy computes the value.
    assert_agrees(actual.reshape(-1), getattr(Tensor(x.reshape(-1)), name)().numpy(), 2)
    whole = numbers(shape, "int16")
    actual = getattr(Tensor(whole), name)()
    if name.startswith("relu") or name == "hardtanh":
        low, high = {"relu6": (0, 6), "hardtanh": (-1, 1)}.get(name, (0, 99))
        assert_agrees(actual, np.clip(whole, low, high))
    else:
        want = getattr(Tensor(whole.astype(np.float32)), name)()
        assert_agrees(actual, want.numpy())


def test_relu_of_unsigned_and_bool() -> None:
    x = np.array([0, 3, 255], np.uint8)
    assert_agrees(Tensor(x).relu(), x)
    assert_agrees(Tensor(x).relu6(), np.minimum(x, 6).astype(np.uint8))
    assert_agrees(Tensor([True, False]).relu(), np.array([True, False]))


def test_softplus_of_very_negative_numbers_is_not_zero() -> None:
    assert_agrees(Tensor([-20.0, -80.0]).softplus(),
                  np.exp(np.array([-20.0, -80.0])).astype(np.float32), 6)  # fmt: skip
