"""Timing several kernels against each other, in turns, so that drift of the machine cancels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from course.pictures import Picture, bars

from workbench import Kernel
from workbench.backends.runtime.peak import run_peak
from workbench.backends.runtime.timing import interleave
from workbench.kernel.timing import seconds_text
from workbench.pipeline import build

PEAK = "peak"
ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Race:
    """Times of some contestants, and their share of the multiply-add peak of one core, measured
    in the same rounds. A cell shows it as bars."""

    seconds: dict[str, float]
    share: dict[str, float]

    def ratio(self, slow: str, quick: str) -> float:
        """Return how many times as long `slow` takes."""
        return self.seconds[slow] / self.seconds[quick]

    @property
    def picture(self) -> Picture:
        first = next(iter(self.seconds))
        rows = [
            (name, share, f"{share:.0%}   {seconds_text(s)}   {self.ratio(first, name):.3g} x")
            for (name, share), s in zip(
                self.share.items(), self.seconds.values(), strict=True
            )
        ]
        return bars(rows, "share of the multiply-add peak of one core", full=1.0)

    def _repr_svg_(self) -> str:
        return self.picture.svg

    def __repr__(self) -> str:
        return "\n".join(
            f"{name}: {seconds_text(s)}, {self.share[name]:.0%} of the peak of one core"
            for name, s in self.seconds.items()
        )


def race(
    contestants: Mapping[str, Kernel | Callable[[], object]],
    flops: int,
    budget_s: float = 1.5,
) -> Race:
    """Return the median time of each contestant over rounds in which all take turns.

    A kernel runs on its own data, a function is called; each does `flops` operations. The peak is
    the least time of a loop of nothing but multiply-adds, in the same rounds. Units: seconds.
    """
    peak = run_peak()
    runs = {name: _launcher(it) for name, it in contestants.items()}
    taken = interleave({**runs, PEAK: peak.run}, budget_s, ROUNDS)
    best = peak.gflops(taken.pop(PEAK).min_s)
    seconds = {name: samples.median_s for name, samples in taken.items()}
    return Race(seconds, {name: flops / s / 1e9 / best for name, s in seconds.items()})


def _launcher(contestant: Kernel | Callable[[], object]) -> Callable[[], object]:
    if not isinstance(contestant, Kernel):
        return contestant
    device = contestant.device
    program = build(contestant.ast, device).program
    return program.bind(contestant.data.buffers(contestant.original, device))
