"""Passes and opts as plain rows: what ran, how often its rules fired, how long it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.base.trace import PassRecord
from workbench.ir.opt.opt import Opt
from workbench.measure.kernel_time import seconds_text
from workbench.viz.model.words import plural


@dataclass(frozen=True, slots=True)
class PassRow:
    """One pass. `depth` counts the passes it ran inside of; `rules` counts matches by rule, the
    busiest first; `changed` is False for a pass that left its input as it was; `unit` is what a
    match is called: a "rewrite" of a node, a "decision" about one, or an "opt"."""

    name: str
    doc: str
    matches: int
    seconds: float
    changed: bool
    depth: int
    rules: tuple[tuple[str, int], ...]
    error: str = ""
    dropped: int = 0
    unit: str = "rewrite"


def pass_rows(records: Sequence[PassRecord]) -> tuple[PassRow, ...]:
    """Return a row per record, in execution order, nested ones after the one around them."""
    depths: dict[str, int] = {}
    rows = []
    for record in records:
        depth = 0 if record.parent is None else depths.get(record.parent, 0) + 1
        depths[record.name] = depth
        rules = Counter(_rule_name(m.rule) for m in record.matches)
        rows.append(
            PassRow(
                record.name, record.doc, len(record.matches) + record.dropped, record.seconds,
                record.after is not record.before or bool(record.matches), depth,
                tuple(rules.most_common()), _error_text(record), record.dropped, _unit(record),
            )
        )  # fmt: skip
    return tuple(rows)


def passes_text(rows: Sequence[PassRow], times: bool = True) -> str:
    """Return the rows as text; without `times` it is the same on every machine."""
    width = max((2 * r.depth + len(r.name) for r in rows), default=0)
    lines = []
    for row in rows:
        name = "  " * row.depth + row.name
        time = f"  {seconds_text(row.seconds):>8}" if times else ""
        lines.append(f"{name:{width}}{time}  {outcome(row)}")
    return "\n".join(lines)


def outcome(row: PassRow) -> str:
    """Return what came of a pass: "12 rewrites", "changed nothing", or its error."""
    if row.error:
        return f"failed: {row.error}"
    if row.matches:
        lost = f" ({row.dropped:,} not kept)" if row.dropped else ""
        return plural(row.matches, row.unit) + lost
    return "done" if row.changed else "changed nothing"


def opts_by_op(opts: Sequence[Opt]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return (op, opts as text) per kind of opt, in the order given."""
    groups: dict[str, list[str]] = {}
    for opt in opts:
        groups.setdefault(opt.op.name, []).append(str(opt))
    return tuple((op, tuple(listed)) for op, listed in groups.items())


def _rule_name(rule: object) -> str:
    return str(rule) if isinstance(rule, Opt) else repr(rule)


def _unit(record: PassRecord) -> str:
    if any(isinstance(m.rule, Opt) for m in record.matches):
        return "opt"
    decided = record.matches and all(m.before is m.after for m in record.matches)
    return "decision" if decided else "rewrite"


def _error_text(record: PassRecord) -> str:
    if record.error is None:
        return ""
    return f"{type(record.error).__name__}: {record.error}"
