"""The first five minutes: three things to try, the machines that are here, and the tour."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.board.test_board import panes
from tests.viz.browser.browser import drawn, leave, opened
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import Record, focused, keys, texts
from tests.viz.record.support import exported, plain
from tests.viz.support import matmul
from workbench.viz.record.record import build
from workbench.viz.session.session import Session

LINE = ".wb-start"


@pytest.fixture
def live(browser: Any, tmp_path: Path) -> Iterator[LivePage]:
    with LivePage(browser, tmp_path, Session(matmul())) as live:
        yield live


@pytest.fixture(scope="module")
def record() -> Record:
    page_record: Record = plain(build(matmul()))
    return page_record


def reopened(live: LivePage) -> None:
    """Open the page of the same notebook again."""
    live.page.reload()
    live.page.wait_for_selector(".wb")
    live.page.evaluate("() => { window.mute = true; show({ mode: 'board' }); }")


def test_three_things_to_try_are_done_by_a_click_each(live: LivePage) -> None:
    page = live.page
    line = page.locator(LINE)
    expect(line).to_be_hidden()  # Tune is no page that opens
    page.evaluate("show({ mode: 'board' })")
    live.answer("offers")
    assert texts(page, f"{LINE} [data-key^=start-]")[:3] == [
        "step through scheduling",
        "apply an opt and time it",
        "click a line of C: see its origin",
    ]
    page.click("[data-key=start-line]")
    live.answer()
    drawn(page)
    row = page.locator(".wb-line[aria-selected=true]")
    expect(row).to_contain_text("acc0")
    assert page.locator("[data-pane=code] .wb-code-origin").inner_text().startswith("made by")
    assert "lit" in (page.locator(".wb-nest-pane .wb-lit").first.get_attribute("class") or "")
    page.click("[data-key=start-step]")
    drawn(page)
    assert page.evaluate("document.activeElement.matches('.wb')")
    before = page.inner_text(".wb-rw-at")
    assert before.startswith("1 of ")
    keys(page, "j")
    expect(page.locator(".wb-rw-at")).not_to_have_text(before)
    page.click("[data-key=start-opt]")
    (applied,) = [r for r in live.answer("apply", "measure") if r["do"] == "apply"]
    made = live.session.record.variants[-1]
    assert ", ".join(made.opts) == applied["opt"] and made.timing is not None
    assert page.get_attribute(".wb-variant[aria-selected=true]", "data-key") == (
        f"variant-{len(live.session.record.variants) - 1}"
    )
    expect(line).to_be_hidden()
    reopened(live)
    expect(line).to_be_hidden()


def test_a_decision_is_drawn_and_in_sight_in_its_list(live: LivePage) -> None:
    """The first thing to try leads to one: the graph is the plan as it is decided so far."""
    page, record = live.page, plain(live.session.record)
    page.set_viewport_size({"width": 1400, "height": 800})
    page.evaluate("show({ mode: 'board' })")
    page.click("[data-key=start-step]")
    place = next(i for i, p in enumerate(record["passes"]) if p["unit"] == "decision")
    steps = record["passes"][place]["rewrites"]
    drawn_nodes = [node["n"] for node in record["plan"]["nodes"]]
    graph = "[data-pane=graph] .wb-g-node"
    waiting = []
    for step, (_, about, *_) in enumerate(steps, 1):
        drawn(page)
        expect(page.locator(".wb-rw-at")).to_have_text(f"{step} of {len(steps)}")
        picked = page.locator(f"{graph}.wb-g-picked")
        if about in drawn_nodes:
            expect(picked).to_have_attribute("data-node", str(drawn_nodes.index(about)))
        waiting.append(page.locator(f"{graph}.wb-g-waiting").count())
        keys(page, "j")
    assert waiting[0] > waiting[-1] == 0 and waiting == sorted(waiting, reverse=True)
    keys(page, "k")
    page.wait_for_function("""() => {
      const list = document.querySelector(".wb-rw-list");
      const row = list.querySelector("[aria-selected=true]");
      const [around, inside] = [list, row].map((e) => e.getBoundingClientRect());
      return row === list.lastElementChild && list.scrollTop > 0 &&
        inside.top >= around.top - 1 && inside.bottom <= around.bottom + 1;
    }""")
    page.evaluate("show({ mode: 'tune' })")  # which shows no step
    drawn(page)
    assert page.locator("[data-pane=code] .wb-stage").count() == 0


def test_what_the_page_measures_by_itself_was_not_tried(live: LivePage) -> None:
    """Only what the reader did counts."""
    live.session.handle({"id": 1, "do": "measure", "variants": [0]}, live)
    live.page.evaluate("show({ mode: 'board' })")
    live.answer("offers")
    assert live.session.row(0).timing is not None
    expect(live.page.locator("[data-key=start-opt]")).to_be_visible()


def test_the_line_is_dismissed_for_the_notebook(live: LivePage) -> None:
    page = live.page
    page.evaluate("show({ mode: 'board' })")
    page.click("[data-key=start-dismiss]")
    expect(page.locator(LINE)).to_be_hidden()
    reopened(live)
    expect(page.locator(LINE)).to_be_hidden()
    page.evaluate("localStorage.clear()")  # another notebook
    reopened(live)
    expect(page.locator(LINE)).to_be_visible()


def test_a_page_opens_in_the_layout_of_the_last_time(live: LivePage, tmp_path: Path) -> None:
    """Also where Python was restarted, and the cell was run again."""
    page = live.page
    path = tmp_path / "live.html"
    again = path.read_text(encoding="utf-8").replace("view: { mode: 'tune' }", "view: {}")
    path.write_text(again, encoding="utf-8")
    page.reload()
    expect(page.locator(".wb")).to_have_attribute("data-mode", "board")
    page.click("[data-key=mode-plan]")
    page.wait_for_function("localStorage.getItem('workbench-layouts')")
    page.reload()
    expect(page.locator(".wb")).to_have_attribute("data-mode", "plan")


def test_machines_that_are_here_are_listed_first(live: LivePage) -> None:
    page = live.page
    field = page.locator("select[aria-label=device]")
    listed = "(e) => [...e.options].map((o) => o.value)"
    devices = live.session.record.devices
    here = [d.name for d in devices if d.available and not d.elsewhere]
    assert field.evaluate(listed) == [*here, "more machines…"] and len(here) < len(devices)
    field.select_option("more machines…")
    elsewhere = [d.name for d in devices if d.elsewhere]
    missing = [d.name for d in devices if not d.available and not d.elsewhere]
    assert field.evaluate(listed) == [*here, *elsewhere, *missing]
    assert field.input_value() == live.session.record.device
    assert [r["do"] for r in live.answer() if r["do"] == "device"] == []


@pytest.mark.parametrize("width", [1400, 953, 800])
def test_the_tour_lights_six_panes_and_ends(
    browser: Any, record: Record, tmp_path: Path, width: int
) -> None:
    """It needs no Python."""
    path = tmp_path / "page.html"
    path.write_text(exported(record), encoding="utf-8")
    page = opened(browser, path, width=width, dark=width == 953)
    page.click("[data-key=mode-plan]")
    before = panes(page)
    page.focus(".wb")
    keys(page, "?")
    page.click("[data-key=tour]")
    seen = []
    for step in range(6):
        drawn(page)
        assert texts(page, ".wb-tour b") == [f"Tour, {step + 1} of 6"]
        (lit,) = page.locator(".wb-toured").all()
        assert lit.is_visible()
        box = lit.bounding_box()
        assert box["y"] >= 0 and box["y"] + 60 < page.viewport_size["height"]
        name = lit.get_attribute("data-pane")
        said = page.inner_text(".wb-tour [role=status]")
        assert said.startswith(f"{'source' if name == 'code' else name}: ".capitalize()), said
        assert page.evaluate("document.querySelector('.wb').scrollWidth") <= width
        seen.append(name)
        assert focused(page) == "tour-next"
        keys(page, ("ArrowRight", "Enter")[step % 2])
    assert len(set(seen)) == 6
    expect(page.locator(".wb-tour")).to_be_hidden()
    assert page.locator(".wb-toured, .wb[data-tour]").count() == 0
    assert panes(page) == before, "the layout in which it began"
    assert page.evaluate("document.activeElement.matches('.wb')")
    keys(page, "?")
    page.click("[data-key=tour]")
    keys(page, "ArrowRight ArrowLeft")
    assert texts(page, ".wb-tour b") == ["Tour, 1 of 6"]
    keys(page, "Escape")
    assert panes(page) == before and page.locator(".wb-toured").count() == 0
    leave(browser, page)
