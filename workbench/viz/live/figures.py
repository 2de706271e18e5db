"""A timing as a row of a record: from samples to speeds, shares of the peak, and words."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.backends.runtime.timing import Samples
from workbench.ir.estimates import Estimates
from workbench.kernel.timing import seconds_text

MOST_SAMPLES = 40
"""Samples of one timing that a record keeps."""
EMULATOR = "PYTHON"
Row = dict[str, Any]


def timing_row(
    samples_s: Sequence[float],
    work: Estimates,
    device: str,
    peak: float | None = None,
    cold_s: Sequence[float] = (),
) -> Row:
    """Return the row of a timing. `peak` is the best that as many threads can do, in GFLOP/s."""
    found = Samples(tuple(samples_s))
    median, gflops = found.median_s, work.flops / found.median_s / 1e9
    emulator = device == EMULATOR
    fraction = None if emulator or not peak or not work.flops else gflops / peak
    row: Row = {
        "median_s": median,
        "min_s": found.min_s,
        "spread": found.spread_s / median,
        "samples": [float(f"{s:.4g}") for s in samples_s[:MOST_SAMPLES]],
        "cold_s": statistics.median(cold_s) if cold_s else None,
        "gflops": gflops,
        "gbytes": work.bytes / median / 1e9,
        "fraction": fraction,
        "device": device,
        "emulator": emulator,
        "beside": [],
    }
    return row | {"text": _text(row)}


def with_beside(rows: Mapping[str, Row]) -> dict[str, Row]:
    """Return timings of variants, by name, that were taken in turns: each tells those of the
    others, because a ratio means something between times of one run only; a machine is slower an
    hour later.

    `beside` has rows (name, median in seconds, spread, cold seconds or None).
    """
    told = {n: [n, r["median_s"], r["spread"], r["cold_s"]] for n, r in rows.items()}
    return {
        name: row | {"beside": [other for n, other in told.items() if n != name]}
        for name, row in rows.items()
    }


def spread_text(row: Row) -> str:
    """Return how far off a median may be, as text: a single run says nothing of that."""
    if len(row["samples"]) < 2:
        return "(one run)"
    least = 0.001
    spread = row["spread"]
    return f"\u00b1 {spread:.1%}" if spread >= least else f"\u00b1 < {least:.1%}"


def _text(row: Row) -> str:
    parts = [f"{seconds_text(row['median_s'])} {spread_text(row)}"]
    if row["cold_s"] is not None:
        parts.append(f"cold {seconds_text(row['cold_s'])}")
    if row["emulator"]:
        return ", ".join([*parts, f"EMULATOR ({row['device']})"])
    if row["fraction"] is not None:
        parts.append(f"{row['fraction']:.0%} of peak")
    parts.append(f"{row['gflops']:.3g} GFLOP/s")
    parts.append(f"{row['gbytes']:.3g} GB/s")
    return ", ".join(parts)
