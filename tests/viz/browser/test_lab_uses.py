"""What the workbench is for, in a real JupyterLab: by mouse and by keys alone, with much room and
with little, in the light theme and in the dark one. The long profile tries all eight; otherwise the
mouse has much room and light, the keys little and dark. (test_lab_looks.py has all four looks.)"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support import LONG
from tests.viz.browser.lab import LAB, SPREAD, Notebook

pytestmark = LAB

SOURCE = """import numpy as np
from workbench import Context, Tensor, explore
a, b = (Tensor(np.random.rand({n}, {n}).astype(np.float32)) for _ in range(2))
y = (a @ b).relu()
with Context(LIVE={live}): display(explore(y.softmax(1)))"""
INSIDE = "document.activeElement.closest('.wb') !== null"
FOCUSED = "(selector) => document.activeElement.matches(selector)"
IS_BEFORE = """(selector) => {
  const seen = [...document.querySelectorAll(selector)].filter((e) => e.offsetParent);
  return seen.some((e) => document.activeElement.compareDocumentPosition(e) & 2);
}"""
LOOKS = [(width, dark) for width in (1400, 800) for dark in (False, True)]


@pytest.mark.parametrize(("width", "dark"), LOOKS if LONG else LOOKS[:1])
def test_by_mouse(notebook: Notebook, width: int, dark: bool) -> None:
    wb = shown(notebook, width, dark, 64, live=2)
    expect(wb.locator("[data-key^=kernel-]")).to_have_count(2)
    scheduling_by_mouse(wb)
    opts_by_mouse(wb)
    links_by_mouse(wb)


@pytest.mark.parametrize(("width", "dark"), LOOKS if LONG else LOOKS[3:])
def test_by_keys(notebook: Notebook, width: int, dark: bool) -> None:
    wb = shown(notebook, width, dark, 128)
    enter_by_keys(wb)
    scheduling_by_keys(wb)
    opts_by_keys(wb)
    links_by_keys(wb)
    press(wb, "Escape Escape Escape")
    assert not wb.page.evaluate(INSIDE), "there is a way out"


def shown(notebook: Notebook, width: int, dark: bool, n: int, live: int = 1) -> Any:
    """Run the cell with matrices of a size of their own: what is tried is kept by expression."""
    notebook.looks(width, dark)
    n += 8 * (width < 1000) + 16 * dark
    wb = notebook.cell(SOURCE.format(n=n, live=live)).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for(state="attached")
    return wb


def test_kernels_name_the_line_of_their_cell(notebook: Notebook) -> None:
    """Values shared with earlier cells, and a helper's, are those of the cell that shows them; an
    instruction leads to both the cell's line and the helper's."""

    def cell(source: str) -> tuple[str, Any]:
        """Its name, and what it shows."""
        element = notebook.cell(source)
        prompt = element.locator(".jp-InputPrompt")
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"))
        number = prompt.inner_text().strip("[]: ")
        return f"In[{number}]", element.locator(".wb")

    helper, _ = cell(
        "import numpy as np\nfrom workbench import Tensor, explore\n"
        "def T(*s): return Tensor(np.random.rand(*s).astype(np.float32))\n"
        "def norm(t):\n    return t.layernorm()"
    )
    cell("x = T(40, 128); (x.mean(-1) + x.layernorm().sum(-1)).realize();")
    for source in ("explore(norm(x))", "explore(x.mean(-1), x.var(-1))"):
        name, wb = cell(source)
        wb.locator("[role=treeitem]:has-text('auto')").wait_for(state="attached")
        wb.locator("[data-key=mode-tune]").click()
        rows = wb.locator("[data-key^=kernel-]").all()  # the line is in sight, or on hover
        hints = [row.get_attribute("title") or "" for row in rows]
        assert hints and all(f"{name}:1: " in hint for hint in hints), hints
        wb.locator("[data-key=code-asm]").click()
        wb.locator(".wb-code-body [data-line]:has-text('adds')").first.click()
        expected = [f"{name}:1", f"{helper}:5"] if "norm" in source else [f"{name}:1"]
        lit = wb.locator(".wb-sources .wb-lit")
        expect(lit).to_contain_text(expected)
        for words, line in zip(lit.all_text_contents(), expected, strict=True):
            assert re.match(re.escape(line) + r"(?!\d)", words.strip()), words
        wb.locator("[data-key=mode-plan]").click()
        wb.locator(".wb-plan-list [role=option]").first.click()
        # the cell's, then the helper's, which unfolds
        where = wb.locator(".wb-plan .wb-where[data-key^=line-]")
        expect(where).to_have_text(expected)
        if "norm" in source:
            assert where.last.is_hidden()
            wb.locator(".wb-plan .wb-where[aria-expanded=false]").click()
            expect(where.last).to_be_visible()


# by mouse


def scheduling_by_mouse(wb: Any) -> None:
    wb.locator("[data-key=mode-plan]").click()
    wb.locator(".wb-plan-list [role=option]:has-text('product of matrices')").click()
    says_why(wb)
    wb.locator(".wb-strip [role=option]:has-text('decide')").click()
    step_through(wb, lambda: wb.locator("button[title*='next']").first.click())


def opts_by_mouse(wb: Any) -> None:
    wb.locator("[data-key=mode-tune]").click()
    wb.locator("[data-key=op-LOCAL]").click()
    wb.locator("[data-key^='apply-LOCAL(\"g1\"']").first.click()
    chosen(wb, "LOCAL g1")
    wb.locator("[data-key='op-UPCAST']").click()
    wb.locator("[data-key^='apply-UPCAST(\"g0\", 4']").click()
    chosen(wb, "+ UPCAST g0 4")
    wb.locator("[data-key=time]").click()
    is_timed(wb, "+ UPCAST g0 4")
    wb.locator("[data-key=check]").click()
    wb.locator(".wb-about .wb-good").wait_for()
    wb.locator("[data-key=diff]").click()
    wb.locator(".wb-added").first.wait_for()
    wb.locator("[role=treeitem]:has-text('plain')").click()
    wb.locator(".wb-added").first.wait_for(state="detached")
    expect(wb.locator("[role=treeitem]")).to_have_count(4)


def links_by_mouse(wb: Any) -> None:
    loop = wb.locator(".wb-loops [data-item]:has-text('r0')").first
    lit = wb.locator(".wb-code-body .wb-lit")
    for language, word in (("C", "r0"), ("LLVM", ""), ("asm", "")):
        wb.locator(f"[data-key=code-{language}]").click()
        wb.locator(".wb-code-body [data-line]").first.wait_for()
        loop.click()
        expect(lit.first).to_contain_text(word)
        wb.page.keyboard.press("Escape")
        lit.first.wait_for(state="detached")
    wb.locator(".wb-code-body [data-line]:has-text('fma')").first.click()
    wb.locator(".wb-loops .wb-lit").first.wait_for()
    wb.locator(".wb-sources .wb-lit:has-text('a @ b')").click()
    lit.first.wait_for()


# by keys


def scheduling_by_keys(wb: Any) -> None:
    press(wb, "3")
    tab_to(wb, "[data-key^=decision-]")
    while "product of matrices" not in focused_text(wb):
        press(wb, "j")
    press(wb, "Enter")
    says_why(wb)
    press(wb, "2")
    for _ in range(20):
        if "decide" in wb.locator(".wb-rw-pass[aria-selected=true]").inner_text():
            break
        press(wb, "h")
    step_through(wb, lambda: press(wb, "j"))


def opts_by_keys(wb: Any) -> None:
    press(wb, "1 /")
    wb.page.keyboard.type('upcast("g1", 8')
    tab_to(wb, "[data-key^=offer-]")
    while 'UPCAST("g1", 8)' not in focused_text(wb):  # why others are offered may say 8
        press(wb, "j")
    press(wb, "Enter a")
    chosen(wb, "UPCAST g1 8")
    press(wb, "t")
    is_timed(wb, "UPCAST g1 8")
    press(wb, "c")
    wb.locator(".wb-about .wb-good").wait_for()
    press(wb, "d")
    wb.locator(".wb-added").first.wait_for()
    press(wb, "u")
    chosen(wb, "plain")
    press(wb, "Shift+U")
    chosen(wb, "UPCAST g1 8")
    press(wb, "p d")
    pin = wb.locator("[role=treeitem]:has-text('UPCAST g1 8') .wb-pin:has-text('◆')")
    pin.wait_for(state="attached")


def links_by_keys(wb: Any) -> None:
    tab_to(wb, ".wb-loops [data-item]")
    press(wb, "Home j Enter")
    wb.locator(".wb-code-body .wb-lit").first.wait_for()
    tab_to(wb, ".wb-code-body [data-item]")
    press(wb, "End k k Enter")
    wb.locator(".wb-loops .wb-lit, .wb-loops .wb-inside").first.wait_for()


def press(wb: Any, keys: str) -> None:
    for key in keys.split():
        wb.page.keyboard.press(key)


def enter_by_keys(wb: Any) -> None:
    """Go from the notebook's cell into the workbench as a person without a mouse does."""
    wb.page.evaluate("jupyterapp.shell.currentWidget.content.activeCell.node.focus()")
    for _ in range(20):
        press(wb, "Tab")
        if wb.page.evaluate(INSIDE):
            return
    raise AssertionError("Tab does not lead into the workbench")


