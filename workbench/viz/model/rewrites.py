"""The rewrites of one pass, replayed: the state after any match, and each match as text.

Records have only references; text is written here, for the match that is shown.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.base.trace import PassRecord
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import replay
from workbench.ir.text.readable import to_expr


@dataclass(frozen=True, slots=True)
class RewriteStep:
    """One match. `number` counts from 1: `state(record, number)` has it applied. `rule_text` is the
    rule with both its sides; `difference` is the diff of `before` and `after`."""

    number: int
    rule: str
    rule_text: str
    doc: str
    before: str
    after: str
    difference: str


def state(record: PassRecord, count: int) -> Any:
    """Return the pass's IR after its first `count` matches: 0 is its input, all its result.

    Errors: WorkbenchError for a number beyond the last match.
    """
    if not 0 <= count <= len(record.matches):
        raise WorkbenchError(
            f"pass {record.name} has no state {count}",
            f"it recorded {len(record.matches)} matches",
            f"a number from 0 to {len(record.matches)}",
        )
    if not is_replayable(record):
        return record.before if count == 0 else record.after
    return replay(record.before, record.matches, count)


def is_replayable(record: PassRecord) -> bool:
    """Whether the matches are rewrites of nodes, and not decisions about them."""
    return isinstance(record.before, UOp) and any(m.before is not m.after for m in record.matches)


def step(record: PassRecord, number: int) -> RewriteStep:
    """Return match `number` (from 1) of a pass as text.

    Errors: WorkbenchError where there is no such match.
    """
    if not 1 <= number <= len(record.matches):
        raise WorkbenchError(
            f"pass {record.name} has no match {number}",
            f"it recorded {len(record.matches)} matches, counted from 1",
        )
    match = record.matches[number - 1]
    before, after = text(match.before), text(match.after)
    docs = (getattr(match.rule, name, "") for name in ("doc", "reason", "why"))
    doc = next((str(doc) for doc in docs if doc), "")
    return RewriteStep(
        number, repr(match.rule), str(match.rule), doc, before, after, difference(before, after)
    )


def pass_difference(record: PassRecord) -> str:
    """Return the unified diff of a pass's two states as text."""
    return difference(text(record.before), text(record.after))


def difference(before: str, after: str) -> str:
    """Return a unified diff; "" where nothing changed."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=2
    )
    return "\n".join(lines)


def text(value: Any) -> str:
    """Return any state as text: readable IR, sources and opts as they print."""
    if isinstance(value, UOp):
        return to_expr(value)
    if isinstance(value, tuple) and value and all(isinstance(v, UOp) for v in value):
        return to_expr(value)
    return str(getattr(value, "text", value))
