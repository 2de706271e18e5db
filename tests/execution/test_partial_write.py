"""A write to a part of memory, in place, computes and stores the part alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.tensor.jit.support import held, numbers
from workbench import Context, Device, Tensor, TinyJit
from workbench.execution import realize
from workbench.ir.node.ops import Ops
from workbench.ir.schedule.plan import ScheduleItem
from workbench.pipeline import Tuner

SHAPE = (2, 8, 4)
# fmt: off
PARTS: list[tuple[Any, bool]] = [  # and whether the loops are those of the part
    (np.s_[:, 3:4], True), (np.s_[1], True), (np.s_[:, 2:5, 1:3], True), (np.s_[0, 0, 0], True),
    (np.s_[..., 3], True), (np.s_[:, :7], True), (np.s_[:, -1, ::-1], True), (np.s_[:, ::2], False),
    (np.s_[:], True), (np.s_[:, [3]], True), (np.s_[:, [3, 5]], False),
]
# fmt: on


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of elements that each kernel stores, as they run."""
    run, sizes = realize.run_item, []

    def noted(item: ScheduleItem, tuner: Tuner) -> None:
        if item.kernel is not None:
            axes = [n for n in item.kernel.src[0].src[1:] if n.op is Ops.RANGE]
            sizes.append(math.prod(axis.extent for axis in axes))
        run(item, tuner)

    monkeypatch.setattr(realize, "run_item", noted)
    return sizes


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_a_part_is_written_alone(steps: list[int], device: str) -> None:
    with Context(DEV=device):
        for index, is_part in PARTS:
            array = numbers(SHAPE, 1)
            value = numbers(array[index].shape, 2)
            tensor, new = held(array), held(value)
            steps.clear()
            tensor[index] = new * 2 + 1
            tensor.realize()
            array[index] = value * 2 + 1
            np.testing.assert_array_equal(tensor.numpy(), array)
            assert (steps == [value.size]) is is_part, (index, steps)


def test_what_reads_the_old_elements_is_right() -> None:
    array = numbers(SHAPE, 3)
    tensor = held(array)
    for _ in range(2):  # twice in a value, two parts in a kernel, the part of its own elements
        tensor[:, 2:4] = tensor[:, 2:4] * 2 + tensor[:, 2:4]
        tensor[:, 5] = 7
        tensor[1, 1:3] += 1
        tensor.realize()
        array[:, 2:4] = array[:, 2:4] * 2 + array[:, 2:4]
        array[:, 5] = 7
        array[1, 1:3] += 1
        np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-6)
    tensor[:, 1:4] = tensor[:, 4:1:-1]  # reads what it would overwrite: not in place
    array[:, 1:4] = array[:, 4:1:-1].copy()
    np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-6)


def test_a_replay_writes_the_part_of_its_state(steps: list[int]) -> None:
    cache, total = held(np.zeros(SHAPE, np.float32)), np.zeros(SHAPE, np.float32)

    def store(x: Tensor) -> Tensor:
        cache[:, 2:3] = x
        return cache.sum()

    call = TinyJit(store)
    for n in range(5):
        x = numbers((2, 1, 4), n)
        total[:, 2:3] = x
        assert np.isclose(call(held(x)).item(), total.sum(), atol=1e-4)
        np.testing.assert_array_equal(cache.numpy(), total)
    assert steps[-2] == 8


@pytest.mark.parametrize("device", ["LLVM", "C", "PYTHON"])
def test_one_position_that_is_computed_is_written_alone(steps: list[int], device: str) -> None:
    """As a cache of keys and values is written; an index that is outside writes nothing."""
    if not Device.available(device):
        pytest.skip(f"needs {device}")
    with Context(DEV=device):
        array = numbers(SHAPE, 4)
        tensor, wide = held(array), held(np.zeros(300, np.float32))
        for place in (3, 0, 7, -1, -8, 8, 1000):
            value = numbers((2, 1, 4), place % 9)
            position = held(np.int32([place - 1])) + 1  # not known when it is written
            new = held(value)
            steps.clear()
            tensor[:, position] = new * 2
            tensor.realize()
            if -8 <= place < 8:
                array[:, [place]] = value * 2
            np.testing.assert_array_equal(tensor.numpy(), array)
            assert steps == [8]
        row, column = held(np.int32([1])), held(np.int32([6]))
        tensor[row, column] = 3
        array[1, 6] = 3
        np.testing.assert_array_equal(tensor.numpy(), array)
        # A position that wraps is at several elements.
        bytes_of = Tensor.arange(300).cast("uint8")
        wide.assign(bytes_of.eq(held(np.uint8([7]))).where(5.0, wide)).realize()
        assert np.flatnonzero(wide.numpy()).tolist() == [7, 263]


def test_a_replay_writes_at_the_position_of_its_argument(steps: list[int]) -> None:
    cache, expected = held(np.zeros(SHAPE, np.float32)), np.zeros(SHAPE, np.float32)

    def store(position: Tensor, x: Tensor) -> Tensor:
        cache[:, position] = x
        return cache.sum()

    call = TinyJit(store)
    for n in range(6):
        x = numbers((2, 1, 4), n)
        expected[:, [n]] = x
        total = call(held(np.int32([n])), held(x)).item()
        assert np.isclose(total, expected.sum(), atol=1e-4)
        np.testing.assert_array_equal(cache.numpy(), expected)
    assert 8 in steps and 64 not in steps[-2:-1]
