"""The report of the full benchmark: as values that go to JSON and back, as text, and as an SVG.

    {"schema": 2, "machine": {...}, "versions": {...}, "absent": [...], "threads": 2,
     "rows": [{"name": ..., "operations": ..., "bytes": ..., "peak_gflops": ...,
               "figures": {"torch": {"state": "right", "remark": "", "first_s": ...,
                                     "samples_s": [...]}}}]}

Units: seconds, GFLOP/s, bytes. The n-th samples of a row's libraries were taken in one round.

Sections: The report of the full benchmark, as values that go to JSON and back; The full
benchmark as text; The ratios of a Report as an SVG.
"""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.bench.quick import Latency
from workbench.bench.suite import ENTRIES
from workbench.measure.kernel_time import seconds_text
from workbench.measure.timing import Samples

# --------------------------------------------------------------------------------------------------
# The report of the full benchmark, as values that go to JSON and back.

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
    """One library on one row. Only a right answer is timed; for another state `remark` says why."""

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
    """One piece of work. `operations` is None where moving data takes the time."""

    name: str
    operations: int | None
    bytes: int
    peak_gflops: float
    figures: dict[str, Figure]

    def ratio(self, peer: str) -> float | None:
        """Return our time over the peer's, the median over the rounds; None if one is not timed."""
        rounds = self._rounds(peer)
        return statistics.median(a / b for a, b in rounds) if rounds else None

    def ratio_of_least(self, peer: str) -> float | None:
        """Return our least time over the peer's, which a busy machine disturbs less; None as in
        `ratio`."""
        rounds = self._rounds(peer)
        if not rounds:
            return None
        ours, theirs = zip(*rounds, strict=True)
        return float(min(ours) / min(theirs))

    def share_of_peak(self, name: str = OURS) -> float | None:
        """Return the speed of a library as a share of the machine's peak of multiply-adds; None
        without a time or without `operations`."""
        figure = self._timed(name)
        if figure is None or self.operations is None:
            return None
        return self.operations / figure.median_s / 1e9 / self.peak_gflops

    def _rounds(self, peer: str) -> list[tuple[float, float]]:
        """Return our time and the peer's for each round; [] if one is not timed."""
        ours, theirs = self._timed(OURS), self._timed(peer)
        if ours is None or theirs is None:
            return []
        return list(zip(ours.samples_s, theirs.samples_s, strict=True))

    def _timed(self, name: str) -> Figure | None:
        figure = self.figures.get(name)
        return figure if figure is not None and figure.samples_s else None


@dataclass(frozen=True, slots=True)
class Report:
    """A run of the benchmark: its machine, the versions of libraries, a sentence for each absent
    one, threads, and rows."""

    machine: dict[str, str]
    versions: dict[str, str]
    absent: tuple[str, ...]
    threads: int
    rows: tuple[ReportRow, ...]

    @property
    def peers(self) -> tuple[str, ...]:
        """The libraries other than ours."""
        return tuple(name for name in self.versions if name != OURS)

    @property
    def is_right(self) -> bool:
        """Whether no library's answer was wrong, and all of ours were right."""
        results = [(n, f) for row in self.rows for n, f in row.figures.items()]
        wrong = any(f.state == WRONG for _, f in results)
        return not wrong and all(f.state == RIGHT for n, f in results if n == OURS)

    def ratios(self, peer: str) -> dict[str, float]:
        """Return our time over the peer's by row, of the rows that have both."""
        pairs = ((row.name, row.ratio(peer)) for row in self.rows)
        return {name: ratio for name, ratio in pairs if ratio is not None}

    def why_no_verdict(self) -> str | None:
        """Return why these figures are not compared with the budgets; None if they are."""
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
    """Return the geometric mean: of 2 and 1/2 it is 1."""
    return math.exp(statistics.fmean(math.log(v) for v in values))


def machine() -> dict[str, str]:
    """Return a description of this machine: processor, cores, system, Python, and load."""
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
    """Whether other processes were running when the run began, by the load of the machine."""
    return float(machine.get("load", 0)) > IDLE_LOAD


def _processor() -> str:
    from llvmlite import binding

    return str(binding.get_host_cpu_name())


# --------------------------------------------------------------------------------------------------
# The full benchmark as text: a line per row, the means, the budgets.

