"""The widget in a real Notebook 7: an exploration opens, is stepped through, and an opt is applied and
timed there."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

from tests.viz.browser.browser import new_page
from tests.viz.browser.lab import IDLE, POLL_MS, SPREAD, UP_WITHIN_S, server

SOURCE = """import numpy as np
from workbench import Tensor, explore
a, b = (Tensor(np.random.rand(24, 24).astype(np.float32)) for _ in range(2))
explore(a.softmax(1) @ b)"""
OWN_FAULT = "(reading 'schema')"
OWN_SCRIPT = "/static/notebook/notebook_core."
"""What Notebook raises by itself, also with an empty notebook and no workbench: its shortcuts read
settings that are not there yet."""
CELLS = "jupyterapp.shell.currentWidget.content.model.cells.length"


@pytest.mark.timeout(4 * UP_WITHIN_S)
def test_it_works_in_notebook_7(browser: Any, tmp_path: Path) -> None:
    if find_spec("notebook") is None:
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing("Notebook 7 is not installed: pip install notebook")
    page = new_page(browser, viewport={"width": 1400, "height": 900})
    own: list[str] = []
    page.on("pageerror", lambda error: own.append(str(error)) if is_its_own(error) else None)
    with server(tmp_path, "notebook") as notebook:
        spec = {"name": "python3", "display_name": "Python 3"}
        content = new_notebook(cells=[new_code_cell(SOURCE)], metadata={"kernelspec": spec})
        nbformat.write(content, notebook.folder / "test.ipynb")
        page.goto(f"{notebook.url}notebooks/test.ipynb?token=t", timeout=UP_WITHIN_S * 1000)
        page.wait_for_function(IDLE, timeout=UP_WITHIN_S * 1000, polling=POLL_MS)
        page.locator(".jp-CodeCell .cm-content").first.focus()
        page.keyboard.press("Shift+Enter")
        wb = page.locator(".wb")
        wb.locator("[data-key=mode-tune]").wait_for()
        expect(wb).to_have_attribute("data-theme", "light")
        is_stepped_through(wb)
        is_tuned(wb)
        cells = page.evaluate(CELLS)
        wb.focus()
        for key in ("b", "d", "d", "Escape", "Shift+Enter"):
            page.keyboard.press(key)
        assert page.evaluate(CELLS) == cells, "a key reached the notebook"
        box = wb.bounding_box()
        assert box["height"] <= 900 and box["x"] + box["width"] <= 1400
    assert page.faults == own
    page.context.close()


def is_its_own(error: Any) -> bool:
    """Whether each script that an error went through is Notebook's."""
    calls = [call for call in (error.stack or "").split("\n") if "://" in call]
    return OWN_FAULT in str(error) and bool(calls) and all(OWN_SCRIPT in call for call in calls)


def is_stepped_through(wb: Any) -> None:
    wb.locator("[data-key=mode-rewrites]").click()
    wb.locator(".wb-rw-pass:has-text('decide')").click()
    wb.focus()
    for step in (1, 2):
        wb.page.keyboard.press("j")
        expect(wb.locator(".wb-rw-at")).to_have_text(re.compile(f"^{step} of"))


def is_tuned(wb: Any) -> None:
    """The first opt is applied, and its variant timed."""
    wb.locator("[data-key=mode-tune]").click()
    wb.locator(".wb-offer [data-key^=apply]").first.click()
    chosen = wb.locator(".wb-variant[aria-selected=true]:not([data-key=variant-0])")
    chosen.wait_for()
    wb.locator("[data-key=time]").click()
    chosen.locator(SPREAD).wait_for()
