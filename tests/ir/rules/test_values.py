"""Value rules hold for every value: both sides of every match agree, edge cases among them."""

from __future__ import annotations

import math
import random
import re

import numpy as np
import pytest

from tests.ir.rules.instances import Leaves, instances
from tests.ir.rules.meaning import (
    HERE,
    VALUES,
    Array,
    evaluate,
    fired,
    inputs,
    matches,
    same,
    value,
)
from tests.support import by_rows, count
from workbench.base.dtypes import DType, dtypes
from workbench.ir.node.ops import COMPARE, OPS, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import Rule, rewrite
from workbench.ir.rules.examples.values import EXAMPLES
from workbench.ir.rules.values import VALUE_RULES
from workbench.ir.text.program import to_expr

F, INT, B = dtypes.float32, dtypes.int32, dtypes.bool
x, y = value(F), value(F, 1)
i = value(INT)


@by_rows("name", [rule.name for rule in VALUE_RULES.rules])
def test_one_rule(name: str) -> None:
    for before, expected in EXAMPLES[name]:
        assert name in fired(before, VALUE_RULES)
        assert rewrite(before, VALUE_RULES) is expected
        assert name not in fired(expected, VALUE_RULES)


NOT_EXACT: list[tuple[str, UOp]] = [
    ("0 * nan is nan", x * 0.0),
    ("x - x is nan for infinities", x + -x),
    ("x / x", x.alu(Ops.FDIV, x)),
    ("a float sum is not regrouped", (x + 3.0) + 4.0),
    ("a float product is not regrouped", (x * 3.0) * 4.0),
    ("1/3 is not exact", x.alu(Ops.FDIV, x.like(3.0))),
    ("x / 0", x.alu(Ops.FDIV, x.like(0.0))),
    ("x / inf", x.alu(Ops.FDIV, x.like(math.inf))),
    ("x / nan", x.alu(Ops.FDIV, x.like(math.nan))),
    ("the inverse of a tiny power overflows", x.alu(Ops.FDIV, x.like(2.0**-149))),
    ("nan is not equal to itself", x.alu(Ops.CMPEQ, x)),
    ("nan is unequal to itself", x.alu(Ops.CMPNE, x)),
    ("max(nan, inf) is nan", x.alu(Ops.MAX, x.like(math.inf))),
    ("min(nan, -inf) is nan", x.alu(Ops.MIN, x.like(-math.inf))),
    ("a comparison with inf is false for nan", x < math.inf),
    ("a narrowing cast cuts", i.cast(dtypes.int8).cast(INT)),
    ("float -> int -> float rounds", x.cast(INT).cast(F)),
    ("int -> float -> int rounds", i.cast(F).cast(INT)),
    ("x // x is 0 for 0", i // i),
    ("x % x", i % i),
]


@pytest.mark.parametrize("why, node", NOT_EXACT, ids=[why for why, _ in NOT_EXACT])
def test_what_only_looks_like_an_identity_stays(why: str, node: UOp) -> None:
    assert rewrite(node, VALUE_RULES) is node


# random expressions

UNARY = {"float": (Ops.NEG, Ops.SQRT, Ops.RECIP, Ops.TRUNC, Ops.EXP2, Ops.LOG2,
                   Ops.SIN, Ops.COS),
         "int": (Ops.NEG, Ops.NOT), "bool": (Ops.NOT,)}  # fmt: skip
BINARY = {
    "float": (Ops.ADD, Ops.MUL, Ops.FDIV, Ops.FMOD, Ops.MAX, Ops.MIN),
    "int": (Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.MIN, Ops.AND, Ops.OR, Ops.XOR,
            Ops.SHL, Ops.SHR),
    "bool": (Ops.AND, Ops.OR, Ops.XOR, Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN),
}  # fmt: skip
CONSTANTS = {
    "float": (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -8.0, 3.0, math.inf, -math.inf, math.nan, 1e30),
    "int": (0, 1, -1, 2, 3, 7, 8, 31, 100, 2**31 - 1, -(2**31)),
    "bool": (True, False),
}


def expression(pick: random.Random, dtype: DType, depth: int) -> UOp:
    kind = "int" if dtype.is_int else dtype.kind
    if depth == 0 or pick.random() < 0.1:
        if pick.random() < 0.4:
            return UOp.const(dtype, pick.choice(CONSTANTS[kind]))
        return value(dtype, pick.randrange(3))

    def more(other: DType = dtype) -> UOp:
        return expression(pick, other, depth - 1)

    form = pick.random()
    if form < 0.15:
        return more().alu(pick.choice(UNARY[kind]))
    if form < 0.25:
        return more(B).where(more(), more())
    if form < 0.35:
        return UOp(Ops.CAST, dtype, (more(pick.choice(list(VALUES))),))
    if form < 0.6 and dtype.is_bool:
        other = pick.choice(list(VALUES))
        return more(other).alu(pick.choice(sorted(COMPARE, key=lambda o: o.value)), more(other))
    first = more()
    second = first if pick.random() < 0.15 else more()
    return first.alu(pick.choice(BINARY[kind]), second)


def index(pick: random.Random) -> UOp:
    scaled = HERE * pick.randint(-9, 9) + pick.randint(-9, 9)
    by = pick.randint(1, 9)
    return pick.choice([HERE, scaled, scaled // by, scaled % by, scaled + HERE // by])


def leaf(pick: random.Random, dtype: DType) -> UOp:
    if dtype.kind == "index":
        return index(pick)
    return expression(pick, dtype, pick.choice((0, 0, 1, 2)))


def number(pick: random.Random, dtype: DType) -> float:
    if dtype.kind == "index":
        return pick.randint(-9, 65)
    return pick.choice(CONSTANTS["int" if dtype.is_int else dtype.kind])


LEAVES = Leaves(leaf, number, (*VALUES, dtypes.index))


@by_rows("rule", VALUE_RULES.rules, ids=repr)
def test_both_sides_of_a_rule_agree(rule: Rule) -> None:
    """On every dtype that the pattern takes; a rule that is not reached fails."""
    for before, after in instances(rule, LEAVES, count(2_000, 40)):
        leaves = inputs(len(before.toposort()) % 7)
        sides = evaluate(before, leaves, (HERE,)), evaluate(after, leaves, (HERE,))
        assert same(*sides), f"{to_expr(before)}\n-> {to_expr(after)}"


def signs_differ(a: Array, b: Array) -> bool:
    return bool(np.any((np.signbit(a) != np.signbit(b)) & (a == b)))


@pytest.mark.parametrize("block", range(4))
def test_both_sides_of_every_match_agree(block: int) -> None:
    for seed in range(block, count(20_000), 4):
        pick = random.Random(seed)
        leaves = inputs(seed % 7)
        root = expression(pick, pick.choice(list(VALUES)), 4)
        after, rewrites = matches(root, VALUE_RULES)
        zeros_differ = False
        for match in rewrites:
            sides = evaluate(match.before, leaves), evaluate(match.after, leaves)
            assert same(*sides), (
                f"seed {seed}: {match.rule}\n{to_expr(match.before)}\n-> {to_expr(match.after)}"
            )
            assert match.before.dtype is match.after.dtype
            zeros_differ |= match.before.dtype.is_float and signs_differ(*sides)
        whole = evaluate(root, leaves), evaluate(after, leaves)
        assert zeros_differ or same(*whole), f"seed {seed}"  # 1 / -0 is not 1 / 0
        assert rewrite(after, VALUE_RULES) is after, f"seed {seed}: not at rest"


def test_constants_fold_as_the_op_table_says() -> None:
    for op, row in OPS.items():
        if row.python is None or op in (Ops.WHERE, Ops.FMA, Ops.CDIV, Ops.CMOD):
            continue
        for dtype in (F, INT, B):
            kind = "int" if dtype.is_int else dtype.kind
            if op not in (*UNARY[kind], *BINARY[kind], *COMPARE):
                continue
            for a in CONSTANTS[kind]:
                for b in CONSTANTS[kind] if row.arity == 2 else CONSTANTS[kind][:1]:
                    others = [UOp.const(dtype, b)] if row.arity == 2 else []
                    node = UOp.const(dtype, a).alu(op, *others)
                    folded = rewrite(node, VALUE_RULES)
                    assert folded.is_const and folded.dtype is node.dtype
                    assert same(evaluate(folded, {}), evaluate(node, {})), to_expr(node)


def test_every_rule_prints() -> None:
    for rule in VALUE_RULES.rules:
        assert re.fullmatch(rf"{rule.name}: .+ -> .+", str(rule)) and " at 0x" not in str(rule)
        assert repr(rule) == rule.name
