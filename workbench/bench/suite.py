"""The benchmark set: one Entry per piece of work, written once for each kind of library.

Workbench and tinygrad share a form, because their Tensors have the same methods; numpy and
jax.numpy share another. All answers are compared with numpy's in float64.

Sections: The benchmark set; Checks of a library's answer.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.ir.meaning.closeness import STEPS, errors, limit_of

Array = np.ndarray[Any, Any]

# --------------------------------------------------------------------------------------------------
# The benchmark set.

Arrays = tuple[Array, ...]
ROOT_2_BY_PI = math.sqrt(2 / math.pi)


class Data:
    """Inputs drawn from a seed: the same in every process that asks for the same entry."""

    def __init__(self, seed: int):
        self._generator = np.random.default_rng(seed)

    def normal(self, *shape: int) -> Array:
        """Return float32 of a standard normal distribution."""
        return self._generator.standard_normal(shape, dtype=np.float32)

    def below(self, high: int, *shape: int) -> Array:
        """Return int32 from 0 up to `high`, excluded."""
        return self._generator.integers(high, size=shape, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Entry:
    """One piece of work on inputs of `sizes`; `smoke` are the sizes for a test of the answer.

    Shapes:  `inputs(data, *sizes)` returns the arrays that the forms take, in their order.
    Units:   `flops(*sizes)` are the multiplications and additions of a matrix product or a
             convolution; None where moving data takes the time.
    """

    name: str
    sizes: tuple[int, ...]
    smoke: tuple[int, ...]
    inputs: Callable[..., Arrays]
    tensor: Callable[..., Any]
    """The form for workbench and tinygrad: `tensor(*inputs)`."""
    array: Callable[..., Any]
    """The form for numpy and jax: `array(numpy, *inputs)`."""
    torch: Callable[..., Any]
    """The form for torch: `torch(torch, *inputs)`."""
    flops: Callable[..., int] | None = None
    read: Callable[..., int] | None = None
    """Bytes of its inputs that it reads: `read(*inputs)`; None where it reads all of them."""
    is_extra: bool = False
    """Whether the budgets leave it out: they are for common large operations, and this is another
    operation, an odd size, or so little work that the cost of a call shows."""

    def arrays(self, smoke: bool) -> Arrays:
        """Return the inputs."""
        data = Data(zlib.crc32(self.name.encode()))
        return self.inputs(data, *(self.smoke if smoke else self.sizes))

    def expected(self, arrays: Arrays) -> Array:
        """Return numpy's answer, computed in float64."""
        wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
        return np.asarray(self.array(np, *wide))

    def bytes(self, arrays: Arrays, expected: Array) -> int:
        """Return the bytes that it reads and writes; an element of the result has 4."""
        whole = sum(a.nbytes for a in arrays)
        return (whole if self.read is None else self.read(*arrays)) + 4 * expected.size

    def operations(self, smoke: bool = False) -> int | None:
        """Return the floating-point operations; None as in `flops`."""
        return None if self.flops is None else self.flops(*(self.smoke if smoke else self.sizes))


def one_array(data: Data, *shape: int) -> Arrays:
    """Return one array of normal numbers."""
    return (data.normal(*shape),)


def two(data: Data, *shape: int) -> Arrays:
    """Return two arrays of the same shape."""
    return (data.normal(*shape), data.normal(*shape))


def three(data: Data, *shape: int) -> Arrays:
    """Return three arrays of the same shape."""
    return (*two(data, *shape), data.normal(*shape))


def product(data: Data, m: int, k: int, n: int) -> Arrays:
    """Return the factors of a matrix product: (m, k) and (k, n)."""
    return (data.normal(m, k), data.normal(k, n))


def product_flops(m: int, k: int, n: int) -> int:
    """Return the operations of a matrix product: a multiplication and an addition each."""
    return 2 * m * k * n


def matmul(
    name: str, m: int, k: int, n: int, smoke: tuple[int, int, int], is_extra: bool = False
) -> Entry:
    """Return the entry of an (m, k) times (k, n) product."""
    return Entry(
        name, (m, k, n), smoke, product,
        tensor=lambda a, b: a @ b,
        array=lambda np, a, b: a @ b,
        torch=lambda torch, a, b: a @ b,
        flops=product_flops,
        is_extra=is_extra,
    )  # fmt: skip


