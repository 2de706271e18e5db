"""Movement that is undone needs no kernel, and is a view or a copy as it was with one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support import LONG, by_rows
from workbench import Tensor, TinyJit

Move = Callable[[Tensor], Tensor]
VALUES = np.arange(40, dtype=np.float32).reshape(10, 4)


def made() -> Tensor:
    return Tensor(VALUES).realize()


VIEWS: dict[str, Move] = {
    "permuted twice": lambda a: a.permute(1, 0).permute(1, 0),
    "flipped twice": lambda a: a.flip(0, 1).flip(1).flip(0),
    "reshaped and back": lambda a: a.reshape(4, 10).reshape(10, 4),
    "expanded to its shape": lambda a: a.expand(10, 4),
    "all of it": lambda a: a[:],
    "a reshape between": lambda a: a.T.reshape(40).reshape(4, 10).T,
    "cut axes, swapped and back": lambda a: (
        a.reshape(2, 5, 4).permute(1, 0, 2).reshape(1, 5, 2, 4).permute(0, 2, 1, 3).reshape(10, 4)
    ),
}
COPIES: dict[str, Move] = {
    "halves": lambda a: a[:5].cat(a[5:]),
    "columns": lambda a: Tensor.cat(*a.split(1, dim=1), dim=1),
    "pieces of a view": lambda a: a.T[:1].cat(a.T[1:3], a.T[3:]).T,
    "views of pieces": lambda a: a[:5].T.cat(a[5:].T, dim=1).T,
    "flipped pieces": lambda a: a[6:].flip(0).cat(a[:6].flip(0)).flip(0),
    "a stack of rows": lambda a: Tensor.stack(*[a[i] for i in range(10)]),
    "a piece of what is padded": lambda a: a.pad(((1, 2), (0, 0)))[1:-2],
    "a piece of a piece": lambda a: a.pad(((1, 2), (3, 1)))[1:-2, 3:-1],
    "padded with infinity": lambda a: a.pad(((1, 2), (3, 1)), value=float("inf")).T[3:-1, 1:-2].T,
    "padded around": lambda a: a.pad(((1, 2), (3, 1)), mode="circular")[1:-2, 3:-1],
    "rolled and back": lambda a: a.roll(3, 0).roll(-3, 0),
    "rolled around": lambda a: a.roll(17).roll(19).roll(4),
    "the first of two": lambda a: a.repeat(2, 1)[:10],
    "one across both": lambda a: a.repeat(2, 1)[7:17].roll(7, 0),
    "one of each three": lambda a: a.repeat_interleave(3, 0)[1::3],
    "even and odd rows": lambda a: Tensor.stack(a[0::2], a[1::2], dim=1).reshape(10, 4),
    "every fifth row": lambda a: Tensor.stack(*[a[i::5] for i in range(5)], dim=1).reshape(10, 4),
}
REPEATED: dict[str, Move] = {  # a view that is not written to: ShapeError says why
    "one of many that are the same": lambda a: a.unsqueeze(0).expand(3, 10, 4)[1]
}
ALL = VIEWS | COPIES | REPEATED


@pytest.mark.parametrize("name", ALL)
def test_no_kernel_runs(name: str) -> None:
    moved = ALL[name](made())
    assert len(moved.schedule()) == 0
    np.testing.assert_array_equal(moved.numpy(), VALUES)


@by_rows("is_early", [False, True])
@by_rows("name", VIEWS | COPIES)
def test_a_write_is_seen_by_views_alone(name: str, is_early: bool) -> None:
    for is_moved_written in (False, True):
        a = made()
        moved = ALL[name](a)
        if is_early:
            moved.realize()
        written, other = (moved, a) if is_moved_written else (a, moved)
        written += 1
        written.realize()
        written[2:4] = -7
        new = VALUES + 1
        new[2:4] = -7
        np.testing.assert_array_equal(written.numpy(), new)
        expected = new if name in VIEWS else VALUES
        np.testing.assert_array_equal(other.numpy(), expected)


@pytest.mark.parametrize("name", ALL)
def test_a_capture_of_nothing_else_has_the_values_of_each_call(name: str) -> None:
    jit = TinyJit(ALL[name])
    for number in range(5):
        result = jit(Tensor(VALUES + number).realize())
        np.testing.assert_array_equal(result.numpy(), VALUES + number)
    assert jit.count == 0


@by_rows("name", [*(VIEWS | COPIES)][:: 1 if LONG else 3])
def test_a_write_to_what_a_replay_returns_is_seen_by_views_alone(name: str) -> None:
    jit = TinyJit(ALL[name])
    for _ in range(4):
        a = made()
        moved = jit(a)
        moved += 1
        moved.realize()
        expected = VALUES + (name in VIEWS)
        np.testing.assert_array_equal(a.numpy(), expected)
        a += 1
        a.realize()
        np.testing.assert_array_equal(moved.numpy(), VALUES + 1 + (name in VIEWS))


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_keeps_its_value_in_a_replay(name: str) -> None:
    state = made()

    def step(by: Tensor) -> Tensor:
        old = COPIES[name](state)
        state.assign(state + by)
        return old.realize(state)

    jit = TinyJit(step)
    results = [jit(Tensor([1.0]).realize()) for _ in range(4)]
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result.numpy(), VALUES + number)
    np.testing.assert_array_equal(state.numpy(), VALUES + 4)


def test_pieces_in_another_order_are_copied() -> None:
    a = made()
    for moved, expected in (
        (a[5:].cat(a[:5]), np.concatenate([VALUES[5:], VALUES[:5]])),
        (a[:5].cat(a[4:]), np.concatenate([VALUES[:5], VALUES[4:]])),
        (a[:4].cat(a[5:]), np.concatenate([VALUES[:4], VALUES[5:]])),
        (a.flip(0).flip(1), VALUES[::-1, ::-1]),
        (a.roll(3, 0).roll(-2, 0), np.roll(VALUES, 1, 0)),
        (a.repeat(2, 1)[1:11], np.roll(VALUES, -1, 0)),
        (a[1:].pad(((1, 0), (0, 0))), np.pad(VALUES[1:], ((1, 0), (0, 0)))),
        (
            Tensor.stack(a[1::2], a[0::2], dim=1).reshape(10, 4),
            VALUES.reshape(5, 2, 4)[:, ::-1].reshape(10, 4),
        ),
    ):
        assert len(moved.schedule()) == 1
        np.testing.assert_array_equal(moved.numpy(), expected)
