"""Movement and basic indexing against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support import by_rows
from tests.tensor.agree import assert_agrees, numbers
from workbench.ir.node.ops import Ops
from workbench.tensor import Tensor
from workbench.tensor.autograd.leaves import plain_value

pytestmark = pytest.mark.usefixtures("device")

Move = Callable[[Any], Any]

# fmt: off
MOVES: list[tuple[str, tuple[int, ...], Move, Move]] = [
    ("reshape", (3, 4), lambda t: t.reshape(2, 6), lambda x: x.reshape(2, 6)),
    ("reshape tuple", (3, 4), lambda t: t.reshape((12,)), lambda x: x.reshape(12)),
    ("reshape -1", (3, 4), lambda t: t.reshape(2, -1, 3), lambda x: x.reshape(2, -1, 3)),
    ("reshape None", (3, 4), lambda t: t.reshape(None, 2, 2), lambda x: x.reshape(3, 2, 2)),
    ("reshape to scalar", (1, 1), lambda t: t.reshape(()), lambda x: x.reshape(())),
    ("reshape scalar", (), lambda t: t.reshape(1, 1), lambda x: x.reshape(1, 1)),
    ("reshape empty", (0, 3), lambda t: t.reshape(3, 0), lambda x: x.reshape(3, 0)),
    ("view", (6,), lambda t: t.view(2, 3), lambda x: x.reshape(2, 3)),
    ("permute", (2, 3, 5), lambda t: t.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    ("permute negative", (2, 3, 5), lambda t: t.permute((-1, 0, 1)),
     lambda x: x.transpose(2, 0, 1)),
    ("transpose", (2, 3, 5), lambda t: t.transpose(), lambda x: x.swapaxes(0, 1)),
    ("transpose two", (2, 3, 5), lambda t: t.transpose(0, -1), lambda x: x.swapaxes(0, 2)),
    ("T", (2, 3), lambda t: t.T, lambda x: x.T),
    ("T of a vector", (3,), lambda t: t.T, lambda x: x.T),
    ("expand", (3, 1), lambda t: t.expand(3, 4), lambda x: np.broadcast_to(x, (3, 4))),
    ("expand leading", (3,), lambda t: t.expand(2, 3), lambda x: np.broadcast_to(x, (2, 3))),
    ("expand -1", (3, 1), lambda t: t.expand(-1, 4), lambda x: np.broadcast_to(x, (3, 4))),
    ("expand scalar", (), lambda t: t.expand(2, 3), lambda x: np.broadcast_to(x, (2, 3))),
    ("broadcast_to", (1, 3), lambda t: t.broadcast_to((4, 3)),
     lambda x: np.broadcast_to(x, (4, 3))),
    ("shrink", (5, 7), lambda t: t.shrink(((1, 4), None)), lambda x: x[1:4]),
    ("shrink to nothing", (5,), lambda t: t.shrink(((2, 2),)), lambda x: x[2:2]),
    ("pad", (2, 3), lambda t: t.pad(((1, 0), (2, 3))), lambda x: np.pad(x, ((1, 0), (2, 3)))),
    ("pad None", (2, 3), lambda t: t.pad((None, (2, 3))), lambda x: np.pad(x, ((0, 0), (2, 3)))),
    ("pad flat", (2, 3), lambda t: t.pad((1, 2)), lambda x: np.pad(x, ((0, 0), (1, 2)))),
    ("pad flat all", (2, 3), lambda t: t.pad((1, 2, 3, 0)),
     lambda x: np.pad(x, ((3, 0), (1, 2)))),
    ("pad value", (2, 3), lambda t: t.pad(((1, 1), (0, 2)), value=-1.5),
     lambda x: np.pad(x, ((1, 1), (0, 2)), constant_values=-1.5)),
    ("pad negative", (4, 3), lambda t: t.pad(((-1, 2), (0, -1))),
     lambda x: np.pad(x[1:, :-1], ((0, 2), (0, 0)))),
    ("flip", (3, 4), lambda t: t.flip(0), lambda x: np.flip(x, 0)),
    ("flip two", (3, 4), lambda t: t.flip((0, 1)), lambda x: np.flip(x)),
    ("flip more", (3, 4), lambda t: t.flip(0, -1), lambda x: np.flip(x)),
    ("squeeze", (1, 3, 1), lambda t: t.squeeze(), lambda x: x.squeeze()),
    ("squeeze one", (1, 3, 1), lambda t: t.squeeze(-1), lambda x: x.squeeze(-1)),
    ("squeeze other", (1, 3, 1), lambda t: t.squeeze(1), lambda x: x),
    ("unsqueeze", (3,), lambda t: t.unsqueeze(0), lambda x: x[None]),
    ("unsqueeze last", (3,), lambda t: t.unsqueeze(-1), lambda x: x[:, None]),
    ("unsqueeze scalar", (), lambda t: t.unsqueeze(0), lambda x: x[None]),
    ("flatten", (2, 3, 4), lambda t: t.flatten(), lambda x: x.reshape(-1)),
    ("flatten from", (2, 3, 4), lambda t: t.flatten(1), lambda x: x.reshape(2, 12)),
    ("flatten some", (2, 3, 4), lambda t: t.flatten(0, 1), lambda x: x.reshape(6, 4)),
    ("unflatten", (6, 4), lambda t: t.unflatten(0, (2, 3)), lambda x: x.reshape(2, 3, 4)),
    ("unflatten -1", (2, 12), lambda t: t.unflatten(-1, (3, -1, 2)),
     lambda x: x.reshape(2, 3, 2, 2)),
    ("unflatten nothing", (2, 0), lambda t: t.unflatten(1, (0, 5)), lambda x: x.reshape(2, 0, 5)),
    ("pad of nothing", (0, 3), lambda t: t.pad(((1, 2), None), value=7),
     lambda x: np.full((3, 3), 7, x.dtype)),
    ("pad to zero size", (3,), lambda t: t.pad(((-2, -1),)), lambda x: x[:0]),
    ("pad inf", (2, 2), lambda t: (t * 0).pad(((1, 0), (0, 1)), value=5),
     lambda x: np.pad(x * 0, ((1, 0), (0, 1)), constant_values=5)),
    ("flip nothing", (0, 3), lambda t: t.flip(0, 1), lambda x: x),
    ("flip one element", (1,), lambda t: t.flip(0), lambda x: x),
    ("permute scalar", (), lambda t: t.permute(), lambda x: x),
    ("permute nothing", (0, 3, 2), lambda t: t.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    ("expand nothing", (0, 1), lambda t: t.expand(2, 0, 3), lambda x: np.zeros((2, 0, 3), x.dtype)),
    ("expand to nothing", (1, 3), lambda t: t.expand(0, 3), lambda x: np.zeros((0, 3), x.dtype)),
    ("shrink scalar", (), lambda t: t.shrink(()), lambda x: x),
    ("repeat", (2, 3), lambda t: t.repeat(2, 1, 2), lambda x: np.tile(x, (2, 1, 2))),
    ("flatten scalar", (), lambda t: t.flatten(), lambda x: x.reshape(1)),
    ("pad of shrink", (6,), lambda t: t.shrink(((2, 5),)).pad(((2, 1),)),
     lambda x: np.pad(x[2:5], (2, 1))),
    ("shrink into padding", (3,), lambda t: t.pad(((0, 4),))[3:], lambda x: np.zeros(4, x.dtype)),
    ("many", (2, 3, 4),
     lambda t: t.permute(2, 0, 1).reshape(8, 3).flip(1).pad(((1, 0), None))[::2].T,
     lambda x: np.pad(np.flip(x.transpose(2, 0, 1).reshape(8, 3), 1), ((1, 0), (0, 0)))[::2].T),
]
INDICES: list[tuple[tuple[int, ...], Any]] = [
    ((5,), 0), ((5,), -1), ((5,), np.int64(2)), ((5,), slice(None)), ((5,), slice(1, 4)),
    ((5,), slice(-3, -1)), ((5,), slice(3, 1)), ((5,), slice(-100, 100)),
    ((5,), slice(None, None, 2)),
    ((6,), slice(None, None, 2)), ((7,), slice(1, None, 3)), ((7,), slice(1, 6, 4)),
    ((7,), slice(2, 3, 5)),
    ((5,), slice(None, None, -1)), ((5,), slice(None, None, -2)), ((6,), slice(None, None, -2)),
    ((7,), slice(5, 1, -3)), ((7,), slice(-2, None, -4)), ((7,), slice(1, 5, -1)),
    ((7,), slice(3, None, -9)),
    ((3, 4), 1), ((3, 4), (1, 2)), ((3, 4), (slice(None), -1)),
    ((3, 4), (slice(None, None, -1), slice(1, 3))),
    ((3, 4), (Ellipsis, 0)), ((3, 4), Ellipsis), ((3, 4), None),
    ((3, 4), (None, 1, None, slice(2))),
    ((2, 3, 4), (0, Ellipsis, slice(None, None, 3))), ((2, 3, 4), (Ellipsis, 1, slice(None))),
    ((2, 3, 4), (slice(None), None, 2)), ((), Ellipsis), ((), None), ((), ()),
    ((0, 3), slice(None)),
    ((0, 3), (slice(None), 1)), ((4, 0), 2),
    ((4, 5, 6), (slice(3, None, -2), 2, slice(None, None, 4))),
]
# fmt: on
NAMES = [row[0] for row in MOVES]


@by_rows(("name", "shape", "ours", "numpys"), MOVES, ids=NAMES)
def test_movement(name: str, shape: tuple[int, ...], ours: Move, numpys: Move) -> None:
    x = numbers(shape)
    assert_agrees(ours(Tensor(x)), numpys(x))


@by_rows(("name", "shape", "ours", "numpys"), MOVES, ids=NAMES)
def test_arithmetic_after_movement(
    name: str, shape: tuple[int, ...], ours: Move, numpys: Move
) -> None:
    x = numbers(shape, "int32")
    assert_agrees(ours(Tensor(x) + 1) * 2 - 1, numpys(x + 1) * 2 - 1)


@by_rows(("shape", "index"), INDICES, ids=str)
def test_indexing(shape: tuple[int, ...], index: Any) -> None:
    x = numbers(shape)
    assert_agrees(Tensor(x)[index], x[index])


def test_iteration_and_length() -> None:
    x = numbers((3, 2))
    assert len(Tensor(x)) == 3
    for row, want in zip(Tensor(x), x, strict=True):
        assert_agrees(row, want)


def test_what_moves_nothing_adds_no_node() -> None:
    t = Tensor(numbers((3, 4)))
    still = [
        t.reshape(3, 4), t.permute(0, 1), t.expand(3, 4), t.expand(-1, -1), t[:], t[...],
        t.shrink((None, (0, 4))), t.pad(((0, 0), None)), t.flip(()), t.squeeze(),
    ]  # fmt: skip
    assert all(plain_value(s.uop) is t.uop for s in still)


def test_movement_needs_no_memory() -> None:
    t = Tensor(numbers((3, 4))).realize()
    moved = plain_value(t.T.uop)
    assert moved.op is Ops.PERMUTE and moved.src[0] is t.uop


def test_pad_with_a_value_of_the_dtype() -> None:
    assert Tensor([1, 2]).pad((1, 0), value=9).tolist() == [9, 1, 2]
    assert Tensor([True]).pad((1, 1), value=1).tolist() == [True, True, True]


@pytest.mark.parametrize("fill", [0.0, -0.0, float("inf"), float("nan"), 1e-40])
def test_pad_with_special_values(fill: float) -> None:
    x = np.float32([1.0, -0.0])
    actual = Tensor(x).pad((1, 2), value=fill)
    want = np.pad(x, (1, 2), constant_values=np.float32(fill))
    assert_agrees(actual, want)
    assert (np.signbit(actual.numpy()) == np.signbit(want)).all()
    assert_agrees(Tensor(x).reciprocal().pad((1, 0), value=fill), np.float32([fill, 1, -np.inf]))


STEPS = [1, 2, 3, 7, -1, -2, -3, -7]


@by_rows("step", STEPS)
@by_rows("size", [0, 1, 2, 5, 9])
def test_every_slice(size: int, step: int) -> None:
    """All starts and stops of a short axis, with each step: values, and no ticket to nowhere."""
    x = np.arange(size * 2, dtype=np.int32).reshape(size, 2)
    t = Tensor(x)
    ends = [None, *range(-size - 1, size + 2)]
    cuts = [slice(a, b, step) for a in ends for b in ends]
    slices = {(str(x[c].shape), c.indices(size)): c for c in cuts}
    pieces = [t[c] for c in slices.values()]
    Tensor(0).realize(*pieces)
    for piece, c in zip(pieces, slices.values(), strict=True):
        assert_agrees(piece, x[c])
