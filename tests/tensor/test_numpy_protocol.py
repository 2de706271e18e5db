"""numpy's operators and functions with a Tensor as an operand."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from workbench import Tensor
from workbench.base.errors import DTypeError
from workbench.tensor.copies import OPERATORS

A = np.array([[3, -2, 7], [1, 0, 5]], np.int32)
B = np.array([[2, 3, 4], [5, 1, 2]], np.int32)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operators_are_the_tensors(name: str) -> None:
    """An array on the left, on the right, and a scalar of numpy's; a Tensor comes back."""
    ufunc = getattr(np, name)
    if ufunc.nin == 1:
        cases: list[tuple[Any, ...]] = [(A,)]
        made = [ufunc(Tensor(A))]
    else:
        right = B.T if name == "matmul" else B
        cases = [(A, right), (A, right)]
        made = [ufunc(A, Tensor(right)), ufunc(Tensor(A), right)]
        if name != "matmul":
            cases.append((np.int32(9), B))
            made.append(ufunc(np.int32(9), Tensor(B)))
    for case, tensor in zip(cases, made, strict=True):
        assert isinstance(tensor, Tensor)
        expected = ufunc(*case).astype(tensor.numpy().dtype)
        np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-6, err_msg=str(case))


@pytest.mark.parametrize(
    "apply", [operator.add, operator.sub, operator.mul, operator.iadd, operator.imul]
)
def test_an_array_in_place_is_a_tensor_after(apply: Callable[..., Any]) -> None:
    after = apply(A.copy(), Tensor(B))
    assert isinstance(after, Tensor)
    assert np.array_equal(after.numpy(), apply(A.copy(), B))


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (np.exp, "t.exp(..)"),
        (np.arctan, "t.atan(..)"),
        (np.maximum, "t.maximum(..)"),
        (np.sum, "t.sum(..)"),
        (np.hypot, "np.hypot(t.numpy())"),
        (np.add.reduce, "np.add(t.numpy())"),
    ],
)
def test_a_function_names_the_method(function: Callable[..., Any], hint: str) -> None:
    operands = [Tensor(A)] * (2 if function in (np.maximum, np.hypot) else 1)
    with pytest.raises(DTypeError) as refused:
        function(*operands)
    assert hint in refused.value.hint and "does not take a Tensor" in refused.value.what


def test_what_takes_values_has_them() -> None:
    assert np.array_equal(np.concatenate([Tensor(A), B]), np.concatenate([A, B]))
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
