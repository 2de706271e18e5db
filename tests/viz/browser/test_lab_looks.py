"""Light and dark, wide and narrow: nothing is cut off, nothing overlaps, all can be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import LONG
from tests.viz.browser.browser import FAINT, NODES_IN_SIGHT, drawn
from tests.viz.browser.lab import LAB, Notebook

pytestmark = LAB

SOURCE = """import numpy as np
from workbench import Tensor, explore
a, b = (Tensor(np.random.rand(48, 48).astype(np.float32)) for _ in range(2))
explore(a.softmax(1) @ b)"""
BROKEN = """(wb) => {
  const wrong = [], box = wb.getBoundingClientRect();
  if (wb.scrollWidth > wb.clientWidth) wrong.push(`${wb.scrollWidth} wide in ${wb.clientWidth}`);
  // The part of an element that panes which scroll leave in sight.
  const shown = (e) => {
    let { left, right, top, bottom } = e.getBoundingClientRect();
    for (let p = e.parentElement; p && wb.contains(p); p = p.parentElement) {
      if (getComputedStyle(p).overflow === "visible") continue;
      const c = p.getBoundingClientRect();
      [left, right] = [Math.max(left, c.left), Math.min(right, c.right)];
      [top, bottom] = [Math.max(top, c.top), Math.min(bottom, c.bottom)];
    }
    return { left, right, top, bottom };
  };
  const is_seen = (e) => {
    const b = shown(e);
    if (b.right <= b.left || b.bottom <= b.top) return false;
    const at = document.elementFromPoint((b.left + b.right) / 2, (b.top + b.bottom) / 2);
    return getComputedStyle(e).visibility === "visible" && (e.contains(at) || at?.contains(e));
  };
  const parts = [...wb.querySelectorAll("button, select, input, .wb-tab, .wb-block")].filter(is_seen);
  for (const e of parts) {
    const b = e.getBoundingClientRect(), mine = shown(e), name = `${e.className} ${e.dataset.key} ${e.innerText}`;
    if (e.matches(".wb-button, .wb-tab") && e.scrollWidth > e.clientWidth + 1) wrong.push(`cut: ${name}`);
    if (!e.closest(".wb-strip") && (b.left < box.left - 1 || b.right > box.right + 1)) wrong.push(`outside: ${name}`);
    for (const f of parts) {
      const c = shown(f);
      const x = Math.min(mine.right, c.right) - Math.max(mine.left, c.left);
      const y = Math.min(mine.bottom, c.bottom) - Math.max(mine.top, c.top);
      if (e !== f && !e.contains(f) && !f.contains(e) && x > 1 && y > 1)
        wrong.push(`overlap: ${name} and ${f.className} ${f.dataset.key}`);
    }
  }
  return wrong;
}"""


@pytest.mark.parametrize("width", [1400, 800])
def test_looks(notebook: Notebook, tmp_path: Path, width: int) -> None:
    """In a short run the wide page is light and the narrow one dark."""
    page = notebook.page
    wb = notebook.cell(SOURCE).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for(state="attached")
    for dark in (True, False) if LONG else (width == 800,):
        notebook.looks(width, dark)
        for key in ("1", "2", "3"):
            show_mode(wb, key)
            shot = tmp_path / f"{width}-{'dark' if dark else 'light'}-{key}.png"
            wb.screenshot(path=shot)
            assert wb.evaluate(BROKEN) == [], shot
            assert page.evaluate(FAINT) == [], shot
            assert shot.stat().st_size > 20_000, "there is a picture"


def show_mode(wb: Any, key: str) -> None:
    """Show a mode with something in it that is picked."""
    mode = wb.locator(".wb-modes .wb-tab").nth(int(key))
    while mode.get_attribute("aria-selected") != "true":
        wb.press(key)  # JupyterLab may take the focus away once, as the cell ends
    if key == "3":
        wb.locator(".wb-plan-list [data-item]").first.click()
    elif key == "2":
        wb.locator(".wb-rw-pass:has-text('decompose')").click()
        wb.page.keyboard.press("j")
        graph = wb.locator(".wb-switcher button:has-text('Graph')")
        if graph.is_visible():  # panes stand one below the other
            graph.click()
        wb.page.mouse.click(*wb.page.evaluate(NODES_IN_SIGHT, ".wb-g-new")[0])
        wb.locator(".wb-rw-node").wait_for()
    else:
        wb.locator(".wb-loops [data-item]").first.click()


TAB = """() => {
  const tab = document.querySelector(".jp-LinkedOutputView").getBoundingClientRect();
  const view = document.querySelector(".jp-LinkedOutputView .wb");
  const { top, bottom, height } = view.getBoundingClientRect();
  const graph = [...view.querySelectorAll(".wb-g-stage")].find((e) => e.checkVisibility());
  return {
    tab: tab.height, page: height, above: top - tab.top, below: tab.bottom - bottom,
    graph: graph?.getBoundingClientRect().height ?? 0,
    scrolls: [...document.querySelectorAll(".jp-LinkedOutputView, .jp-LinkedOutputView .jp-OutputArea")]
      .filter((e) => e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY !== "visible").length,
  };
}"""


def test_a_view_of_its_own_has_all_of_the_tab(notebook: Notebook) -> None:
    """JupyterLab's "Create New View for Output", with JupyterLab's settings: a tab below the notebook,
    half of the window high; also where the window grows."""
    page = notebook.page
    cell = notebook.cell(SOURCE, layout="plan")
    cell.locator(".wb .wb-g-node").first.wait_for(state="attached")
    notebook.looks(1400)
    page.set_viewport_size({"width": 1400, "height": 1000})
    page.evaluate(
        """() => {
          const { content } = jupyterapp.shell.currentWidget;
          content.activeCellIndex = content.widgets.findIndex((w) => w.node.querySelector(".wb"));
          return jupyterapp.commands.execute("notebook:create-output-view");
        }"""
    )
    view = page.locator(".jp-LinkedOutputView .wb")
    view.locator(".wb-g-node").first.wait_for(state="attached")
    page.wait_for_function(f"({TAB})().page > 200")
    view.focus()
    page.keyboard.press("3")
    page.wait_for_function(f"({TAB})().graph > 100")
    has_all_of_the_tab(page)
    height = page.evaluate(TAB)["page"]
    page.set_viewport_size({"width": 1400, "height": 1400})
    page.wait_for_function(f"({TAB})().page > {height + 100}")
    has_all_of_the_tab(page)


def has_all_of_the_tab(page: Any) -> None:
    drawn(page)
    seen = page.evaluate(TAB)
    assert seen["scrolls"] == 0, seen
    assert 0 <= seen["above"] < 16 and 0 <= seen["below"] < 24, seen
    assert seen["page"] > 0.93 * seen["tab"]
    # below it are the film, the memory and the passes
    assert seen["graph"] > 0.4 * seen["tab"], "the graph has what the tab gives"