def gelu(np: Any, x: Any) -> Any:
    """Return the GELU of x by its tanh approximation, of the shape of x. Source: Hendrycks 2016."""
    return 0.5 * x * (1 + np.tanh(ROOT_2_BY_PI * (x + 0.044715 * x * x * x)))


def softmax(np: Any, x: Any) -> Any:
    """Return the softmax along the last axis, of the shape of x."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def layernorm(np: Any, x: Any) -> Any:
    """Return x with mean 0 and variance 1 along the last axis."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5)


def conv3x3(np: Any, x: Any, w: Any) -> Any:
    """Return a convolution with padding 1 as the sum of a matrix product for each tap."""
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = (
        np.tensordot(w[:, :, i, j], padded[:, :, i : i + height, j : j + width], ([1], [1]))
        for i in range(3)
        for j in range(3)
    )
    return np.swapaxes(sum(taps), 0, 1)


def attention(np: Any, q: Any, k: Any, v: Any) -> Any:
    """Return softmax(q k^T / sqrt(d)) v; d is the last axis of q. Source: Vaswani 2017."""
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    return softmax(np, scores) @ v


ENTRIES: tuple[Entry, ...] = (
    Entry(
        "add", (2048, 2048), (3, 5), two,
        tensor=lambda a, b: a + b,
        array=lambda np, a, b: a + b,
        torch=lambda torch, a, b: a + b,
    ),
    Entry(
        "add, 1000 elements", (1000,), (7,), two,
        tensor=lambda a, b: a + b,
        array=lambda np, a, b: a + b,
        torch=lambda torch, a, b: a + b,
        is_extra=True,
    ),
    Entry(
        "relu(a*b+c)*0.5+a", (2048, 2048), (3, 5), three,
        tensor=lambda a, b, c: (a * b + c).relu() * 0.5 + a,
        array=lambda np, a, b, c: np.maximum(a * b + c, 0) * 0.5 + a,
        torch=lambda torch, a, b, c: torch.relu(a * b + c) * 0.5 + a,
    ),
    Entry(
        "gelu", (2048, 2048), (3, 5), one_array,
        tensor=lambda x: x.gelu(),
        array=gelu,
        torch=lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
    ),
    Entry(
        "exp", (2048, 2048), (3, 5), one_array,
        tensor=lambda x: x.exp(),
        array=lambda np, x: np.exp(x),
        torch=lambda torch, x: x.exp(),
    ),
    Entry(
        "sum of all", (2048, 2048), (3, 5), one_array,
        tensor=lambda x: x.sum(),
        array=lambda np, x: x.sum(),
        torch=lambda torch, x: x.sum(),
    ),
    Entry(
        "sum of rows", (2048, 2048), (3, 5), one_array,
        tensor=lambda x: x.sum(axis=1),
        array=lambda np, x: x.sum(axis=1),
        torch=lambda torch, x: x.sum(dim=1),
    ),
    Entry(
        "sum of columns", (2048, 2048), (3, 5), one_array,
        tensor=lambda x: x.sum(axis=0),
        array=lambda np, x: x.sum(axis=0),
        torch=lambda torch, x: x.sum(dim=0),
    ),
    Entry(
        "argmax of rows", (2048, 2048), (3, 5), one_array,
        tensor=lambda x: x.argmax(axis=1),
        array=lambda np, x: x.argmax(axis=1),
        torch=lambda torch, x: x.argmax(dim=1),
        is_extra=True,
    ),
    Entry(
        "cumsum of rows", (2048, 512), (3, 5), one_array,
        tensor=lambda x: x.cumsum(axis=1),
        array=lambda np, x: np.cumsum(x, axis=1),
        torch=lambda torch, x: x.cumsum(dim=1),
        is_extra=True,
    ),
    Entry(
        "softmax of rows", (2048, 2048), (3, 5), one_array,
        tensor=lambda x: x.softmax(axis=-1),
        array=softmax,
        torch=lambda torch, x: x.softmax(dim=-1),
    ),
    Entry(
        "layernorm of rows", (2048, 2048), (3, 5), one_array,
        tensor=lambda x: x.layernorm(),
        array=layernorm,
        torch=lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
    ),
    Entry(
        "transposed copy", (2048, 2048), (3, 5), one_array,
        tensor=lambda x: x.permute(1, 0).contiguous(),
        array=lambda np, x: x.T.copy(),
        torch=lambda torch, x: x.T.contiguous(),
    ),
    Entry(
        "embedding", (4096, 64, 2048), (11, 3, 5),
        lambda data, words, width, n: (data.normal(words, width), data.below(words, n)),
        tensor=lambda table, index: table[index],
        array=lambda np, table, index: table[index],
        torch=lambda torch, table, index: torch.nn.functional.embedding(index, table),
        read=lambda table, i: i.nbytes + table[0].nbytes * np.unique(i).size,
        is_extra=True,
    ),
    matmul("matmul 512", 512, 512, 512, (4, 6, 8)),
    matmul("matmul 1024", 1024, 1024, 1024, (6, 4, 2)),
    matmul("matmul 509x383x701", 509, 383, 701, (5, 3, 7), is_extra=True),
    matmul("matmul 64", 64, 64, 64, (2, 3, 4), is_extra=True),
    Entry(
        "64 matmuls of 32", (64, 32), (3, 4),
        lambda data, count, n: two(data, count, n, n),
        tensor=lambda a, b: a @ b,
        array=lambda np, a, b: a @ b,
        torch=lambda torch, a, b: a @ b,
        flops=lambda count, n: 2 * count * n**3,
        is_extra=True,
    ),
    Entry(
        "matvec 4096", (4096, 4096), (5, 7),
        lambda data, m, n: (data.normal(m, n), data.normal(n)),
        tensor=lambda a, x: a @ x,
        array=lambda np, a, x: a @ x,
        torch=lambda torch, a, x: a @ x,
    ),
    Entry(
        "linear+relu 512", (512, 512, 512), (4, 3, 5),
        lambda data, m, k, n: (data.normal(m, k), data.normal(n, k), data.normal(n)),
        tensor=lambda x, w, b: (x @ w.transpose(0, 1) + b).relu(),
        array=lambda np, x, w, b: np.maximum(x @ w.T + b, 0),
        torch=lambda torch, x, w, b: torch.relu(torch.nn.functional.linear(x, w, b)),
        flops=product_flops,
        is_extra=True,
    ),
    Entry(
        "conv 3x3, 4x64x56x56", (4, 64, 64, 56), (2, 3, 4, 5),
        lambda data, images, inner, outer, side: (
            data.normal(images, inner, side, side), data.normal(outer, inner, 3, 3)
        ),
        tensor=lambda x, w: x.conv2d(w, padding=1),
        array=conv3x3,
        torch=lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=1),
        flops=lambda images, inner, outer, side: 18 * images * inner * outer * side**2,
    ),
    Entry(
        "attention 8x512x64", (8, 512, 64), (2, 5, 3), three,
        tensor=lambda q, k, v: (
            (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(axis=-1) @ v
        ),
        array=attention,
        torch=lambda torch, q, k, v: (
            torch.nn.functional.scaled_dot_product_attention(q, k, v)
        ),
        flops=lambda heads, n, width: 4 * heads * n * n * width,
    ),
)  # fmt: skip


# --------------------------------------------------------------------------------------------------
# Checks of a library's answer.


def fault(answer: Array, expected: Array, steps: int = STEPS) -> str | None:
    """Return what is wrong with an answer; None if it is right, up to rounding."""
    if answer.shape != expected.shape:
        return f"shape {answer.shape}, not {expected.shape}"
    wrong = errors(answer, expected) > limit_of(answer, expected, steps)
    if not wrong.any():
        return None
    place = np.unravel_index(int(np.argmax(wrong)), expected.shape)
    at = ", ".join(map(str, place))
    return (
        f"{int(wrong.sum())} of {wrong.size} elements, the first at [{at}]:"
        f" {answer[place]:g}, not {expected[place]:g}"
    )
