"""What explorations cost a notebook: twenty of them in a real JupyterLab, against one.

    python bench/notebook.py [checkout ..]

Headless Chromium, no GPU; several checkouts are measured in turns, each in a JupyterLab of its own.
`work` is the time that the page's thread computed (DevTools, `TaskDuration` by the thread's clock),
which depends little on what else the machine does; `browser` is the processor time of all its
processes. A further exploration is one of a small kernel, with all that is measured unasked; beside
it stands a cell that prints, which is JupyterLab's own share. `file` is what it adds to the saved
notebook. Then a key in a cell, a switch to another tab and back, and a turn of the wheel over the
notebook: with one exploration and with twenty. Budgets: a further exploration 0.5 s of the browser
and 150 kB; at most 50 ms more for each of the three.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the tests know how to drive a JupyterLab

from tests.viz.browser.browser import chromium, new_page  # noqa: E402
from tests.viz.browser.lab import Notebook, server  # noqa: E402

MANY = 20
ROUNDS = int(os.environ.get("ROUNDS", "2"))
TURNS = 9
SET_UP = """import os
os.environ["LIVE"] = "2"  # before the import: a cell has a context of its own
from workbench import Tensor, explore"""
EXPLORATION = "explore((Tensor.empty(64, {size}) @ Tensor.empty({size}, 64)).relu())"
QUIET_MS = 20
"""Work of a page, in half a second, that has nothing left to do."""
FRAMES = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"""
OTHER_TAB = """async () => {
  const { shell, commands } = jupyterapp;
  window.own = shell.currentWidget;
  window.other ??= await commands.execute("fileeditor:create-new", { fileExt: "txt" });
  shell.activateById(own.id);
}"""
SAVE = """async () => {
  const { context } = jupyterapp.shell.currentWidget;
  await context.save();
}"""
EDIT_LAST = """() => {
  const { content } = own;
  content.activeCellIndex = content.widgets.length - 1;
  content.mode = "edit";
  content.activeCell.editor.focus();
}"""
DRAWN = """() => [...document.querySelectorAll(".wb")].at(-1)?.querySelector("[role=treeitem]")"""
CELLS = """() => jupyterapp.shell.currentWidget.content.model.cells.length"""


class Meter:
    """What a page has computed so far."""

    def __init__(self, page: Any, browser: Any):
        self.page = page
        self._page_tools = page.context.new_cdp_session(page)
        self._page_tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._browser_tools = browser.new_browser_cdp_session()

    def metrics(self) -> dict[str, float]:
        """Return DevTools' metrics of the page."""
        rows = self._page_tools.send("Performance.getMetrics")["metrics"]
        return {row["name"]: row["value"] for row in rows}

    def work_ms(self) -> float:
        """Return the milliseconds that the page's thread has computed."""
        return 1e3 * self.metrics()["TaskDuration"]

    def browser_s(self) -> float:
        """Return the processor seconds of all processes of the browser."""
        listed = self._browser_tools.send("SystemInfo.getProcessInfo")["processInfo"]
        return float(sum(row["cpuTime"] for row in listed))

    def quiet(self) -> None:
        """Wait until the page has nothing left to do."""
        before_ms = self.work_ms()
        for _ in range(60):
            self.page.wait_for_timeout(500)
            now_ms = self.work_ms()
            if now_ms - before_ms < QUIET_MS:
                return
            before_ms = now_ms

    def of(self, act: Callable[[], object]) -> float:
        """Return the milliseconds of work of an action, with the two frames after it."""
        before_ms = self.work_ms()
        act()
        self.page.evaluate(FRAMES)
        return self.work_ms() - before_ms


def main() -> int:
    checkouts = [Path(text).resolve() for text in sys.argv[1:]] or [ROOT]
    rows: dict[Path, list[dict[str, float]]] = {checkout: [] for checkout in checkouts}
    for _ in range(ROUNDS):
        for checkout in checkouts:
            rows[checkout].append(measured(checkout))
            _print(checkout.name, rows[checkout][-1])
    for checkout in checkouts:
        names = rows[checkout][0]
        _print(
            f"{checkout.name}, median of {ROUNDS}",
            {name: median(row[name] for row in rows[checkout]) for name in names},
        )
    return 0


def _print(title: str, row: dict[str, float]) -> None:
    print(f"{title}\n" + "\n".join(f"  {name:44}{value:12,.2f}" for name, value in row.items()))
    sys.stdout.flush()


