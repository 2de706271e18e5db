"""Bad input and kernels that go wrong: a result on the page, and the Python session lives."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect

from tests.viz.browser.lab import GIVEN_UP_MODEL, KERNEL, LAB, SPREAD, Notebook

pytestmark = LAB

HOSTILE = """import numpy as np
from workbench import Context, Tensor, explore
name = "</script><img src=x onerror=\\"document.title='run'\\">\\u202e'`\\n" + "x" * 10_000
x = Tensor(np.random.rand(8, 8).astype(np.float32)); y = x + 1 # </script><img src=x onerror="document.title='run'"> \u202e " '
ex = explore(y.exp()).baseline(name, lambda: 1 / 0)
with Context(LIVE=2): display(ex)"""
DOUBLED = """import numpy as np
from workbench import Tensor, explore
ex = explore((Tensor(np.random.rand({n}, 16).astype(np.float32)) * 2).exp())
ex"""
PRODUCT = """import numpy as np
from workbench import Tensor, explore
a = Tensor(np.random.rand(144, 144).astype(np.float32))
explore(a @ a)"""
ENDLESS = """from workbench.viz.session.handlers import measurement
ordinary = measurement.BUDGET_S, measurement.SAMPLES
measurement.BUDGET_S, measurement.SAMPLES = 3600.0, 10**9
measurement.SETTLED_SHARE = -1.0  # else a quiet machine is done soon"""
ORDINARY = """measurement.BUDGET_S, measurement.SAMPLES = ordinary
measurement.SETTLED_SHARE = measurement.SETTLED"""
"""What is timed between the two cells ends when it is stopped, and not before."""
PATIENT = """import time
from unittest import mock
from workbench.search import search as searching
search = searching.run
def patient(*args, report, stop, **fields):
    def patient_report(candidate):
        report(candidate)
        while candidate.number > 3 and not stop(): time.sleep(0.01)
    return search(*args, **fields | {"report": patient_report, "stop": stop, "budget_s": 3600})
patched = mock.patch.object(searching, "run", patient)
patched.start()"""
"""A search that waits, after it has tried a few, to be stopped."""
SOME_TRIED = re.compile(r"([4-9]|\d\d) tried")
RAISES = """from unittest import mock
from workbench.ir.lower import lower
from workbench.ir.node.ops import Ops
from workbench.ir.rewriting.passes import Pass
from workbench.ir.rewriting.patterns import op, var
from workbench.ir.rewriting.rewrite import Rule, RuleSet
def asked_to_fail(n, x, y): raise ZeroDivisionError("on purpose")
rows = RuleSet("decompose", [Rule("bad-rule", op(Ops.MAX, var("x"), var("y"), name="n"), asked_to_fail)])
patched = mock.patch.object(lower, "DECOMPOSED", Pass("decompose", "It fails.", rows))
patched.start()
x = Tensor(np.random.rand(11, 16).astype(np.float32))
explore((x * 2).relu())"""
IMPATIENT = """() => {
  const limit = AbortSignal.timeout.bind(AbortSignal);
  AbortSignal.timeout = () => limit(0);
  return () => (AbortSignal.timeout = limit);
}"""
"""anywidget gives a model up at once, as it does after two seconds where the machine is busy."""
WRONG = {
    "compile": ("define void @nonsense(", "wb-error"),
    "answer": ("", "wb-bad"),
    "crash": ("store volatile i32 1, ptr null", "wb-error"),
}


def test_names_are_words_and_no_markup(notebook: Notebook) -> None:
    page, title = notebook.page, notebook.page.title()
    wb = notebook.cell(HOSTILE).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    wb.locator(".wb-baseline .wb-bad").wait_for()
    wb.locator("[data-key=note]").fill(HOSTILE)
    wb.locator("[data-key=note]").press("Enter")
    for key in "231":
        wb.focus()
        page.keyboard.press(key)
        assert wb.evaluate("wb => wb.scrollWidth <= wb.clientWidth"), key
        assert wb.locator("img").count() == 0 and page.title() == title, key
    wb.locator("[data-key=paste]").fill("UPCAST(" + "<b>" * 3000)
    wb.locator("[data-key=paste]").press("Enter")
    wb.locator(".wb-opt-verdict .wb-bad").wait_for()
    assert wb.evaluate("wb => wb.scrollWidth <= wb.clientWidth")
    assert wb.locator("b b").count() == 0
    assert notebook.python("'\\n' in name") == "True"


