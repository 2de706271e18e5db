"""The report of the full benchmark, as values that go to JSON and back.

    {"schema": 2, "machine": {...}, "versions": {...}, "absent": [...], "threads": 2,
     "rows": [{"name": ..., "operations": ..., "bytes": ..., "peak_gflops": ...,
               "figures": {"torch": {"state": "right", "remark": "", "first_s": ...,
                                     "samples_s": [...]}}}]}

Units: seconds, GFLOP/s, bytes. The n-th samples of a row's libraries were taken in one round.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.measure.timing import Samples

SCHEMA = 2
OURS = "workbench"
BUDGET_THREADS = 2
IDLE_LOAD = 0.5
# states of a library on a row
RIGHT = "right"
WRONG = "WRONG"
FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Figure:
    """One library on one row. Only a right answer is timed; else `remark` tells what happened."""

    state: str
    remark: str = ""
    first_s: float = 0.0
    samples_s: tuple[float, ...] = ()

    @property
    def median_s(self) -> float:
        """Return the median of the samples, in seconds."""
        return statistics.median(self.samples_s)

    @property
    def spread(self) -> float:
        """Half the distance between the quartiles, as a share of the median."""
        return Samples(self.samples_s).spread_s / self.median_s


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One piece of work. `operations` is None where they do not count."""

    name: str
    operations: int | None
    bytes: int
    peak_gflops: float
    figures: dict[str, Figure]

    def ratio(self, peer: str) -> float | None:
        """Return our time over the peer's, the median over the rounds; None if either lacks."""
        rounds = self._rounds(peer)
        return statistics.median(a / b for a, b in rounds) if rounds else None

    def ratio_of_least(self, peer: str) -> float | None:
        """Return our least time over the peer's: what a busy machine disturbs less."""
        rounds = self._rounds(peer)
        if not rounds:
            return None
        ours, theirs = zip(*rounds, strict=True)
        return float(min(ours) / min(theirs))

    def share_of_peak(self, name: str = OURS) -> float | None:
        """Return the share of the multiply-adds that the machine could do in the same time."""
        figure = self._timed(name)
        if figure is None or self.operations is None:
            return None
        return self.operations / figure.median_s / 1e9 / self.peak_gflops

    def _rounds(self, peer: str) -> list[tuple[float, float]]:
        """Return our time and the peer's for each round, nothing if either lacks."""
        ours, theirs = self._timed(OURS), self._timed(peer)
        if ours is None or theirs is None:
            return []
        return list(zip(ours.samples_s, theirs.samples_s, strict=True))

    def _timed(self, name: str) -> Figure | None:
        figure = self.figures.get(name)
        return figure if figure is not None and figure.samples_s else None


@dataclass(frozen=True, slots=True)
class Report:
    """A run of the benchmark: where, with what, and what was found."""

    machine: dict[str, str]
    versions: dict[str, str]
    absent: tuple[str, ...]
    threads: int
    rows: tuple[ReportRow, ...]

    @property
    def peers(self) -> tuple[str, ...]:
        """The libraries beside ours."""
        return tuple(name for name in self.versions if name != OURS)

    @property
    def is_right(self) -> bool:
        """Whether no answer was wrong, and all of ours were there."""
        results = [(n, f) for row in self.rows for n, f in row.figures.items()]
        wrong = any(f.state == WRONG for _, f in results)
        return not wrong and all(f.state == RIGHT for n, f in results if n == OURS)

    def ratios(self, peer: str) -> dict[str, float]:
        """Return our time over the peer's by row, of the rows that have both."""
        pairs = ((row.name, row.ratio(peer)) for row in self.rows)
        return {name: ratio for name, ratio in pairs if ratio is not None}

    def why_no_verdict(self) -> str | None:
        """Return why these figures say nothing about the budgets, None if they do."""
        if is_busy(self.machine):
            return "the machine was busy"
        if self.threads != BUDGET_THREADS:
            return f"the budgets are for {BUDGET_THREADS} threads"
        return None

    def to_json(self) -> str:
        """Return the report as JSON, which `from_json` reads."""
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1)

    @staticmethod
    def from_json(text: str) -> Report:
        """Return the report that `to_json` wrote.

        Errors: WorkbenchError for another schema.
        """
        document: dict[str, Any] = json.loads(text)
        if document.get("schema") != SCHEMA:
            raise WorkbenchError(
                "cannot read the report",
                f"its schema is {document.get('schema')}, and this version reads {SCHEMA}",
            )
        rows = tuple(_row(row) for row in document["rows"])
        return Report(
            document["machine"],
            document["versions"],
            tuple(document["absent"]),
            document["threads"],
            rows,
        )


def _row(data: dict[str, Any]) -> ReportRow:
    by_library = {
        name: Figure(**figure | {"samples_s": tuple(figure["samples_s"])})
        for name, figure in data["figures"].items()
    }
    return ReportRow(**data | {"figures": by_library})


def geometric_mean(values: Sequence[float]) -> float:
    """Return the mean of ratios: 2 and 1/2 make 1."""
    return math.exp(statistics.fmean(math.log(v) for v in values))


def machine() -> dict[str, str]:
    """Return what this machine is, as far as figures depend on it."""
    description = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
    if hasattr(os, "getloadavg"):
        description["load"] = f"{os.getloadavg()[0]:.1f}"
    return description


def is_busy(machine: dict[str, str]) -> bool:
    """Whether others were at work when the run began."""
    return float(machine.get("load", 0)) > IDLE_LOAD


def _processor() -> str:
    from llvmlite import binding

    return str(binding.get_host_cpu_name())
