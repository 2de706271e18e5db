"""The rewrite driver: to a fixed point, step by step, observed, and stopped if endless."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ir.samples import DEEP, axis, chain
from tests.support import count
from tests.tools.kernels import EXAMPLES, random_form
from workbench.base.dtypes import dtypes
from workbench.base.errors import EndlessRewrite, WorkbenchError
from workbench.base.trace import observe
from workbench.ir.lower.decompose import DECOMPOSE_RULES
from workbench.ir.lower.low_precision import low_precision_rules
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting import rewrite as module
from workbench.ir.rewriting.patterns import const, op, var
from workbench.ir.rewriting.rewrite import (
    Rule,
    RuleSet,
    is_complete,
    replay,
    rewrite,
    rules_in_force,
    stopped,
)
from workbench.ir.rules.collapse import KERNEL_RULES
from workbench.ir.rules.index import SIMPLIFY

x, y, c, d = var("x"), var("y"), const("c"), const("d")
g, h = axis("g0", 4), axis("g1", 5)
FOLD = RuleSet(
    "fold",
    [
        Rule("add-zero", x + 0, x),
        Rule("mul-one", x * 1, x),
        Rule("mul-zero", x * 0, lambda x: x.like(0), doc="exact types only"),
        Rule("add-add", (x + c) + d, lambda x, c, d: x + (c.arg + d.arg)),
        Rule("same", op(Ops.MAX, x, x), x),
        Rule("distribute", (x + c) * d, lambda x, c, d: x * d + c.arg * d.arg),
        Rule("split-big", x * c, lambda x, c: x * 2 * (c.arg // 2), where=lambda c: is_big(c)),
        Rule("max-of-sum", op(Ops.MAX, x + c, y), lambda x, c, y: (x + 0).alu(Ops.MAX, y) + c),
    ],
)


def is_big(c: UOp) -> bool:
    return c.arg > 8 and c.arg % 2 == 0


def test_rules_apply_until_none_fires() -> None:
    assert rewrite(((g + 1) + 2) * 1 + 0, FOLD) is g + 3
    assert rewrite((g * 0 + h) * 1, FOLD) is UOp.index(0) + h
    assert rewrite(g, FOLD) is g


def test_a_shared_node_is_rewritten_once() -> None:
    shared = g + 1 + 1
    with observe() as observation:
        assert rewrite(shared * shared, FOLD) is (g + 2) * (g + 2)
    assert len(observation.records[0].matches) == 1


def test_deep_graphs_do_not_recurse() -> None:
    assert rewrite(chain(DEEP) * 1, FOLD) is chain(DEEP)
    deep = g
    for _ in range(DEEP):
        deep = deep + 1
    with observe() as observation:
        assert rewrite(deep, FOLD) is g + DEEP
    assert replay(deep, observation.records[0].matches) is g + DEEP


def test_the_observer_gets_every_match_by_reference() -> None:
    node = (g + 1) + 2 + h * 1
    with observe() as observation:
        result = rewrite(node, FOLD, name="tidy", doc="No zeros.")
    (record,) = observation.records
    assert (record.name, record.doc) == ("tidy", "No zeros.")
    assert (record.before, record.after) == (node, result)
    assert [(str(m.rule.name), m.before, m.after) for m in record.matches] == [
        ("add-add", (g + 1) + 2, g + 3),
        ("mul-one", h * 1, h),
    ]
    assert record.error is None and record.seconds >= 0 and record.dropped == 0


def test_a_bounded_observer_counts_what_it_drops() -> None:
    with observe(limit=1) as observation:
        rewrite((g + 0) * (h + 0), FOLD)
        rewrite(g + 0, FOLD)
    assert [(len(r.matches), r.dropped) for r in observation.records] == [(1, 1), (0, 1)]


def test_limit_stops_after_that_many_matches() -> None:
    node = (g + 0) * (h + 0)
    assert rewrite(node, FOLD, limit=0) is node
    assert rewrite(node, FOLD, limit=1) is g * (h + 0)
    assert rewrite(node, FOLD, limit=2) is rewrite(node, FOLD, limit=99) is g * h


def test_a_pass_stops_on_one_graph_and_caches_know() -> None:
    node = (g + 0) * (h + 0)
    assert is_complete()
    with stopped("fold", node, 1):
        assert rewrite(node, FOLD) is g * (h + 0)
        assert rewrite(node, FOLD, name="other") is g * h, "another pass"
        assert rewrite(node + 0, FOLD) is g * h, "another graph"
        assert not is_complete()
        inside = rules_in_force()
    assert rewrite(node, FOLD) is g * h and is_complete() and inside != rules_in_force()


def test_what_came_to_rest_is_not_looked_at_again() -> None:
    looked: list[UOp] = []

    def notes(x: UOp) -> bool:
        looked.append(x)
        return False

    rules = RuleSet("notes", [Rule("note", x + c, x, where=notes), *FOLD.rules])
    rested = rewrite((g + 1) * (h + 2) + 3, rules)
    looked.clear()
    assert rewrite(rested, rules) is rested and not looked
    assert rewrite((rested + 4) * 1, rules) is rewrite((rested + 4) * 1, FOLD)
    assert rested in looked and g not in looked
    looked.clear()
    assert rewrite(rested, RuleSet("others", rules.rules)) is rested and g in looked


def test_what_a_limit_kept_from_rest_is_looked_at_again() -> None:
    rules = RuleSet("fold-again", FOLD.rules)
    node = (g + 0) * (h + 0)
    assert rewrite(node, rules, limit=1) is g * (h + 0)
    assert rewrite(g * (h + 0), rules) is g * h


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_rule_fires_where_its_set_came_to_rest(name: str) -> None:
    """It might, if it looked at anything but the node and what is below it."""
    for seed in range(count(20)):
        state = random_form(EXAMPLES[name], seed, 3).graph
        for rules in (KERNEL_RULES, SIMPLIFY, low_precision_rules(), DECOMPOSE_RULES):
            state = rewrite(state, rules)
            again = RuleSet("again", rules.rules, rules.keep)
            assert rewrite(state, again) is state


def test_without_switches_rules_off() -> None:
    assert rewrite((g + 0) * 1, FOLD.without("add-zero")) is g + 0
    with pytest.raises(WorkbenchError, match="no rule add-nothing"):
        FOLD.without("add-nothing")
    assert [r.name for r in FOLD.without("same", "mul-one").rules][:2] == ["add-zero", "mul-zero"]


def test_rules_have_names_of_their_own() -> None:
    with pytest.raises(WorkbenchError, match="one name"):
        RuleSet("twice", [FOLD.rules[0], FOLD.rules[0]])
    with pytest.raises(WorkbenchError, match="one name"):
        FOLD + FOLD


def test_rules_print_as_rows() -> None:
    assert str(FOLD.rules[0]) == "add-zero: (x + 0) -> x" and repr(FOLD.rules[0]) == "add-zero"
    assert "where <lambda>" in str(FOLD.rules[6]) and FOLD.rules[2].doc == "exact types only"


def test_earlier_rows_win() -> None:
    first = RuleSet("order", [Rule("to-x", x + y, x), Rule("to-y", x + y, y)])
    assert rewrite(g + h, first) is g


TO_SUM = Rule("to-sum", x * 2, x + x)
TO_PRODUCT = Rule("to-product", x + x, x * 2)
GROWS = Rule("grows", op(Ops.NEG, x), lambda x: -(x + 1))
CONTAINS = Rule("contains", op(Ops.NEG, x, name="n"), lambda n: n * 1)


@pytest.mark.parametrize("rules", [[TO_SUM, TO_PRODUCT], [GROWS], [CONTAINS]], ids=str)
def test_an_endless_rewrite_is_stopped_and_recorded(
    rules: list[Rule], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = (-g) * 2
    monkeypatch.setattr("workbench.ir.rewriting.rewrite.FUSE", 1000)
    with observe() as observation, pytest.raises(EndlessRewrite, match=rules[-1].name):
        rewrite(node, RuleSet("endless", rules))
    (record,) = observation.records
    assert isinstance(record.error, EndlessRewrite) and record.after is None
    for steps in (1, 2, len(record.matches)):
        assert isinstance(replay(node, record.matches, steps), UOp)  # it ends


def chain_of(*ops: str) -> list[Rule]:
    """Rules that turn one op into the next, and the last into the first."""
    pairs = zip(ops, (*ops[1:], ops[0]), strict=True)
    return [
        Rule(f"{a.lower()}-to-{b.lower()}", op(Ops[a], x, y), op(Ops[b], x, y)) for a, b in pairs
    ]


@pytest.mark.parametrize("rules", [[TO_SUM, TO_PRODUCT], chain_of("MAX", "ADD", "MUL"), [CONTAINS]])
def test_a_cycle_is_found_at_its_second_visit_with_all_its_rules(rules: list[Rule]) -> None:
    node = (-g).alu(Ops.MAX, h) * 2
    with observe() as observation, pytest.raises(EndlessRewrite) as caught:
        rewrite(node, RuleSet("endless", rules))
    assert len(observation.records[0].matches) <= 2 * len(rules)
    assert all(rule.name in caught.value.because for rule in rules), caught.value
    assert "without=" in caught.value.hint


def test_ever_new_nodes_end_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PENDING", 5_000)
    with observe() as observation, pytest.raises(EndlessRewrite, match="grows made ever new nodes"):
        rewrite(-g, RuleSet("endless", [GROWS]))
    assert len(observation.records[0].matches) == 5_001


RECREATES = RuleSet(
    "recreates",
    [
        Rule("unwrap", op(Ops.MAX, x, y), lambda x, y: x + y),
        Rule("rewrap", op(Ops.XOR, x, y), lambda x, y: x.alu(Ops.MAX, y)),
        Rule("fold", (x + c), lambda x: x, where=lambda c: c.arg == 7),
        Rule("again", op(Ops.MIN, x, y), lambda x, y: (x + 7).alu(Ops.XOR, y).alu(Ops.AND, x + 7)),
    ],
)


def test_replay_holds_where_a_rule_makes_an_earlier_node_again() -> None:
    node = g.alu(Ops.MAX, h) * g.alu(Ops.XOR, h) * g.alu(Ops.MIN, h) * (g + 7)
    with observe() as observation:
        result = rewrite(node, RECREATES)
    assert result is (g + h) * (g + h) * (g + h).alu(Ops.AND, g) * g
    assert replay(node, observation.records[0].matches) is result


SYMBOLS = st.recursive(
    st.sampled_from([g, h, *[UOp.index(v) for v in (0, 1, 2, 7, 10, 16)]]),
    lambda inner: st.builds(
        lambda a, b, how: a.alu(how, b),
        inner,
        inner,
        st.sampled_from([Ops.ADD, Ops.ADD, Ops.MUL, Ops.MAX, Ops.XOR, Ops.MIN]),
    ),
    max_leaves=12,
)


BOTH = RuleSet("both", FOLD.rules + RECREATES.rules[2:])


@given(SYMBOLS, st.sampled_from([FOLD, RECREATES, BOTH]))
def test_replay_is_the_result_at_every_step(node: UOp, rules: RuleSet) -> None:
    with observe() as observation:
        result = rewrite(node, rules)
    matches = observation.records[0].matches
    assert replay(node, matches) is result and replay(node, matches, 0) is node
    assert rewrite(result, rules) is result
    for steps in range(len(matches) + 1):
        assert replay(node, matches, steps) is rewrite(node, rules, limit=steps)


def test_a_set_may_mend_what_rules_make() -> None:
    def mend(before: UOp, after: UOp) -> UOp:
        return after.cast(before.dtype)

    to_bool = Rule("to-bool", op(Ops.NOT, x), lambda x: x < 0)
    assert rewrite(g.alu(Ops.NOT), RuleSet("keep", [to_bool], mend)) is (g < 0).cast(dtypes.index)


@pytest.mark.parametrize(
    ("value", "hint"), [(3, "UOp.const(node.dtype, 3)"), ("x", "None for a node"), ((), "None")]
)
@pytest.mark.parametrize("keep", [None, lambda before, after: after.cast(before.dtype)])
def test_a_rule_that_returns_no_node_is_named(value: object, hint: str, keep: Any) -> None:
    wrong = Rule("number-for-node", var("x", "index") + 1, lambda x: value)  # type: ignore[arg-type, return-value]
    with pytest.raises(WorkbenchError, match="rule number-for-node.* returned no node") as caught:
        rewrite(axis("g0", 4) + 1, RuleSet("wrong", [wrong], keep))
    assert hint in caught.value.hint
