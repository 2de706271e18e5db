"""Sweeps: one source explored with inputs of several sizes, and where its roofs are.

Each size is explored anew, with the default opts of its kernels: what is best at one size need not
be at another. A time at a roof is what a kernel's operations take at the machine's peak, or its
bytes at the speed of its main memory, summed over the kernels; a run takes longer than the longer
of the two, except where its data stay in a cache. Source of the idea: the roofline of Williams,
Waterman and Patterson (2009).

Sections: The rows of a sweep; How they are made; Their text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.backends.device import Device
from workbench.backends.elsewhere import Elsewhere
from workbench.base.errors import WorkbenchError
from workbench.base.recording import error_words
from workbench.base.terminal import Printed
from workbench.measure.kernel_time import seconds_text
from workbench.search.realization import tuned
from workbench.viz.model.words import bytes_text, count_text
from workbench.viz.run.build import middle
from workbench.viz.run.facts import Predictor
from workbench.viz.run.repeated import rounds_of
from workbench.viz.run.run import RunTable, machine_words
from workbench.viz.run.sizes import BATCH, Again, Size, SizeStep, names_text, size_steps
from workbench.viz.schema.run import RunRecord

# --------------------------------------------------------------------------------------------------
# The rows of a sweep.


class SweepRow(NamedTuple):
    """One size of a sweep. `flops` and `bytes` are those of the algorithm, of all its kernels.

    Units: seconds, for all kernels of one run. `measured_s` is the median of the rounds, their
    middle half goes from `low_s` to `high_s`; None: not measured. `peak_s` and `memory_s` are the
    times at the two roofs; `roof` names the one that takes longer, and `share` is that time by the
    measured one, or the predicted one: what the run reaches of its roof. `error` says why there are
    no figures.
    """

    value: Size | tuple[Size, ...]
    kernels: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    measured_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    predicted_s: float | None = None
    peak_s: float | None = None
    memory_s: float | None = None
    error: str = ""

    @property
    def seconds(self) -> float | None:
        """The measured time, or else the predicted one."""
        return self.predicted_s if self.measured_s is None else self.measured_s

    @property
    def each_s(self) -> float | None:
        """The time by the size, such as that of one item of a batch; None where it is no number."""
        if not isinstance(self.value, int) or self.seconds is None:
            return None
        return self.seconds / self.value

    @property
    def roof(self) -> str:
        """The roof that binds: "peak" or "memory"; "" where the roofs are not known."""
        if self.peak_s is None or self.memory_s is None:
            return ""
        return "peak" if self.peak_s > self.memory_s else "memory"

    @property
    def share(self) -> float | None:
        """What the run reaches of the roof that binds: 1 is all of it."""
        if not self.seconds or self.peak_s is None or self.memory_s is None:
            return None
        return max(self.peak_s, self.memory_s) / self.seconds


class Sweep(Printed):
    """A source at several sizes: `rows` has a SweepRow for each, `title` says what was swept.

    `ex.sweep(batch=[1, 2, 4, 8])` makes one. It prints as a table; a notebook draws it, with its
    roofs. `ceilings` are the machine's operations and bytes per second (None: not known).
    """

    def __init__(
        self,
        title: str,
        name: str,
        machine: str,
        rows: RunTable,
        ceilings: tuple[float, float] | None = None,
        error: str = "",
    ):
        self.title, self.name, self.machine = title, name, machine
        self.rows, self.ceilings, self.error = rows, ceilings, error

    def to_pandas(self) -> Any:
        """Return the rows as a pandas.DataFrame. Errors: WorkbenchError where pandas is missing."""
        return self.rows.to_pandas()

    def __str__(self) -> str:
        return "\n".join(_lines(self))


# --------------------------------------------------------------------------------------------------
# How they are made.


def swept(again: Again, device: str, sizes: Mapping[str, object], repeat: object) -> Sweep:
    """Return the sweep of a source over `sizes`, on the device of its exploration. Each is measured
    in `repeat` rounds (0: its time is only predicted). A size that fails has a row that says why;
    Ctrl-C ends it with the rows so far.

    Errors: WorkbenchError for what are no sizes of inputs; DTypeError for no number of rounds.
    """
    steps = size_steps(again, sizes)
    rounds = rounds_of(repeat, "sweep", 0)
    info = Device[device]
    is_here = not isinstance(info, Elsewhere) and (info.is_elsewhere or not info.is_emulator)
    rows: list[SweepRow] = []
    ceilings: tuple[float, float] | None = None
    error = ""
    try:
        for step in steps:
            row, found = _measured(again, step, rounds if is_here else 0)
            rows.append(row)
            ceilings = found or ceilings
    except KeyboardInterrupt:
        error = "KeyboardInterrupt"
    name = ", ".join(sizes)
    title = f"{name} (axis 0 of {names_text(steps)})" if BATCH in sizes else name
    machine = info.notice.partition(". ")[0] or f"{device}, {machine_words()}"
    return Sweep(title, name, machine, RunTable(rows), ceilings, error)


def _measured(
    again: Again, step: SizeStep, repeat: int
) -> tuple[SweepRow, tuple[float, float] | None]:
    """Return the row of a size, and the machine's ceilings."""
    try:
        ex = again.resized(step.shapes)
        if ex.error is not None:
            return SweepRow(step.value, error=f"scheduling failed: {error_words(ex.error)}"), None
        row, ceilings = _predicted(ex, step)
        if repeat:
            record = ex.run(repeat=repeat).record
            if "KeyboardInterrupt" in record.error:
                raise KeyboardInterrupt
            if record.error:
                return row._replace(error=record.error), ceilings
            row = _with_times(row, round_seconds(record))
    except WorkbenchError as error:
        return SweepRow(step.value, error=f"{error.what}: {error.because}"), None
    except MemoryError:
        return SweepRow(step.value, error="there is not enough memory"), None
    except Exception as error:  # the source's own code may raise anything
        return SweepRow(step.value, error=error_words(error)), None
    return row, ceilings


