"""Timing: batches, budgets, turns; and the peaks that speeds are told against."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, repeat
from types import SimpleNamespace

import pytest

from workbench.base.dtypes import dtypes
from workbench.measure import timing
from workbench.measure.peak import run_nothing, run_peak
from workbench.measure.timing import CoreUse, Samples, interleave, measure


def test_samples() -> None:
    samples = Samples((3.0, 1.0, 2.0, 9.0))
    assert (samples.min_s, samples.median_s) == (1.0, 2.5)
    assert samples.spread_s > 0
    assert Samples((1.0,)).spread_s == 0.0


class Clock:
    """A clock of our own; to wait is to move its hands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        own = SimpleNamespace(perf_counter=lambda: self.now)
        monkeypatch.setattr(timing, "time", own)

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_short_runs_are_batched(clock: Clock) -> None:
    measurement = measure(lambda: clock.wait(1e-6), samples=5)
    assert measurement.samples_s == pytest.approx([1e-6] * 5)
    assert measurement.batch >= timing.SAMPLE_S / 1.001e-6


def test_long_runs_are_not(clock: Clock) -> None:
    measurement = measure(lambda: clock.wait(0.002), samples=3)
    assert measurement.batch == 1 and len(measurement.samples_s) == 3


def test_what_takes_real_time_is_measured() -> None:
    measurement = measure(lambda: time.sleep(0.002), samples=3)
    assert measurement.batch == 1 and measurement.min_s >= 0.002


def test_the_budget_ends_it(clock: Clock) -> None:
    measurement = measure(lambda: clock.wait(0.01), budget_s=0.045, samples=1000)
    assert len(measurement.samples_s) == 4, "and a run that says how many are a sample"
    assert len(measure(lambda: clock.wait(9.0), budget_s=0.1).samples_s) == 1


def test_the_first_run_is_not_of_the_budget(clock: Clock) -> None:
    """A driver compiles in it, for seconds where a run takes microseconds."""
    times = iter([5.0])
    measurement = measure(lambda: clock.wait(next(times, 0.001)), budget_s=0.1)
    assert len(measurement.samples_s) == 15 and measurement.median_s < 0.01


def test_runs_take_turns_and_turn_round(clock: Clock) -> None:
    order: list[str] = []

    def noted(name: str) -> None:
        order.append(name)
        clock.wait(0.001)

    runs = {name: lambda name=name: noted(name) for name in "abc"}
    measurements = interleave(runs, samples=4)
    assert "".join(order[-12:]) == "abccbaabccba"
    assert [len(measurements[name].samples_s) for name in "abc"] == [4, 4, 4]


def test_a_run_that_is_not_timed_warms_up(clock: Clock) -> None:
    order: list[str] = []

    def noted(name: str) -> None:
        order.append(name)
        clock.wait(0.001)

    runs = {name: lambda name=name: noted(name) for name in "ab"}
    interleave(runs, samples=2, warms=True)
    assert "".join(order[-8:]) == "aabbbbaa"


