"""Each index rule by itself: on random instances of its pattern, at every point of the axes."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator

import pytest

from tests.ir.rules.instances import Leaves, instances
from tests.ir.rules.meaning import interpreted, same
from tests.ir.rules.test_index import AXES, DIVISORS, index, values
from tests.ir.samples import load, param, reduced
from tests.support import count
from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import COMPARE, Ops
from workbench.ir.node.uop import UOp, gated, invalid
from workbench.ir.rewriting.rewrite import Rule
from workbench.ir.rules.index import INDEX_RULES
from workbench.ir.text.program import to_expr

g0, g1, r0, u0 = AXES
CONDITIONS = [
    g0 < 1,
    g1 < 2,
    UOp.index(0) < g1,
    r0 < 3,
    u0 < r0 + 2,
    r0 * -2 < u0 - 7,
    g0 * 3 + g1 < 4,
]


def conjunction(pick: random.Random) -> UOp:
    parts = pick.choices(CONDITIONS, k=pick.randint(1, 3))
    return functools.reduce(lambda x, y: x & y, parts)


def leaf(pick: random.Random, dtype: DType) -> UOp:
    return conjunction(pick) if dtype.is_bool else index(pick, pick.randint(0, 3))


def number(pick: random.Random, dtype: DType) -> int:
    return pick.choice(DIVISORS) if pick.random() < 0.7 else pick.randint(-30, 30)


LEAVES = Leaves(leaf, number, (dtypes.index, dtypes.bool))


def memory(pick: random.Random) -> UOp:
    return param(1, 144, pick.choice((dtypes.float32, dtypes.int32, dtypes.bool)))


def reduce_of_some(pick: random.Random) -> UOp:
    place = sum(pick.sample(AXES, pick.randint(1, 3)), UOp.index(0))
    op = pick.choice((Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN))
    closed = pick.sample(AXES, pick.randint(1, 3))
    return reduced(op, load(memory(pick), place), *closed)


def load_from_nowhere(pick: random.Random) -> UOp:
    return load(memory(pick), invalid())


def choice_of_gated(pick: random.Random) -> UOp:
    condition, more = conjunction(pick), conjunction(pick)
    gate = pick.choice([condition, condition & more, more & condition, more])
    value = load(memory(pick), gated((g0 * 3 + g1) * 24 + r0 * 6 + u0, gate))
    return condition.where(value, value.like(pick.choice((0, 0, 0, 1))))


OF_MEMORY: dict[str, tuple[Callable[[random.Random], UOp], int]] = {
    # a graph with loads, and how many different ones to find
    "reduce-independent": (reduce_of_some, 100),
    "load-invalid": (load_from_nowhere, 3),
    "load-gate": (choice_of_gated, 100),
}


def graphs_with_loads(rule: Rule) -> Iterator[tuple[UOp, UOp]]:
    make, most = OF_MEMORY[rule.name]
    pick, nodes = random.Random(rule.name), set[UOp]()
    while len(nodes) < most:
        node = make(pick)
        after = rule.matcher(node)
        if node not in nodes and after is not None and after is not node:
            nodes.add(node)
            yield node, after


def has_negative(root: UOp) -> bool:
    """Whether a constant that is not added is negative: a factor, a divisor, a limit."""
    parts = [n for n in root.toposort() if n.op in (Ops.MUL, Ops.IDIV, Ops.MOD, *COMPARE)]
    sources = {s for n in parts for s in n.src}
    return any(s.op is Ops.CONST and s.dtype.is_int and s.arg < 0 for s in sources)


@pytest.mark.parametrize("rule", INDEX_RULES.rules, ids=repr)
def test_both_sides_of_a_rule_agree_at_every_point(rule: Rule) -> None:
    """A rule that the dice do not reach fails: it needs a line in OF_MEMORY."""
    with_loads = rule.name in OF_MEMORY
    pairs = list(
        graphs_with_loads(rule) if with_loads else instances(rule, LEAVES, count(2_000, 40))
    )
    assert with_loads or any(map(has_negative, [before for before, _ in pairs]))
    for before, after in pairs:
        sides = interpreted(before, after) if with_loads else [values(before), values(after)]
        assert same(*sides), f"{to_expr(before)}\n-> {to_expr(after)}"
