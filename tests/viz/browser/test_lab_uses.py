"""The three things the workbench is for, in a real JupyterLab: by mouse, and by keys alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.viz.browser.lab import Notebook

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("lab")]

TWO_KERNELS = """import numpy as np
from workbench import Tensor, explore
a, b = (Tensor(np.random.rand(64, 64).astype(np.float32)) for _ in range(2))
y = (a @ b).relu()
explore(y.softmax(1))"""
MATMUL = """import numpy as np
from workbench import Tensor, explore
a, b = (Tensor(np.random.rand({n}, {n}).astype(np.float32)) for _ in range(2))
ex = explore((a @ b).relu())
ex"""  # sizes differ, because variants of one expression are kept for the next session
INSIDE = "document.activeElement.closest('.wb') !== null"
FOCUSED = "document.activeElement.dataset.key || ''"


def shown(notebook: Notebook, source: str) -> Any:
    wb = notebook.cell(source).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    return wb


def press(wb: Any, keys: str) -> None:
    for key in keys.split():
        wb.page.keyboard.press(key)


def tab_to(wb: Any, key: str) -> None:
    """Press Tab until the element with this data-key, or one that starts with it, has focus."""
    for _ in range(60):
        press(wb, "Tab")
        if wb.page.evaluate(FOCUSED).startswith(key):
            return
    raise AssertionError(f"Tab does not lead to {key}")


def enter_by_keys(wb: Any) -> None:
    """Go from the notebook's cell into the workbench as a person without a mouse does."""
    wb.page.evaluate("jupyterapp.shell.currentWidget.content.activeCell.node.focus()")
    for _ in range(20):
        press(wb, "Tab")
        if wb.page.evaluate(INSIDE):
            return
    raise AssertionError("Tab does not lead into the workbench")


def selected(wb: Any, label: str) -> str:
    text: str = wb.locator(
        f'[aria-label="{label}"] [aria-selected="true"]'
    ).inner_text()
    return text


# step through scheduling


def test_scheduling_by_mouse(notebook: Notebook) -> None:
    wb = shown(notebook, TWO_KERNELS)
    assert wb.locator("[data-key^=kernel-]").count() == 2
    wb.locator("[data-key=mode-plan]").click()
    wb.locator(".wb-plan-list [role=option]:has-text('product of matrices')").click()
    reason = wb.locator(".wb-plan-reason")
    assert "a product of matrices" in reason.inner_text()
    assert wb.locator(".wb-plan-figures tr").count() > 0
    wb.locator(".wb-strip [role=option]:has-text('decide')").click()
    assert selected(wb, "mode") == "Rewrites"
    step_through(wb, lambda: wb.locator("[title*='next']").first.click())


def test_scheduling_by_keys(notebook: Notebook) -> None:
    wb = shown(notebook, TWO_KERNELS)
    enter_by_keys(wb)
    press(wb, "3")
    tab_to(wb, "decision-")
    while "product of matrices" not in focused_text(wb):
        press(wb, "j")
    press(wb, "Enter")
    assert "a product of matrices" in wb.locator(".wb-plan-reason").inner_text()
    press(wb, "2")
    for _ in range(20):
        if "decide" in wb.locator(".wb-rw-pass[aria-selected=true]").inner_text():
            break
        press(wb, "h")
    step_through(wb, lambda: press(wb, "j"))


def focused_text(wb: Any) -> str:
    text: str = wb.page.evaluate("document.activeElement.innerText")
    return text


def step_through(wb: Any, step: Callable[[], None]) -> None:
    """Walk over the first rewrites: each says where it is, and shows other text."""
    at = wb.locator(".wb-rw-at")
    before = at.inner_text()
    for _ in range(3):
        step()
        wb.page.wait_for_function(
            "([e, text]) => e.textContent !== text", arg=[at.element_handle(), before]
        )
        before = at.inner_text()
    assert before.startswith("3 of")


# change a kernel by hand


