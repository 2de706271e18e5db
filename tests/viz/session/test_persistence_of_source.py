"""Source edited by hand comes back when Python is started again: marked, and not run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from threading import Event
from typing import Any

import pytest

from tests.viz.record.support import broken, plain
from tests.viz.session.support import Page, finish_jobs, prefetch_all, session_of
from tests.viz.support import array, matmul
from workbench.viz import explore
from workbench.viz.record import record as page_record
from workbench.viz.schema.variant import ErrorWords
from workbench.viz.session.handlers import measurement
from workbench.viz.session.handlers import variants as tuning
from workbench.viz.session.live_record import Edited
from workbench.viz.session.session import Session
from workbench.worker.client import TaskStopped

pytestmark = pytest.mark.usefixtures("nothing_saved")


def done(session: Session, do: str, **fields: Any) -> Any:
    reply = plain(session.handle({"id": 1, "do": do, **fields}))
    assert reply["ok"], reply["error"]
    return reply["result"]


def edited(session: Session, variant: int, old: str, new: str) -> int:
    done(session, "code", variant=variant, language="LLVM")
    code = next(c for c in plain(session.row(variant))["code"] if c["language"] == "LLVM")
    text = "\n".join(code["lines"])
    assert old in text
    number: int = done(
        session, "edit", variant=variant, language="LLVM", text=text.replace(old, new)
    )["variant"]
    return number


def test_an_edit_of_opts_that_the_device_refuses_says_so() -> None:
    """An edit of a kernel with the tile of a GPU's tensor core, where the session is of a processor
    that lacks it."""
    half = array(16, 16).cast("float16").realize()
    tile = 'TC("g0 g1 r0", "16x8x16")'
    with session_of(explore(half @ half, device="CUDA:H100")) as session:
        form = done(session, "apply", variant=0, opt=tile)["variant"]
        done(session, "code", variant=form, language="CUDA")
        code = next(c for c in plain(session.row(form))["code"] if c["language"] == "CUDA")
        text = "\n".join(["// by hand", *code["lines"]])
        done(session, "edit", variant=form, language="CUDA", text=text)
    with session_of(explore(half @ half, device="LLVM:Graviton4")) as session:
        page = Page(session)
        prefetch_all(session)
        (words,) = page.record["saved_edits"]
        assert words == "1 edited text with opts that LLVM:Graviton4 refuses"
        refusal = session.handle({"id": 1, "do": "saved", "edits": words}).error
        assert refusal is not None and "TC" in refusal.what
        assert page.record["saved_edits"] == [words]


def test_edited_source_comes_back() -> None:
    with session_of(matmul()) as session:
        form = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
        good = edited(session, form, "define", "; by hand\ndefine")
        wrong = edited(session, 0, "entry:", "entry:\n  ret void\nnever:")
        gone = edited(session, 0, "entry:", "entry:\n  call void @llvm.trap()")
        done(session, "note", variant=good, text="mine")
        done(session, "pin", variant=good)
        before = {plain(session.row(v))["name"]: plain(session.row(v)) for v in (good, wrong, gone)}
        assert before["edited 1"]["timing"] and before["edited 1"]["check"]["ok"]
        assert before["edited 2"]["check"]["ok"] is False
        assert before["edited 3"]["error"]["what"] == "the program crashed"
    with session_of(matmul()) as session:
        page = Page(session)
        prefetch_all(session)
        assert session.jobs.worker.pid is None, "nothing was run"
        after = {v["name"]: v for v in page.record["variants"] if v["edited"]}
        assert broken(page.record) == []
        assert set(after) == {"edited 1", "edited 2"}, "what crashed is only counted"
        assert page.record["saved_edits"] == ["1 edited text that failed (the program crashed)"]
        for name, row in after.items():
            for field in ("opts", "note", "check", "error", "edited"):
                assert row[field] == before[name][field], (name, field)
            [source], [was, _] = row["code"], before[name]["code"]
            assert source["lines"] == was["lines"], "machine code comes when it is asked for"
        assert after["edited 1"]["timing"]["earlier"]
        place = page.record["variants"].index(after["edited 1"])
        assert page.record["pinned"] == place
        assert page.record["variants"][after["edited 1"]["parent"]]["opts"]
        assert place in session.edited, "it runs in a process of its own"
        done(session, "check", variant=place)
        assert plain(session.row(place))["check"]["ok"]
        again = edited(session, 0, "entry:", "entry: ; another")
        assert plain(session.row(again))["name"] == "edited 4"


def test_variants_of_a_session_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "MOST_VARIANTS", 2)
    with session_of(matmul()) as session:
        source = Edited("C", "int f;")
        tuning.edited_variant(session, source, 0)
        request = {"do": "edit", "variant": 0, "language": "LLVM", "text": "x"}
        assert plain(session.handle(request))["error"]["what"] == "no more variants"


def test_what_was_made_by_hand_comes_back_first() -> None:
    """Before anything is compiled, which takes long: whoever runs the cell again looks for it."""
    with session_of(matmul()) as session:
        auto = done(session, "auto", kernel=0)["variant"]
        edited(session, auto, "define", "; by hand\ndefine")
        done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    with session_of(matmul()) as session:
        steps = chain(session._restore(), session._prefetch())
        next(steps)
        names = [row["name"] for row in plain(session.record)["variants"]]
        if "UPCAST g1 4" not in names:  # the plain one was kept, too
            next(steps)
            names = [row["name"] for row in plain(session.record)["variants"]]
        assert names == ["plain", "UPCAST g1 4"]
        assert not any(row["passes"] for row in plain(session.record)["variants"])
        for _ in steps:
            pass
        names = sorted(row["name"] for row in plain(session.record)["variants"])
        assert names == ["UPCAST g1 4", "auto", "edited 1", "plain"], "each once"


def test_default_opts_that_were_asked_for_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a kernel after the first ones, which gets them only on request."""
    monkeypatch.setattr(page_record, "MOST_KERNELS", 0)
    with session_of(matmul()) as session:
        auto = done(session, "auto", kernel=0)["variant"]
        edited(session, auto, "define", "; by hand\ndefine")
    with session_of(matmul()) as session:
        prefetch_all(session, measures=False)
        rows = {row.name: row for row in session.record.variants}
        assert [*rows] == ["plain", "auto", "edited 1"]
        assert rows["auto"].default_of == "LLVM" and rows["auto"].steps
        assert rows["edited 1"].parent == 1
    with session_of(matmul()) as session:
        done(session, "delete", variants=[done(session, "auto", kernel=0)["variant"]])
    with session_of(matmul()) as session:
        prefetch_all(session, measures=False)
        assert "auto" not in {row.name for row in session.record.variants}


