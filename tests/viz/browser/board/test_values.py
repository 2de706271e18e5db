"""The pane Values before a real session: numbers, histogram and picture of the picked node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.check.test_bisect import BAD, with_rule
from tests.viz.browser.browser import FAINT, drawn
from tests.viz.browser.page.live import LivePage
from tests.viz.session.support import session_of
from workbench.ir.node.ops import Ops
from workbench.ir.rules.movement import TENSOR_RULES
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz.session.session import Session

A = np.random.default_rng(0).standard_normal((40, 300)).astype(np.float32)
A[3, 250] = np.nan


@pytest.fixture
def session(nothing_saved: Path) -> Iterator[Session]:
    x = Tensor(A)
    with session_of(explore((x * 0.5).relu() + x.sum())) as values_session:
        yield values_session


@pytest.fixture
def live(browser: Any, session: Session, tmp_path: Path) -> Iterator[LivePage]:
    with LivePage(browser, tmp_path, session) as page:
        page.answer()
        page.page.evaluate("show({ mode: 'values' })")
        page.answer("table")
        yield page


def node_of(session: Session, op: str) -> int:
    return session.record.nodes.op.index(op)


def number_at(page: Any, row: int, column: int, columns: int) -> str:
    """Return what a reader hears of a number: the grid's keys go there."""
    grid = page.locator("[data-key=values-numbers]")
    grid.focus()
    grid.press("Home")
    for key, times in (("ArrowDown", row), ("ArrowRight", column)):
        for _ in range(times):
            grid.press(key)
    words: str = page.locator(f"#values-number-{row * columns + column}").get_attribute(
        "aria-label"
    )
    return words


def test_values_of_the_picked_node(live: LivePage, session: Session) -> None:
    page = live.page
    words = page.locator(".wb-values-content [role=status]")
    expect(words).to_contain_text("12,000 values · 12,000 NaN")  # the sum has one
    node = node_of(session, "MAX")
    page.evaluate("(node) => show({ node })", node)
    (request,) = [r for r in live.answer("table") if r["do"] == "table"]
    assert request["node"] == node
    want = np.maximum(A * 0.5, 0)
    finite = want[np.isfinite(want)]
    expect(words).to_contain_text(f"12,000 values · min 0 · max {finite.max():.4g}")
    expect(words).to_contain_text("1 NaN")
    assert number_at(page, 2, 1, 102) == f"axis 0 = 2, axis 1 = 1: {want[2, 1]:g}"
    legend = page.locator(".wb-values-legend")
    expect(legend).to_contain_text("NaN")
    assert page.locator(".wb-values-bins i").count() == 16
    assert page.evaluate(FAINT) == []


def test_a_click_in_the_picture_shows_its_numbers(live: LivePage, session: Session) -> None:
    page = live.page
    page.evaluate("(node) => show({ node })", node_of(session, "MUL"))
    live.answer("table")
    text = page.locator(".wb-values-grids")
    expect(text).to_contain_text("40 × 300 values; a cell is the mean of 1 × 4")
    picture = page.locator("[data-key=values-cells]")
    picture.focus()
    picture.press("End")
    picture.press("Enter")
    (request,) = [r for r in live.answer("table") if r["do"] == "table"]
    assert request["first"] == [39, 296]
    expect(text).to_contain_text("columns 198 to 299")
    # the axes change places
    page.select_option("[data-key='rows of the picture']", label="axis 1 of 300")
    (request,) = [r for r in live.answer("table") if r["do"] == "table"]
    assert (request["rows"], request["columns"]) == ("1", "0")
    expect(text).to_contain_text("300 × 40 values")


def test_a_node_without_values_says_why(live: LivePage, session: Session) -> None:
    page = live.page
    page.evaluate("(node) => show({ node })", node_of(session, "SINK"))
    expect(page.locator(".wb-values")).to_contain_text("no values: it is not computed")
    assert "table" not in [r["do"] for r in live.answer()]
    page.click("[data-key=values-result]")
    live.answer("table")
    expect(page.locator(".wb-values")).to_contain_text("what the kernel computes")


def test_the_first_value_that_differs_is_shown_where_it_differs(
    browser: Any, nothing_saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with with_rule(TENSOR_RULES, BAD, monkeypatch):
        ex = explore(((Tensor(A) * 0.5).relu() + 1).sum(1))
        with session_of(ex) as session, LivePage(browser, tmp_path, session) as live:
            live.answer()
            page = live.page
            page.evaluate("show({ mode: 'values' })")
            live.answer("table")
            page.click("[data-key=values-check]")
            requests = live.answer("check_nodes", "table")
            (request,) = [r for r in requests if r["do"] == "table"]
            picked = session.recorder.node(request["node"])
            assert picked.op is Ops.MUL
            words = page.locator("pre.wb-values-text >> nth=0")
            expect(words).to_contain_text("is the first that differs from numpy's")
            greatest = np.unravel_index(np.nanargmax(np.abs(A)), A.shape)
            assert request["first"] == [int(i) for i in greatest]


FRAMES = """() => {
  const canvas = document.querySelector("[data-key=values-cells] canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const has = (...rgb) => {
    for (let i = 0; i < data.length; i += 4) {
      if (rgb.every((part, k) => data[i + k] === part)) return true;
    }
    return false;
  };
  return { light: has(230, 237, 243), dark: has(17, 17, 17) };
}"""
"""Whether the picture frames its ends in the light colour of a dark page, or in the dark one of paper."""


def test_paper_has_the_picture_of_a_light_page(
    browser: Any, session: Session, tmp_path: Path
) -> None:
    with LivePage(browser, tmp_path, session, dark=True) as live:
        live.answer()
        live.page.evaluate("(node) => show({ mode: 'values', node })", node_of(session, "MUL"))
        live.answer("table")
        drawn(live.page)
        screen, paper = {"light": True, "dark": False}, {"light": False, "dark": True}
        for event, frames in {"beforeprint": paper, "afterprint": screen}.items():
            live.page.evaluate("(event) => void dispatchEvent(new Event(event))", event)
            assert live.page.evaluate(FRAMES) == frames
