"""numpy's operators and functions with a Tensor as an operand."""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.testing import overrides

from workbench import Tensor
from workbench.base.dtypes import dtypes
from workbench.base.errors import WorkbenchError
from workbench.tensor.numpy.dispatch import ROWS
from workbench.tensor.numpy.functions.reasons import has_reason
from workbench.tensor.numpy.functions.table import name_of
from workbench.tensor.numpy.ufuncs import OPERATORS, REASONS, UFUNCS

A = np.array([[3, -2, 7], [1, 0, 5]], np.int32)
B = np.array([[2, 3, 4], [5, 1, 2]], np.int32)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operators_are_the_tensors(name: str) -> None:
    """With an array or a scalar of numpy's on the left, the dtype is as with it on the right."""
    ufunc, method = getattr(np, name), getattr(Tensor, OPERATORS[name])
    right = B.T if name == "matmul" else B
    for left in (A,) if name == "matmul" else (A, A.astype(np.int64), np.int32(9)):
        result = ufunc(left, Tensor(right))
        assert isinstance(result, Tensor)
        assert result.dtype is method(Tensor(right), left).dtype
        expected = ufunc(left, right).astype(result.numpy().dtype)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6, err_msg=str(left))


def test_a_function_promotes_as_numpy_does() -> None:
    """An operator with a Tensor on the left is Tensor's, a function is numpy's."""
    x, half = Tensor(A), Tensor([[0.5]])
    assert np.exp(x).dtype is dtypes.float64 and x.exp().dtype is dtypes.float32
    assert np.multiply(x, half).dtype is dtypes.float64 and (x * half).dtype is dtypes.float32
    assert (A * half).dtype is (half * A).dtype is dtypes.float32
    assert np.mean(x).dtype is dtypes.float64 and np.sum(Tensor([True])).dtype is dtypes.int64
    assert np.multiply(x, 2).dtype is dtypes.int32 and np.add(half, 1.5).dtype is dtypes.float32
    low = Tensor([1.0, 2.0], dtype="bfloat16")
    assert np.exp(low).dtype is np.add(low, 1.5).dtype is dtypes.bfloat16
    assert np.sum(low).dtype is dtypes.bfloat16


def test_functions_compute_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("computed")

    monkeypatch.setattr("workbench.tensor.tensor.realize", refuse)
    x = Tensor(A) + 1
    for result in (np.exp(x), np.mean(x, axis=0), np.where(x > 1, x, 0), np.add.outer(x, x)):
        assert isinstance(result, Tensor)
    assert np.shape(x) == (2, 3) and np.ndim(x) == 2 and np.size(x) == 6


def test_a_gradient_flows_through_functions() -> None:
    x = Tensor([0.5, 2.0], requires_grad=True)
    np.sum(np.log1p(x) * np.arctan2(x, 1.0)).backward()
    values, step = np.array([0.5, 2.0]), 1e-6

    def f(v: Any) -> Any:
        return np.log1p(v) * np.arctan2(v, 1.0)

    slope = (f(values + step) - f(values - step)) / (2 * step)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-4)


@pytest.mark.parametrize(
    "apply", [operator.add, operator.sub, operator.mul, operator.iadd, operator.imul]
)
def test_an_array_in_place_is_a_tensor_after(apply: Callable[..., Any]) -> None:
    after = apply(A.copy(), Tensor(B))
    assert isinstance(after, Tensor)
    assert np.array_equal(after.numpy(), apply(A.copy(), B))


X = Tensor(A)


@pytest.mark.parametrize(
    ("call", "what", "because"),
    [
        (lambda: np.gcd(X, X), "np.gcd of a Tensor", "how many steps"),
        (lambda: np.max(X, where=X > 1), "np.maximum of the elements", "initial="),
        (lambda: np.sum(X, out=A), "np.sum: out=", "not written into"),
        (lambda: np.exp(X, out=X), "np.exp: out", "not written into"),
        (lambda: np.exp(X, where=A > 1), "np.exp: where", "would have no value"),
        (lambda: np.add(X, 1, casting="unsafe"), "np.add: casting", "'same_kind'"),
        (lambda: np.add.reduceat(X, [0]), "np.add.reduceat", "pieces"),
        (lambda: np.add.at(X, 0, 1), "np.add.at", "writes"),
        (lambda: np.hypot.reduce(X), "np.hypot.reduce", "no reduction"),
        (lambda: np.copyto(X, A), "np.copyto does not take", "writes to its argument"),
        (lambda: np.negative(X > 1), "np.negative does not take bool", "boolean negative"),
        (lambda: np.exp(X, dtype=complex), "no tensor has the element type complex", "types are"),
        (lambda: np.add(X, 1j), "np.add does not take int32 and complex128", "complex128"),
        (lambda: np.add(X, 1 << 40), "int32 does not hold the number", "integers from"),
        (lambda: np.pad(X, 1, mode="mean"), "mode='mean'", "no expression"),
        (lambda: np.reshape(X, -1, order="X"), "np.reshape: order='X'", "row-major"),
    ],
)
def test_what_has_no_expression_is_refused(
    call: Callable[[], object], what: str, because: str
) -> None:
    with pytest.raises(WorkbenchError) as refused:
        call()
    assert what in refused.value.what and because in refused.value.because
    assert "test_numpy_protocol.py, line" in refused.value.where


def test_every_ufunc_has_a_row_or_a_reason() -> None:
    names = {ufunc.__name__ for ufunc in overrides.get_overridable_numpy_ufuncs()}
    assert not set(UFUNCS) & set(REASONS)
    assert names <= set(UFUNCS) | set(REASONS)


def test_every_function_has_a_row_or_a_reason() -> None:
    import_module("numpy.fft")  # its functions and those of text dispatch, too
    import_module("numpy.char")
    names = {name_of(function) for function in overrides.get_overridable_numpy_array_functions()}
    assert not [name for name in ROWS if has_reason(name)]
    assert not [name for name in names if name not in ROWS and not has_reason(name)]


def test_what_takes_values_has_them() -> None:
    assert np.array_equal(np.concatenate([Tensor(A), B]), np.concatenate([A, B]))
    assert np.array_equal(np.unique(Tensor(B)), np.unique(B))
    assert np.array_equal(np.nonzero(Tensor(A)), np.nonzero(A))
    assert np.array_equal(np.linalg.inv(Tensor(np.eye(2) * 2)), np.eye(2) / 2)
    np.testing.assert_array_equal(Tensor(A), A)
    assert np.allclose(Tensor(A), A) and np.array_equal(np.asarray(Tensor(A)), A)


def test_what_there_is_not_has_neighbours() -> None:
    with pytest.raises(AttributeError, match="did you mean softmax"):
        Tensor(A).softmx()
    with pytest.raises(AttributeError, match=r"did you mean \w*max\?|'_sofmax'"):
        Tensor(A)._sofmax  # noqa: B018
    with pytest.raises(AttributeError, match=r"^[^_]*hist[^_]*$"):
        Tensor(A).hist  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'zzzzzz'$"):
        Tensor(A).zzzzzz  # noqa: B018
    assert not hasattr(Tensor(A), "__array_interface__")
