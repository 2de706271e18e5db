"""Rules switched off and on again: those of kernels, of scheduling, and of both."""

from __future__ import annotations

import numpy as np
import pytest

from tests.viz.record.support import broken, plain
from tests.viz.session.support import Page, ask, done, session_of
from tests.viz.support import array
from workbench.ir.rewriting.rewrite import Rule
from workbench.ir.schedule.rangeify import RANGEIFY_RULES
from workbench.pipeline import compile_switches
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz.session.session import Session

pytestmark = pytest.mark.usefixtures("nothing_saved")
NEEDED = {rule.name for rule in RANGEIFY_RULES.rules} - {"open-row"}
"""Rules without which there is no kernel."""


def test_switching_a_rule_off_keeps_the_opts() -> None:
    x = array(8, 8)
    with session_of(explore(x.exp2() + x.log2())) as session:
        _keeps_the_opts(session)


def _keeps_the_opts(session: Session) -> None:
    done(session, "code", variant=0, language="LLVM")
    done(session, "offers", variant=0)
    opt = plain(session.row(0))["offers"][0]["opt"]
    auto = done(session, "apply", variant=0, opt=opt)["variant"]
    rows = plain(session.record)["rules"]
    rule, other, *_ = (i for i, r in enumerate(rows) if r["set"] == "decompose")

    def switched(of: int, which: int, on: bool) -> int:
        toggle = {"kernel": 0, "rule": which, "on": on, "of": of}
        index: int = done(session, "rule_off", **toggle)["variant"]
        return index

    number = switched(auto, rule, False)
    assert plain(session.row(number))["opts"] == plain(session.row(auto))["opts"] != []
    assert plain(session.row(number))["rules_off"] == [rows[rule]["name"]]
    assert plain(session.row(number))["parent"] == auto, "back leads to it"
    both = switched(number, other, False)
    assert set(plain(session.row(both))["rules_off"]) == {
        rows[rule]["name"], rows[other]["name"],
    }  # fmt: skip
    assert switched(both, other, True) == number and switched(number, rule, True) == auto


def c_of(session: Session) -> str:
    """Return the C of all kernels, un-optimised."""
    rows = [plain(session.row(k["root"])) for k in plain(session.record)["kernels"]]
    return "\n".join(line for row in rows for line in row["code"][0]["lines"])


def test_a_rule_of_scheduling_changes_everything_and_comes_back() -> None:
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    ex = explore((Tensor(a) / 4.0).sum(axis=1))
    with session_of(ex.baseline("numpy", lambda: a.sum(axis=1))) as session:
        page, before = Page(session), c_of(session)
        rules = [r["name"] for r in plain(session.record)["rules"]]
        rule = rules.index("div-power-of-two")
        done(session, "paste", variant=0, text='UPCAST("g0", 2)')
        done(session, "rule_off", kernel=0, rule=rule, on=False, of=0)
        assert "0.25f" in before and "/ 4.0f" in c_of(session)
        assert "0.25f" not in c_of(session)
        assert page.record["without"] == {
            "rules": ["div-power-of-two"], "differs": "7 lines of C differ",
        }  # fmt: skip
        assert page.record["baselines"][0]["name"] == "numpy"
        done(session, "check", variant=0)
        done(session, "plans")
        assert page.record["variants"][0]["check"]["ok"]
        assert len(page.record["plan"]["compared"]["seconds"]) == 2
        (actual,) = session.kernels[0].run()
        np.testing.assert_allclose(actual, (a / 4).sum(axis=1))
        assert page.is_record_of(session) and broken(page.record) == []
        session.complete()
        names = [r["name"] for r in plain(session.record)["rules"]]
        assert "div-power-of-two" not in names, "it fires nowhere"
        done(session, "rule_off", kernel=0, rule="div-power-of-two", on=True)
        assert c_of(session) == before
        assert page.record["without"] == {"rules": [], "differs": ""}


