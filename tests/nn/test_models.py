"""Two models as people write them, trained for some steps beside the same ones in PyTorch.

They begin with the same weights, by the same names, and each step must leave the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.peers import torch
from workbench import Tensor, TinyJit, nn
from workbench.nn import optim
from workbench.nn.state import get_parameters, get_state_dict, load_state_dict

F = torch.nn.functional


class Block:
    """Two convolutions with a way past them."""

    def __init__(self, channels: int, stride: int, inputs: int):
        self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm(channels), nn.BatchNorm(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.downsample: list[Any] = []
        if stride != 1 or inputs != channels:
            self.downsample = [nn.Conv2d(inputs, channels, 1, stride, bias=False)]
            self.downsample += [nn.BatchNorm(channels)]

    def __call__(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        for layer in self.downsample:
            x = layer(x)
        return (x + y).relu()


class ResNet:
    """A small residual network of images with one channel."""

    def __init__(self) -> None:
        self.conv1, self.bn1 = (nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm(8))
        self.blocks = [Block(16, 2, 8)]
        self.fc = nn.Linear(16, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.bn1(self.conv1(x)).relu()
        for block in self.blocks:
            x = block(x)
        return self.fc(x.mean((2, 3)))


class TorchBlock(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, channels: int, stride: int, inputs: int):
        super().__init__()
        N = torch.nn
        self.conv1 = N.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1, self.bn2 = N.BatchNorm2d(channels), N.BatchNorm2d(channels)
        self.conv2 = N.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.downsample = N.Sequential()
        if stride != 1 or inputs != channels:
            conv = N.Conv2d(inputs, channels, 1, stride, bias=False)
            self.downsample = N.Sequential(conv, N.BatchNorm2d(channels))

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (self.downsample(x) + y).relu()


class TorchResNet(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        N = torch.nn
        self.conv1, self.bn1 = (N.Conv2d(1, 8, 3, padding=1, bias=False), N.BatchNorm2d(8))
        self.blocks = N.Sequential(TorchBlock(16, 2, 8))
        self.fc = N.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        x = self.blocks(self.bn1(self.conv1(x)).relu())
        return self.fc(x.mean((2, 3)))


HEADS = 2
WIDTH = 16
LENGTH = 8
WORDS = 11


class Layer:
    """Attention to earlier words, and two linear layers."""

    def __init__(self) -> None:
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def __call__(self, x: Tensor, mask: Tensor) -> Tensor:
        batch = x.shape[0]
        parts = self.attn(self.ln_1(x)).reshape(batch, LENGTH, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        scores = q @ k.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
        y = mask.where(scores, -math.inf).softmax() @ v
        x = x + self.proj(y.transpose(1, 2).reshape(batch, LENGTH, WIDTH))
        return x + self.out(self.fc(self.ln_2(x)).gelu())


class Gpt:
    """A language model of few words."""

    def __init__(self) -> None:
        self.wte, self.wpe = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.h = [Layer()]
        self.ln_f, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def __call__(self, words: Tensor) -> Tensor:
        places = Tensor.arange(LENGTH)
        mask = places.reshape(-1, 1) >= places
        x = self.wte(words) + self.wpe(places)
        for layer in self.h:
            x = layer(x, mask)
        return self.head(self.ln_f(x))[:, -1]


class TorchLayer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        N = torch.nn
        self.ln_1, self.ln_2 = N.LayerNorm(WIDTH), N.LayerNorm(WIDTH)
        self.attn, self.proj = N.Linear(WIDTH, 3 * WIDTH), N.Linear(WIDTH, WIDTH)
        self.fc, self.out = N.Linear(WIDTH, 4 * WIDTH), N.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        batch = x.shape[0]
        parts = self.attn(self.ln_1(x)).reshape(batch, LENGTH, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, LENGTH, WIDTH))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class TorchGpt(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        N = torch.nn
        self.wte, self.wpe = N.Embedding(WORDS, WIDTH), N.Embedding(LENGTH, WIDTH)
        self.h = N.Sequential(TorchLayer())
        self.ln_f, self.head = N.LayerNorm(WIDTH), N.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Any) -> Any:
        x = self.h(self.wte(words) + self.wpe(torch.arange(LENGTH)))
        return self.head(self.ln_f(x))[:, -1]


ROWS: list[tuple[str, Callable[[], Any], Callable[[], Any], Any, Any]] = [
    (
        "residual network",
        ResNet,
        TorchResNet,
        lambda p: optim.SGD(p, 0.05, 0.9, 1e-3, nesterov=True),
        lambda p: torch.optim.SGD(p, 0.05, 0.9, weight_decay=1e-3, nesterov=True),
    ),
    (
        "language model",
        Gpt,
        TorchGpt,
        lambda p: optim.AdamW(p, 0.01, eps=1e-3),
        lambda p: torch.optim.AdamW(p, 0.01, eps=1e-3),
    ),
]
"""Name, model, PyTorch's, optimiser, PyTorch's: its large eps keeps gradients near 0 small."""


def batch(name: str, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return inputs and labels."""
    if name == "language model":
        words = rng.integers(0, WORDS, (4, LENGTH))
        return words, words[:, 0]
    return rng.normal(size=(6, 1, 8, 8)).astype(np.float32), rng.integers(0, 10, 6)


@pytest.mark.parametrize(("name", "make", "peer", "optimizer", "peer_optimizer"), ROWS)
def test_a_model_is_trained_as_by_pytorch(
    name: str, make: Any, peer: Any, optimizer: Any, peer_optimizer: Any
) -> None:
    torch.manual_seed(0)
    ours, theirs = make(), peer().train()
    weights = {k: Tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    load_state_dict(ours, weights, verbose=False)
    own, other = optimizer(get_parameters(ours)), peer_optimizer(theirs.parameters())

    @TinyJit
    def step(x: Tensor, hot: Tensor) -> Tensor:
        own.zero_grad()
        loss = -(ours(x).log_softmax() * hot).sum(1).mean()
        loss.backward()
        return loss.realize(*own.schedule_step())

    rng = np.random.default_rng(0)
    for _ in range(4):
        x, y = batch(name, rng)
        with Tensor.train():
            hot = Tensor(np.eye(WORDS if name == "language model" else 10, dtype=np.float32)[y])
            loss = step(Tensor(x).realize(), hot.realize())
        other.zero_grad()
        want = F.cross_entropy(theirs(torch.from_numpy(x)), torch.from_numpy(y))
        want.backward()
        other.step()
        np.testing.assert_allclose(loss.item(), want.item(), rtol=2e-4)
    for key, value in theirs.state_dict().items():
        tensor = get_state_dict(ours)[key].numpy()
        np.testing.assert_allclose(tensor, value.numpy(), rtol=1e-3, atol=2e-4, err_msg=key)
    theirs.eval()
    want = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(ours(Tensor(x)).numpy(), want, rtol=1e-3, atol=1e-3)
