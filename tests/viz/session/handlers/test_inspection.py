"""Looking at rewrites and accesses from a page: why a rule does not fire, and which is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.check.test_bisect import BAD, with_rule
from tests.viz.record.support import plain
from tests.viz.session.support import ask, done, session_of
from tests.viz.support import array, matmul, softmax
from workbench.ir.rewriting.rewrite import stopped
from workbench.ir.rules.collapse import KERNEL_RULES
from workbench.ir.rules.index import SIMPLIFY
from workbench.tensor.tensor import Tensor
from workbench.viz import Exploration, explore
from workbench.viz.session.handlers.inspection import MOST_ACCESSES
from workbench.viz.session.session import Session

pytestmark = pytest.mark.usefixtures("nothing_saved")


def test_why_not_and_rules_off() -> None:
    with session_of(softmax()) as session:
        done(session, "code", variant=0, language="LLVM")
        done(session, "code", variant=1, language="LLVM")
        names = [r["name"] for r in plain(session.record)["rules"]]
        rule = next(i for i, name in enumerate(names) if name.startswith("exp2"))
        steps = [
            (place, row[1])
            for place, p in enumerate(plain(session.record)["passes"])
            for row in p["rewrites"] if row[0] == rule
        ]  # fmt: skip
        place, node = steps[0]
        fired = done(session, "why_not", **{"pass": place}, node=node, rule=rule)
        assert fired["because"].startswith("it fires")
        other = plain(session.record)["passes"][place]["after"][0]
        reply = done(session, "why_not", **{"pass": place}, node=other, rule=rule)
        assert 0 <= reply["caret_start"] < reply["caret_end"] <= len(reply["text"])
        kernel = plain(session.record)["passes"][place]["kernel"]
        number = done(session, "rule_off", kernel=kernel, rule=rule, on=False)["variant"]
        assert plain(session.row(number))["rules_off"] == [names[rule]]
        again = ask(session, "code", variant=number, language="LLVM")
        assert again["error"]["what"].startswith("cannot compile"), "LLVM has no exp2"
        root = plain(session.record)["kernels"][kernel]["root"]
        assert again["error"]["try"] == f"switch {names[rule]} on again"
        back = done(session, "rule_off", kernel=kernel, rule=rule, on=True, of=number)
        assert back == {"variant": root}


def test_the_code_of_a_rule_is_sent_by_its_name() -> None:
    with session_of(softmax()) as session:
        row, becomes = done(session, "rule_code", rule="idiv-by-shift")["parts"][:2]
        assert row["text"].startswith('Rule("idiv-by-shift"')
        assert becomes["text"].startswith("def shift_for_div(")
        assert row["file"] == becomes["file"] == "workbench/ir/lower/decompose.py"
        assert "no code to show" in ask(session, "rule_code", rule="UPCAST")["error"]["what"]


def test_a_state_is_lowered_on_by_the_passes_after_it() -> None:
    """At the end of a pass the program is the finished one; in its middle it is right, or there is
    a reason: without a fused multiply-add it is another one, and no device has exp2."""
    assert "differs" in lowered_on(matmul())
    assert "refused" in lowered_on(softmax())


def lowered_on(ex: Exploration) -> set[str]:
    """Lower some states of each pass on; return how the programs are beside the finished one."""
    found = set()
    with session_of(ex) as session:
        variant = 0
        done(session, "passes", variant=variant)
        kernel, record = session.kernels[variant], plain(session.record)
        own = set(record["variants"][variant]["passes"])
        finished = next(c for c in record["variants"][variant]["code"] if c["language"] == "LLVM")
        for place, row in enumerate(record["passes"]):
            is_own = place in own or row["variant"] is None and row["kernel"] in (None, variant)
            if not is_own or row["unit"] != "rewrite" or not row["rewrites"]:
                continue
            total = len(row["rewrites"])
            for step in sorted({0, total // 2, total}):
                fields = {"variant": variant, "pass": place, "step": step, "language": "LLVM"}
                reply = ask(session, "lower_on", **fields)
                if not reply["ok"]:
                    assert reply["error"]["because"] and step < total, row["name"]
                    found.add("refused")
                    continue
                lines = reply["result"]["code"]["lines"]
                assert f"{row['name']} stops after {step} of" in reply["result"]["words"]
                found.add("same" if lines == finished["lines"] else "differs")
                assert step < total or lines == finished["lines"], row["name"]
                if place in own:
                    with stopped(row["name"], session.recorder.node(row["before"][0]), step):
                        assert kernel.check("LLVM").ok, row["name"]
        place = next(p for p in own if record["passes"][p]["name"] == "decompose")
        fields = {"variant": variant, "pass": place, "step": 10**6, "language": "asm"}
        reply = done(session, "lower_on", **fields)
        assert reply["words"].endswith("It is in LLVM, which LLVM runs.")
        tree = next(p for p in own if record["passes"][p]["name"] == "statement-tree")
        fields = {"variant": variant, "pass": tree, "step": 1, "language": "LLVM"}
        error = ask(session, "lower_on", **fields)["error"]
        assert "no rule fires in statement-tree" in error["because"]
    return found


def test_why_not_is_asked_of_the_pass_that_is_looked_at() -> None:
    """A rule may be in the sets of several passes: where it fired, it is said to fire."""
    x = array(6, 8)
    with session_of(explore(x.pad(((1, 1), (0, 0))).reshape(4, 16) + x.sum())) as session:
        for variant in range(len(plain(session.record)["variants"])):
            done(session, "code", variant=variant, language="LLVM")
        rules, names = plain(session.record)["rules"], set()
        for place, row in enumerate(plain(session.record)["passes"]):
            for rule, node, *_ in row["rewrites"]:
                if rule >= 0 and rules[rule]["text"]:  # no opt and no step
                    of = {"pass": place, "node": node, "rule": rule}
                    because = done(session, "why_not", **of)["because"]
                    assert because.startswith("it fires"), (row["name"], rules[rule])
                    names.add(row["name"])
        assert names >= {"simplify-index", "simplify-kernel", "machine-division"}


# which rewrite was wrong


def steps(session: Session, reply: Any) -> tuple[str, str]:
    """Return the names of the pass and of the rule that bisecting found."""
    row = plain(session.record)["passes"][reply["pass"]]
    rule = row["rewrites"][reply["step"] - 1][0]
    return row["name"], plain(session.record)["rules"][rule]["name"]


def test_bisect_is_of_the_variant_that_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    right = {"text": "every state computes the same", "pass": None, "step": 0}
    with session_of(explore(matmul_of_halves())) as session:
        assert done(session, "bisect", variant=0) == right
        with with_rule(SIMPLIFY, BAD, monkeypatch):
            opts = 'UPCAST("g1", 4), UNROLL("r0", 4)'
            wrong = done(session, "paste", variant=0, text=opts)["variant"]
            reply = done(session, "bisect", variant=wrong)
            assert done(session, "bisect", variant=0) == right
        assert steps(session, reply) == ("simplify-kernel", "bad")
        assert reply["pass"] in plain(session.row(wrong))["passes"]
        text = session.kernels[0].compile("LLVM").source + "; edited"
        done(session, "edit", variant=0, language="LLVM", text=text)
        error = ask(session, "bisect", variant=len(session.kernels) - 1)["error"]
        assert "edited by hand" in error["because"]


def matmul_of_halves() -> Tensor:
    """Return a product of kernels whose rules meet `* 0.5` in opts, not in scheduling."""
    return (array(8, 16) @ array(16, 16)) * 0.5


def test_bisect_finds_a_rule_of_scheduling(monkeypatch: pytest.MonkeyPatch) -> None:
    with with_rule(KERNEL_RULES, BAD, monkeypatch):
        with session_of(explore(matmul_of_halves())) as session:
            reply = done(session, "bisect", variant=0)
            assert steps(session, reply) == ("simplify-kernel", "bad")
            assert reply["pass"] not in plain(session.row(0))["passes"]


def test_bisect_of_a_variant_that_lacks_a_rule() -> None:
    with session_of(explore(array(6, 8).exp2())) as session:
        toggle = {"kernel": 0, "rule": "exp2-polynomial", "on": False}
        number = done(session, "rule_off", **toggle)["variant"]
        reply = done(session, "bisect", variant=number)
        assert "stage render failed" in reply["text"]
        assert plain(session.record)["passes"][reply["pass"]]["name"] == "render"


def test_accesses_of_an_axis(session: Session) -> None:
    done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    reply = done(session, "accesses", variant=1, axis="", at={}, first=0, steps=2)
    kernel = session.kernels[1]
    assert reply["axis"] == "r0" and [row["name"] for row in reply["axes"]] == ["g0", "r0", "u0"]
    for row in reply["buffers"]:
        buffer = kernel.accesses("r0", steps=2)[row["name"]]
        assert row["elements"] == buffer.elements.tolist()
        assert row["steps"] == buffer.steps.tolist() and row["shape"] == [*buffer.shape]
        assert row["statements"] == buffer.statements.tolist()
    texts = [statement["text"] for statement in reply["statements"]]
    assert any("acc0" in text for text in texts) and len(texts) == 2
    rows = plain(session.row(1))["loops"]["rows"]
    nodes = [row["nodes"][0] for row in rows if row["kind"] == "statement"]
    assert {statement["node"] for statement in reply["statements"]} <= {*nodes}
    warp = {"variant": 1, "axis": "", "first": 0, "steps": 1, "warp": 0}
    reply = done(session, "accesses", at={"g0": 2, "r0": 1}, **warp)
    found = kernel.warp(0, {"g0": 2, "r0": 1}).instructions
    assert reply["names"] == [f"{i.name}: {i.cost}" for i in found]
    for row in reply["buffers"]:
        own = [(n, i) for n, i in enumerate(found) if f" {row['name']}" in i.name]
        pairs = [(n, e) for n, i in own for e in i.elements.reshape(-1).tolist() if e >= 0]
        assert [*zip(row["steps"], row["elements"], strict=True)] == pairs
        assert len(row["lanes"]) == len(pairs) and not row["statements"]
    assert not ask(session, "accesses", at={}, **(warp | {"warp": 7}))["ok"]
    error = ask(session, "accesses", variant=1, axis="zz", at={}, first=0, steps=2)["error"]
    assert error["what"] == "there is no axis 'zz'"
    with session_of(explore(array(512, 512) + 1)) as large:
        words = {"variant": 0, "axis": "", "at": {}, "first": 0, "steps": 1 << 18}
        reply = done(large, "accesses", **words)
        assert reply["count"] < 1 << 18
        assert sum(len(row["steps"]) for row in reply["buffers"]) <= MOST_ACCESSES
    with session_of(explore(array(512, 512) @ array(512, 512))) as large:
        words["axis"] = "g0"
        error = ask(large, "accesses", **words)["error"]
        assert error["what"].startswith("these accesses are too many to ")


def test_variants_are_compared_in_columns(session: Session) -> None:
    done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    reply = done(session, "compare", variants=[0, 1])
    assert reply["names"] == ["plain", "UPCAST g1 4"]
    rows = {
        section["title"]: {label: cells for label, cells, *_ in section["rows"]}
        for section in reply["sections"]
    }
    assert rows["kernel"]["opts"] == ["none", "UPCAST g1 4"]
    assert rows["counts"]["stores"][0] != rows["counts"]["stores"][1]
    assert "answer" not in rows["kernel"]  # nothing runs
