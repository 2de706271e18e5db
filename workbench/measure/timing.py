"""Reliable timing: repeated, in batches if runs are short, in turns if they are compared.

Sections: The share of its cores that a run had; Reliable timing; Numbers with their units, as text.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, TypeVar

from workbench.base.interrupts import scope

try:
    import resource
except ImportError:  # Windows, whose clock of a thread moves in steps of 16 ms, too
    resource = None  # type: ignore[assignment]

# --------------------------------------------------------------------------------------------------
# The share of its cores that a run had.
#
# While other programs have its core, a kernel does not run, but its wall time goes on: such a time
# is no time of the kernel. It shows where the system counts the seconds in which a thread had a
# core, and how often another one took it. A thread that waits by itself, for a device or for other
# threads, is not interrupted: its wall time is right.

WHOLE = 0.9
"""From this share of its cores on, a run was not disturbed: its time is a ninth too long
at most."""
ABSENT = 0.55
"""A kernel on several threads that had less than this share of their cores ran without one of them,
even if none was interrupted: that one waited to begin."""


class CoreUse(NamedTuple):
    """The seconds in which threads had a core, and how often they were interrupted."""

    cpu_s: float
    interruptions: int


def core_use(threads: int) -> CoreUse | None:
    """Return the use of cores so far: of this thread, or of this process for a run on several
    threads; None where the system does not count it."""
    if resource is None:
        return None
    if threads > 1:
        own = resource.getrusage(resource.RUSAGE_SELF)
        return CoreUse(time.process_time(), own.ru_nivcsw)
    of = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)
    return CoreUse(time.thread_time(), resource.getrusage(of).ru_nivcsw)


def core_share(
    seconds: float,
    threads: int,
    before: CoreUse | None,
    use: Callable[[int], CoreUse | None] | None = None,
) -> float:
    """Return the share of its cores that a run of `seconds` on `threads` threads had since
    `before`, by their `use`; 1 if it was not disturbed, or that is not known."""
    now = None if before is None else (use or core_use)(threads)
    if before is None or now is None or now.cpu_s <= before.cpu_s:
        return 1.0
    share = min(1.0, (now.cpu_s - before.cpu_s) / (threads * max(seconds, 1e-9)))
    is_interrupted = now.interruptions > before.interruptions
    is_absent = threads > 1 and share < ABSENT
    return share if share < WHOLE and (is_interrupted or is_absent) else 1.0


# --------------------------------------------------------------------------------------------------
# Reliable timing.

Run = Callable[[], object]
T = TypeVar("T")

SAMPLE_S = 50e-6
"""Least seconds of a sample: well above the time of reading the clock."""
TRIES = 4
"""Samples that are taken for each that is wanted at most: what is disturbed so often stays so."""
SETTLE_S = 0.005
"""Seconds between runs of libraries: their threads keep spinning for a few milliseconds, and would
take cores from the next run."""


class Sample(NamedTuple):
    """The mean seconds of some runs, and the share of their cores that they had."""

    seconds: float
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Samples:
    """Times of runs, in the order in which they were taken.

    Units: seconds. A sample is the mean of `batch` runs. `shares` has the share of its cores that
    each had (empty: all of them). Where others had the cores for a part of it, a sample is no time
    of the run: all figures are of the undisturbed ones. Without two such (one that stands alone
    among disturbed ones has found caches and threads as these left them) the time is the median of
    the times for which samples had their cores, and `had` is not None. The system counts the time
    of other threads late, so one such time may be too short: it is at least `least_s`, which a run
    needs on this machine, if that is known, and at most the time by the clock.
    """

    samples_s: tuple[float, ...]
    batch: int = 1
    shares: tuple[float, ...] = ()
    least_s: float = 0.0

    @staticmethod
    def of(taken: Iterable[Sample], batch: int = 1) -> Samples:
        """Return samples that were taken one by one."""
        pairs = tuple(taken)
        seconds, shares = (tuple(pair[part] for pair in pairs) for part in (0, 1))
        return Samples(seconds, batch, () if all(s == 1.0 for s in shares) else shares)

    @property
    def undisturbed(self) -> tuple[bool, ...]:
        """Of each sample, whether it was not disturbed."""
        return tuple(share >= WHOLE for share in self._shares)

    @property
    def times_s(self) -> tuple[float, ...]:
        """The undisturbed samples; without two, the median time for which one had its cores."""
        if self.had is not None:
            return (statistics.median(self._computing_s),)
        both = zip(self.samples_s, self.undisturbed, strict=True)
        return tuple(seconds for seconds, is_clean in both if is_clean)

    @property
    def had(self) -> float | None:
        """The share of their cores that samples had, in the mean; None if there are enough
        undisturbed ones."""
        clean = sum(self.undisturbed)
        if clean > 1 or clean == len(self.samples_s):
            return None
        return statistics.mean(self._shares)

    @property
    def median_s(self) -> float:
        """The median: half of the runs took longer."""
        return statistics.median(self.times_s)

    @property
    def min_s(self) -> float:
        """The shortest run, which was disturbed least."""
        return min(self.times_s)

    @property
    def spread_s(self) -> float:
        """Half the distance between the quartiles, an estimate of the median's error."""
        times_s = self.times_s
        if len(times_s) < 2:
            return 0.0
        low, _, high = statistics.quantiles(times_s, n=4, method="inclusive")
        return (high - low) / 2

    @property
    def spread(self) -> float | None:
        """The spread as a share of the median; None for fewer than two samples."""
        return self.spread_s / self.median_s if len(self.times_s) > 1 else None

    @property
    def _shares(self) -> tuple[float, ...]:
        return self.shares or (1.0,) * len(self.samples_s)

    @property
    def _computing_s(self) -> tuple[float, ...]:
        pairs = zip(self.samples_s, self._shares, strict=True)
        return tuple(min(s, max(s * share, self.least_s)) for s, share in pairs)


