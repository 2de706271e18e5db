"""TinyJit: replays agree with numpy, run no Python, and cost little beyond their launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tensor.jit.support import held, numbers
from workbench import Device, GlobalCounters, Tensor, TinyJit
from workbench.backends.native import program
from workbench.base.trace import observe
from workbench.execution import replay

SHAPES = [(1,), (7,), (3, 5), (4, 1, 6), (16, 16), (2, 3, 4, 5), (33, 65), (1000,)]


WEIGHT = np.float32(np.linspace(-1, 1, 5))


# fmt: off
FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    # name: of tensors, of arrays; each of two inputs of one shape
    "one kernel": (lambda a, b: a * b + 1, lambda a, b: a * b + 1),
    "two kernels": (lambda a, b: ((a + b).contiguous() * 2), lambda a, b: (a + b) * 2),
    "a reduction": (lambda a, b: (a * b).sum(), lambda a, b: (a * b).sum()),
    "an input unused": (lambda a, b: a + 2, lambda a, b: a + 2),
    "a view of a result": (
        lambda a, b: (a - b).reshape(-1).flip(0), lambda a, b: (a - b).reshape(-1)[::-1]),
    "realised inside": (
        lambda a, b: (a + b).realize() * b, lambda a, b: (a + b) * b),
    "a piece of a value": (
        lambda a, b: (a + b).reshape(-1).contiguous()[: a.numel() // 2 + 1].realize() + 1,
        lambda a, b: (a + b).reshape(-1)[: a.size // 2 + 1] + 1),
    "constants inside": (
        lambda a, b: a * Tensor.full(a.shape, 3.0) + Tensor.ones(1),
        lambda a, b: a * np.float32(3) + 1),
    "data inside": (
        lambda a, b: a.reshape(-1, 1) * Tensor(WEIGHT), lambda a, b: a.reshape(-1, 1) * WEIGHT),
}
# fmt: on


@pytest.mark.parametrize("name", FUNCTIONS)
def test_replays_agree_with_numpy(name: str, device: str) -> None:
    function, oracle = FUNCTIONS[name]
    for shape in SHAPES:
        call, results = TinyJit(function), []
        for seed in range(0, 10, 2):
            a, b = numbers(shape, seed), numbers(shape, seed + 1)
            results.append((call(held(a), held(b)), oracle(a, b)))
        assert call.count >= 1
        for actual, expected in results:  # the earlier ones are what they were
            np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_replay_runs_no_python_and_schedules_nothing() -> None:
    ran = []

    def function(x: Tensor) -> Tensor:
        ran.append(1)
        return ((x + 1).contiguous() * 2).contiguous() - x

    call = TinyJit(function)
    for n in range(5):
        assert call(held(np.full(3, n, np.float32))).tolist() == [n + 2.0] * 3
    assert len(ran) == 2 and call.count == 3
    x = held(np.ones(3, np.float32))
    before = GlobalCounters.kernel_count
    call(x)
    assert GlobalCounters.kernel_count == before + 3, "replays are counted"
    call.reset()
    call(x)
    assert len(ran) == 3 and call.count == 0


def test_results_are_the_users_own() -> None:
    call = TinyJit(lambda x: x * 2)
    inputs = [held(np.full(4, n, np.float32)) for n in range(6)]
    first = [call(x) for x in inputs]
    later = [f + 1 for f in first]  # reads them after the others were made
    assert [f.tolist()[0] for f in first] == [0, 2, 4, 6, 8, 10]
    assert [f.tolist()[0] for f in later] == [1, 3, 5, 7, 9, 11]
    again = call(first[-1])  # a result as an input
    assert again.tolist() == [20.0] * 4 and call(again).tolist() == [40.0] * 4


def test_what_was_computed_before_is_no_constant() -> None:
    """The capture must not take a value of its input that somebody has computed already."""
    x, y = held(np.float32([1, 2])), held(np.float32([5, 6]))
    base = (x + 1).realize()
    also = x + 1
    also.realize()
    call = TinyJit(lambda v: (v + 1) * 2)
    for _ in range(2):
        assert call(x).tolist() == [4.0, 6.0]
    assert call(y).tolist() == [12.0, 14.0]
    assert base.tolist() == also.tolist() == [2.0, 3.0]


def test_a_function_that_fails_can_be_called_again() -> None:
    fails = [False, True, False, False]

    def function(x: Tensor) -> Tensor:
        if fails.pop(0):
            raise KeyError("mine")
        return x + 1

    call = TinyJit(function)
    call(Tensor([1.0]))
    with pytest.raises(KeyError, match="mine"):
        call(Tensor([1.0]))
    assert [call(Tensor([n])).item() for n in (1.0, 2.0)] == [2.0, 3.0]


def test_an_interrupt_while_memory_moves_is_made_good(monkeypatch: pytest.MonkeyPatch) -> None:
    call = TinyJit(lambda x: x + 1)
    x, y = held(np.float32([1])), held(np.float32([5]))
    for _ in range(3):
        call(x)

    def interrupted(uses: object, memory: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(replay, "_move", interrupted)
        call(y)
    assert [call(y).item(), call(x).item()] == [6.0, 2.0]


def test_one_in_another_is_captured_with_it() -> None:
    inner = TinyJit(lambda x: x + 1)
    outer = TinyJit(lambda x: inner(x) * 2)
    for n in range(5):
        assert outer(held(np.float32([n]))).item() == 2.0 * (n + 1)
    assert outer.count >= 1


def test_between_devices() -> None:
    call = TinyJit(lambda x: (x + 1).to("PYTHON") * 2)
    for n in range(4):
        actual = call(held(np.full(3, n, np.float32), "LLVM"))
        assert actual.device == "PYTHON" and actual.tolist() == [2.0 * n + 2] * 3


def test_the_launches_alone_run_on_the_memory_of_the_last_call() -> None:
    call = TinyJit(lambda x: (x + 1).contiguous() * 2)
    for n in range(4):
        result = call(held(np.float32([n])))
    before = GlobalCounters.kernel_count
    call.launch()
    assert result.item() == 8.0 and GlobalCounters.kernel_count == before


@pytest.mark.skipif(not Device.available("LLVM"), reason="needs LLVM")
def test_a_replay_costs_little_beyond_its_launches() -> None:
    """Nothing is planned, rewritten or compiled: no pass runs."""
    x = held(np.ones(64, np.float32))

    def work(v: Tensor) -> Tensor:
        return (v * 2).contiguous() + 1

    call = TinyJit(work)
    for _ in range(3):
        call(x)
    with observe() as planned:
        work(x).realize()
    with observe() as replayed:
        call(x)
    assert planned.records and not replayed.records


@pytest.mark.parametrize("device", [d for d in ("LLVM", "C") if Device.available(d)])
@pytest.mark.parametrize("slice_s", [program.SLICE_S, 0.0])
def test_kernels_that_run_in_one_native_call(
    device: str, slice_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels on one and on several threads, in one group and in groups of one."""
    monkeypatch.setattr(program, "SLICE_S", slice_s)

    def work(v: Tensor, state: Tensor) -> Tensor:
        for n in range(20):
            v = (v + n).contiguous()
        big = (v.reshape(1, -1) * Tensor.ones(2000, 1, device=device)).contiguous()
        state += 1
        return big.sum(0) + state

    call, state = TinyJit(work), Tensor(np.float32([0]), device=device).realize()
    start = GlobalCounters.kernel_count
    counts = []
    for n in range(1, 7):
        x = np.float32(np.arange(100) + n)
        result = call(Tensor(x, device=device).realize(), state)
        np.testing.assert_allclose(result.numpy(), (x + 190) * 2000 + n, rtol=1e-6)
        counts.append(GlobalCounters.kernel_count - start)
        start = GlobalCounters.kernel_count
    assert counts[2:] == [call.count] * 4
