"""Times beside each other: a difference is told where there is one, and only there."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.kernel.support import SPEEDS, array
from workbench.base.errors import WorkbenchError
from workbench.kernel import kernel as kernel_module
from workbench.kernel import performance
from workbench.measure.side_by_side import MIN_ROUNDS, Ratio, added, compared, ratio, side_by_side
from workbench.measure.timing import Run, Samples
from workbench.tensor.tensor import Tensor
from workbench.viz import explore


def samples(times_as_long: float, seed: int, count: int = 31) -> list[float]:
    """Return times of a machine that gets three times as slow meanwhile, and jitters by 3 %."""
    jitter = np.random.default_rng(seed).normal(1, 0.03, count)
    return list(np.linspace(1, 3, count) * jitter * times_as_long)


def test_drift_cancels() -> None:
    speed_up = ratio(samples(1.05, 1), samples(1.0, 2))
    assert speed_up.is_measurable and speed_up.low < 1.05 < speed_up.high
    assert "% faster" in str(speed_up)


def test_slower_is_said_as_slower() -> None:
    speed_up = ratio(samples(1.0, 1), samples(2.0, 2))
    assert str(speed_up).startswith(("1.9", "2 ", "2.0")) and "times as slow" in str(speed_up)


def test_equal_runs_are_told_apart_once_in_a_hundred_times() -> None:
    wrong = sum(ratio(samples(1, 2 * n), samples(1, 2 * n + 1)).is_measurable for n in range(200))
    assert wrong <= 8


def test_less_than_a_hundredth_is_nothing() -> None:
    sure = Ratio(1.006, 1.004, 1.008, 50)
    assert not sure.is_measurable and str(sure) == "no measurable difference"


def test_a_small_difference_is_a_share() -> None:
    assert str(Ratio(1 / 1.03, 1 / 1.04, 1 / 1.02, 9)) == "3 % slower (2 to 4 %)"
    assert str(Ratio(1.5, 1.4, 1.6, 9)) == "50 % faster (40 to 60 %)"
    assert str(Ratio(1 / 3, 1 / 3.5, 1 / 2.5, 9)) == "3 times as slow (2.5 to 3.5)"


def test_few_rounds_say_nothing() -> None:
    speed_up = ratio([2.0, 2.0, 2.0], [1.0, 1.0, 1.0])
    assert not speed_up.is_measurable
    assert str(speed_up) == (
        f"too few rounds to compare: 3 of at least {MIN_ROUNDS}, a difference may be noise"
    )


def test_a_round_that_was_disturbed_does_not_count() -> None:
    """The ratio of a sample that lost its core to one that did not would say anything."""
    base = Samples((1.0, 300.0, 1.0, 1.0), shares=(1.0, 0.01, 1.0, 1.0))
    other = Samples((0.5, 0.5, 90.0, 0.5), shares=(1.0, 1.0, 0.01, 1.0))
    assert compared(base, other) == Ratio(2.0, 2.0, 2.0, 2)
    assert compared(base, Samples((9.0,), shares=(0.05,))).rounds == 0
    never = compared(Samples((9.0,), shares=(0.05,)), other)
    assert not never.is_measurable and str(never) == "the machine is busy: not compared"
    first = Samples((1.0, 1.0, 40.0, 40.0), shares=(1.0, 1.0, 0.1, 0.1))
    second = Samples((50.0, 50.0, 2.0, 2.0), shares=(0.1, 0.1, 1.0, 1.0))
    assert compared(first, second) == Ratio(0.5, 0.5, 0.5, 1), "no round that both have"


def test_times_of_several_runs_are_added_by_rounds() -> None:
    one, two = Samples((1.0, 1.0, 1.0)), Samples((3.0, 30.0), shares=(1.0, 0.1))
    both = added([one, two])
    assert both.samples_s == (4.0, 31.0) and both.times_s == (4.0,)
    assert both.shares[1] == pytest.approx(4 / 31) and added([]).samples_s == ()


def test_functions_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever they take: here the clock is ours."""

    def interleave(runs: Mapping[str, Run], *asked: Any, warms: bool) -> Any:
        assert warms, "what ran last has filled the caches with its own data"
        return {name: Samples((run(),) * 9) for name, run in runs.items()}  # type: ignore[arg-type]

    module = sys.modules[side_by_side.__module__]
    monkeypatch.setattr(module, "interleave", interleave)
    comparison = side_by_side({"short": lambda: 1e-3, "long": lambda: 3e-3})
    assert comparison.ratios["long"].is_measurable and comparison.ratios["long"].median < 0.7
    assert "times as slow" in str(comparison).splitlines()[1]


def test_a_kernel_beside_others() -> None:
    kernel = explore(array(40, 40) @ array(40, 40)).kernels[-1]
    comparison = kernel.compare_times(
        {"auto": kernel.optimized(), "sleep": lambda: time.sleep(0.002)}, budget_s=0.3
    )
    assert list(comparison.samples) == ["this", "auto", "sleep"]


@pytest.mark.parametrize("name", ["LLVM", "PYTHON"])
def test_a_timing_says_what_it_waits_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kernel_module, performance):  # a busy machine has other speeds
        monkeypatch.setattr(module, "speeds", lambda: SPEEDS)
    tensor = Tensor(np.ones((64, 64), np.float32), device="LLVM")
    kernel = explore(tensor @ tensor).kernels[-1]
    timing = kernel.time(name, budget_s=0.02, cold=True)
    assert timing.cold_s is not None and timing.cold_s > 0
    assert "cold" in str(timing)
    assert bool(timing.bound) == (name == "LLVM")
    assert str(kernel.bound()).startswith("FMA latency: 1 independent accumulator")
    assert kernel.cost.predicted_s > 0


def test_the_example_of_a_comparison_has_the_users_names() -> None:
    weights, bias = (Tensor(np.ones((8, 8), np.float32)).realize() for _ in "wb")
    kernel = explore(weights @ bias).kernels[0]
    with pytest.raises(WorkbenchError) as caught:
        kernel.compare_times({"numpy": 3})  # type: ignore[dict-item]
    arrays = "weights=weights.numpy(), bias=bias.numpy()"
    assert f"lambda {arrays}: f(weights, bias)" in caught.value.hint
