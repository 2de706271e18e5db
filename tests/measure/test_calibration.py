"""How busy a machine is: a loop of known length beside each sample, on a clock of the test's."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from workbench import Opt, OptOps, Tensor, explore
from workbench.ir.nest.estimates import Estimates
from workbench.measure.kernel_time import STEPS, Calibration, calibration, doubts, measure_kernel
from workbench.measure.peak import run_cycles
from workbench.measure.speeds import CHAINS, Rate, Speeds
from workbench.measure.timing import CoreUse

REST_S = 1e-4
RATE = Rate(1e9, 1e9)
SPEEDS = Speeds(
    {"f32": RATE}, {"L1": RATE}, {"L1": RATE}, 1e-9, 1e-9, 1e-6, 2e-6, adds=Rate(1e10, 2e10)
)
BUSY = "the machine is busy: 2.1 times slower than at rest"


class Clock:
    """A clock that only runs of the loop and of kernels move; `slower` is how busy the machine
    is."""

    def __init__(self, slower: float = 1.0):
        self.now_s, self.slower = 0.0, slower
        self.loops: list[int] = []

    def __call__(self) -> float:
        return self.now_s

    def loop(self, length: int) -> None:
        self.loops.append(length)
        self.now_s += self.slower * length * REST_S

    def calibration(self) -> Calibration:
        """Return a calibration of loops of 1, 10 and 100 times REST_S."""
        lengths = (1, 10, 100)
        return Calibration([(partial(self.loop, n), n * REST_S) for n in lengths], self)


@pytest.mark.parametrize(("slower", "busy"), [(1.0, 1.0), (2.1, 2.1), (0.9, 1.0)])
def test_busy_is_a_ratio_to_rest(slower: float, busy: float) -> None:
    """A loop that is quicker than ever says that the machine is at rest."""
    beside = Clock(slower).calibration()
    assert beside.busy is None
    for _ in range(3):
        beside.take()
    assert beside.busy == pytest.approx(busy)


def test_the_loop_runs_as_long_as_the_sample_before_it() -> None:
    clock = Clock()
    beside, loops = clock.calibration(), []
    for length in (0, 0, 5.01, 30.01, 1e4):
        clock.now_s += length * REST_S
        clock.loops.clear()
        beside.take()
        loops.append(list(clock.loops))
    assert loops == [[1], [1], [1] * 5, [10] * 3, [100]]


def test_one_interruption_does_not_make_a_machine_busy() -> None:
    clock = Clock()
    beside = clock.calibration()
    for slower in (1.0, 1.0, 40.0, 1.0, 1.0):
        clock.slower = slower
        beside.take()
    assert beside.busy == pytest.approx(1.0)


def test_a_loop_without_its_core_counts_for_as_long_as_it_had_it() -> None:
    """Else a clock that is right beside it would be called 40 times slower."""
    clock = Clock()

    def away(length: int) -> None:
        clock.loop(length)
        clock.now_s += 40 * REST_S

    used = iter(CoreUse(n * REST_S, n) for n in range(10))
    beside = Calibration([(partial(away, 1), REST_S)], clock, use=lambda threads: next(used))
    beside.take()
    assert beside.busy == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("busy", "samples", "words"),
    [
        (None, (1.0, 1.1), []),
        (1.29, (1.0, 1.0, 1.0, 1.0, 1.0, 1.99), []),
        (2.1, (1.0, 1.0), [BUSY]),
        (1.0, (1.0, 2.0), ["the slowest sample took 2.0 times the fastest"]),
        (1.0, (1.0, 1.0, 1.3, 1.3), ["the samples lie far apart: ± 13%"]),
        (1.0, (1.0, 1.0, 1.1, 1.1), []),
        (12.4, (), ["the machine is busy: 12 times slower than at rest"]),
    ],
)
def test_doubts(busy: float | None, samples: tuple[float, ...], words: list[str]) -> None:
    assert doubts(busy, samples) == words


def test_a_time_without_undisturbed_samples_says_so() -> None:
    text = "the machine is busy: the kernel had 8.0% of a core"
    assert doubts(42.0, (1e-3,), 0.08) == [text], "how much slower a loop was adds nothing"
    taken = measure_kernel(lambda: None, "LLVM", Estimates(1, 1), 0.0)
    disturbed = replace(taken, median_s=0.025, samples_s=(0.025,), had=0.08)
    first, *others = str(disturbed).splitlines()
    assert first.startswith("25 ms (") and text in others


def test_a_time_says_how_busy_the_machine_was() -> None:
    """The samples are taken in turns with those of the loop, and both are printed."""
    clock = Clock(2.1)
    taken = measure_kernel(lambda: None, "LLVM", Estimates(1, 1), 0.0, beside=clock.calibration())
    assert clock.loops and taken.busy == pytest.approx(2.1)
    assert BUSY in str(replace(taken, samples_s=(1e-3,) * 3)).splitlines()
    alone = replace(taken, busy=None, samples_s=(1e-3,) * 3)
    assert "busy" not in str(alone)
    uneven = replace(alone, samples_s=(71e-6, 296e-6))
    assert str(uneven).endswith("the slowest sample took 4.2 times the fastest")


def test_the_loop_has_as_many_additions_under_way_as_a_core_can_begin() -> None:
    """One that waits for its own results is as fast beside a busy hardware thread: a kernel three
    times as slow there was called undisturbed."""
    beside = calibration(SPEEDS, 2)
    assert beside is not None
    (first, first_s), *_ = beside._loops
    loops = {n: run_cycles(threads=2, steps=STEPS[0], chains=n) for n in (1, CHAINS)}
    assert first is loops[CHAINS].run and loops[CHAINS].flops == CHAINS * loops[1].flops
    assert first_s == pytest.approx(loops[CHAINS].flops * 2 / 2e10 + 2e-6), (
        "at rest, on two threads"
    )


def test_a_loop_that_was_never_measured_says_nothing() -> None:
    assert calibration(replace(SPEEDS, adds=None), 1) is None
    beside = calibration(SPEEDS, 2)
    assert beside is not None
    beside.take()
    assert beside.busy is not None and beside.busy >= 1


def test_several_calls_say_how_far_they_differ() -> None:
    """Each call may be sure of itself: the machine changes between two."""
    (kernel,) = explore(Tensor(np.ones((8, 8), np.float32)).sum(1)).kernels
    first, second = (kernel.time(budget_s=0.01) for _ in range(2))
    assert first.earlier_s == () and "calls gave" not in str(first)
    assert second.earlier_s == (first.median_s,) and "2 calls gave" in str(second)
    assert kernel.apply(Opt(OptOps.UPCAST, "g0", 2)).time(budget_s=0.01).earlier_s == ()
    calls = replace(second, median_s=311e-6, earlier_s=(154e-6, 299e-6))
    assert "3 calls gave 154 µs to 311 µs" in str(calls)
