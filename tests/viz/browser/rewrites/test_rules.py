"""The list of all rules in the exported page: searched, read, stepped through, by keys and offline."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import shown
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.rewrites.support import Record
from tests.viz.record.support import exported
from tests.viz.session.support import prefetch_all, session_of
from tests.viz.support import array
from workbench import explore


def uses_of(record: Record, name: str) -> list[tuple[int, int]]:
    """Return the passes and steps, from 1, of what leads to a variant or is scheduling's."""
    own = [p for v in record["variants"] for p in v["passes"]]
    shared = [i for i, p in enumerate(record["passes"]) if p["variant"] is None]
    return [
        (place, step)
        for place in shared + own
        for step, row in enumerate(record["passes"][place]["rewrites"], 1)
        if row[0] >= 0 and record["rules"][row[0]]["name"] == name
    ]


def uses_with_variant(record: Record, uses: list[tuple[int, int]], place: int) -> int:
    """Return how many `uses` are scheduling's, or of the variant to which the pass `place` led."""
    (own,) = (v["passes"] for v in record["variants"] if place in v["passes"])
    return sum(p in own or record["passes"][p]["variant"] is None for p, _ in uses)


def test_a_rule_is_searched_read_and_stepped_through(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    uses = uses_of(record, "idiv-by-shift")
    assert len(uses) > 2
    for page in shown(browser, tmp_path, exported(record), mode="5"):
        everyone = page.locator(".wb-rules-row").count()
        assert everyone == len(record["panels"]["rules"]["data"]) > 100
        page.keyboard.press("/")
        page.keyboard.type("another search")
        page.keyboard.press("Escape")
        page.keyboard.press("/")  # begins a search anew
        page.keyboard.type("low k bits negative")  # words of its sentence
        assert page.locator(".wb-rules-row").count() == 1
        page.keyboard.press("Enter")
        card = page.inner_text(".wb-rules-card")
        assert "mod-by-mask" in card and "i % 8" in card
        assert "fired nowhere" in card and "from Python: explore(" in card
        off = page.locator('[data-key="rule-off"]')
        assert off.get_attribute("aria-disabled") == "true"
        page.fill(".wb-rules input[type=search]", "idiv-by-shift")
        page.click('[data-key="rule-idiv-by-shift"]')
        for place, (pass_place, step) in enumerate(uses[:3], 1):
            page.keyboard.press("n")
            assert page.inner_text(".wb-rw-rule .wb-uses span") == (f"use {place} of {len(uses)}")
            name = record["passes"][pass_place]["name"]
            assert page.inner_text(".wb-rw-head b") == name
            assert page.inner_text(".wb-rw-at").startswith(f"{step} of")
        page.keyboard.press("N")
        assert "use 2 of" in page.inner_text(".wb-rw-rule .wb-uses")
        page.keyboard.press("r")
        selected = page.locator('.wb-rules-row[aria-selected="true"]')
        count = uses_with_variant(record, uses, uses[1][0])
        assert 0 < count < len(uses), "those of the variant shown, not of every one that was opened"
        assert selected.inner_text().split()[:2] == [str(count), "idiv-by-shift"]


def test_the_list_is_sorted_by_use(browser: Any, record: Record, tmp_path: Path) -> None:
    for page in shown(browser, tmp_path, exported(record), mode="5"):
        figures = page.locator(".wb-rules-row > .wb-figure")
        listed = figures.all_inner_texts()
        page.click("[data-key=rules-by-use]")
        counts = [int(text.replace(",", "")) for text in figures.all_inner_texts()]
        assert counts == sorted(counts, reverse=True) and counts[0] > counts[1] > 0
        page.click("[data-key=rules-by-use]")
        assert figures.all_inner_texts() == listed != [f"{count:,}" for count in counts]


@pytest.mark.parametrize("width", [800, 953])
def test_the_list_and_the_rule_are_seen_together(
    browser: Any, record: Record, tmp_path: Path, width: int
) -> None:
    for page in shown(browser, tmp_path, exported(record), mode="5", width=width):
        page.click('[data-key="rule-add-zero"]')
        for selector in (".wb-rules-list", ".wb-rules-card"):
            box = page.locator(selector).bounding_box()
            assert box["width"] > 200 and box["height"] > 150, selector
        wide = "e => e.scrollWidth > e.clientWidth + 1"
        assert not page.locator(".wb-rules-card").evaluate(wide)
        assert not page.locator(".wb-rules-list").evaluate(wide)


def test_the_code_of_a_rule_is_unfolded(
    browser: Any, record: Record, tmp_path: Path, nothing_saved: Path
) -> None:
    """Python sends it; the fold stays open for the next rule; a file says that it has none."""
    for page in shown(browser, tmp_path, exported(record), mode="5"):
        page.click('[data-key="rule-add-zero"]')
        page.click('[data-key="fold-code of a rule"]')
        assert "not in this page" in page.inner_text(".wb-rule-code")
    with session_of(explore(array(8, 8) * 2 + 1, device="LLVM")) as session:
        prefetch_all(session)
        with LivePage(browser, tmp_path, session) as live:
            page = live.page
            page.evaluate("show({ mode: 'rules', variant: 0, rule: 'idiv-by-shift' })")
            live.answer()
            page.click('[data-key="fold-code of a rule"]')
            live.answer("rule_code")
            code = page.locator(".wb-rule-code")
            assert "def shift_for_div(" in code.inner_text()
            link = code.locator("a").first.get_attribute("href")
            assert re.fullmatch(r"vscode://file/\S+/workbench/ir/lower/decompose.py:\d+", link)
            page.click('[data-key="rule-add-zero"]')
            live.answer("rule_code")
            assert 'Rule("add-zero"' in code.inner_text()
            page.click('[data-key="rule-idiv-by-shift"]')
            assert "def shift_for_div(" in code.inner_text(), "it is asked for once"
            assert page.faults == []


def test_a_rule_that_is_typed_is_tested_and_tried(
    browser: Any, tmp_path: Path, nothing_saved: Path
) -> None:
    """YOUR RULE: what is wrong is shown with its values, what is no rule with its column; a rule
    that holds becomes a variant, whose answer is checked."""
    with session_of(explore(array(8, 8) * 2 + 1, device="LLVM")) as session:
        prefetch_all(session)  # the list of rules comes last
        with LivePage(browser, tmp_path, session) as live:
            page = live.page
            page.evaluate("show({ mode: 'rules', variant: 0, language: 'C' })")
            live.answer()
            field = page.locator("[data-key=typed-rule]")
            assert "YOUR RULE" in page.inner_text(".wb-rules-trial")
            field.fill("x * 0 -> 0")
            page.click("[data-key=try-rule]")
            live.answer("try_rule")
            outcome = page.locator(".wb-rules-outcome")
            assert "it is wrong for float16: with x = " in outcome.inner_text()
            assert "it was not applied" in outcome.inner_text()
            assert "it is wrong" in page.inner_text(".wb-rules-outcome .wb-bad")
            field.fill("x - 1 ->")
            field.press("Enter")
            live.answer("try_rule")
            assert re.search(r"column \d+", page.inner_text(".wb-rules-trial [role=alert]"))
            assert not any(row.rules_off for row in session.record.variants)
            field.fill("x * 2 -> x + x")
            page.click("[data-key=try-rule]")
            live.answer("try_rule")
            words = outcome.inner_text()
            assert "both sides agree on" in words and "it fired 1 time" in words
            assert words.startswith("right: 64 of 64 elements")
            assert any(re.match(" *[+].*;$", line) for line in words.splitlines())
            assert page.locator(".wb-rules-outcome .wb-good").count() == 1
            own = page.locator(".wb-rules-row").first
            assert own.inner_text().split("\n")[:2] == ["1", "x * 2 -> x + x"], "it is listed"
            assert "× 1" in page.inner_text(".wb-rules-card .wb-rules-uses"), "with its uses"
            row = session.record.variants[-1]
            assert row.rules_off == ["x * 2 -> x + x"] and row.check is not None and row.check.ok
            assert page.faults == []
