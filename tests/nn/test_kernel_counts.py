"""How many kernels layers and steps of optimisers need: at most what tinygrad 0.8.2 needed. Whole
networks: at most what they needed when a sum was first stored that several loops read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.nn.test_models import Gpt, ResNet
from workbench import Tensor, nn
from workbench.nn import optim
from workbench.nn.state import get_parameters


def kernels(*tensors: Tensor) -> int:
    """Return how many kernels compute tensors together."""
    first, *others = tensors
    return sum(item.kernel is not None for item in first.schedule(*others))


def batch_norm() -> list[Tensor]:
    norm = nn.BatchNorm2d(32)
    y = norm(Tensor.empty(2, 32, 4, 4))
    return [y, *get_parameters(norm)]


def convolution() -> list[Tensor]:
    conv, norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
    conv.weight, conv.bias = Tensor.empty(8, 3, 3, 3), Tensor.empty(8)
    return [norm(conv(Tensor.empty(2, 3, 8, 8))).relu(), *get_parameters(norm)]


def step(make: Callable[[Any], optim.Optimizer]) -> Callable[[], list[Tensor]]:
    """Return what convolution, batch normalisation and elu need with their gradients and a step."""

    def tensors() -> list[Tensor]:
        layers: list[Any] = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)]
        optimizer = make(get_parameters(layers).copy())
        Tensor.realize(*optimizer.params)
        layers[1](layers[0](Tensor.empty(2, 3, 8, 8))).elu().sum().backward()
        return optimizer.schedule_step()

    return tensors


def adam(*layers: Callable[[], Any]) -> Callable[[], list[Tensor]]:
    """Return what a step of Adam needs when the gradients are there."""

    def tensors() -> list[Tensor]:
        optimizer = optim.Adam(get_parameters([make() for make in layers]))
        for param in optimizer.params:
            param.grad = Tensor.empty(*param.shape)
        Tensor.realize(*optimizer.params)
        return optimizer.schedule_step()

    return tensors


def network(
    make: Callable[[], Any], x: Tensor, optimizer: Callable[[Any], Any] | None = None
) -> Callable[[], list[Tensor]]:
    """Return what a network needs for `x`, or a whole step of its training, with the loss."""

    def tensors() -> list[Tensor]:
        model = make()
        parameters = get_parameters(model)
        Tensor.realize(*parameters)
        if optimizer is None:
            return [model(x)]
        own = optimizer(parameters)
        Tensor.realize(*own.params, *own.buffers)
        loss = model(x).cross_entropy(Tensor(np.ones(x.shape[0], np.int32)))
        loss.backward()
        return [loss, *own.schedule_step()]

    return tensors


IMAGES, TEXTS = Tensor.empty(6, 1, 8, 8), Tensor(np.ones((4, 8), np.int32))


def conv() -> nn.Conv2d:
    return nn.Conv2d(3, 4, 3)


ROWS: list[tuple[str, bool, int, Callable[[], list[Tensor]]]] = [
    ("batch normalisation in training", True, 3, batch_norm),
    ("convolution, batch normalisation, relu", False, 1, convolution),
    ("the same in training", True, 4, convolution),
    ("Adam, the whole step", True, 19, step(optim.Adam)),
    ("SGD, the whole step", True, 17, step(optim.SGD)),
    ("Adam on a linear layer", True, 11, adam(lambda: nn.Linear(24, 48))),
    ("Adam on a convolution", True, 11, adam(conv)),
    ("Adam on two convolutions", True, 13, adam(conv, conv)),
    ("residual network", False, 6, network(ResNet, IMAGES)),
    ("language model", False, 11, network(Gpt, TEXTS)),
    ("residual network, SGD", True, 36, network(ResNet, IMAGES, lambda p: optim.SGD(p, 0.1, 0.9))),
    ("language model, AdamW", True, 50, network(Gpt, TEXTS, optim.AdamW)),
]
"""What, whether in training, the most kernels, the tensors."""


@pytest.mark.parametrize(("name", "training", "most", "make"), ROWS, ids=[r[0] for r in ROWS])
def test_kernels_are_few(name: str, training: bool, most: int, make: Any) -> None:
    with Tensor.train(training):
        assert kernels(*make()) <= most


if __name__ == "__main__":
    for name, training, most, make in ROWS:
        with Tensor.train(training):
            print(f"| {name} | {most} | {kernels(*make())} |")
