"""Lists of any length: their rows are made when the reader comes near them; and panes that are filled
anew while they are scrolled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.viz.browser.browser import drawn
from tests.viz.layouts import functions_page

LIST = """(count) => {
  const row = (place) => h("div", { role: "option", "data-item": "", "data-key": `row-${place}`,
    style: "height: 20px" }, String(place));
  window.grown = 0;
  window.list = longList("listbox", "rows", { style: "height: 200px; overflow: auto" },
    { count, row, grown: () => grown++ });
  document.body.replaceChildren(list);
}"""
ROWS = "list.childElementCount"


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    page = functions_page(browser)
    yield page
    assert page.faults == []
    page.context.close()


def test_rows_are_made_when_the_reader_scrolls_to_them(page: Any) -> None:
    page.evaluate(LIST, 1000)
    drawn(page)
    assert page.evaluate(ROWS) < 300
    for _ in range(1000):
        if page.evaluate(ROWS) == 1000:
            break
        page.evaluate("list.scrollTop = list.scrollHeight")
        drawn(page)
    keys = page.evaluate("[...list.children].map((row) => row.dataset.key)")
    assert keys == [f"row-{place}" for place in range(1000)]
    assert page.evaluate("grown") > 0
    last = page.locator("[data-key=row-999]")
    assert last.get_attribute("aria-posinset") == "1000"
    assert last.get_attribute("aria-setsize") == "1000"


def test_keys_walk_to_rows_that_are_not_made_yet(page: Any) -> None:
    page.evaluate(LIST, 1000)
    page.evaluate("list.firstChild.focus()")
    for key, place in (("End", 999), ("k", 998), ("Home", 0), ("j", 1)):
        assert page.evaluate("(key) => walk(document.activeElement, key)", key)
        assert page.evaluate("document.activeElement.dataset.key") == f"row-{place}"
    stops = page.evaluate("[...list.children].filter((row) => row.tabIndex === 0)")
    assert len(stops) == 1


def test_a_row_is_made_where_its_key_is_asked_for(page: Any) -> None:
    page.evaluate(LIST, 1000)
    assert page.evaluate("rowWith(list, 'row-700').textContent") == "700"
    assert 700 < page.evaluate(ROWS) < 1000
    assert page.evaluate("rowWith(list, 'no row') === undefined")
    page.evaluate(LIST, 0)
    assert page.evaluate(ROWS) == 0


def test_a_pane_that_is_filled_anew_stays_where_it_is_scrolled(page: Any) -> None:
    page.evaluate("""() => {
      window.pane = h("div", { style: "height: 100px; overflow: auto" });
      document.body.append(pane);
      window.fill = () => refill(pane, h("div", { style: "height: 1000px" },
        h("button", { "data-key": "low", style: "margin-top: 500px" }, "low")));
      fill();
    }""")
    page.evaluate("pane.scrollTop = 300")
    drawn(page)
    page.evaluate("fill()")
    assert page.evaluate("pane.scrollTop") == 300
    page.evaluate("(pane.scrollTop = 400, noteScroll(pane), fill())")
    assert page.evaluate("pane.scrollTop") == 400, "before the event has come"
    page.evaluate("(scrollBack(pane), fill())")
    assert page.evaluate("pane.scrollTop") == 0
