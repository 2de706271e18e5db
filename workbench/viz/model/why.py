"""Explanations of a rule that did not fire in a pass, by the rule's name and a node."""

from __future__ import annotations

import difflib
import sys

from workbench.base.errors import WorkbenchError
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.explain import Explanation, explain
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.rewrite import Rule, RuleSet, added_rules, with_added


def why_not(rule: Rule | str, node: UOp, of_pass: str = "") -> Explanation:
    """Return why a rule fires, or does not fire, at a node. `of_pass` is the name of a pass: an
    earlier rule of it may fire first, and it may refuse the result. In a pass without the rule, the
    rule is compared with the node by itself.

    Errors: WorkbenchError for a rule that does not exist, and for a value that is not a node or a
    name.
    """
    if not isinstance(node, UOp):
        because = f"{type(node).__name__} is not a node"
        hint = "the .before of a match, or one of kernel.ast.toposort()"
        raise WorkbenchError("cannot hold a rule against this", because, hint)
    if not isinstance(of_pass, str):
        because = f"{type(of_pass).__name__} is not the name of a pass"
        raise WorkbenchError("cannot look at that pass", because, "ex.passes names them")
    named = rule.name if isinstance(rule, Rule) else str(rule)
    tables = _tables()
    named_rule = next((r for s in tables.values() for r in s.rules if r.name == named), None)
    matched_rule = rule if isinstance(rule, Rule) else named_rule
    if matched_rule is None:
        rule_names = [r.name for s in tables.values() for r in s.rules]
        near = difflib.get_close_matches(named, rule_names, 3, 0.4)
        because = f"the {len(dict.fromkeys(rule_names))} rules of the passes have other names"
        hint = " or ".join(dict.fromkeys(near)) or "the .rule.name of a match"
        raise WorkbenchError(f"there is no rule {named!r:.60}", because, hint)
    table = tables.get(of_pass)
    belongs = table is not None and matched_rule in table.rules
    return explain(matched_rule, node, table if belongs else None)


def _tables() -> dict[str, RuleSet]:
    """Return every table of rules in a module of the package, by its name and by that of its
    pass."""
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