# widths of columns, in characters
NAME_WIDTH = 22
OWN_WIDTH = 18
PEER_WIDTH = 17
OVER = "OVER"
GEOMEAN_TO_TORCH = 0.8
WORST_TO_TORCH = 1.5
MATMUL_TO_BEST = 0.95


def header(names: Sequence[str], column: str = "speed") -> str:
    """Return the line above the rows, for libraries in this order, ours first."""
    peers = "".join(f"{name:>{PEER_WIDTH}}" for name in names if name != OURS)
    return f"{'':{NAME_WIDTH}}{OURS:>{OWN_WIDTH}}{column:>12}{peers}"


def line(row: ReportRow) -> str:
    """Return a row: our time and its spread, and each peer's time with ours over it."""
    ours = row.figures[OURS]
    own = ours.state
    if ours.samples_s:
        own = f"{seconds_text(ours.median_s)} +-{ours.spread:4.0%}"
    peers = "".join(
        f"{_time_and_ratio(row, name):>{PEER_WIDTH}}" for name in row.figures if name != OURS
    )
    return f"{row.name:{NAME_WIDTH}}{own:>{OWN_WIDTH}}{_speed(row):>12}{peers}"


def verdicts(row: ReportRow) -> str:
    """Return a row of a run on tiny inputs, whose times say nothing: whether each answer is right.
    It stands below the header, with nothing in the column of speeds."""
    own = f"{row.name:{NAME_WIDTH}}{row.figures[OURS].state:>{OWN_WIDTH}}{'':12}"
    others = (
        f"{figure.state:>{PEER_WIDTH}}" for name, figure in row.figures.items() if name != OURS
    )
    return own + "".join(others)


def faults(row: ReportRow) -> Iterator[str]:
    """Yield a line for each library whose answer is not right."""
    for name, figure in row.figures.items():
        if figure.state != RIGHT:
            yield f"  {figure.state}: {name} on {row.name}: {figure.remark}"


def summary(report: Report) -> Iterator[str]:
    """Yield the geometric means and the verdicts on the budgets."""
    ratios = {peer: list(report.ratios(peer).values()) for peer in report.peers}
    least = {
        peer: [r for row in report.rows if (r := row.ratio_of_least(peer)) is not None]
        for peer in report.peers
    }
    yield _means("geometric mean", ratios)
    yield _means("  of the least times", least)
    if "torch" in report.peers:
        yield from _budgets(report)


def _time_and_ratio(row: ReportRow, name: str) -> str:
    figure = row.figures[name]
    if not figure.samples_s:
        return figure.state
    ratio = row.ratio(name)
    return seconds_text(figure.median_s) + ("" if ratio is None else f" {_times(ratio):>6}")


def _speed(row: ReportRow) -> str:
    if not row.figures[OURS].samples_s:
        return ""
    share = row.share_of_peak()
    if share is not None:
        return f"{share:.0%} peak"
    return f"{row.bytes / row.figures[OURS].median_s / 1e9:.3g} GB/s"


def _means(what: str, ratios: dict[str, list[float]]) -> str:
    means = (_times(geometric_mean(r)) if r else "-" for r in ratios.values())
    return f"{what:{NAME_WIDTH + OWN_WIDTH + 12}}" + "".join(
        f"{mean:>{PEER_WIDTH}}" for mean in means
    )


def _budgets(report: Report) -> Iterator[str]:
    """Yield the ratios to torch beside the budgets of the project."""
    extra = {entry.name for entry in ENTRIES if entry.is_extra}
    ratios = {n: r for n, r in report.ratios("torch").items() if n not in extra}
    if not ratios:
        return
    mean = geometric_mean(list(ratios.values()))
    slow = {name: r for name, r in ratios.items() if r > WORST_TO_TORCH}
    listed = ", ".join(f"{n} {r:.1f}" for n, r in sorted(slow.items(), key=_second))
    verdicts = [
        (
            f"time over torch's, geometric mean: {mean:.2f}, <= {GEOMEAN_TO_TORCH}"
            f" ({len(ratios)} rows)",
            mean <= GEOMEAN_TO_TORCH,
        ),
        (f"rows above {WORST_TO_TORCH} of torch: {listed or 'none'}", not slow),
    ]
    for row in report.rows:
        over = [r for p in ("numpy", "torch") if (r := row.ratio(p)) is not None]
        if row.name in ("matmul 512", "matmul 1024") and over:
            speed = 1 / max(over)
            sentence = (
                f"{row.name}: {speed:.2f} of the best of numpy and torch, >= {MATMUL_TO_BEST}"
            )
            verdicts.append((sentence, speed >= MATMUL_TO_BEST))
    no_verdict = report.why_no_verdict()
    for sentence, is_kept in verdicts:
        yield f"{sentence}: {_verdict(is_kept) if no_verdict is None else f'({no_verdict})'}"


