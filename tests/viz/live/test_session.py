"""Requests of a page: each good and bad, what it answers and what becomes of the record."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.kernel.test_bisect import BAD, with_rule
from tests.viz.live.support import Page, session_of, unpacked
from tests.viz.record.support import broken, plain
from tests.viz.support import array, check_golden, matmul, softmax
from workbench.backends.device import Device
from workbench.ir.rewrite import Rule
from workbench.ir.rules.collapse import KERNEL_RULES
from workbench.ir.rules.index import SIMPLIFY
from workbench.pipeline import COMPILE_RULES
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz.live import ahead, baselines, measuring
from workbench.viz.live.jobs import AHEAD, ASKED
from workbench.viz.live.requests import FIELDS
from workbench.viz.live.session import LONG, QUICK, Session

NEEDS_C = pytest.mark.skipif(not Device.available("C"), reason="no C compiler")


@pytest.fixture(autouse=True)
def nothing_saved(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def session() -> Iterator[Session]:
    with session_of(matmul()) as made:
        page = Page(made)
        yield made
        made.tell_changes()
        assert page.record == plain(made.record), "the page's copy is the same"
        assert broken(page.record) == []


def ask(session: Session, do: str, **fields: Any) -> Any:
    reply = session.handle({"id": 7, "do": do, **fields})
    assert set(reply) == {"id", "ok", "error", "result", "patch"}
    assert reply["id"] == 7 and reply["ok"] is (reply["error"] is None)
    return reply


def done(session: Session, do: str, **fields: Any) -> Any:
    reply = ask(session, do, **fields)
    assert reply["ok"], reply["error"]
    return reply["result"]


def test_default_opts_that_were_pasted_say_why_once_they_are_asked_for(
    session: Session,
) -> None:
    chosen = session.kernels[0].optimized()
    text = "\n".join(map(str, chosen.applied_opts))
    made = done(session, "paste", variant=0, text=text)["variant"]
    assert session.row(made)["steps"] == []
    assert done(session, "auto", kernel=0)["variant"] == made
    assert [s["why"] for s in session.row(made)["steps"]] == [
        s.why for s in chosen.steps
    ]


def test_every_request_is_known() -> None:
    assert set(FIELDS) == set(QUICK) | set(LONG)


def test_replies(session: Session) -> None:
    """Every request that is answered without running anything, good and bad."""
    requests: list[Any] = [
        {"do": "ping"},
        {"do": "ping", "have": 0},
        {"do": "apply", "variant": 0, "opt": 'UPCAST("g1", 4)'},
        {"do": "apply", "variant": 0, "opt": 'Opt(OptOps.UPCAST, "g1", 4)'},
        {"do": "apply", "variant": 1, "opt": 'UNROLL("r0", 2)'},
        {"do": "apply", "variant": 0, "opt": 'UPCAST("g1", 3)'},
        {"do": "apply", "variant": 0, "opt": 'UPCAST("g9", 4)'},
        {"do": "apply", "variant": 0, "opt": "print(1)"},
        {"do": "apply", "variant": 99, "opt": 'UPCAST("g1", 4)'},
        {"do": "apply", "variant": True, "opt": 'UPCAST("g1", 4)'},
        {"do": "apply", "variant": 0},
        {"do": "apply", "variant": 0, "opt": 4},
        {"do": "apply", "variant": 0, "opt": "x", "then": 1},
        {"do": "paste", "variant": 2, "text": 'UPCAST("g0", 2), UPCAST("g1", 2)'},
        {"do": "paste", "variant": 2, "text": 'UPCAST("g0", 3), UPCAST("g1", 3)'},
        {"do": "paste", "variant": 2, "text": 'UPCAST("g1", 3)'},
        {"do": "paste", "variant": 2, "text": ""},
        {"do": "paste", "variant": 2, "text": "import os"},
        {"do": "auto", "kernel": 0},
        {"do": "auto", "kernel": 1},
        {"do": "code", "variant": 0, "language": "LLVM"},
        {"do": "code", "variant": 0, "language": "COBOL"},
        {"do": "offers", "variant": 0},
        {"do": "pin", "variant": 1},
        {"do": "pin", "variant": None},
        {"do": "pin", "variant": "1"},
        {"do": "note", "variant": 1, "text": "<b>read me</b>"},
        {"do": "device", "name": "PYTHON"},
        {"do": "device", "name": "LLVM"},
        {"do": "device", "name": "ABACUS"},
        {"do": "edit", "variant": 0, "language": "asm", "text": "nop"},
        {"do": "measure", "variants": []},
        {"do": "search", "variant": 0, "budget_s": 0},
        {"do": "search", "variant": 0, "budget_s": float("nan")},
        {"do": "replan", "node": 10**9, "store": True},
        {"do": "replan", "node": 0, "store": 1},
        {"do": "bisect", "variant": None},
        {"do": "rule_off", "kernel": 0, "rule": 10**9, "on": False},
        {"do": "measure", "variants": [0, "1"]},
        {"do": "measure", "variants": list(range(99))},
        {"do": "check", "variant": -1},
        {"do": "baseline"},
        {"do": "stop"},
        {"do": "dance"},
        {"do": 4},
        {},
        [],
        None,
        "apply",
    ]
    lines = [line for request in requests for line in shown(session, request)]
    check_golden("live_replies.txt", "\n".join(lines))


def shown(session: Session, request: Any) -> Iterator[str]:
    asked = request
    if isinstance(request, dict):
        asked = " ".join(str(v) for v in request.values())
    reply = session.handle(request)
    if reply["ok"]:
        result = dict(reply["result"])
        if result.get("record"):
            result["record"] = "(whole)"
        yield f"{asked}: {result}"
    else:
        error = reply["error"]
        yield f"{str(asked)[:40]}: {error['what'][:60]} | {error['because'][:60]}"


@pytest.mark.parametrize("do", [[], {}, ["apply"], 1.5, "\ud800"])
def test_what_is_no_request_is_answered(session: Session, do: Any) -> None:
    assert not ask(session, do)["ok"]


def test_half_a_character_is_no_text(session: Session) -> None:
    reply = ask(session, "note", variant=0, text="a\ud800")
    assert reply["error"]["what"] == "note cannot take this text"


def test_apply_makes_a_variant(session: Session) -> None:
    made = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    row = session.row(made)
    assert (row["name"], row["parent"], row["opts"]) == (
        "mine 1",
        0,
        ['UPCAST("g1", 4)'],
    )
    assert row["code"][0]["language"] == "C" and row["loops"]
    patch = ask(session, "apply", variant=made, opt='UPCAST("g0", 2)')["patch"]
    assert [v["parent"] for v in patch["append"]["variants"]] == [made]
    again = ask(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    assert again["result"] == {"variant": made} and again["patch"] is None


def test_a_paste_keeps_what_was_possible(session: Session) -> None:
    text = 'UPCAST("g1", 2)\nUPCAST("r7", 2)\nUNROLL("r0", 2)'
    made = done(session, "paste", variant=0, text=text)["variant"]
    assert session.row(made)["opts"] == ['UPCAST("g1", 2)']
    assert session.row(made)["error"]["what"] == 'cannot apply UPCAST("r7", 2)'


def test_a_variant_that_does_not_compile_is_kept(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workbench.kernel.kernel import Kernel

    def fails(kernel: Kernel, device: str | None = None) -> None:
        raise ZeroDivisionError("no such luck")

    made = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
    monkeypatch.setattr(Kernel, "compile", fails)
    assert ask(session, "code", variant=made, language="asm")["error"] == {
        "what": "ZeroDivisionError", "because": "no such luck", "try": "",
    }  # fmt: skip
    row = session.row(made)
    assert row["error"]["because"] == "no such luck"
    assert row["loops"] and row["code"][0]["language"] == "C", "the last good state"


def test_a_fault_of_ours_is_an_answer(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUICK, "note", lambda *_, **__: 1 / 0)
    reply = ask(session, "note", variant=0, text="x")
    assert reply["error"]["what"] == "ZeroDivisionError"


def test_measure(session: Session) -> None:
    auto = done(session, "auto", kernel=0)["variant"]
    done(session, "measure", variants=[0, auto, 0], cold=True)
    for variant in (0, auto):
        timing = session.row(variant)["timing"]
        assert timing["min_s"] <= timing["median_s"] and timing["cold_s"] > 0
        assert timing["device"] == "LLVM" and not timing["emulator"]
        assert 0 < timing["fraction"] and timing["samples"] and "peak" in timing["text"]
    (beside,) = session.row(auto)["timing"]["beside"]
    plain_then = session.row(0)["timing"]["median_s"]
    assert beside[:2] == ["plain", plain_then]
    done(session, "measure", variants=[0], cold=False)
    assert session.row(auto)["timing"]["beside"] == [beside], "still of its own run"
    statuses = [m["status"] for m in page_of(session).messages if "status" in m]
    assert statuses[0]["task"] == "measure" and statuses[-1]["task"] is None
    assert any("warm" in s["text"] for s in statuses)


def page_of(session: Session) -> Any:
    return session.listeners()[0]


def test_check(session: Session) -> None:
    done(session, "check", variant=0)
    assert session.row(0)["check"]["ok"] is True


@NEEDS_C
def test_edited_source_is_a_variant(session: Session) -> None:
    text = "\n".join(session.row(0)["code"][0]["lines"])
    pid = session.jobs.worker.pid
    good = done(session, "edit", variant=0, language="C", text=text + "// same")[
        "variant"
    ]
    row = session.row(good)
    assert row["edited"] and row["parent"] == 0 and row["error"] is None
    assert row["check"]["ok"] and row["timing"]["device"] == "C"
    assert row["code"][0]["lines"][-1].endswith("// same")
    wrong = text.replace("float *p0 = args[0];", "float *p0 = args[0]; return;")
    bad = done(session, "edit", variant=0, language="C", text=wrong)["variant"]
    assert session.row(bad)["check"]["ok"] is False and session.row(bad)["timing"]
    crash = text.replace("float *p0 = args[0];", "float *p0 = 0; p0[1] = 1;")
    gone = done(session, "edit", variant=0, language="C", text=crash)["variant"]
    assert session.row(gone)["error"]["what"] == "the program crashed"
    assert session.row(gone)["timing"] is None and session.row(gone)["check"] is None
    assert session.jobs.worker.pid == pid, "each ran in a process of its own"
    assert session.row(0)["timing"], "the one it was made from is timed beside it"


@NEEDS_C
def test_edited_source_that_hangs(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measuring, "EDITED_S", 0.7)
    text = "\n".join(session.row(0)["code"][0]["lines"])
    endless = text.replace("float *p0 = args[0];", "float *p0 = args[0]; for (;;) {}")
    made = done(session, "edit", variant=0, language="C", text=endless)["variant"]
    assert session.row(made)["error"]["what"] == "the program did not end"


def test_edited_llvm(session: Session) -> None:
    done(session, "code", variant=0, language="LLVM")
    code = next(c for c in session.row(0)["code"] if c["language"] == "LLVM")
    text = "\n".join(code["lines"])
    made = done(session, "edit", variant=0, language="LLVM", text=text)["variant"]
    assert session.row(made)["check"]["ok"]
    broken_text = text.replace("define", "undefine")
    made = done(session, "edit", variant=0, language="LLVM", text=broken_text)[
        "variant"
    ]
    assert session.row(made)["error"]["what"].startswith("cannot compile")


def test_an_emulator_stands_alone(session: Session) -> None:
    done(session, "measure", variants=[0])
    timing = session.row(0)["timing"]
    done(session, "device", name="PYTHON")
    assert session.record["device"] == "PYTHON"
    assert session.row(0)["timing"] is None and session.row(0)["offers"] == []
    done(session, "measure", variants=[0])
    done(session, "check", variant=0)
    assert session.row(0)["timing"]["emulator"]
    assert "EMULATOR (PYTHON)" in session.row(0)["timing"]["text"]
    done(session, "device", name="LLVM")
    assert session.row(0)["timing"] == timing and session.row(0)["check"] is None


def test_a_missing_device_says_how_to_get_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(Device["C"]), "is_available", False)
    error = ask(session, "device", name="C")["error"]
    assert error["try"] == Device["C"].how_to_get
    error = ask(session, "edit", variant=0, language="C", text="x")["error"]
    assert error["try"] == Device["C"].how_to_get


def test_baselines() -> None:
    ran = []
    ex = matmul().baseline("mine", lambda: ran.append(1))
    ex.baseline("broken", lambda: 1 / 0)
    with session_of(ex) as session:
        done(session, "pin", variant=0)
        done(session, "baseline")
        mine, broken_row = session.record["baselines"]
        assert mine["name"] == "mine" and mine["timing"]["median_s"] > 0 and ran
        assert mine["error"] is None
        assert broken_row["timing"] is None
        assert broken_row["error"] == "ZeroDivisionError: division by zero"
        assert session.row(0)["timing"], "the pinned variant was timed in turns with it"
        done(session, "device", name="PYTHON")
        assert "emulator" in ask(session, "baseline")["error"]["because"]


def test_a_baseline_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "LIMIT_S", 0.1)
    ex = matmul().baseline("slow", lambda: time.sleep(0.5))
    with session_of(ex) as session:
        done(session, "baseline")
        assert "did not return" in session.record["baselines"][0]["error"]


def test_what_is_done_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "MOST_OFFERS", 4)
    ex = softmax().baseline("mine", lambda: None)
    with session_of(ex, measures_ahead=True) as session:
        page = Page(session)
        finished = session.jobs.submit(session, session._ahead(), AHEAD)
        assert finished.wait(60)
        assert session.jobs.submit(page, iter(()), 9).wait(10), (
            "after all that is AHEAD"
        )
        record = page.record
        assert record == plain(session.record) and broken(record) == []
        assert all(v["timing"] for v in record["variants"]), "plain and auto"
        assert record["baselines"][0]["timing"]
        assert any(o["measured"] for o in record["variants"][0]["offers"])
        assert unpacked(page.renewed[-1]) == record


def test_stop_drops_what_is_under_way() -> None:
    with session_of(explore(array(400, 400) @ array(400, 400))) as session:
        page = Page(session)
        request = {"id": 1, "do": "measure", "variants": [0]}
        jobs = session.jobs
        events = [
            jobs.submit(session, session.job({**request, "id": n}, page), ASKED)
            for n in range(5)
        ]
        time.sleep(0.5)
        assert done(session, "stop") == {"stopped": 5}
        assert all(event.wait(5) for event in events)
        answered = [m for m in page.messages if m.get("id") in range(5)]
        assert sorted(m["id"] for m in answered) == [0, 1, 2, 3, 4]
        assert {m["error"]["what"] for m in answered if m["id"]} == {"stopped"}
        statuses = [m["status"]["task"] for m in page.messages if "status" in m]
        assert statuses[-1] is None, "nothing is said to be under way"
        assert done(session, "stop") == {"stopped": 0}


def test_two_sessions_do_not_meet() -> None:
    with session_of(matmul()) as first, session_of(matmul()) as second:
        pages = Page(first), Page(second)
        done(first, "apply", variant=0, opt='UPCAST("g1", 4)')
        done(second, "note", variant=0, text="mine")
        assert len(pages[0].record["variants"]) == 2
        assert len(pages[1].record["variants"]) == 1
        assert pages[0].record["variants"][0]["note"] == ""


def test_variants_come_back() -> None:
    with session_of(matmul()) as session:
        made = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
        done(session, "note", variant=made, text="good")
        done(session, "pin", variant=made)
        done(session, "measure", variants=[made])
        timing = session.row(made)["timing"]
    with session_of(matmul()) as session:
        page = Page(session)
        assert session.jobs.submit(session, session._ahead(), AHEAD).wait(30)
        rows = {tuple(v["opts"]): (i, v) for i, v in enumerate(page.record["variants"])}
        place, row = rows['UPCAST("g1", 4)',]
        assert (row["name"], row["note"]) == ("mine 1", "good")
        assert page.record["pinned"] == place
        assert row["timing"]["median_s"] == timing["median_s"]
        assert row["timing"]["text"].endswith("measured earlier")
        other = done(session, "apply", variant=0, opt='UPCAST("g1", 2)')["variant"]
        assert session.row(other)["name"] == "mine 2"


def test_a_late_page_gets_the_whole_record(session: Session) -> None:
    done(session, "note", variant=0, text="x")
    number = session.record["n"]
    assert done(session, "ping", have=number) == {"n": number, "record": None}
    whole = done(session, "ping", have=number - 1)["record"]
    assert unpacked(whole) == plain(session.record)


def node_of(session: Session, op: str, place: int = 0) -> int:
    """Return the first node of a pass's end state with that op."""
    ops, sources = session.record["nodes"]["op"], session.record["nodes"]["src"]
    stack = list(session.record["passes"][place]["after"])
    while stack:
        node = stack.pop()
        if ops[node] == op:
            return node
        stack.extend(sources[node])
    raise AssertionError(op)


