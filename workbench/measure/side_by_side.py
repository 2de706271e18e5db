"""Kernels timed in turns, so that a disturbance affects all of them, and their ratios.

The samples of one round are taken within milliseconds of each other. So ratios within rounds are
compared, not two medians; a round in which other programs had the cores is left out. The confidence
interval of the median ratio comes from resampling the rounds; if it includes 1, the difference does
not count. Source: Efron's bootstrap (1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.base.terminal import Printed
from workbench.measure.kernel_time import seconds_text
from workbench.measure.timing import Run, Sample, Samples, interleave

DRAWS = 2000
CONFIDENCE = 0.99
"""Share of the resampled medians between `low` and `high`."""
MIN_DIFFERENCE = 0.01
"""A smaller relative difference counts as none: clock and machine are not more precise."""
MIN_ROUNDS = 6
"""Least rounds for an interval of 99 %."""
BUSY = "the machine is busy: not compared"
"""The comparison of times of which one was disturbed in every sample."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast one run is as another: the median over rounds, and its confidence
    interval of 99 %. Without `rounds` nothing is known: other programs had the cores in each."""

    median: float
    low: float
    high: float
    rounds: int

    @property
    def is_measurable(self) -> bool:
        """Whether the samples show a difference."""
        sure = self.rounds >= MIN_ROUNDS and not self.low <= 1 <= self.high
        return sure and abs(self.median - 1) >= MIN_DIFFERENCE

    def __str__(self) -> str:
        if not self.rounds:
            return BUSY
        if self.rounds < MIN_ROUNDS:
            needs = f"{self.rounds} of at least {MIN_ROUNDS}"
            return f"too few rounds to compare: {needs}, a difference may be noise"
        if not self.is_measurable:
            return "no measurable difference"
        if self.median < 1:
            return _comparison(1 / self.median, 1 / self.high, 1 / self.low, "slow")
        return _comparison(self.median, self.low, self.high, "fast")


def _comparison(ratio: float, low: float, high: float, word: str) -> str:
    """Return "3 % slower (2 to 4 %)", or from a factor of 2 on "2.1 times as slow (2 to 2.2)"."""
    if high < 2:
        shares = [f"{100 * (r - 1):.2g}" for r in (ratio, low, high)]
        return f"{shares[0]} % {word}er ({shares[1]} to {shares[2]} %)"
    return f"{ratio:.3g} times as {word} ({low:.3g} to {high:.3g})"


@dataclass(frozen=True, slots=True, repr=False)
class SideBySide(Printed):
    """Runs that were timed in turns. `ratios` say how many times as fast each is as the first."""

    samples: Mapping[str, Samples]
    ratios: Mapping[str, Ratio]

    def __str__(self) -> str:
        width = max(len(name) for name in self.samples)
        first, lines = next(iter(self.samples)), []
        for name, timing in self.samples.items():
            comparison = "" if name == first else f"   {self.ratios[name]}"
            spread = timing.spread_s / timing.median_s
            took = f"{seconds_text(timing.median_s)} ± {spread:.1%}"
            if timing.had is not None:
                took = f"{seconds_text(timing.median_s)} busy"
            lines.append(f"{name:{width}}  {took:17}{comparison}".rstrip())
        return "\n".join(lines)


def side_by_side(runs: Mapping[str, Run], budget_s: float = 1.0, samples: int = 41) -> SideBySide:
    """Return the times of runs, taken in turns for about `budget_s` seconds, and the ratio of each
    to the first."""
    timings = interleave(runs, budget_s, samples, warms=True)
    first = next(iter(timings.values()))
    return SideBySide(timings, {n: compared(first, s) for n, s in timings.items()})


def compared(base: Samples, other: Samples) -> Ratio:
    """Return how many times as fast `other` is as `base`, by `common_rounds`; of nothing if one of
    the two has not enough undisturbed samples."""
    if base.had is not None or other.had is not None:
        return Ratio(1.0, 1.0, 1.0, 0)
    return ratio(*zip(*common_rounds(base, other), strict=True))


def common_rounds(base: Samples, other: Samples) -> list[tuple[float, float]]:
    """Return the seconds of both in the rounds in which both were undisturbed. Without such a round
    these are their medians, as one round."""
    return undisturbed_rounds(base, other) or [(base.median_s, other.median_s)]


def undisturbed_rounds(base: Samples, other: Samples) -> list[tuple[float, float]]:
    """Return the seconds of both in the rounds in which both were undisturbed."""
    pairs = zip(base.samples_s, other.samples_s, strict=False)  # a slow run has fewer
    both = zip(pairs, base.undisturbed, other.undisturbed, strict=False)
    return [pair for pair, *are_clean in both if all(are_clean)]


def added(runs: Sequence[Samples]) -> Samples:
    """Return the samples of runs one after the other, by rounds: those of a round are added up."""
    count = min((len(each.samples_s) for each in runs), default=0)
    rounds = []
    for place in range(count):
        parts = [(s.samples_s[place], s.shares[place] if s.shares else 1.0) for s in runs]
        seconds = sum(part for part, _ in parts)
        rounds.append(Sample(seconds, sum(part * share for part, share in parts) / seconds))
    return Samples.of(rounds)


def ratio(base: Sequence[float], other: Sequence[float]) -> Ratio:
    """Return how many times as fast `other` is as `base`, from samples taken in the same rounds."""
    each = np.asarray(base) / np.asarray(other)
    draws = np.random.default_rng(0).integers(0, len(each), (DRAWS, len(each)))
    medians = np.median(each[draws], axis=1)
    low, high = np.quantile(medians, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Ratio(float(np.median(each)), float(low), float(high), len(each))
