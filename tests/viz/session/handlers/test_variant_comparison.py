"""Compare of the page: a variant beside another one, another device, plan or set of rules."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.record.support import broken, patched, plain
from tests.viz.session.handlers.test_plan_comparison import product
from tests.viz.session.support import Page, ask, done, finish_jobs, session_of
from tests.viz.support import matmul, softmax
from workbench.measure.kernel_time import seconds_text
from workbench.viz.compare import compare
from workbench.viz.session.constants import constants
from workbench.viz.session.handlers import variant_transfer
from workbench.viz.session.handlers.variant_comparison import MOST_TITLE
from workbench.viz.session.live_record import MOST_SIDES, PAGES
from workbench.viz.session.session import Session

pytestmark = pytest.mark.usefixtures("nothing_saved")


@pytest.fixture
def session() -> Iterator[Session]:
    with session_of(matmul()) as matmul_session:
        yield matmul_session


def sections(reply: Any) -> dict[str, list[Any]]:
    return {section["title"]: section["rows"] for section in reply["sections"]}


def differing(reply: Any) -> list[Any]:
    return [row for rows in sections(reply).values() for row in rows if row[2]]


def record_of(reply: Any) -> Any:
    own = json.loads(zlib.decompress(base64.b64decode(reply["side"]["record"])))
    same = constants().plain()
    panels = {**same["sections"], **own["panels"]}
    return json.loads(json.dumps({**same["fields"], **own, "panels": panels}))


def last_state(record: Any, variant: int) -> list[int]:
    """The roots of the last graph that a variant's passes make."""
    rows = [record["passes"][place] for place in record["variants"][variant]["passes"]]
    roots: list[int] = [row["after"] for row in rows if row["after"]][-1]
    return roots


def titles_of(reply: Any) -> dict[str, str]:
    """The titles of the plans that can be compared, by their names."""
    return {name: title for name, title, _ in reply["plans"]}


def test_a_variant_beside_itself_has_no_difference(session: Session) -> None:
    tuned = done(session, "auto", kernel=0)["variant"]
    for variant in (0, tuned):
        reply = done(session, "compare", variants=[variant, variant])
        assert differing(reply) == [] and reply["side"] is None
    done(session, "passes", variant=tuned)
    state = last_state(plain(session.record), tuned)
    found = done(session, "pairs", side=None, before=state, now=state)
    assert found["same"] and all(a == b for a, b in found["same"])
    assert not found["changed"] and not found["removed"] and not found["added"]


def test_a_row_names_what_a_reader_may_look_at(session: Session) -> None:
    tuned = done(session, "auto", kernel=0)["variant"]
    done(session, "passes", variant=tuned)
    reply = done(session, "compare", variants=[0, tuned])
    record = plain(session.record)
    names = {rule["name"] for rule in record["rules"]}
    passes = {row["name"] for row in record["passes"]}
    for label, cells, _, about in sections(reply)["rules that fired"]:
        of_pass, rule = about
        assert label == f"{of_pass}: {rule}"
        assert not cells[1] or (of_pass in passes and rule in names)
    axes = {axis["name"] for v in (0, tuned) for axis in record["variants"][v]["axes"]}
    assert {about[0] for *_, about in sections(reply)["loops"]} == axes


def test_another_device_has_a_record_of_its_own(session: Session) -> None:
    tuned = done(session, "auto", kernel=0)["variant"]
    reply = done(session, "compare", variants=[tuned, tuned], device="CUDA:H100")
    record, side = record_of(reply), reply["side"]
    assert broken(record) == []
    row = record["variants"][side["variant"]]
    assert record["device"] == "CUDA:H100" and row["passes"] and row["loops"]["rows"]
    assert row["opts"] != plain(session.row(tuned))["opts"], "a GPU has its own default opts"
    facts = {label: cells for label, cells, *_ in sections(reply)["kernel"]}
    assert facts["device"] == ["CUDA:H100", session.device]
    own = compare(session.kernels[tuned], session.sides[side["number"]].kernels[side["variant"]])
    assert [r.cells for r in own["loops"].rows] == [
        tuple(reversed(cells)) for _, cells, *_ in sections(reply)["loops"]
    ]
    assert session.device == plain(session.record)["device"], "this one stays as it is"