def test_a_rule_that_stays_on_is_not_to_be_switched_on() -> None:
    with session_of(explore(array(8, 8).exp())) as session:
        done(session, "rule_off", kernel=0, rule="exp-formula", on=False)
        assert ask(session, "plans")["error"]["try"] == "switch exp-formula on again"
        assert plain(session.record)["without"]["rules"] == ["exp-formula"]
        assert plain(session.row(0))["rules_off"] == [], "only the plan says that it is off"
        done(session, "rule_off", kernel=0, rule="exp-formula", on=True)
        error = ask(session, "rule_off", kernel=0, rule="push-through-op", on=False)["error"]
        assert error["what"] == "cannot plan without push-through-op"
        assert error["try"] == "leave it on" and not plain(session.record)["without"]["rules"]


def test_a_rule_that_plans_can_be_off() -> None:
    """`split-reduction` makes two kernels of one, and is known to no kernel."""
    million = Tensor.ones(1 << 20).contiguous().realize()
    with session_of(explore(million.sum())) as session:
        count = len(plain(session.record)["kernels"])
        error = ask(session, "rule_off", kernel=0, rule="no-such", on=False)["error"]
        assert error["what"] == "there is no rule 'no-such' to switch off"
        toggle = {"kernel": 0, "rule": "split-reduction"}
        done(session, "rule_off", **toggle, on=False)
        assert (count, len(plain(session.record)["kernels"])) == (2, 1)
        assert plain(session.record)["plan"]["compared"]["kernels"] == [2, 1]
        done(session, "rule_off", **toggle, on=True)
        assert len(plain(session.record)["kernels"]) == 2


def test_a_rule_of_scheduling_and_of_kernels_is_off_in_both() -> None:
    numbers = Tensor(np.arange(64, dtype=np.int32)).realize()
    x = numbers.reshape(8, 8).transpose().reshape(4, 16)
    with session_of(explore(x + 1)) as session:
        rules = {m.rule.name for r in session.recorder.exploration.passes
                 for m in r.matches if isinstance(m.rule, Rule)}  # fmt: skip
        names = {rule.name for rule in compile_switches()}
        (name, *_) = sorted(rules & names)
        done(session, "rule_off", kernel=0, rule=name, on=False)
        assert plain(session.record)["without"]["rules"] == [name]
        assert plain(session.row(0))["rules_off"] == [name]
        assert session.kernels[0].rules_off == (name,)
        done(session, "check", variant=0)
        assert plain(session.row(0))["check"]["ok"]
        done(session, "paste", variant=0, text='UPCAST("g0", 4)')
        done(session, "rule_off", kernel=0, rule=name, on=True)
        assert plain(session.row(0))["rules_off"] == []


def test_a_rule_that_only_simplifies_can_be_off() -> None:
    x = array(8, 8)
    with session_of(explore((x * 1.5).sum() + x.sqrt())) as session:
        done(session, "code", variant=0, language="LLVM")
        rows = plain(session.record)["rules"]
        names = [r["name"] for r in rows if r["set"] and r["file"]]
        for name in names:
            if name in NEEDED:
                refused = ask(session, "rule_off", kernel=0, rule=name, on=False)
                assert refused["error"]["try"] == "leave it on"
                continue
            reply = done(session, "rule_off", kernel=0, rule=name, on=False)
            variant = reply.get("variant", 0)
            done(session, "check", variant=variant)
            assert plain(session.row(variant))["check"]["ok"]
            assert name in plain(session.row(variant))["rules_off"]
        assert {"rejoin-div-mod", "form-fma", "push-through-op"} <= set(names)


def test_a_question_still_waits_without_a_rule_and_in_another_plan() -> None:
    y = ((array(8, 8) / 4.0).exp() + 1.0).sum(axis=1)
    with session_of(explore(y, ask="time")) as session:
        rules = [r["name"] for r in plain(session.record)["rules"]]
        rule = rules.index("div-power-of-two")
        done(session, "rule_off", kernel=0, rule=rule, on=False)
        assert plain(session.record)["ask"]["name"] == "time"
        decisions = plain(session.record)["plan"]["decisions"]
        node = next(d["node"] for d in decisions if not d["stored"])
        done(session, "replan", node=node, store=True)
        assert plain(session.record)["ask"]["name"] == "time"
        session.recorder.exploration.display.guess = "10"
        done(session, "rule_off", kernel=0, rule="div-power-of-two", on=True)
        assert "ask" not in plain(session.record), "its answer was about that plan"