def pass_of(session: Session, name: str) -> int:
    return [p["name"] for p in session.record["passes"]].index(name)


def test_values(session: Session) -> None:
    a = (np.arange(48, dtype=np.float32) % 7 - 3).reshape(6, 8)
    b = (np.arange(32, dtype=np.float32) % 7 - 3).reshape(8, 4)
    tensors = pass_of(session, "simplify-tensor")
    here = {"variant": None, "pass": tensors, "step": 0}
    node = node_of(session, "MAX", tensors)
    found = done(session, "values", **here, node=node, at={})
    want = np.maximum(a @ b + b.reshape(-1)[:4], 0)
    assert found["shape"] == [6, 4] and found["value"] == want.reshape(-1)[:16].tolist()
    assert (found["min"], found["max"], found["nan"]) == (want.min(), want.max(), 0)
    done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    done(session, "code", variant=1, language="LLVM")
    place = session.row(1)["passes"][0]
    here = {"variant": 1, "pass": place, "step": 0}
    node = node_of(session, "REDUCE", place)
    for g0, u0 in ((0, 0), (5, 3)):
        at = {
            "g0": g0,
            "u0": u0,
            "r0": 3,
        }  # r0 is closed here: the page sends it all the same
        found = done(session, "values", **here, node=node, at=at)
        assert found["value"] == (a @ b)[g0, u0] and found["shape"] == []
        assert (found["min"], found["max"]) == ((a @ b).min(), (a @ b).max())
    error = ask(session, "values", **here, node=node, at={"g0": 6})["error"]
    assert error["what"] == "there is no position 6 along g0"
    sink = session.record["passes"][place]["after"][0]
    assert not ask(session, "values", **here, node=sink, at={})["ok"]


