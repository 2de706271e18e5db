"""How many kernels training needs, beside what tinygrad 0.8.2 needed for the same: gradients,
assignment and the steps of optimisers (those of whole layers are in `tests/nn`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest

from tests.ir.schedule.support import Array, numbers
from workbench import Tensor, nn
from workbench.nn import optim


class TrainingRow(NamedTuple):
    """`seed`: tinygrad's count; `ours`: the one asserted; `outputs`: the most values that one
    kernel stores."""

    name: str
    seed: int
    ours: int
    outputs: int
    build: Callable[[], Sequence[Tensor]]


def data(*shape: int, seed: int = 0) -> Tensor:
    tensor = Tensor(numbers(*shape, seed=seed)).realize()
    tensor.requires_grad = True
    return tensor


def gradients(loss: Tensor, *tensors: Tensor) -> list[Tensor]:
    loss.backward()
    return [t.grad for t in tensors if t.grad is not None]


def convolution() -> Sequence[Tensor]:
    image, weight = data(2, 3, 64, 64), data(16, 3, 3, 3)
    return gradients(image.conv2d(weight).relu().mean(), image, weight)


def batch_norm() -> Sequence[Tensor]:
    x, norm = data(2, 32, 28, 28), nn.BatchNorm2d(32)
    norm.weight, norm.bias = data(32), data(32, seed=1)
    with Tensor.train():
        y = norm(x)
        loss = (y * data(2, 32, 28, 28, seed=2)).sum()
        return [y, *gradients(loss, x, norm.weight, norm.bias)]


def three_assigns() -> Sequence[Tensor]:
    """Three results of one sum, each written to memory that is there."""
    total = Tensor(numbers(4, 4)).realize().sum().reshape(1)
    return [Tensor([0.0]).realize().assign(total + n) for n in (1, 2, 3)]


def two_assigns() -> Sequence[Tensor]:
    """Two results of one sum; one reads the other's old value across."""
    a, b = data(32, 32), data(32, 32, seed=1)
    total = a.sum(1, keepdim=True)
    across = b.permute(1, 0).contiguous()
    return [a.assign(total + across), b.assign(total + b)]


def masked_read() -> Sequence[Tensor]:
    a = data(4, 4)
    part = a[:, :2].pad(((0, 0), (0, 2)), value=2)
    return [a.assign(Tensor.ones(4, 4) + part)]


def step(*layers: Callable[[], nn.Linear | nn.Conv2d]) -> Sequence[Tensor]:
    """What a step of Adam needs where the gradients are there."""
    params = [p for make in layers for p in vars(make()).values() if isinstance(p, Tensor)]
    optimizer = optim.Adam(params)
    for param in optimizer.params:
        param.grad = Tensor.empty(*param.shape)
    Tensor.realize(*optimizer.params)
    with Tensor.train():
        return optimizer.schedule_step()


ROWS = [
    TrainingRow("gradients of convolution, relu, mean", 5, 3, 1, convolution),
    TrainingRow("batch normalisation and its gradients", 10, 2, 6, batch_norm),
    TrainingRow("three assigns that share one sum", 1, 1, 3, three_assigns),
    TrainingRow("two assigns, one operand across", 2, 2, 2, two_assigns),
    TrainingRow("assign with a masked read of itself", 1, 1, 1, masked_read),
    TrainingRow("Adam on a linear layer", 11, 2, 3, lambda: step(lambda: nn.Linear(768, 3072))),
    TrainingRow("Adam on a convolution", 11, 2, 3, lambda: step(lambda: nn.Conv2d(3, 4, 3))),
    TrainingRow("Adam on two convolutions", 13, 2, 6,
        lambda: step(lambda: nn.Conv2d(3, 4, 3), lambda: nn.Conv2d(3, 4, 3))),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_training_needs_no_more_kernels_than_tinygrad(row: TrainingRow) -> None:
    first, *others = row.build()
    kernels = [item for item in first.schedule(*others) if item.kernel is not None]
    assert len(kernels) == row.ours <= row.seed
    assert max(len(item.nodes) for item in kernels) == row.outputs


def test_what_is_assigned_together_is_right() -> None:
    total = float(numbers(4, 4).astype(float).sum())
    b, c, d = three_assigns()
    Tensor.realize(b, c, d)
    for tensor, number in ((b, 1), (c, 2), (d, 3)):
        np.testing.assert_allclose(tensor.numpy(), [total + number], rtol=1e-5)
    a, other = numbers(32, 32), numbers(32, 32, seed=1)
    sums: Array = a.sum(1, keepdims=True)
    one, two = two_assigns()
    Tensor.realize(one, two)
    np.testing.assert_allclose(one.numpy(), sums + other.T, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(two.numpy(), sums + other, rtol=1e-4, atol=1e-4)
    (masked,) = masked_read()
    part = np.pad(numbers(4, 4)[:, :2], ((0, 0), (0, 2)), constant_values=2)
    np.testing.assert_allclose(masked.numpy(), 1 + part, rtol=1e-5)


if __name__ == "__main__":
    print("| in training | tinygrad 0.8.2 | here |\n|---|---|---|")
    for row in ROWS:
        first, *others = row.build()
        items = first.schedule(*others)
        count = sum(item.kernel is not None for item in items)
        print(f"| {row.name} | {row.seed} | {count} |")
