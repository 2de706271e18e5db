"""Passes as rows: the name, the rules that fired, the time.

Sections: Passes as rows; The rewrites of one pass, replayed; Explanations of a rule that did not
fire in a pass, by the rule's name and a node.
"""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import asdict

from workbench.base.errors import WorkbenchError
from workbench.base.trace import PassRecord, PassStep
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.explain import Explanation, explain
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.rewrite import (
    Rule,
    RuleSet,
    added_rules,
    replay,
    unknown_rule,
    with_added,
)
from workbench.ir.schedule.plan import Decision
from workbench.ir.text.program import to_expr
from workbench.pipeline import switches
from workbench.viz.schema.record import PassOutcome, PassRow
from workbench.viz.schema.variant import NamedNumber

# --------------------------------------------------------------------------------------------------
# Passes as rows.


def pass_rows(records: Sequence[PassRecord]) -> list[PassRow]:
    """Return a row per record, in execution order; nested passes follow the pass around them."""
    rows = []
    for record, outcome in zip(records, outcomes(records), strict=True):
        fired = Counter(_rule_name(m.rule) for m in record.matches)
        rules = [NamedNumber(*rule) for rule in fired.most_common()]
        row = PassRow(**asdict(outcome), rules=rules)
        rows.append(row)
    return rows


def outcomes(records: Sequence[PassRecord]) -> Iterator[PassOutcome]:
    """Yield the outcome of each pass: its nesting, time, error and number of matches."""
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
    """Return the kind of matches that a pass has: "rewrite", "decision", "opt", or "step" in a
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


# --------------------------------------------------------------------------------------------------
# The rewrites of one pass, replayed: the state after any match, and each match as text.
#
# Records have only references; text is written here, for the match that is shown.


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
    """Return the pass's IR after its first `count` matches: 0 is its input, all its result. If the
    matches are not rewrites, every `count` but 0 gives the result.

    Errors: WorkbenchError for a number below 0 or beyond the last match.
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

    Errors: WorkbenchError for a number that no match has.
    """
    if not 1 <= number <= len(record.matches):
        raise WorkbenchError(
            f"pass {record.name} has no match {number}",
            f"it recorded {len(record.matches)} matches, counted from 1",
            "1",
        )
    match = record.matches[number - 1]
    before, after = text(match.before), text(match.after)
    docs = (getattr(match.rule, name, "") for name in ("doc", "reason", "why"))
    doc = next((str(doc) for doc in docs if doc), "")
    return RewriteStep(
        number, repr(match.rule), str(match.rule), doc, before, after, difference(before, after)
    )


def pass_difference(record: PassRecord) -> str:
    """Return the unified diff of the text of a pass's input and result."""
    return difference(text(record.before), text(record.after))


def difference(before: str, after: str) -> str:
    """Return a unified diff; "" if nothing changed."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=2
    )
    return "\n".join(lines)


def text(value: Any) -> str:
    """Return a state of a pass as text: nodes as readable IR, sources and opts as they print."""
    if isinstance(value, UOp):
        return to_expr(value)
    if isinstance(value, tuple) and value and all(isinstance(v, UOp) for v in value):
        return to_expr(value)
    return str(getattr(value, "text", value))


# --------------------------------------------------------------------------------------------------
# Explanations of a rule that did not fire in a pass, by the rule's name and a node.


def why_not(rule: Rule | str, node: UOp, of_pass: str = "") -> Explanation:
    """Return why a rule fires, or does not fire, at a node. `of_pass` is the name of a pass: if it
    has the rule, an earlier rule may fire first, or the pass may refuse the result. Otherwise the
    rule alone is compared with the node.

    Errors: WorkbenchError for a rule that does not exist, and for a value that is not a node or a
    name.
    """
    if not isinstance(node, UOp):
        because = f"{type(node).__name__} is not a node"
        hint = "the .before of a match, or one of kernel.ast.toposort()"
        raise WorkbenchError("cannot compare a rule with this", because, hint)
    if not isinstance(of_pass, str):
        because = f"{type(of_pass).__name__} is not the name of a pass"
        raise WorkbenchError("cannot find that pass", because, "ex.passes names them")
    named = rule.name if isinstance(rule, Rule) else str(rule)
    tables = _tables()
    named_rule = next((r for s in tables.values() for r in s.rules if r.name == named), None)
    matched_rule = rule if isinstance(rule, Rule) else named_rule
    if matched_rule is None:
        steps = {s.name for s in switches() if isinstance(s, PassStep)}
        if named in steps:
            because = "it is a step of a pass: it has no pattern to compare a node with"
            raise WorkbenchError(f"cannot compare {named} with a node", because, "a rule")
        rule_names = {r.name for s in tables.values() for r in s.rules}
        raise unknown_rule(f"there is no rule {named!r:.60}", named, rule_names)
    table = tables.get(of_pass)
    belongs = table is not None and matched_rule in table.rules
    return explain(matched_rule, node, table if belongs else None)


def _tables() -> dict[str, RuleSet]:
    """Return every table of rules in a module of the package, by its own name and by the name of
    its pass, and the added tables."""
    tables: dict[str, RuleSet] = {}
    for name, module in list(sys.modules.items()):
        if not name.startswith("workbench."):
            continue
        for value in list(vars(module).values()):
            if isinstance(value, Pass) and value.table is not None:
                tables[value.name] = value.table
            elif isinstance(value, RuleSet):
                tables.setdefault(value.name, value)
    tables = {name: with_added(rules, name) for name, rules in tables.items()}
    return tables | {each.rules.name: each.rules for each in added_rules()}
