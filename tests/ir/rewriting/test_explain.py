"""What is said of a rule and a node is what the matcher does, for every rule of the package."""

from __future__ import annotations

import pytest

from tests.ir.rules import test_index_rules, test_values
from tests.ir.rules.instances import Leaves, instances
from tests.ir.rules.meaning import matches
from tests.ir.samples import F, axis, load, param
from tests.tools.silent_rules import package_rules
from workbench.base.dtypes import dtypes
from workbench.ir.functions import expand as functions
from workbench.ir.lower import examples as lower
from workbench.ir.lower.decompose import DECOMPOSE_RULES
from workbench.ir.lower.examples import LOW_PRECISION_EXAMPLES
from workbench.ir.lower.lower import DECOMPOSED
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.explain import explain
from workbench.ir.rewriting.patterns import const, op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet
from workbench.ir.rules.collapse import COLLAPSE_RULES
from workbench.ir.rules.examples import collapse, movement
from workbench.ir.rules.index import INDEX_RULES
from workbench.ir.rules.movement import MOVEMENT_RULES, TENSOR_RULES
from workbench.ir.rules.values import VALUE_RULES
from workbench.ir.schedule import examples as schedule

WIDE = Leaves(test_values.leaf, test_values.number, (F, dtypes.int32, dtypes.bool, dtypes.index))
DTYPES = (dtypes.float16, dtypes.bfloat16, F, dtypes.int32, dtypes.bool)
g, h = axis("g0", 4), axis("g1", 5)


def fired_in(root: UOp, rules: RuleSet, name: str) -> UOp:
    return next(m.before for m in matches(root, rules)[1] if m.rule.name == name)


def nodes_that_match() -> dict[str, UOp]:
    """Return per rule of the package a node where it fires."""
    nodes = {}
    for rules, leaves in ((VALUE_RULES, test_values.LEAVES), (DECOMPOSE_RULES, WIDE)):
        for rule in rules.rules:
            if rule.name == "form-fma":  # of reductions, which are not drawn
                nodes[rule.name] = fired_in(lower.EXAMPLES[rule.name], rules, rule.name)
            else:
                nodes[rule.name] = next(instances(rule, leaves, 1))[0]
    for rule in INDEX_RULES.rules:
        drawn = instances(rule, test_index_rules.LEAVES, 1)
        with_loads = rule.name in test_index_rules.OF_MEMORY
        graphs = test_index_rules.graphs_with_loads(rule) if with_loads else drawn
        nodes[rule.name] = next(graphs)[0]
    for rule in MOVEMENT_RULES.rules:
        root = movement.EXAMPLES[rule.name][0][0]
        nodes[rule.name] = fired_in(root, TENSOR_RULES, rule.name)
    for rule in COLLAPSE_RULES.rules:
        root = collapse.EXAMPLES[rule.name][0][0]
        nodes[rule.name] = fired_in(root, COLLAPSE_RULES, rule.name)
    nodes |= LOW_PRECISION_EXAMPLES
    return nodes | functions.EXAMPLES | schedule.EXAMPLES


def fires(rule: Rule, node: UOp) -> bool:
    """Whether the matcher, called as the driver calls it, changes the node."""
    if rule.match.ops is not None and node.op not in rule.match.ops:
        return False
    result = rule.matcher(node)
    return result is not None and result is not node


def test_every_rule_is_explained_at_every_node() -> None:
    """At its own node it fires, elsewhere a part is named: always as the matcher has it."""
    nodes, rules = nodes_that_match(), package_rules()
    assert nodes.keys() == rules.keys()
    refused = 0
    for name, rule in rules.items():
        for of, node in nodes.items():
            try:
                expected = fires(rule, node)
            except Exception:  # a node of a level that the rule never meets
                expected = False
            explanation = explain(rule, node)
            assert explanation.fires is expected, f"{explanation}\nat the node of {of}"
            assert explanation.text == str(rule)
            assert 0 <= explanation.start < explanation.end <= len(explanation.text)
            if expected:
                assert explanation.after is rule.matcher(node)
            else:
                refused += 1
                assert (
                    explanation.end - explanation.start < len(explanation.text)
                    and explanation.because
                )
        assert explain(rule, nodes[name]).fires
    assert refused > 70 * len(rules)


