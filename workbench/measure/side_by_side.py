"""Kernels timed beside each other: in turns, so that what disturbs one disturbs all, and told
apart only where the samples tell them apart.

Samples of one round are pairs: they were taken within milliseconds of each other. So it is the
ratio within rounds that is judged, and not the difference of two medians. How far its median can
be trusted is found by drawing the rounds again at random. Source: Efron's bootstrap (1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.base.display import Printed
from workbench.measure.kernel_time import seconds_text
from workbench.measure.timing import Run, Samples, interleave

DRAWS = 2000
SURE = 0.99
"""Of the draws this share lies between `low` and `high`."""
LEAST = 0.01
"""Share below which a difference counts as none: the clock and the machine are not better."""
FEWEST = 6
"""With fewer rounds than this nobody can be 99 % sure of anything."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast one run is as another: the median of rounds, and between which
    values it lies with 99 % probability."""

    median: float
    low: float
    high: float
    rounds: int

    @property
    def is_measurable(self) -> bool:
        """Whether there is a difference that the samples show."""
        sure = self.rounds >= FEWEST and not self.low <= 1 <= self.high
        return sure and abs(self.median - 1) >= LEAST

    def __str__(self) -> str:
        if self.rounds < FEWEST:
            return f"too few rounds to compare ({self.rounds})"
        if not self.is_measurable:
            return "no measurable difference"
        if self.median < 1:
            low, high = 1 / self.high, 1 / self.low
            return f"{1 / self.median:.3g} times as slow ({low:.3g} to {high:.3g})"
        return f"{self.median:.3g} times as fast ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True, slots=True, repr=False)
class SideBySide(Printed):
    """Runs that were timed in turns. `ratios` tell of each how many times as fast it is as the
    first."""

    samples: Mapping[str, Samples]
    ratios: Mapping[str, Ratio]

    def __str__(self) -> str:
        width = max(len(name) for name in self.samples)
        first, lines = next(iter(self.samples)), []
        for name, timing in self.samples.items():
            comparison = "" if name == first else f"   {self.ratios[name]}"
            spread = timing.spread_s / timing.median_s
            took = f"{seconds_text(timing.median_s)} ± {spread:.1%}"
            lines.append(f"{name:{width}}  {took:17}{comparison}".rstrip())
        return "\n".join(lines)


def side_by_side(
    runs: Mapping[str, Run], budget_s: float = 1.0, samples: int = 41
) -> SideBySide:
    """Return times of runs, in turns, each held against the first."""
    timings = interleave(runs, budget_s, samples, warms=True)
    first = next(iter(timings.values())).samples_s
    return SideBySide(
        timings, {n: ratio(first, s.samples_s) for n, s in timings.items()}
    )


def ratio(base: Sequence[float], other: Sequence[float]) -> Ratio:
    """Return how many times as fast `other` is as `base`, from samples taken in the same rounds."""
    each = np.asarray(base) / np.asarray(other)
    draws = np.random.default_rng(0).integers(0, len(each), (DRAWS, len(each)))
    medians = np.median(each[draws], axis=1)
    low, high = np.quantile(medians, [(1 - SURE) / 2, (1 + SURE) / 2])
    return Ratio(float(np.median(each)), float(low), float(high), len(each))
