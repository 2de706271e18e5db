"""An exploration as text: the table of kernels, a kernel, its loop nest, memory, and stored
activations.

Sections: Values that the forward stores for the backward, as text; The table of all kernels of a
plan; A kernel as text; The memory of a schedule as text; A loop nest as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from workbench.measure.kernel_time import seconds_text
from workbench.viz.model.graph import KINDS
from workbench.viz.model.phases import WEIGHTS
from workbench.viz.model.words import bytes_text, figure_text, kernel_number, plural
from workbench.viz.schema.plan import ActivationRow, MemoryChart, MemoryStep, PlanRepeat, PlanRun
from workbench.viz.schema.record import KernelRow, LineRow
from workbench.viz.schema.variant import Nest, NestRow, UseRow

# --------------------------------------------------------------------------------------------------
# Values that the forward stores for the backward, as text.

MOST_LISTED = 40
"""Most values that are printed."""


def activations_text(rows: Sequence[ActivationRow], lines: Sequence[LineRow]) -> str:
    """Return a line for each value, below their number and total bytes; "" without any. The rows
    refer to the user's `lines`."""
    return "\n".join(_lines(rows, lines)) if rows else ""


def _lines(rows: Sequence[ActivationRow], lines: Sequence[LineRow]) -> Iterator[str]:
    total = bytes_text(sum(row.bytes for row in rows))
    yield f"Stored for the backward: {plural(len(rows), 'value')}, {total}"
    for row in rows[:MOST_LISTED]:
        readers = ", ".join(str(kernel_number(reader)) for reader in row.readers)
        kernels = f"kernel {kernel_number(row.kernel)}, read by {readers}"
        line = "" if row.line is None else lines[row.line].where
        cells = [bytes_text(row.bytes), row.name, row.module, line, kernels]
        yield "  " + "  ".join(filter(None, cells))
    if len(rows) > MOST_LISTED:
        yield f"  and {len(rows) - MOST_LISTED} more"


# --------------------------------------------------------------------------------------------------
# The table of all kernels of a plan: title, time, share, bytes and line of each, and the total;
# repeated sequences are printed once.

Cells = tuple[str, str, str, str, str, str]
"""The texts of a line: number, title, time, share, bytes, and the line of the user's code."""


@dataclass(frozen=True, slots=True)
class KernelTable:
    """The kernels of a plan as a table; `where` has the user's line of each."""

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
        """Yield a line for each kernel at some positions; for a fold its own line, and the lines
        of its first round, but for that of the weights."""
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
            if self.kernels[at].phases != [WEIGHTS]:
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
        """Return the seconds of some kernels together: measured, or else predicted, or else 0."""
        runs = map(self._run, places)
        return sum(run.measured_s or run.predicted_s or 0.0 for run in runs)

    def _run(self, place: int) -> PlanRun:
        """Return the run of a kernel: its own if it was measured, else that of an equal kernel."""
        own = self.runs[place]
        return own if own.measured_s is not None else self.runs[own.like]


def _fold_title(fold: PlanRepeat) -> str:
    return fold.title if fold.times == 1 else f"{fold.times} x {fold.title}"


def _of_module(fold: PlanRepeat) -> str:
    return "" if fold.times == 1 else fold.module


def _share_text(share: float) -> str:
    """Return the share of a kernel as the page does: a small one is "<1%", not "0%"."""
    return "<1%" if 0 < share < 0.01 else f"{share:.0%}"


# --------------------------------------------------------------------------------------------------
# A kernel as text: its number and title, its source line, and its work.


def kernel_heading(place: int, kernel: KernelRow, where: str) -> str:
    """Return the number and title of a kernel, and `where` the user's line is."""
    return f"kernel {kernel_number(place)}: {kernel.title}{where and f'  {where}'}"


def work_text(kernel: KernelRow) -> str:
    """Return the operations and the bytes of memory of a kernel as text."""
    flops, size_bytes = figure_text(kernel.flops), bytes_text(int(kernel.bytes))
    return f"{flops} operations, {size_bytes}"


# --------------------------------------------------------------------------------------------------
# The memory of a schedule as text: a bar for each kernel, the peak marked.

MOST_STEPS = 60
"""Most steps that are printed; the peak is among them."""
WIDTH = 32
"""Characters of the longest bar, that of the peak."""


def memory_text(chart: MemoryChart, titles: Sequence[str]) -> str:
    """Return a line for each step: the kernel, the bytes, a bar, the number of values, the title of
    the kernel. A chart without steps has words instead."""
    if chart.peak is None:
        return chart.sentence
    most = max(1, chart.steps[chart.peak].bytes)
    first = max(0, min(chart.peak - MOST_STEPS // 2, len(chart.steps) - MOST_STEPS))
    printed = [*enumerate(chart.steps)][first : first + MOST_STEPS]
    lines = [f"memory: {chart.sentence}"]
    lines += [_line(chart, n, step, most, titles) for n, step in printed]
    more = len(chart.steps) - len(printed)
    return "\n".join([*lines, *([f"and {plural(more, 'more step')}"] if more else [])])


def _line(
    chart: MemoryChart, number: int, step: MemoryStep, most: int, titles: Sequence[str]
) -> str:
    is_copy = step.kernel is None
    place = "copy" if step.kernel is None else str(kernel_number(step.kernel))
    title = "" if is_copy else titles[step.kernel or 0]
    bar = "#" * max(int(step.bytes > 0), round(WIDTH * step.bytes / most))
    values = plural(len(step.values), "value")
    peak = "  <- the most" if number == chart.peak else ""
    text = f"  {place:>4}  {bytes_text(step.bytes):>8}  {bar:{WIDTH}}  {values}  {title}"
    return f"{text.rstrip()}{peak}"


# --------------------------------------------------------------------------------------------------
# A loop nest as text: a line for each loop, with its access to each buffer, and the statements.


def nest_text(nest: Nest) -> str:
    """Return the rows as aligned text, with `stride | bytes` for each buffer."""
    names = [b.name for b in nest.buffers]
    heads = [" ".join(filter(None, (b.user, b.name, b.role))) for b in nest.buffers]
    cells = [(_axis_text(r), [_use_text(r.uses.get(n)) for n in names]) for r in nest.rows]
    axes = [(a, c) for (a, c), r in zip(cells, nest.rows, strict=True) if r.axis]
    first = max([len("loop"), *[len(a) for a, _ in axes]])
    widths = [max([len(h), *[len(c[i]) for _, c in axes]]) for i, h in enumerate(heads)]
    lines = [_aligned("loop", heads, first, widths)]
    for (axis, uses), row in zip(cells, nest.rows, strict=True):
        if row.axis:
            lines.append(_aligned(axis, uses, first, widths))
        else:
            lines += ["  " * row.depth + line for line in row.text.split("\n")]
    return "\n".join(lines)


def _aligned(first: str, cells: Sequence[str], width: int, widths: Sequence[int]) -> str:
    parts = [f"{c:{w}}" for c, w in zip(cells, widths, strict=True)]
    return "   ".join([f"{first:{width}}", *parts]).rstrip()


def _axis_text(row: NestRow) -> str:
    if not row.axis:
        return ""
    note = " (vector)" if row.vector else ""
    letter = KINDS[row.axis_kind].badge
    return f"{'  ' * row.depth}{letter} {row.axis} x{row.size}{note}"


def _use_text(use: UseRow | None) -> str:
    return "" if use is None else f"{use.stride} | {use.bytes}"
