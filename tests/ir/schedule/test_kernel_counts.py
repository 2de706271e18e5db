"""How many kernels expressions need, beside what tinygrad 0.8.2 needed for the same ones.

Folding rows must be exactly 0, the others at or below. Prints as a table:
`python -m tests.ir.schedule.test_kernel_counts`. Rows of training are in
`test_training_counts.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support import by_rows
from workbench import Context, Tensor, dtypes

Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 1) -> Array:
    array = np.random.default_rng(seed).uniform(0.5, 2.0, shape)
    return array.astype(np.float32)


class Row(NamedTuple):
    """`seed`: tinygrad's count; `ours`: the one asserted; `why`: where they differ."""

    name: str
    seed: int
    ours: int
    build: Callable[[], Tensor]
    want: Callable[[], Any]
    why: str = ""


A, B = numbers(4, 6), numbers(4, 6, seed=2)
IMAGE, FILTER = numbers(2, 3, 34, 34), numbers(32, 3, 3, 3, seed=3)
FEATURES, CHANNEL = numbers(2, 32, 28, 28), numbers(32, seed=4)
MANY, ONE_BY_ONE = (numbers(1, 24 * 4, 16, 16, seed=8), numbers(6 * 4, 24 * 4, 1, 1, seed=9) / 24)
Q, K, V = (numbers(8, 8, 16, 16, seed=s) for s in (5, 6, 7))
LONG = numbers(1 << 20)
PAD = ((1, 1), (1, 1))


def bool_of_a() -> Array:
    return A > 1


def batch_norm(x: Tensor, training: bool) -> Tensor:
    mean = x.mean((0, 2, 3), keepdim=True) if training else Tensor(CHANNEL).reshape(1, -1, 1, 1)
    apart = x - mean
    var = (
        (apart * apart).mean((0, 2, 3), keepdim=True)
        if training
        else Tensor(CHANNEL).reshape(1, -1, 1, 1)
    )
    return apart * (var + 1e-5).rsqrt() * Tensor(CHANNEL).reshape(1, -1, 1, 1)


def np_batch_norm(x: Array, training: bool) -> Array:
    column = CHANNEL.reshape(1, -1, 1, 1)
    mean = x.mean((0, 2, 3), keepdims=True) if training else column
    var = ((x - mean) ** 2).mean((0, 2, 3), keepdims=True) if training else column
    return (x - mean) / np.sqrt(var + 1e-5) * column


def np_conv(x: Array, w: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w)


def conv() -> Tensor:
    return Tensor(IMAGE).conv2d(Tensor(FILTER))


def attention() -> Tensor:
    scores = Tensor(Q) @ Tensor(K).transpose(-1, -2) / 4.0
    places = Tensor.arange(16)
    mask = places.reshape(16, 1) >= places
    scores = mask.where(scores, -1e9) + Tensor(V)
    return scores.softmax(-1) @ Tensor(V)


def np_attention() -> Array:
    scores = Q @ K.swapaxes(-1, -2) / 4
    scores = np.where(np.tri(16, dtype=bool), scores, -1e9) + V
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ V


def shared_sums(x: Array, y: Array) -> Tensor:
    total = Tensor(x).sum()
    c, d = total + 2, total * 2
    return (Tensor(y) - d).sum() - c * d


def np_shared_sums(x: Array, y: Array) -> Any:
    c, d = x.sum() + 2, x.sum() * 2
    return (y - d).sum() - c * d


FOLDING = [
    Row("const + const", 0, 0, lambda: Tensor(1.0) + Tensor(2.0), lambda: 3.0),
    Row("const / const", 0, 0, lambda: Tensor(1.0) / Tensor(2.0), lambda: 0.5),
    Row("cast of a const", 0, 0, lambda: Tensor(1.5).cast(dtypes.int32), lambda: 1),
    Row("x + 0", 0, 0, lambda: Tensor(A) + 0, lambda: A),
    Row("x * 1", 0, 0, lambda: Tensor(A) * 1, lambda: A),
    Row("bool * True", 0, 0, lambda: Tensor(bool_of_a()) * True, bool_of_a),
    Row("bool * False", 0, 0, lambda: Tensor(bool_of_a()) * False, lambda: bool_of_a() & False),
    Row("x / 1", 0, 0, lambda: Tensor(A) / 1, lambda: A),
    Row("-(-x)", 0, 0, lambda: Tensor(A).neg().neg(), lambda: A),
    Row("(x * -1).neg()", 0, 0, lambda: (Tensor(A) * -1).neg(), lambda: A),
    Row("x - 0", 0, 0, lambda: Tensor(A) - Tensor.zeros(4, 6), lambda: A),
    Row("x ** 0", 0, 0, lambda: Tensor(A) ** 0, lambda: A**0),
    Row("x ** 1", 0, 0, lambda: Tensor(A) ** 1, lambda: A),
    Row("sum over an axis of one", 0, 0, lambda: Tensor(A[:, None]).sum(1), lambda: A),
    Row("reshape, squeeze, unsqueeze", 0, 0, lambda: Tensor(A).reshape(6, 4, 1).squeeze()[None],
        lambda: A.reshape(1, 6, 4)),
    Row("ones(4, 5, 6).sum(0)", 0, 0, lambda: Tensor.ones(4, 5, 6).sum(0),
        lambda: np.full((5, 6), 4.0)),
    Row("ones(4, 5, 6).sum()", 0, 0, lambda: Tensor.ones(4, 5, 6).sum(), lambda: 120.0),
]  # fmt: skip

