"""Kernels written by hand, with what each computes in numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench import dtypes
from workbench.ir.node.ops import Ops

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A kernel: its function, the shapes and dtypes of its outputs, its inputs, and the values."""

    fxn: Callable[..., Any]
    outputs: list[tuple[tuple[int, ...], str]]
    inputs: list[Array]
    expected: Callable[..., Any]


def numbers(*shape: int, dtype: str = "float32") -> Array:
    seed = np.random.default_rng(sum(shape) + len(shape))
    return (seed.standard_normal(shape) * 4).astype(dtype)


def add(out: Any, x: Any, y: Any) -> None:
    i = out.axis(0)
    out[i] = x[i] + y[i]


def scaled(out: Any, x: Any) -> None:
    i, j = out.axis(0), out.axis(1)
    out[i, j] = (x[i, j] * 3 - 1).max(0)


def row_sums(out: Any, x: Any) -> None:
    i, k = out.axis(0), x.axis(1)
    out[i] = x[i, k].reduce(k)


def greatest(out: Any, x: Any) -> None:
    i, j = x.axis(0), x.axis(1)
    out[()] = x[i, j].reduce(i, j, arg=Ops.MAX)


def matmul(out: Any, a: Any, b: Any) -> None:
    i, j, k = out.axis(0), out.axis(1), a.axis(1)
    out[i, j] = (a[i, k] * b[k, j]).reduce(k)


def softmax(out: Any, x: Any) -> None:
    i, j, k, n = out.axis(0), out.axis(1), x.axis(1), x.axis(1)
    most = x[i, k].reduce(k, arg=Ops.MAX)
    power = lambda at: ((x[i, at] - most) * 1.4426950408889634).exp2()  # noqa: E731
    out[i, j] = power(j) / power(n).reduce(n)


def moments(mean: Any, square: Any, x: Any) -> None:
    i, k = mean.axis(0), x.axis(1)
    mean[i] = x[i, k].reduce(k) / x.shape[1]
    square[i] = (x[i, k] * x[i, k]).reduce(k) / x.shape[1]


def of_other_loops(doubled: Any, sums: Any, x: Any) -> None:
    i = x.axis(0)
    doubled[i] = x[i] * 2
    j, k = sums.axis(0), x.axis(0)
    sums[j] = x[k].cast(dtypes.int32).reduce(k) + j.cast(dtypes.int32)


def halves(out: Any, x: Any) -> None:
    """Two statements write one output."""
    half = out.shape[0] // 2
    i, j = out.loop(half), out.loop(out.shape[0] - half)
    out[i] = x[i]
    out[j + half] = -x[j]


def reversed_in_place(x: Any) -> None:
    i = x.axis(0)
    x[i] = x[i * -1 + (x.shape[0] - 1)] + x[i]


def looked_up(out: Any, table: Any, index: Any) -> None:
    i = out.axis(0)
    out[i] = table[index[i].max(0).min(table.shape[0] - 1)]


def smoothed(out: Any, x: Any) -> None:
    i = out.axis(0)
    before, after = x.read(i - 1, where=i >= 1), x.read(i + 1, where=i < x.size - 1)
    out[i] = before + x[i] + after


def transposed(out: Any, x: Any) -> None:
    i, j = x.axis(0), x.axis(1)
    out[j, i] = x[i, j]


def scalar(out: Any) -> None:
    out[()] = 7


F = "float32"
CASES: dict[str, Case] = {
    "elementwise": Case(add, [((12,), F)], [numbers(12), numbers(12)], lambda x, y: x + y),
    "odd sizes": Case(
        scaled, [((7, 13), F)], [numbers(7, 13)], lambda x: np.maximum(x * 3 - 1, 0)
    ),
    "int16": Case(
        add, [((5,), "int16")], [numbers(5, dtype="int16")] * 2, lambda x, y: x + y
    ),
    "row sums": Case(row_sums, [((5,), F)], [numbers(5, 33)], lambda x: x.sum(1)),
    "to a scalar": Case(greatest, [((), F)], [numbers(4, 9)], lambda x: x.max()),
    "matmul": Case(matmul, [((17, 9), F)], [numbers(17, 5), numbers(5, 9)], np.matmul),
    "softmax": Case(
        softmax, [((6, 10), F)], [numbers(6, 10)],
        lambda x: np.exp(x - x.max(1, keepdims=True))
        / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True),
    ),
    "two outputs": Case(
        moments, [((6,), F), ((6,), F)], [numbers(6, 11)],
        lambda x: (x.mean(1), (x * x).mean(1)),
    ),
    "two outputs of other loops": Case(
        of_other_loops, [((9,), F), ((4,), "int32")], [np.arange(9, dtype=F)],
        lambda x: (x * 2, 36 + np.arange(4, dtype="int32")),
    ),
    "a loaded index": Case(
        looked_up, [((6,), F)],
        [numbers(4), np.array([0, 3, 9, -5, 2, 1], "int32")],
        lambda t, i: t[np.clip(i, 0, 3)],
    ),
    "a window": Case(
        smoothed, [((11,), F)], [numbers(11)], lambda x: np.convolve(x, np.ones(3), "same"),
    ),
    "halves": Case(
        halves, [((9,), F)], [numbers(9)], lambda x: np.concatenate([x[:4], -x[:5]])
    ),
    "in place": Case(
        reversed_in_place, [], [numbers(7)], lambda x: x[::-1] + x
    ),
    "transposed": Case(transposed, [((5, 3), F)], [numbers(3, 5)], lambda x: x.T),
    "without inputs": Case(scalar, [((), "int32")], [], lambda: np.int32(7)),
    "no rows": Case(add, [((0,), F)], [numbers(0), numbers(0)], lambda x, y: x + y),
    "sums of nothing": Case(row_sums, [((3,), F)], [numbers(3, 0)], lambda x: x.sum(1)),
    "nothing of sums": Case(row_sums, [((0,), F)], [numbers(0, 3)], lambda x: x.sum(1)),
}  # fmt: skip