def test_saved_variants_come_before_other_work_in_the_background() -> None:
    """Of this page and of others: one whose cell ran earlier measures for many seconds. The page
    says at once how many come, and lists each as soon as it is there."""
    with session_of(matmul()) as session:
        done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
        done(session, "apply", variant=0, opt='UPCAST("g1", 2)')
    with session_of(matmul()) as session:
        page = Page(session)
        assert page.record["restoring"] == {"done": 0, "total": 2}
        jobs: list[tuple[int, Iterator[object]]] = []
        submit = session.jobs.submit
        session.jobs.submit = lambda owner, steps, priority: (  # type: ignore[method-assign]
            jobs.append((priority, steps)) or Event()
        )
        session.begin()
        session.jobs.submit = submit  # type: ignore[method-assign]
        (first, steps), *others = sorted(jobs, key=lambda job: job[0])
        assert all(priority > first for priority, _ in others)
        counts = []
        for _ in steps:
            counts.append((len(page.record["variants"]), page.record.get("restoring")))
        assert counts[:2] == [(2, {"done": 1, "total": 2}), (3, None)]


def test_what_is_wrong_stays_marked() -> None:
    """On an emulator, in a plan that was cut and is whole again, and in the next session."""
    x = array(16, 16)

    def wrong(session: Session) -> Any:
        (row,) = [v for v in session.record.variants if v.edited and not v.deleted]
        return row.check is not None and not row.check.ok

    with session_of(explore((x @ x).relu())) as session:
        session.complete()
        edited(session, 0, "entry:", "entry:\n  ret void\nnever:")
        assert wrong(session)
        done(session, "device", name="PYTHON")
        assert wrong(session)
        done(session, "note", variant=0, text="saves")
        done(session, "device", name="LLVM")
        decisions = session.record.plan.decisions
        node = next(d.node for d in decisions if not d.stored)
        done(session, "replan", node=node, store=True)
        node = next(d.node for d in session.record.plan.decisions if d.forced)
        done(session, "replan", node=node, store=None)
        session.complete()
        prefetch_all(session, measures=False)
        assert wrong(session)
        done(session, "note", variant=0, text="saves again")
    with session_of(explore((x @ x).relu())) as session:
        prefetch_all(session, measures=False)
        assert wrong(session)


def test_edits_that_failed_are_shown_on_request_and_not_run() -> None:
    stopped = ErrorWords("the program did not end", "it ran for 10 s", "")
    with session_of(matmul()) as session:
        crashed = edited(session, 0, "entry:", "entry:\n  call void @llvm.trap()")
        hung = tuning.edited_variant(session, Edited("LLVM", "define void @f() {}"), 0)
        session.set(hung, "error", stopped)
        done(session, "note", variant=crashed, text="mine")
    with session_of(matmul(), prefetches=True) as session:
        prefetch_all(session, measures=False)
        page = Page(session)
        first, second = page.record["saved_edits"]
        assert first == "1 edited text that failed (the program crashed)"
        assert second == "1 edited text that failed (the program did not end)"
        done(session, "saved", edits=first)
        (place,) = session.edited
        row = session.row(place)
        assert row.error is not None and row.error.what == "the program crashed"
        assert row.note == "mine" and "llvm.trap" in session.edited[place].text
        done(session, "saved", edits=second)
        assert [session.row(v).error for v in session.edited] == [row.error, stopped]
        done(session, "offers", variant=place)  # as a page that selects it
        finish_jobs(session.jobs)
        assert session.jobs.worker.pid is None, "nothing was run"
        session.send_changes()
        assert page.record["saved_edits"] == [] and page.is_record_of(session)
        refusal = session.handle({"id": 1, "do": "saved", "edits": first}).error
        assert refusal is not None and "not among the saved ones" in refusal.what
        done(session, "delete", variants=[place])
    with session_of(matmul()) as session:
        assert session.record.saved_edits == [second], "a deleted one is gone"