def _predicted(ex: Any, step: SizeStep) -> tuple[SweepRow, tuple[float, float] | None]:
    """Return the row of an exploration without measured times, and the machine's ceilings, by the
    kernel of the most operations."""
    predict, device = Predictor(True), ex.device
    kernels = [kernel.original for kernel in ex.kernels]
    work = [kernel.estimates for kernel in ex.kernels]
    flops, moved = sum(w.flops for w in work), sum(w.bytes for w in work)
    row = SweepRow(step.value, len(kernels), float(flops), float(moved))
    costs = [predict.cost(kernel, tuned(kernel, device), device) for kernel in kernels]
    known = [cost for cost in costs if cost is not None]
    if not known or len(known) < len(costs):
        return row, None
    largest = max(known, key=lambda cost: cost.estimates.flops)
    row = row._replace(
        predicted_s=sum(predict.seconds(cost, device) for cost in known),
        peak_s=sum(cost.estimates.flops / cost.ceilings[0] for cost in known),
        memory_s=sum(cost.estimates.bytes / cost.ceilings[1] for cost in known),
    )
    return row, largest.ceilings


def round_seconds(record: RunRecord) -> list[float]:
    """Return the seconds in kernels of each round of a run."""
    spans, kernel = record.spans, record.kinds.index("kernel")
    sums = [0] * len(record.rounds)
    for kind, start, length in zip(spans.kind, spans.start_ns, spans.length_ns, strict=True):
        if kind == kernel:
            sums[max(0, bisect_right(record.rounds, start) - 1)] += length
    return [ns / 1e9 for ns in sums]


def _with_times(row: SweepRow, times: list[float]) -> SweepRow:
    low, median, high = middle(times)
    return row._replace(measured_s=median, low_s=low, high_s=high)


# --------------------------------------------------------------------------------------------------
# Their text.

HEADS = (
    "kernels", "operations", "bytes", "measured", "middle half", "predicted", "for each",
    "at the peak", "at memory's speed", "of the roof",
)  # fmt: skip

ABOVE = {
    "memory": (
        "above 100% (memory): this roof is all bytes at the speed of main memory; values that are "
        "in a cache move faster"
    ),
    "peak": (
        "above 100% (peak): this roof is all operations at the peak of multiply-adds; a peak that "
        "was measured under load is too low, or not all counted operations are executed"
    ),
}
"""What it means to exceed a roof, by the name of the roof."""


def _lines(sweep: Sweep) -> Iterator[str]:
    yield f"sweep of {sweep.title}, on {sweep.machine}"
    rows = [(sweep.name, *HEADS), *map(sweep_cells, sweep.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for cells, row in zip(rows, (None, *sweep.rows), strict=True):
        texts = [f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)]
        if row is not None and row.error:
            texts[1:] = [row.error]
        yield f"  {'  '.join(texts)}".rstrip()
    for roof in sorted({row.roof for row in sweep.rows if (row.share or 0) > 1}):
        yield f"  {ABOVE[roof]}"
    if sweep.error:
        yield f"  ended by {sweep.error}; the rows so far are here"


def sweep_cells(row: SweepRow) -> tuple[str, ...]:
    """Return the texts of a row."""
    if row.error:
        return (value_text(row.value), *[""] * len(HEADS))
    spread = f"{_time(row.low_s)} to {_time(row.high_s)}" if row.low_s is not None else ""
    reached = f"{row.share:.0%} ({row.roof})" if row.share is not None else ""
    return (
        value_text(row.value), str(row.kernels), count_text(row.flops), bytes_text(int(row.bytes)),
        _time(row.measured_s), spread, _time(row.predicted_s), _time(row.each_s),
        _time(row.peak_s), _time(row.memory_s), reached,
    )  # fmt: skip


def places_of(rows: Sequence[SweepRow]) -> list[float]:
    """Return where sizes stand on an axis: at their values, if they are numbers that differ; else
    one after the other."""
    values = [row.value for row in rows]
    numbers = [float(value) for value in values if isinstance(value, int)]
    if len(set(numbers)) == len(values):
        return numbers
    return [2.0**place for place in range(len(values))]


def value_text(value: Size | tuple[Size, ...]) -> str:
    """Return the text of a size: "8", "2 x 3 x 32 x 32"."""
    if isinstance(value, tuple | list):
        is_shape = all(isinstance(each, int) for each in value)
        return (" x " if is_shape else ", ").join(map(value_text, value))
    return f"{value:,}"


def _time(seconds: float | None) -> str:
    return "" if seconds is None else seconds_text(seconds)
