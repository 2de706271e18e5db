"""What Rewrites mode asks of Python: why not, values, bisect, and a rule off; offline it says so."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from tests.viz.browser.browser import NODES_IN_SIGHT, drawn, session_page, shown, stop_clock
from tests.viz.browser.rewrites.support import Record, decompose, rewrites_page
from tests.viz.record.support import exported, plain
from tests.viz.session import support as live
from tests.viz.support import array
from workbench.viz import explore
from workbench.viz.page.document import packed


def test_offline_what_needs_python_says_so(page: Any) -> None:
    page.keyboard.press("j")
    page.click("g.wb-g-new")
    is_disabled(page, "rule-off", "bisect", "why-not")
    text = page.inner_text(".wb-rule-switch")
    assert 'from Python: explore(y, without=("form-fma",))' in text
    pick_a_value(page)
    is_disabled(page, "values")


def is_disabled(page: Any, *names: str) -> None:
    for key in names:
        button = page.locator(f'[data-key="{key}"]')
        assert button.get_attribute("aria-disabled") == "true", key
        assert "needs the Python session" in button.get_attribute("title"), key


def pick_a_value(page: Any) -> None:
    """Pick a node of a pass before there are registers."""
    page.focus(".wb")
    page.keyboard.press("Escape")  # what is picked leaves the graph little room
    page.click('.wb-rw-pass:has-text("expand-functions")')
    page.focus(".wb")
    page.keyboard.press("j")
    drawn(page)
    pick_in_sight(page, "values")


def pick_in_sight(page: Any, key: str) -> None:
    """Pick a node that has the button `key`."""
    for x, y in page.evaluate(NODES_IN_SIGHT, "*"):
        page.mouse.click(x, y)
        if page.locator(f'[data-key="{key}"]').count():
            return
    raise AssertionError(f"no node in sight has {key}")


def test_questions_to_python(session: Any, record: Record) -> None:
    page, place = session, record["passes"].index(decompose(record))
    page.keyboard.press("j")
    drawn(page)
    pick_in_sight(page, "why-not")
    page.click('[data-key="why-not"]')
    text = "((a * b) + c) -> FMA(a, b, c)"
    start = text.index("a * b")
    because = "b is not a constant"
    message = answer(page, "why_not", {
        "rule": "form-fma", "text": text, "caret_start": start, "caret_end": start + 5,
        "because": because,
    })  # fmt: skip
    assert message["pass"] == place
    lines = page.inner_text(".wb-rw-answer").split("\n")
    assert lines[0] == text and lines[1] == " " * start + "^" * 5
    assert because in lines[-1]
    page.click('.wb-rw [aria-label="zoom in"]')
    view = "document.querySelector('.wb-rw .wb-g-svg > g').getAttribute('transform')"
    zoomed = page.evaluate(view)
    news = {"append": {}, "set": [[["variants", 0, "note"], "figures arrive"]]}
    page.evaluate("(p) => hear({patch: p})", news)
    assert because in page.inner_text(".wb-rw-answer")
    assert page.evaluate(view) == zoomed

    page.click('[data-key="rule-off"]')
    number = next(i for i, v in enumerate(record["variants"]) if v["name"] == "auto")
    message = answer(page, "rule_off", {"variant": number})
    assert (message["kernel"], message["of"], message["on"]) == (0, 0, False)
    assert message["rule"] == record["rules"][decompose(record)["rewrites"][0][0]]["name"]
    assert answer(page, "check", {})["variant"] == number
    assert answer(page, "measure", {})["variants"] == [number, 0]
    page.click('.wb-variant:has-text("plain") >> nth=0')
    page.click('.wb-rw-pass:has-text("decompose")')

    page.click('[data-key="bisect"]')
    answer(page, "bisect", {"pass": place, "step": 2, "rule": "form-fma", "text": "it was 2"})
    page.wait_for_function("document.querySelector('.wb-rw-at').textContent.startsWith('2 of')")


def test_values_are_asked_for_where_there_are_some(session: Any) -> None:
    """In the lowered program they are in registers: there is nothing to press that must fail."""
    page = session
    for _ in range(2):  # to a step of the function of a sum
        page.keyboard.press("j")
    drawn(page)
    page.mouse.click(*page.evaluate(NODES_IN_SIGHT, ".wb-g-new")[0])
    assert page.locator('[data-key="values"]').count() == 0
    assert "they are in registers" in page.inner_text(".wb-rw-valuebox")
    pick_a_value(page)
    page.click('[data-key="values"]')
    axes = answer(page, "values", {"value": 2.5, "min": 0, "max": 3, "nan": 0, "shape": [4]})
    assert axes["at"] and set(axes["at"].values()) == {0}
    assert "2.5" in page.inner_text(".wb-rw-values")


def test_an_error_is_about_what_was_shown_when_it_was_asked_for(session: Any) -> None:
    page = session
    page.click('[data-key="bisect"]')
    page.wait_for_function("sent.some((m) => m.do === 'bisect')")
    request = page.evaluate("sent.findLast((m) => m.do === 'bisect')")
    error = {"what": "too large to compute", "because": "", "try": ""}
    reply = {"id": request["id"], "ok": False, "error": error}
    page.evaluate("(r) => hear(r)", reply | {"result": None, "patch": None})
    alert = page.locator(".wb-rw [role=alert]:has-text('too large to compute')")
    alert.wait_for()
    page.click('.wb-rw-pass:has-text("expand-functions")')
    alert.wait_for(state="detached")


def answer(page: Any, do: str, result: Any) -> Record:
    """Answer the last request `do` with a result; return the request."""
    page.wait_for_function("(d) => sent.some((m) => m.do === d)", arg=do)
    request: Record = page.evaluate("(d) => sent.findLast((m) => m.do === d)", do)
    reply = {"id": request["id"], "ok": True, "error": None, "result": result, "patch": None}
    page.evaluate("(reply) => hear(reply)", reply)
    return request


def test_bisecting_is_of_the_variant_and_its_answer_stays(session: Any, record: Record) -> None:
    page = session
    stop_clock(page)
    auto = next(i for i, v in enumerate(record["variants"]) if v["name"] == "auto")
    page.click('.wb-variant:has-text("auto")')
    page.click('[data-key="bisect"]')
    page.wait_for_selector(".wb-rw-found :text('computing states')")
    verdict = {"pass": None, "step": 0, "text": "every state computes the same"}
    assert answer(page, "bisect", verdict)["variant"] == auto
    page.wait_for_selector(".wb-rw-found :text('every state computes the same')")
    page.clock.fast_forward(10_000)  # longer than what only comes and goes
    assert page.inner_text(".wb-rw-found").startswith("bisect of auto")
    page.click('.wb-variant:has-text("plain") >> nth=0')
    page.wait_for_selector(".wb-rw-found:empty", state="attached")
    page.click('[data-key="bisect"]')
    answer(page, "bisect", verdict | {"text": "rewrite 2 of 5"})
    page.wait_for_selector(".wb-rw-found :text('bisect of plain')")
    page.keyboard.press("j")
    page.click(".wb-rw-list [role=option] >> nth=0")
    page.click('[data-key="rule-off"]')
    page.wait_for_selector(".wb-rw-found:empty", state="attached")


def test_a_rule_of_scheduling_off_is_a_banner_until_it_is_on_again(
    browser: Any, tmp_path: Path
) -> None:
    """Python sends everything anew; what is off, what that changed and the way back stand over
    all modes, though the rule fires nowhere now."""
    rule = "div-power-of-two"
    with live.session_of(explore((array(16, 16) / 4.0).sum(1))) as python:
        python.complete()
        before = plain(python.record)
        message = {"do": "rule_off", "kernel": 0, "rule": rule, "on": False}
        assert plain(python.handle({"id": 1, **message}))["ok"]
        anew = plain(python.record)
        python.handle({"id": 2, "do": "check", "variant": 0})
        checked = plain(python.record)["variants"][0]["check"]
    for page in shown(browser, tmp_path, session_page(before), mode="2"):
        page.click('.wb-rw-pass:has-text("simplify-tensor")')
        page.keyboard.press("j")
        assert page.locator(".wb-without").is_hidden()
        page.click('[data-key="rule-off"]')
        message = answer(page, "rule_off", {"n": anew["n"], "record": packed(anew)})
        assert message["rule"] == rule and message["on"] is False
        assert answer(page, "check", {})["variant"] == 0
        times = anew["plan"]["compared"] | {"seconds": [1, 2], "speed": "2x slower"}
        numbered = [[["n"], anew["n"] + 1]]
        news = [[["plan", "compared"], times], [["variants", 0, "check"], checked]]
        page.evaluate("(p) => hear({patch: p})", {"append": {}, "set": news + numbered})
        answer(page, "plans", {})
        for mode in "123":
            page.keyboard.press(mode)
            banner = page.inner_text(".wb-without")
            assert banner.startswith(f"without {rule}"), mode
            for phrase in ("7 lines of C differ", "2x slower", "right"):
                assert phrase in banner, mode
        page.keyboard.press("1")
        assert "/ 4.0f" in page.inner_text(".wb-code-pane")
        page.click(f'[data-key="rule-on-{rule}"]')
        message = answer(page, "rule_off", {"n": before["n"], "record": packed(before)})
        assert (message["rule"], message["on"]) == (rule, True)
        page.wait_for_selector(".wb-without", state="hidden")
        assert "0.25f" in page.inner_text(".wb-code-pane")
    for page in shown(browser, tmp_path, exported(anew)):
        assert f"without {rule}" in page.inner_text(".wb-without")
        button = page.locator(f'[data-key="rule-on-{rule}"]')
        assert button.get_attribute("aria-disabled") == "true"


def test_a_variant_without_a_rule_says_what_changed(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = copy.deepcopy(record)
    variant = copy.deepcopy(page_record["variants"][0])
    variant |= {"name": "mine 1", "parent": 0, "rules_off": ["form-fma"]}
    variant["code"][0]["lines"][-2] += " // changed"
    page_record["variants"][0:1] = [page_record["variants"][0]]
    page_record["variants"].append(variant)
    for page in rewrites_page(browser, tmp_path, exported(page_record)):
        page.click('.wb-variant:has-text("mine 1")')
        page.click(".wb-header", position={"x": 4, "y": 4})
        assert "without form-fma" in page.inner_text(".wb-banner")
        assert "1 line of C differs" in page.inner_text(".wb-banner")
    del variant["code"][0]["lines"][-2]
    for page in rewrites_page(browser, tmp_path, exported(page_record)):
        page.click('.wb-variant:has-text("mine 1")')
        assert "1 line of C differs" in page.inner_text(".wb-banner")


def test_a_banner_keeps_the_verdict_of_the_variant_it_was_switched_off_for(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """An edit of the variant without a rule is wrong: that is not the rule's doing."""
    page_record = copy.deepcopy(record)
    variants = page_record["variants"]
    off, edited = (copy.deepcopy(variants[0]) for _ in range(2))
    place, right = len(variants), {"ok": True, "text": "right: 8 of 8"}
    off |= {"name": "off 1", "parent": 0, "rules_off": ["form-fma"], "check": right}
    wrong = {"ok": False, "text": "WRONG: 8 of 8"}
    edited |= {
        "name": "edited 1", "parent": place, "rules_off": ["form-fma"], "check": wrong
    }  # fmt: skip
    variants += [off, edited]
    for page in rewrites_page(browser, tmp_path, exported(page_record)):
        page.click('.wb-variant:has-text("edited 1")')
        banner = page.inner_text(".wb-banner")
        assert "off 1: " in banner and "right: 8 of 8" in banner
        assert "WRONG" not in banner
    page_record["without"] |= {"rules": ["form-fma"], "differs": "the same C"}
    for each in variants:
        each["rules_off"] = ["form-fma"]
    variants[0]["check"] = right
    for page in rewrites_page(browser, tmp_path, exported(page_record)):
        page.click('.wb-variant:has-text("edited 1")')
        banner = page.inner_text(".wb-without")
        assert "plain: " in banner and "right: 8 of 8" in banner
        assert "WRONG" not in banner
