"""What cannot be registered is refused, in words, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest

from workbench import OptKind, OptOps, register, unregister
from workbench.base.errors import DeviceError, RegisterError
from workbench.ir.opt.divide import refuse_amount
from workbench.ir.rewriting.patterns import var
from workbench.ir.rewriting.rewrite import Rule, RuleSet, added_rules

pytestmark = pytest.mark.usefixtures("clean_registry")
X = var("x", "float")


def an_opt(**change: Any) -> OptKind:
    functions: Any = {"why_not": lambda k, o, t: refuse_amount(k, o, ""), "apply": lambda k, o: k}
    return OptKind(**({"name": "HALVE", "here": "", "on_a_gpu": ""} | functions | change))


def a_set(*rules: Any, name: str = "mine") -> RuleSet:
    return RuleSet(name, rules)


@pytest.mark.parametrize(
    ("thing", "into", "because"),
    [
        (3, None, "int is not an OptKind, a RuleSet or a DeviceInfo"),
        (an_opt(name="UPCAST"), None, "the package has an opt UPCAST"),
        (an_opt(name="halve"), None, "'halve' is not a word in capitals"),
        (an_opt(amounts=(2, 2.5)), None, "its amount 2.5 is not a whole number"),
        (an_opt(amounts=(True,)), None, "its amount True is not a whole number"),
        (an_opt(apply=None), None, "its apply is not a function"),
        (an_opt(argument="size"), None, "its argument 'size' is unknown"),
        (an_opt(applies_to={"g"}), None, "is not a kind of axis"),
        (an_opt(promise=0.5), None, "its promise 0.5 is not a whole number"),
        (an_opt(), "decompose", "OptKind goes into no pass"),
        (a_set(Rule("a", X * 2, X)), None, "no pass is named"),
        (a_set(Rule("a", X * 2, X)), "nowhere", "there is no pass 'nowhere'"),
        (a_set(), "decompose", "it has no rules"),
        (a_set(Rule("add-zero", X * 2, X)), "decompose", "has a rule or a step of that name"),
        (a_set(Rule("Add Zero", X * 2, X)), "decompose", "lower case with hyphens"),
        (a_set(Rule("a", X * 2, X), name="decompose"), "decompose", "rules of the name"),
        (a_set(Rule("a", X * 2, X + var("y"))), "decompose", "has no y: it names x"),
        (a_set(Rule("a", X * 2, lambda z: z)), "decompose", "has no z: it names x"),
        (a_set(Rule("a", X * 2, X, where=lambda c: True)), "decompose", "has no c"),
    ],
    ids=lambda value: "" if isinstance(value, OptKind | RuleSet | int) else str(value),
)  # fmt: skip
def test_bad_registrations_are_refused(thing: Any, into: str | None, because: str) -> None:
    with pytest.raises(RegisterError) as caught:
        register(thing, into)
    assert because in str(caught.value) and str(caught.value).startswith("cannot register")
    assert not OptOps.registered and not added_rules()


def test_two_sets_cannot_have_rules_of_one_name() -> None:
    register(a_set(Rule("a-rule", X * 2, X + X)), into="decompose")
    with pytest.raises(RegisterError, match="mine has a rule or a step of that name"):
        register(a_set(Rule("a-rule", X * 3, X), name="other"), into="decompose")
    register(a_set(Rule("a-rule", X * 4, X + X)), into="decompose")  # a cell is run again


def test_the_own_and_the_unknown_stay() -> None:
    for name in ("UPCAST", "decompose", "nothing"):
        with pytest.raises(RegisterError, match="it is not registered"):
            unregister(name)
    with pytest.raises(DeviceError, match="one of the package's own"):
        unregister("LLVM")