MOMENTS = "mean and variance are outputs of one kernel, which reads a channel at once"
KNOWN = "a constant, moved about and cast, is known: nothing runs"
SUM = "2 only from 2**20 elements on: below that a launch costs more than a core's share"

OTHERS = [
    Row("x + a padded const", 1, 1, lambda: Tensor(A) + Tensor.ones(2, 4).pad(PAD),
        lambda: A + np.pad(np.ones((2, 4)), 1)),
    Row("x * a padded const", 1, 1, lambda: Tensor(A) * Tensor.ones(2, 4).pad(PAD),
        lambda: A * np.pad(np.ones((2, 4)), 1)),
    Row("padded const to int16", 0, 0, lambda: Tensor.ones(4).pad((1, 1)).cast(dtypes.int16),
        lambda: np.pad(np.ones(4), 1)),
    Row("padded const to uint16", 0, 0, lambda: Tensor.ones(4).pad((1, 1)).cast(dtypes.uint16),
        lambda: np.pad(np.ones(4), 1)),
    Row("padded const to int64", 1, 0, lambda: Tensor.ones(4).pad((1, 1)).cast(dtypes.int64),
        lambda: np.pad(np.ones(4), 1), KNOWN),
    Row("sum of 255 x 256", 2, 1, lambda: Tensor(numbers(255, 256)).sum(),
        lambda: numbers(255, 256).sum(), SUM),
    Row("sum of 1024 x 1024", 2, 2, lambda: Tensor(numbers(1024, 1024)).sum(),
        lambda: numbers(1024, 1024).sum()),
    Row("batch norm, training", 3, 2, lambda: batch_norm(Tensor(FEATURES), True),
        lambda: np_batch_norm(FEATURES, True), MOMENTS),
    Row("conv, batch norm, relu", 1, 1, lambda: batch_norm(conv(), False).relu(),
        lambda: np.maximum(np_batch_norm(np_conv(IMAGE, FILTER), False), 0)),
    Row("conv, batch norm, relu, training", 4, 3, lambda: batch_norm(conv(), True).relu(),
        lambda: np.maximum(np_batch_norm(np_conv(IMAGE.astype(float), FILTER), True), 0), MOMENTS),
    Row("attention, causal and masked", 7, 3, attention, np_attention,
        "mask and bias are fused; the scores are stored for the register tile of the product"),
    Row("c=sum+2, d=sum*2, (b-d).sum()-c*d", 3, 1, lambda: shared_sums(A, B),
        lambda: np_shared_sums(A, B), "small: computing a sum again is cheaper than a launch"),
    Row("the same of 2**20 elements", 3, 4, lambda: shared_sums(LONG, LONG),
        lambda: np_shared_sums(LONG.astype(float), LONG.astype(float)),
        "the sum is stored: two kernels would add up its parts in two orders"),
    Row("(a+b) padded with 1, sum", 1, 1,
        lambda: (Tensor(A) + Tensor(B)).pad(PAD, value=1.0).sum(),
        lambda: np.pad(A + B, 1, constant_values=1.0).sum()),
    Row("log2(a) padded with 1, sum", 2, 1, lambda: Tensor(A).log2().pad(PAD, value=1.0).sum(),
        lambda: np.pad(np.log2(A), 1, constant_values=1.0).sum(),
        "the condition stands outside the op: log2(0) never counts"),
    Row("(a+b) shrunk, padded", 1, 1,
        lambda: (Tensor(A) + Tensor(B))[:1, :1].pad(((0, 1), (0, 0))),
        lambda: np.pad((A + B)[:1, :1], ((0, 1), (0, 0)))),
    Row("exp2 shrunk, padded", 1, 1, lambda: Tensor(A).exp2()[:1, :1].pad(((0, 1), (0, 0))),
        lambda: np.pad(np.exp2(A)[:1, :1], ((0, 1), (0, 0))),
        "and right: tinygrad's test asserted exp2(0) = 1 in the padding"),
    Row("exp2 [:-1, :-1], padded, * 2", 1, 1,
        lambda: Tensor(A).exp2()[:-1, :-1].pad(((0, 1), (0, 1))) * 2,
        lambda: np.pad(np.exp2(A)[:-1, :-1], ((0, 1), (0, 1))) * 2,
        "and right: tinygrad's test asserted 2 in the padding"),
    Row("exp2 [:, None, :], padded, * 2", 2, 1,
        lambda: Tensor(A).exp2()[:, None, :].pad(((0, 0), (1, 1), (0, 0))) * 2,
        lambda: np.pad(np.exp2(A)[:, None, :], ((0, 0), (1, 1), (0, 0))) * 2,
        "no op is unsafe to pad"),
    Row("cast half, expand, cast int, expand", 2, 1,
        lambda: Tensor(A[:, :1]).cast(dtypes.float16).expand(4, 6).cast(dtypes.int32)
        .reshape(1, 4, 6).expand(3, 4, 6).contiguous(),
        lambda: np.broadcast_to(A[:, :1].astype(np.float16).astype(int), (3, 4, 6)),
        "casts fuse like any other op"),
    Row("pad(a+b), cast int, expand, * 4", 2, 1,
        lambda: (Tensor(A) + Tensor(B)).pad(PAD).cast(dtypes.int32).reshape(1, 6, 8)
        .expand(3, 6, 8) * 4,
        lambda: np.broadcast_to(np.pad(A + B, 1).astype(np.int32), (3, 6, 8)) * 4,
        "adding twice is cheaper than a round through memory"),
    Row("permuted, made contiguous", 1, 1, lambda: Tensor(A).permute(1, 0).contiguous(),
        lambda: A.T),
    Row("two that read a permuted copy", 2, 2,
        lambda: (c := Tensor(A).permute(1, 0).contiguous()) * 2 + c[::-1, ::-1], lambda: A.T * 2
        + A.T[::-1, ::-1]),
    Row("matmul, bias, relu", 1, 1,
        lambda: (Tensor(A) @ Tensor(B).T + Tensor(A[:, 0])).relu(),
        lambda: np.maximum(A @ B.T + A[:, 0], 0)),
    Row("convolution 1 x 1 of 24 channels", 1, 1,
        lambda: Tensor(MANY).conv2d(Tensor(ONE_BY_ONE)).relu(),
        lambda: np.maximum(np_conv(MANY.astype(float), ONE_BY_ONE), 0)),
    Row("5-D padded by 1 on each side, + 1", 1, 1,
        lambda: Tensor(numbers(2, 2, 2, 2, 2)).pad(((1, 1),) * 5) + 1,
        lambda: np.pad(numbers(2, 2, 2, 2, 2), 1) + 1),
    Row("embedding", 1, 1, lambda: Tensor(A)[Tensor(np.array([[3, 0], [1, -1]]))],
        lambda: A[[[3, 0], [1, -1]]]),
    Row("const float bitcast to int", 1, 1, lambda: Tensor(1.1875).bitcast(dtypes.int32),
        lambda: np.float32(1.1875).view(np.int32)),  # a number whose bits no other test asks for
]  # fmt: skip


def kernels(tensor: Tensor) -> int:
    """Return how many kernels `tensor` needs; copies from the host are none."""
    return sum(item.kernel is not None for item in tensor.schedule())


@pytest.mark.parametrize("row", FOLDING, ids=lambda row: row.name)
def test_folding_needs_no_kernel(row: Row) -> None:
    assert row.seed == 0 and kernels(row.build()) == 0
    _agrees(row)


@by_rows("row", OTHERS, ids=lambda row: row.name)
def test_no_more_kernels_than_tinygrad(row: Row) -> None:
    assert kernels(row.build()) == row.ours
    assert row.why or row.ours == row.seed
    assert row.ours <= row.seed or "two orders" in row.why
    _agrees(row)


def _agrees(row: Row) -> None:
    for device in ("LLVM", "PYTHON"):
        with Context(DEV=device):
            actual = row.build().numpy()
        np.testing.assert_allclose(actual, row.want(), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    print("| expression | tinygrad 0.8.2 | here | why |\n|---|---|---|---|")
    for row in FOLDING + OTHERS:
        print(f"| {row.name} | {row.seed} | {kernels(row.build())} | {row.why} |")
