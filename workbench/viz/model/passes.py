"""Passes as rows: what ran, how often its rules fired, how long it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from workbench.base.trace import PassRecord
from workbench.ir.opt.opt import Opt
from workbench.viz.schema.record import PassRow
from workbench.viz.schema.variant import NamedNumber


def pass_rows(records: Sequence[PassRecord]) -> list[PassRow]:
    """Return a row per record, in execution order, nested ones after the one around them."""
    depths: dict[str, int] = {}
    rows = []
    for record in records:
        depth = 0 if record.parent is None else depths.get(record.parent, 0) + 1
        depths[record.name] = depth
        rules = Counter(_rule_name(m.rule) for m in record.matches)
        rows.append(
            PassRow(
                name=record.name,
                doc=record.doc,
                depth=depth,
                unit=_unit(record),
                seconds=record.seconds,
                changed=record.after is not record.before or bool(record.matches),
                error=_error_text(record),
                matches=len(record.matches) + record.dropped,
                dropped=record.dropped,
                rules=[NamedNumber(*rule) for rule in rules.most_common()],
            )
        )
    return rows


def _rule_name(rule: object) -> str:
    return str(rule) if isinstance(rule, Opt) else repr(rule)


def _unit(record: PassRecord) -> str:
    if any(isinstance(m.rule, Opt) for m in record.matches):
        return "opt"
    decided = record.matches and all(m.before is m.after for m in record.matches)
    return "decision" if decided else "rewrite"


def _error_text(record: PassRecord) -> str | None:
    if record.error is None:
        return None
    return f"{type(record.error).__name__}: {record.error}"
