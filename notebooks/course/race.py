"""Timing several kernels against each other, in turns, so that drift of the machine cancels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from course.pictures import Picture, bars
from workbench import Kernel
from workbench.measure.kernel_time import seconds_text
from workbench.measure.peak import run_peak
from workbench.measure.timing import interleave
from workbench.pipeline import build

PEAK = "peak"
ROUNDS = 7


@dataclass(frozen=True, slots=True)
class Race:
    """Times of some contestants, and their share of the multiply-add peak of one core, measured
    in the same rounds; without `flops`, no shares. A cell shows it as bars."""

    seconds: dict[str, float]
    share: dict[str, float]

    def ratio(self, slow: str, quick: str) -> float:
        """Return how many times as long `slow` takes."""
        return self.seconds[slow] / self.seconds[quick]

    @property
    def picture(self) -> Picture:
        first, most = next(iter(self.seconds)), max(self.seconds.values())
        rows = []
        for name, seconds in self.seconds.items():
            label = f"{seconds_text(seconds)}   {self.ratio(first, name):.3g} x"
            if self.share:
                rows.append((name, self.share[name], f"{self.share[name]:.0%}   {label}"))
            else:
                rows.append((name, seconds / most, label))
        title = "share of the multiply-add peak of one core" if self.share else "time"
        return bars(rows, title, full=1.0, mark="the peak")

    def _repr_html_(self) -> str:
        return self.picture._repr_html_()

    def __repr__(self) -> str:
        return "\n".join(
            f"{name}: {seconds_text(seconds)}"
            + (f", {self.share[name]:.0%} of the peak of one core" if self.share else "")
            for name, seconds in self.seconds.items()
        )


def race(
    contestants: Mapping[str, Kernel | Callable[[], object]],
    flops: int | None = None,
    budget_s: float = 1.5,
) -> Race:
    """Return the least time of each contestant over rounds in which all take turns.

    A kernel runs on its own data, a function is called; where each does `flops` operations, their
    share of the peak is told: of a loop of nothing but multiply-adds, in the same rounds.
    """
    peak = run_peak()
    runs = {name: _launcher(it) for name, it in contestants.items()}
    taken = interleave({**runs, PEAK: peak.run}, budget_s, ROUNDS)
    best = peak.gflops(taken.pop(PEAK).min_s)
    seconds = {name: samples.min_s for name, samples in taken.items()}
    share = {n: flops / s / 1e9 / best for n, s in seconds.items()} if flops else {}
    return Race(seconds, share)


def _launcher(contestant: Kernel | Callable[[], object]) -> Callable[[], object]:
    if not isinstance(contestant, Kernel):
        return contestant
    device = contestant.device
    program = build(contestant.ast, device).program
    run: Callable[[], object]
    run = program.bind(contestant.data.buffers(contestant.original, device))
    return run
