"""Below a cell of four lines, in JupyterLab as it comes and beside its file browser, all that each step
needs is in sight: opts, times, edited code, rewrites, decisions, progress and its end. Where there is
little room panes stand in one column, and a switcher leads to each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import drawn
from tests.viz.browser.lab import LAB, Notebook
from tests.viz.browser.test_lab_trouble import PATIENT

pytestmark = LAB

CELL = """import numpy as np
from workbench import Tensor, explore
a, b = (Tensor(np.random.rand({n}, {n}).astype(np.float32)) for _ in range(2))
explore(a.softmax(1) @ b)"""
MORE = "more = {}"
WRITE = """(source) => {
  const { content } = jupyterapp.shell.currentWidget, shared = content.model.sharedModel;
  if (shared.cells.at(-1)?.source !== "") shared.insertCell(shared.cells.length, { cell_type: "code" });
  shared.cells.at(-1).setSource(source);
  content.deselectAll();
  content.activeCellIndex = shared.cells.length - 1;
  content.mode = "edit";
}"""
"""Writes a cell at the end, with the caret in it."""
TO_THE_TOP = """() => {
  const { content } = jupyterapp.shell.currentWidget;
  const scroller = content.node.querySelector(".jp-WindowedPanel-outer");
  const cell = document.querySelector(".jp-Cell:has(.wb)");
  scroller.scrollTop += cell.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
}"""
OUT_OF_SIGHT = """(selectors) => {
  const notebook = jupyterapp.shell.currentWidget.content.node.getBoundingClientRect();
  const isSeen = (e) => {
    const b = e.getBoundingClientRect();
    const [x, y] = [b.x + Math.min(b.width / 2, 30), b.y + Math.min(b.height / 2, 12)];
    const at = document.elementFromPoint(x, y);
    const isInside = b.top >= notebook.top && b.bottom <= notebook.bottom;
    return isInside && at?.closest(".wb") && (e.contains(at) || at.contains(e));
  };
  return selectors.filter((each) => ![...document.querySelectorAll(`.wb ${each}`)].some(isSeen));
}"""
"""Returns those of some selectors of which no element is in sight, whole from top to bottom."""
OPTS = [".wb-offer[data-opt]", ".wb-offer [data-key^=apply]", "[data-key=time]"]
STEPS = [
    ".wb-rw-pass", "[data-key=step-back]", "[data-key=step-next]", ".wb-rw-at",
    ".wb-g-stage .wb-g-new",
]  # fmt: skip
SOURCE = [".wb-code-body .wb-line", ".wb-code-bar [data-key=edit]"]
NEEDED = {
    "board": [*OPTS, *STEPS, *SOURCE],
    "tune": [
        *OPTS, *SOURCE, "[data-key=check]", "[data-key=search]", ".wb-loops [data-item]",
        ".wb-results [role=treeitem]",
    ],
    "plan": [
        "[data-key=film-play]", "[data-key=film-next]", ".wb-player-steps", "[data-key=time]",
        ".wb-plan .wb-g-node", ".wb-plan-detail", ".wb-plan-list [data-item]",
    ],
    "rewrites": [*STEPS, ".wb-rule-head", "[data-key=time]"],
}  # fmt: skip
"""By layout: what a step of the work in it needs."""
EDITED = [".wb-editor-box", "[data-key=run-edit]"]
RUNNING = [".wb-notice progress", ".wb-notices [data-key=Stop]"]


@pytest.fixture
def beside_files(notebook: Notebook) -> Iterator[Notebook]:
    """The notebook beside the file browser, as JupyterLab shows it at first."""
    notebook.page.evaluate("jupyterapp.shell.expandLeft()")
    yield notebook
    notebook.page.evaluate("jupyterapp.shell.collapseLeft()")
    notebook.looks()


def written(notebook: Notebook, n: int) -> Any:
    """Run the cell by Shift+Enter in it; return its workbench as soon as that is complete."""
    page = notebook.page
    page.evaluate(WRITE, CELL.format(n=n))
    page.locator(".jp-mod-active .cm-content").focus()
    page.keyboard.press("Shift+Enter")
    wb = page.locator(".wb")
    wb.locator(".wb-header").wait_for(state="attached")
    notebook.ready()
    notebook.settle()
    return wb


def show(wb: Any, layout: str) -> None:
    wb.evaluate("(wb, layout) => wb.querySelector(`[data-key=mode-${layout}]`).click()", layout)
    expect(wb).to_have_attribute("data-mode", layout)
    drawn(wb.page)


def test_what_each_step_needs_is_in_sight(beside_files: Notebook, tmp_path: Path) -> None:
    """As JupyterLab leaves it, and with the top of the cell at that of the notebook."""
    notebook, page = beside_files, beside_files.page
    notebook.looks()
    notebook.python(f"exec({PATIENT!r}, {{}})")  # no cell, which would scroll the notebook
    wb = written(notebook, 40)
    missing = {}

    def look(name: str, selectors: list[str]) -> None:
        drawn(page)
        page.screenshot(path=tmp_path / f"{name}.png")
        if out_of_sight := page.evaluate(OUT_OF_SIGHT, selectors):
            missing[name] = out_of_sight

    for place in ("left", "top"):
        if place == "top":
            page.evaluate(TO_THE_TOP)
        for layout, selectors in NEEDED.items():
            show(wb, layout)
            if place == "left" and layout == "board":
                wb.locator("[data-key=step-next]").click()
            look(f"{place}-{layout}", selectors)
            if layout in ("board", "tune"):
                wb.locator(".wb-code-bar [data-key=edit]").click()
                look(f"{place}-{layout}-edit", EDITED)
                wb.locator("[data-key=Cancel]").click()
    show(wb, "tune")
    wb.locator("[data-key=search]").click()
    wb.locator(RUNNING[1]).wait_for()
    for layout in NEEDED:
        show(wb, layout)
        look(f"running-{layout}", RUNNING)
    wb.locator(RUNNING[1]).click()
    notebook.python("__import__('unittest.mock').mock.patch.stopall()")
    assert missing == {}
