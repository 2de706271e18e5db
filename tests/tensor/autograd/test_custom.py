"""Functions with a gradient of their own."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from workbench import Tensor
from workbench.base.errors import DTypeError, GradientError, ShapeError


@Tensor.custom_gradient
def straight_through(x: Tensor) -> Any:
    return x.round(), lambda g: g


@Tensor.custom_gradient
def scaled(x: Tensor, factor: Tensor, *, power: int = 2) -> Any:
    return x * factor**power, lambda g: (g * factor * 10, None)


def leaf(*values: float) -> Tensor:
    return Tensor(list(values), requires_grad=True)


def test_the_gradient_is_the_functions_own() -> None:
    x = leaf(1.2, 2.7)
    y = straight_through(x)
    assert y.tolist() == [1.0, 3.0] and y.requires_grad
    (y * y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0, 6.0]


def test_each_call_has_its_own() -> None:
    x, a, b = leaf(1.0, 2.0), Tensor([3.0, 3.0]), Tensor([5.0, 5.0])
    (scaled(x, a) + scaled(x, b)).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [80.0, 80.0]
    assert a.grad is None


def test_it_has_a_gradient_itself() -> None:
    x = leaf(2.0)
    square = Tensor.custom_gradient(lambda x: (x * x, lambda g: g * x * x * x))
    (first,) = square(x).sum().gradient(x)
    (second,) = first.sum().gradient(x)
    assert (first.item(), second.item()) == (8.0, 12.0)


def test_a_gradient_that_is_stored() -> None:
    x = leaf(1.0, 2.0)
    assert x.is_param and not (x * 2).is_param
    (first,) = ((x * 3).contiguous_backward() * 2).sum().gradient(x)
    (fused,) = ((x * 3) * 2).sum().gradient(x)
    assert first.tolist() == fused.tolist() == [6.0, 6.0]
    (first,) = ((x * x).contiguous_backward() * x).sum().gradient(x)
    (fused,) = ((x * x) * x).sum().gradient(x)
    assert (len(first.schedule()), len(fused.schedule())) == (3, 2)
    assert first.tolist() == fused.tolist() == [3.0, 12.0]


def test_nothing_flows_past_it() -> None:
    x, y = leaf(2.0), leaf(3.0)
    stops = Tensor.custom_gradient(lambda x: (x * y, lambda g: None))
    (stops(x) + x).sum().backward()
    assert x.grad is not None and x.grad.item() == 1.0 and y.grad is None


def test_in_another_process_there_is_no_function() -> None:
    x = leaf(1.2)
    again = pickle.loads(pickle.dumps(straight_through(x)))
    assert again.item() == 1.0
    with pytest.raises(GradientError, match=r"backward\(\) has no tensor"):
        again.sum().backward()


WRONG: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "no function": (lambda x: x, DTypeError, "a function of the gradient"),
    "no tensor": (lambda x: (1.0, lambda g: g), DTypeError, "tensor of floats"),
    "another shape": (lambda x: (x, lambda g: g.sum()), ShapeError, r"has shape \(\)"),
    "too many": (lambda x: (x, lambda g: (g, g)), ShapeError, "has 2 results"),
    "a number": (lambda x: (x, lambda g: 1.0), DTypeError, "not float"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refusals(name: str) -> None:
    function, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        Tensor.custom_gradient(function)(leaf(1.0, 2.0)).sum().backward()
