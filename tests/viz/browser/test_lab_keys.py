"""No key that is pressed inside the workbench does anything to the notebook around it, but saving."""

from __future__ import annotations

import string
from typing import Any

from tests.support import LONG
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
SHARES = 1 if LONG else 3
"""A short run presses a third of the keys in each place, in the next place the next third;
page/test_keys.py has more of them."""
FOCUS = """(selector) => {
  const element = document.querySelector(selector) || document.querySelector(".wb");
  element.focus();
  return element.contains(document.activeElement);
}"""
ON_OPT = "document.activeElement.matches('[data-opt]')"


def test_keys_stay_inside(notebook: Notebook) -> None:
    notebook.cell("other = 1")
    wb = notebook.cell(CELLS).locator(".wb")
    notebook.cell("another = 2")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    page = notebook.page
    marker = notebook.python("id(marker), other")
    assert page.evaluate(FOCUS, ".wb")  # this makes the cell the active one, as a click does
    before = notebook.state()
    for number, (place, keys) in enumerate(PLACES.items()):
        if place == "[data-key=editor]":
            wb.locator(".wb-code-bar >> text=edit").click()
        wb.page.locator(place).first.wait_for()
        for key in keys[number % SHARES :: SHARES]:
            assert page.evaluate(FOCUS, place), place
            page.keyboard.press(key)
        page.keyboard.press("Escape")
        assert notebook.state() == before, f"a key pressed in {place} reached the notebook"
        page.evaluate(FOCUS, ".wb")
        page.keyboard.press("1")
        if (reset := wb.locator("[data-key=reset-layout]")).count():
            reset.click()  # a key has closed a pane, or enlarged it
    assert notebook.python("id(marker), other") == marker


def test_a_save_from_inside_saves_the_notebook(notebook: Notebook) -> None:
    """Opts are found, applied, timed and checked by keys, and Ctrl+S is the notebook's, with the
    focus in the widget or in a field of it."""
    wb = notebook.cell(CELLS.replace("24, 40", "48, 56")).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    page = notebook.page
    page.evaluate(FOCUS, ".wb")
    page.keyboard.press("/")
    page.keyboard.type("UPCAST")
    page.keyboard.press("Enter")
    page.wait_for_function(ON_OPT)
    page.keyboard.press("a")
    chosen = "[data-key^=variant-][aria-selected=true]:has-text('UPCAST')"
    wb.locator(chosen).wait_for(state="attached")
    page.wait_for_function(ON_OPT)
    page.keyboard.press("c")
    wb.locator(f"{chosen}:has-text('✓'), .wb-notice:has-text('✓')").first.wait_for()
    file = notebook.lab.folder / notebook.name
    for place in (".wb", ".wb-find"):
        typed = f"{place[4:] or 'nothing'} = 1"
        notebook.cell(typed)
        assert typed not in file.read_text()
        assert page.evaluate(FOCUS, place)
        with page.expect_response(is_checkpoint):  # the last that a save asks for
            page.keyboard.press("Control+s")
        assert typed in file.read_text()
        notebook.settle()
    assert "explore(a.softmax(1))" in file.read_text()


def is_checkpoint(response: Any) -> bool:
    return "/checkpoints" in response.url and response.request.method == "POST"