def test_without_a_rule_of_compiling_and_one_of_scheduling(session: Session) -> None:
    count = len(session.kernels)
    reply = done(session, "compare", variants=[0, 0], without=["form-fma"])
    fired = {tuple(about): cells for *_, cells, _, about in sections(reply)["rules that fired"]}
    assert reply["names"] == ["plain without form-fma", "plain"]
    assert fired["decompose", "form-fma"][0] == "" != fired["decompose", "form-fma"][1]
    assert len(session.kernels) == count, "it is no variant of this record"
    reply = done(session, "compare", variants=[0, 0], without=["split-reduction"])
    facts = {label: cells for label, cells, *_ in sections(reply)["whole plan"]}
    assert facts["rules off"] == ["split-reduction", "none"]
    error = ask(session, "compare", variants=[0, 0], without=["no-such"])["error"]
    assert "no-such" in error["what"] + error["because"]


def test_plans_side_by_side() -> None:
    with session_of(product()) as session:
        reply = done(session, "compare", variants=[1, 1])
        titles = titles_of(reply)
        fused = next(name for name, title in titles.items() if title == "matmul 96x96x1 fused")
        reply = done(session, "compare", variants=[1, 1], plan=fused)
        record = record_of(reply)
        assert broken(record) == [] and record["panels"]["memory"]["data"]
        other = session.sides[reply["side"]["number"]].recorder.exploration
        assert other.forced and not session.recorder.exploration.forced
        rows = sections(reply)
        whole = compare(other, session.recorder.exploration)
        assert [row.cells for row in whole["decisions"].rows] == [
            tuple(cells) for _, cells, *_ in rows["decisions"]
        ]
        assert rows["rules that fired in scheduling"] and rows["rules that fired"]
        # planned again, the plan before is one of them; those beside it had other numbers
        node = plain(session.record)["plan"]["decisions"][6]["node"]
        done(session, "replan", node=node, store=False)
        reply = done(session, "compare", variants=[0, 0], plan="before")
        assert [name.split(", ")[1] for name in reply["names"]] == ["the plan before", "this plan"]
        whole = {label: cells for label, cells, *_ in sections(reply)["whole plan"]}
        assert all(cell.startswith("~") for cell in whole["time predicted"])
        assert "time measured" not in whole
        done(session, "plans")
        timed = sections(done(session, "compare", variants=[0, 0], plan="before"))
        whole = {label: cells for label, cells, *_ in timed["whole plan"]}
        seconds = session.record.plan.compared.seconds
        assert whole["time measured"] == [seconds_text(s) for s in seconds]
        assert whole["beside the first"][1] and [*timed][0] == "whole plan"


def test_the_exploration_of_another_page(session: Session) -> None:
    with session_of(softmax()) as other, session_of(softmax(ask="kernels")) as waiting:
        reply = done(session, "compare", variants=[0, 0])
        names = titles_of(reply)
        assert f"page {other.number}" in names and f"page {waiting.number}" not in names
        reply = done(session, "compare", variants=[0, 0], plan=f"page {other.number}")
        assert record_of(reply)["key"] == plain(other.record)["key"]
        assert sections(reply)["kernels"]
        error = ask(waiting, "compare", variants=[0, 0], plan=f"page {other.number}")["error"]
        assert "waits for a guess" in error["because"]


