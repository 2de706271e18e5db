"""Cold caches: the time of a kernel whose data are in no cache.

The cores together copy one half of a large buffer to the other, which evicts all other data from
their caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from workbench.backends.native import machine
from workbench.backends.native.thread_pool import cores
from workbench.measure.bandwidth import walk
from workbench.measure.timing import Run, Samples, rounds, seconds_of

LEAST = 64 << 20
"""Fewest bytes that are copied; if possible, twice the size of the largest cache."""
MOST = 256 << 20
"""Most bytes that are copied."""
ROUNDS = 5


def measure_cold(runs: Mapping[str, Run], number: int = ROUNDS) -> dict[str, Samples]:
    """Return the times of several runs, from `number` of the `cold_rounds`."""
    *_, times = islice(cold_rounds(runs), number)
    return times


def cold_rounds(
    runs: Mapping[str, Run], before: Callable[[], None] = lambda: None
) -> Iterator[dict[str, Samples]]:
    """Yield all times so far, after each of the `rounds`, where every run begins with cold caches.
    They include waking sleeping threads, which warm runs do not.

    Errors: DeviceError where llvmlite is missing; any error that `before` raises.
    """
    largest = max((size for _, size in machine.caches()), default=0)
    size, parts = min(MOST, max(LEAST, 2 * largest)), cores()
    empty = walk(size // parts, parts, copies=True).run

    def sampler(run: Run) -> Callable[[], float]:
        def sample() -> float:
            empty()
            return seconds_of(run)

        return sample

    samplers = {name: sampler(run) for name, run in runs.items()}
    for samples in rounds(samplers, before):
        yield {name: Samples(each) for name, each in samples.items()}
