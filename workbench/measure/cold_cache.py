"""Caches with nothing useful in them: how a kernel meets data that nobody has used for a while.

The cores together copy one half of a large buffer to the other; what was in their caches has
then gone to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from workbench.backends.native import machine
from workbench.backends.native.thread_pool import cores
from workbench.measure.bandwidth import walk
from workbench.measure.timing import Run, Samples, rounds, seconds_of

LEAST = 64 << 20
"""Bytes that are walked at least; if possible it is twice the size of the largest cache."""
MOST = 256 << 20
"""Bytes that are walked at most."""
ROUNDS = 5


def measure_cold(runs: Mapping[str, Run], number: int = ROUNDS) -> dict[str, Samples]:
    """Return times of several runs from so many of the `cold_rounds`."""
    *_, times = islice(cold_rounds(runs), number)
    return times


def cold_rounds(
    runs: Mapping[str, Run], before: Callable[[], None] = lambda: None
) -> Iterator[dict[str, Samples]]:
    """Yield all times taken so far, after each of the `rounds`, where every run begins with
    emptied caches. They are longer than warm ones: what a launch takes that must wake sleeping
    threads is in them too.

    Errors: DeviceError where llvmlite is missing; what `before` raises.
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