x, y, c = var("x"), var("y"), const("c")
value = load(param(1, 4), g)
ODD = Rule("odd", (x + c) * x, x, where=lambda c: c.arg % 2 == 1)
SAID = [
    (Rule("r", x + 0, x), g + 3, "0", "the constant is 3, and 0 is needed"),
    (Rule("r", x + 0, x), g * 0, "(x + 0)", "the op is MUL, and ADD is needed"),
    (Rule("r", (x + c) * y, x), g * h, "(x + c)", "the op is RANGE, and ADD is needed"),
    (Rule("r", -var("x", "index"), x), -value, "x:index",
     "the dtype is float32, and index is needed"),
    (Rule("r", x * (y + x), x), g * (h + h), "x", "x is g0 already, and here stands g1"),
    (Rule("r", op(Ops.REDUCE, x, y), x), UOp(Ops.REDUCE, F, (value,), Ops.ADD),
     "REDUCE(x, y)", "it has 1 sources, and 2 are needed"),
    (Rule("r", op(Ops.REDUCE, x, arg=Ops.MAX), x), UOp(Ops.REDUCE, F, (value,), Ops.ADD),
     "REDUCE(x)", "its arg is Ops.ADD, and Ops.MAX is needed"),
    (ODD, (g + 2) * g, "<lambda>", "<lambda> is False with c = 2"),
    (Rule("r", op(Ops.NEG, x), lambda x: None), -g, "<lambda>",
     "<lambda> gives None with x = g0"),
    (Rule("r", x * 1, lambda x: x * 1), g * 1, "<lambda>",
     "what it makes of the node is the node itself"),
    (Rule("r", x * y, lambda x, y: x.nothing), g * h, "<lambda>",
     "<lambda> fails: AttributeError: 'UOp' object has no attribute 'nothing' with x = g0, y = g1"),
]  # fmt: skip


@pytest.mark.parametrize("rule, node, marked, because", SAID)
def test_the_first_part_that_fails_is_marked(
    rule: Rule, node: UOp, marked: str, because: str
) -> None:
    explanation = explain(rule, node)
    assert not explanation.fires and explanation.because == because
    assert explanation.text[explanation.start : explanation.end] == marked
    lines = str(explanation).split("\n")
    assert lines[1].index("^") == explanation.start and lines[1].count("^") == len(marked)
    assert lines[2] == f"does not fire: {because}"


def test_of_two_equal_parts_the_right_one_is_marked() -> None:
    explanation = explain(Rule("r", (x + 0) * (y + 0), x), (g + 0) * (h + 1))
    assert explanation.start == explanation.text.rindex("0)") and explanation.bound == {
        "x": g,
        "y": h,
    }


def test_in_a_set_an_earlier_row_comes_first_and_the_set_may_refuse() -> None:
    node = UOp.index(3) + UOp.index(0)
    add_zero = package_rules()["add-zero"]
    assert explain(add_zero, node).fires
    explanation = explain(add_zero, node, VALUE_RULES)
    assert explanation.because == "fold-constants, an earlier rule, fires here first"
    assert explanation.text[explanation.start : explanation.end] == "add-zero"
    assert isinstance(DECOMPOSED.run, RuleSet)
    by_shift = package_rules()["idiv-by-shift"]
    refused = explain(by_shift, g // 4, DECOMPOSED.run)
    assert "the set decompose leaves this node alone" in refused.because
    assert explain(by_shift, g // 4).fires


def test_a_rule_that_fires_says_what_becomes_of_the_node() -> None:
    explanation = explain(Rule("r", x + 0, x), g + 0)
    assert explanation.fires and explanation.after is g and explanation.bound == {"x": g}
    assert str(explanation).endswith("\nfires: g0 + 0 becomes g0")
