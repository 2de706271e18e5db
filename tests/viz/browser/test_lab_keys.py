"""No key that is pressed inside the workbench does anything to the notebook around it."""

from __future__ import annotations

import string

from tests.viz.browser.lab import LAB, Notebook

pytestmark = LAB

NAMED = (
    "Enter Escape Delete Backspace Space Home End PageUp PageDown Insert F2 "
    "ArrowUp ArrowDown ArrowLeft ArrowRight Tab"
).split()
PLAIN = [*string.ascii_lowercase, *string.digits, *"/?.,;[]-=", *NAMED]
SHIFTED = [f"Shift+{key}" for key in [*string.ascii_uppercase, *NAMED]]
# of those with Control and Meta: JupyterLab's own, without what would leave the page
HELD = [
    f"{held}+{key}"
    for held in ("Control", "Meta")
    for key in ("Enter", "a", "b", "c", "m", "s", "x", "y", "z", "Shift+c", "Shift+-", "]")
]  # fmt: skip
CELLS = """import numpy as np
from workbench import Context, Tensor, explore
a = Tensor(np.random.rand(24, 40).astype(np.float32))
marker = object()
explore(a.softmax(1))"""
PLACES = {
    "[data-key=loop-1]": [*PLAIN, *SHIFTED, *HELD],
    ".wb": [*NAMED, *HELD],
    ".wb-find": PLAIN,
    "[data-key=mode-plan]": NAMED,
    "[data-key=editor]": [*NAMED, *HELD],
}
FOCUS = """(selector) => {
  const element = document.querySelector(selector) || document.querySelector(".wb");
  element.focus();
  return element.contains(document.activeElement);
}"""


def test_keys_stay_inside(notebook: Notebook) -> None:
    notebook.cell("other = 1")
    wb = notebook.cell(CELLS).locator(".wb")
    notebook.cell("another = 2")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    page = notebook.page
    marker = notebook.python("id(marker), other")
    assert page.evaluate(
        FOCUS, ".wb"
    )  # this makes the cell the active one, as a click does
    before = notebook.state()
    for place, keys in PLACES.items():
        if place == "[data-key=editor]":
            wb.locator(".wb-code-bar >> text=edit").click()
        wb.page.locator(place).first.wait_for()
        for key in keys:
            assert page.evaluate(FOCUS, place), place
            page.keyboard.press(key)
        page.keyboard.press("Escape")
        assert notebook.state() == before, (
            f"a key pressed in {place} reached the notebook"
        )
        page.evaluate(FOCUS, ".wb")
        page.keyboard.press("1")
    assert notebook.python("id(marker), other") == marker
