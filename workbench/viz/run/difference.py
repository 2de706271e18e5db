"""Two runs compared: the kernels whose times differ beyond the noise of their launches.

Kernels are paired by their text before opts, so that runs of two devices, machines or versions of
the compiler can be compared. Times differ if the middle halves of the launches do not overlap:
half of the launches of each kernel lie there, and a launch that an interrupt made slow does not
count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.base.terminal import Printed
from workbench.measure.kernel_time import seconds_text
from workbench.viz.model.words import plural
from workbench.viz.schema.run import RunKernel, RunRecord

LEAST_LAUNCHES = 4
"""Least launches of each kernel that tell a difference from noise."""
LEAST_RATIO = 1.02
"""Least ratio of two times that counts as a difference."""


@dataclass(frozen=True, slots=True)
class KernelChange:
    """A kernel in two runs (None: it is not in one), with its `before` and `after`."""

    before: RunKernel | None
    after: RunKernel | None

    @property
    def title(self) -> str:
        """The title of the kernel."""
        kernel = self.after or self.before
        assert kernel is not None
        return kernel.title

    @property
    def is_known(self) -> bool:
        """Whether there are enough launches of both to tell a difference from noise."""
        both = (self.before, self.after)
        return all(each is not None and each.launches >= LEAST_LAUNCHES for each in both)

    @property
    def is_different(self) -> bool:
        """Whether the times differ beyond the noise."""
        before, after = self.before, self.after
        if before is None or after is None or not self.is_known:
            return False
        is_apart = before.high_ns < after.low_ns or after.high_ns < before.low_ns
        return is_apart and max(self.ratio, 1 / self.ratio) >= LEAST_RATIO

    @property
    def ratio(self) -> float:
        """The time after by that before; 1 where one is missing."""
        before, after = self.before, self.after
        if before is None or after is None or not (before.median_ns and after.median_ns):
            return 1.0
        return after.median_ns / before.median_ns

    @property
    def saved_ns(self) -> float:
        """What the launches of the later run take less than they did before; negative: more."""
        if self.before is None or self.after is None:
            return 0.0
        return (self.before.median_ns - self.after.median_ns) * self.after.launches


@dataclass(frozen=True, slots=True, repr=False)
class RunDifference(Printed):
    """The kernels of two runs, in pairs: `changes` has those that differ beyond the noise, the
    greatest change first; `same` those within it; `unknown` those with too few launches; `added`
    and `removed` those of one run. `words` names the runs."""

    words: str
    changes: tuple[KernelChange, ...]
    same: tuple[KernelChange, ...]
    unknown: tuple[KernelChange, ...]
    added: tuple[KernelChange, ...]
    removed: tuple[KernelChange, ...]

    def __str__(self) -> str:
        lines = [self.words]
        lines += [_change_text(each) for each in self.changes]
        if not self.changes:
            lines.append("no kernel differs beyond the noise of its launches")
        rest = [(self.same, "within the noise"), (self.unknown, "with too few launches to tell")]
        lines += [f"{plural(len(rows), 'kernel')} {what}" for rows, what in rest if rows]
        lines += [f"only after: {_alone(each.after)}" for each in self.added]
        lines += [f"only before: {_alone(each.before)}" for each in self.removed]
        return "\n".join(lines)


def difference(after: RunRecord, before: RunRecord) -> RunDifference:
    """Return what differs between two runs."""
    pairs = _pairs(before.kernels, after.kernels)
    both = [each for each in pairs if each.before is not None and each.after is not None]
    changes = sorted((c for c in both if c.is_different), key=lambda c: -abs(c.saved_ns))
    return RunDifference(
        f"after: {_words(after)}; before: {_words(before)}",
        tuple(changes),
        tuple(c for c in both if c.is_known and not c.is_different),
        tuple(c for c in both if not c.is_known),
        tuple(c for c in pairs if c.before is None),
        tuple(c for c in pairs if c.after is None),
    )


def _words(run: RunRecord) -> str:
    """Return what ran, and where, with the number of launches where many runs have that title."""
    launches = sum(kernel.launches for kernel in run.kernels)
    count = "1 launch" if launches == 1 else plural(launches, "launch")
    return f"the run {run.title} ({count} in {seconds_text(run.length_ns / 1e9)}) on {run.machine}"


def _pairs(before: Sequence[RunKernel], after: Sequence[RunKernel]) -> list[KernelChange]:
    """Return the kernels in pairs: equal ones first by module and line, then in their order."""
    waiting: dict[str, list[RunKernel]] = defaultdict(list)
    for kernel in before:
        waiting[kernel.key].append(kernel)
    pairs = []
    for kernel in after:
        others = waiting[kernel.key]
        places = (kernel.module, kernel.line)
        other = next((o for o in others if (o.module, o.line) == places), None)
        other = other or next(iter(others), None)
        if other is not None:
            waiting[kernel.key] = [o for o in others if o is not other]
        pairs.append(KernelChange(other, kernel))
    left = [kernel for kernels in waiting.values() for kernel in kernels]
    return [*pairs, *[KernelChange(kernel, None) for kernel in left]]


def _change_text(change: KernelChange) -> str:
    before, after = change.before, change.after
    assert before is not None and after is not None
    ratio = max(change.ratio, 1 / change.ratio)
    word = "slower" if change.ratio > 1 else "faster"
    times = f"{seconds_text(before.median_ns / 1e9)} -> {seconds_text(after.median_ns / 1e9)}"
    opts = "" if before.opts == after.opts else f"  {before.opts or 'no opts'} -> {after.opts}"
    device = "" if before.device == after.device else f"  {before.device} -> {after.device}"
    return f"  {ratio:.2f} times {word}  {times}  {change.title}{device}{opts}"


def _alone(kernel: RunKernel | None) -> str:
    assert kernel is not None
    return f"{kernel.title}, {seconds_text(kernel.total_ns / 1e9)} in all"