def test_values_of_an_index_before_there_is_a_kernel() -> None:
    with session_of(explore(array(6, 8).flip(0) * 2)) as session:
        place = pass_of(session, "simplify-index")
        here = {"variant": None, "pass": place, "step": 0}
        (node, *_) = session.record["passes"][place]["after"]
        (node, *_) = session.record["nodes"]["src"][node]
        found = done(session, "values", **here, node=node, at={"_0": 1, "_1": 3})
        assert (found["value"], found["min"], found["max"]) == ((5 - 1) * 8 + 3, 0, 47)


def test_why_not_and_rules_off() -> None:
    with session_of(softmax()) as session:
        done(session, "code", variant=0, language="LLVM")
        done(session, "code", variant=1, language="LLVM")
        names = [r["name"] for r in session.record["rules"]]
        rule = next(i for i, name in enumerate(names) if name.startswith("exp2"))
        steps = [
            (place, row[1])
            for place, p in enumerate(session.record["passes"])
            for row in p["rewrites"] if row[0] == rule
        ]  # fmt: skip
        place, node = steps[0]
        fired = done(
            session, "why_not", **{"pass": place}, step=0, node=node, rule=rule
        )
        assert fired["because"].startswith("it fires")
        other = session.record["passes"][place]["after"][0]
        found = done(
            session, "why_not", **{"pass": place}, step=0, node=other, rule=rule
        )
        assert 0 <= found["caret_start"] < found["caret_end"] <= len(found["text"])
        kernel = session.record["passes"][place]["kernel"]
        made = done(session, "rule_off", kernel=kernel, rule=rule, on=False)["variant"]
        assert session.row(made)["rules_off"] == [names[rule]]
        again = ask(session, "code", variant=made, language="LLVM")
        assert again["error"]["what"].startswith("cannot compile"), "LLVM has no exp2"
        root = session.record["kernels"][kernel]["root"]
        assert again["error"]["try"] == f"switch {names[rule]} on again"
        back = done(session, "rule_off", kernel=kernel, rule=rule, on=True, of=made)
        assert back == {"variant": root}