def test_a_variant_of_another_exploration(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own variants are listed; the columns are those of the one that was chosen, also where
    only the latest ones would come along."""
    monkeypatch.setattr(variant_transfer, "TRANSFER_LIMIT", 1)
    with session_of(softmax()) as other:
        name = f"page {other.number}"
        mine = done(other, "paste", variant=0, text='UPCAST("g0", 2)', name="mine")["variant"]
        done(other, "note", variant=mine, text="good")
        gone = done(other, "apply", variant=0, opt='UNROLL("r0", 2)')["variant"]
        done(other, "delete", variants=[gone])
        done(other, "apply", variant=mine, opt='UNROLL("r0", 2)')
        listed = done(session, "compare", variants=[0, 0], plan=name)["own"]
        assert [mine, "mine of max+exp"] in listed and gone not in dict(listed)
        reply = done(session, "compare", variants=[0, 0], plan=name, own=mine)
        side = session.sides[reply["side"]["number"]]
        row = side.row(reply["side"]["variant"])
        assert reply["names"][0].startswith("mine, ") and row.note == "good"
        expected = compare(other.kernels[mine], session.kernels[0])
        for title in ("loops", "counts", "rules that fired"):
            assert [r.cells for r in expected[title].rows] == [
                tuple(cells) for _, cells, *_ in sections(reply)[title]
            ]
        error = ask(session, "compare", variants=[0, 0], plan=name, own=gone)["error"]
        assert "no such variant" in error["because"] and error["try"]
        error = ask(session, "compare", variants=[0, 0], own=mine)["error"]
        assert "no such variant" in error["because"], "this exploration is no other one"


def test_a_variant_of_another_exploration_is_on_its_own_device(session: Session) -> None:
    with session_of(softmax()) as other:
        done(other, "device", name="CUDA:H100")
        place = done(other, "auto", kernel=0)["variant"]
        reply = done(session, "compare", variants=[0, 0], plan=f"page {other.number}", own=place)
        record = record_of(reply)
        assert record["device"] == "CUDA:H100"
        assert (
            record["variants"][reply["side"]["variant"]]["opts"] == plain(other.row(place))["opts"]
        )
        assert " on CUDA:H100" in reply["names"][0]
        fields = {"plan": f"page {other.number}", "own": place, "device": session.device}
        error = ask(session, "compare", variants=[0, 0], **fields)["error"]
        assert error is None or "do not apply" in error["because"]


def test_the_exploration_of_a_file(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those beside the notebook are listed, the latest first; any path may be named."""
    monkeypatch.chdir(tmp_path)
    there = tmp_path / "elsewhere"
    there.mkdir()
    with session_of(softmax()) as other:
        done(other, "paste", variant=0, text='UPCAST("g0", 2)', name="yesterday's")
        ex = other.recorder.exploration
        ex.display.session = other
        ex.save("first.json")
        ex.save("second.explore")
        ex.save(there / "third.json")
        ex.display.session = None
    os.utime("first.json", (0, 0))
    (tmp_path / "notes.json").write_text('{"a": "workbench exploration?"}')
    os.mkfifo("pipe")
    reply = done(session, "compare", variants=[0, 0])
    files = [(name, title) for name, title, kind in reply["plans"] if kind == "file"]
    assert files == [(f"file {name}", name) for name in ("second.explore", "first.json")]
    pages = len(PAGES)
    for name in ("first.json", str(there / "third.json")):
        reply = done(session, "compare", variants=[0, 0], plan=f"file {name}")
        title = titles_of(reply)[f"file {name}"]
        assert title.endswith(name[-40:]) and len(title) <= MOST_TITLE
        (place,) = (place for place, own in reply["own"] if own.startswith("yesterday's"))
        reply = done(session, "compare", variants=[0, 0], plan=f"file {name}", own=place)
        assert reply["names"][0] == f"yesterday's, {title}"
        record = record_of(reply)
        assert broken(record) == [] and "without data" in record["origin"]
        assert sections(reply)["loops"] and sections(reply)["kernels"]
        side = reply["side"]
        fields = {"side": side["number"], "before": side["variant"]}
        done(session, "measure_beside", now=0, **fields)
        assert session.sides[side["number"]].row(side["variant"]).timing is not None
        request = {"id": 7, "do": "offers", "record": side["number"], "variant": side["variant"]}
        assert session.handle(request).ok, "its panes answer"
    assert len(PAGES) == pages, "it is no page of the notebook"
    known = session.exploration_of(Path("first.json"))
    assert session.exploration_of(Path("first.json")) is known
    os.utime("first.json", (9, 9))
    assert session.exploration_of(Path("first.json")) is not known, "it is another file now"


def test_a_file_that_cannot_stand_beside_says_why(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session.recorder.exploration.to_html("page.html")
    (tmp_path / "notes.json").write_text('{"cells": []}')
    (tmp_path / "cut.json").write_text('{"format": "workbench exploration", "v": 1, "gra')
    os.mkfifo("pipe")
    for name, because in (
        ("none.json", f"there is no such file in {tmp_path}"),
        ("page.html", "a page, which a browser opens"),
        ("notes.json", "not an exploration"), ("cut.json", "cut off"), ("pipe", "a pipe"),
        (".", "directory"), ("", "directory"), ("x" * 5000, "name too long"), ("a\0b", "null"),
    ):  # fmt: skip
        error = ask(session, "compare", variants=[0, 0], plan=f"file {name}")["error"]
        assert error["what"].startswith("cannot load"), name
        assert because in error["because"] and "ex.save(path)" in error["try"], (name, error)
    assert not session.files and not session.sides


def test_a_record_beside_another_answers_its_requests(session: Session) -> None:
    with session_of(softmax()) as other:
        tuned = done(other, "auto", kernel=0)["variant"]
        done(other, "note", variant=tuned, text="mine")
        page, another = Page(session), Page(session)
        reply = done(session, "compare", variants=[0, 0], plan=f"page {other.number}")
        number, record = reply["side"]["number"], record_of(reply)
        assert [row["name"] for row in record["variants"] if row["note"] == "mine"] == ["auto"]
        count = len(session.kernels)
        for do, fields in (
            ("code", {"variant": 0, "language": "LLVM"}),
            ("passes", {"variant": 0}),
            ("offers", {"variant": 0}),
            ("apply", {"variant": 0, "opt": 'UPCAST("g0", 2)'}),
            ("check", {"variant": 0}),
        ):
            request = {"id": 7, "do": do, "record": number, **fields}
            assert session.handle(request, page).ok, do
        finish_jobs(session.jobs)
        for message in page.messages:
            if message.get("record") == number and message.get("patch"):
                record = patched(record, message["patch"])
        own = [m["patch"] for m in page.messages if m.get("record") == number and m.get("patch")]
        assert own == [m["patch"] for m in another.messages if m.get("record") == number]
        side = session.sides[number]
        assert broken(record) == []
        assert record["variants"][0]["check"]["ok"] and record["variants"][0]["offers"]
        assert len(side.kernels) > len(session.kernels) == count, "they went to the other record"
        have = done(session, "ping", have=0, record=number)
        assert have["n"] == plain(side.record)["n"] and have["record"]
        error = ask(session, "replan", node=0, store=True, record=number)["error"]
        assert "cannot answer replan" in error["what"] and error["try"]
        for _ in range(MOST_SIDES):
            done(session, "compare", variants=[0, 0], plan=f"page {other.number}")
        error = ask(session, "passes", variant=0, record=number)["error"]
        assert "not kept any more" in error["because"]


def test_variants_of_two_explorations_are_timed_in_turns(session: Session) -> None:
    with session_of(softmax()) as other:
        reply = done(session, "compare", variants=[0, 0], plan=f"page {other.number}")
        side = reply["side"]
        fields = {"side": side["number"], "before": side["variant"]}
        done(session, "measure_beside", now=0, **fields)
        before = session.sides[side["number"]].row(side["variant"]).timing
        now = session.row(0).timing
        assert before is not None and now is not None and before.run == now.run != ""
        assert other.row(0).timing is None, "the other page was not asked"
        reply = done(session, "compare", variants=[0, 0], device="CUDA:H100")
        fields = {"side": reply["side"]["number"], "before": 0}
        error = ask(session, "measure_beside", now=0, **fields)["error"]
        assert "H100" in error["what"] + error["because"]
        error = ask(session, "measure_beside", side=10**6, before=0, now=0)["error"]
        assert "not kept any more" in error["because"]


def test_nodes_of_two_records_are_paired_once(session: Session) -> None:
    tuned = done(session, "auto", kernel=0)["variant"]
    done(session, "passes", variant=tuned)
    reply = done(session, "compare", variants=[tuned, tuned], device="CUDA:H100")
    side, record = reply["side"], record_of(reply)
    before = last_state(record, side["variant"])
    now = last_state(plain(session.record), tuned)
    found = done(session, "pairs", side=side["number"], before=before, now=now)
    pairs = [*found["same"], *found["changed"]]
    places = [[a for a, _ in pairs] + found["removed"], [b for _, b in pairs] + found["added"]]
    for roots, own, listed in (
        (before, session.sides[side["number"]].recorder, places[0]),
        (now, session.recorder, places[1]),
    ):
        below = {own.place(node) for root in roots for node in own.node(root).toposort()}
        assert set(listed) == below and len(listed) == len(below)


def test_what_cannot_be_compared_says_why(session: Session) -> None:
    error = ask(session, "compare", variants=[0, 0], plan="decision 999")["error"]
    assert "no plan 'decision 999'" in error["because"]
    error = ask(session, "compare", variants=[0, 0], device="no such device")["error"]
    assert "no such device" in error["what"]
    error = ask(session, "pairs", side=10**6, before=[0], now=[0])["error"]
    assert "not kept" in error["because"]
    error = ask(session, "pairs", side=None, before=[10**6], now=[0])["error"]
    assert "fewer nodes" in error["because"]
