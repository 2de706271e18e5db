"""Reductions and matrix products against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.agree import assert_agrees, numbers, quiet
from workbench.base.dtypes import dtypes
from workbench.ir.node.ops import Ops
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

NAN = float("nan")

# fmt: off
AXES: list[tuple[tuple[int, ...], Any]] = [
    ((7,), None), ((7,), 0), ((7,), -1), ((1,), None), ((1, 1), 0), ((45, 3), None),
    ((45, 3), 0), ((45, 3), 1),
    ((3, 4, 5, 6), 3), ((3, 4, 5, 6), (1, 3)), ((3, 4, 5, 6), (0, 2)), ((3, 4, 5, 6), (1, 2)),
    ((3, 4, 5, 6), 1), ((4, 2, 2), (0, 2)), ((3, 4), (-1, 0)), ((3, 4), ()), ((1, 5, 1), 0),
    ((2, 1, 3), (0, 1)),
    ((16384,), None), ((), None),
]
MATMULS = [
    ((3, 4), (4, 5)), ((1, 1), (1, 1)), ((48, 64), (64, 80)), ((13, 7), (7, 17)), ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)),
    ((3, 4), (2, 4, 5)),
    ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((1, 4), (4, 1)), ((3, 0), (0, 4)), ((0, 3), (3, 4)),
    ((65, 1), (1, 33)),
]
# fmt: on
TOLERANCE = {"sum": 64, "mean": 64, "prod": 128, "max": 0, "min": 0}


@by_rows("keepdim", [False, True])
@by_rows(("shape", "axis"), AXES, ids=str)
@by_rows("name", ["sum", "mean", "max", "min"])
def test_float_reductions(name: str, shape: tuple[int, ...], axis: Any, keepdim: bool) -> None:
    x = np.abs(numbers(shape)) + np.float32(0.1)
    actual = getattr(Tensor(x), name)(axis, keepdim=keepdim)
    want = getattr(np, name)(x.astype(np.float64), axis=axis, keepdims=keepdim)
    assert_agrees(actual, np.asarray(want, np.float32), TOLERANCE[name])


@by_rows("dtype", ["int8", "int32", "int64", "uint8", "uint32", "bool"])
@by_rows("name", ["max", "min", "any", "all"])
def test_integer_extremes(name: str, dtype: str) -> None:
    x = numbers((5, 7), dtype)
    assert_agrees(getattr(Tensor(x), name)(1), getattr(np, name)(x, 1))


@pytest.mark.parametrize(
    ("dtype", "summed", "averaged"),
    [
        ("bool", "int64", "float32"),
        ("int8", "int64", "float32"),
        ("int16", "int64", "float32"),
        ("int32", "int64", "float32"),
        ("int64", "int64", "float32"),
        ("uint8", "int64", "float32"),
        ("uint16", "int64", "float32"),
        ("uint32", "int64", "float32"),
        ("uint64", "uint64", "float32"),
        ("float32", "float32", "float32"),
        ("float64", "float64", "float64"),
    ],
)
def test_sum_and_mean_dtypes(dtype: str, summed: str, averaged: str) -> None:
    x = numbers((3, 5), dtype)
    assert_agrees(Tensor(x).sum(0), x.sum(0, dtype=summed), 8)
    assert_agrees(Tensor(x).prod(0), x.prod(0, dtype=summed), 8)
    assert_agrees(Tensor(x).mean(0), x.mean(0, dtype="f8").astype(averaged), 8)


@pytest.mark.parametrize("axis", [None, 0])
def test_a_count_of_more_than_32_bits(axis: int | None, device: str) -> None:
    """70,000 x 70,000 comparisons: those that are true do not fit 32 bits."""
    count = 70_000
    x = Tensor(np.arange(count, dtype=np.int32))
    for column in (x, Tensor.arange(count)) if device == "LLVM" else ():
        total = (column.unsqueeze(1) >= x).sum(axis).sum()
        assert total.dtype is dtypes.int64
        assert total.item() == count * (count + 1) // 2
    ones = Tensor.ones(count, count, dtype="bool")
    assert ones.sum(axis).sum().item() == count**2
    assert ones.int().mean().item() == 1


def test_integers_up_to_the_ends_of_their_dtype() -> None:
    for dtype in ("int8", "int16", "int32", "uint8", "uint16", "uint32"):
        ends = np.iinfo(dtype)
        x = np.array([ends.min, ends.max, ends.max, ends.min, ends.max] * 40, dtype)
        total = int(x.astype(object).sum())
        assert_agrees(Tensor(x).sum(), np.int64(total))
        assert_agrees(Tensor(x).cumsum(0), x.cumsum(0, dtype=np.int64))
        assert_agrees(Tensor(x).mean(), np.float32(total / x.size), 1)
        assert_agrees(Tensor(x[1:4:1]).prod(), x[1:4].prod(dtype=np.int64))
    # Sums of floats lose the halves of large numbers.
    assert Tensor([2**24 + 1, -(2**24)]).mean().item() == 0.5


def test_products_in_another_dtype() -> None:
    """Operands are cast before they are multiplied: none of the products fits int8."""
    x = np.full((2, 3), 100, np.int8)
    want, t = np.full((2, 2), 30000, np.int32), Tensor(x)
    assert_agrees(t.matmul(t.T, dtype="int32"), want)
    assert_agrees(t.dot(t.T, dtype="int32"), want)
    assert_agrees(Tensor.einsum("ij,kj->ik", t, t, dtype="int32"), want)
    windows = t.reshape(1, 1, 2, 3).conv2d(t.reshape(2, 1, 1, 3), dtype="int32")
    assert_agrees(windows, want.T.reshape(1, 2, 2, 1))
    assert_agrees(t @ t.T, x @ x.T)


def test_sum_in_another_dtype() -> None:
    x = np.full(300, 100, np.int8)
    assert Tensor(x).sum().item() == 30000
    assert_agrees(Tensor(x).sum(dtype=dtypes.float64), np.float64(30000))
    assert_agrees(Tensor(x).sum(dtype="int8"), x.sum(dtype=np.int8))


# fmt: off
ACCUMULATORS = [
    # operands, dtype= of the call, the result, what is summed in
    ("float16", None, "float16", "float32"), ("float16", "float16", "float16", "float32"),
    ("float16", "float32", "float32", "float32"), ("bfloat16", None, "bfloat16", "float32"),
    ("float32", "float64", "float64", "float64"), ("int8", "int32", "int32", "int32"),
    ("int8", "float32", "float32", "float32"), ("uint8", "uint64", "uint64", "uint64"),
]
SUMS: dict[str, Any] = {
    "sum": lambda x, y, d: x.sum(1, dtype=d),
    "matmul": lambda x, y, d: x.matmul(y, dtype=d),
    "einsum": lambda x, y, d: Tensor.einsum("ij,jk->ik", x, y, dtype=d),
    "conv2d": lambda x, y, d: x.reshape(1, 1, 4, 4).conv2d(y[:2, :2].reshape(1, 1, 2, 2), dtype=d),
}
# fmt: on


@by_rows("name", SUMS)
@by_rows(("source", "asked", "result", "summed"), ACCUMULATORS)
def test_what_is_summed_in(
    name: str, source: str, asked: str | None, result: str, summed: str
) -> None:
    x, y = Tensor.empty(4, 4, dtype=source), Tensor.empty(4, 4, dtype=source)
    actual = SUMS[name](x, y, asked)
    kernels = [item.kernel for item in actual.schedule() if item.kernel is not None]
    sums = {str(n.dtype) for k in kernels for n in k.toposort() if n.op is Ops.REDUCE}
    assert (str(actual.dtype), sums) == (result, {summed})


def test_nothing_to_reduce() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert_agrees(Tensor(empty).sum(0), empty.sum(0))
    assert_agrees(Tensor(empty).sum(), empty.sum())
    assert_agrees(Tensor(empty).prod(0), empty.prod(0))
    assert_agrees(Tensor(empty).sum(1), empty.sum(1))
    assert_agrees(Tensor(empty).max(1), empty.max(1))
    assert_agrees(Tensor(empty).mean(0), np.full(3, NAN, np.float32))
    assert Tensor(empty).any().item() is False
    assert Tensor(empty).all().item() is True


def test_nan_is_the_greatest_and_the_least() -> None:
    x = np.array([[1, NAN, 3], [4, 5, 6]], np.float32)
    assert_agrees(Tensor(x).max(1), x.max(1))
    assert_agrees(Tensor(x).min(1), x.min(1))
    assert_agrees(Tensor(x).min(), x.min())


@by_rows("keepdim", [False, True])
@by_rows("axis", [None, 0, 1, -1])
@by_rows("shape", [(5, 7), (1, 3), (4, 1), (2, 3, 4)], ids=str)
@by_rows("name", ["argmax", "argmin"])
def test_positions(name: str, shape: tuple[int, ...], axis: Any, keepdim: bool) -> None:
    x = numbers(shape, "int32") // 4  # many ties: the first counts
    for values in (x, x.astype(np.float32)):
        actual = getattr(Tensor(values), name)(axis, keepdim=keepdim)
        want = getattr(np, name)(values, axis, keepdims=keepdim)
        assert_agrees(actual, np.asarray(want, np.int32))


def test_position_of_the_first_nan() -> None:
    x = np.array([[3, NAN, NAN], [1, 2, 0], [NAN, 9, 9]], np.float32)
    assert_agrees(Tensor(x).argmax(1), np.int32([1, 1, 0]))
    assert_agrees(Tensor(x).argmin(1), np.int32([1, 2, 0]))
    assert Tensor(2.5).argmax().item() == 0
    assert Tensor([True, False]).argmin().item() == 1


@by_rows(("a", "b"), MATMULS, ids=str)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = numbers(a, seed=1), numbers(b, seed=2)
    want = np.matmul(x.astype(np.float64), y.astype(np.float64))
    actual = (Tensor(x) @ Tensor(y)).numpy()
    assert actual.dtype == np.float32
    assert actual.shape == want.shape
    np.testing.assert_allclose(actual, want, rtol=1e-5, atol=1e-5)


def test_matmul_dtypes() -> None:
    for dtype in ("int8", "int32", "int64", "uint8", "bool", "float64"):
        x, y = numbers((3, 5), dtype, 1), numbers((5, 4), dtype, 2)
        assert_agrees(Tensor(x) @ Tensor(y), x @ y, 16)
    x = numbers((3, 5), "int32")
    y = numbers((5, 2))
    assert_agrees(Tensor(x) @ Tensor(y), (x @ y.astype("f8")).astype("f4"), 64)
    assert_agrees(Tensor(x).matmul(Tensor(x).T, dtype="float32"), (x @ x.T).astype("f4"))
    assert_agrees(Tensor(y).matmul(Tensor(x), reverse=True), (x @ y.astype("f8")).astype("f4"), 64)
    assert_agrees(x.astype("f4") @ Tensor(y), (x @ y.astype("f8")).astype("f4"), 64)


def test_reductions_of_expressions() -> None:
    x, b = numbers((9, 6)), numbers((6,), seed=3)
    s, c = Tensor(x), Tensor(b)
    centred = s - s.mean(1, keepdim=True)
    assert_agrees(centred, x - x.mean(1, keepdims=True), 8)
    e = (s - s.max(1, keepdim=True)).exp()
    wide = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    want = wide / wide.sum(1, keepdims=True)
    assert_agrees(e / e.sum(1, keepdim=True), want.astype("f4"), 32)
    relu = quiet(np.maximum, x @ x.T[:, :6] + b, 0)
    np.testing.assert_allclose((s @ s.T[:, :6] + c).relu().numpy(), relu, 1e-5, 1e-5)


@pytest.mark.parametrize(
    ("formula", "shapes", "dtype"),
    [
        ("ij,j->i", [(3, 1), (4,)], "int64"),
        ("ij,j->i", [(3, 4), (4,)], "int32"),
        ("ij,j->i", [(3, 1), (1,)], "int32"),
        ("ij,j->j", [(0, 3), (3,)], "int64"),
        ("ij,k->ik", [(3, 4), (2,)], "int64"),
        ("ij,k->ik", [(3, 1), (2,)], "int32"),
        ("ij->i", [(3, 1)], "int64"),
        ("ij->ji", [(3, 1)], "int32"),
    ],
)
def test_einsum_sums_an_axis_of_one_operand_in_64_bits(
    formula: str, shapes: list[tuple[int, ...]], dtype: str
) -> None:
    """As torch 2.13."""
    arrays = [np.ones(shape, np.int32) for shape in shapes]
    assert_agrees(
        Tensor.einsum(formula, *map(Tensor, arrays)), np.einsum(formula, *arrays).astype(dtype)
    )
