"""The time of a kernel, its spread, and its share of this machine's peak.

Sections: Calibration; The time of a kernel.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError, plural
from workbench.base.terminal import Printed
from workbench.ir.nest.estimates import Estimates
from workbench.measure import timing
from workbench.measure.bandwidth import measure_cold
from workbench.measure.peak import run_cycles
from workbench.measure.speeds import CHAINS, Speeds, earlier_speeds
from workbench.measure.timing import number_text, percent_text
from workbench.pickles import pickled

# --------------------------------------------------------------------------------------------------
# Calibration: a loop of known length next to each sample shows how slow the machine is.
#
# The loop adds integers in registers, so that its time on an idle machine is known from `speeds`.
# Additional time, without that in which other programs had its cores, means that the cores ran
# slower: their clock is lower, or another program runs on the other hardware thread of a core. Then
# a kernel is not interrupted, but only half of the core's instructions are its own. A loop that
# waits for its own results leaves room for the other thread, and would not notice it; this one has
# as many additions under way as the core can begin. The loop runs for about as long as the sample
# before it, since a long sample is interrupted more often than a short one. It has few launches,
# since threads that wait for each other at the ends of many launches lose more time. It does not
# show a program that only fills the caches.

STEPS = (10_000, 100_000, 1_000_000)
"""Steps of the loops, which take about 0.1, 1 and 10 milliseconds. A sample takes at most as long
as the longest loop."""
BUSY = 1.3
"""From this ratio on a machine is called busy. A lower one may come from the clock of a core, which
is lower while other cores work."""
UNEVEN = 2.0
"""From this ratio of the slowest sample to the fastest on, the spread is printed as a doubt."""
WIDE = 0.1
"""From this spread on, as a share of the median, it is printed as a doubt as well."""


class Calibration:
    """Samples of `loops`: each is a run and its seconds on an idle machine, the shortest first.
    `clock` returns seconds. Those in which other programs had the cores of the `threads`, by their
    `use`, do not count."""

    def __init__(
        self,
        loops: Sequence[tuple[Callable[[], object], float]],
        clock: Callable[[], float] = time.perf_counter,
        threads: int = 1,
        use: Callable[[int], timing.CoreUse | None] | None = None,
    ):
        self._loops, self._clock = loops, clock
        self._threads, self._use = threads, use or timing.core_use
        self._ended_s: float | None = None
        self._ratios: list[float] = []

    def take(self) -> None:
        """Take a sample, about as long as the time since the last one."""
        start = self._clock()
        between = 0.0 if self._ended_s is None else start - self._ended_s
        fitting = [loop for loop in self._loops if loop[1] <= between]
        run, rest_s = (fitting or self._loops[:1])[-1]
        runs = max(1, round(min(between, self._loops[-1][1]) / rest_s))
        before, start = self._use(self._threads), self._clock()
        for _ in range(runs):
            run()
        self._ended_s = self._clock()
        took_s = self._ended_s - start
        share = timing.core_share(took_s, self._threads, before, self._use)
        self._ratios.append(share * took_s / (runs * rest_s))

    @property
    def busy(self) -> float | None:
        """The median ratio of a loop's time to its time on an idle machine, at least 1; None
        without samples."""
        return max(1.0, statistics.median(self._ratios)) if self._ratios else None


def calibration(rest: Speeds, threads: int) -> Calibration | None:
    """Return a calibration on `threads` threads of a machine that has the speeds `rest` when idle;
    None if `adds` were not measured, or the loop cannot run."""
    if rest.adds is None:
        return None
    try:
        loops = [run_cycles(threads=threads, steps=steps, chains=CHAINS) for steps in STEPS]
    except WorkbenchError:  # without a compiler; a time is useful without it
        return None
    waiting_s, add_s = rest.launch(threads) - rest.launch(1), threads / rest.adds.of(threads)
    return Calibration([(p.run, p.flops * add_s + waiting_s) for p in loops], threads=threads)


def doubts(busy: float | None, samples_s: Sequence[float], had: float | None = None) -> list[str]:
    """Return in words why a time is not certain: no sample `had` its cores, the machine was `busy`,
    or samples differ much."""
    if had is not None:
        return [busy_text(had)]
    words = []
    if busy is not None and busy >= BUSY:
        words.append(f"the machine is busy: {_times(busy)} times slower than at rest")
    least_s, most_s = min(samples_s, default=0.0), max(samples_s, default=0.0)
    spread = timing.Samples(tuple(samples_s)).spread if least_s else None
    if least_s and most_s / least_s >= UNEVEN:
        words.append(f"the slowest sample took {_times(most_s / least_s)} times the fastest")
    elif spread is not None and spread >= WIDE:
        words.append(f"the samples lie far apart: ± {percent_text(spread)}")
    return words


def busy_text(had: float) -> str:
    """Return in words that a kernel `had` only this share of its cores in every sample."""
    return f"the machine is busy: the kernel had {percent_text(had)} of a core"


def _times(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"


# --------------------------------------------------------------------------------------------------
# The time of a kernel, its spread, and its share of this machine's peak.


@pickled
@dataclass(frozen=True, slots=True, repr=False)
class Timing(Printed):
    """The time of one run of a kernel.

    `samples_s` are seconds per run. `fraction_of_peak` is the share of the peak of as many threads,
    the fastest multiply-adds ever measured on this machine; None on other devices than its
    processor, without floats, and without speeds. `cold_s` is the median with cold caches (None:
    not measured), `cold_spread` its spread as a share of it. `bound` is the predicted bottleneck
    ("": unknown). With `is_emulator`, the times say nothing about the kernel. With
    `on_random_inputs`, its expression was loaded without data. `busy` is the ratio of `Calibration`
    next to the samples (None: unknown, or the kernel ran on another device). `earlier_s` are the
    medians of earlier calls for the same kernel: they show how much the machine changes between
    calls. Samples in which other programs had its cores are left out. If all are such, `had` is the
    share of its cores that the kernel had, and the only sample is for how long it had them."""

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
    had: float | None = None

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
        sure = doubts(self.busy, self.samples_s, self.had) + over_calls(
            self.median_s, self.earlier_s
        )
        doubt = "".join(f"\n{words}" for words in sure)
        count = len(self.samples_s)
        spread = f" ± {self.spread:.1%}" if count > 1 else ""
        return (
            f"{seconds_text(self.median_s)}{spread} "
            f"(fastest {seconds_text(self.min_s)}, {plural(count, 'sample')}){cold}: "
            f"{number_text(self.gflops)} GFLOP/s{peak}, {number_text(self.gbytes_per_s)} GB/s"
            f"{emulated}{doubt}{bound}"
        )


def over_calls(median_s: float, earlier_s: Sequence[float]) -> list[str]:
    """Return in words the range of the medians of several calls; [] without earlier ones."""
    if not earlier_s:
        return []
    medians = sorted((*earlier_s, median_s))
    ends = f"{seconds_text(medians[0])} to {seconds_text(medians[-1])}"
    return [f"{len(medians)} calls gave {ends}"]


def seconds_text(seconds: float) -> str:
    """Return a time as text, in s, ms or µs: "12 µs", "3.4 ms", "2.1 s"."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def least_seconds(device: str, kind: str | None, threads: int, work: Estimates) -> float:
    """Return the seconds of a run at the peak of this machine's processor; 0 for another device,
    and where the speeds are not known."""
    known = earlier_speeds() if Device[device].is_processor else None
    return 0.0 if known is None else known.least_s(kind, threads, work)


def measure_kernel(
    run: Callable[[], object],
    device: str,
    estimates: Estimates,
    budget_s: float,
    cold: bool = False,
    beside: Calibration | None = None,
    least_s: float = 0.0,
) -> Timing:
    """Return the Timing of `run`, one launch of a kernel with these estimates, without its share of
    the peak. A sample of the calibration `beside` is taken before each sample. `least_s` is what a
    run takes at the peak (0: unknown)."""
    before = beside.take if beside else lambda: None
    samples = replace(timing.measure(run, budget_s=budget_s, before=before), least_s=least_s)
    flushed = measure_cold({"run": run})["run"] if cold else None
    return Timing(
        device, samples.median_s, samples.min_s, samples.times_s,
        estimates.flops / samples.median_s / 1e9, estimates.bytes / samples.median_s / 1e9,
        None, flushed.median_s if flushed else None,
        is_emulator=Device[device].is_emulator,
        cold_spread=flushed.spread if flushed else None,
        busy=beside.busy if beside else None,
        had=samples.had,
    )  # fmt: skip
