"""The time of a kernel, its spread, and its share of this machine's peak.

Sections: Calibration; The time of a kernel, its spread, and its share of this machine's peak.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError, plural
from workbench.base.terminal import Printed
from workbench.ir.nest.estimates import Estimates
from workbench.measure import timing
from workbench.measure.bandwidth import measure_cold
from workbench.measure.peak import run_cycles
from workbench.measure.speeds import Speeds
from workbench.measure.timing import number_text, percent_text

# --------------------------------------------------------------------------------------------------
# Calibration: a loop of known length beside each sample shows how busy the machine is.
#
# The loop adds whole numbers in registers, so its time at rest is known from `speeds`: what it
# takes longer is time that the cores gave to others, or ran slower. It runs for about as long as
# the sample before it, in as few launches: a long sample is interrupted more often than a short
# one, and threads that wait for each other at many ends lose more than those of one launch. A
# neighbour that only fills the caches is not seen.

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


# --------------------------------------------------------------------------------------------------
# The time of a kernel, its spread, and its share of this machine's peak.


@dataclass(frozen=True, slots=True, repr=False)
class Timing(Printed):
    """The time of one run. `samples_s` are seconds per run; `fraction_of_peak` is the share of the
    peak of as many threads: of the fastest multiply-adds that were measured on this machine, in
    this session or before (None on an emulator, and without floats); `cold_s` is the median with
    cold caches (None: not measured), `cold_spread` its spread as a share of it; `bound` is the
    predicted bottleneck ("": unknown). The times of an emulator say nothing about the kernel;
    `on_random_inputs`, because its expression was loaded without its data. `busy` is how many
    times as long a loop of known length took beside the samples as on this machine at rest (None:
    unknown, or it ran on another device). `earlier_s` are the medians of earlier calls for the same
    kernel: one call does not see how much a machine changes between two."""

    device: str
    median_s: float
    min_s: float
    samples_s: tuple[float, ...]
    gflops: float
    gbytes_per_s: float
    fraction_of_peak: float | None
    cold_s: float | None = None
    bound: str = ""
    is_emulator: bool = False
    on_random_inputs: bool = False
    cold_spread: float | None = None
    busy: float | None = None
    earlier_s: tuple[float, ...] = ()

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        return timing.Samples(self.samples_s).spread_s / self.median_s

    def __str__(self) -> str:
        peak = (
            ""
            if self.fraction_of_peak is None
            else f", {percent_text(self.fraction_of_peak)} of peak"
        )
        emulated = "   EMULATOR" if self.is_emulator else ""
        emulated += ", on random inputs" if self.on_random_inputs else ""
        cold = "" if self.cold_s is None else f", cold {seconds_text(self.cold_s)}"
        if self.cold_spread is not None:
            cold += f" ± {self.cold_spread:.1%}"
        bound = f"\nbound by {self.bound}" if self.bound else ""
        sure = doubts(self.busy, self.samples_s) + over_calls(self.median_s, self.earlier_s)
        doubt = "".join(f"\n{words}" for words in sure)
        count = len(self.samples_s)
        spread = f" ± {self.spread:.1%}" if count > 1 else ""
        return (
            f"{seconds_text(self.median_s)}{spread} "
            f"(least {seconds_text(self.min_s)}, {plural(count, 'sample')}){cold}: "
            f"{number_text(self.gflops)} GFLOP/s{peak}, {number_text(self.gbytes_per_s)} GB/s"
            f"{emulated}{doubt}{bound}"
        )


def over_calls(median_s: float, earlier_s: Sequence[float]) -> list[str]:
    """Return the range of the medians of several calls, in words; nothing of one call."""
    if not earlier_s:
        return []
    medians = sorted((*earlier_s, median_s))
    ends = f"{seconds_text(medians[0])} to {seconds_text(medians[-1])}"
    return [f"{len(medians)} calls gave {ends}"]


def seconds_text(seconds: float) -> str:
    """Return a time in the unit that suits it: "12 µs", "3.4 ms", "2.1 s"."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def measure_kernel(
    run: Callable[[], object],
    device: str,
    estimates: Estimates,
    budget_s: float,
    cold: bool = False,
    beside: Calibration | None = None,
) -> Timing:
    """Return the Timing of `run`, one launch of a kernel with these estimates; a sample of the
    calibration is taken beside each of its own."""
    before = beside.take if beside else lambda: None
    samples = timing.measure(run, budget_s=budget_s, before=before)
    flushed = measure_cold({"run": run})["run"] if cold else None
    return Timing(
        device, samples.median_s, samples.min_s, samples.samples_s,
        estimates.flops / samples.median_s / 1e9, estimates.bytes / samples.median_s / 1e9,
        None, flushed.median_s if flushed else None,
        is_emulator=Device[device].is_emulator,
        cold_spread=flushed.spread if flushed else None,
        busy=beside.busy if beside else None,
    )  # fmt: skip
