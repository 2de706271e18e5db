"""All rules and steps as text: what each does, the passes that use it, its matches, examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from workbench.ir.functions import expand as functions
from workbench.ir.lower import examples as lower
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.passes import Switch
from workbench.ir.rewriting.rewrite import Rule
from workbench.ir.rules.examples import collapse, index, movement, values
from workbench.ir.schedule import examples as schedule
from workbench.ir.text.program import to_expr
from workbench.kernel.kernel import Kernel
from workbench.pipeline import switches
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.words import paragraphs
from workbench.viz.page.panel import Panel
from workbench.viz.record.nodes import Nodes
from workbench.viz.record.rules import rule_row

EXAMPLES: Mapping[str, Sequence[tuple[UOp, UOp | str]]] = {
    **movement.EXAMPLES,
    **values.EXAMPLES,
    **index.EXAMPLES,
    **collapse.EXAMPLES,
}
"""By the name of a rule, graphs in which it fires, each with its result by the rules of the pass;
the tests check both."""
FIRES: Mapping[str, UOp] = {
    **schedule.EXAMPLES,
    **lower.EXAMPLES,
    **lower.LOW_PRECISION_EXAMPLES,
    **functions.EXAMPLES,
}
"""By the name of a rule, a graph at whose root it fires; the rule itself gives the result."""
MOST_EXAMPLES = 4
MOST_TEXT = 300
"""Most characters of a side of an example; a longer one is cut, with an ellipsis."""


class RuleExample(Struct, forbid_unknown_fields=True):
    """A graph in words, and what it becomes."""

    before: str
    after: str


class ListedRule(Struct, forbid_unknown_fields=True):
    """A rule of the package, a registered one, or a step of a pass, which has no text of its own:
    its name, its text and its reason; its table, its file and its line; the passes that use it, and
    examples."""

    name: str
    text: str
    doc: str
    set: str
    file: str
    line: int
    passes: list[str]
    examples: list[RuleExample]


def rule_rows(ex: ScheduledTensors, nodes: Nodes) -> list[ListedRule]:
    """Return every rule and every step that can be switched off: none depends on the tensors."""
    return every_rule()


def every_rule() -> list[ListedRule]:
    """Return every rule and every step that can be switched off, in the order of the passes."""
    usable = switches()
    return [_row(rule, names, usable) for rule, names in usable.items()]


def _row(rule: Switch, passes: Sequence[str], usable: Mapping[Switch, object]) -> ListedRule:
    row = rule_row(rule, usable)
    examples = list(_examples(rule)) if isinstance(rule, Rule) else []
    return ListedRule(
        row.name, row.text, row.doc, row.set, row.file, row.line, list(passes), examples
    )


@lru_cache(maxsize=1024)
def _examples(rule: Rule) -> tuple[RuleExample, ...]:
    """Return the examples of a rule in the tables, which are constant."""
    pairs = [(_words(b), _words(a)) for b, a in EXAMPLES.get(rule.name, ())]
    changes = [RuleExample(*pair) for pair in pairs if pair[0] != pair[1]]
    examples = changes[:MOST_EXAMPLES]
    graph = FIRES.get(rule.name)
    if graph is not None:
        examples.append(RuleExample(_words(graph), _words(rule.matcher(graph))))
    return tuple(examples)


def _words(side: UOp | str | None) -> str:
    words = to_expr(side) if isinstance(side, UOp) else str(side)
    return words if len(words) <= MOST_TEXT else f"{words[: MOST_TEXT - 3]} .."


def rules_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return every rule and step with how often it fired in scheduling and on the way to these
    kernels, and the first paragraph of its reason, or else its text."""
    compiled = [record for _, k in kernels for record in k.observed(k.device)]
    matches = (m for record in (*ex.passes, *compiled) for m in record.matches)
    fired = Counter(m.rule for m in matches if isinstance(m.rule, Switch))
    rules = switches()
    width = max(len(rule.name) for rule in rules)
    lines = [f"  {fired[rule] or '-':>5}  {rule.name:{width}}  {_sentence(rule)}" for rule in rules]
    nothing = [ex.nothing_to_do] if ex.nothing_to_do else []
    return "\n".join([ex.headline, *nothing, "  fired  rule", *lines])


def _sentence(rule: Switch) -> str:
    doc = rule.doc if isinstance(rule, Rule) else rule.why
    first, *_ = paragraphs(doc).split("\n\n")
    return first or str(rule).removeprefix(f"{rule.name}: ")


PANEL = Panel(pane="rules", mode="rules", text=rules_text, section=rule_rows)
