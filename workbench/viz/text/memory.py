"""The memory of a schedule as text: a bar for each kernel, the peak marked."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.viz.model.words import bytes_text, kernel_number, plural
from workbench.viz.schema.plan import MemoryChart, MemoryStep

MOST_STEPS = 60
"""Steps that are printed; the peak is among them."""
WIDTH = 32
"""Characters of the bar of the peak."""


def memory_text(chart: MemoryChart, titles: Sequence[str]) -> str:
    """Return a line for each step: the kernel, the bytes, a bar, and what the kernel is called."""
    if chart.peak is None:
        return chart.words
    most = max(1, chart.steps[chart.peak].bytes)
    first = max(0, min(chart.peak - MOST_STEPS // 2, len(chart.steps) - MOST_STEPS))
    printed = [*enumerate(chart.steps)][first : first + MOST_STEPS]
    lines = [f"memory: {chart.words}"]
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
