"""Steps of training as text: a line for each model and library, the means and the goals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.bench.peers import OURS
from workbench.bench.report import geometric_mean
from workbench.bench.training.compare import TrainingMeasurement, TrainingRow
from workbench.bench.training.models import MODELS

TORCH = "torch"
TINYGRAD = "tinygrad"
MEAN_TO_TORCH = 1.0
WORST_TO_TORCH = 1.5
TO_TINYGRAD = 0.2
"""Most of tinygrad's time, for a step and for the first one."""

HEADER = (
    f"{'model':12}{'library':15}{'first':>9}{'step':>11}{'least':>11}{'ours/it':>9}{'least':>7}"
    f"{'kernels':>9}{'held':>8}{'peak':>8}{'planned':>9}{'loss':>9}"
)
NOTE = (
    "first: from nothing to the loss; step: median; ours/it: median over rounds, and of the"
    " least times;\nheld, peak: MB of tensors between steps and at most (ours: the pool's;"
    " torch's: its profiler's); planned: the peak that the plan predicts"
)


def lines(row: TrainingRow) -> Iterator[str]:
    """Yield a line for each library."""
    for name, measurement in row.measurements.items():
        memory = "".join(
            _megabytes(measurement, key, width)
            for key, width in (("held", 8), ("peak", 8), ("planned", 9))
        )
        kernels = "" if measurement.kernels is None else str(measurement.kernels)
        median, least = measurement.median_s * 1e3, measurement.least_s * 1e3
        yield (
            f"{row.model:12}{name:15}{measurement.first_s:7.2f} s{median:8.2f} ms"
            f"{least:8.2f} ms{_ratio(row.ratio(name)):>9}"
            f"{_ratio(row.ratio_of_least(name)):>7}{kernels:>9}{memory}{measurement.loss:9.4f}"
        )


def summary(rows: Sequence[TrainingRow]) -> Iterator[str]:
    """Yield the geometric means, the goals where the rows are those with goals, and who is
    missing."""
    peers = dict.fromkeys(n for row in rows for n in row.measurements if n != OURS.name)
    for peer in peers:
        pairs = [(row.ratio(peer), row.ratio_of_least(peer)) for row in rows]
        ratios = [r for r, _ in pairs if r is not None]
        least = [r for _, r in pairs if r is not None]
        yield (
            f"time over {peer}'s, geometric mean of {len(ratios)}: {geometric_mean(ratios):.2f};"
            f" of the least times: {geometric_mean(least):.2f}; worst {max(ratios):.2f}"
        )
    if all(row.model in MODELS for row in rows):
        yield from _goals(rows)
    yield from dict.fromkeys(sentence for row in rows for sentence in row.absent)


def _goals(rows: Sequence[TrainingRow]) -> Iterator[str]:
    to_torch = [r for row in rows if (r := row.ratio_of_least(TORCH)) is not None]
    if to_torch:
        mean, worst = geometric_mean(to_torch), max(to_torch)
        yield _goal("step over torch's, by least times", mean, MEAN_TO_TORCH)
        yield _goal("the worst of these", worst, WORST_TO_TORCH)
    steps = [r for row in rows if (r := row.ratio_of_least(TINYGRAD)) is not None]
    if steps:
        yield _goal("step over tinygrad's, the worst", max(steps), TO_TINYGRAD)
        firsts = [
            row.measurements[OURS.name].first_s / row.measurements[TINYGRAD].first_s
            for row in rows
            if TINYGRAD in row.measurements
        ]
        yield _goal("first step over tinygrad's, the worst", max(firsts), TO_TINYGRAD)
    peaks = [
        row.measurements[OURS.name].memory["peak"] / row.measurements[TORCH].memory["peak"]
        for row in rows
        if TORCH in row.measurements
        and row.measurements[TORCH].memory
        and row.measurements[OURS.name].memory
    ]
    if peaks:
        yield _goal("peak memory over torch's, the worst", max(peaks), 1.0)


def _goal(what: str, value: float, most: float) -> str:
    return f"{what}: {value:.2f}, <= {most:g}: {'within' if value <= most else 'OVER'}"


def _megabytes(measurement: TrainingMeasurement, key: str, width: int) -> str:
    size = measurement.memory.get(key)
    return f"{'' if size is None else f'{size / 1e6:.1f}':>{width}}"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
