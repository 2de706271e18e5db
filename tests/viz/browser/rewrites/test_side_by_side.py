"""Before and after beside each other: graphs, texts, and the first step of a statement tree."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import drawn
from tests.viz.browser.rewrites.support import where

BOXES = """() => [...document.querySelectorAll(".wb-rw .wb-g")].map((graph) => ({
  left: graph.getBoundingClientRect().left, top: graph.getBoundingClientRect().top,
  states: [...graph.querySelectorAll(".wb-g-node")].map((e) =>
    ["new", "gone", "changed"].find((s) => e.classList.contains(`wb-g-${s}`)) ?? "same"),
}))"""
"""Returns of each graph its place, and what became of each of its boxes."""
OUTSIDE = """() => [...document.querySelectorAll(".wb-rw .wb-g-stage")].flatMap((stage) => {
  const pane = stage.getBoundingClientRect();
  return [...stage.querySelectorAll(".wb-g-node")].filter((e) => {
    const b = e.querySelector(".wb-g-box").getBoundingClientRect();
    return b.left < pane.left || b.top < pane.top || b.right > pane.right || b.bottom > pane.bottom;
  }).map((e) => e.textContent);
})"""
"""Returns the boxes that are out of sight."""
CELLS = """() => [...document.querySelectorAll(".wb-rw-states .wb-pair-lines > span")]
  .filter((e) => e.checkVisibility())
  .map((e) => [e.className, Math.round(e.getBoundingClientRect().left), e.innerText])"""
FORM = "select[aria-label^='step as']"


@pytest.mark.parametrize(("width", "is_beside"), [(1900, True), (1400, False)])
def test_graphs_beside_each_other(page: Any, width: int, is_beside: bool) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    page.keyboard.press("j")
    page.keyboard.press("b")
    drawn(page)
    before, after = page.evaluate(BOXES)
    assert "gone" in before["states"] and "new" not in before["states"]
    assert "new" in after["states"] and "gone" not in after["states"]
    assert (before["left"] < after["left"]) == is_beside
    page.keyboard.press("j")
    assert where(page).startswith("2 of"), "it steps on in both"
    drawn(page)
    first, _ = page.evaluate(BOXES)
    assert first["states"].count("gone") >= 1
    page.select_option(FORM, label="one graph")
    drawn(page)
    (both,) = page.evaluate(BOXES)
    assert {"new", "gone"} <= set(both["states"])


def test_texts_beside_each_other(page: Any) -> None:
    page.set_viewport_size({"width": 1900, "height": 700})
    page.keyboard.press("j")
    page.select_option(FORM, label="texts")
    cells = page.evaluate(CELLS)
    marked = [row for row in cells if row[0] in ("wb-rw-minus", "wb-rw-plus")]
    assert marked and len(cells) > 2 * len(marked), "the rest of the text is there, too"
    before, after = (
        {left for kind, left, _ in cells if kind == f"wb-rw-{side}"} for side in ("minus", "plus")
    )
    assert len(before) == len(after) == 1 and before.pop() < after.pop()
    words = page.locator(".wb-rw-states .wb-rw-plus em").all_inner_texts()
    assert "fma" in words
    page.set_viewport_size({"width": 500, "height": 700})
    narrow = page.evaluate(CELLS)
    assert len({left for _, left, _ in narrow}) == 1, "one column"
    assert len(narrow) < len(cells), "what both have stands there once"


def test_a_tree_begins_with_the_tree(page: Any) -> None:
    """The first statement is fitted; the kernel that it comes from is beside it, not in its way."""
    page.click('.wb-rw-pass:has-text("statement-tree")')
    page.set_viewport_size({"width": 953, "height": 640})
    page.focus(".wb")
    page.keyboard.press("j")
    drawn(page)
    (graph,) = page.evaluate(BOXES)
    assert graph["states"] and set(graph["states"]) == {"new"}
    assert page.evaluate(OUTSIDE) == []
    page.keyboard.press("b")
    drawn(page)
    before, after = page.evaluate(BOXES)
    assert set(before["states"]) <= {"gone", "same"} and "gone" in before["states"]
    assert after["states"] == graph["states"]


def test_keys_stay_inside_when_the_form_changes(page: Any) -> None:
    page.keyboard.press("j")
    page.click(".wb-rw .wb-g-stage", position={"x": 3, "y": 30})
    for _ in range(3):
        page.keyboard.press("b")
        drawn(page)
        expect(page.locator(".wb:focus-within")).to_have_count(1)
    assert where(page).startswith("1 of")