def tab_to(wb: Any, selector: str) -> None:
    """Press Tab, or Shift+Tab where it is before, until what fits the selector has the focus."""
    wb.locator(selector).locator("visible=true").first.wait_for()
    key = "Shift+Tab" if wb.page.evaluate(IS_BEFORE, selector) else "Tab"
    for _ in range(60):
        press(wb, key)
        if wb.page.evaluate(FOCUSED, selector):
            return
    raise AssertionError(f"{key} does not lead to {selector}")


def focused_text(wb: Any) -> str:
    text: str = wb.page.evaluate("document.activeElement.innerText")
    return text


# what is seen


def says_why(wb: Any) -> None:
    """The decision about the product is shown with its reason and figures."""
    wb.locator(".wb-reason:has-text('a product of matrices')").wait_for()
    wb.locator(".wb-figures tr").first.wait_for()


def step_through(wb: Any, step: Callable[[], None]) -> None:
    """Walk over the first rewrites: each says where it is, and shows other text."""
    mode = wb.locator("[aria-label=layout] [aria-selected=true]")
    expect(mode).to_contain_text("Rewrites")
    at = expect(wb.locator(".wb-rw-at"))
    at.to_have_text(re.compile("^before"))
    for number in (1, 2, 3):
        step()
        at.to_have_text(re.compile(f"^{number} of"))


def chosen(wb: Any, name: str) -> None:
    """Wait until a variant is the one that is looked at."""
    row = wb.locator(f"[role=treeitem][aria-selected=true]:has-text('{name}')")
    row.wait_for(state="attached")


def is_timed(wb: Any, name: str) -> None:
    """Wait until a variant has a time with its spread, and a ratio to the pinned one, unless that
    was timed again meanwhile, or the machine is busy: then it says that they are not compared."""
    row = wb.locator(f"[role=treeitem]:has-text('{name}')")
    row.locator(SPREAD).wait_for()
    expect(row).to_contain_text(re.compile("[0-9]x|≈|apart|busy|–"))
