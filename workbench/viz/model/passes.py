"""Passes as rows: the name, the rules that fired, the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import asdict

from workbench.base.trace import PassRecord, PassStep
from workbench.ir.opt.opt import Opt
from workbench.ir.schedule.item import Decision
from workbench.viz.schema.record import PassOutcome, PassRow
from workbench.viz.schema.variant import NamedNumber


def pass_rows(records: Sequence[PassRecord]) -> list[PassRow]:
    """Return a row per record, in execution order, nested ones after the one around them."""
    rows = []
    for record, outcome in zip(records, outcomes(records), strict=True):
        fired = Counter(_rule_name(m.rule) for m in record.matches)
        rules = [NamedNumber(*rule) for rule in fired.most_common()]
        row = PassRow(**asdict(outcome), rules=rules)
        rows.append(row)
    return rows


def outcomes(records: Sequence[PassRecord]) -> Iterator[PassOutcome]:
    """Yield what came of each pass."""
    depths: dict[str, int] = {}
    for record in records:
        depth = 0 if record.parent is None else depths.get(record.parent, 0) + 1
        depths[record.name] = depth
        yield PassOutcome(
            name=record.name,
            doc=record.doc,
            depth=depth,
            unit=_unit(record),
            seconds=record.seconds,
            changed=record.after is not record.before or bool(record.matches),
            error=_error_text(record),
            matches=len(record.matches) + record.dropped,
            dropped=record.dropped,
        )


def _rule_name(rule: object) -> str:
    return str(rule) if isinstance(rule, Opt) else repr(rule)


def _unit(record: PassRecord) -> str:
    """Return what the matches of a pass are: "rewrite", "decision", "opt", or "step" for those of a
    function, which may apply rules, too."""
    rules = [m.rule for m in record.matches]
    if any(isinstance(r, Opt) for r in rules):
        return "opt"
    if any(isinstance(r, Decision) for r in rules):
        return "decision"
    if any(isinstance(r, PassStep) for r in rules):
        return "step"
    if not rules and record.after is not record.before:
        return "step"
    return "rewrite"


def _error_text(record: PassRecord) -> str | None:
    if record.error is None:
        return None
    return f"{type(record.error).__name__}: {record.error}"
