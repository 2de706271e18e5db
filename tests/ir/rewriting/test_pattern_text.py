"""Rules as text: what is read, what fires, and what is refused at its column."""

from __future__ import annotations

import pytest

from tests.support import by_rows
from workbench.base.dtypes import dtypes
from workbench.base.errors import ParseError
from workbench.ir.lower.lower import DECOMPOSED
from workbench.ir.node import construct
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import Rule, rules_in_force, typed_rule, without

X = construct.param(dtypes.float32, 0, 1)
N = construct.param(dtypes.int32, 1, 1)

FIRES = [
    ("x * 2 -> x + x", X * 2, X + X),
    ("x * 2 -> x + x", X * 3, None),
    ("x:float * 2 -> x + x", N * 2, None),
    ("x * c -> c", X * 3, X.like(3)),
    ("x * c -> c", X * X, None),
    ("-(-x) -> x", X.alu(Ops.NEG).alu(Ops.NEG), X),
    ("x > y -> ~(x <= y)", X.alu(Ops.CMPLT, X.like(1)),
     X.like(1).alu(Ops.CMPLE, X).alu(Ops.NOT)),
    ("max(x, x) -> x", X.alu(Ops.MAX, X), X),
    ("where(a, x, x) -> x", X.alu(Ops.CMPLT, X.like(1)).where(N, N), N),
    ("x // c1 % c2 -> x", (N // 3) % 5, N),
]  # fmt: skip


@by_rows("text, node, after", FIRES)
def test_what_fires(text: str, node: UOp, after: UOp | None) -> None:
    assert typed_rule(text).matcher(node) is after, text


def test_a_rule_has_its_text_as_its_name_and_is_made_once() -> None:
    rule = typed_rule("x * 2 -> x + x")
    assert isinstance(rule, Rule) and rule.name == "x * 2 -> x + x"
    assert typed_rule("x * 2 -> x + x") is rule


REFUSED = [
    ("x", 2, "one ->"),
    ("x * 2 => x + x", 7, "one ->"),
    ("x * 2 x + x", 12, "has none"),
    ("x + * y -> x", 5, "`*` is not expected"),
    ("exp2(x -> y", 5, "this ( is not closed"),
    ("exp2(x)) -> y", 8, "this ) closes no ("),
    ("x) + (y -> x", 2, "this ) closes no ("),
    ("x * 2 -> max(x, (x + x)", 13, "this ( is not closed"),
    ("max(x y) -> x", 5, "a sign or a comma is missing in `x y`"),
    ("exp2(x) y -> y", 1, "a sign or a comma is missing in `exp2(x) y`"),
    ("2x + y -> y", 1, "is not expected"),
    ("x + 1, -> x", 1, "a comma stands outside of a call"),
    (" -> x", 2, "the left side is empty"),
    ("x ->", 5, "the right side is empty"),
    ("x -> y -> x", 8, "one ->"),
    ("x - y -> x", 1, "no op of a graph subtracts"),
    ("x + -> x", 4, "it ends too early"),
    ("f(x) -> x", 1, "no op f"),
    ("x + y -> x + z", 14, "no z"),
    ("__import__('os') -> x", 1, "no op __import__"),
    ("x:foo + 1 -> x", 1, "the kinds of values"),
    ("x:float + x:bool -> x", 11, "of the kind float"),
    ("x + 1 -> x.real", 10, "is not supported"),
    ("x[0] -> x", 1, "is not supported"),
    ("max(x) -> x", 1, "has 2 operands"),
    ("x -> x + 0", 1, "a single name"),
    ("x + 1 -> x + 1", 7, "the same"),
    ("(lambda: 1)() -> x", 1, "is not supported"),
    ("(" * 900 + "x" + " -> x", 1, ""),
    ("x + 1 -> x" + " " * 2000, 1, "at most"),
    ("+".join("x" * 100) + " -> x", 1, "at most"),
]


@by_rows("text, column, because", REFUSED)
def test_refusals(text: str, column: int, because: str) -> None:
    with pytest.raises(ParseError) as raised:
        typed_rule(text)
    assert because in raised.value.because, str(raised.value)
    if because:
        assert raised.value.what.startswith(f"column {column}:"), str(raised.value)


HINTS = [
    ("x * 2 => x + x", "x * 2 -> x + x"),
    ("exp(x) -> x", "exp2"),
    ("max(x) -> x", "max(x, y)"),
    ("x:int + 0 -> x", "x:integer"),
    ("x ** 2 -> x * x", "signs such as"),
]


@by_rows("text, hint", HINTS)
def test_hints(text: str, hint: str) -> None:
    with pytest.raises(ParseError) as raised:
        typed_rule(text)
    assert raised.value.hint.startswith(hint) or hint in raised.value.hint, str(raised.value)


def test_broken_rules_name_the_sign_that_is_missing() -> None:
    """Each bracket of some rules is left out, or stands twice."""
    for rule in ("max(x, (y + x) * 2) -> x", "x * 2 -> where(a < b, exp2(x), x)"):
        for place in (place for place, sign in enumerate(rule) if sign in "()"):
            for text in (rule[:place] + rule[place + 1 :], rule[:place] + rule[place:][:1] * 2
                         + rule[place + 1 :]):  # fmt: skip
                with pytest.raises(ParseError, match=r"this \( is not closed|this \) closes no \("):
                    typed_rule(text)


def test_it_is_in_force_in_its_block_alone() -> None:
    text = "x * 3 -> x + x + x"
    before = rules_in_force()
    with without([text]):
        assert rules_in_force() != before
        assert DECOMPOSED(X * 3) is X + X + X
        with without([text]):
            assert DECOMPOSED(X * 3) is X + X + X
    assert rules_in_force() == before and DECOMPOSED(X * 3) is X * 3
