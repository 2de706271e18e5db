"""`workbench bench`: its options, and the figures that it prints and writes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from workbench.base.errors import WorkbenchError
from workbench.base.files import FileKind, writable_path
from workbench.base.terminal import say

if TYPE_CHECKING:
    from workbench.bench.peers import Peer
    from workbench.bench.report import ReportRow

FIGURES = FileKind("table of figures", r'\{\s*"schema":')
PLOT = FileKind("plot", r"<svg|<\?xml")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `workbench bench`."""
    add = parser.add_argument
    add("--quick", action="store_true", help="latencies against their budgets")
    add(
        "--models",
        nargs="?",
        const="goals",
        choices=("goals", "wide"),
        help="steps of training: of the models with goals, or of more shapes (wide)",
    )
    add("--only", nargs="+", default=[], metavar="NAME", help="rows whose name has NAME")
    add("--peers", nargs="*", metavar="NAME", help="libraries (all that are installed)")
    add("--seconds", type=float, default=2.0, help="sampling for each row (2)")
    add("--threads", type=int, default=2, help="threads of each library (2)")
    add("--repeats", type=int, default=5, help="fresh processes of each, with --quick (5)")
    add("--json", type=Path, metavar="FILE", help="write the figures")
    add("--plot", type=Path, metavar="FILE", help="write the ratios as an SVG")
    add("--smoke", action="store_true", help="tiny inputs: only the answers are tested")


def bench(options: argparse.Namespace) -> int:
    """Measure and print; return 1 if an answer was wrong or one of ours is missing."""
    for path, kind in ((options.json, FIGURES), (options.plot, PLOT)):
        if path is not None:
            _require_writable(path, kind)
    if options.models:
        return models(options)
    return quick(options) if options.quick else full(options)


def quick(options: argparse.Namespace) -> int:
    """Print the latencies."""
    from workbench.bench.quick import Latency, run
    from workbench.bench.report import SCHEMA, is_busy, latency, machine

    if options.plot or options.only:
        raise WorkbenchError("--quick has neither --plot nor --only")
    where = machine()
    _introduce(where)
    lines, busy = [], is_busy(where)
    with_peer = options.peers is None or "tinygrad" in options.peers
    for line in run(options.repeats, options.threads, with_peer=with_peer):
        say(latency(line, busy) if isinstance(line, Latency) else line)
        if isinstance(line, Latency):
            lines.append(asdict(line))
    if options.json:
        document = {"schema": SCHEMA, "machine": where, "latencies": lines}
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return 0


def models(options: argparse.Namespace) -> int:
    """Print the times of training steps beside other libraries; return 1 if one of ours fails."""
    from workbench.bench import training as text
    from workbench.bench.models import MODELS, WIDE_MODELS
    from workbench.bench.peers import OURS
    from workbench.bench.report import SCHEMA, machine
    from workbench.bench.training import compare, peers_named

    if options.quick or options.plot or options.smoke:
        raise WorkbenchError("--models has neither --quick, --plot nor --smoke")
    table = MODELS if options.models == "goals" else WIDE_MODELS
    selection = _named(list(table.values()), options.only)
    where = machine()
    _introduce(where)
    say(f"{text.NOTE}\n{text.HEADER}")
    rows = []
    for row in compare(selection, peers_named(options.peers), options.threads, options.seconds):
        say("\n".join(text.lines(row)))
        rows.append(row)
    say("\n".join(text.summary(rows)))
    if options.json:
        models = [asdict(row) for row in rows]
        document = {"schema": SCHEMA, "machine": where, "models": models}
        options.json.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return 0 if all(OURS.name in row.measurements for row in rows) else 1


def full(options: argparse.Namespace) -> int:
    """Print the times of the benchmark set beside other libraries; return 1 if an answer is
    wrong."""
    from workbench.bench import full
    from workbench.bench import report as text
    from workbench.bench.report import machine, svg
    from workbench.bench.suite import ENTRIES

    _introduce(machine())
    is_smoke = options.smoke
    cell = (
        "whether the answer on a tiny input is right" if is_smoke else "its time, and ours over it"
    )
    say(f"each cell: {cell}" + ("" if is_smoke else " (below 1: we are faster)"))
    printed = 0

    def print_row(row: ReportRow) -> None:
        nonlocal printed
        if not printed:
            say(text.header(list(row.figures), "" if is_smoke else "speed"))
        line = text.verdicts(row) if is_smoke else text.line(row)
        say("\n".join([line, *text.faults(row)]))
        printed += 1

    report = full.run(
        _named(ENTRIES, options.only), _peers(options.peers), options.threads,
        options.seconds, is_smoke, print_row,
    )  # fmt: skip
    say("\n".join([*([] if is_smoke else text.summary(report)), *report.absent]))
    if options.json:
        options.json.write_text(report.to_json(), encoding="utf-8")
    if options.plot:
        options.plot.write_text(svg(report), encoding="utf-8")
    return 0 if report.is_right else 1


def _introduce(machine: dict[str, str]) -> None:
    from workbench.bench.report import is_busy

    say(", ".join(f"{key} {value}" for key, value in machine.items()))
    if is_busy(machine):
        say("the machine is busy: times are longer, most of all those on several threads")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def _named(rows: Sequence[N], only: Sequence[str]) -> list[N]:
    """Return the rows whose name contains one of `only`, or all without `only`. Errors:
    WorkbenchError if there are none."""
    selection = [e for e in rows if not only or any(word in e.name for word in only)]
    if not selection:
        raise WorkbenchError(
            f"no row is named {' or '.join(only)}",
            "the rows are " + ", ".join(e.name for e in rows),
        )
    return selection


def _peers(names: Sequence[str] | None) -> list[Peer]:
    from workbench.bench.peers import PEERS

    unknown = sorted(set(names or ()) - set(PEERS))
    if unknown:
        raise WorkbenchError(
            f"there is no peer {', '.join(unknown)}", "the peers are " + ", ".join(PEERS)
        )
    return [peer for name, peer in PEERS.items() if names is None or name in names]


def _require_writable(path: Path, kind: FileKind) -> None:
    """Raise WorkbenchError for a file that cannot be written, before anything is measured."""
    with suppress(OSError):  # what cannot be made is said below
        path.parent.mkdir(parents=True, exist_ok=True)
    writable_path(path, kind)