def _times(ratio: float) -> str:
    return f"{ratio:.3f}x" if ratio < 0.1 else f"{ratio:.2f}x"


def _verdict(is_kept: bool) -> str:
    return "within" if is_kept else OVER


def _second(pair: tuple[str, float]) -> float:
    return -pair[1]


def latency(line: Latency, is_busy: bool) -> str:
    """Return a latency as text: its figure, spread and budget with the verdict, the peer's figure.

    On a busy machine a time above its budget has no verdict.
    """
    figure = f"{_figure(line.figure, line.unit):>9} +-{line.spread:4.0%}"
    budget = beside = ""
    if line.budget is not None:
        limit = _figure(line.budget, line.unit)
        word = _verdict(line.figure <= line.budget)
        if word == OVER and is_busy and line.unit == "s":
            word = "(busy)"
        budget = f"<= {limit:7} {word}"
    if line.peer_figure is not None:
        ratio = line.figure / line.peer_figure
        theirs = _figure(line.peer_figure, line.unit)
        beside = f"tinygrad {theirs:>8} {_times(ratio):>7}"
    return f"{line.what:38}{figure}   {budget:20}{beside}".rstrip()


def _figure(value: float, unit: str) -> str:
    return f"{value:.2f} x" if unit == "x" else seconds_text(value)


# --------------------------------------------------------------------------------------------------
# The ratios of a Report as an SVG: a dot per library and row, on a log scale.

# margins, and the height of a row, in pixels
LEFT_MARGIN = 190
RIGHT_MARGIN = 30
TOP = 64
ROW_HEIGHT = 22
WIDTH = 860
COLOURS = ("#0072b2", "#d55e00", "#cc79a7", "#009e73", "#e69f00")  # Okabe and Ito 2008
RADIUS = 4.5


def svg(report: Report) -> str:
    """Return a picture of our time over each peer's: left of the line at 1 we are faster."""
    ratios = {peer: report.ratios(peer) for peer in report.peers}
    present = [r for row in ratios.values() for r in row.values()]
    low = min(-1, math.floor(math.log10(min(present, default=1))))
    high = max(1, math.ceil(math.log10(max(present, default=1))))
    height = TOP + ROW_HEIGHT * len(report.rows) + 12

    def x(ratio: float) -> float:
        share = (math.log10(ratio) - low) / (high - low)
        return LEFT_MARGIN + share * (WIDTH - LEFT_MARGIN - RIGHT_MARGIN)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT_MARGIN}" y="18">time of workbench over the time of each library</text>',
    ]
    for power in range(low, high + 1):
        at, colour = x(10.0**power), "#444" if power == 0 else "#ddd"
        parts.append(
            f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 8}" y2="{height - 12}"'
            f' stroke="{colour}"/>'
            f'<text x="{at:.1f}" y="{TOP - 14}" text-anchor="middle">{10.0**power:g}</text>'
        )
    for number, row in enumerate(report.rows):
        y = TOP + ROW_HEIGHT * number + 8
        parts.append(
            f'<text x="{LEFT_MARGIN - 12}" y="{y + 4}" text-anchor="end">{escape(row.name)}</text>'
        )
        for peer, colour in zip(report.peers, COLOURS, strict=False):
            if row.name in ratios[peer]:
                ratio = ratios[peer][row.name]
                parts.append(
                    f'<circle cx="{x(ratio):.1f}" cy="{y}" r="{RADIUS}" fill="{colour}"'
                    f' fill-opacity="0.8"><title>{escape(peer)}: {ratio:.2f}</title></circle>'
                )
    parts += _legend(report)
    return "\n".join([*parts, "</svg>", ""])


def _legend(report: Report) -> list[str]:
    parts = []
    for number, (peer, colour) in enumerate(zip(report.peers, COLOURS, strict=False)):
        at = LEFT_MARGIN + 110 * number
        parts.append(
            f'<circle cx="{at + RADIUS}" cy="32" r="{RADIUS}" fill="{colour}"/>'
            f'<text x="{at + 14}" y="36">{escape(peer)}</text>'
        )
    return parts
