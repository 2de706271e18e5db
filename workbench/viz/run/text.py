"""A run as text: where its time went, its kernels by share, and what is strange in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.measure.kernel_time import seconds_text
from workbench.viz.model.words import bytes_text, plural, three_digits
from workbench.viz.schema.run import RunHelp, RunKernel, RunRecord, RunShare

MOST_KERNELS = 30
"""Most kernels that are printed, those of the greatest shares."""
MOST_SHARES = 12
"""Most shares of phases, modules or kinds that are printed."""
OFF = 1.5
"""A measured time more than this many times the predicted one, or less than its inverse, is
marked."""


def run_text(run: RunRecord) -> str:
    """Return the text of a run."""
    return "\n".join(_lines(run))


def _lines(run: RunRecord) -> Iterator[str]:
    yield heading(run)
    yield from (f"  note  {notice}" for notice in run.notices)
    if run.error:
        yield f"  ended by  {run.error}; what ran before is here"
    for error in run.errors:
        lane = run.lanes[run.spans.lane[error.span]].name
        yield f"  failed  {span_name(run, error.span)} on {lane}: {error.text}"
    if run.phases:
        yield "time of the threads that launch kernels:"
        yield from shares_lines(run.phases)
    if run.kernels:
        yield "kernels by share:"
        yield from kernels_lines(run.kernels)
    if run.memory.peak_bytes:
        plan = " by the plan" if run.memory.is_planned else ""
        at = seconds_text(run.memory.peak_ns / 1e9)
        yield f"memory: at most {bytes_text(run.memory.peak_bytes)} at {at}{plan}"
    yield from help_lines(run)


def heading(run: RunRecord) -> str:
    """Return what ran, how long, and where."""
    launches = sum(kernel.launches for kernel in run.kernels)
    words = [plural(launches, "launch")] if launches != 1 else ["1 launch"]
    words += [f"of {plural(len(run.kernels), 'kernel')}"] if launches else []
    words += [f"in {seconds_text(run.length_ns / 1e9)}"]
    if run.rounds:
        words += [f"({plural(len(run.rounds), 'round')})"]
    return f"run {run.title}: {' '.join(words)} on {run.machine}"


def span_name(run: RunRecord, span: int) -> str:
    """Return the kind and the name of a span."""
    kind, subject = run.kinds[run.spans.kind[span]], run.spans.subject[span]
    if kind in ("kernel", "part"):
        return f"{kind} {run.kernels[subject].title}"
    return f"{kind} {run.names[subject]}".strip() if subject >= 0 else kind


def shares_lines(rows: Sequence[RunShare]) -> Iterator[str]:
    """Yield a line for each share, the greatest first."""
    for row in rows[:MOST_SHARES]:
        name = row.name or "(none)"
        yield f"  {_share(row.share):>4}  {seconds_text(row.ns / 1e9):>8}  {row.count:>6} x  {name}"
    if len(rows) > MOST_SHARES:
        yield f"  and {len(rows) - MOST_SHARES} more"


def kernels_lines(kernels: Sequence[RunKernel]) -> Iterator[str]:
    """Yield a table of kernels, the one of the greatest share first."""
    rows: list[tuple[str, ...]] = [
        ("share", "launches", "median", "middle half", "predicted", "bytes", "kernel")
    ]
    order = sorted(kernels, key=lambda kernel: -kernel.total_ns)
    rows += [kernel_cells(kernel) for kernel in order[:MOST_KERNELS]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for *cells, last in rows:
        texts = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=False)]
        yield "  " + "  ".join([*texts, last])
    if len(kernels) > MOST_KERNELS:
        rest = sum(kernel.share for kernel in order[MOST_KERNELS:])
        yield f"  and {len(kernels) - MOST_KERNELS} more, {_share(rest)} together"


def kernel_cells(kernel: RunKernel) -> tuple[str, ...]:
    """Return the texts of the row of a kernel."""
    spread = f"{_time(kernel.low_ns)} to {_time(kernel.high_ns)}" if kernel.launches > 1 else ""
    predicted = "" if kernel.predicted_ns is None else _time(kernel.predicted_ns)
    if kernel.ratio is not None and is_off(kernel.ratio):
        predicted += f" (off {three_digits(max(kernel.ratio, 1 / kernel.ratio))} times)"
    name = "  ".join(filter(None, (kernel.title, kernel.module, kernel.line)))
    median = _time(kernel.median_ns) if kernel.launches else "failed"
    return (
        _share(kernel.share), f"{kernel.launches:,}", median, spread, predicted,
        bytes_text(int(kernel.bytes)), name,
    )  # fmt: skip


def is_off(ratio: float) -> bool:
    """Whether a measured time is far from the predicted one."""
    return not 1 / OFF <= ratio <= OFF


def help_lines(run: RunRecord) -> Iterator[str]:
    """Yield what would help: a line for each kernel."""
    if run.help:
        yield "what would help:"
    for row in run.help:
        yield f"  {help_words(row, run)}"


def help_words(row: RunHelp, run: RunRecord) -> str:
    """Return in words what another variant of a kernel would save of the run."""
    kernel = run.kernels[row.kernel]
    how = "measured" if row.is_measured else "predicted"
    saved = f"{seconds_text(row.saves_ns / 1e9)} of {seconds_text(run.length_ns / 1e9)}"
    change = f"{_time(row.from_ns)} -> {_time(row.to_ns)} a launch"
    return f"{saved}  {kernel.title}: {change} ({how}) with {row.opts or 'no opts'}"


def _time(ns: float) -> str:
    return seconds_text(ns / 1e9)


def _share(share: float) -> str:
    return "<1%" if 0 < share < 0.01 else f"{share:.0%}"
