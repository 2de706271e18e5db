"""Movement composes, and nothing is read beyond a pad: values against numpy."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.ir.schedule.support import Array, agrees, kernels, numbers
from tests.support import count
from workbench import Tensor


def test_what_a_pad_adds_is_zero_whatever_the_function_gives_for_zero() -> None:
    a = numbers(3, 4)
    with np.errstate(all="ignore"):
        for make, oracle in (
            (lambda t: t.exp2(), np.exp2),
            (lambda t: (t.abs()).log2(), lambda n: np.log2(np.abs(n))),
            (lambda t: t.reciprocal(), lambda n: 1 / n),
            (lambda t: t < 0.5, lambda n: n < 0.5),
            (lambda t: t + 1, lambda n: n + 1),
            (lambda t: t.exp2().sum(1, keepdim=True), lambda n: np.exp2(n).sum(1, keepdims=True)),
        ):
            x, n = make(Tensor(a)), oracle(a)
            agrees(x.pad(((1, 2), (0, 1))), np.pad(n, ((1, 2), (0, 1))))
            agrees(x[:-1].pad(((0, 1), (2, 0))), np.pad(n[:-1], ((0, 1), (2, 0))))


def test_exp2_shrunk_then_padded() -> None:
    a = numbers(4, 5)
    x = Tensor(a).exp2()[:-1, :-1].pad(((0, 1), (0, 1)))
    expected = np.pad(np.exp2(a)[:-1, :-1], ((0, 1), (0, 1)))
    assert len(kernels(x)) == 1
    agrees(x, expected)
    agrees(x * 2, expected * 2)
    agrees(Tensor([1.0, 0.0]).exp2()[:1].pad(((0, 1),)), np.array([2, 0], np.float32))


def test_a_sum_over_padding_counts_nothing() -> None:
    a = numbers(4, 5)
    agrees(Tensor(a).exp().pad(((2, 3), (1, 1))).sum(), np.exp(a).sum().reshape(()), 1e-3)
    longer = np.pad(a, ((0, 2), (0, 0)))
    agrees((Tensor(a).pad(((0, 2), (0, 0))) + 1).prod(0), (longer + 1).prod(0))
    agrees(Tensor(-np.abs(a)).pad(((1, 0), (0, 0))).max(0), np.zeros(5, np.float32))


MOVES = 7


def moved(x: Tensor, n: Array, pick: random.Random) -> tuple[Tensor, Array]:
    """Apply one random movement to a tensor and to its array."""
    kind = pick.choice(("reshape", "permute", "flip", "shrink", "pad", "expand"))
    if kind == "permute":
        axes = pick.sample(range(n.ndim), n.ndim)
        return x.permute(*axes), n.transpose(axes)
    if kind == "flip":
        axes = sorted(pick.sample(range(n.ndim), pick.randint(1, n.ndim)))
        return x.flip(*axes), np.flip(n, axes)
    if kind == "shrink":
        box = []
        for size in n.shape:
            lo = pick.randrange(size)
            box.append((lo, pick.randint(lo + 1, size)))
        return x.shrink(tuple(box)), n[tuple(slice(lo, hi) for lo, hi in box)]
    if kind == "pad" and n.size < 2000:
        box = [(pick.randint(0, 2), pick.randint(0, 2)) for _ in n.shape]
        return x.pad(tuple(box)), np.pad(n, box)
    if kind == "expand" and n.size < 500:
        return x.unsqueeze(0).expand(3, *n.shape), np.broadcast_to(n, (3, *n.shape))
    return _reshaped(x, n, pick)


def _reshaped(x: Tensor, n: Array, pick: random.Random) -> tuple[Tensor, Array]:
    left, shape = n.size, []
    while left > 1 and len(shape) < 3:
        divisors = [d for d in range(1, left + 1) if left % d == 0]
        shape.append(pick.choice(divisors))
        left //= shape[-1]
    shape.append(left)
    return x.reshape(*shape), n.reshape(shape)


@pytest.mark.parametrize("block", range(4))
def test_chains_of_movement_against_numpy(block: int) -> None:
    for seed in range(block, count(800), 4):
        pick = random.Random(seed)
        shape = tuple(pick.choice((1, 2, 3, 4, 6, 8)) for _ in range(pick.randint(1, 3)))
        n = np.arange(1, np.prod(shape) + 1, dtype=np.int32).reshape(shape)
        x, story = Tensor(n), [f"arange{shape}"]
        for _ in range(pick.randint(1, MOVES)):
            x, n = moved(x, n, pick)
            story.append(str(n.shape))
        assert len(kernels(x)) <= 1
        actual = x.numpy()
        assert actual.shape == n.shape and (actual == n).all(), f"seed {seed}: {' -> '.join(story)}"
