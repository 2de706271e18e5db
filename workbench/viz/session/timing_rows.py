"""A timing as a row of a record, from samples to speeds, and as text, as on the page
(page/app/timing.js). The record adds the share of the peak, which may rise."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from workbench.backends.device import Device
from workbench.ir.nest.estimates import Estimates
from workbench.measure.calibration import doubts
from workbench.measure.kernel_time import over_calls, seconds_text
from workbench.measure.speeds import Speeds
from workbench.measure.timing import Samples
from workbench.measure.units import number_text, percent_text
from workbench.viz.record.about import share_row
from workbench.viz.schema.variant import TimingRow

MOST_SAMPLES = 40
"""Most samples of one timing in a record."""


def timing_row(
    samples_s: Sequence[float],
    work: Estimates,
    device: str,
    kind: str | None = None,
    threads: int = 1,
    cold_s: Sequence[float] = (),
    run: str = "",
    random_inputs: bool = False,
    busy: float | None = None,
) -> TimingRow:
    """Return the row of a timing: of a kernel that computes in floats of a `kind` (None: in none)
    on `threads` threads. `run` names the measurement: times of one measurement were taken in turns,
    and only their ratios are meaningful, because a machine may be slower an hour later."""
    samples = Samples(tuple(samples_s))
    cold = Samples(tuple(cold_s)) if cold_s else None
    median, gflops = samples.median_s, work.flops / samples.median_s / 1e9
    info = Device[device] if device in Device.names() else None  # a baseline's name
    is_emulator = info is not None and info.is_emulator
    is_compared = info is None or info.is_processor or is_emulator
    return TimingRow(
        median_s=median,
        min_s=samples.min_s,
        spread=samples.spread_s / median,
        samples=[float(f"{s:.4g}") for s in samples_s[:MOST_SAMPLES]],
        cold_s=cold.median_s if cold else None,
        cold_spread=cold.spread_s / cold.median_s if cold else None,
        gflops=gflops,
        gbytes=work.bytes / median / 1e9,
        kind=kind if is_compared else None,  # there is no peak to compare with
        threads=threads,
        device=device,
        emulator=is_emulator,
        run=run,
        earlier=False,
        random_inputs=random_inputs,
        busy=busy,
        doubts=doubts(busy, samples_s),
    )


def run_name() -> str:
    """Return a name that no other measurement has, in this session or an earlier one."""
    return uuid4().hex[:12]


def timing_text(row: TimingRow, speeds: Speeds | None) -> str:
    """Return a timing with its spread, its speed, and its share of the peak of `speeds` where it
    has one: "13 ms ± 12%, cold 14 ms ± 3%, 9.0% of peak, 20.6 GFLOP/s, 0.242 GB/s"."""
    parts = [f"{seconds_text(row.median_s)} {spread_text(row)}"]
    if row.cold_s is not None:
        spread = "" if row.cold_spread is None else f" {within_text(row.cold_spread)}"
        parts.append(f"cold {seconds_text(row.cold_s)}{spread}")
    if row.emulator:
        parts.append(f"EMULATOR ({row.device})")
    else:
        share = share_row(row, speeds)
        parts += [f"{percent_text(share.fraction)} of {share.of}"] if share else []
        parts += [f"{number_text(row.gflops)} GFLOP/s", f"{number_text(row.gbytes)} GB/s"]
    parts += row.doubts
    parts += over_calls(row.median_s, row.medians)
    if row.random_inputs:
        parts.append("on random inputs")
    if row.earlier:
        parts.append("measured earlier")
    if row.machine:
        parts.append(f"on {row.machine}")
    return ", ".join(parts)


def spread_text(row: TimingRow) -> str:
    """Return the spread of a median as text, within its samples or over several measurements,
    whichever is greater: of a single run nothing is known."""
    if row.medians:
        medians = row.median_s, *row.medians
        half_range = (max(medians) - min(medians)) / 2 / row.median_s
        return within_text(max(row.spread, half_range))
    return "once" if len(row.samples) < 2 else within_text(row.spread)


def within_text(spread: float) -> str:
    """Return a spread as text; one of more than all says nothing."""
    if spread < 0.001:
        return "± <0.1%"
    return "± >100%" if spread >= 1 else f"± {percent_text(spread)}"
