"""Reliable timing: repeated, in batches if runs are short, in turns if they are compared.

Sections: Reliable timing; Numbers with their units, as text.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from workbench.base.interrupts import scope

# --------------------------------------------------------------------------------------------------
# Reliable timing.

Run = Callable[[], object]
T = TypeVar("T")

SAMPLE_S = 50e-6
"""Least seconds of a sample: well above the time of reading the clock."""
SETTLE_S = 0.005
"""Seconds between runs of libraries: their threads keep spinning for a few milliseconds, and would
take cores from the next run."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Times of runs, in the order in which they were taken.

    Units: seconds. A sample is the mean of `batch` runs.
    """

    samples_s: tuple[float, ...]
    batch: int = 1

    @property
    def median_s(self) -> float:
        """The median: half of the runs took longer."""
        return statistics.median(self.samples_s)

    @property
    def min_s(self) -> float:
        """The shortest run, which was disturbed least."""
        return min(self.samples_s)

    @property
    def spread_s(self) -> float:
        """Half the distance between the quartiles, an estimate of the median's error."""
        if len(self.samples_s) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.samples_s, n=4, method="inclusive")
        return (high - low) / 2

    @property
    def spread(self) -> float | None:
        """The spread as a share of the median; None for fewer than two samples."""
        return self.spread_s / self.median_s if len(self.samples_s) > 1 else None


def measure(
    run: Run, budget_s: float = 0.2, samples: int = 15, before: Callable[[], None] = lambda: None
) -> Samples:
    """Return warm times of `run`: `samples`, or fewer if `budget_s` is over. The first run, in
    which a driver may compile, does not count; `before` is called before each sample."""
    return interleave({"run": run}, budget_s, samples, before=before)["run"]


def interleave(
    runs: Mapping[str, Run],
    budget_s: float = 0.5,
    samples: int = 15,
    warms: bool = False,
    before: Callable[[], None] = lambda: None,
) -> dict[str, Samples]:
    """Return times of several runs taken in turn, so that drift of the machine cancels.

    All get equally many: `samples`, or fewer if `budget_s` is over before, but at least one. The
    first run of each does not count. With `warms` an untimed run comes before each sample, because
    the other runs have filled the caches with their data.
    """
    with no_garbage_collection():
        warm_up(runs)
        stop = time.perf_counter() + budget_s
        for number, times in enumerate(timed_rounds(runs, before, warms), 1):
            if number == samples or time.perf_counter() > stop:
                return times
    raise AssertionError("rounds do not end")


def warm_up(runs: Mapping[str, Run]) -> None:
    """Run each once, untimed: a first run takes longer."""
    for run in runs.values():
        run()


def timed_rounds(
    runs: Mapping[str, Run], before: Callable[[], None] = lambda: None, warms: bool = False
) -> Iterator[dict[str, Samples]]:
    """Yield all times of warm runs so far, after each of the `rounds`; short runs are batched."""
    batches = {name: _batch(run) for name, run in runs.items()}

    def sampler(name: str) -> Callable[[], float]:
        def sample() -> float:
            if warms:
                runs[name]()
            return _sample(runs[name], batches[name])

        return sample

    for samples in rounds({name: sampler(name) for name in runs}, before):
        yield {name: Samples(samples[name], batches[name]) for name in runs}


def in_turn(
    samplers: Mapping[str, Callable[[], T]],
    budget_s: float,
    least: int = 3,
    most: int = 25,
    settle_s: float = SETTLE_S,
) -> dict[str, tuple[T, ...]]:
    """Return samples of each, round by round: at least `least` rounds, then until `budget_s` is
    over or `most` rounds are done; `settle_s` seconds pass before each sample.

    The n-th samples of two runs are taken in one round: their ratio has no drift of the machine.
    """
    stop = time.perf_counter() + budget_s
    for number, samples in enumerate(rounds(samplers, lambda: time.sleep(settle_s)), 1):
        if number == most or (number >= least and time.perf_counter() > stop):
            return samples
    raise AssertionError("rounds do not end")


def rounds(
    samplers: Mapping[str, Callable[[], T]], before: Callable[[], None] = lambda: None
) -> Iterator[dict[str, tuple[T, ...]]]:
    """Yield all samples so far, after each round; every other round goes backwards.

    There is no last round. `before` is called before each sample, and may raise to end the rounds.
    """
    samples: dict[str, list[T]] = {name: [] for name in samplers}
    for number in count():
        for name in list(samplers) if number % 2 == 0 else reversed(list(samplers)):
            before()
            samples[name].append(samplers[name]())
        yield {name: tuple(each) for name, each in samples.items()}


def _batch(run: Run) -> int:
    """Return how many runs make up one sample."""
    batch = 1
    while True:
        seconds = _sample(run, batch) * batch
        if seconds >= SAMPLE_S:
            return batch
        batch = max(2 * batch, int(batch * SAMPLE_S / max(seconds, 1e-9) * 1.2))


def seconds_of(run: Run) -> float:
    """Return the seconds of one run, by the clock of its device if it has one."""
    return _sample(run, 1)


def _sample(run: Run, batch: int) -> float:
    mean_s = getattr(run, "mean_s", None)
    if mean_s is not None:  # a device elsewhere runs the whole batch
        return float(mean_s(batch))
    timed = getattr(run, "timed", None)
    if timed is not None:
        return float(sum(timed() for _ in range(batch)) / batch)
    times = range(batch)
    start = time.perf_counter()
    for _ in times:
        run()
    return (time.perf_counter() - start) / batch


@scope
def no_garbage_collection() -> Generator[None, None, None]:
    """Switch the garbage collector off in the block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# --------------------------------------------------------------------------------------------------
# Numbers with their units, as text.

BINARY = ("B", "KiB", "MiB", "GiB", "TiB")


def bytes_text(count: int) -> str:
    """Return a number of bytes as text, in B, KiB, MiB, ..: "320 B", "20 KiB", "1.5 MiB"."""
    value = float(count)
    for unit in BINARY:
        if value < 1024 or unit == BINARY[-1]:
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
        value /= 1024
    raise AssertionError


def number_text(value: float) -> str:
    """Return a number with three digits, or a large one whole: "0.5", "98.7", "61,200"."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def percent_text(fraction: float) -> str:
    """Return a share in percent, with a decimal below 10 %: "98%", "3.2%", "<0.1%"."""
    if 0 < fraction < 0.0005:
        return "<0.1%"
    return f"{fraction:.1%}" if fraction < 0.0995 else f"{fraction:.0%}"
