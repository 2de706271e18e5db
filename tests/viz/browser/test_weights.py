"""A model whose weights are not drawn yet, in a real browser: the kernels that draw them are one fold
before the others, in the list of kernels and in the plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import drawn, opened, shown
from tests.viz.browser.scans.scan import barriers, unexplained
from tests.viz.browser.test_many_kernels import plan_page
from tests.viz.record.support import exported, plain
from tests.viz.support import array
from workbench import Tensor, explore, nn
from workbench.viz.record.record import build

Record = dict[str, Any]
ROWS = ".wb-kernels [data-item]"
FOLD = ".wb-kernels [data-key=weights]"
WORDS = "weights: 6 kernels, computed before"
LABELS = ".wb-plan .wb-g-label"


@pytest.fixture(scope="module")
def record() -> Record:
    """Three layers, as a newcomer explores them: the first six kernels of nine draw weights."""
    layers = [nn.Linear(32, 64), nn.Linear(64, 64), nn.Linear(64, 32)]

    def model(x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x).relu()
        return x

    page_record: Record = plain(build(explore(model(array(8, 32)))))
    phases = [row["phases"] for row in page_record["kernels"]]
    assert phases == [["weights"]] * 6 + [[]] * 3
    return page_record


@pytest.fixture
def opener() -> Any:
    return plan_page


def selected(page: Any) -> list[str]:
    return [
        str(row.get_attribute("data-key"))
        for row in page.locator(f"{ROWS}[aria-selected=true]").all()
    ]


def others(record: Record) -> list[int]:
    rows = record["kernels"]
    return [k for k, row in enumerate(rows) if not row["phases"]]


def test_they_are_the_last_row_of_the_list_in_every_order(page: Any, record: Record) -> None:
    """A click unfolds and folds it; the page opens with the first of the others."""
    page.click("[data-key=fold-left]")
    assert selected(page) == [f"kernel-{others(record)[0]}"]
    for order in ("place", "time", "bytes", "module"):
        page.click(f"[data-key=sort-{order}]")
        row = page.locator(ROWS).last
        assert row.get_attribute("data-key") == "weights"
        for words in ("6 kernels", "%", "weights, computed before"):
            expect(row).to_contain_text(words)
        before = page.locator(ROWS).count()
        row.click()
        assert page.locator(ROWS).count() == before + 6
        assert barriers(page, ["light"]) == {}
        page.click(FOLD)
        assert page.locator(ROWS).count() == before
    assert barriers(page) == {} and unexplained(page) == []


def test_one_that_is_selected_elsewhere_or_searched_is_shown(page: Any, record: Record) -> None:
    page.click("[data-key=fold-left]")
    page.fill(".wb-kernels input", "uniform")
    assert page.locator(ROWS).count() == 6
    page.fill(".wb-kernels input", "")
    assert page.locator(ROWS).count() == 4
    page.click("[data-key=fold-left]")
    page.select_option("select[aria-label=kernel]", index=0)
    page.click("[data-key=fold-left]")
    assert selected(page) == ["kernel-0"]
    assert page.locator(ROWS).count() == 10
    page.focus(FOLD)
    page.keyboard.press("Enter")
    assert selected(page) == ["weights"] and page.locator(ROWS).count() == 4


def test_a_page_that_opens_on_one_shows_it(browser: Any, tmp_path: Path, record: Record) -> None:
    html = exported(record).replace("view: {}", "view: { mode: 'tune', kernel: 2 }")
    for page in shown(browser, tmp_path, html, mode="1"):
        assert selected(page) == ["kernel-2"]


def test_the_plan_has_the_others_and_one_box(page: Any, record: Record) -> None:
    """Its lines are those of a model whose weights are there; unfolded, each weight has its own."""
    drawn(page)
    labels = page.locator(LABELS).all_text_contents()
    titles = [record["kernels"][k]["title"] for k in others(record)]
    assert labels == [*titles, WORDS]
    bytes_on_lines = page.locator(".wb-plan .wb-g-words-bytes")
    assert bytes_on_lines.count() == 2
    box = f".wb-plan .wb-g-node:has(.wb-g-label:text-is('{WORDS}')) .wb-g-box"
    page.click(box)
    title = f".wb-plan .wb-g-words-title:has-text('− {WORDS}')"
    page.wait_for_selector(title)
    assert page.locator(LABELS).count() == 9
    page.click(title)
    page.wait_for_selector(box)
    assert page.locator(LABELS).all_text_contents() == labels


@pytest.mark.parametrize("width", [800, 1400])
def test_the_words_of_the_fold_are_not_cut(
    browser: Any, tmp_path: Path, record: Record, width: int
) -> None:
    html = exported(record).replace("view: {}", "view: { mode: 'tune' }")
    path = tmp_path / "page.html"
    path.write_text(html, encoding="utf-8")
    page = opened(browser, path, width=width)
    cut = "(e) => e.scrollWidth > e.clientWidth"
    assert not page.locator(f"{FOLD} .wb-clip").evaluate(cut)
