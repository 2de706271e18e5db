"""A kernel that fails half way: each tensor has its value, or says that it was lost, and why."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from tests.support import count
from workbench import Tensor, TinyJit
from workbench.base.errors import WorkbenchError
from workbench.execution import realize
from workbench.execution.buffers import memory_of
from workbench.execution.replay import _Launches, _Step
from workbench.ir.schedule.plan import ScheduleItem
from workbench.pipeline import Tuner

SIZE = 6


class Failing:
    """`run_item`, which fails at call number `at`: before it has written, or in the middle."""

    def __init__(self, at: int, before: bool):
        self._run, self._at, self._before = realize.run_item, at, before
        self.count = 0

    def __call__(self, item: ScheduleItem, tuner: Tuner) -> None:
        self.count += 1
        if self.count == self._at:
            if not self._before:
                for node in item.outputs:
                    memory_of(node).array[: node.size // 2] = 77
            raise RuntimeError("the device is gone")
        self._run(item, tuner)


def written(random: Random, tensors: list[Any], arrays: list[Any]) -> None:
    """Write tensors and arrays alike, each of older values of others."""
    for _ in range(random.randint(2, 5)):
        to, a, b = (random.randrange(len(tensors)) for _ in range(3))
        match random.randrange(5):
            case 0:
                tensors[to] += 1
                arrays[to] = arrays[to] + 1
            case 1:
                tensors[to].assign(tensors[a] * 2 + tensors[b])
                arrays[to] = arrays[a] * 2 + arrays[b]
            case 2:
                tensors[to].assign(tensors[a].flip(0) + tensors[a].sum())
                arrays[to] = arrays[a][::-1] + arrays[a].sum()
            case 3:
                value = (tensors[a] + 1).contiguous().flip(0).contiguous() + tensors[b]
                tensors[to].assign(value)
                arrays[to] = (arrays[a] + 1)[::-1] + arrays[b]
            case _:
                tensors[to][1:3] = tensors[a][:2]
                arrays[to] = arrays[to].copy()
                arrays[to][1:3] = arrays[a][:2]


def test_each_tensor_has_its_value_or_is_lost_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    failures, losses = 0, 0
    for seed in range(count(2000, 40)):
        random = Random(seed)
        arrays = [np.int64([random.randint(-4, 4) for _ in range(SIZE)]) for _ in range(3)]
        tensors = [Tensor(array).realize() for array in arrays]
        device = random.choice(("LLVM", "PYTHON"))
        tensors = [t.to(device).realize() for t in tensors]
        written(random, tensors, arrays)
        failing = Failing(random.randint(1, 5), random.random() < 0.5)
        with monkeypatch.context() as patch:
            patch.setattr(realize, "run_item", failing)
            try:
                tensors[0].realize(*tensors[1:])
            except RuntimeError:
                failures += 1
        for tensor, array in zip(tensors, arrays, strict=True):
            try:
                np.testing.assert_array_equal(tensor.numpy(), array, f"seed {seed}")
            except WorkbenchError as error:
                losses += 1
                assert "the device is gone" in str(error), seed
                tensor.assign(Tensor(array, device=device))
                np.testing.assert_array_equal(tensor.numpy(), array, f"seed {seed}")
    assert failures > count(2000, 40) // 3 and 0 < losses < failures, (failures, losses)


def test_a_replay_that_fails_leaves_old_values_new_ones_or_words() -> None:
    losses = renewals = 0
    for at in range(8):
        start = [np.int32([n, 2 * n, 1]) for n in range(1, 4)]
        state = [Tensor(array).realize() for array in start]

        def step(x: Tensor, state: list[Tensor] = state) -> Tensor:
            for tensor in state:
                tensor += x
            state[0].assign(state[0].flip(0).contiguous() * 2)
            return (state[0] + state[1]).contiguous() + state[2]

        call, x = TinyJit(step), Tensor(np.int32([1, 2, 3])).realize()
        call(x)
        call(x)
        old = [tensor.numpy() for tensor in state]
        replay = call._state.captured.replay  # type: ignore[union-attr]
        launches = replay._rest
        if at >= launches.count:
            continue
        steps = [*launches._steps]
        steps[at] = _Step(_fail, steps[at].kernel)
        replay._rest = _Launches(steps)
        with pytest.raises(RuntimeError, match="gone"):
            call(x)
        new = [v + x.numpy() for v in old]
        new[0] = new[0][::-1] * 2
        for tensor, a, b in zip(state, old, new, strict=True):
            try:
                actual = tensor.numpy()
            except WorkbenchError as error:
                assert "the device is gone" in str(error)
                losses += 1
                tensor.assign(Tensor(a))
                continue
            is_new = np.array_equal(actual, b)
            assert is_new or np.array_equal(actual, a), (at, actual, a, b)
            renewals += is_new
            tensor.assign(Tensor(a))
        replay._rest = launches
        call(x)
        for tensor, b in zip(state, new, strict=True):
            np.testing.assert_array_equal(tensor.numpy(), b)
    assert losses and renewals


def _fail(wait: bool = True) -> None:
    raise RuntimeError("the device is gone")


def test_what_a_function_does_not_reach_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Tensor([1, 2], device="PYTHON").realize()
    run = realize.run_item

    def run_elsewhere(item: ScheduleItem, tuner: Tuner) -> None:
        if item.device == "PYTHON":
            raise RuntimeError("the device is gone")
        run(item, tuner)

    x, there = (Tensor([1, 1], device=d).realize() for d in ("LLVM", "PYTHON"))
    monkeypatch.setattr(realize, "run_item", run_elsewhere)
    failing += 1
    state = Tensor([1, 2], device="LLVM").realize()
    state += 1
    call = TinyJit(lambda x: x + state)
    other = TinyJit(lambda x: x + failing)
    for _ in range(4):
        assert call(x).tolist() == [3, 4]
        with pytest.raises((RuntimeError, WorkbenchError), match="the device is gone"):
            other(there)