def test_an_edit_whose_run_is_stopped_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise TaskStopped()

    with session_of(matmul()) as session:
        monkeypatch.setattr(measurement, "check_variant", stopped)
        done(session, "code", variant=0, language="LLVM")
        text = "\n".join(next(c for c in session.row(0).code if c.language == "LLVM").lines)
        request = {"do": "edit", "variant": 0, "language": "LLVM", "text": f"; by hand\n{text}"}
        assert not session.handle(request).ok
    with session_of(matmul()) as session:
        prefetch_all(session, measures=False)
        assert [source.text.split("\n")[0] for source in session.edited.values()] == ["; by hand"]


def test_an_edit_without_a_rule_is_shown_on_request() -> None:
    rule = "form-fma"
    with session_of(matmul()) as session:
        other = done(session, "rule_off", kernel=0, rule=rule, on=False, of=0)["variant"]
        edited(session, other, "entry:", "entry:\n  ret void\nnever:")
    with session_of(matmul()) as session:
        prefetch_all(session, measures=False)
        assert not session.edited
        assert session.record.saved_edits == [f"1 edited text without {rule}"]
        done(session, "saved", edits=f"1 edited text without {rule}")
        (place,) = session.edited
        row = session.row(place)
        assert row.rules_off == [rule] and row.check is not None and not row.check.ok
        assert session.kernels[place].rules_off == (rule,) and not session.record.saved_edits
        assert session.jobs.worker.pid is None, "nothing was run"


def test_opts_without_a_rule_come_back() -> None:
    rule = "form-fma"
    with session_of(matmul()) as session:
        other = done(session, "apply", variant=0, opt='UPCAST("g0", 3)')["variant"]
        done(session, "rule_off", kernel=0, rule=rule, on=False, of=other)
        done(session, "rule_off", kernel=0, rule=rule, on=False, of=0)
    with session_of(matmul()) as session:
        prefetch_all(session, measures=False)
        rows = {row.name: row for row in session.record.variants if row.rules_off}
        assert set(rows) == {f"UPCAST g0 3 without {rule}", f"without {rule}"}
        assert all(row.rules_off == [rule] for row in rows.values())
        assert not session.record.saved_edits and broken(plain(session.record)) == []


def test_opts_with_a_typed_rule_are_shown_on_request() -> None:
    """Its meaning is the reader's own: nothing compiles or runs it unasked."""
    rule = "x * y -> y * x * 1.0"
    with session_of(matmul()) as session:
        kernel = session.kernels[0].without(rule)
        tuning.variant_of(session, kernel, 0)
        session.save()
    with session_of(matmul()) as session:
        prefetch_all(session, measures=False)
        assert not any(row.rules_off for row in session.record.variants)
        (words,) = session.record.saved_edits
        assert words == f"1 variant with the rule {rule}"
        done(session, "saved", edits=words)
        assert [row.rules_off for row in session.record.variants if row.rules_off] == [[rule]]
        assert not session.record.saved_edits


def test_an_edit_of_another_plan_is_shown_in_that_plan() -> None:
    rule = "div-power-of-two"
    with session_of(explore((array(8, 8) / 4.0).sum(axis=1))) as session:
        done(session, "apply", variant=0, opt='UPCAST("g0", 2)')
        done(session, "rule_off", kernel=0, rule=rule, on=False, of=0)
        edited(session, 0, "entry:", "entry:\n  ret void\nnever:")
    with session_of(explore((array(8, 8) / 4.0).sum(axis=1))) as session:
        prefetch_all(session, measures=False)
        page = Page(session)
        assert "UPCAST g0 2" in [row.name for row in session.record.variants]
        assert page.record["saved_edits"] == [f"1 edited text planned without {rule}"]
        done(session, "saved", edits=f"1 edited text planned without {rule}")
        (place,) = session.edited
        row = session.row(place)
        assert session.record.without.rules == [rule] and row.name == "edited 1"
        assert row.check is not None and not row.check.ok
        assert session.jobs.worker.pid is None, "nothing was run"
        session.send_changes()
        assert page.record["saved_edits"] == [] and broken(page.record) == []
    with session_of(explore((array(8, 8) / 4.0).sum(axis=1), without=[rule])) as session:
        prefetch_all(session, measures=False)
        assert len(session.edited) == 1, "in its own plan it comes back"


def test_an_expression_with_a_gradient_of_its_own_has_a_key() -> None:
    """The formula of a variance is a function, which has no text."""
    rule = "form-fma"
    for off in ((), [rule]):
        with session_of(explore(array(8, 8).var(axis=1), without=off)) as session:
            assert session.saved_key
