"""Timing that can be trusted: repeated, batched when short, alternated when compared."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

Run = Callable[[], object]
T = TypeVar("T")

SAMPLE_S = (
    50e-6  # a sample is at least this long: well above what reading the clock takes
)
SETTLE_S = 0.005
"""The threads of a library go on spinning for a few milliseconds after its work; the next
one should not have to share the cores with them."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Times of one run each, in the order in which they were taken.

    Units: seconds. `batch` runs were timed together, and each sample is their mean.
    """

    samples_s: tuple[float, ...]
    batch: int = 1

    @property
    def median_s(self) -> float:
        """The run in the middle: half of them took longer."""
        return statistics.median(self.samples_s)

    @property
    def min_s(self) -> float:
        """The quickest run: the least disturbed one."""
        return min(self.samples_s)

    @property
    def spread_s(self) -> float:
        """Half the distance between the quartiles: what the median may be off by."""
        if len(self.samples_s) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.samples_s, n=4, method="inclusive")
        return (high - low) / 2


def measure(run: Run, budget_s: float = 0.2, samples: int = 15) -> Samples:
    """Return times of `run`, warm: up to `samples` of them, fewer if `budget_s` is over."""
    return interleave({"run": run}, budget_s, samples)["run"]


def interleave(
    runs: Mapping[str, Run],
    budget_s: float = 0.5,
    samples: int = 15,
    warms: bool = False,
) -> dict[str, Samples]:
    """Return times of several runs taken in turn, so that drift of the machine cancels.

    All get as many samples, at least one, and together they stay within `budget_s` if a single
    round does. With `warms` a run that is not timed goes before each sample: what ran last has
    filled the caches with its own data.
    """
    with no_garbage_collection():
        stop = time.perf_counter() + budget_s
        for number, times in enumerate(timed_rounds(runs, warms=warms), 1):
            if number == samples or time.perf_counter() > stop:
                return times
    raise AssertionError("rounds do not end")


def timed_rounds(
    runs: Mapping[str, Run],
    before: Callable[[], None] = lambda: None,
    warms: bool = False,
) -> Iterator[dict[str, Samples]]:
    """Yield all times taken so far, after each of the `rounds`; short runs are batched."""
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
    """Return samples of each, round by round: at least `least`, then until `budget_s` is over
    or `most` are taken.

    The n-th samples of two are neighbours in time, and their ratio is free of the machine's drift.
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

    Whoever asks for the next round decides whether there is one; `before` is called ahead of
    each sample, and may raise to end it all.
    """
    samples: dict[str, list[T]] = {name: [] for name in samplers}
    for number in count():
        for name in list(samplers) if number % 2 == 0 else reversed(list(samplers)):
            before()
            samples[name].append(samplers[name]())
        yield {name: tuple(each) for name, each in samples.items()}


def _batch(run: Run) -> int:
    """Return how many runs make a sample; running them warms up."""
    run()
    batch = 1
    while True:
        seconds = _sample(run, batch) * batch
        if seconds >= SAMPLE_S:
            return batch
        batch = max(2 * batch, int(batch * SAMPLE_S / max(seconds, 1e-9) * 1.2))


def seconds_of(run: Run) -> float:
    """Return the seconds of one run: by the clock of its device, where that has its own."""
    return _sample(run, 1)


def _sample(run: Run, batch: int) -> float:
    timed = getattr(run, "timed", None)
    if timed is not None:
        return float(sum(timed() for _ in range(batch)) / batch)
    times = range(batch)
    start = time.perf_counter()
    for _ in times:
        run()
    return (time.perf_counter() - start) / batch


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
