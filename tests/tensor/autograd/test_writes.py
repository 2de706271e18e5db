"""Gradients through memory that is written, also without their being recorded, are PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.peers import torch
from workbench import Tensor

Steps = Callable[[Any, Any, Any, Callable[..., Any]], Any]


def part(x: Any, y: Any, weights: Any, no_grad: Callable[..., Any]) -> Any:
    with no_grad():
        y[0] = 5
    return y.sum()


def part_of_a_detached(x: Any, y: Any, weights: Any, no_grad: Callable[..., Any]) -> Any:
    y.detach()[0] = 5
    return (y * weights).sum()


def operator(x: Any, y: Any, weights: Any, no_grad: Callable[..., Any]) -> Any:
    with no_grad():
        y += 1
    return (y * y).sum()


def all_of_a_detached(x: Any, y: Any, weights: Any, no_grad: Callable[..., Any]) -> Any:
    other = y.detach()
    other += 1
    return (y * weights).sum() + other.sum()


def views(x: Any, y: Any, weights: Any, no_grad: Callable[..., Any]) -> Any:
    end = y[1:]
    with no_grad():
        y.reshape(3, 1)[1:] = x[1:].reshape(2, 1) * 9
        end *= 3
    return (y * y).sum()


def then_one_that_is_recorded(x: Any, y: Any, weights: Any, no_grad: Callable[..., Any]) -> Any:
    y.detach()[0] = 5
    y[1] = x[0] * 3
    with no_grad():
        y[2] = 1
    return (y * weights).sum()


def leaf(x: Any, y: Any, weights: Any, no_grad: Callable[..., Any]) -> Any:
    x.detach()[0] = 7
    with no_grad():
        x += 1
        x[1:] = 4
    return (x * x * weights).sum()


ALL: list[Steps] = [
    part, part_of_a_detached, operator, all_of_a_detached, views, then_one_that_is_recorded, leaf,
]  # fmt: skip


@pytest.mark.parametrize("is_computed", [False, True])
@pytest.mark.parametrize("steps", ALL, ids=lambda steps: steps.__name__)
def test_what_is_written_without_a_gradient_keeps_the_old_one(
    steps: Steps, is_computed: bool
) -> None:
    values, weights = [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]
    x, own = (torch.tensor(values, requires_grad=True), Tensor(values, requires_grad=True))
    expected = steps(x, x * 2, torch.tensor(weights), torch.no_grad)
    expected.backward()
    y = own * 2
    if is_computed:
        y.realize()
    actual = steps(own, y, Tensor(weights), Tensor.no_grad)
    if is_computed:
        actual.realize()
    actual.backward()
    assert own.grad is not None
    assert actual.item() == expected.item() and own.grad.tolist() == x.grad.tolist()