def test_opts_by_mouse(notebook: Notebook) -> None:
    wb = shown(notebook, MATMUL.format(n=88))
    wb.locator("[data-key=op-LOCAL]").click()
    wb.locator("[data-key^='apply-LOCAL(\"g1\"']").first.click()
    wb.locator("[role=treeitem][aria-selected=true]:has-text('mine 1')").wait_for()
    wb.locator("[data-key='op-UPCAST']").click()
    wb.locator("[data-key^='apply-UPCAST(\"g0\", 4']").click()
    wb.locator("[role=treeitem][aria-selected=true]:has-text('mine 2')").wait_for()
    wb.locator("[data-key=time]").click()
    timed(wb, "mine 2")
    wb.locator("[data-key=check]").click()
    wb.locator(".wb-about .wb-good").wait_for()
    wb.locator("[data-key=diff]").click()
    wb.locator(".wb-added").first.wait_for()
    wb.locator("[role=treeitem]:has-text('plain')").click()
    wb.locator(".wb-added").first.wait_for(state="detached")
    assert wb.locator("[role=treeitem]").count() == 4


def test_opts_by_keys(notebook: Notebook) -> None:
    wb = shown(notebook, MATMUL.format(n=96))
    enter_by_keys(wb)
    press(wb, "/")
    wb.page.keyboard.type('upcast("g1", 8')
    tab_to(wb, "offer-")
    press(wb, "Enter a")
    wb.locator("[role=treeitem][aria-selected=true]:has-text('mine 1')").wait_for()
    press(wb, "t")
    timed(wb, "mine 1")
    press(wb, "c")
    wb.locator(".wb-about .wb-good").wait_for()
    press(wb, "d")
    wb.locator(".wb-added").first.wait_for()
    press(wb, "u")
    wb.locator("[role=treeitem][aria-selected=true]:has-text('plain')").wait_for()
    press(wb, "Shift+U")
    wb.locator("[role=treeitem][aria-selected=true]:has-text('mine 1')").wait_for()
    press(wb, "p")
    wb.locator("[role=treeitem]:has-text('mine 1') .wb-pin:has-text('◆')").wait_for()


def timed(wb: Any, name: str) -> None:
    """Wait until a variant has a time with its spread, and a ratio to the pinned one."""
    row = wb.locator(f"[role=treeitem]:has-text('{name}')")
    row.locator(".wb-spread:has-text('±')").wait_for()
    assert row.locator("b.wb-figure").inner_text()[-1] in "x≈"


# teach


def test_links_by_mouse(notebook: Notebook) -> None:
    wb = shown(notebook, MATMUL.format(n=104))
    for language, word in (("C", "r0"), ("asm", ""), ("LLVM", "")):
        wb.locator(f"[data-key=code-{language}]").click()
        wb.locator(".wb-code-body [data-line]").first.wait_for()
        wb.locator(".wb-loops [data-item]:has-text('r0')").first.click()
        lit = wb.locator(".wb-code-body .wb-lit")
        lit.first.wait_for()
        assert word in lit.first.inner_text()
        wb.page.keyboard.press("Escape")
        lit.first.wait_for(state="detached")
    wb.locator("[data-key=code-asm]").click()
    wb.locator(".wb-code-body [data-line]:has-text('fma')").first.click()
    for pane in (".wb-loops", ".wb-sources"):
        wb.locator(f"{pane} .wb-lit").first.wait_for()
    assert "a @ b" in wb.locator(".wb-sources .wb-lit").inner_text()
    wb.locator(".wb-sources [data-item]:has-text('a @ b')").click()
    wb.locator(".wb-code-body .wb-lit").first.wait_for()


def test_links_by_keys(notebook: Notebook) -> None:
    wb = shown(notebook, MATMUL.format(n=112))
    enter_by_keys(wb)
    tab_to(wb, "loop-")
    press(wb, "j j Enter")
    wb.locator(".wb-code-body .wb-lit").first.wait_for()
    tab_to(wb, "line-")
    press(wb, "End k k Enter")
    wb.locator(".wb-loops .wb-lit, .wb-loops .wb-inside").first.wait_for()
    press(wb, "Escape Escape Escape")
    assert not wb.page.evaluate(INSIDE)
