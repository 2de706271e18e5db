"""A run in a real JupyterLab: `with profile() as run:`, `%%profile`, and `run` at the end of a cell."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.viz.browser.lab import LAB, Notebook

pytestmark = LAB

BLOCK = """import numpy as np, workbench
from workbench import Tensor, TinyJit
a = Tensor(np.random.rand(64, 64).astype(np.float32)).realize()
step = TinyJit(lambda x: (x @ x).relu().sum(1))
with workbench.profile("of ten steps") as run:
    for _ in range(10):
        step(a)
run"""
CELL = """%%profile
for _ in range(5):
    step(a)"""


def test_a_run_is_shown_and_read_by_wheel_keys_and_pointer(notebook: Notebook) -> None:
    notebook.looks(1400, False)
    wb = notebook.cell(BLOCK, layout="").locator(".wb")
    timeline = wb.locator(".wb-run-time")
    expect(timeline).to_be_visible()
    expect(wb).to_contain_text("of ten steps")
    row = wb.locator(".wb-run-table tbody tr").first
    expect(row).to_contain_text("matmul")
    expect(wb.locator(".wb-run-phases")).to_contain_text("compile")
    box = timeline.bounding_box()
    assert box is not None
    page = notebook.page
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + box["height"] - 15)
    memory = wb.locator(".wb-run-what.wb-quiet")
    expect(memory).to_contain_text("in use")
    before = memory.inner_text()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    timeline.focus()
    page.keyboard.press("a")
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + box["height"] - 15)
    expect(memory).not_to_have_text(before)
    page.keyboard.press("ArrowDown")
    expect(wb.locator(".wb-run-what[role=status]")).to_contain_text("starts at")
    wb.locator("[data-key=run-table-kind]").click()
    expect(wb.locator(".wb-run-table")).to_contain_text("matmul")
    assert notebook.cell("'alive'", layout="").locator("text=alive").count()


def test_a_cell_is_profiled(notebook: Notebook) -> None:
    notebook.cell("%load_ext workbench\n" + BLOCK.rpartition("\n")[0], layout="")
    shown = notebook.cell(CELL, layout="").locator(".wb")
    expect(shown.locator(".wb-run-time")).to_be_visible()
    expect(shown.locator(".wb-run-table tbody tr").first).to_be_visible()
