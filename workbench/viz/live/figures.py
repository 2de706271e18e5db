"""A timing as a row of a record: from samples to speeds. Shares of the peak are not in it: there is
one peak, in the record, and pages say what share of it a time is."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from workbench.backends.runtime.timing import Samples
from workbench.ir.estimates import Estimates

MOST_SAMPLES = 40
"""Samples of one timing that a record keeps."""
EMULATOR = "PYTHON"
Row = dict[str, Any]


def timing_row(
    samples_s: Sequence[float],
    work: Estimates,
    device: str,
    kind: str | None = None,
    threads: int = 1,
    cold_s: Sequence[float] = (),
    run: str = "",
) -> Row:
    """Return the row of a timing: of a kernel that computes in floats of a `kind` (None: in none)
    on so many threads. `run` names the measurement: what was timed in one was timed in turns, and
    a ratio means something between such times only; a machine is slower an hour later."""
    found = Samples(tuple(samples_s))
    median, gflops = found.median_s, work.flops / found.median_s / 1e9
    return {
        "median_s": median,
        "min_s": found.min_s,
        "spread": found.spread_s / median,
        "samples": [float(f"{s:.4g}") for s in samples_s[:MOST_SAMPLES]],
        "cold_s": statistics.median(cold_s) if cold_s else None,
        "gflops": gflops,
        "gbytes": work.bytes / median / 1e9,
        "kind": kind,
        "threads": threads,
        "device": device,
        "emulator": device == EMULATOR,
        "run": run,
        "earlier": False,
    }


def run_name() -> str:
    """Return a name that no other measurement has, in this session or an earlier one."""
    return uuid4().hex[:12]
