"""Random chains of movement against numpy, and chains that are undone step by step."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support import count
from workbench import Context, Tensor

Values = np.ndarray[Any, Any]
DTYPES = (np.float32, np.float16, np.float64, np.int8, np.uint16, np.int64, np.bool_)
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)


class State(NamedTuple):
    tensor: Tensor
    values: Values


def made(pick: random.Random) -> State:
    """Return a small tensor, now and then without elements."""
    sizes = (1, 2, 3, 4, 5, 6, 7, 8) if pick.random() < 0.95 else (0, 2)
    shape = tuple(pick.choice(sizes) for _ in range(pick.choice((1, 2, 2, 3))))
    dtype = np.dtype(pick.choice(DTYPES))
    values = np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)
    if dtype.kind == "f" and values.size:
        for special in pick.sample(SPECIAL, pick.randint(0, 4)):
            values.ravel()[pick.randrange(values.size)] = special
    elif dtype.kind == "b":
        values = np.array([pick.random() < 0.5 for _ in range(values.size)], bool)
        values = values.reshape(shape)
    return State(Tensor(values).realize(), values)


def fill_of(values: Values, pick: random.Random) -> Any:
    if values.dtype.kind == "f":
        return pick.choice((0.0, *SPECIAL, 2.5))
    return pick.choice((0, 1))


def step(state: State, pick: random.Random) -> State:
    """Return the state after a random move."""
    t, v = state
    axis = pick.randrange(v.ndim)
    size = v.shape[axis]
    match pick.choice("permute flip reshape pad shrink roll repeat cat every".split()):
        case "permute":
            order = tuple(pick.sample(range(v.ndim), v.ndim))
            return State(t.permute(*order), v.transpose(order))
        case "flip":
            return State(t.flip(axis), np.flip(v, axis))
        case "reshape":
            return reshaped(state, pick)
        case "pad" if v.size < 200:
            box = [(pick.randint(0, 2), pick.randint(0, 2)) for _ in v.shape]
            fill = fill_of(v, pick)
            padded = np.pad(v, box, constant_values=fill)
            return State(t.pad(box, value=fill), padded)
        case "shrink":
            low = pick.randint(0, size)
            high = pick.randint(low, size)
            cut = tuple(slice(low, high) if a == axis else slice(None) for a in range(v.ndim))
            return State(t[cut], v[cut]) if pick.random() < 0.5 or high > low else state
        case "roll":
            by = pick.randint(-size, size)
            return State(t.roll(by, axis), np.roll(v, by, axis))
        case "repeat" if v.size < 200:
            times = tuple(pick.choice((1, 2, 3)) if a == axis else 1 for a in range(v.ndim))
            if pick.random() < 0.5:
                return State(t.repeat(*times), np.tile(v, times))
            return State(t.repeat_interleave(times[axis], axis), np.repeat(v, times[axis], axis))
        case "cat" if size:
            return cut_and_joined(state, axis, pick)
        case "every" if size:
            return sorted_by_rest(state, axis, pick)
    return state


def reshaped(state: State, pick: random.Random) -> State:
    t, v = state
    left, shape = v.size, []
    while left > 1:
        size = pick.choice([n for n in range(2, left + 1) if left % n == 0])
        shape.append(size)
        left //= size
    if not v.size:
        shape = [*v.shape]
    shape.insert(pick.randint(0, len(shape)), 1)
    if len(shape) > 5:
        shape = [v.size]
    return State(t.reshape(*shape), v.reshape(shape))


def cut_and_joined(state: State, axis: int, pick: random.Random) -> State:
    """Cut in pieces along an axis and join them, mostly in the same order."""
    t, v = state
    cuts = sorted(pick.sample(range(v.shape[axis] + 1), min(2, v.shape[axis])))
    sizes = np.diff([0, *cuts, v.shape[axis]]).tolist()
    order = list(range(len(sizes)))
    if pick.random() < 0.3:
        pick.shuffle(order)
    tensors, arrays = t.split(sizes, axis), np.split(v, cuts, axis)
    return State(
        Tensor.cat(*[tensors[i] for i in order], dim=axis),
        np.concatenate([arrays[i] for i in order], axis),
    )


def sorted_by_rest(state: State, axis: int, pick: random.Random) -> State:
    """Join every k-th element of an axis to stacks, mostly back in order."""
    t, v = state
    size = v.shape[axis]
    k = pick.choice([n for n in range(1, size + 1) if size % n == 0])
    cuts = [
        tuple(slice(i, None, k) if a == axis else slice(None) for a in range(v.ndim))
        for i in range(k)
    ]
    place = axis + (pick.random() < 0.7)
    stacked = Tensor.stack(*[t[cut] for cut in cuts], dim=place)
    arrays = np.stack([v[cut] for cut in cuts], place)
    return State(stacked.reshape(*v.shape), arrays.reshape(v.shape))


def assert_same(state: State, what: str) -> None:
    actual = state.tensor.numpy()
    assert actual.dtype == state.values.dtype and actual.shape == state.values.shape
    np.testing.assert_array_equal(actual, state.values, what)
    if actual.dtype.kind == "f":
        known = ~np.isnan(actual)
        signs = np.signbit(actual)[known], np.signbit(state.values)[known]
        np.testing.assert_array_equal(*signs, what)


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_chains_agree_with_numpy(device: str) -> None:
    with Context(DEV=device):
        for seed in range(count(2_000, 40)):
            pick = random.Random(seed)
            state = made(pick)
            for _ in range(pick.randint(1, 6)):
                state = step(state, pick)
            assert_same(state, f"seed {seed}")


def there_and_back(t: Tensor, pick: random.Random, steps: int) -> Tensor:
    """Return a tensor after `steps` moves that lose no element, each undone, the last first."""
    if not steps:
        return t
    shape, axis = t.shape, pick.randrange(t.ndim)
    size = shape[axis]
    match pick.choice("permute flip reshape pad circular roll repeat beside".split()):
        case "permute":
            order = pick.sample(range(t.ndim), t.ndim)
            moved = there_and_back(t.permute(*order), pick, steps - 1)
            return moved.permute(*np.argsort(order).tolist())
        case "flip":
            return there_and_back(t.flip(axis), pick, steps - 1).flip(axis)
        case "reshape":
            other = (*shape[:axis], 1, *shape[axis:]) if t.ndim < 4 else (t.numel(),)
            return there_and_back(t.reshape(*other), pick, steps - 1).reshape(*shape)
        case "roll":
            by = pick.randint(-size, size)
            return there_and_back(t.roll(by, axis), pick, steps - 1).roll(-by, axis)
        case "repeat":
            start = pick.choice((0, size))
            times = [2 if a == axis else 1 for a in range(t.ndim)]
            moved = there_and_back(t.repeat(*times), pick, steps - 1)
            return moved.shrink(
                [(start, start + size) if a == axis else None for a in range(t.ndim)]
            )
        case "beside":
            other = Tensor.full(shape, 3, dtype=t.dtype)
            moved = there_and_back(other.cat(t, dim=axis), pick, steps - 1)
            return moved.shrink([(size, 2 * size) if a == axis else None for a in range(t.ndim)])
        case kind:
            box = [(pick.randint(0, min(2, n)), pick.randint(0, min(1, n))) for n in shape]
            if kind == "circular":  # in several axes at once, that is many pieces
                box = [p if a == axis else (0, 0) for a, p in enumerate(box)]
            mode = "constant" if kind == "pad" else kind
            moved = there_and_back(t.pad(box, mode=mode), pick, steps - 1)
            return moved.shrink(
                [(before, before + n) for (before, _), n in zip(box, shape, strict=True)]
            )


def test_what_is_undone_step_by_step_needs_no_kernel() -> None:
    pick, run = random.Random(3), 0
    for number in range(count(1_500)):
        state = made(pick)
        moved = there_and_back(state.tensor, pick, pick.randint(1, 3))
        run += len(moved.schedule())
        assert_same(State(moved, state.values), f"number {number}")
    assert run == 0
