"""The table of all kernels of a plan: expression, time, share, bytes, and the total; repeated
sequences are printed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workbench.measure.kernel_time import seconds_text
from workbench.viz.model.words import bytes_text, kernel_number
from workbench.viz.schema.plan import PlanRepeat, PlanRun
from workbench.viz.schema.record import KernelRow

Cells = tuple[str, str, str, str, str, str]
"""The texts of a line: number, title, time, share, bytes, and the line of the user's code."""


@dataclass(frozen=True, slots=True)
class KernelTable:
    """The kernels of a plan; `where` are the lines of the user's code that asked for them."""

    kernels: Sequence[KernelRow]
    repeats: Sequence[PlanRepeat]
    runs: Sequence[PlanRun]
    where: Sequence[str]

    def __str__(self) -> str:
        every = range(len(self.kernels))
        rows = list(self._lines(every, self.repeats, ""))
        rows.append(self._cells("", "total", every, ""))
        number, title, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
        lines = []
        for first, second, *numbers, where in rows:
            cells = [f"{first:>{number}}", f"{second:{title}}"]
            cells += [f"{f:>{w}}" for f, w in zip(numbers, others, strict=False) if w]
            lines.append("  ".join([*cells, where]).rstrip())
        return "\n".join(lines)

    def _lines(self, places: range, repeats: Sequence[PlanRepeat], indent: str) -> Iterator[Cells]:
        """Yield a line per kernel at some places; of a repeat its own, and those of one time."""
        at = places.start
        while at < places.stop:
            if not repeats or repeats[0].first > at:
                title = f"{indent}{self.kernels[at].title}"
                number = str(kernel_number(at))
                yield self._cells(number, title, range(at, at + 1), self.where[at])
                at += 1
                continue
            repeat, *others = repeats
            end = at + repeat.size * repeat.times
            numbers = f"{kernel_number(at)}-{end}"
            title = f"{indent}{_fold_title(repeat)}"
            yield self._cells(numbers, title, range(at, end), _of_module(repeat))
            once = range(at, at + repeat.size)
            inside = [r for r in others if r.first < once.stop]
            yield from self._lines(once, inside, f"{indent}  ")
            at, repeats = end, [r for r in others if r.first >= end]

    def _cells(self, number: str, title: str, places: range, where: str) -> Cells:
        size_bytes = sum(self.kernels[place].bytes for place in places)
        seconds, whole = self._seconds(places), self._seconds(range(len(self.kernels)))
        is_measured = all(self._run(place).measured_s is not None for place in places)
        time = seconds_text(seconds) if seconds else ""
        time = time if is_measured or not time else f"~{time}"
        share = _share_text(seconds / whole) if whole else ""
        return number, title, time, share, bytes_text(int(size_bytes)), where

    def _seconds(self, places: range) -> float:
        """Return the time of some kernels: measured, or else predicted."""
        runs = map(self._run, places)
        return sum(run.measured_s or run.predicted_s or 0.0 for run in runs)

    def _run(self, place: int) -> PlanRun:
        """Return the run of a kernel: its own where it was measured, else that of its equals."""
        own = self.runs[place]
        return own if own.measured_s is not None else self.runs[own.like]


def _fold_title(fold: PlanRepeat) -> str:
    return fold.title if fold.times == 1 else f"{fold.times} x {fold.title}"


def _of_module(fold: PlanRepeat) -> str:
    return "" if fold.times == 1 else fold.module


def _share_text(share: float) -> str:
    """Return the share of a kernel, as on the page: a small one is not none."""
    return "<1%" if 0 < share < 0.01 else f"{share:.0%}"
