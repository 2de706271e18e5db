"""Source edited by hand comes back when Python is started again: marked, and not run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.viz.record.support import broken, plain
from tests.viz.session.support import Page, prefetch_all, session_of
from tests.viz.support import array, matmul
from workbench.viz import explore
from workbench.viz.session.handlers import variants as tuning
from workbench.viz.session.live_record import Edited
from workbench.viz.session.session import Session

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
        assert set(after) == {"edited 1", "edited 2"}, "what crashed stays away"
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
        steps = session._prefetch()
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
