"""Calibration: a loop of known length beside each sample shows how busy the machine is.

The loop adds whole numbers in registers, so its time at rest is known from `speeds`: what it takes
longer is time that the cores gave to others, or ran slower. It runs for about as long as the sample
before it, in as few launches: a long sample is interrupted more often than a short one, and threads
that wait for each other at many ends lose more than those of one launch. A neighbour that only
fills the caches is not seen.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from workbench.base.errors import WorkbenchError
from workbench.measure.peak import run_cycles
from workbench.measure.speeds import Speeds

STEPS = (20_000, 200_000, 2_000_000)
"""Steps of the loops, which take about 0.1, 1 and 10 milliseconds; the last is a sample's most."""
BUSY = 1.3
"""From this ratio on a machine is called busy: less is the clock of a core beside others."""
UNEVEN = 2.0
"""From this ratio of the slowest sample to the fastest on a median says little."""


class Calibration:
    """Samples of loops, each with the seconds that it takes on a machine at rest, the shortest
    first. `clock` gives seconds."""

    def __init__(
        self,
        loops: Sequence[tuple[Callable[[], object], float]],
        clock: Callable[[], float] = time.perf_counter,
    ):
        self._loops, self._clock = loops, clock
        self._ended_s: float | None = None
        self._ratios: list[float] = []

    def take(self) -> None:
        """Take a sample, about as long as what ran since the one before."""
        start = self._clock()
        between = 0.0 if self._ended_s is None else start - self._ended_s
        fitting = [loop for loop in self._loops if loop[1] <= between]
        run, rest_s = (fitting or self._loops[:1])[-1]
        runs = max(1, round(min(between, self._loops[-1][1]) / rest_s))
        start = self._clock()
        for _ in range(runs):
            run()
        self._ended_s = self._clock()
        self._ratios.append((self._ended_s - start) / (runs * rest_s))

    @property
    def busy(self) -> float | None:
        """How many times as long the loop took as at rest, at least 1; None before a sample."""
        return max(1.0, statistics.median(self._ratios)) if self._ratios else None


def calibration(rest: Speeds, threads: int) -> Calibration | None:
    """Return a calibration on `threads` threads of a machine of these speeds at rest; None where
    the loop was not measured, and where it cannot run."""
    if not rest.cycle_s:
        return None
    try:
        loops = [run_cycles(threads=threads, steps=steps) for steps in STEPS]
    except WorkbenchError:  # no compiler of loops is here: a time is useful without it
        return None
    waiting_s = rest.launch(threads) - rest.launch(1)
    return Calibration([(p.run, p.flops * rest.cycle_s + waiting_s) for p in loops])


def doubts(busy: float | None, samples_s: Sequence[float]) -> list[str]:
    """Return why a time is not certain, in words: of how busy the machine was, and of its fastest
    and slowest sample."""
    words = []
    if busy is not None and busy >= BUSY:
        words.append(f"the machine is busy: {_times(busy)} times slower than at rest")
    least_s, most_s = min(samples_s, default=0.0), max(samples_s, default=0.0)
    if least_s and most_s / least_s >= UNEVEN:
        words.append(f"the slowest sample took {_times(most_s / least_s)} times the fastest")
    return words


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"
