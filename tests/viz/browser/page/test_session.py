"""A page and its Python session: what cannot be asked, figures that arrive, and silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import session_page, shown
from tests.viz.browser.page.support import (
    ANSWER_WITHIN_MS,
    Record,
    falls_silent,
    focused,
    keys,
    selected,
    send_reply,
    timing,
)
from tests.viz.record.support import plain
from tests.viz.support import array
from workbench.viz import explore
from workbench.viz.page.document import packed
from workbench.viz.record.record import build


def test_what_cannot_work_has_no_button(session: Any, record: Record) -> None:
    """No baseline was given: the words say how; a COPY cannot be fused. An error is shown in the
    mode where the button is."""
    assert session.locator("[data-key=baselines]").count() == 0
    assert 'ex.baseline("numpy"' in session.inner_text(".wb-results")
    place = next(i for i, p in enumerate(record["passes"]) if p["unit"] == "decision")
    session.click(f"[data-key=pass-{place}]")
    nodes = {d["node"] for d in record["plan"]["decisions"] if d["is_requested"]}
    counts = set()
    for step, row in enumerate(record["passes"][place]["rewrites"], 1):
        session.click(f"[data-key=rw-{step}]")
        session.wait_for_selector(f".wb-rw-at:has-text('{step} of')")
        count = session.locator("[data-key=replan]").count()
        assert count == (row[1] not in nodes), step
        counts.add(count)
    assert counts == {0, 1}
    rows = record["passes"][place]["rewrites"]
    free = next(i for i, row in enumerate(rows, 1) if row[1] not in nodes)
    session.click(f"[data-key=rw-{free}]")
    keys(session, "]")
    for language, count in (("LLVM", 1), ("asm", 0)):
        session.click(f"[data-key=code-{language}]")
        assert session.locator(".wb-code-bar [data-key=edit]").count() == count
    session.click("[data-key=replan]")
    send_reply(session, "replan", error={"what": "cannot", "because": "so", "try": ""})
    session.wait_for_selector(".wb-rw [role=alert]:has-text('cannot')")


def test_nothing_to_compute_has_nothing_to_press(browser: Any, tmp_path: Path) -> None:
    nothing: Record = plain(build(explore(array(0, 5).relu())))
    assert nothing["kernels"] == []
    for page in shown(browser, tmp_path, session_page(nothing)):
        assert nothing["nothing"] in page.inner_text(".wb-nest-pane")
        assert page.locator(":is(.wb-results .wb-buttons, .wb-opts-row)").count() == 0
        page.focus(".wb")
        keys(page, "a c d p t u y Shift+U")
        assert page.evaluate("sent.filter((m) => m.do !== 'ping')") == []


def test_a_note_outlives_figures_that_arrive(session: Any) -> None:
    session.focus("[data-key=note]")
    for i, letter in enumerate("two sums"):
        session.keyboard.type(letter)
        change = [["variants", 0, "timing"], timing(1e-3 + i * 1e-5, spread=0.01)]
        session.evaluate("p => hear({patch: p})", {"append": {}, "set": [change]})
        session.wait_for_selector(f"text=/1.0{i}/")
        assert focused(session) == "note"
    session.keyboard.press("Home")
    session.keyboard.type("of ")
    session.click(".wb-header", position={"x": 4, "y": 4})
    session.wait_for_function("sent.some((m) => m.do === 'note')")
    notes = session.evaluate("sent.filter((m) => m.do === 'note').map((m) => m.text)")
    assert notes[-1] == "of two sums"


@pytest.mark.parametrize("width", [800, 1400])
def test_a_list_to_choose_from_stays_while_figures_arrive(
    browser: Any, record: Record, tmp_path: Path, width: int
) -> None:
    """One that was made anew would be closed."""
    news = [[["variants", 0, "note"], "news"], [["headline"], "news"]]
    for page in shown(browser, tmp_path, session_page(record), width=width):
        page.wait_for_selector("select[aria-label=device]:enabled")
        page.focus(".wb")
        keys(page, "3")
        page.wait_for_selector("select[aria-label=variant]")
        page.evaluate("window.before = [...document.querySelectorAll('.wb-header select')]")
        page.evaluate("p => hear({patch: p})", {"append": {}, "set": news})
        page.wait_for_selector(".wb-title >> text=news")
        assert page.evaluate("before.length === 4 && before.every((e) => e.isConnected)")


def test_a_gpu_is_read_in_its_own_language(session: Any, record: Record) -> None:
    """Where nobody chose another one than that with which a page opens."""
    gpu = next(d for d in record["devices"] if d["groups"] and d["available"])
    news = {"append": {}, "set": [[["device"], gpu["name"]]]}
    session.select_option("select[aria-label=device]", "more machines…")
    session.select_option("select[aria-label=device]", gpu["name"])
    send_reply(session, "device", patch=news)
    own = session.locator(f"[data-key='code-{gpu['languages'][0]}']")
    expect(own).to_have_attribute("aria-selected", "true")


def test_a_device_that_cannot_be_is_not_shown_as_chosen(session: Any) -> None:
    field = "select[aria-label=device]"
    was = session.input_value(field)
    other = session.eval_on_selector(
        field, "(e, was) => [...e.options].find((o) => !o.disabled && o.value !== was).value", was
    )
    session.select_option(field, other)
    send_reply(session, "device", error={"what": "no", "because": "", "try": ""})
    session.wait_for_selector(".wb-results [role=alert]")
    assert session.input_value(field) == was


def test_what_is_narrow_is_not_cut(browser: Any, record: Record, tmp_path: Path) -> None:
    """A heading is one line, and an error beside the passes can be dismissed."""
    error = {"what": "no", "because": "a reason that is told " * 9, "try": "this"}
    for page in shown(browser, tmp_path, session_page(record), width=953):
        page.wait_for_selector("[data-key=time-kernels]")
        heading = page.locator(".wb-kernels h3").bounding_box()
        assert heading["height"] < 20
        page.focus(".wb")
        keys(page, "c 5")
        send_reply(page, "check", error=error)
        shown_error = page.locator(".wb-notices .wb-error")
        box, close = (e.bounding_box() for e in (shown_error, shown_error.locator("button")))
        assert close["y"] + close["height"] <= box["y"] + box["height"]
        shown_error.locator("button").click()
        shown_error.wait_for(state="detached")


def test_progress_can_be_stopped(session: Any) -> None:
    status = {"task": "search", "done": 3, "total": 10, "text": "3 of 10"}
    session.evaluate("m => hear(m)", {"status": status})
    session.click("text=Stop")
    assert session.evaluate("sent.some(m => m.do === 'stop')")
    session.evaluate("m => hear(m)", {"status": status | {"task": None}})
    session.wait_for_selector("progress", state="detached")


def test_saved_variants_are_counted_until_all_are_listed(session: Any) -> None:
    """Else a reader who runs the cell again takes them for lost."""
    notice = session.locator(".wb-notices")
    for done in (0, 2):
        row = {"done": done, "total": 6}
        session.evaluate("p => hear({patch: p})", {"append": {}, "set": [[["restoring"], row]]})
        expect(notice).to_have_text(f"6 saved variants are read again: {done} of 6")
    session.evaluate("p => hear({patch: p})", {"append": {}, "set": [[["restoring"], None]]})
    expect(notice).to_have_text("")


def test_only_panes_that_show_a_change_are_redrawn(session: Any) -> None:
    session.evaluate("document.querySelector('.wb-results > *').id = 'kept'")
    offers = [["variants", 0, "offers"], []]
    session.evaluate("set => hear({ patch: { append: {}, set } })", [offers])
    expect(session.locator("[data-says=heads]")).to_have_count(0)
    assert session.locator("#kept").count() == 1
    session.evaluate("set => hear({ patch: { append: {}, set } })", [[["expr", "text"], "new"]])
    expect(session.locator(".wb-expr")).to_have_text("new")
    assert session.locator("#kept").count() == 0


def test_a_silent_session_is_said_to_be_silent(session: Any) -> None:
    falls_silent(session)
    session.click("[data-key=time]")
    session.clock.fast_forward(ANSWER_WITHIN_MS)
    session.wait_for_selector("text=Browsing still works")
    session.click("[data-key=loop-0]")
    assert selected(session, "loops")
    session.evaluate("window.mute = false")
    session.evaluate("hear({status: {task: null}})")  # the background: no answer
    assert session.is_visible("text=does not answer")
    session.click("text=ask again")
    session.wait_for_selector("text=does not answer", state="detached")


def test_a_late_answer_still_tells_of_missed_patches(session: Any, record: Record) -> None:
    """A busy session may answer after the page has given up waiting; a patch that came before
    the page listened would be missed for good."""
    first = {"append": {}, "set": [[["n"], 1]]}
    session.evaluate("p => hear({patch: p})", first)
    falls_silent(session)
    session.evaluate("sent.length = 0")
    session.click("[data-key=time]")
    session.clock.fast_forward(ANSWER_WITHIN_MS)
    session.wait_for_selector("text=Browsing still works")
    message = session.evaluate("sent.find(m => m.do === 'ping')")
    late = {"id": message["id"], "ok": True, "error": None, "patch": None}
    session.evaluate("m => hear(m)", late | {"result": {"n": 3, "record": None}})
    again = session.evaluate("sent.findLast(m => m.do === 'ping')")
    assert again["id"] != message["id"] and again["have"] == 1
    whole = json.loads(json.dumps(record)) | {"n": 3, "headline": "all of it"}
    result = {"n": 3, "record": packed(whole)}
    session.evaluate("m => hear(m)", late | {"id": again["id"], "result": result})
    session.wait_for_selector(".wb-title >> text=all of it")


def test_patches_are_applied_once_and_in_order(session: Any, record: Record) -> None:
    def note(number: int, words: str) -> Record:
        path = ["variants", 0, "note"]
        return {"patch": {"append": {}, "set": [[path, words], [["n"], number]]}}

    shown_note = expect(session.locator("[aria-label=note]"))
    for message in (note(1, "one"), note(2, "two"), note(1, "one")):
        session.evaluate("m => hear(m)", message)
    shown_note.to_have_value("two")
    session.evaluate("m => hear(m)", note(4, "four"))  # the third was missed
    shown_note.to_have_value("two")
    ping = session.evaluate("sent.findLast(m => m.do === 'ping')")
    assert ping["have"] == 2
    whole = json.loads(json.dumps(record)) | {"n": 4}
    whole["variants"][0]["note"] = "three and four"
    result = {"n": 4, "record": packed(whole)}
    session.evaluate("m => hear(m)", {"id": ping["id"], "ok": True, "result": result})
    session.evaluate("m => hear(m)", note(5, "five"))
    shown_note.to_have_value("five")