def test_why_not_is_asked_of_the_pass_that_is_looked_at() -> None:
    """A rule may be in the sets of several passes: where it fired, it is said to fire."""
    x = array(6, 8)
    with session_of(
        explore(x.pad(((1, 1), (0, 0))).reshape(4, 16) + x.sum())
    ) as session:
        for variant in range(len(session.record["variants"])):
            done(session, "code", variant=variant, language="LLVM")
        rules, asked = session.record["rules"], set()
        for place, row in enumerate(session.record["passes"]):
            for rule, node, *_ in row["rewrites"]:
                if rule >= 0 and rules[rule]["file"]:  # no opt and no step
                    of = {"pass": place, "step": 0, "node": node, "rule": rule}
                    because = done(session, "why_not", **of)["because"]
                    assert because.startswith("it fires"), (row["name"], rules[rule])
                    asked.add(row["name"])
        assert asked >= {"simplify-index", "simplify-kernel", "machine-division"}


def test_switching_a_rule_off_keeps_the_opts() -> None:
    x = array(8, 8)
    with session_of(explore(x * 1.5 + x.exp2())) as session:
        _keeps_the_opts(session)


def _keeps_the_opts(session: Session) -> None:
    done(session, "code", variant=0, language="LLVM")
    done(session, "offers", variant=0)
    opt = session.row(0)["offers"][0]["opt"]
    auto = done(session, "apply", variant=0, opt=opt)["variant"]
    rows = session.record["rules"]
    rule, other, *_ = (i for i, r in enumerate(rows) if r["set"] == "decompose")

    def switched(of: int, which: int, on: bool) -> int:
        asked = {"kernel": 0, "rule": which, "on": on, "of": of}
        found: int = done(session, "rule_off", **asked)["variant"]
        return found

    made = switched(auto, rule, False)
    assert session.row(made)["opts"] == session.row(auto)["opts"] != []
    assert session.row(made)["rules_off"] == [rows[rule]["name"]]
    assert session.row(made)["parent"] == auto, "back leads to it"
    both = switched(made, other, False)
    assert set(session.row(both)["rules_off"]) == {
        rows[rule]["name"], rows[other]["name"],
    }  # fmt: skip
    assert switched(both, other, True) == made and switched(made, rule, True) == auto


