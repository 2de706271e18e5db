"""`ex.replan(memory=..)`: the plan keeps to the budget, its run too, and results stay."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import workbench
from tests.support import by_rows, count
from tests.viz.exploration.test_replanning import program
from workbench import Tensor, WorkbenchError, explore
from workbench.backends.device import Device
from workbench.backends.memory import Block, BufferPool, size_class
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.exploration.memory_budget import bytes_of


@contextmanager
def peak() -> Iterator[list[int]]:
    """Collect the bytes in use, more than before, at each allocation."""
    pool = Device[Device.DEFAULT].memory.pool
    acquire, before, used = BufferPool.acquire, pool.used_bytes, [0]

    def watched(self: BufferPool, nbytes: int) -> Block:
        block = acquire(self, nbytes)
        if self is pool:
            used.append(pool.used_bytes - before)
        return block

    with patch.object(BufferPool, "acquire", watched):
        yield used


def input_bytes(ex: Exploration) -> int:
    """Return the bytes of what a run copies from tensors."""
    written = {b for item in ex.items for b in item.outputs}
    read = {b for item in ex.items for b in item.inputs} - written
    return sum(size_class(b.size * b.dtype.itemsize) for b in read)


def test_a_random_program_keeps_to_its_budget_or_says_the_least() -> None:
    """The run allocates no more than the plan says, and the results are numpy's."""
    outcomes: set[bool] = set()
    for seed in range(count(300, 20)):
        sample, tensors, values = program(seed)
        ex = explore(*tensors)
        if not ex.items:
            continue
        budget = max(1, int(ex.memory_plan.peak_bytes * random.Random(seed).uniform(0.7, 1.2)))
        text = f"{sample.script()}\nexplore(..).replan(memory={budget})"
        try:
            small = ex.replan(memory=budget)
        except WorkbenchError as error:
            small = ex.replan(memory=int(error.hint.partition("=")[2].rstrip(")")))
            outcomes.add(False)
        else:
            assert small.memory_plan.peak_bytes <= budget, text
            outcomes.add(True)
        assert small.budget is not None
        assert small.budget.peak_bytes[1] == small.memory_plan.peak_bytes, text
        with peak() as used:
            results = small.run()
        assert max(used) <= small.memory_plan.peak_bytes + input_bytes(small), text
        for actual, expected in zip(results, values, strict=True):
            np.testing.assert_allclose(
                actual, expected, rtol=1e-4, atol=2 * sample.tolerance(), err_msg=text
            )
    assert outcomes == {True, False}


def training() -> Exploration:
    """The gradients of two layers: what the first one stores is needed until the end."""
    random_numbers = np.random.default_rng(0)
    x, first, second = (
        Tensor(random_numbers.standard_normal(shape).astype(np.float32)).realize()
        for shape in ((256, 64), (64, 1024), (1024, 64))
    )
    loss = ((x @ first).gelu() @ second).square().mean()
    return explore(loss, *loss.gradient(first, second))


def test_values_are_computed_again_and_the_cost_is_said() -> None:
    ex = training()
    small = ex.replan(memory=int(0.9 * ex.memory_plan.peak_bytes))
    chart: Any = small.page.record(small).panels["memory"].data
    assert chart["budget"] == str(small.budget) and chart["budget"] in str(small.pane("memory"))
    assert small.budget is not None and small.budget.recomputed
    assert small.budget.kernels == (len(ex.kernels), len(small.kernels))
    words = str(small.budget)
    assert words in str(small) and "computed again by each reader" in words
    for actual, expected in zip(small.run(), ex.run(), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    assert "without a change" in str(ex.replan(memory="1 GiB").budget)
    assert ex.replan(memory="1 GiB").choices == ex.choices
    again = small.replan(before=dict.fromkeys(small.choices.before))
    assert again.choices.stored == small.choices.stored


def test_a_saved_plan_keeps_its_budget(tmp_path: Path) -> None:
    ex = training()
    small = ex.replan(memory=int(0.9 * ex.memory_plan.peak_bytes))
    assert workbench.load(small.save(tmp_path / "small.json")).budget == small.budget
    assert workbench.load(ex.save(tmp_path / "ex.json")).budget is None


def test_a_budget_that_cannot_be_kept_to_says_the_least() -> None:
    with pytest.raises(WorkbenchError, match="the least that another order") as refused:
        training().replan(memory="100 kB")
    assert refused.value.hint.startswith("ex.replan(memory=")


@by_rows(
    "memory",
    [
        *("", "64", "64 miles", "64 kiB", "64 iB", "-1 MiB", "1e400 MiB"),
        *(0, -5, float("nan"), float("inf"), True, [1]),
    ],
)
def test_what_is_no_budget(memory: Any) -> None:
    with pytest.raises(WorkbenchError, match="cannot plan in memory="):
        bytes_of(memory)


@by_rows(
    "memory, expected",
    [("64 MiB", 64 << 20), ("1 KiB", 1024), ("1.5 kB", 1500), (7, 7), (" 2GiB ", 2 << 30)],
)
def test_a_budget_in_bytes(memory: Any, expected: int) -> None:
    assert bytes_of(memory) == expected
