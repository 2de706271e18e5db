"""Gradients of kernels written by hand: the user's own, or an error with the kernel's name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tensor.custom.kernels import matmul, moments, numbers, row_sums
from workbench import Tensor
from workbench.base.errors import DTypeError, GradientError, ShapeError
from workbench.ir.node.uop import UOp


def product(a: Tensor, b: Tensor, grad_fxn: Any) -> Tensor:
    out = Tensor.empty(a.shape[0], b.shape[1])
    return out.custom_kernel(a, b, fxn=matmul, grad_fxn=grad_fxn)[0]


def of_product(gradient: Tensor, call: Any) -> tuple[Any, ...]:
    _, a, b = call.src[1:]
    return None, gradient @ b.transpose(), a.transpose() @ gradient


def of_product_as_nodes(gradient: Any, call: Any) -> tuple[UOp | None, ...]:
    """As it is written for tinygrad."""
    _, a, b = call.src[1:]
    gradient = Tensor(gradient)
    return None, (gradient @ Tensor(b).T).uop, (Tensor(a).T @ gradient).uop


@pytest.mark.parametrize("grad_fxn", [of_product, of_product_as_nodes])
def test_it_is_that_of_the_plain_op(grad_fxn: Any) -> None:
    arrays = numbers(5, 4), numbers(4, 3)
    grads = []
    for multiply in (lambda a, b: product(a, b, grad_fxn), Tensor.matmul):
        a, b = [Tensor(array, requires_grad=True) for array in arrays]
        (multiply(a * 2, b).tanh() * 3).sum().backward()
        assert a.grad is not None and b.grad is not None
        grads.append((a.grad.numpy(), b.grad.numpy()))
    for ours, plain in zip(*grads, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-5)


def test_it_has_a_gradient_itself() -> None:
    a, b = Tensor(numbers(3, 3)), Tensor(numbers(3, 3) + 1)
    (first,) = (product(a, b, of_product) ** 3).sum().gradient(a)
    (plain,) = ((a @ b) ** 3).sum().gradient(a)
    np.testing.assert_allclose(
        (first * a).sum().gradient(b)[0].numpy(),
        (plain * a).sum().gradient(b)[0].numpy(),
        rtol=1e-3,
    )


def test_several_outputs_have_a_gradient_each() -> None:
    def grad_fxn(mean: Tensor, square: Tensor, call: Any) -> tuple[Any, ...]:
        x = call.src[3]
        return None, None, (mean + square * 2 * x.T).T / x.shape[1]

    x = Tensor(numbers(4, 6))
    out = Tensor.empty(4).custom_kernel(Tensor.empty(4), x, fxn=moments, grad_fxn=grad_fxn)
    variance = (out[1] - out[0] * out[0]).sum()
    (ours,) = variance.gradient(x)
    (plain,) = (x.var(1, correction=0)).sum().gradient(x)
    np.testing.assert_allclose(ours.numpy(), plain.numpy(), rtol=1e-3, atol=1e-5)
    (only,) = out[1].sum().gradient(x)
    np.testing.assert_allclose(only.numpy(), x.numpy() / 3, rtol=1e-5)


def test_without_one_the_error_names_the_kernel() -> None:
    x = Tensor(numbers(4, 4), requires_grad=True)
    total = Tensor.empty(4).custom_kernel(x * 2, fxn=row_sums)[0]
    with pytest.raises(GradientError, match="the kernel row_sums has no gradient") as error:
        total.sum().backward()
    assert "grad_fxn" in error.value.hint
    assert (total.detach().sum() + x.sum()).backward() is not None


@pytest.mark.parametrize(
    "grad_fxn, kind, words",
    [
        (lambda g, call: g, ShapeError, "has 1 results"),
        (lambda g, call: (None, g), ShapeError, r"has shape \(4,\)"),
        (lambda g, call: (None, 2.0), DTypeError, "is 2.0"),
        ("matmul", DTypeError, "cannot be called"),
    ],
)
def test_a_wrong_one_is_refused(grad_fxn: Any, kind: type[Exception], words: str) -> None:
    x = Tensor(numbers(4, 4), requires_grad=True)
    with pytest.raises(kind, match=words):
        total = Tensor.empty(4).custom_kernel(x, fxn=row_sums, grad_fxn=grad_fxn)[0]
        total.sum().backward()
