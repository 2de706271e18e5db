"""The pane Run: a run of all kernels as a timeline and as tables, saved and live."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import drawn, shown
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import Record, keys, selected, texts
from tests.viz.browser.scans.scan import THEMES, barriers, unexplained
from tests.viz.record.support import exported, plain
from tests.viz.run.made_up import made_up
from tests.viz.support import softmax
from tests.viz.test_memory_chart import layers
from workbench.measure.speeds import earlier_speeds
from workbench.viz.record.record import build
from workbench.viz.run import facts
from workbench.viz.run.run import without_timeline
from workbench.viz.schema.messages import SearchedReply
from workbench.viz.session.session import LONG, Session

SAID = SearchedReply("2 of 2 kernels faster, the sum of all runs 2 ms -> 1 ms")


@pytest.fixture(scope="module")
def record() -> Record:
    result: Record = plain(build(layers(), "first"))
    titles = [kernel["title"] for kernel in result["kernels"]]
    runs = [without_timeline(made_up(titles, slower=3)), made_up(titles)]
    result["runs"] = plain(runs)
    return result


@pytest.fixture
def page(browser: Any, tmp_path: Path, record: Record) -> Iterator[Any]:
    yield from shown(browser, tmp_path, exported(record), mode="7")


def test_the_timeline_by_keys_and_pointer(page: Any, record: Record) -> None:
    timeline = page.locator(".wb-run-time")
    assert "5 times" in timeline.get_attribute("aria-label")
    timeline.focus()
    said = page.locator(".wb-run-what[role=status]")
    keys(page, "ArrowDown ArrowDown")
    drawn(page)
    assert said.inner_text().startswith("schedule · starts at 100 ns · takes 800 ns · MainThread")
    keys(page, "ArrowDown ArrowRight")
    drawn(page)
    title = record["kernels"][1]["title"]
    assert said.inner_text().startswith(title) and "module net.1" in said.inner_text()
    assert "line 1" in said.inner_text()
    keys(page, "w w d a s f")  # none of these is the page's key of that name
    box = timeline.bounding_box()
    page.mouse.move(box["x"] + 150 + 0.3 * (box["width"] - 150), box["y"] + box["height"] - 20)
    drawn(page)
    memory = page.locator(".wb-run-what.wb-quiet").inner_text()
    assert "in use" in memory and "KiB from before the run" in memory
    keys(page, "Enter")
    assert page.get_attribute("[data-key=mode-tune]", "aria-selected") == "true"
    assert selected(page, "kernels")[0].startswith("2")


def test_the_tables(page: Any, record: Record) -> None:
    rows = page.locator(".wb-run-tables > .wb-run-scroll tbody tr")
    assert rows.count() == len(record["kernels"])
    assert "≠" in rows.nth(0).inner_text(), "three times as long as predicted"
    compared = texts(page, ".wb-run-compared tbody tr")
    assert len(compared) == 1, "the others differ by less than the noise"
    assert record["kernels"][0]["title"] in compared[0] and "saves" in page.inner_text(
        ".wb-run-help"
    )
    page.click("[data-key=run-table-module]")
    assert page.locator(".wb-run-part").count() == len(record["kernels"]) + 2
    page.click("[data-key=run-table-kind]")
    assert rows.count() == len({kernel["title"].split(" ")[0] for kernel in record["kernels"]})
    page.click("[data-key=run-table-kernel]")
    page.click("[data-key=run-kernel-2]")
    assert selected(page, "kernels")[0].startswith("3")


@pytest.mark.parametrize("width", [800, 1400])
def test_each_part_can_be_read(browser: Any, tmp_path: Path, record: Record, width: int) -> None:
    for page in shown(browser, tmp_path, exported(record), mode="7", width=width):
        for grouping in ("module", "kernel"):
            page.click(f"[data-key=run-table-{grouping}]")
            drawn(page)
            assert barriers(page, THEMES) == {}
            assert unexplained(page) == []


def test_a_button_makes_a_run(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "speeds", earlier_speeds)
    session = Session(softmax())
    with LivePage(browser, tmp_path, session) as live:
        page = live.page
        page.focus(".wb")
        keys(page, "7")
        assert "No run yet" in page.inner_text(".wb-run")
        page.click("[data-key=run]")
        live.answer("run")
        assert "10 times" in page.inner_text(".wb-run .wb-heading")
        assert page.locator(".wb-run-table tbody tr").count() == len(session.record.kernels)
        page.click("[data-key=run]")
        live.answer("run")
        assert page.locator(".wb-run-compared").count() == 1
        monkeypatch.setitem(LONG, "search_all", lambda session, budget_s: SAID)
        page.click("[data-key=search-all]")
        live.answer("search_all")
        assert "2 of 2 kernels faster" in page.inner_text(".wb-run-searched")