def c_of(session: Session) -> str:
    """Return the C of all kernels, un-optimised."""
    rows = [session.row(k["root"]) for k in session.record["kernels"]]
    return "\n".join(line for row in rows for line in row["code"][0]["lines"])


def test_a_rule_of_scheduling_changes_everything_and_comes_back() -> None:
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    ex = explore((Tensor(a) / 4.0).sum(axis=1))
    with session_of(ex.baseline("numpy", lambda: a.sum(axis=1))) as session:
        page, before = Page(session), c_of(session)
        rules = [r["name"] for r in session.record["rules"]]
        rule = rules.index("div-power-of-two")
        done(session, "paste", variant=0, text='UPCAST("g0", 2)')
        done(session, "rule_off", kernel=0, rule=rule, on=False, of=0)
        assert "* 0.25f" in before and "/ 4.0f" in c_of(session)
        assert "* 0.25f" not in c_of(session)
        assert page.record["without"] == {
            "rules": ["div-power-of-two"], "differs": "1 line of C differs",
        }  # fmt: skip
        assert page.record["baselines"][0]["name"] == "numpy"
        done(session, "check", variant=0)
        done(session, "plans")
        assert page.record["variants"][0]["check"]["ok"]
        assert len(page.record["plan"]["compared"]["seconds"]) == 2
        (got,) = session.kernels[0].run()
        np.testing.assert_allclose(got, (a / 4).sum(axis=1))
        assert page.record == plain(session.record) and broken(page.record) == []
        session.complete()
        names = [r["name"] for r in session.record["rules"]]
        assert "div-power-of-two" not in names, "it fires nowhere"
        done(session, "rule_off", kernel=0, rule="div-power-of-two", on=True)
        assert c_of(session) == before
        assert page.record["without"] == {"rules": [], "differs": ""}