def measured(checkout: Path) -> dict[str, float]:
    """Return the figures of a checkout, by what they are of."""
    os.environ["PYTHONPATH"] = str(checkout)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        with server(Path(folder)) as lab:
            page = new_page(browser, viewport={"width": 1400, "height": 900})
            notebook = Notebook(page, lab)
            notebook.open()
            notebook.cell(SET_UP)
            where = notebook.python("__import__('workbench').__file__").strip("'")
            assert Path(where).is_relative_to(checkout), where
            return figures(notebook, Meter(page, browser))


def figures(notebook: Notebook, meter: Meter) -> dict[str, float]:
    """Return the figures of a new notebook."""
    row: dict[str, float] = {}
    add(notebook, meter, 64)
    one = state(notebook, meter)
    few = acts(notebook, meter)
    start_ms, start_s = meter.work_ms(), meter.browser_s()
    for place in range(1, MANY):
        add(notebook, meter, 64 + 4 * place)
    work_ms, browser_s = meter.work_ms() - start_ms, meter.browser_s() - start_s
    many = state(notebook, meter)
    row["a further exploration, work ms"] = work_ms / (MANY - 1)
    row["a further exploration, browser s"] = browser_s / (MANY - 1)
    row["a further exploration, file kB"] = (many["bytes"] - one["bytes"]) / (MANY - 1) / 1e3
    row["elements with 1"], row["elements with 20"] = one["elements"], many["elements"]
    row["heap MB with 1"], row["heap MB with 20"] = one["heap"], many["heap"]
    for name, ms in acts(notebook, meter).items():
        row[f"{name}, ms with 1"], row[f"{name}, ms with 20"] = few[name], ms
    start_ms, start_s = meter.work_ms(), meter.browser_s()
    for place in range(5):
        notebook.cell(f"print({place})")
        meter.quiet()
    row["a cell that prints, work ms"] = (meter.work_ms() - start_ms) / 5
    row["a cell that prints, browser s"] = (meter.browser_s() - start_s) / 5
    return row


def add(notebook: Notebook, meter: Meter, size: int) -> None:
    """Run a cell with an exploration; wait until Python and the page have nothing left to do."""
    notebook.cell(EXPLORATION.format(size=size), layout="")
    notebook.page.wait_for_function(DRAWN)
    meter.quiet()
    notebook.settle()
    meter.quiet()


def state(notebook: Notebook, meter: Meter) -> dict[str, float]:
    """Return the size of the saved notebook, and what the page holds."""
    notebook.page.evaluate(SAVE)
    path = notebook.lab.folder / notebook.name
    elements = notebook.page.evaluate("document.querySelectorAll('*').length")
    heap = meter.metrics()["JSHeapUsedSize"] / 1e6
    meter.quiet()
    return {"bytes": float(path.stat().st_size), "elements": float(elements), "heap": heap}


def acts(notebook: Notebook, meter: Meter) -> dict[str, float]:
    """Return the work of what a reader does, each the median of some."""
    page: Any = notebook.page
    page.evaluate(OTHER_TAB)
    meter.quiet()
    ids = page.evaluate("[own.id, other.id]")

    def switch(tab: str) -> None:
        page.evaluate("(id) => jupyterapp.shell.activateById(id)", tab)

    away, back = [], []
    for _ in range(TURNS):
        away.append(meter.of(lambda: switch(ids[1])))
        back.append(meter.of(lambda: switch(ids[0])))
    meter.quiet()
    notebook.cell("'typed'", wait=True)
    page.evaluate(EDIT_LAST)
    meter.quiet()
    typing = [meter.of(lambda: page.keyboard.press("x")) for _ in range(3 * TURNS)]
    page.keyboard.press("Escape")
    box = page.locator(".jp-WindowedPanel-outer:visible").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] / 2)  # beside the widgets
    meter.quiet()
    turns = [meter.of(lambda: page.mouse.wheel(0, -300)) for _ in range(TURNS)]
    turns += [meter.of(lambda: page.mouse.wheel(0, 300)) for _ in range(TURNS)]
    meter.quiet()
    last = page.evaluate(CELLS) - 1
    page.evaluate("(at) => own.content.model.sharedModel.deleteCell(at)", last)
    return {
        "to another tab": median(away), "back to the notebook": median(back),
        "a key": median(typing), "a turn of the wheel": median(turns),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
