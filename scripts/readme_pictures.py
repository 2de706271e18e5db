"""Make the pictures of the README: the page in headless Chromium, after a cell was run.

    python scripts/readme_pictures.py

They show times of this machine, so it should be idle.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from playwright.sync_api import sync_playwright

from workbench.viz.page.document import export_html
from workbench.viz.session.session import Session

DOCS = Path(__file__).parents[1] / "docs"
CELL = """import numpy as np
from workbench import Tensor, explore
rng = np.random.default_rng(0)
a, b, c = (Tensor(rng.standard_normal((256, 256), np.float32)) for _ in range(3))
y = (a @ b + c).relu().softmax(-1)
ex = explore(y)
"""
MODES = {"tune": "1", "plan": "3"}


def main() -> int:
    page = made_page()
    chromium_path = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if chromium_path is None:
        print("no pictures: no Chromium on PATH")
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "page.html"
        path.write_text(page, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium_path, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1400, "height": 760})
        tab.goto(path.as_uri())
        tab.wait_for_selector(".wb")
        for name, key in MODES.items():
            tab.focus(".wb")
            tab.keyboard.press(key)
            tab.wait_for_timeout(500)
            tab.screenshot(path=DOCS / f"{name}.png")
        browser.close()
    return 0


def made_page() -> str:
    """Return the exported page of the cell's exploration, with its kernels timed."""
    shell: Any = InteractiveShell.instance()
    shell.run_cell(CELL, store_history=True).raise_error()
    session = Session(shell.user_ns["ex"])
    for _ in session.recorder.rest():
        pass
    for kernel in range(len(session.record.kernels)):
        variants = [
            place for place, row in enumerate(session.record.variants)
            if row.kernel == kernel
        ]  # fmt: skip
        reply = session.handle({"id": kernel, "do": "measure", "variants": variants, "cold": False})
        assert reply.ok, reply.error
    return export_html(session.record)


if __name__ == "__main__":
    raise SystemExit(main())
