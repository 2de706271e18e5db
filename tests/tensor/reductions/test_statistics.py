"""var, std, softmax and its relatives against numpy in float64."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.agree import assert_agrees, numbers, quiet
from workbench.base.errors import ShapeError
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

INF, NAN = float("inf"), float("nan")

# fmt: off
AXES: list[tuple[tuple[int, ...], Any]] = [
    ((7,), None), ((7,), 0), ((1,), -1), ((45, 3), 0), ((45, 3), 1), ((3, 4, 5, 6), (1, 3)),
    ((3, 4, 5, 6), 2), ((3, 4, 5, 6), (0, -1)), ((1, 5, 1), 1), ((1, 5, 1), 0), ((), None),
    ((1000,), 0), ((2, 0, 3), 0), ((0, 3), 1),
]
ONE_AXIS: list[tuple[tuple[int, ...], int]] = [
    ((10, 10, 10), 0), ((10, 10, 10), 1), ((10, 10, 10), 2), ((7,), 0), ((1,), -1), ((), -1),
    ((), 0), ((45, 65), -1), ((45, 65), 0), ((3, 0), 0), ((3, 0), 1), ((0,), 0), ((5, 1, 3), 1),
]
# fmt: on


@by_rows("correction", [0, 1, 2])
@by_rows("keepdim", [False, True])
@by_rows(("shape", "axis"), AXES, ids=str)
def test_var_and_std(shape: tuple[int, ...], axis: Any, keepdim: bool, correction: int) -> None:
    x = numbers(shape) * 3 + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of too few elements numpy gives NaN, and warns
        wide = x.astype(np.float64)
        want = np.asarray(wide.var(axis, keepdims=keepdim, ddof=correction))
    actual = Tensor(x).var(axis, keepdim=keepdim, correction=correction)
    _close(actual, want)
    actual = Tensor(x).std(axis, keepdim=keepdim, correction=correction)
    _close(actual, quiet(np.sqrt, want))


def _close(actual: Tensor, want: Any) -> None:
    assert actual.shape == want.shape
    assert actual.dtype.name == "float32"
    np.testing.assert_allclose(actual.numpy(), want.astype("f4"), rtol=2e-5, atol=1e-6)


def test_var_of_integers_nan_and_defaults() -> None:
    x = numbers((5, 4), "int32")
    _close(Tensor(x).var(0), x.var(0, ddof=1))
    _close(Tensor(x).std(), x.std(ddof=1))
    assert np.isnan(Tensor([1.0, NAN]).var().item())
    assert np.isnan(Tensor([1.0, INF]).std().item())
    assert Tensor([3.0, 3.0, 3.0]).var().item() == 0.0
    wide = numbers((100,), "float64") * 1e-3 + 1000
    assert_agrees(Tensor(wide).var(), np.var(wide, ddof=1), 1e6)


def _softmax(x: Any, axis: int) -> Any:
    x = x.astype(np.float64)
    if not x.size:
        return x
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def _logsumexp(x: Any, axis: Any, keepdim: bool) -> Any:
    return np.asarray(np.logaddexp.reduce(x.astype(np.float64), axis, keepdims=keepdim))


@by_rows(("shape", "axis"), ONE_AXIS, ids=str)
def test_softmax(shape: tuple[int, ...], axis: int) -> None:
    x = np.asarray(numbers(shape) * 4)
    flat = x.reshape(1) if x.ndim == 0 else x
    want = _softmax(flat, axis).reshape(shape)
    np.testing.assert_allclose(Tensor(x).softmax(axis).numpy(), want, 1e-5, 1e-7)
    logs = quiet(np.log, want)
    np.testing.assert_allclose(Tensor(x).log_softmax(axis).numpy(), logs, 1e-5, 1e-6)
    assert Tensor(x).softmax(axis).shape == Tensor(x).log_softmax(axis).shape == shape


@by_rows("keepdim", [False, True])
@by_rows(("shape", "axis"), [*AXES, ((45, 65), 0), ((45, 65), 1)], ids=str)
def test_logsumexp(shape: tuple[int, ...], axis: Any, keepdim: bool) -> None:
    x = np.asarray(numbers(shape) * 10)
    actual = Tensor(x).logsumexp(axis, keepdim=keepdim)
    if isinstance(axis, tuple):  # logaddexp reduces one axis at a time
        want = x
        for a in sorted((a % x.ndim for a in axis), reverse=True):
            want = _logsumexp(want, a, keepdim)
    else:
        want = _logsumexp(x.reshape(-1) if axis is None else x, axis or 0, False)
        if keepdim:
            want = want.reshape(x.sum(axis, keepdims=True).shape)
    assert actual.shape == want.shape
    np.testing.assert_allclose(actual.numpy(), want, 1e-6, 1e-6)


def test_logsumexp_at_extremes() -> None:
    x = np.float32([[-INF, -INF], [INF, 1], [-INF, 2], [1e30, 1e30], [NAN, 1], [300, 300]])
    want = np.float32([-INF, INF, 2, 1e30, NAN, 300 + np.log(2)])
    assert_agrees(Tensor(x).logsumexp(1), want, 1)
    assert_agrees(Tensor(x).logsumexp(1, keepdim=True), want[:, None], 1)
    assert_agrees(Tensor(np.zeros((0, 3), np.float32)).logsumexp(0), np.full(3, -INF, "f4"))


def test_softmax_at_extremes() -> None:
    x = np.float32([[300, 299], [-INF, 0], [1e30, -1e30], [-300, -INF]])
    want = _softmax(x, 1).astype("f4")
    assert_agrees(Tensor(x).softmax(), want, 4)
    assert_agrees(Tensor(x).log_softmax().exp(), want, 4)
    assert Tensor([-200.0, 0.0]).log_softmax().tolist() == [-200.0, 0.0]
    assert np.isnan(Tensor([NAN, 1.0]).softmax().numpy()).all()


def test_dtypes() -> None:
    x = numbers((3, 5), "int32")
    for name in ("softmax", "log_softmax", "logsumexp", "layernorm", "var", "std"):
        assert getattr(Tensor(x), name)().dtype.name == "float32"
        assert getattr(Tensor(x).double(), name)().dtype.name == "float64"
    assert Tensor(x).softmax(dtype="float64").dtype.name == "float64"
    np.testing.assert_allclose(Tensor(x).softmax(0).numpy(), _softmax(x, 0), 1e-6)


@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 7), -1), ((3, 7), 0), ((2, 3, 4), (1, 2)), ((5,), -1)], ids=str
)  # fmt: skip
def test_layernorm(shape: tuple[int, ...], axis: Any) -> None:
    x = numbers(shape) * 2 + 5
    wide = x.astype(np.float64)
    for eps in (1e-5, 0.1):
        scale = np.sqrt(wide.var(axis, keepdims=True) + eps)
        want = (wide - wide.mean(axis, keepdims=True)) / scale
        actual = Tensor(x).layernorm(axis, eps).numpy()
        np.testing.assert_allclose(actual, want, 1e-4, 1e-5)


def test_axes_are_checked() -> None:
    t = Tensor([[1.0, 2.0]])
    for name in ("softmax", "log_softmax", "logsumexp", "layernorm", "var", "std"):
        with pytest.raises(ShapeError, match="axis=2 is out of range"):
            getattr(t, name)(2)
