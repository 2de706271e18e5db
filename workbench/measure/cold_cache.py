"""Caches with nothing useful in them: how a kernel meets data that nobody has used for a while.

The cores together copy one half of a large buffer to the other; what was in their caches has
then gone to memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.backends.native import machine
from workbench.backends.native.thread_pool import cores
from workbench.measure.bandwidth import walk
from workbench.measure.timing import Run, Samples, seconds_of

LEAST, MOST = 64 << 20, 256 << 20
"""At least and at most so many bytes are walked, if possible twice what the largest cache has."""
ROUNDS = 5


def measure_cold(
    runs: Mapping[str, Run],
    rounds: int = ROUNDS,
    go_on: Callable[[int], None] = lambda number: None,
) -> dict[str, Samples]:
    """Return times of several runs, in turns, each begun with emptied caches. They are longer
    than warm ones, and what a launch takes that sleeping threads must be woken for is in them.
    `go_on` is called before each run with the number of its round.

    Errors: DeviceError where llvmlite is missing; what `go_on` raises.
    """
    largest = max((size for _, size in machine.caches()), default=0)
    size, parts = min(MOST, max(LEAST, 2 * largest)), cores()
    empty = walk(size // parts, parts, copies=True).run
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        for name, run in runs.items():
            go_on(number)
            empty()
            times[name].append(seconds_of(run))
    return {name: Samples(tuple(samples)) for name, samples in times.items()}
