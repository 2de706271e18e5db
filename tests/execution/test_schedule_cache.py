"""Schedules by structure: other memory has another result, another structure another schedule."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.agreement.expressions import case
from tests.support import by_rows, count
from tests.tensor.jit.support import held, numbers
from workbench import GlobalCounters, Tensor
from workbench.base.trace import observe
from workbench.cost import default_opts
from workbench.execution import schedule_cache
from workbench.ir.rewriting.passes import Memo
from workbench.ir.rewriting.rewrite import without

X, Y = numbers((6, 4), 1), numbers((6, 4), 2)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Return a list that grows with each graph that is scheduled, by 1 for one with kernels, by 0
    for copies alone; nothing is kept before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    schedule_cache._templates.clear()
    calls: list[int] = []
    make = schedule_cache.schedule

    def noted(*arguments: Any) -> Any:
        plan, simple = make(*arguments)
        calls.append(int(any(item.kernel is not None for item in plan.items)))
        return plan, simple

    monkeypatch.setattr(schedule_cache, "schedule", noted)
    yield calls
    schedule_cache._templates.clear()


@by_rows(
    "function",
    [
        lambda x, y: x * 2 + y,
        lambda x, y: (x @ y.T).softmax(axis=1),
        lambda x, y: (x + y).contiguous().sum(axis=0) - x[0],
        lambda x, y: x[1:4].cat(y[2:]).flip(0),
        lambda x, y: (x.reshape(3, 8) * 3).sum(axis=1, keepdim=True) + y[:3, :1],
        lambda x, y: (x > 0).where(x, y.max()),
        lambda x, y: x.contiguous()[2],
        lambda x, y: x * 0 + 1,
        lambda x, y: (x[:0] * 2 + y[6:]).contiguous().sum(axis=1),
    ],
)
def test_other_memory_of_one_structure(function: Callable[..., Any]) -> None:
    plain = function(Tensor(X), Tensor(Y)).numpy()
    for x, y in ((X, Y), (Y, X), (X * 2, Y - 1), (X, Y)):
        results = [function(held(x), held(y)).numpy() for _ in range(2)]
        np.testing.assert_array_equal(results[0], results[1])
        if x is X:
            np.testing.assert_allclose(results[0], plain, rtol=1e-5, atol=1e-5)


def test_a_structure_is_scheduled_once(made: list[int]) -> None:
    for seed in range(5):
        x = held(numbers((5,), seed))
        np.testing.assert_allclose(
            ((x * 2 + 1).sum()).numpy(), (numbers((5,), seed) * 2 + 1).sum(), rtol=1e-5
        )
    assert len(made) == 2, "the copy of the data, and the sum"


def test_another_process_reads_schedules_and_default_opts(
    made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [case(seed) for seed in range(count(500, 5))]
    first = [sample.run("LLVM")[0].numpy() for sample in cases]
    scheduled = sum(made)
    assert scheduled > len(cases) // 2
    schedule_cache._templates.clear()  # as another process has none
    monkeypatch.setattr(default_opts, "_memo", Memo())
    monkeypatch.delattr(default_opts, "heuristic")
    again = [sample.run("LLVM")[0].numpy() for sample in cases]
    assert sum(made) == scheduled
    for sample, one, other in zip(cases, first, again, strict=True):
        np.testing.assert_array_equal(one, other, sample.script(), strict=True)


def test_a_large_schedule_is_kept_on_disk_alone(
    made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule_cache, "MOST_NODES", 8)
    for values in (X, X, Y, X + 1):
        x = held(values)
        total = ((x * 2 + 1).exp() - x).softmax(1).sum()
        np.testing.assert_allclose(total.numpy(), 6.0, rtol=1e-5)
    assert len(made) == 2, "the copy of the data, and the sum"
    assert len(schedule_cache._templates) == 1


def test_a_kept_schedule_is_of_its_structure(made: list[int]) -> None:
    """What differs in a constant's bits, a dtype or an order has a key of its own on disk."""
    x, y = held(X), held(Y)
    for _ in range(2):
        for value in (0.0, -0.0, 1.0, np.nan, np.inf):
            np.testing.assert_array_equal((x + y * value).numpy(), X + Y * np.float32(value))
        np.testing.assert_array_equal(x.sum(0).numpy().shape, (4,))
        np.testing.assert_array_equal((x - y).numpy(), X - Y)
        np.testing.assert_array_equal((y - x).numpy(), Y - X)
        np.testing.assert_array_equal((x.cast("int32") + 1).numpy(), X.astype(np.int32) + 1)
        np.testing.assert_array_equal((x.cast("int64") + 1).numpy(), X.astype(np.int64) + 1)
        schedule_cache._templates.clear()


def test_what_differs_is_scheduled_anew(made: list[int]) -> None:
    x, y = held(X), held(Y)
    same, other = (x + x).numpy(), (x + y).numpy()
    np.testing.assert_array_equal(same, X + X)
    np.testing.assert_array_equal(other, X + Y)
    count = len(made)
    for value in (1.0, -0.0, 0.0, 2.0):
        np.testing.assert_array_equal((x * value).numpy(), X * np.float32(value))
        assert np.array_equal(np.signbit((x * value).numpy()), np.signbit(X * np.float32(value)))
    np.testing.assert_array_equal((x > 0).numpy(), X > 0)
    np.testing.assert_array_equal((x < 0).numpy(), X < 0)
    np.testing.assert_array_equal(x.sum(axis=0).numpy().shape, (4,))
    np.testing.assert_array_equal(x.sum(axis=1).numpy().shape, (6,))
    assert len(made) > count + 4
    count = len(made)
    with without(["mul-one"]):
        (x + y).numpy()
    assert len(made) == count + 1, "rules are switched off"
    with observe():
        (x + y).numpy()
    assert len(made) == count + 2, "a user looks at the passes"


def test_intermediate_values_of_living_tensors_are_computed_once() -> None:
    for seed in range(3):
        x = held(numbers((6, 4), seed))
        inner = (x * 3).contiguous()
        total = (inner + 1).sum().realize()
        before = GlobalCounters.kernel_count
        inner.realize()
        assert GlobalCounters.kernel_count == before
        np.testing.assert_allclose(inner.numpy(), numbers((6, 4), seed) * 3, rtol=1e-6)
        assert total.shape == ()


def test_writes_and_aliases_after_a_cached_schedule() -> None:
    for turn in range(3):
        x = held(X)
        view, old = x[1:], x * 1
        x += turn
        np.testing.assert_allclose(x.numpy(), X + turn, rtol=1e-6)
        np.testing.assert_allclose(view.numpy(), (X + turn)[1:], rtol=1e-6)
        np.testing.assert_array_equal(old.numpy(), X)
        view *= 2
        np.testing.assert_allclose(x.numpy()[1:], (X + turn)[1:] * 2, rtol=1e-6)


def test_random_numbers_are_drawn_anew() -> None:
    Tensor.manual_seed(3)
    first = [Tensor.rand(7).numpy() for _ in range(3)]
    Tensor.manual_seed(3)
    again = [Tensor.rand(7).numpy() for _ in range(3)]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1])


def test_the_cache_holds_no_memory() -> None:
    gc.collect()
    before = GlobalCounters.mem_used
    for seed in range(4):
        x = held(numbers((256, 64), seed))
        ((x + 1).contiguous().sum(axis=0) * 2).realize()
        (Tensor.arange(10_000) + (x.shape[0] - 256)).realize()  # no memory is read
        del x
    gc.collect()
    assert GlobalCounters.mem_used <= before + 4096
