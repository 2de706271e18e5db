"""The list of all rules and steps: none is missing, each has a sentence; rules have examples that
tests check."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tools.silent_rules import package_rules
from tests.viz.record.support import plain
from tests.viz.support import softmax
from workbench import Rule, RuleSet, Tensor, explore, register, unregister, var
from workbench.base.trace import PassStep
from workbench.ir.rewriting.passes import Switch
from workbench.pipeline import switches
from workbench.viz.record.record import Recorder, build
from workbench.viz.record.rules import rule_code


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    return {row["name"]: row for row in listed(explore(Tensor.ones(4, 4) @ Tensor.ones(4, 4)))}


def listed(ex: Any) -> list[dict[str, Any]]:
    section: dict[str, Any] = plain(build(ex))["panels"]["rules"]
    assert section["error"] is None
    data: list[dict[str, Any]] = section["data"]
    return data


def test_every_rule_is_listed_with_a_sentence_its_passes_and_its_place(
    rows: dict[str, Any],
) -> None:
    assert list(rows) == [switch.name for switch in switches()]
    for name, row in rows.items():
        assert row["doc"], f"{name} has no sentence"
        assert "\n" not in row["doc"].replace("\n\n", ""), "a paragraph is a line"
        assert row["passes"] and row["file"] and row["line"], name
        rule = package_rules().get(name)
        assert row["text"] == ("" if rule is None else str(rule).removeprefix(f"{name}: "))
    assert rows["add-zero"]["passes"] == [
        "simplify-tensor", "simplify-index", "simplify-kernel",
    ]  # fmt: skip


def test_every_rule_has_an_example(rows: dict[str, Any]) -> None:
    steps = {step.name for step in switches() if isinstance(step, PassStep)}
    assert {name for name, row in rows.items() if not row["examples"]} == steps
    assert rows["cast-to-small"]["examples"] == [
        {"before": "float16(i)", "after": "float16(float32(i))"}
    ]
    assert rows["add-zero"]["examples"] == [{"before": "x + 0.0", "after": "x"}]
    assert rows["idiv-floor"]["examples"][0]["before"] == "i // j"
    for row in rows.values():
        for example in row["examples"]:
            assert example["after"] not in (example["before"], "None"), row["name"]


@pytest.fixture
def doubling() -> Iterator[RuleSet]:
    x = var("x")
    rules = RuleSet("mine", [Rule("double", x + x, x * 2.0, doc="x + x is 2 x")])
    yield register(rules, into="simplify-tensor")
    unregister(rules)


def test_a_rule_from_a_cell_is_listed_and_printed(doubling: RuleSet) -> None:
    a = Tensor(np.ones(4, np.float32))
    ex = explore(a + a)
    row = next(row for row in listed(ex) if row["name"] == "double")
    assert row["passes"] == ["simplify-tensor"] and row["set"] == "mine"
    assert row["file"] == "test_rules.py" and row["examples"] == []
    printed = [line.split() for line in str(ex.pane("rules")).split("\n")]
    assert ["1", "double", "x", "+", "x", "is", "2", "x"] in printed
    assert any(words[:2] == ["-", "add-zero"] for words in printed)


def test_every_rule_has_its_row_and_its_functions_as_code() -> None:
    for switch in switches():
        parts = {part.title: part for part in rule_code(switch)}
        named = {
            "becomes": getattr(switch, "becomes", None),
            "where": getattr(switch, "where", None),
        }
        functions = {f"{k}: {f.__name__}" for k, f in named.items() if inspect.isfunction(f)}
        rows = {"the rule", "the step"} & set(parts)
        assert set(parts) - rows == functions, switch.name
        # a row for each low-precision dtype is made in a loop
        assert rows or re.fullmatch(r"(load|store|widen|round)-\w*float\d+|\w+-fp8\w+", switch.name)
        for title in rows:
            assert f'"{switch.name}"' in parts[title].text
            ast.parse(parts[title].text.rstrip(","))
        for title, part in parts.items():
            assert part.path.endswith(part.file) and part.more == 0
            lines = Path(part.path).read_text(encoding="utf-8").split("\n")[part.line - 1 :]
            assert lines[0].strip() == part.text.split("\n")[0].strip(), (switch.name, title)


def test_the_code_of_a_gradient_rule_is_its_function() -> None:
    x = Tensor(np.ones(4, np.float32), requires_grad=True)
    loss = (x.exp() * 2).sum()
    recorder = Recorder(explore(loss, *loss.gradient(x)))
    recorder.first()
    for _ in recorder.rest():
        pass
    known = recorder.switch("gradient-exp")
    assert known is not None
    (part,) = rule_code(known)
    assert part.file == "workbench/ir/gradient/rules.py" and "Ops.EXP:" in part.text
    assert recorder.switch("UPCAST") is None


def test_the_text_counts_what_scheduling_and_compiling_did() -> None:
    ex = softmax()
    passes = [*ex.passes, *(p for k in ex.kernels for p in k.observed(k.device))]
    fired = [m.rule.name for p in passes for m in p.matches if isinstance(m.rule, Switch)]
    assert {"add-zero", "close-loop"} & set(fired)
    counts = {words[1]: words[0] for words in map(str.split, str(ex.pane("rules")).split("\n")[2:])}
    assert set(counts) == {switch.name for switch in switches()}
    for name, count in counts.items():
        assert count == (str(fired.count(name)) if name in fired else "-"), name
