"""The page and its Python session: busy, run again, restarted, saved; and many pages at once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import expect

from tests.support import eventually
from tests.viz.browser.browser import leave, new_page, opened
from tests.viz.browser.lab import KERNEL, LAB, POLL_MS, SPREAD, UP_WITHIN_S, Notebook

pytestmark = LAB

SOURCE = """import numpy as np
from workbench import Tensor, explore
a = Tensor(np.ones(({n}, 24), np.float32))
ex = explore(a.softmax(1))
ex"""
FIVE = """import numpy as np
from workbench import Tensor, explore
shown = [explore(Tensor(np.ones((n, 8), np.float32)).sum(1) + n) for n in range(2, 7)]"""

RECORDS = """[(len(ex.display.session.record.variants), ex.display.session.record.n,
  len(ex.display.session.listeners())) for ex in shown]"""
"""Of each session its variants, its patches and its pages."""
MODES = """[each.view.get("mode") for each in ex.display.session.listeners()
  if type(each).__name__ == "Workbench"]"""


def ready(notebook: Notebook, source: str) -> Any:
    wb = notebook.cell(source).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    return wb


def look_around(wb: Any) -> None:
    """Select, step and change modes: nothing of it needs Python."""
    wb.focus()
    wb.page.keyboard.press("1")
    row = wb.locator(".wb-loops [data-item]:has-text('g0')").first
    row.click()
    wb.locator(".wb-code-body .wb-lit").first.wait_for()
    row.click()
    wb.page.keyboard.press("2")
    wb.locator(".wb-rw-pass:has-text('linearize')").click()
    at = expect(wb.locator(".wb-rw-at"))
    for step in ("1 of", "2 of"):
        wb.page.keyboard.press("j")
        at.to_have_text(re.compile(f"^{step}"))
    wb.page.keyboard.press("3")
    wb.locator(".wb-plan .wb-g-stage").first.wait_for()
    wb.page.keyboard.press("1")


def test_looking_while_a_cell_sleeps(notebook: Notebook) -> None:
    page = notebook.page
    wb = ready(notebook, SOURCE.format(n=20))
    asleep = notebook.cell("import time; print('asleep'); time.sleep(1000)", wait=False)
    asleep.locator(".jp-OutputArea-output:has-text('asleep')").wait_for()
    running = page.locator(".jp-InputPrompt:has-text('[*]')")
    running.wait_for()
    look_around(wb)
    assert running.count() == 1, "looking did not wait for the cell"
    page.evaluate(f"{KERNEL}.interrupt()")
    notebook.ready()
    wb.locator("[data-key=check]").click()
    wb.locator(".wb-about .wb-good").wait_for()


def test_variants_and_times_come_back_after_a_restart(notebook: Notebook) -> None:
    page = notebook.page
    wb = ready(notebook, SOURCE.format(n=22))
    wb.locator("[data-key=paste]").fill('UPCAST("g0", 2)')
    wb.locator("[data-key=paste]").press("Enter")
    wb.locator("[role=treeitem][aria-selected=true]:has-text('UPCAST g0 2')").wait_for()
    wb.locator("[data-key=time]").click()
    time = wb.locator(f"[role=treeitem]:has-text('UPCAST g0 2') {SPREAD}")
    time.wait_for()
    notebook.run(0)
    time.wait_for()
    # what is looked at below: the links of the code, and the passes to the end
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    wb.get_by_text("linearize", exact=True).first.wait_for()
    expect(page.locator(".wb")).to_have_count(1)

    page.evaluate(f"{KERNEL}.restart()")
    notebook.ready()
    wb.locator(".wb-silent:has-text('does not answer')").wait_for()
    look_around(wb)
    title = wb.locator("[data-key=time][aria-disabled=true]").get_attribute("title")
    assert title == "needs the Python session"
    notebook.run(0)
    wb.locator(".wb-silent").wait_for(state="hidden")
    wb.locator("[data-key=time]:not([aria-disabled])").wait_for()
    time.wait_for()
    expect(page.locator(".wb")).to_have_count(1)


def test_many_pages_do_not_meet(notebook: Notebook) -> None:
    page = notebook.page
    notebook.cell(FIVE)
    first = ready(notebook, "shown[0]")
    for n in range(1, 5):
        notebook.cell(f"shown[{n}]")
    second = ready(notebook, "shown[0]")
    expect(page.locator(".wb")).to_have_count(6)
    second.locator("[data-key=paste]").fill('UPCAST("r0", 2)')
    second.locator("[data-key=paste]").press("Enter")
    second.locator(".wb-opt-verdict .wb-bad").wait_for()
    second.locator("[data-key=paste]").fill('UNROLL("r0", 2)')
    second.locator("[data-key=paste]").press("Enter")
    second.locator("[role=treeitem][aria-selected=true]:has-text('UNROLL r0 2')").wait_for()
    # both pages of one expression, and no other; a page out of sight has no rows
    for place, count in enumerate([3, 2, 2, 2, 2, 3]):
        each = page.locator(".wb").nth(place)
        each.scroll_into_view_if_needed()
        try:
            expect(each.locator("[role=treeitem]")).to_have_count(count)
        except AssertionError:
            text, python = each.inner_text(), notebook.python(RECORDS)
            pytest.fail(f"variants of page {place}: {text}; Python: {python}")
    second.focus()
    page.keyboard.press("3")
    expect(second).to_have_attribute("data-mode", "plan")
    others = page.locator(".wb[data-mode=plan]")
    assert others.count() == 1, "each page looks for itself"
    first.scroll_into_view_if_needed()
    chosen = first.locator("[role=treeitem][aria-selected=true]")
    expect(chosen).to_contain_text("plain")


def saved(notebook: Notebook) -> Any:
    """Save the notebook, and return it."""
    notebook.page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    path = notebook.page.evaluate("jupyterapp.shell.currentWidget.context.path")
    return nbformat.read(notebook.lab.folder / path, as_version=4)


def test_a_notebook_saved_by_default_shows_its_picture_and_its_page(
    notebook: Notebook, browser: Any, tmp_path: Path
) -> None:
    """With the settings of a new JupyterLab. Before, the page saves itself."""
    page = notebook.page
    ready(notebook, SOURCE.format(n=26))
    the_page_saves_itself(page, browser, tmp_path / "page.html")
    still = page.locator("[data-still]")
    expect(still).to_have_count(1)
    expect(still).to_be_hidden()
    notebook.settle()
    content = saved(notebook)
    assert "widgets" not in content.metadata, "these are the default settings"
    picture, widget = content.cells[0].outputs
    assert set(picture.data) == {"text/html"}
    assert {"text/html", "text/plain"} < set(widget.data)
    size = len(json.dumps(content))
    assert size < 500_000, "a cell's page and picture are not too much for a notebook"
    notebook.python("__import__('ipywidgets').Widget.close_all()")  # as after a restart
    with notebook.beside("tomorrow.ipynb", content) as other:
        output = other.locator(".jp-OutputArea")
        output.locator("[data-still] img").first.wait_for()
        eventually(lambda: "The live page is not connected" in said(other))
        expect(output.get_by_text("model not found")).to_be_hidden()
        assert other.locator("iframe[title=workbench]").count() == 0, "it is made when asked for"
        output.locator("[data-still] > details > summary").click()
        inside = output.frame_locator("[data-still] iframe[title=workbench]")
        inside.locator(".wb").wait_for()
        inside.locator("[data-key=mode-plan]").click()
        inside.locator(".wb[data-mode=plan]").wait_for()
        expect(inside.locator(".wb")).to_contain_text("1 kernel")
    content.cells[0].source += "  # changed: somebody else's notebook is not trusted"
    with notebook.beside("stranger.ipynb", content) as other:
        output = other.locator(".jp-OutputArea")
        output.locator("img").first.wait_for()
        assert "as last saved" not in said(other)
        assert other.locator("iframe").count() == 0
        expect(output.get_by_text("model not found")).to_have_count(0)


def said(page: Any) -> str:
    """Return what the style of the saved copy says before it."""
    texts: list[str] = page.locator("[data-still]").evaluate_all(
        "(stills) => stills.map((still) => getComputedStyle(still, '::before').content)"
    )
    return " ".join(texts)


def the_page_saves_itself(page: Any, browser: Any, file: Path) -> None:
    page.click("[data-key=export]")
    with page.expect_download() as info:
        page.click("[data-key=export-html]")
    info.value.save_as(file)
    exported = opened(browser, file)
    expect(exported.locator(".wb")).to_contain_text("1 kernel")
    leave(browser, exported)
    page.keyboard.press("Escape")


BUSY = """{
  const { setTimeout } = window, { send } = WebSocket.prototype;
  const pauses = [], questions = [];
  const isPause = (ms) => ms === 100 && new Error().stack.includes("renderModel");
  const isQuestion = (data) =>
    (typeof data === "string" ? data : new TextDecoder().decode(data)).includes("comm_info_request");
  window.setTimeout = (act, ms, ...rest) => {
    if (!isPause(ms)) return setTimeout(act, ms, ...rest);
    pauses.push([Date.now(), act]);
    questions.splice(0).forEach((ask) => ask());
  };
  WebSocket.prototype.send = function (data) {
    const ask = () => send.call(this, data);
    if (isQuestion(data) && !pauses.length) questions.push(ask);
    else ask();
  };
  window.isLate = () => pauses.length > 0 && Date.now() - pauses[0][0] > 2000;
  window.goOn = () => {
    window.setTimeout = setTimeout;
    pauses.forEach(([, act]) => act());
  };
}"""
"""JupyterLab looks every 100 ms for the model of an output that it restores, and gives it up where
there is none after two seconds. Here its first look comes before it asks Python for the models, and
the pause after it lasts until `goOn`, as it does where the browser is busy."""
IS_RESTORED = """async () => {
  const { rendermime } = jupyterapp.shell.currentWidget.content;
  const { _manager } = rendermime.createRenderer("application/vnd.jupyter.widget-view+json");
  return (await _manager.promise).restoredStatus;
}"""
"""Returns whether JupyterLab has the models of the Python session."""


def test_a_page_that_jupyterlab_gives_up_comes_back(notebook: Notebook, browser: Any) -> None:
    """After a reload in a busy browser; until then the saved copy says what it waits for."""
    ready(notebook, SOURCE.format(n=30))
    notebook.settle()
    saved(notebook)
    page = new_page(browser, viewport={"width": 1400, "height": 900})
    said_by_lab: list[str] = []
    page.on("console", lambda message: said_by_lab.append(message.text))
    page.add_init_script(BUSY)
    url = f"{notebook.lab.url}lab/tree/{notebook.name}?token=t"
    page.goto(url, timeout=UP_WITHIN_S * 1000)
    page.wait_for_function("isLate()", timeout=UP_WITHIN_S * 1000, polling=POLL_MS)
    eventually(lambda: page.evaluate(IS_RESTORED))
    assert "Waiting for Python" in said(page)
    expect(page.locator(".wb")).to_have_count(0)
    page.evaluate("goOn()")
    wb = page.locator(".wb")
    wb.locator(".wb-offer [data-key^=apply]").first.click()
    chosen = ".wb-variant[aria-selected=true]:not([data-key=variant-0])"
    expect(wb.locator(chosen)).to_be_attached()
    assert any(TOO_EARLY in text for text in said_by_lab)
    expect(page.locator("[data-still]")).to_be_hidden()
    page.context.close()


TOO_EARLY = "model not found"
"""What JupyterLab says of a widget whose output it drew before it had read the state of the widgets,
which it may do where the machine is busy."""


def is_drawn_in_time(notebook: Notebook, content: Any) -> bool:
    """Open a notebook, signed and with its widget's state, and look around; return whether JupyterLab
    had the state when it drew the output."""
    with notebook.beside("own.ipynb", content) as other_page:
        silent = other_page.locator(".wb-silent:has-text('does not answer')")
        silent.or_(other_page.get_by_text(TOO_EARLY)).first.wait_for(state="attached")
        if not silent.count():
            return False
        look_around(other_page.locator(".wb"))
    return True


def test_a_notebook_saved_with_its_widgets(notebook: Notebook) -> None:
    """A cell that was run again has one, in the mode that was left."""
    page = notebook.page
    wb = ready(notebook, SOURCE.format(n=28))
    wb.locator("[data-key=mode-plan]").click()
    eventually(lambda: notebook.python(MODES) == "['plan']")  # a page tells it a little later
    for _ in range(3):
        notebook.run(0)
        expect(wb).to_have_attribute("data-mode", "plan")
    expect(page.locator(".wb")).to_have_count(1)
    notebook.settle()
    with notebook.saving_widgets():
        content = saved(notebook)
    (widget_state,) = content.metadata.widgets.values()
    models = [model["state"] for model in widget_state["state"].values()]
    assert sum("record" in model for model in models) == 1
    assert sum("script" in model for model in models) == 1
    assert {"text/html", "text/plain"} < set(content.cells[0].outputs[-1].data)
    assert any(is_drawn_in_time(notebook, content) for _ in range(3)), TOO_EARLY
    content.cells[0].source += "  # changed: somebody else's notebook is not trusted"
    with notebook.beside("foreign.ipynb", content) as other_page:
        output = other_page.locator(".jp-OutputArea-output")
        output.locator("img").first.wait_for()
        expect(output.first).to_contain_text("1 kernel")
        assert other_page.locator(".wb").count() == 0
