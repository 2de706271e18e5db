"""A timing as a row of a record, from samples to speeds, and as text, as on the page
(page/app/timing.js). A row has no share of the peak: the record has the peak, and the share is
computed where a time is shown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from uuid import uuid4

from workbench.backends.device import Device
from workbench.ir.nest.estimates import Estimates
from workbench.measure.kernel_time import seconds_text
from workbench.measure.speeds import Speeds
from workbench.measure.timing import Samples
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
) -> TimingRow:
    """Return the row of a timing: of a kernel that computes in floats of a `kind` (None: in none)
    on `threads` threads. `run` names the measurement: times of one measurement were taken in turns,
    and only their ratios are meaningful, because a machine may be slower an hour later."""
    samples = Samples(tuple(samples_s))
    median, gflops = samples.median_s, work.flops / samples.median_s / 1e9
    info = Device[device] if device in Device.names() else None  # a baseline's name
    is_emulator = info is not None and info.is_emulator
    is_compared = info is None or info.is_processor or is_emulator
    return TimingRow(
        median_s=median,
        min_s=samples.min_s,
        spread=samples.spread_s / median,
        samples=[float(f"{s:.4g}") for s in samples_s[:MOST_SAMPLES]],
        cold_s=statistics.median(cold_s) if cold_s else None,
        gflops=gflops,
        gbytes=work.bytes / median / 1e9,
        kind=kind if is_compared else None,  # there is no peak to compare with
        threads=threads,
        device=device,
        emulator=is_emulator,
        run=run,
        earlier=False,
    )


def run_name() -> str:
    """Return a name that no other measurement has, in this session or an earlier one."""
    return uuid4().hex[:12]


def timing_text(row: TimingRow, speeds: Speeds | None) -> str:
    """Return a timing with its spread, its speed, and its share of the peak of `speeds` where it
    has one: "13 ms ± 12%, cold 14 ms, 9.0% of peak, 20.6 GFLOP/s, 0.242 GB/s"."""
    parts = [f"{seconds_text(row.median_s)} {spread_text(row)}"]
    if row.cold_s is not None:
        parts.append(f"cold {seconds_text(row.cold_s)}")
    if row.emulator:
        parts.append(f"EMULATOR ({row.device})")
    else:
        parts += _share_text(row, speeds)
        parts += [f"{row.gflops:.3g} GFLOP/s", f"{row.gbytes:.3g} GB/s"]
    if row.earlier:
        parts.append("measured earlier")
    return ", ".join(parts)


def spread_text(row: TimingRow) -> str:
    """Return the spread of a median as text; "" for a single run."""
    spread = row.spread
    if len(row.samples) < 2:
        return "one run"
    if spread < 0.001:
        return "± <0.1%"
    return "± >100%" if spread >= 1 else f"± {_percent(spread)}"


def _share_text(row: TimingRow, speeds: Speeds | None) -> list[str]:
    kind, threads = row.kind, row.threads
    if speeds is None or kind is None:
        return []
    share = speeds.share(kind, threads, row.gflops * 1e9)
    if share is None:
        return []
    peak = speeds.peak[kind]
    if peak.of(threads) >= 0.9 * peak.together:
        name = "peak"
    else:
        name = "one thread's peak" if threads == 1 else f"{threads} threads' peak"
    return [f"{_percent(share)} of {name}"]


def _percent(fraction: float) -> str:
    return f"{fraction:.1%}" if fraction < 0.0995 else f"{fraction:.0%}"
