"""Gradients of conv2d beside torch's: they are told directly, and not made of the rules of ops."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from tests.support import count
from tests.tensor.agree import numbers
from workbench.tensor import Tensor
from workbench.tensor.reductions import convolution


def check(x: Any, w: Any, options: dict[str, Any]) -> None:
    """Compare the gradients of both operands, and second ones of a product with both."""
    images, weights = Tensor(x).realize(), Tensor(w).realize()
    y = images.conv2d(weights, **options)
    tx, tw = (torch.tensor(a, requires_grad=True) for a in (x, w))
    ty = torch.nn.functional.conv2d(tx, tw, **options)
    ours = y.square().sum().gradient(images, weights)
    theirs = torch.autograd.grad(ty.square().sum(), (tx, tw), create_graph=True)
    second = (ours[0].square().sum() + ours[1].square().sum()).gradient(images, weights)
    both = theirs[0].square().sum() + theirs[1].square().sum()
    wanted = (*theirs, *torch.autograd.grad(both, (tx, tw)))
    for gradient, want in zip((*ours, *second), wanted, strict=True):
        expected = want.detach().numpy()
        size = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(gradient.numpy() / size, expected / size, atol=1e-5)


@pytest.mark.parametrize("least", [0, 1 << 30], ids=["told", "by the rules"])
def test_random_convolutions(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "LEAST_RULE_PRODUCTS", least)
    rng = random.Random(5)
    for seed in range(count(20)):
        groups, depth, outs = (rng.randint(1, 3) for _ in range(3))
        kernel, dilation, stride, padding = (
            tuple(rng.randint(low, 3) for _ in range(2)) for low in (1, 1, 1, 0)
        )
        size = [
            max(1, d * (k - 1) + 1 - 2 * p) + rng.randint(0, 5)
            for k, d, p in zip(kernel, dilation, padding, strict=True)
        ]
        x = numbers((rng.randint(1, 2), groups * depth, *size), seed=seed)
        w = numbers((groups * outs, depth, *kernel), seed=seed + 1)
        names = ("stride", "dilation", "padding", "groups")
        check(x, w, dict(zip(names, (stride, dilation, padding, groups), strict=True)))


def test_no_elements() -> None:
    for image, weight in (
        ((0, 2, 5, 5), (3, 2, 3, 3)),
        ((2, 0, 5, 5), (3, 0, 3, 3)),
        ((2, 2, 5, 5), (0, 2, 3, 3)),
    ):
        x, w = Tensor.zeros(*image).contiguous(), Tensor.zeros(*weight).contiguous()
        total = x.conv2d(w).sum()
        gradients = total.gradient(x, w, materialize_grads=True)
        for gradient, of in zip(gradients, (x, w), strict=True):
            np.testing.assert_array_equal(gradient.numpy(), np.zeros(of.shape))


def test_a_gradient_is_of_the_values_that_were_convolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written to the operands afterwards changes nothing."""
    monkeypatch.setattr(convolution, "LEAST_RULE_PRODUCTS", 0)
    x, w = (Tensor(numbers(shape)).realize() for shape in ((1, 2, 4, 4), (3, 2, 2, 2)))
    x.requires_grad_(), w.requires_grad_()
    before = x.numpy(), w.numpy()
    loss = x.conv2d(w).sum()
    x.assign(x.detach() * 2 + 1)
    w.assign(w.detach() * 3)
    loss.backward()
    tx, tw = (torch.tensor(a, requires_grad=True) for a in before)
    torch.nn.functional.conv2d(tx, tw).sum().backward()
    for ours, theirs in ((x.grad, tx.grad), (w.grad, tw.grad)):
        assert ours is not None
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-5)


def test_the_gradient_of_the_input_is_one_kernel() -> None:
    x, w = Tensor.empty(8, 8, 34, 34), Tensor.empty(4, 8, 3, 3)
    gradient = x.conv2d(w).sum().gradient(x)[0]
    assert len(gradient.schedule()) == 1


def test_windows_side_by_side_are_pieces() -> None:
    """The greatest of each, and its gradient, without a look at other windows."""
    x = Tensor(numbers((2, 3, 7, 9))).realize()
    assert len(x.max_pool2d(2).sum().gradient(x)[0].schedule()) <= 2