class Cores(Clock):
    """A machine on which a run `computes`; `others` have its core in between, for some runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, others: Iterator[float]) -> None:
        super().__init__(monkeypatch)
        self.cpu_s, self.interruptions, self._others = 0.0, 0, others
        monkeypatch.setattr(
            timing, "core_use", lambda threads: CoreUse(self.cpu_s, self.interruptions)
        )

    def compute(self, seconds: float = 1e-3, parallel: float = 1.0) -> None:
        away_s = next(self._others, 0.0)
        self.now += seconds + away_s
        self.cpu_s += parallel * seconds
        self.interruptions += away_s > 0


def test_a_run_that_others_interrupt_is_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    cores = Cores(monkeypatch, cycle([0.0, 0.02, 0.3]))
    measurement = measure(cores.compute, budget_s=10.0, samples=4)
    assert measurement.times_s == pytest.approx([1e-3] * 4), "until so many are undisturbed"
    assert max(measurement.samples_s) == pytest.approx(0.301) and measurement.had is None
    assert measurement.median_s == pytest.approx(1e-3) == measurement.min_s


def test_what_is_always_interrupted_has_no_time_but_that_on_its_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cores = Cores(monkeypatch, cycle([0.019, 0.049]))
    measurement = measure(cores.compute, budget_s=1e9, samples=5)
    assert len(measurement.samples_s) == 5 * timing.TRIES, "and it is not tried for ever"
    assert measurement.median_s == pytest.approx(1e-3) and measurement.spread is None
    assert measurement.had == pytest.approx(0.035)


def test_one_undisturbed_sample_among_others_is_no_time() -> None:
    """It found caches and threads as other programs had left them: it took ten times as long."""
    disturbed = [timing.Sample(0.02, 0.05), timing.Sample(0.04, 0.05), timing.Sample(0.05, 0.05)]
    alone = Samples.of([*disturbed, timing.Sample(0.01)])
    assert alone.median_s == pytest.approx(2.25e-3) and alone.had == pytest.approx(0.2875)
    two = Samples.of([*disturbed, timing.Sample(0.01), timing.Sample(0.012)])
    assert two.median_s == pytest.approx(0.011) and two.had is None
    assert Samples.of([timing.Sample(3.0)]).had is None, "a slow run has one sample"


def test_what_waits_by_itself_is_not_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that sleeps, or waits for a GPU, uses no core; nobody takes it one."""
    cores = Cores(monkeypatch, repeat(0.0))
    measurement = measure(lambda: cores.compute(1e-3, parallel=0.01), samples=3)
    assert measurement.had is None and measurement.times_s == pytest.approx([1e-3] * 3)


@pytest.mark.parametrize(("parallel", "is_whole"), [(2.0, True), (1.5, True), (1.0, False)])
def test_a_run_on_several_threads_needs_them_all(
    monkeypatch: pytest.MonkeyPatch, parallel: float, is_whole: bool
) -> None:
    """Uneven parts leave a thread without work for a while; one that never began is missing."""
    cores = Cores(monkeypatch, repeat(0.0))

    class Launch:
        threads = 2

        def __call__(self) -> None:
            cores.compute(1e-3, parallel)

    assert (measure(Launch(), budget_s=0.1, samples=3).had is None) == is_whole


def test_without_a_count_of_interruptions_times_are_of_the_clock(clock: Clock) -> None:
    assert timing.core_use(1) is None
    measurement = measure(lambda: clock.wait(0.002), samples=3)
    assert measurement.shares == () and measurement.had is None


def test_this_system_counts_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    before = timing.core_use(1)
    if before is None:
        pytest.skip("this system does not")
    sum(range(10_000))
    after = timing.core_use(1)
    assert after is not None and after.cpu_s > before.cpu_s
    assert after.interruptions >= before.interruptions >= 0


@pytest.fixture
def collecting() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


@pytest.mark.usefixtures("collecting")
def test_garbage_collection_waits_and_comes_back() -> None:
    states = []

    def fail() -> None:
        states.append(gc.isenabled())
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure(fail)
    assert states == [False] and gc.isenabled()


def test_peaks() -> None:
    """A double takes twice the place, two threads do twice as much, and every number is updated:
    x = x * 0.5 + 0.5 comes to 1."""
    peak = run_peak(dtypes.float32)
    assert peak.flops == 2 * run_peak(dtypes.float64).flops
    assert run_peak(dtypes.float32, 2).flops == 2 * peak.flops
    assert run_peak(dtypes.float32, lanes=1, sums=1).flops * 12 <= peak.flops
    for loop in (peak, run_peak(dtypes.float64, 2)):
        loop.run()
    run_nothing(1)()
    run_nothing(2)()


def test_a_time_on_the_cores_lies_between_what_a_run_needs_and_the_clock() -> None:
    """The system counts other threads late: a share may be far too small."""
    disturbed = Samples((10e-3,), shares=(0.01,))
    assert disturbed.median_s == pytest.approx(0.1e-3)
    assert replace(disturbed, least_s=2e-3).median_s == pytest.approx(2e-3)
    assert replace(disturbed, least_s=1.0).median_s == pytest.approx(10e-3)
    assert Samples((10e-3,), least_s=1.0).median_s == 10e-3  # undisturbed: as the clock says