def test_missing_devices_say_how_to_get_them(notebook: Notebook) -> None:
    wb = notebook.cell(DOUBLED.format(n=7)).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    wb.locator("[data-key=device]").select_option("more machines…")
    options = wb.locator("[data-key=device] option").evaluate_all(
        "(all) => all.map((e) => [e.parentElement.label || '', e.disabled, e.title])"
    )
    assert len(options) > 1
    groups = list(dict.fromkeys(group for group, _, _ in options))
    assert groups == ["", "not here: predicted", "missing here"][: len(groups)]
    for group, is_disabled, title in options:
        assert (group == "missing here") == is_disabled
        assert title and (is_disabled or "pip install" not in title)
    wb.locator("[data-key=device]").select_option("PYTHON")
    wb.locator(".wb-title:has-text('PYTHON')").wait_for()
    wb.locator("[data-key=time]").click()
    wb.locator("text=EMULATOR (PYTHON): not the speed").wait_for()


def test_a_rule_that_raises_is_shown_with_the_state_before(notebook: Notebook) -> None:
    notebook.cell(DOUBLED.format(n=6))
    try:
        wb = notebook.cell(RAISES).locator(".wb")
        wb.locator(".wb-board .wb-error:has-text('on purpose')").wait_for()
        wb.locator(".wb-strip .wb-failed:has-text('decompose')").click()
        wb.locator(".wb-rw .wb-error:has-text('on purpose')").first.wait_for()
    finally:
        notebook.cell("patched.stop()")
    assert notebook.python("ex.kernels[0].run()[0].shape") == "(6, 16)"


def test_edited_source_cannot_take_the_session_down(notebook: Notebook) -> None:
    wb = notebook.cell(DOUBLED.format(n=9)).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    wb.locator("[data-key=code-LLVM]").click()
    for number, (name, (text, mark)) in enumerate(WRONG.items()):
        wb.locator("[role=treeitem]:has-text('plain')").click()
        wb.locator("[data-key=code-LLVM][aria-selected=true]").wait_for()
        wb.locator(".wb-code-bar >> text=edit").click()
        editor = wb.locator("[data-key=editor]")
        editor.fill(broken(editor.input_value(), name, text))
        wb.locator("[data-key=run-edit]").click()
        if name == "compile":  # it stays in the editor, and is no variant
            wb.locator(".wb-line-error").wait_for()
            wb.locator(".wb-edit >> text=As it was").click()  # else it comes again
            wb.locator(".wb-edit >> text=Cancel").click()
        else:
            panes = ".wb-board"
            wb.locator(f"{panes} .{mark}:visible").first.wait_for()
        expect(wb.locator("[role=treeitem]"), name).to_have_count(2 + number)
        assert notebook.python("ex.kernels[0].run()[0].shape") == "(9, 16)", name


def broken(source: str, name: str, text: str) -> str:
    """Return LLVM source that fails in the way of that name."""
    if name == "compile":
        return source + text
    if name == "answer":
        return source.replace(" fmul ", " fadd ", 1)
    head = next(line for line in source.split("\n") if line.startswith("define"))
    name_of_first = source.split(head)[1].strip().split("\n")[0]
    assert name_of_first.endswith(":"), "the first block has a label"
    return source.replace(name_of_first, f"{name_of_first}\n  {text}", 1)


def test_stop_leaves_a_consistent_table(notebook: Notebook) -> None:
    wb = notebook.cell(DOUBLED.format(n=20_000)).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    notebook.settle()
    before = names(wb)
    notebook.cell(ENDLESS)
    wb.locator("[data-key=time]").click()
    wb.locator(".wb-notices [data-key=Stop]").click()
    wb.locator(".wb-notices [data-key=Stop]").wait_for(state="detached")
    wb.locator("[data-key=time]:has-text('Time')").wait_for()
    assert names(wb) == before
    notebook.cell(ORDINARY)
    wb.locator("[data-key=time]").click()
    wb.locator(f"[role=treeitem]:has-text('plain') {SPREAD}").wait_for()