def measure(
    run: Run, budget_s: float = 0.2, samples: int = 15, before: Callable[[], None] = lambda: None
) -> Samples:
    """Return warm times of `run`: `samples` undisturbed ones, or fewer if `budget_s` is over. The
    first run, in which a driver may compile, does not count; `before` is called before each
    sample."""
    return interleave({"run": run}, budget_s, samples, before=before)["run"]


def interleave(
    runs: Mapping[str, Run],
    budget_s: float = 0.5,
    samples: int = 15,
    warms: bool = False,
    before: Callable[[], None] = lambda: None,
) -> dict[str, Samples]:
    """Return times of several runs taken in turn, so that drift of the machine cancels.

    All get equally many: until there are `enough`, or fewer if `budget_s` is over before, but at
    least one. The first run of each does not count. With `warms` an untimed run comes before each
    sample, because the other runs have filled the caches with their data.
    """
    with no_garbage_collection():
        warm_up(runs)
        stop = time.perf_counter() + budget_s
        for times in timed_rounds(runs, before, warms):
            if enough(times, samples) or time.perf_counter() > stop:
                return times
    raise AssertionError("rounds do not end")


def enough(times: Mapping[str, Samples], samples: int) -> bool:
    """Whether all runs have that many undisturbed samples, or have had TRIES as many chances."""
    return all(
        sum(each.undisturbed) >= samples or len(each.samples_s) >= TRIES * samples
        for each in times.values()
    )


def warm_up(runs: Mapping[str, Run]) -> None:
    """Run each once, untimed: a first run takes longer."""
    for run in runs.values():
        run()


def timed_rounds(
    runs: Mapping[str, Run], before: Callable[[], None] = lambda: None, warms: bool = False
) -> Iterator[dict[str, Samples]]:
    """Yield all times of warm runs so far, after each of the `rounds`; short runs are batched."""
    batches = {name: _batch(run) for name, run in runs.items()}

    def sampler(name: str) -> Callable[[], Sample]:
        def sample() -> Sample:
            if warms:
                runs[name]()
            return sample_of(runs[name], batches[name])

        return sample

    for samples in rounds({name: sampler(name) for name in runs}, before):
        yield {name: Samples.of(samples[name], batches[name]) for name in runs}


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
        sample = sample_of(run, batch)
        seconds = sample.seconds * sample.share * batch
        if seconds >= SAMPLE_S:
            return batch
        batch = max(2 * batch, int(batch * SAMPLE_S / max(seconds, 1e-9) * 1.2))


def seconds_of(run: Run) -> float:
    """Return the seconds of one run, by the clock of its device if it has one."""
    return sample_of(run).seconds


def sample_of(run: Run, batch: int = 1) -> Sample:
    """Return a sample of some runs, by the clock of their device if it has one."""
    mean_s = getattr(run, "mean_s", None)
    if mean_s is not None:  # a device elsewhere runs the whole batch
        return Sample(float(mean_s(batch)))
    timed = getattr(run, "timed", None)
    if timed is not None:
        return Sample(float(sum(timed() for _ in range(batch)) / batch))
    times, threads = range(batch), getattr(run, "threads", 1)
    before, start = core_use(threads), time.perf_counter()
    for _ in times:
        run()
    seconds = time.perf_counter() - start
    return Sample(seconds / batch, core_share(seconds, threads, before))


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
    """Return a number of bytes as text, in B, KiB, MiB, ..: "320 B", "20 KiB", "1.5 MiB". Halves
    are rounded up, as the page does: the same number has one text."""
    value = float(count)
    for unit in BINARY:
        if value < 1024 or unit == BINARY[-1]:
            scale = 1 if value >= 100 else 10 if value >= 10 else 100
            rounded = math.floor(value * scale + 0.5) / scale
            return f"{rounded:g} {unit}" if value < 1000 else f"{rounded:.0f} {unit}"
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
