"""A rule set, an opt and a device that cells of a notebook register are in the workbench there."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.test_register import HELPERS, OPT, RULES
from tests.viz.browser.lab import LAB, Notebook

pytestmark = LAB

DEVICE = """
from workbench.backends.python.python_device import PythonDevice

class Mine(PythonDevice):
    name, about, how_to_get, rank = "MINE", "an emulator of somebody's", "run the cell", 200

register(Mine());
"""
EXPLORED = """
import numpy as np
from workbench import Tensor, explore

a, b = (Tensor(np.random.rand(36, 36).astype(np.float32)) for _ in range(2))
explore((a @ b) * 2)
"""
GONE = """
from workbench import unregister
for name in ("HALVE", "mine", "MINE"): unregister(name)
"""


def test_what_cells_register_is_in_the_workbench(notebook: Notebook) -> None:
    notebook.looks()
    for cell in (HELPERS, OPT, RULES.format(into="simplify-kernel"), DEVICE):
        notebook.cell(cell.strip())
    wb = notebook.cell(EXPLORED.strip()).locator(".wb")
    try:
        wb.locator("[data-key=op-HALVE]").click()
        wb.locator("[data-key^='apply-HALVE(\"g0\", 2']").click()
        wb.locator("[role=treeitem][aria-selected=true]:has-text('HALVE g0 2')").wait_for()
        expect(wb.locator(".wb-cell", has_text="g2")).to_have_count(1)
        wb.locator("select[aria-label=device]").select_option("MINE")
        wb.locator("select[aria-label=device]:enabled").wait_for()
        wb.locator("[data-key=mode-rewrites]").click()
        wb.get_by_text("double-is-sum").first.wait_for()
    finally:
        notebook.cell(GONE.strip())