def test_a_rule_that_plans_can_be_off() -> None:
    """`split-reduction` makes two kernels of one, and is known to no kernel."""
    million = Tensor.ones(1 << 20).contiguous().realize()
    with session_of(explore(million.sum())) as session:
        count = len(session.record["kernels"])
        error = ask(session, "rule_off", kernel=0, rule="no-such", on=False)["error"]
        assert error["what"] == "there is no rule 'no-such' to switch off"
        asked = {"kernel": 0, "rule": "split-reduction"}
        done(session, "rule_off", **asked, on=False)
        assert (count, len(session.record["kernels"])) == (2, 1)
        assert session.record["plan"]["compared"]["kernels"] == [2, 1]
        done(session, "rule_off", **asked, on=True)
        assert len(session.record["kernels"]) == 2


def test_a_rule_of_scheduling_and_of_kernels_is_off_in_both() -> None:
    numbers = Tensor(np.arange(64, dtype=np.int32)).realize()
    x = numbers.reshape(8, 8).transpose().reshape(4, 16)
    with session_of(explore(x + 1)) as session:
        rules = {m.rule.name for r in session.recorder.exploration.passes
                 for m in r.matches if isinstance(m.rule, Rule)}  # fmt: skip
        known = {r.name for rules in COMPILE_RULES for r in rules.rules}
        (name, *_) = sorted(rules & known)
        done(session, "rule_off", kernel=0, rule=name, on=False)
        assert session.record["without"]["rules"] == [name]
        assert session.row(0)["rules_off"] == [name]
        assert session.kernels[0].rules_off == (name,)
        done(session, "check", variant=0)
        assert session.row(0)["check"]["ok"]
        done(session, "paste", variant=0, text='UPCAST("g0", 4)')
        done(session, "rule_off", kernel=0, rule=name, on=True)
        assert session.row(0)["rules_off"] == []


