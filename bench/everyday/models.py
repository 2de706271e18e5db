"""Whole models with random weights, written once for the methods that both libraries have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from everyday.case import Case
from workbench.ir.meaning.closeness import LONG_STEPS

Array = np.ndarray[Any, Any]
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
"""ResNet-18: channels and stride of each pair of blocks."""
WIDTH = 512
LAYERS = 6
HEADS = 8


def models() -> Iterator[Case]:
    for name, shape, build in (
        ("resnet18", (1, 3, 224, 224), resnet18),
        ("transformer", (1, 256, 512), transformer),
    ):
        weights = Weights()
        ours, theirs = later(build, weights, Ours), later(build, weights, Torch)
        yield Case(name, (shape,), ours, theirs, LONG_STEPS)


def later(build: Callable[..., Any], weights: Weights, library: type) -> Any:
    """Return a model's forward, which is built when it is called first."""

    @cache
    def forward() -> Any:
        lib = library()
        return build(lib, weights.handed(lib))

    return lambda x: forward()(x)


class Ours:
    """What the models need and the libraries write differently, in Workbench."""

    def __init__(self) -> None:
        from workbench import Tensor

        self.tensor = lambda array: Tensor(array).realize()

    def conv(self, x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
        return x.conv2d(w, stride=stride, padding=padding)

    def pool(self, x: Any) -> Any:
        return x.max_pool2d((3, 3), stride=2, padding=1)

    def normed(self, x: Any, scale: Any, shift: Any) -> Any:
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        apart = x - x.mean(-1, keepdim=True)
        variance = (apart * apart).mean(-1, keepdim=True)
        return apart * (variance + 1e-5).rsqrt() * scale + shift

    def gelu(self, x: Any) -> Any:
        return x.gelu()

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.transpose(-1, -2) * (1 / q.shape[-1] ** 0.5)
        return scores.softmax(-1) @ v


class Torch:
    """The same in torch, eager, by its own functions."""

    def __init__(self) -> None:
        torch: Any = import_module("torch")
        self.f, self.tensor = torch.nn.functional, torch.from_numpy

    def conv(self, x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
        return self.f.conv2d(x, w, stride=stride, padding=padding)

    def pool(self, x: Any) -> Any:
        return self.f.max_pool2d(x, 3, 2, 1)

    def normed(self, x: Any, scale: Any, shift: Any) -> Any:
        return self.f.batch_norm(x, shift * 0, scale * 0 + 1, scale, shift, False, 0.0, 0.0)

    def layer_norm(self, x: Any, scale: Any, shift: Any) -> Any:
        return self.f.layer_norm(x, x.shape[-1:], scale, shift, 1e-5)

    def gelu(self, x: Any) -> Any:
        return self.f.gelu(x, approximate="tanh")

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        return self.f.scaled_dot_product_attention(q, k, v)


class Weights:
    """Random weights in the order in which a model asks for them: drawn at the first library,
    and the same for the next."""

    def __init__(self) -> None:
        self.weights: list[Array] = []
        self._generator = np.random.default_rng(7)

    def handed(self, lib: Any) -> Callable[..., Any]:
        """Return the function that gives a model its next weight; it keeps them."""
        place = iter(range(1 << 20))

        def weight(*shape: int, mean: float = 0.0) -> Any:
            number = next(place)
            if number == len(self.weights):
                spread = (1.0 / max(1, int(np.prod(shape[1:])))) ** 0.5
                if len(shape) == 1:
                    spread = 0.1
                values = self._generator.standard_normal(shape) * spread + mean
                self.weights.append(values.astype(np.float32))
            return lib.tensor(self.weights[number])

        return weight


def resnet18(lib: Any, w: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return the forward of ResNet-18 (He et al. 2015) in inference: an image to 1000 numbers."""

    def norm(channels: int) -> Callable[[Any], Any]:
        scale, shift = w(channels, mean=1.0), w(channels)
        return lambda x: lib.normed(x, scale, shift)

    def block(inputs: int, channels: int, stride: int) -> Callable[[Any], Any]:
        first, one = w(channels, inputs, 3, 3), norm(channels)
        second, two = w(channels, channels, 3, 3), norm(channels)
        if stride == 1 and inputs == channels:
            side = None
        else:
            side, three = w(channels, inputs, 1, 1), norm(channels)

        def run(x: Any) -> Any:
            output = one(lib.conv(x, first, stride, 1)).relu()
            output = two(lib.conv(output, second, 1, 1))
            shortcut = x if side is None else three(lib.conv(x, side, stride))
            return (output + shortcut).relu()

        return run

    stem, norm_0 = w(64, 3, 7, 7), norm(64)
    blocks, channels = [], 64
    for width, stride in STAGES:
        blocks += [block(channels, width, stride), block(width, width, 1)]
        channels = width
    head, bias = w(1000, channels), w(1000)

    def forward(x: Any) -> Any:
        x = lib.pool(norm_0(lib.conv(x, stem, 2, 3)).relu())
        for run in blocks:
            x = run(x)
        return x.mean((2, 3)) @ head.transpose(0, 1) + bias

    return forward


def transformer(lib: Any, w: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return the forward of a transformer's encoder: (1, tokens, width) -> the same."""
    width = WIDTH

    def layer() -> Callable[[Any], Any]:
        norms = [(w(width, mean=1.0), w(width)) for _ in range(2)]
        joint, joint_bias = w(3 * width, width), w(3 * width)
        out, out_bias = w(width, width), w(width)
        up, up_bias = w(4 * width, width), w(4 * width)
        down, down_bias = w(width, 4 * width), w(width)

        def run(x: Any) -> Any:
            batch, tokens = x.shape[0], x.shape[1]
            qkv = lib.layer_norm(x, *norms[0]) @ joint.transpose(0, 1) + joint_bias
            parts = qkv.reshape(batch, tokens, 3, HEADS, width // HEADS)
            parts = parts.permute(2, 0, 3, 1, 4)
            output = lib.attention(parts[0], parts[1], parts[2])
            output = output.transpose(1, 2).reshape(batch, tokens, width)
            x = x + output @ out.transpose(0, 1) + out_bias
            hidden = lib.layer_norm(x, *norms[1]) @ up.transpose(0, 1) + up_bias
            return x + lib.gelu(hidden) @ down.transpose(0, 1) + down_bias

        return run

    layers = [layer() for _ in range(LAYERS)]

    def forward(x: Any) -> Any:
        for run in layers:
            x = run(x)
        return x

    return forward
