"""Indexing by tensors against numpy (and against PyTorch's rules where numpy's differ)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from tests.support import by_rows
from tests.tensor.agree import assert_agrees, numbers
from workbench import TinyJit, nn
from workbench.base.errors import AxisError, DTypeError, ShapeError
from workbench.ir.node.ops import Ops
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

INF, NAN = float("inf"), float("nan")
I = np.int32  # noqa: E741 - the table reads better with short names
ALL = slice(None)

# fmt: off
INDICES: list[tuple[tuple[int, ...], Any]] = [
    ((5,), I([0, 4, 2, 2])), ((5,), I([-1, -5])), ((5,), I([[1, 2], [3, 4]])), ((5,), I([])),
    ((5,), [1, 3]), ((5,), [[1], [3]]), ((5,), np.int64([3])), ((5,), np.uint8([3, 1])),
    ((1,), I([0, 0, 0])), ((4, 5), I([2, 0])), ((4, 5), (ALL, I([2, 0, 2]))),
    ((4, 5), (I([1, 3]), I([0, 4]))), ((4, 5), (I([[1], [3]]), I([0, 4, 2]))),
    ((4, 5), (I([1, -1]), I([-5, 4]))), ((4, 5), (slice(1, 3), I([4, 4]))),
    ((4, 5), (slice(None, None, -2), I([0]))), ((4, 5), (None, I([1, 2]))),
    ((4, 5), (I([1, 2]), None)), ((4, 5), (Ellipsis, I([1, 2]))), ((4, 5), (I([1, 2]), 3)),
    ((4, 5), (3, I([1, 2]))), ((2, 3, 4), I([[0, 1], [1, 0]])), ((2, 3, 4), (ALL, I([2, 1]))),
    ((2, 3, 4), (ALL, I([[2], [1]]), slice(1, 3))), ((2, 3, 4), (ALL, I([2, 1]), I([3, 0]))),
    ((2, 3, 4), (I([1, 0]), ALL, I([3, 0]))), ((2, 3, 4), (I([1, 0]), I([0]), I([3, 0]))),
    ((2, 3, 4), (I([[1], [0]]), I([0, 2]), I(3))), ((2, 3, 4), (0, I([2, 0]), I([3, 1]))),
    ((2, 3, 4, 5), (ALL, I([2, 1]), ALL, I([3, 0]))),
    ((2, 3, 4, 5), (ALL, ALL, I([2, 1]), I([3, 0]))),
    ((2, 3, 4, 5), (I([1]), slice(1, 3), 2, None)), ((2, 0), I([1, 0, 1])),
    ((3, 4), (I([]), I([]))),
]
GATHERS: list[tuple[tuple[int, ...], int, tuple[int, ...]]] = [
    ((5,), 0, (3,)), ((5,), -1, (9,)), ((4, 5), 0, (2, 5)), ((4, 5), 1, (4, 8)),
    ((4, 5), 1, (2, 3)), ((2, 3, 4), 1, (2, 6, 4)), ((2, 3, 4), -1, (1, 2, 1)),
    ((2, 3, 4), 0, (2, 3, 4)), ((3, 4), 0, (0, 4)), ((), 0, ()), ((1, 1), 0, (1, 1)),
]
# fmt: on


@by_rows("dtype", ["float32", "int8", "bool"])
@by_rows(("shape", "index"), INDICES, ids=lambda x: str(x)[:40])
def test_indexing(shape: tuple[int, ...], index: Any, dtype: str) -> None:
    x = numbers(shape, dtype)
    parts = index if isinstance(index, tuple) else (index,)
    expected = tuple(I(e) if np.size(e) == 0 else e for e in parts)
    assert_agrees(Tensor(x)[index], x[expected])
    tensors = tuple(Tensor(e) if isinstance(e, np.ndarray) else e for e in parts)
    assert_agrees(Tensor(x)[tensors], x[expected])


def test_integers_beside_index_tensors_are_basic() -> None:
    x = numbers((2, 3, 4))
    assert_agrees(Tensor(x)[0, :, Tensor([3, 1])], x[0][:, [3, 1]])
    assert_agrees(Tensor(x)[Tensor([1, 0]), :, 2], x[[1, 0]][:, :, 2])


def test_a_scalar_tensor_removes_its_axis() -> None:
    x = numbers((4, 5))
    assert_agrees(Tensor(x)[Tensor(2)], x[2])
    assert_agrees(Tensor(x)[Tensor(2), Tensor([1, 3])], x[2, [1, 3]])
    assert_agrees(Tensor(x)[:, Tensor(-1)], x[:, -1])


def test_out_of_range_gives_zero() -> None:
    """Where the index is computed; one that is known is refused."""
    x = numbers((4, 5)) + 10
    t, zero = Tensor(x), Tensor([0]).realize()
    index = Tensor([4, -5, 1]) + zero
    assert_agrees(t[index], np.stack([x[0] * 0, x[0] * 0, x[1]]))
    actual = t[Tensor([1, 4]) + zero, Tensor([5, 0]) + zero]
    assert actual.tolist() == [0.0, 0.0]
    big = Tensor(np.uint64([2**64 - 1, 3]))
    assert_agrees(t[big + zero.cast("uint64")], np.stack([x[0] * 0, x[3]]))
    column = Tensor([[4], [0]])
    for read in (
        lambda: t[big],
        lambda: t[index.realize()],
        lambda: t[Tensor([1, 4]), Tensor([0, 0])],
        lambda: t[column.cast("int64").expand(2, 3)],
        lambda: t.gather(0, column),
        lambda: t.scatter(0, column, 1.0),
        lambda: nn.Embedding(4, 2)(column),
    ):
        with pytest.raises(AxisError, match="is out of range for axis 0 of shape"):
            read()
    wide = Tensor([9]).expand(1 << 40)  # nobody looks at each of so many
    with pytest.raises(AxisError, match="index 9"):
        t[wide]
    replay = TinyJit(lambda i: t[i].realize())
    for _ in range(3):  # what is captured has no values
        assert_agrees(replay(Tensor([2]).realize()), x[[2]])


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, np.float32, np.float64])
def test_every_float_is_kept(dtype: Any) -> None:
    """With the sign of a zero, and without a loop over the positions."""
    x = np.array([NAN, INF, -INF, 1e-40, 3, -0.0, 0.0], dtype)
    order = I([4, 0, 2, 1, 3, 5, 6])
    chosen = Tensor(x)[order]
    (kernel,) = [i.kernel for i in chosen.schedule() if i.kernel is not None]
    assert all(n.op is not Ops.REDUCE for n in kernel.toposort())
    actual = chosen.numpy()
    due = x[order].astype(actual.dtype)  # a bfloat16 is shown as float32
    np.testing.assert_array_equal(actual, due)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(due))


def test_every_integer_is_kept() -> None:
    wide = np.array([2**62 + 1, -(2**63), 2**63 - 1])
    assert_agrees(Tensor(wide)[[2, 0, 1]], wide[[2, 0, 1]])
    whole = np.int8([127, -128, 5])
    assert_agrees(Tensor(whole)[[1, 1, 0]], whole[[1, 1, 0]])


def test_small_index_types_reach_long_axes() -> None:
    x = numbers((300,), "int32")
    assert_agrees(Tensor(x)[np.int8([-1, 127, -128])], x[[-1, 127, -128]])
    assert_agrees(Tensor(x)[np.uint8([255, 200])], x[[255, 200]])


def test_indexing_by_what_is_computed() -> None:
    x, y = numbers((6, 4)), numbers((3, 6))
    at = Tensor(y).argmax(1)
    assert_agrees(Tensor(x)[at], x[y.argmax(1)])
    assert_agrees((Tensor(x) * 2)[at].sum(1), (x * 2)[y.argmax(1)].sum(1), 4)
    assert_agrees(Tensor.arange(10)[Tensor.arange(3) * 2 + 1], I([1, 3, 5]))


@pytest.mark.parametrize(("shape", "dim", "chosen"), GATHERS, ids=str)
def test_gather(shape: tuple[int, ...], dim: int, chosen: tuple[int, ...]) -> None:
    x, rng = numbers(shape), np.random.default_rng(1)
    size = shape[dim] if shape else 1
    index = np.asarray(rng.integers(0, size, chosen), np.int32)
    if shape:
        box = tuple(
            slice(None) if i == dim % len(shape) else slice(n) for i, n in enumerate(chosen)
        )
        want = np.take_along_axis(x[box], index, dim)
    else:
        want = x
    assert_agrees(Tensor(x).gather(dim, Tensor(index)), want)


def test_one_hot() -> None:
    x = I([[0, 2, 1], [3, -1, 9]])
    want = (x[..., None] == np.arange(4)).astype(np.int32)
    assert_agrees(Tensor(x).one_hot(4), want)
    assert_agrees(Tensor(np.uint8([1, 0])).one_hot(2), I([[0, 1], [1, 0]]))
    assert_agrees(Tensor(2).one_hot(3), I([0, 0, 1]))
    assert Tensor([1, 0]).one_hot(0).shape == (2, 0)


def test_refusals() -> None:
    t = Tensor([[1, 2], [3, 4]])
    with pytest.raises(DTypeError, match="with a tensor of float32"):
        t[Tensor([0.5])]
    with pytest.raises(ShapeError, match="cannot index: shapes"):
        t[[0, 1], [0, 1, 1]]
    with pytest.raises(ShapeError, match="too many indices"):
        t[[0], [0], [0]]
    with pytest.raises(ShapeError, match="it has no elements"):
        Tensor(np.zeros((0, 2)))[[0]]
    with pytest.raises(ShapeError, match="cannot gather"):
        t.gather(0, Tensor([0]))
    with pytest.raises(ShapeError, match="cannot gather"):
        t.gather(0, Tensor([[0, 0, 0]]))
