"""States made one from the other are those that replaying from the beginning gives."""

from __future__ import annotations

import random

import pytest

from tests.agreement.expressions import case
from tests.support import count
from tests.viz.support import softmax
from workbench.base.dtypes import dtypes
from workbench.base.trace import Match, PassRecord, observe
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.patterns import Pat
from workbench.ir.rewriting.rewrite import Rule, RuleSet, replay, rewrite
from workbench.viz import explore
from workbench.viz.model.passes import is_replayable
from workbench.viz.record.nodes import States

OPS = (Ops.ADD, Ops.MUL, Ops.MAX)


def check(before: UOp, matches: tuple[Match, ...]) -> None:
    states = States(before)
    for number, match in enumerate(matches, 1):
        assert states.apply(match) is replay(before, matches, number)


@pytest.mark.parametrize("seed", range(count(100)))
def test_states_of_real_passes(seed: int) -> None:
    ex = explore(case(seed).run("LLVM")[0])
    passes = [*ex.passes, *(p for k in ex.kernels for p in k.compile().passes)]
    for record in filter(is_replayable, passes):
        check(record.before, record.matches)


def test_states_of_a_long_pass() -> None:
    passes = softmax().kernels[0].compile().passes
    record = max(filter(is_replayable, passes), key=_matches)
    assert len(record.matches) >= 5
    check(record.before, record.matches)


def _matches(record: PassRecord) -> int:
    return len(record.matches)


@pytest.mark.parametrize("seed", range(count(1000)))
def test_states_of_random_rules(seed: int) -> None:
    """Random graphs, and a rule that turns some nodes into smaller ones of the same leaves:
    what it makes is often there already, somewhere else."""
    pick = random.Random(seed)
    leaves = [UOp(Ops.VAR, dtypes.int32, (), (f"x{i}", 0, 9)) for i in range(3)]
    nodes = list(leaves)
    decided: dict[UOp, UOp | None] = {}

    def some(among: list[UOp]) -> UOp:
        op = pick.choice(OPS)
        return UOp(op, dtypes.int32, (pick.choice(among), pick.choice(among)))

    def change(n: UOp) -> UOp | None:
        if n not in decided:
            below = [*leaves, *n.src, *(s for source in n.src for s in source.src)]
            node = pick.choice((pick.choice(below), some(below), some(below)))
            fits = size(node) < size(n) and pick.random() < 0.6
            decided[n] = node if fits else None
        return decided[n]

    for _ in range(25):
        nodes.append(some(nodes))
    rules = RuleSet("random", [Rule("change", Pat(OPS, name="n"), change)])
    with observe() as watching:
        rewrite(UOp.sink(*pick.sample(nodes[3:], 3)), rules)
    (record,) = watching.records
    check(record.before, record.matches)
    assert replay(record.before, record.matches) is record.after


def test_matches_that_go_round_come_to_an_end() -> None:
    x, y = (UOp(Ops.VAR, dtypes.int32, (), (name, 0, 9)) for name in "xy")
    rule = Rule("swap", Pat(OPS), Pat(None, name="n"))
    there = Match(rule, x + y, y + x)
    back = Match(rule, y + x, x + y)
    states = States(UOp.sink((x + y) * 2))
    assert states.apply(there) is UOp.sink((y + x) * 2)
    ends = [UOp.sink((x + y) * 2), UOp.sink((y + x) * 2)]
    assert states.apply(back) in ends and states.apply(there) in ends


def size(node: UOp) -> int:
    """Return how many nodes an expression has where it is written out."""
    return 1 + sum(size(s) for s in node.src)
