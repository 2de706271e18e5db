"""Shapes far beyond memory: only what is read is computed, at 64-bit positions.

The oracle is a chain of Python functions on positions: integers of any size.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows, count
from tests.tensor.agree import assert_agrees
from workbench import Context, explore
from workbench.base.errors import DeviceError, ShapeError
from workbench.tensor import Tensor

At = Callable[[tuple[int, ...]], int]
"""From a position to the value there."""
Move = tuple[Tensor, At]

LIMIT = 2**63
PAD = 3


def start(shape: tuple[int, ...]) -> Move:
    """Return a tensor that holds 7 + its row-major position, and the same as a function."""
    tensor = (Tensor.arange(prod(shape), dtype="int64") + 7).reshape(shape)
    return tensor, lambda at: 7 + flat(at, shape)


def held() -> Move:
    """Return 15 numbers in memory, repeated 2**33 times along an axis in their middle."""
    values = np.arange(15, dtype=np.int64).reshape(5, 3) * 10**17
    tensor = Tensor(values).reshape(5, 1, 3).expand(5, 2**33, 3)
    return tensor, lambda at: int(values[at[0], at[2]])


def flat(at: tuple[int, ...], shape: tuple[int, ...]) -> int:
    total = 0
    for index, size in zip(at, shape, strict=True):
        total = total * size + index
    return total


def unflat(place: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    indices: list[int] = []
    for size in reversed(shape):
        place, index = divmod(place, size)
        indices.append(index)
    return tuple(reversed(indices))


def reshape(rng: random.Random, tensor: Tensor, at: At) -> Move:
    """Merge all axes, and split them otherwise."""
    old, left, new = tensor.shape, tensor.numel(), []
    while left > 1 and len(new) < 3:
        divisors = [d for d in (2, 3, 5, 7, 64, 2**20, 3**9, 2**31) if left % d == 0]
        new.append(rng.choice(divisors) if divisors else left)
        left //= new[-1]
    shape = tuple(rng.sample([*new, left], len(new) + 1))
    return tensor.reshape(shape), lambda p: at(unflat(flat(p, shape), old))


def permute(rng: random.Random, tensor: Tensor, at: At) -> Move:
    order = rng.sample(range(tensor.ndim), tensor.ndim)
    return tensor.permute(order), lambda p: at(
        tuple(p[order.index(axis)] for axis in range(len(order)))
    )


def flip(rng: random.Random, tensor: Tensor, at: At) -> Move:
    axis, shape = rng.randrange(tensor.ndim), tensor.shape
    return tensor.flip(axis), lambda p: at(
        tuple(shape[i] - 1 - n if i == axis else n for i, n in enumerate(p))
    )


def stride(rng: random.Random, tensor: Tensor, at: At) -> Move:
    axis = rng.randrange(tensor.ndim)
    size = tensor.shape[axis]
    first, step = rng.randrange(size), rng.choice([1, 2, 3, 2**10, size])
    index = (slice(None),) * axis + (slice(first, None, step),)
    return tensor[index], lambda p: at(
        tuple(first + n * step if i == axis else n for i, n in enumerate(p))
    )


def expand(rng: random.Random, tensor: Tensor, at: At) -> Move:
    times = rng.choice([2, 2**20, 2**33])
    if tensor.numel() * times >= LIMIT:
        return tensor, at
    return tensor.expand(times, *tensor.shape), lambda p: at(p[1:])


def pad(rng: random.Random, tensor: Tensor, at: At) -> Move:
    axis, shape = rng.randrange(tensor.ndim), tensor.shape
    before = rng.choice([1, 2**31 + 1])
    grown = prod(n + 2 * before * (i == axis) for i, n in enumerate(shape))
    if grown >= LIMIT:
        return tensor, at
    pairs = [(before, before) if i == axis else None for i in range(len(shape))]

    def inside(p: tuple[int, ...]) -> int:
        here = tuple(n - before * (i == axis) for i, n in enumerate(p))
        return at(here) if 0 <= here[axis] < shape[axis] else PAD

    return tensor.pad(pairs, value=PAD), inside


MOVES = [reshape, permute, flip, stride, expand, pad]


def few(rng: random.Random, tensor: Tensor, at: At) -> tuple[Tensor, Any]:
    """Return at most two elements along each axis, and what they are."""
    picks = []
    for size in tensor.shape:
        first = rng.randrange(size)
        picks.append(range(first, size, rng.randrange(1, size + 1))[:2])
    actual = tensor[tuple(slice(p.start, p[-1] + 1, p.step) for p in picks)]
    values = [at(place) for place in product(*picks)]
    return actual, np.array(values, np.int64).reshape(tuple(map(len, picks)))


@by_rows("seed", range(count(300)))
def test_chains_of_movement(seed: int) -> None:
    rng = random.Random(seed)
    with Context(DEV=("LLVM", "PYTHON", "C")[seed % 3]):
        shape = rng.choice([(2**40,), (3**20, 2**20), (2**20, 3, 5**9), (6**20,), ()])
        state = start(shape) if shape else held()
        for _ in range(rng.randrange(1, 6)):
            state = rng.choice(MOVES)(rng, *state)
        assert_agrees(*few(rng, *state))


def vast_rows() -> Tensor:
    """Return 2**40 rows of (1, 2, 3), and to each the number of its row added."""
    rows = Tensor.arange(2**40, dtype="int64").reshape(-1, 1)
    return Tensor([1, 2, 3]).expand(2**40, 3) + rows


# fmt: off
CASES: list[tuple[str, Callable[[], Tensor], Any]] = [
    ("arange", lambda: Tensor.arange(2**40)[2**39 + 5 : 2**39 + 8], 2**39 + np.arange(5, 8)),
    ("ones", lambda: Tensor.ones(2**20, 2**20)[..., -3:].sum(), np.float32(3 * 2**20)),
    ("full", lambda: Tensor.full((2**62,), 1)[5], np.int32(1)),
    ("rows", lambda: vast_rows()[2**39 : 2**39 + 4].sum(0), 4 * 2**39 + np.array([10, 14, 18])),
    ("a row", lambda: vast_rows().reshape(-1)[2**41 : 2**41 + 3], 2**41 // 3 + np.array([3, 2, 3])),
    ("eye", lambda: Tensor.eye(2**31 + 1)[-2:, -2:], np.eye(2, dtype=np.float32)),
    ("oblong", lambda: Tensor.eye(2**33, 2)[2**32:2**32 + 1], np.zeros((1, 2), np.float32)),
    ("wide stride", lambda: Tensor.arange(5, dtype="int64") * 2**40, np.arange(5) * 2**40),
    ("repeat", lambda: Tensor([1, 2, 3]).repeat(2**40)[2**40 : 2**40 + 3], np.int32([2, 3, 1])),
    ("cat", lambda: Tensor.zeros(2**40).cat(Tensor([1.0]))[-2:], np.float32([0, 1])),
    ("windows", lambda: Tensor.arange(2**40, dtype="int64").reshape(1, 1, 2**20, 2**20)
     .max_pool2d(3, 1)[0, 0, -1, -2:], np.array([2**40 - 2, 2**40 - 1])),
    ("one_hot", lambda: Tensor([-1, 2]).one_hot(2**32 + 3)[:, -2:], np.zeros((2, 2), np.int32)),
    ("padded ones", lambda: Tensor.ones(4).pad((0, 2**50))[:5], np.float32([1, 1, 1, 1, 0])),
    ("padded twice", lambda: Tensor.full((2,), 3).pad((2**40, 0)).reshape(2, -1).flip(0)[0, -3:],
     np.int32([0, 3, 3])),
    ("padded numbers", lambda: Tensor([1, 2]).pad((2**50, 2**50))[2**50 - 1 : 2**50 + 2],
     np.int32([0, 1, 2])),
    ("argmax", lambda: Tensor.full((2**33,), 1).eq(2)[:4].argmax(), np.int32(0)),
]
# fmt: on


@pytest.mark.usefixtures("device")
@by_rows(("make", "want"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_only_what_is_read_is_computed(make: Callable[[], Tensor], want: Any) -> None:
    assert_agrees(make(), want)


PADDED = [case[1:] for case in CASES if case[0].startswith("padded")]


@by_rows(("make", "want"), PADDED)
def test_results_that_are_cut_from_vast_values_are_checked(
    make: Callable[[], Tensor], want: Any
) -> None:
    ex = explore(make())
    assert f"{want.size} of {want.size} elements compared" in str(ex.check()) and ex.check()
    assert all(kernel.check("PYTHON").checked == want.size for kernel in ex.kernels)


def test_positions_have_the_width_they_need() -> None:
    assert str(Tensor.full((2**33,), 1).argmax().dtype) == "int64"
    assert str(Tensor.arange(2**31)[:2].argmax().dtype) == "int32"
    values, places = Tensor.full((2, 2**33), 1).cummax(1)
    assert str(places.dtype) == "int64"


# fmt: off
TOO_MANY: list[Callable[[], object]] = [
    lambda: Tensor.zeros(2**63),
    lambda: Tensor.zeros(2**32, 2**31),
    lambda: Tensor.zeros(0, 2**63),
    lambda: Tensor.arange(2**63),
    lambda: Tensor.eye(2**32),
    lambda: Tensor.rand(2**70),
    lambda: Tensor.ones(2**32, 1) + Tensor.ones(2**31),
    lambda: Tensor([1]).expand(2**64),
    lambda: Tensor([1, 2]).repeat(2**62),
    lambda: Tensor([1]).pad((0, 2**63)),
    lambda: Tensor.zeros(2**62).cat(Tensor.zeros(2**62)),
    lambda: Tensor([1]).one_hot(2**63),
    lambda: Tensor.zeros(2**32, 2) @ Tensor.zeros(2, 2**32),
    lambda: Tensor.zeros(1, 2**62).max_pool2d((1, 2), (1, 2**61)),  # on the way
]
# fmt: on


@pytest.mark.parametrize("action", TOO_MANY)
def test_more_elements_than_positions_are_refused(action: Callable[[], object]) -> None:
    with pytest.raises(ShapeError, match="positions are 64-bit integers") as caught:
        action()
    assert "test_large.py, line" in caught.value.where


@pytest.mark.usefixtures("device")
def test_results_beyond_memory_are_refused() -> None:
    assert Tensor.zeros(2**50).realize().shape == (2**50,)  # a constant needs none
    actions: list[Callable[[], object]] = [
        lambda: Tensor.zeros(2**50).numpy(),
        lambda: (Tensor.arange(2**50) + 1).realize(),
        lambda: Tensor([1.0, 2.0]).expand(2**50, 2).contiguous().realize(),
        lambda: Tensor(range(2**50)),
        lambda: Tensor([range(2**70)]),
        lambda: Tensor(np.broadcast_to(np.float32(1), (10**13,))),
    ]
    for action in actions:
        with pytest.raises(DeviceError, match="cannot allocate"):
            action()
