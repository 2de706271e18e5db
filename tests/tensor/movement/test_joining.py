"""cat, stack, split, chunk, repeat against numpy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows, count
from tests.tensor.agree import assert_agrees, numbers
from workbench.base.errors import ShapeError
from workbench.tensor import Tensor

pytestmark = pytest.mark.usefixtures("device")

NAN, INF = float("nan"), float("inf")

# fmt: off
CATS: list[tuple[list[tuple[int, ...]], int]] = [
    ([(3,), (4,)], 0), ([(3,)], 0), ([(1,), (1,), (1,)], -1), ([(0,), (4,)], 0),
    ([(0,), (0,)], 0), ([(3, 4), (2, 4)], 0), ([(3, 4), (3, 1), (3, 5)], 1),
    ([(2, 3, 4), (2, 3, 4)], -2), ([(2, 0, 4), (2, 0, 3)], 2), ([(2, 0), (2, 3)], 1),
    ([(0, 3), (0, 3)], 1), ([(1, 2)] * 7, 0), ([(5, 1), (5, 2), (5, 0), (5, 3), (5, 1)], 1),
]
STACKS: list[tuple[tuple[int, ...], int, int]] = [
    ((), 3, 0), ((), 2, -1), ((4,), 1, 0), ((4,), 3, 0), ((4,), 3, 1), ((4,), 3, -1),
    ((2, 3), 2, 1), ((2, 3), 2, -1), ((2, 3), 2, -3), ((0, 3), 2, 0), ((2, 0), 3, 2),
]
REPEATS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3,), (2,)), ((3,), (1,)), ((3,), (0,)), ((3,), (2, 3)), ((2, 3), (1, 4)), ((), (3,)),
    ((), ()), ((2, 3), (2, 1)), ((2, 3), (3, 2, 2)), ((0, 3), (2, 2)), ((1, 1), (5, 7)),
]
# fmt: on


@by_rows(("shapes", "dim"), CATS, ids=str)
def test_cat(shapes: list[tuple[int, ...]], dim: int) -> None:
    parts = [numbers(shape, seed=i) for i, shape in enumerate(shapes)]
    tensors = [Tensor(p) for p in parts]
    want = np.concatenate(parts, dim)
    assert_agrees(tensors[0].cat(*tensors[1:], dim=dim), want)
    assert_agrees(Tensor.cat(*[t * 2 for t in tensors], dim=dim) + 1, want * 2 + 1)


def test_cat_takes_tensors_and_lists_of_them() -> None:
    a, b = Tensor([1, 2]), Tensor([3])
    for joined in (a.cat(b), Tensor.cat(a, b), Tensor.cat([a, b])):  # type: ignore[arg-type]
        assert joined.tolist() == [1, 2, 3]
    assert Tensor.stack([a, a], dim=1).tolist() == [[1, 1], [2, 2]]  # type: ignore[arg-type]


def test_cat_promotes() -> None:
    a, b, c = numbers((2,), "int8"), numbers((3,), "uint8"), numbers((2,), "bool")
    assert_agrees(Tensor(a).cat(Tensor(b)), np.concatenate([a, b]))
    assert_agrees(Tensor(c).cat(Tensor(a)), np.concatenate([c, a]))
    assert_agrees(Tensor(c).cat(Tensor(c)), np.concatenate([c, c]))
    whole = Tensor(a).cat(Tensor([0.5]))
    assert_agrees(whole, np.array([*a, 0.5], np.float32))


def test_cat_keeps_every_value() -> None:
    a, b = np.float32([-0.0, INF, NAN]), np.float32([0.0, -INF, -0.0])
    actual = Tensor(a).cat(Tensor(b), Tensor(a)).numpy()
    want = np.concatenate([a, b, a])
    assert_agrees(Tensor(actual), want)
    assert (np.signbit(actual) == np.signbit(want)).all()
    # what is computed on the padding does not matter
    assert_agrees(Tensor(b).reciprocal().cat(Tensor(b).log()),
                  np.float32([INF, -0.0, -INF, -INF, NAN, -INF]))  # fmt: skip


@pytest.mark.parametrize(("shape", "copies", "dim"), STACKS, ids=str)
def test_stack(shape: tuple[int, ...], copies: int, dim: int) -> None:
    parts = [numbers(shape, seed=i) for i in range(copies)]
    tensors = [Tensor(p) for p in parts]
    assert_agrees(Tensor.stack(*tensors, dim=dim), np.stack(parts, dim))


@pytest.mark.parametrize(("shape", "times"), REPEATS, ids=str)
def test_repeat(shape: tuple[int, ...], times: tuple[int, ...]) -> None:
    x = numbers(shape)
    want = np.tile(x, times)
    assert_agrees(Tensor(x).repeat(*times), want)
    assert_agrees(Tensor(x).repeat(times), want)


@pytest.mark.parametrize("dim", [None, 0, 1, -1])
@pytest.mark.parametrize("times", [0, 1, 3])
def test_repeat_interleave(times: int, dim: int | None) -> None:
    x = numbers((2, 3))
    actual = Tensor(x).repeat_interleave(times, dim)
    assert_agrees(actual, np.repeat(x, times, dim))


def _torch_split(x: Any, size: int, dim: int) -> list[Any]:
    length = x.shape[dim]
    cuts = list(range(size, length, size)) if size else []
    return np.split(x, cuts, dim)


def test_split_and_chunk_of_random_shapes() -> None:
    rng = random.Random(5)
    for _ in range(count(300)):
        ndim = rng.randint(1, 5)
        shape = tuple(rng.choice((0, 1, 2, 3, 5, 8)) for _ in range(ndim))
        dim = rng.randint(-ndim, ndim - 1)
        x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        size, chunks = rng.randint(1, 9), rng.randint(1, 9)
        length = shape[dim]
        _agree(Tensor(x).split(size, dim), _torch_split(x, size, dim))
        whole = -(-length // chunks)
        want = _torch_split(x, whole, dim) if length else [x] * chunks
        _agree(Tensor(x).chunk(chunks, dim), want)
        cuts = sorted(rng.randint(0, length) for _ in range(3))
        lengths = np.diff([0, *cuts, length]).tolist()
        _agree(Tensor(x).split(lengths, dim), np.split(x, cuts, dim))
        if length:
            with pytest.raises(ShapeError):
                Tensor(x).split([*lengths, 1], dim)
            with pytest.raises(ShapeError):
                Tensor(x).split(0, dim)


def _agree(pieces: tuple[Tensor, ...], want: list[Any]) -> None:
    assert [p.shape for p in pieces] == [w.shape for w in want]
    Tensor(0).realize(*pieces)
    for piece, values in zip(pieces, want, strict=True):
        assert_agrees(piece, values)


def test_split_and_cat_are_inverse() -> None:
    x = numbers((5, 7))
    for dim in (0, 1):
        assert_agrees(Tensor.cat(*Tensor(x).split(3, dim), dim=dim), x)
        assert_agrees(Tensor.cat(*reversed(Tensor(x).chunk(4, dim)), dim=dim),
                      np.concatenate(_torch_split(x, 2, dim)[::-1], dim))  # fmt: skip
