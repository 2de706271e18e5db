"""How the page looks: the contrast of its text, and a pane alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import FAINT, drawn, session_page, shown
from tests.viz.browser.page.support import Record, keys, step_twice, timing
from tests.viz.browser.scans.records import many_kernels
from tests.viz.record.support import exported


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(browser: Any, record: Record, tmp_path: Path, dark: bool) -> None:
    for page in shown(browser, tmp_path, exported(record), dark=dark):
        page.click("[data-key=loop-0]")
        assert page.evaluate(FAINT) == []
        page.focus(".wb")
        keys(page, "3")
        page.wait_for_selector(".wb-plan .wb-g-words")
        assert page.evaluate(FAINT) == []
        page.click("[data-key^=cut-]")
        step_twice(page, record)
        page.wait_for_selector(".wb-rw-change")
        assert page.evaluate(FAINT) == []


@pytest.mark.parametrize(
    "only, pane",
    [("loops", ".wb-nest-pane"), ("code", ".wb-code-pane"), ("results", ".wb-results")],
)
def test_a_pane_can_stand_alone(session: Any, only: str, pane: str) -> None:
    session.evaluate("only => show({ only, mode: 'tune' })", only)
    session.wait_for_selector(f".wb[data-only={only}]")
    panes = (".wb-nest-pane", ".wb-next-pane", ".wb-code-pane", ".wb-results", ".wb-strip")
    assert [p for p in panes if session.is_visible(p)] == [pane]


ROWS = """(selector) => {
  const boxes = [...document.querySelectorAll(`${selector} :is(button, select)`)]
    .filter((e) => e.offsetParent).map((e) => e.getBoundingClientRect());
  const middles = boxes.map(({ y, height }) => y + height / 2).sort((a, b) => a - b);
  return middles.filter((y, i) => !i || y - middles[i - 1] > 8).length;
}"""
"""Returns the number of rows in which buttons and selectors stand."""
PAST = """() => [...document.querySelectorAll(".wb-header *")]
  .filter((e) => e.getBoundingClientRect().right > document.querySelector(".wb").clientWidth + 8)
  .map((e) => e.textContent)"""
"""Returns what stands past the right edge of the header."""


@pytest.mark.parametrize(("width", "rows"), [(366, 3), (800, 2), (953, 2), (1400, 2)])
def test_the_header_has_few_rows_and_nothing_past_the_edge(
    browser: Any, record: Record, tmp_path: Path, width: int, rows: int
) -> None:
    for page in shown(browser, tmp_path, exported(record), width=width + 16):
        for key in "0123":
            page.focus(".wb")
            keys(page, key)
            more = width < 953 and key in "23"  # they have choices, and three parts that fold
            assert page.evaluate(ROWS, ".wb-header") <= rows + more, key
            assert page.evaluate(PAST) == [], key


CUT = """() => [...document.querySelectorAll(".wb-choices select")].filter((e) => e.offsetParent)
  .filter((e) => {
    const context = document.createElement("canvas").getContext("2d");
    context.font = getComputedStyle(e).font;
    const needed = context.measureText(e.selectedOptions[0].text).width + 30; // and its arrow
    return e.offsetWidth < Math.min(needed, 150);
  }).map((e) => `${e.ariaLabel} ${e.offsetWidth}: ${e.selectedOptions[0].text}`)"""
"""Returns the selectors that cut what is chosen, if that is not long."""
CUT_TIMES = """() => {
  const all = document.querySelector(".wb-speed").getBoundingClientRect();
  return [...document.querySelectorAll(".wb-speed > span")].map((e) => [e, e.getBoundingClientRect()])
    .filter(([, b]) => b.top < all.bottom - 2 && (b.bottom > all.bottom + 2 || b.right > all.right + 1))
    .map(([e]) => e.textContent);
}"""
"""Returns the times in the header of which a part is in sight."""


@pytest.mark.parametrize("width", [800, 948, 1100, 1400])
def test_choices_and_times_in_the_header_are_not_cut(
    browser: Any, record: Record, tmp_path: Path, width: int
) -> None:
    page_record = json.loads(json.dumps(record))
    for place, median in (0, 415e-6), (1, 3.63e-6):
        page_record["variants"][place]["timing"] = timing(median, 0.022)
    for page in shown(browser, tmp_path, session_page(page_record), width=width):
        assert page.evaluate(CUT_TIMES) == []
        assert "415" in page.get_attribute(".wb-speed", "title")
        for mode in ("rewrites", "plan", "side_by_side", "trace"):
            page.evaluate("(mode) => show({ mode })", mode)
            page.wait_for_selector(".wb-choices select")
            assert page.evaluate(CUT) == [], mode


def test_buttons_over_the_source_wrap_together(session: Any) -> None:
    """None of them stands alone in a second row; in a wide page all are in one."""
    for width in (1400, 1200, 1092, 953, 800, 700):
        session.set_viewport_size({"width": width, "height": 900})
        drawn(session)
        assert session.evaluate(ROWS, ".wb-code-tools") == 1, width
        if width == 1400:
            assert session.evaluate(ROWS, ".wb-code-bar") == 1


def test_a_title_of_a_kernel_takes_one_line(browser: Any, tmp_path: Path) -> None:
    high = "(all) => all.filter((e) => e.offsetHeight > 24).map((e) => e.textContent)"
    for page in shown(browser, tmp_path, exported(many_kernels()), width=800):
        titles = page.locator(".wb-kernel-what")
        assert titles.count() == 13 and titles.evaluate_all(high) == []
        figures = page.locator(".wb-kernel-figures")
        assert figures.evaluate_all(high) == [], "they wrap together, below a long title"


def test_the_button_of_full_screen_says_how_to_leave_it(session: Any) -> None:
    session.click("[data-key=full]")
    expect(session.locator("[data-key=full]")).to_contain_text("leave full screen")
    session.click("[data-key=full]")
    expect(session.locator("[data-key=full]")).to_have_text(re.compile("^full"))