def test_a_rule_that_only_simplifies_can_be_off() -> None:
    x = array(8, 8)
    with session_of(explore(x * 1.5 + x.sqrt())) as session:
        done(session, "code", variant=0, language="LLVM")
        rows = session.record["rules"]
        names = [r["name"] for r in rows if r["set"] and r["file"]]
        for name in names:
            made = done(session, "rule_off", kernel=0, rule=name, on=False)
            variant = made.get("variant", 0)
            done(session, "check", variant=variant)
            assert session.row(variant)["check"]["ok"]
            assert name in session.row(variant)["rules_off"]
        assert {"rejoin-div-mod", "form-fma"} <= set(names)


def test_nothing_to_compute() -> None:
    with session_of(explore(Tensor(2.0)), measures_ahead=True) as session:
        page = Page(session)
        assert session.jobs.submit(session, session._ahead(), AHEAD).wait(30)
        assert page.record == plain(session.record)
        assert not ask(session, "apply", variant=0, opt='UPCAST("g1", 4)')["ok"]


def steps(session: Session, told: Any) -> tuple[str, str]:
    """Return the names of the pass and of the rule that bisecting found."""
    row = session.record["passes"][told["pass"]]
    rule = row["rewrites"][told["step"] - 1][0]
    return row["name"], session.record["rules"][rule]["name"]


def test_bisect_is_of_the_variant_that_is_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = {"text": "every state computes the same", "pass": None, "step": 0}
    with session_of(explore(matmul_of_halves())) as session:
        assert done(session, "bisect", variant=0) == right
        with with_rule(SIMPLIFY, BAD, monkeypatch):
            opts = 'UPCAST("g1", 4), UNROLL("r0", 4)'
            wrong = done(session, "paste", variant=0, text=opts)["variant"]
            told = done(session, "bisect", variant=wrong)
            assert done(session, "bisect", variant=0) == right
        assert steps(session, told) == ("simplify-kernel", "bad")
        assert told["pass"] in session.row(wrong)["passes"]
        edited = {"variant": 0, "language": "LLVM", "text": "nothing"}
        done(session, "edit", **edited)
        error = ask(session, "bisect", variant=len(session.kernels) - 1)["error"]
        assert "edited by hand" in error["because"]


