"""Kernels for the default opts of devices with work-groups: how a user writes each, and numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from workbench import Tensor

Array = np.ndarray[Any, Any]
Load = Callable[[Array], Tensor]
Build = Callable[[Load], tuple[Tensor, Array]]


def draw(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape, dtype=np.float32)


def softmax(x: Array) -> Array:
    exps: Array = np.exp(x - x.max(-1, keepdims=True))
    return exps / exps.sum(-1, keepdims=True)


def normalised(x: Array) -> Array:
    result: Array = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return result


def convolved(x: Array, w: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    result: Array = np.einsum("nchwij,ocij->nohw", windows, w, optimize=True)
    return result


def one(
    of_tensor: Callable[[Tensor], Tensor], of_array: Callable[[Array], Array], *shape: int
) -> Build:
    """Return what builds a function of one array."""
    a = draw(*shape)
    return lambda load: (of_tensor(load(a)), of_array(a))


def two(
    function: Callable[[Any, Any], Any], first: tuple[int, ...], second: tuple[int, ...]
) -> Build:
    """Return what builds a function of two arrays that is written alike for both."""
    a, b = draw(*first), draw(*second)
    return lambda load: (function(load(a), load(b)), function(a, b))


def gathered(load: Load) -> tuple[Tensor, Array]:
    values = draw(500)
    index = np.random.default_rng(0).integers(0, 500, 1000).astype(np.int32)
    return load(values)[load(index)], values[index]


def attention(load: Load) -> tuple[Tensor, Array]:
    q, k, v = (draw(2, 32, 16) * scale for scale in (1, 2, 3))
    weights = softmax(q @ k.transpose(0, 2, 1) / 4)
    return load(q).scaled_dot_product_attention(load(k), load(v)), weights @ v


def convolution(load: Load) -> tuple[Tensor, Array]:
    x, w = draw(1, 8, 18, 18), draw(16, 8, 3, 3)
    return load(x).conv2d(load(w)), convolved(x, w)


def padded(load: Load) -> tuple[Tensor, Array]:
    """Its sum goes through windows first, and then through channels."""
    x, w = draw(1, 32, 12, 16), draw(32, 32, 3, 3)
    zeros = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return load(x).conv2d(load(w), padding=1), convolved(zeros, w)


def fused(a: Any, b: Any) -> Any:
    return a * b + 1


# the most bytes moved for each that is wanted, and why where it is not 1
KERNELS: dict[str, tuple[float, Build]] = {
    "elementwise": (1, two(fused, (65536,), (65536,))),
    "elementwise, 1000": (1, two(fused, (1000,), (1000,))),
    "elementwise, 37 x 53": (1.01, two(fused, (37, 53), (37, 53))),
    "elementwise, 7": (1.2, two(fused, (7,), (7,))),  # a sector has 8
    "bias": (1, two(lambda a, b: a + b, (100, 128), (128,))),
    "exp, 129 x 65": (1.01, one(lambda x: x.exp(), np.exp, 129, 65)),
    "transposed": (1, one(lambda x: x.T.contiguous(), np.transpose, 64, 64)),
    "transposed, long": (1, one(lambda x: x.T.contiguous(), np.transpose, 256, 128)),
    # rows of 100 and of 60 do not begin at sectors
    "transposed and added": (1.5, two(lambda a, b: a.T + b, (100, 60), (60, 100))),
    "sum": (1.01, one(lambda x: x.sum(), lambda a: a.sum(), 65536)),
    "sum, 1001": (1.02, one(lambda x: x.sum(), lambda a: a.sum(), 1001)),
    "rows": (1.01, one(lambda x: x.sum(1), lambda a: a.sum(1), 64, 1024)),
    "columns": (1.01, one(lambda x: x.sum(0), lambda a: a.sum(0), 1024, 64)),
    # rows of 77 do not begin at sectors
    "greatest of rows of 77": (1.4, one(lambda x: x.max(1), lambda a: a.max(1), 33, 77)),
    "softmax": (1, one(lambda x: x.softmax(-1), softmax, 32, 512)),
    "softmax, rows of 100": (1.3, one(lambda x: x.softmax(-1), softmax, 17, 100)),
    "softmax, rows of 9": (1.3, one(lambda x: x.softmax(-1), softmax, 6, 9)),
    "layer norm": (1, one(lambda x: x.layernorm(), normalised, 64, 256)),
    "product, 64": (1, two(lambda a, b: a @ b, (64, 64), (64, 64))),
    "product, 128": (1, two(lambda a, b: a @ b, (128, 128), (128, 128))),
    "product, long": (1, two(lambda a, b: a @ b, (32, 1024), (1024, 32))),
    "product with a transpose": (1, two(lambda a, b: a @ b.T, (128, 128), (128, 128))),
    # tiles of 13 steps are 52 bytes of a row, and rows of 65 and 81 do not begin at sectors
    "product, odd": (1.5, two(lambda a, b: a @ b, (97, 65), (65, 81))),
    "matrix and vector": (1.02, two(lambda a, b: a @ b, (256, 256), (256,))),
    "vector and matrix": (1, two(lambda a, b: b @ a, (256, 256), (256,))),
    "convolution": (1.2, convolution),  # windows of 16 columns begin anywhere
    "convolution, padded": (1.2, padded),  # the same
    "gather": (3.1, gathered),  # an element of each sector
    # rows of 100 do not begin at sectors
    "softmax of column sums": (
        1.5, one(lambda x: x.sum(1).softmax(), lambda a: softmax(a.sum(1)), 3, 20, 100)),
    "norm of column sums": (
        1, one(lambda x: x.sum(1).layernorm(), lambda a: normalised(a.sum(1)), 4, 30, 256)),
    "product of few steps": (1, two(lambda a, b: a @ b, (96, 8), (8, 256))),
    "running sum": (1, one(lambda x: x.cumsum(1), lambda a: a.cumsum(1), 16, 200)),
    "attention": (1, attention),
}  # fmt: skip
