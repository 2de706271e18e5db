"""Trigonometric and hyperbolic functions, and erf, on every device, against a wider type."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support import by_rows, count
from tests.tensor.agree import quiet
from tests.tools.compiler import needs_c
from workbench.base.context import Context
from workbench.tensor import Tensor

INF, NAN = float("inf"), float("nan")
Array = Any


@pytest.fixture(params=["LLVM", pytest.param("C", marks=needs_c), "PYTHON"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with Context(DEV=request.param):
        yield request.param


def spread(low: float, high: float) -> Callable[[int], Array]:
    """Return a maker of numbers of both signs, of every magnitude in between."""

    def make(n: int) -> Array:
        rng = np.random.default_rng(5)
        log = rng.uniform(math.log(low), math.log(high), n)
        return np.exp(log) * rng.choice([-1.0, 1.0], n)

    return make


def around(low: float, high: float) -> Callable[[int], Array]:
    return lambda n: np.random.default_rng(6).uniform(low, high, n)


class Case(NamedTuple):
    name: str
    numpys: Callable[[Array], Array]
    ulps: float
    samples: tuple[Callable[[int], Array], ...]


erf = np.vectorize(math.erf, otypes=[np.longdouble])  # numpy has none
ANGLES = spread(1e-30, 1e37), around(-7, 7), around(-1e5, 1e5)
UNIT = spread(1e-30, 1), around(-1, 1)
# fmt: off
CASES = [
    Case("sin", np.sin, 1.6, ANGLES),
    Case("cos", np.cos, 1.6, ANGLES),
    Case("tan", np.tan, 3.2, ANGLES),
    Case("asin", np.arcsin, 2, UNIT),
    Case("acos", np.arccos, 2, UNIT),
    Case("atan", np.arctan, 2.2, (spread(1e-30, 1e37), around(-3, 3))),
    Case("sinh", np.sinh, 4.5, (spread(1e-30, 80), around(-2, 2))),
    Case("cosh", np.cosh, 4.5, (spread(1e-30, 80), around(-2, 2))),
    Case("asinh", np.arcsinh, 4, (spread(1e-30, 1e37), around(-2, 2))),
    Case("acosh", np.arccosh, 4.5, (lambda n: 1 + np.abs(spread(1e-7, 1e37)(n)), around(1, 3))),
    Case("atanh", np.arctanh, 4, UNIT),
    Case("erf", erf, 2, (spread(1e-30, 10), around(-6, 6), around(0.9, 1.1))),
]
# fmt: on


def ulps(actual: Array, want: Array) -> Array:
    """Return the distances in units in the last place; `want` is of a wider type."""
    near = np.maximum(np.abs(want).astype(actual.dtype), np.finfo(actual.dtype).tiny)
    return np.abs(actual.astype(np.longdouble) - want) / np.spacing(near)


@by_rows("dtype", ["float32", "float64"])
@by_rows("case", CASES, ids=lambda case: case.name)
def test_accuracy(case: Case, dtype: str, device: str) -> None:
    # numpy's own functions stand behind the emulator's sine and exponential.
    limit = max(case.ulps, 6) if device == "PYTHON" else case.ulps
    for make in case.samples:
        x = make(count(200_000)).astype(dtype)
        actual = getattr(Tensor(x), case.name)().numpy()
        want = quiet(case.numpys, x.astype(np.longdouble))
        off = ulps(actual, want)
        worst = int(np.argmax(off))
        assert off[worst] <= limit, (x[worst], actual[worst], want[worst])


SPECIAL = [0.0, -0.0, 1e-40, -1e-40, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 89.0, -89.0, 3e38, -3e38,
           INF, -INF, NAN]  # fmt: skip


@by_rows("dtype", ["float32", "float64"])
@by_rows("case", CASES, ids=lambda case: case.name)
def test_special_values(case: Case, dtype: str, device: str) -> None:
    x = np.array(SPECIAL).astype(dtype)
    actual = getattr(Tensor(x), case.name)().numpy()
    want = quiet(lambda y: case.numpys(y).astype(dtype), x.astype(np.longdouble))
    np.testing.assert_allclose(actual, want, rtol=1e-6, atol=0)
    signed = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(actual)[signed], np.signbit(want)[signed])


def test_the_largest_angles(device: str) -> None:
    """Source: the digits are those of a computation with 400 places."""
    x = np.array([np.finfo(np.float64).max, 2.0**1023, 6381956970095103 * 2.0**797])
    sine = [0.004961954789184062, 0.563127779850884, 1.0]
    cosine = [-0.9999876894265599, -0.826369834614148, -4.687165924254628e-19]
    # numpy, which the emulator calls, loses a digit of the last cosine.
    rtol = 4e-15 if device == "PYTHON" else 4e-16
    np.testing.assert_allclose(Tensor(x).sin().numpy(), sine, rtol)
    np.testing.assert_allclose(Tensor(x).cos().numpy(), cosine, rtol)
    x = np.array([np.finfo(np.float32).max, 16367173 * 2.0**72], np.float32)
    actual = Tensor(x).sin().numpy(), Tensor(x).cos().numpy()
    wide = x.astype(np.float64)
    np.testing.assert_allclose(actual, (np.sin(wide), np.cos(wide)), rtol=2e-7)


def test_integers_are_float32() -> None:
    actual = Tensor([0, 1, -2]).sin()
    np.testing.assert_allclose(actual.numpy(), np.sin(np.float32([0, 1, -2])), rtol=2e-7)
    assert actual.dtype.name == "float32"
