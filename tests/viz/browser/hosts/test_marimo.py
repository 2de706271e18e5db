"""The widget in marimo, which shows anywidgets in shadow trees and has no kernel of Jupyter's.

marimo is no dependency of the project: without it, the test is skipped.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import new_page

pytest.importorskip("marimo", reason="pip install marimo")

NOTEBOOK = """import marimo
app = marimo.App(width="full")

@app.cell
def _():
    import numpy as np
    from workbench import Tensor, explore
    x = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8))
    ex = explore((x @ x).relu())
    ex
    return (ex,)

@app.cell
def _(ex):
    import marimo as mo
    mo.ui.anywidget(ex.to_widget())
    return
"""
UP_WITHIN_S = 300


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Yield the address of a marimo that has run a notebook's cells, and its process."""
    (folder / "notebook.py").write_text(NOTEBOOK, encoding="utf-8")
    settings = folder / "config/marimo/marimo.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text("[runtime]\nauto_instantiate = true\n", encoding="utf-8")
    places = {"HOME": folder, "XDG_CONFIG_HOME": folder / "config", "LIVE": 1}
    env = os.environ | {name: str(value) for name, value in places.items()}
    command = [
        sys.executable, "-m", "marimo", "-y", "edit", "--headless", "--no-token",
        "--host=127.0.0.1", f"--port={free_port()}", str(folder / "notebook.py"),
    ]  # fmt: skip
    with (folder / "log").open("w") as log:
        started = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=folder)
        try:
            yield address(started, command[-2].partition("=")[2], folder / "log"), started
        finally:
            started.terminate()
            started.wait(UP_WITHIN_S)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def address(started: subprocess.Popen[bytes], port: str, log: Path) -> str:
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + UP_WITHIN_S
    while time.monotonic() < until and started.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=60):
                return url
        except OSError:
            time.sleep(0.2)
    raise AssertionError(f"no marimo: {log.read_text()[-2000:]}")


@pytest.mark.timeout(4 * UP_WITHIN_S)
def test_it_works_in_marimo(browser: Any, tmp_path: Path) -> None:
    """Displayed as it is and through marimo's own wrapper; Python answers; its keys, its theme and
    its height; and the sentence once marimo has gone."""
    page = new_page(browser, viewport={"width": 1400, "height": 900}, color_scheme="dark")
    with server(tmp_path) as (url, started):
        page.goto(url)
        wb = page.locator(".wb")
        expect(wb).to_have_count(2, timeout=UP_WITHIN_S * 1000)
        first = wb.first
        expect(first).to_have_attribute("data-theme", "light")
        looks = "(wb) => [wb.getRootNode() instanceof ShadowRoot, getComputedStyle(wb).display]"
        assert first.evaluate(looks) == [True, "flex"], "its style stands beside it"
        assert first.bounding_box()["height"] <= 590, "marimo's outputs scroll from there"
        first.locator("[data-key=mode-tune]").click()
        first.locator(".wb-offer [data-key^=apply]").first.click()
        first.locator(".wb-variant[aria-selected=true]:not([data-key=variant-0])").wait_for()
        variants = first.locator(".wb-variant").count()
        wb.nth(1).scroll_into_view_if_needed()
        wb.nth(1).locator("[data-key=mode-tune]").click()
        expect(wb.nth(1).locator(".wb-variant")).to_have_count(variants)
        cells = page.locator("[data-cell-id]").count()
        first.focus()
        for key in ("j", "ArrowDown", "Shift+Enter", "Control+Enter", "?", "Escape"):
            page.keyboard.press(key)
        assert page.locator("[data-cell-id]").count() == cells
        page.evaluate("document.body.className = 'dark'")
        expect(first).to_have_attribute("data-theme", "dark")
        assert page.faults == []
        started.kill()
        first.evaluate("(wb) => { wb.blur(); wb.focus(); }")  # it asks whether Python is there
        first.locator(".wb-silent").get_by_text("Python does not answer").wait_for()
    page.context.close()
