"""The full benchmark as text: a line per row, the means, the budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from workbench.bench.quick import Latency
from workbench.bench.report import OURS, RIGHT, Report, ReportRow, geometric_mean
from workbench.bench.suite import ENTRIES
from workbench.measure.kernel_time import seconds_text

# widths of columns, in characters
NAME = 22
OWN = 18
PEER = 17
OVER = "OVER"
GEOMEAN_TO_TORCH = 0.8
WORST_TO_TORCH = 1.5
MATMUL = 0.95


def header(names: Sequence[str]) -> str:
    """Return the line above the rows, for libraries in this order, ours first."""
    peers = "".join(f"{name:>{PEER}}" for name in names if name != OURS)
    return f"{'':{NAME}}{OURS:>{OWN}}{'speed':>12}{peers}"


def line(row: ReportRow) -> str:
    """Return a row: our time and its spread, and each peer's time with ours over it."""
    ours = row.figures[OURS]
    own = ours.state
    if ours.samples_s:
        own = f"{seconds_text(ours.median_s)} +-{ours.spread:4.0%}"
    peers = "".join(f"{_beside(row, name):>{PEER}}" for name in row.figures if name != OURS)
    return f"{row.name:{NAME}}{own:>{OWN}}{_speed(row):>12}{peers}"


def faults(row: ReportRow) -> Iterator[str]:
    """Say what went wrong, library by library."""
    for name, figure in row.figures.items():
        if figure.state != RIGHT:
            yield f"  {figure.state}: {name} on {row.name}: {figure.remark}"


def summary(report: Report) -> Iterator[str]:
    """Yield the geometric means and the budgets."""
    ratios = {peer: list(report.ratios(peer).values()) for peer in report.peers}
    least = {
        peer: [r for row in report.rows if (r := row.ratio_of_least(peer)) is not None]
        for peer in report.peers
    }
    yield _means("geometric mean", ratios)
    yield _means("  of the least times", least)
    if "torch" in report.peers:
        yield from _budgets(report)


def _beside(row: ReportRow, name: str) -> str:
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
    return f"{what:{NAME + OWN + 12}}" + "".join(f"{mean:>{PEER}}" for mean in means)


def _budgets(report: Report) -> Iterator[str]:
    """Hold the ratios to torch against the budgets of the project."""
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
            sentence = f"{row.name}: {speed:.2f} of the best of numpy and torch, >= {MATMUL}"
            verdicts.append((sentence, speed >= MATMUL))
    no_verdict = report.why_no_verdict()
    for sentence, is_kept in verdicts:
        yield f"{sentence}: {_word(is_kept) if no_verdict is None else f'({no_verdict})'}"


def _times(ratio: float) -> str:
    return f"{ratio:.3f}x" if ratio < 0.1 else f"{ratio:.2f}x"


def _word(is_kept: bool) -> str:
    return "within" if is_kept else OVER


def _second(pair: tuple[str, float]) -> float:
    return -pair[1]


def latency(line: Latency, is_busy: bool) -> str:
    """Return a latency: figure, spread, budget and whether it keeps to it, the peer's.

    A busy machine makes times longer: there one that is over its budget says little.
    """
    figure = f"{_figure(line.figure, line.unit):>9} +-{line.spread:4.0%}"
    budget = beside = ""
    if line.budget is not None:
        limit = _figure(line.budget, line.unit)
        word = _word(line.figure <= line.budget)
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
