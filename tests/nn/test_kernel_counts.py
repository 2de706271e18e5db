"""How many kernels layers and steps of optimisers need: at most what tinygrad 0.8.2 needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

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
]
"""What, whether in training, the most kernels, the tensors."""


@pytest.mark.parametrize(
    ("name", "training", "most", "make"), ROWS, ids=[r[0] for r in ROWS]
)
def test_kernels_are_few(name: str, training: bool, most: int, make: Any) -> None:
    with Tensor.train(training):
        assert kernels(*make()) <= most