def matmul_of_halves() -> Tensor:
    """Return a product of kernels whose rules meet `* 0.5` in opts, not in scheduling."""
    return (array(8, 16) @ array(16, 16)) * 0.5


def test_bisect_finds_a_rule_of_scheduling(monkeypatch: pytest.MonkeyPatch) -> None:
    with with_rule(KERNEL_RULES, BAD, monkeypatch):
        with session_of(explore(matmul_of_halves())) as session:
            told = done(session, "bisect", variant=0)
            assert steps(session, told) == ("simplify-kernel", "bad")
            assert told["pass"] not in session.row(0)["passes"]


def test_bisect_of_a_variant_that_lacks_a_rule() -> None:
    with session_of(explore(array(6, 8).exp2())) as session:
        asked = {"kernel": 0, "rule": "exp2-polynomial", "on": False}
        made = done(session, "rule_off", **asked)["variant"]
        told = done(session, "bisect", variant=made)
        assert "stage render failed" in told["text"]
        assert session.record["passes"][told["pass"]]["name"] == "render"


def test_replan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "MOST_OFFERS", 0)
    x = array(16, 16)
    with session_of(explore((x.exp() * 2).sum(axis=1)), measures_ahead=True) as session:
        page = Page(session)
        done(session, "apply", variant=0, opt='UPCAST("g0", 2)')
        rows = session.record["plan"]["decisions"]
        node = next(d["node"] for d in rows if not d["stored"] and "exp" in d["name"])
        number = done(session, "replan", node=node, store=True)["n"]
        assert session.jobs.submit(page, iter(()), 9).wait(60)
        assert len(page.record["kernels"]) == 2 and page.record == plain(session.record)
        assert broken(page.record) == [] and page.record["n"] >= number
        assert all(v["timing"] for v in page.record["variants"])
        forced = [d for d in page.record["plan"]["decisions"] if d["forced"]]
        done(session, "replan", node=forced[0]["node"], store=None)
        assert len(session.record["kernels"]) == 1


@pytest.mark.parametrize("do", ["replan", "baseline"])
def test_what_fails_is_no_longer_under_way(do: str) -> None:
    with session_of(explore(array(4, 4) + 1)) as session:
        page = Page(session)
        asked = {"id": 7, "do": do}
        if do == "replan":
            rows = session.record["plan"]["decisions"]
            copy = next(d for d in rows if d["asked"])
            asked |= {"node": copy["node"], "store": False}
        job = session.job(asked, page)
        assert session.jobs.submit(session, job, ASKED).wait(30)
        assert [m["error"]["what"] for m in page.messages if m.get("id") == 7]
        statuses = [m["status"]["task"] for m in page.messages if "status" in m]
        assert statuses[0] == do and statuses[-1] is None


def test_search() -> None:
    with session_of(explore(array(64, 64) @ array(64, 64))) as session:
        page = Page(session)
        made = done(session, "search", variant=0, budget_s=5)["variant"]
        row = session.row(made)
        assert row["timing"] and row["name"] in ("search 1", "plain", "auto")
        if made:
            assert row["opts"] and row["parent"] == 0 and row["note"]
        tasks = {m["status"]["task"] for m in page.messages if "status" in m}
        assert {"search", "measure"} <= tasks
        tried = row["search"]
        rows = {number: parent for number, parent, *_ in tried["trials"]}
        assert tried["tried"] == len(rows) > 2 and tried["best"] in rows
        assert {p for p in rows.values() if p is not None} <= set(rows)
        assert any(seconds for _, _, _, seconds, _ in tried["trials"])
    with session_of(explore(array(64, 64) @ array(64, 64))) as session:
        assert session.jobs.submit(session, session._ahead(), AHEAD).wait(30)
        again = [v["search"] for v in session.record["variants"] if v["search"]]
        assert again == [plain(tried)]
