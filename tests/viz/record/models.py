"""Models of many kernels, from plain operations, as a stranger writes them."""

from __future__ import annotations

import numpy as np

from workbench.tensor.tensor import Tensor

RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> Tensor:
    return Tensor(RANDOM.standard_normal(shape).astype(np.float32))


def linear(x: Tensor, wide: int) -> Tensor:
    return x @ weights(x.shape[-1], wide) + weights(wide)


def perceptron(layers: int = 12, wide: int = 64) -> Tensor:
    """As many equal layers."""
    x = weights(32, wide)
    for _ in range(layers):
        x = linear(x, wide).relu()
    return x


def attention_block(x: Tensor, heads: int = 4) -> Tensor:
    length, wide = x.shape
    normal = x.layernorm()
    q, k, v = (
        linear(normal, wide).reshape(length, heads, wide // heads).permute(1, 0, 2)
        for _ in range(3)
    )
    weight = (q @ k.permute(0, 2, 1) * (wide // heads) ** -0.5).softmax(-1)
    x = x + linear((weight @ v).permute(1, 0, 2).reshape(length, wide), wide)
    return x + linear(linear(x.layernorm(), 4 * wide).gelu(), wide)


def transformer(blocks: int = 12, wide: int = 64, length: int = 16) -> Tensor:
    """As many equal blocks, and a norm."""
    x = weights(length, wide)
    for _ in range(blocks):
        x = attention_block(x)
    return x.layernorm()


def convolutions() -> Tensor:
    """Layers that differ in their numbers of channels."""
    x = weights(1, 3, 16, 16)
    for channels in (8, 8, 16, 16):
        x = x.conv2d(weights(channels, x.shape[1], 3, 3), padding=1).relu()
    return x.mean((2, 3)) @ weights(16, 10)


def strided_block() -> Tensor:
    """A block whose shortcut is a convolution, too: a sum of two products of matrices."""
    x = weights(2, 8, 8, 8)
    y = x.conv2d(weights(16, 8, 3, 3), stride=2, padding=1).relu()
    y = y.conv2d(weights(16, 16, 3, 3), padding=1)
    return (y + x.conv2d(weights(16, 8, 1, 1), stride=2)).relu()