def test_a_search_that_is_stopped_keeps_what_it_tried(notebook: Notebook) -> None:
    wb = notebook.cell(PRODUCT).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    before = set(names(wb))
    notebook.cell(PATIENT)
    for number in range(2):  # after a stop there is a next time
        wb.locator(".wb-results [role=treeitem]:has-text('plain')").click()
        wb.locator("[data-key=search]").click()
        notice = wb.locator(".wb-notices").filter(has_text=SOME_TRIED)
        notice.wait_for()
        expect(wb.locator("[data-key=search]")).to_have_text("Searching…")
        notice.locator("[data-key=Stop]").click()
        wb.locator(".wb-notices [data-key=Stop]").wait_for(state="detached")
        wb.locator("[data-key=search]:text-is('Search')").wait_for()
        summary = wb.locator(".wb-tried-pane summary").nth(number)
        expect(summary).to_have_text(re.compile("stopped$"))
        assert int(summary.inner_text().split()[4]) >= 4
        assert wb.locator(".wb-results .wb-error").count() == 0
    notebook.cell("patched.stop()")
    after = names(wb)
    assert len(after) == len(set(after)) and before <= set(after)
    new = set(after) - before  # none where the best so far was there already
    assert all(name.startswith("search") for name in new), after
    wb.locator("[data-key=time]").click()
    wb.locator(f".wb-results [aria-selected=true] {SPREAD}").wait_for()


def test_an_interrupt_ends_what_the_page_asked_for(notebook: Notebook) -> None:
    """JupyterLab's interrupt ends a search, which keeps what it tried, and a timing."""
    wb = notebook.cell(PRODUCT).locator(".wb")
    wb.locator("[role=treeitem]:has-text('auto')").wait_for()
    notice = wb.locator(".wb-notices").filter(has_text="Python was interrupted")
    try:
        notebook.cell(PATIENT)
        wb.locator("[data-key=search]").click()
        wb.locator(".wb-notices").filter(has_text=SOME_TRIED).wait_for()
        notebook.page.evaluate(f"{KERNEL}.interrupt()")
        notice.wait_for()
        wb.locator("[data-key=search]:text-is('Search')").wait_for()
        expect(wb.locator(".wb-tried-pane summary").last).to_have_text(re.compile("stopped$"))
    finally:
        notebook.cell("patched.stop()")
    notice.wait_for(state="detached")
    try:
        notebook.cell(ENDLESS)
        wb.locator("[data-key=time]").click()
        wb.locator(".wb-notices [data-key=Stop]").wait_for()
        notebook.page.evaluate(f"{KERNEL}.interrupt()")
        notice.wait_for()
        wb.locator("[data-key=time]:has-text('Time')").wait_for()
    finally:
        notebook.cell(ORDINARY)
    assert notebook.python("6 * 7") == "42"


NAMES = """cells => cells.map(cell => [...cell.childNodes].filter(
  node => !node.classList?.contains("wb-mark")).map(node => node.textContent).join(""))"""
"""The texts of names without the marks of times, which depend on the machine's other work."""


def names(wb: Any) -> list[str]:
    """Return the names of the variants, read at one time, in view or scrolled away."""
    cells: list[str] = wb.locator(".wb-results .wb-name").evaluate_all(NAMES)
    return [text.removeprefix("\N{BLACK DIAMOND}").strip() for text in cells]


def test_a_page_that_begins_late_hears_python(notebook: Notebook) -> None:
    """What Python measures arrives, and what is asked is answered."""
    patience = notebook.page.evaluate_handle(IMPATIENT)
    wb = notebook.cell(DOUBLED.format(n=37)).locator(".wb")
    notebook.page.evaluate("(patience) => patience()", patience)
    apply = wb.locator(".wb-offer [data-key^=apply]").first
    expect(apply).to_be_attached()
    apply.click()
    answered = ".wb-variant[aria-selected=true]:not([data-key=variant-0])"
    expect(wb.locator(answered)).to_be_attached()
    expect(wb.locator(".wb-silent")).to_be_hidden()
    assert any(GIVEN_UP_MODEL in fault for fault in notebook.page.faults), "it was late"
