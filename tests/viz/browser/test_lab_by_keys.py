"""A reader without a mouse in a real JupyterLab: the board and its layouts, comparing, values, choices
by hand, rules, the film and the tour. After each key the focus is inside and has a ring that is in sight,
and no key reaches the notebook around. (The three main tasks by keys are in test_lab_uses.py.)"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import drawn
from tests.viz.browser.lab import LAB, Notebook
from tests.viz.browser.test_lab_uses import enter_by_keys

pytestmark = LAB

SOURCE = """import numpy as np
from workbench import Tensor, explore
a, b = (Tensor(np.random.rand({n}, {n}).astype(np.float32)) for _ in range(2))
explore(((a * 0.25 + 1) @ b).softmax(1))"""
LOST = """() => {
  const e = document.activeElement, wb = e?.closest(".wb");
  const name = `${e?.localName} ${e?.className} ${e?.dataset?.key ?? ""}`;
  if (!wb) return `outside: ${name}`;
  const { outlineStyle, outlineWidth } = getComputedStyle(e);
  if (outlineStyle === "none" || parseFloat(outlineWidth) < 1) return `without a ring: ${name}`;
  let { left, right, top, bottom } = e.getBoundingClientRect();
  for (let at = e.parentElement; at; at = at.parentElement) {
    const isScroller = wb.contains(at) || at.matches(".jp-WindowedPanel-outer");
    if (!isScroller || getComputedStyle(at).overflow === "visible" || !at.offsetHeight) continue;
    const c = at.getBoundingClientRect();
    [left, right] = [Math.max(left, c.left), Math.min(right, c.right)];
    [top, bottom] = [Math.max(top, c.top), Math.min(bottom, c.bottom)];
  }
  if (right - left < 1 || bottom - top < 1) return `out of sight: ${name}`;
  return "";
}"""
"""Returns what is wrong with the focus."""
IS_BEFORE = """(selector) => {
  const seen = [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
  return seen.some((e) => document.activeElement.compareDocumentPosition(e) & 2);
}"""
FITS = "(selector) => document.activeElement.matches(selector)"
PANES = """() => [...document.querySelectorAll(".wb [data-pane]")].filter((e) => e.checkVisibility())
  .map((e) => e.dataset.pane)"""
MOST_STOPS = 150
MOST_FRAMES = 30


class Reader:
    """Presses keys in a workbench, and looks where the focus is after each."""

    def __init__(self, wb: Any):
        self.wb, self.page = wb, wb.page

    def press(self, keys: str) -> None:
        for key in keys.split():
            self.page.keyboard.press(key)
            self.is_there(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.is_there(text)

    def is_there(self, done: str) -> None:
        """A grid has its size some frames after it is made, on a busy machine later; a focus that is lost
        stays so."""
        for _ in range(MOST_FRAMES):
            if not self.page.evaluate(LOST):
                return
            drawn(self.page)
        assert self.page.evaluate(LOST) == "", f"after {done}"

    def tab_to(self, selector: str) -> None:
        """Press Tab, or Shift+Tab where it is before, until what fits the selector has the focus."""
        self.wb.locator(selector).locator("visible=true").first.wait_for()
        key = "Shift+Tab" if self.page.evaluate(IS_BEFORE, selector) else "Tab"
        for _ in range(MOST_STOPS):
            if self.page.evaluate(FITS, selector):
                return
            self.press(key)
        raise AssertionError(f"{key} does not lead to {selector}")

    def act(self, selector: str) -> None:
        self.tab_to(selector)
        self.press("Enter")

    def choose(self, selector: str, key: str) -> None:
        """Choose in a list by a letter, or an arrow, without opening it; the list, or the one in its
        place, keeps the focus."""
        self.tab_to(selector)
        self.press(key)
        assert self.page.evaluate(FITS, "select"), f"after {key} in {selector}"

    def turn_to(self, layout: str, key: str) -> None:
        """Show a layout by its number, or by its first letter in the list of more layouts."""
        if key.isdigit():
            self.press(key)
        else:
            self.choose("[data-key=more-layouts]", key)
        self.shows(layout)

    def shows(self, layout: str) -> None:
        expect(self.wb).to_have_attribute("data-mode", layout)

    def sees(self, selector: str, done: str) -> None:
        """Wait for what an answer brings, which takes the focus nowhere."""
        self.wb.locator(selector).first.wait_for()
        self.is_there(done)

    @property
    def panes(self) -> list[str]:
        listed: list[str] = self.page.evaluate(PANES)
        return listed


@pytest.fixture
def reader(notebook: Notebook) -> Iterator[Reader]:
    """Inside the workbench of a cell, by Tab; the notebook is as it was in the end."""
    notebook.looks(1400)
    notebook.cell("other = 1")
    wb = notebook.cell(SOURCE.format(n=24)).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for(state="attached")
    notebook.settle()
    enter_by_keys(wb)
    before = notebook.state()
    reader = Reader(wb)
    yield reader
    assert notebook.state() == before, "a key reached the notebook"


def test_panes_are_added_chosen_moved_enlarged_and_closed(reader: Reader) -> None:
    reader.turn_to("board", "0")
    first = reader.panes
    reader.tab_to("[data-pane=opts] [data-item]")
    reader.press("|")
    (added,) = set(reader.panes) - set(first)
    reader.choose(f"[data-key=choose-{added}]", "m")
    expect(reader.wb.locator("[data-pane=memory]")).to_be_visible()
    reader.choose("[data-key=choose-memory]", "Home")  # the graph is there: both change places
    places = reader.panes
    assert set(places) == {*first, "memory"}
    reader.tab_to("[data-pane=code] [data-item]")
    reader.press("m")
    assert reader.panes == ["code"]
    reader.press("m _")
    assert len(reader.panes) == len(places) + 1
    reader.press("Shift+X")
    assert "code" not in reader.panes
    reader.tab_to("[role=separator]")
    reader.press("ArrowRight ArrowRight Home")
    reader.act("[data-key=reset-layout]")
    assert reader.panes == first


def test_two_variants_are_made_and_compared(reader: Reader) -> None:
    wb = reader.wb
    reader.press("1 /")
    reader.type("UPCAST")
    reader.press("Enter a")
    reader.sees("[role=treeitem][aria-selected=true]:has-text('UPCAST')", "the new variant")
    reader.turn_to("compare", "c")
    wb.locator(".wb-compare thead").first.wait_for()
    reader.act("[data-key=compare-all]")
    reader.choose("[data-key='device beside']", "ArrowDown")
    expect(wb.locator(".wb-compare thead").first).to_contain_text(" on ")
    reader.is_there("another device")
    reader.tab_to("[data-pane='loops@'] [data-item]")
    reader.press("j k Enter")
    reader.tab_to("[data-pane='code@'] [data-item]")
    reader.press("j Enter")


def test_values_are_walked(reader: Reader) -> None:
    wb = reader.wb
    reader.turn_to("values", "v")
    reader.tab_to("[data-key=values-cells]")
    reader.press("ArrowRight ArrowDown End Enter")
    reader.tab_to("[data-key=values-numbers]")
    reader.press("ArrowRight ArrowDown Home")
    reader.act("[data-key=values-check]")
    reader.sees("pre.wb-values-text:has-text('numpy')", "the comparison")
    reader.turn_to("accesses", "a")
    reader.act("[data-key=accesses-next]")
    reader.choose("[data-key='loop, lane or warp']", "i")
    expect(wb.locator(".wb-accesses-step").first).to_contain_text("instruction")
    reader.is_there("a warp")


def test_a_plan_is_chosen_by_hand_filmed_and_undone(reader: Reader) -> None:
    wb = reader.wb
    reader.turn_to("plan", "3")
    reader.press("s j j k s")
    reader.tab_to(".wb-plan-side input[type=checkbox]")  # stored only
    reader.press("Space")
    reader.tab_to("[data-key^=decision-]")
    for _ in range(40):
        if " sum " in reader.page.evaluate("document.activeElement.innerText"):
            break
        reader.press("j")
    reader.press("Enter")
    reader.act("[data-key=offers]")
    reader.sees(".wb-plan-offers li", "the offers")
    reader.act(".wb-plan-offers [data-key^=offer-]")
    reader.sees(".wb-plan-before", "another plan")
    reader.act("[data-key=undo-all]")
    wb.locator("[data-key=undo-all]").wait_for(state="detached")
    reader.is_there("the undone choice")


def test_a_rule_is_typed_and_the_tour_taken(reader: Reader) -> None:
    wb = reader.wb
    reader.turn_to("rules", "5")
    reader.tab_to("[data-key=typed-rule]")
    reader.type("x * 2 -> x + x")
    reader.press("Enter")
    reader.sees(".wb-rules-outcome code", "the rule was tried")
    reader.press("Escape ?")
    reader.act("[data-key=tour]")
    for step in range(1, 7):
        expect(wb.locator(".wb-tour b")).to_have_text(re.compile(f"{step} of 6"))
        reader.press("ArrowRight")
    expect(wb.locator(".wb-tour")).to_be_hidden()
    reader.is_there("the end of the tour")
    reader.shows("rules")
