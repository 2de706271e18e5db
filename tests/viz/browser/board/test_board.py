"""The board: panes are split, moved, enlarged, closed and remembered, and one selection runs through
all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import drawn, leave, opened, shown
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import Record, focused, keys
from tests.viz.browser.scans.records import many_kernels
from tests.viz.record.support import exported, plain
from tests.viz.session.support import done, session_of
from tests.viz.support import matmul, softmax
from workbench.viz.record.record import build

PANES = """() => [...document.querySelectorAll("[data-pane]")].filter((e) => e.checkVisibility())
  .map((e) => e.dataset.pane)"""
"""Returns the panes in sight, in their order."""
BOXES = """() => Object.fromEntries([...document.querySelectorAll("[data-pane]")]
  .filter((e) => e.checkVisibility()).map((e) => [e.dataset.pane, e.getBoundingClientRect()])
  .map(([pane, { x, y, width, height }]) => [pane, [x, y, width, height].map(Math.round)]))"""
"""Returns where panes stand."""
STRAY = """() => {
  const board = document.querySelector(".wb-board").getBoundingClientRect();
  return [...document.querySelectorAll("[data-pane]")].filter((e) => e.checkVisibility())
    .filter((e) => {
      const b = e.getBoundingClientRect();
      return b.left < board.left - 1 || b.right > board.right + 1 || b.width < 90 || b.height < 60;
    }).map((e) => e.dataset.pane);
}"""
"""Returns the panes that are too small, or reach out of the board at a side."""
LIT = """() => [...document.querySelectorAll("[data-pane]")]
  .filter((e) => e.checkVisibility() && e.querySelector(".wb-lit, .wb-g-picked, [aria-selected=true].wb-lit"))
  .map((e) => e.dataset.pane)"""
"""Returns the panes in which something is lit up."""
TOGETHER = {"graph", "passes", "opts", "code"}


@pytest.fixture(scope="module")
def record() -> Record:
    page_record: Record = plain(build(softmax()))
    return page_record


@pytest.fixture
def page(browser: Any, record: Record, tmp_path: Path) -> Any:
    path = tmp_path / "page.html"
    path.write_text(exported(record), encoding="utf-8")
    page = opened(browser, path)
    page.set_viewport_size({"width": 1400, "height": 900})
    yield page
    leave(browser, page)


def panes(page: Any) -> list[str]:
    listed: list[str] = page.evaluate(PANES)
    return listed


@pytest.mark.parametrize("width", [1920, 1400, 953, 800])
def test_what_is_used_together_is_there_at_first(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    drawn(page)
    assert set(panes(page)) >= TOGETHER
    assert page.evaluate(STRAY) == []
    boxes = page.evaluate(BOXES)
    columns = {x for x, *_ in boxes.values()}
    assert len(columns) == {1920: 3, 1400: 3, 953: 2, 800: 1}[width]
    assert page.locator(".wb-switcher").is_visible() is (width == 800)
    high = all(y + height <= 900 for _, y, _, height in boxes.values())
    assert high is (width != 800), "where there is room, nothing has to be scrolled"


def test_a_button_leads_to_a_pane_that_stands_below(page: Any) -> None:
    page.set_viewport_size({"width": 800, "height": 640})
    page.click("[data-key=go-opts]")
    top = page.locator("[data-pane=opts]").bounding_box()["y"]
    board = page.locator(".wb-board").bounding_box()
    assert board["y"] - 1 <= top <= board["y"] + board["height"] - 100


def test_a_pane_is_split_chosen_enlarged_and_closed(page: Any) -> None:
    before = page.evaluate(BOXES)
    page.click("[data-key=right-graph]")
    added = (set(panes(page)) - set(before)).pop()
    boxes = page.evaluate(BOXES)
    assert boxes[added][1] == before["graph"][1] and boxes[added][0] > boxes["graph"][0]
    assert abs(boxes[added][2] - boxes["graph"][2]) <= 2, "both have half"
    page.select_option(f"[data-key=choose-{added}]", "memory")
    assert "memory" in panes(page) and added not in panes(page)
    page.select_option("[data-key=choose-memory]", "opts")
    changed = page.evaluate(BOXES)
    assert changed["opts"] == boxes[added], "panes that are both there change places"
    assert changed["memory"][:2] == before["opts"][:2]
    page.click("[data-key=large-code]")
    assert panes(page) == ["code"]
    assert page.locator("[data-pane=code]").bounding_box()["width"] > 1300
    page.click("[data-key=large-code]")
    assert page.evaluate(BOXES) == changed
    for pane in ("memory", "opts"):
        page.click(f"[data-key=close-{pane}]")
    assert set(panes(page)) == set(before) - {"opts"}


def test_a_pane_is_named_once_and_its_words_stay_at_hand(page: Any) -> None:
    names = """() => [...document.querySelectorAll("[data-pane]")].filter((e) => e.checkVisibility())
      .map((e) => [e.querySelector(".wb-frame-choice"), ...e.querySelectorAll(".wb-heading > h3")]
        .filter((part) => part?.checkVisibility())
        .map((part) => (part.selectedOptions?.[0] ?? part).textContent.toLowerCase()))
      .filter((texts) => new Set(texts).size < texts.length)"""
    assert page.evaluate(names) == []
    words = page.locator("[data-key=words-passes]")
    assert "done to the program" in words.get_attribute("title")
    words.click()
    assert page.locator(".wb-words-sheet h4").all_inner_texts() == ["PASSES"]
    page.keyboard.press("Escape")
    page.click("[data-key=arrange]")
    heading = page.locator("[data-pane=passes] h3 >> nth=0")
    assert heading.is_visible(), "without bars the pane names itself"


def test_a_file_opens_as_the_reader_arranged_it(page: Any, browser: Any, tmp_path: Path) -> None:
    page.click("[data-key=close-loops]")
    page.focus("[data-key=divider-passes-graph]")
    keys(page, "ArrowRight ArrowRight ArrowRight")
    arranged = page.evaluate(BOXES)
    page.focus(".wb")
    keys(page, "e")
    with page.expect_download() as saved:
        page.click(".wb-export [data-key=export-html]")
    path = tmp_path / "other" / "arranged.html"
    saved.value.save_as(path)
    other = opened(browser, path)
    other.set_viewport_size({"width": 1400, "height": 900})
    drawn(other)
    assert other.evaluate(BOXES) == arranged
    other.click("[data-key=reset-layout]")
    drawn(other)
    assert "loops" in panes(other), "it is the layout as it was at first"
    leave(browser, other)


def test_keys_do_what_the_bar_does(page: Any) -> None:
    page.focus("[data-pane=passes] [data-item] >> nth=0")
    keys(page, "m")
    assert panes(page) == ["passes"]
    keys(page, "m _")
    boxes = page.evaluate(BOXES)
    (added,) = set(boxes) - {"passes", "results", "graph", "opts", "code", "loops"}
    assert boxes[added][0] == boxes["passes"][0] and boxes[added][1] > boxes["passes"][1]
    keys(page, "Shift+X")
    assert "passes" not in panes(page)
    assert page.evaluate("document.activeElement.closest('.wb') !== null"), "keys stay inside"
    keys(page, "m Shift+X |")
    assert len(panes(page)) == len(boxes) - 1, "no pane has the focus"


def test_the_last_pane_stays(page: Any) -> None:
    for pane in panes(page)[1:]:
        page.click(f"[data-key=close-{pane}]")
    (last,) = panes(page)
    assert page.locator(f"[data-key=close-{last}]").count() == 0


def test_a_border_is_dragged_moved_by_arrows_and_evened(page: Any) -> None:
    border = page.locator("[data-key=divider-passes-graph]")
    assert border.get_attribute("role") == "separator"
    before = page.evaluate(BOXES)
    box = border.bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 102, box["y"] + 300, steps=4)
    page.mouse.up()
    now = page.evaluate(BOXES)
    assert now["passes"][2] == pytest.approx(before["passes"][2] + 100, abs=2)
    assert now["graph"][2] == pytest.approx(before["graph"][2] - 100, abs=2)
    assert now["code"] == before["code"], "only both parts at the border change"
    both = now["passes"][2] + now["graph"][2]
    share = 100 * now["passes"][2] / both
    assert float(border.get_attribute("aria-valuenow")) == pytest.approx(share, abs=1)
    assert focused(page) == "divider-passes-graph"
    keys(page, "ArrowRight ArrowRight")
    assert page.evaluate(BOXES)["passes"][2] == pytest.approx(now["passes"][2] + both * 0.04, abs=3)
    keys(page, "Home")
    even = page.evaluate(BOXES)
    assert abs(even["passes"][2] - even["graph"][2]) <= 2
    inner = page.locator("[data-key=divider-graph-opts]")
    assert inner.get_attribute("aria-orientation") == "horizontal"
    inner.dblclick()
    even = page.evaluate(BOXES)
    assert abs(even["graph"][3] - even["opts"][3]) <= 2


def test_a_long_list_of_kernels_has_what_results_leave(browser: Any, tmp_path: Path) -> None:
    """The height goes where the contents are; a border that is moved stays where it is put."""
    record = many_kernels()
    for page in shown(browser, tmp_path, exported(record)):
        page.set_viewport_size({"width": 1400, "height": 800})
        drawn(page)
        boxes = page.evaluate(BOXES)
        column = boxes["kernels"][3] + boxes["results"][3] + boxes["lines"][3]
        inside = page.locator(".wb-kernels").evaluate("(e) => e.scrollHeight - e.clientHeight")
        assert inside == 0 and boxes["kernels"][3] > 0.48 * column, "all of them are seen"
        page.set_viewport_size({"width": 1400, "height": 700})
        drawn(page)
        short = page.evaluate(BOXES)
        column = short["kernels"][3] + short["results"][3] + short["lines"][3]
        assert short["kernels"][3] >= 0.47 * column, "its share, where results are long, too"
        page.focus("[data-key=divider-kernels-results]")
        keys(page, "ArrowDown ArrowDown ArrowDown ArrowDown")
        drawn(page)
        moved = page.evaluate(BOXES)
        both = short["kernels"][3] + short["results"][3]
        grown = moved["kernels"][3] - short["kernels"][3]
        assert grown == pytest.approx(0.08 * both, abs=4)


def test_what_the_reader_arranges_stays_until_it_is_reset(page: Any) -> None:
    first = page.evaluate(BOXES)
    assert page.locator("[data-key=reset-layout]").count() == 0
    page.click("[data-key=close-loops]")
    page.focus("[data-key=divider-passes-graph]")
    keys(page, "ArrowRight ArrowRight ArrowRight")
    changed = page.evaluate(BOXES)
    page.reload()
    page.wait_for_selector("[data-pane=graph]")
    drawn(page)
    assert page.evaluate(BOXES) == changed
    page.set_viewport_size({"width": 953, "height": 900})
    assert set(panes(page)) == TOGETHER, "each width has its own"
    page.set_viewport_size({"width": 1400, "height": 900})
    keys(page, "Escape")
    page.focus(".wb")
    keys(page, "2")
    assert "loops" not in panes(page) and page.locator("[data-key=reset-layout]").count() == 0
    keys(page, "0")
    page.click("[data-key=reset-layout]")
    drawn(page)
    assert page.evaluate(BOXES) == first


def test_one_selection_runs_through_all_panes(page: Any) -> None:
    page.click("[data-pane=loops] .wb-loop.wb-statement >> nth=0")
    assert {"loops", "code"} <= set(page.evaluate(LIT))
    page.keyboard.press("Escape")
    page.click("[data-pane=code] .wb-line.wb-link >> nth=6")
    lit = set(page.evaluate(LIT))
    assert {"code", "loops"} <= lit
    page.keyboard.press("Escape")
    page.click("[data-pane=graph] .wb-g-node:has-text('reduce max')")
    assert {"graph", "code", "loops"} <= set(page.evaluate(LIT))


def test_a_step_of_a_pass_is_seen_beside_the_source(page: Any) -> None:
    page.click("[data-pane=passes] .wb-rw-pass:has-text('rangeify')")
    page.focus(".wb")
    keys(page, "j j")
    assert page.inner_text(".wb-rw-at").startswith("2 of")
    assert page.get_attribute(".wb", "data-mode") == "board", "the graph is here"
    assert "there are no loops yet" in page.inner_text("[data-pane=loops] .wb-stage")
    assert page.locator("[data-pane=loops] .wb-loop").count() == 0
    assert "there is no source yet" in page.inner_text("[data-pane=code] .wb-stage")
    lines = page.locator("[data-pane=code] .wb-stage-lines")
    assert "REDUCE_AXIS" in lines.inner_text() and "void " not in lines.inner_text()
    page.click("[data-pane=code] [data-key=finished]")
    assert "void " in page.inner_text("[data-pane=code] .wb-code-body"), "what it becomes"
    page.click("[data-pane=code] [data-key=state]")
    keys(page, "l j")
    assert page.get_attribute(".wb", "data-mode") == "board"
    assert page.locator("[data-pane=loops] .wb-loop").count() > 0
    assert "code" in page.evaluate(LIT), "what became of the new node"
    page.click("[data-pane=passes] .wb-rw-pass:has-text('render')")
    assert page.locator(".wb-stage").count() == 0, "there it is"
    page.click("[data-pane=passes] .wb-rw-pass:has-text('decompose')")
    page.click("[data-pane=code] [data-key=leave-step]")
    assert page.locator(".wb-stage").count() == 0
    page.click(".wb-strip [data-item] >> nth=-1")
    assert page.get_attribute(".wb", "data-mode") == "board"


def test_a_node_that_was_expanded_lights_its_loops_and_lines(
    browser: Any, nothing_saved: Path, tmp_path: Path
) -> None:
    with session_of(matmul()) as session:
        done(session, "auto", kernel=0)
        done(session, "passes", variant=1)
        record = session.record
        src, op = record.nodes.src, record.nodes.op
        place = next(p for p in record.variants[1].passes if record.passes[p].name == "linearize")
        below = sorted(_below(src, record.passes[place].after))
        with LivePage(browser, tmp_path, session) as live:
            page = live.page
            live.answer()
            page.click("[data-key=variant-1]")
            page.evaluate("show({ mode: 'board' })")
            live.answer()
            lit = "[data-pane=loops] .wb-loop.wb-lit:not(.wb-statement)"
            for name, axes in (("FMA", {"n0", "u0", "u1"}), ("STORE", {"u0", "u1"})):
                copies = [n for n in below if op[n] == name]
                assert len(copies) > 1, "there is one for each element"
                page.evaluate("(node) => show({ node })", copies[-1])
                expect(page.locator(lit)).to_have_count(len(axes))
                found = page.locator(lit).evaluate_all("(all) => all.map((e) => e.ariaLabel)")
                assert {text.split(",")[0].split()[-1] for text in found} == axes
                assert page.locator("[data-pane=code] .wb-line.wb-lit").count() > 0


def _below(src: list[list[int]], roots: list[int]) -> set[int]:
    found, pending = set(roots), list(roots)
    while pending:
        more = [s for s in src[pending.pop()] if s not in found]
        found.update(more)
        pending += more
    return found


def test_tabs_are_layouts_of_the_board(page: Any) -> None:
    expected = {
        "1": {"loops", "opts", "code", "results"},
        "2": {"passes", "graph", "rewrite"},
        "3": {"plan", "reasons", "decisions"},
        "4": {"side_by_side"},
        "5": {"rules"},
        "6": {"gpu"},
        "0": TOGETHER,
    }
    for key, some in expected.items():
        page.focus(".wb")
        keys(page, key)
        assert some <= set(panes(page)), key
    for layout in ("schedule", "trace", "teach"):
        page.select_option("[data-key=more-layouts]", layout)
        assert page.get_attribute(".wb", "data-mode") == layout
        drawn(page)
        assert page.evaluate(STRAY) == [], layout
    page.click("[data-key=mode-tune]")
    assert not page.locator(".wb-frame-bar >> visible=true").count()
    page.click("[data-key=arrange]")
    assert page.locator(".wb-frame-bar >> visible=true").count() == len(panes(page))


def test_a_click_leads_to_a_layout_that_shows_it(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    for page in shown(browser, tmp_path, exported(record)):
        page.click(".wb-strip [data-item] >> nth=2")
        assert page.get_attribute(".wb", "data-mode") == "rewrites"
