"""Whose line, through the page: expressions as strangers write them, by way of helper functions,
modules, classes and other cells. Kernels, and the code that computes, lead to the line where the
caller of *this* expression stands; helpers' lines unfold below it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import WAIT_MS, drawn, new_page

Pages = Callable[[str], Any]

MODULE = """import functools
import numpy as np
from workbench import Tensor

def timed(f):
    @functools.wraps(f)
    def wrapper(*args):
        return f(*args)
    return wrapper

class Linear:
    def __init__(self, n, m):
        self.weight = Tensor(np.ones((n, m), np.float32))
    def __call__(self, x):
        return x @ self.weight

class Block:
    def __init__(self, n):
        self.first, self.second = Linear(n, 2 * n), Linear(2 * n, n)
    def __call__(self, x):
        h = self.first(x).relu()
        return self.second(h) + x
    @property
    def norm(self):
        return (self.first.weight * self.first.weight).sum()

@timed
def scaled(x, k):
    return (x * k).sum(-1)
"""
SETUP = """import functools, operator
import numpy as np
from workbench import Context, Tensor, explore
import models
R = np.random.default_rng(0)
def T(*s): return Tensor(R.standard_normal(s).astype("float32"))
x, w, v = T(16, 32), T(32, 32), T(32)
(x.mean(-1) + x.var(-1)).realize()
x.exp().sum(-1).realize()"""
CASES: dict[str, tuple[str, str, str]] = {
    # name: cell, lines of its kernels, other lines that its code leads to: those of functions that
    # were called, and those that made arrays
    "values that another cell made": (
        "ex = explore(x.mean(-1), x.var(-1))", "1", ""),
    "a helper that makes tensors": (
        "ex = explore((T(8, 8) @ T(8, 4)).exp())", "1", ""),
    "a decorated function of a module": (
        "from models import scaled\ny = scaled(x, 3)\nex = explore(y)",
        "2", "models.py:8 models.py:29"),
    "a class of a module": (
        "net = models.Block(32)\nh = net(x)\nex = explore(h.sum(-1))",
        "3 models.py:21 models.py:22", "1 2 models.py:13 models.py:15 models.py:19"),
    "a property": (
        "net = models.Block(8)\nex = explore(\n    net.norm.sqrt()\n)",
        "3", "1 models.py:13 models.py:19 models.py:25"),
    "a loop": (
        "h = x\nfor layer in [models.Linear(32, 32) for _ in range(3)]:\n"
        "    h = layer(h).tanh()\nex = explore(h)",
        "3", "2 models.py:13 models.py:15"),
    "a comprehension": (
        "rows = [\n    (x * k).sum(-1)\n    for k in (1, 2)\n]\nex = explore(*rows)",
        "2", ""),
    "a lambda, and a reduction of functools": (
        "act = lambda t: t.exp() + 1\n"
        "y = functools.reduce(lambda t, f: f(t), [act, act], x)\nex = explore(y.sum(-1))",
        "3", "1 2"),
    "operators by name, and map": (
        "pairs = list(map(operator.mul, [x, x], [v, v + 1]))\n"
        "ex = explore(functools.reduce(operator.add, pairs).sum(-1))",
        "2", "1"),
    "a decorator of this cell": (
        "def twice(f):\n    return lambda t: f(f(t))\n@twice\ndef grow(t):\n    return t * t + 1\n"
        "ex = explore(grow(x).sum(-1))",
        "6", "2 5"),
    "recursion in a class": (
        "class Poly:\n    def __init__(self, *c): self.c = c\n    def __call__(self, t, i=0):\n"
        "        if i == len(self.c) - 1: return t * 0 + self.c[i]\n"
        "        return self(t, i + 1) * t + self.c[i]\n"
        "with Context(LIVE=0):\n    value = Poly(1.0, 2.0, 3.0)(x)\n    ex = explore(value.sum(-1))",
        "8", "4 5 7"),
    "a helper that explores": (
        "def show(t):\n    return explore(t.sum(-1))\nex = show((x - v).exp())",
        "2", "3"),
}  # fmt: skip
ARRAYS = {"In[1]:6", "In[1]:7"}
"""The lines that made x, w and v, in the first cell."""
REACHED = """() => {
  const count = () => [...document.querySelectorAll(".wb-code-body .wb-link")]
    .filter((e) => e.textContent.includes("="));
  const reached = new Set();
  for (const at of count().keys()) {
    count()[at].click(); // what it lights may draw the code anew
    for (const e of document.querySelectorAll(".wb-source.wb-lit .wb-words:first-child")) reached.add(e.innerText);
  }
  return [...reached];
}"""
"""Click every line of the code that computes; return the lines that one or another leads to."""
SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
setup, cases = json.loads(sys.stdin.read())
shell.run_cell(setup, store_history=True).raise_error()
for place, cell in enumerate(cases):
    shell.run_cell(cell, store_history=True).raise_error()
    shell.user_ns["ex"].to_html(f"{place}.html")
"""


@pytest.fixture(scope="module")
def pages(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """How the exported page of a case is shown. All cells run in one session, in this order: the
    first case is cell 2."""
    folder = tmp_path_factory.mktemp("lines")
    (folder / "models.py").write_text(MODULE)
    (folder / "main.py").write_text(SHELL)
    env = os.environ | {"IPYTHONDIR": str(folder), "PYTHONSAFEPATH": ""}
    cells = [cell for cell, _, _ in CASES.values()]
    process = subprocess.run(
        [sys.executable, "main.py"], cwd=folder, env=env, text=True, check=False,
        input=json.dumps([SETUP, cells]), capture_output=True, timeout=600,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-2000:]
    page = new_page(browser, viewport={"width": 1400, "height": 900})

    def opened(case: str) -> Any:
        place = [*CASES].index(case)
        page.goto((Path(folder) / f"{place}.html").as_uri(), timeout=WAIT_MS)
        page.click("[data-key=mode-tune]")
        page.wait_for_selector(".wb-kernel")
        drawn(page)
        return page

    yield opened
    page.context.close()


def named(case: str, numbers: str) -> set[str]:
    """Return lines as the page names them: those of the case's cell, or of files."""
    cell = [*CASES].index(case) + 2
    return {n if ":" in n else f"In[{cell}]:{n}" for n in numbers.split()}


@pytest.mark.parametrize("case", CASES)
def test_whose_line(pages: Pages, case: str) -> None:
    page = pages(case)
    _, of_kernels, others = CASES[case]
    rows = page.locator(".wb-kernel")
    shown, reached = set(), set()
    for kernel in range(rows.count()):
        shown.add(rows.nth(kernel).locator(".wb-words.wb-clip").last.inner_text())
        rows.nth(kernel).click()
        page.click("[data-key=code-C]")
        reached.update(page.evaluate(REACHED))
    assert shown == named(case, of_kernels)
    assert reached - ARRAYS == shown | named(case, others)


def test_lines_in_functions_unfold(pages: Pages) -> None:
    """At first there are the user's own lines; a click shows what one of them called."""
    page = pages("a class of a module")
    wheres = page.locator(".wb-source .wb-words:first-child")
    called = page.locator(".wb-source.wb-called .wb-words:first-child")
    assert wheres.all_inner_texts() == ["In[1]:7", "In[5]:1", "In[5]:2", "In[5]:3"]
    line = page.locator(".wb-source:has-text('h = net(x)')")
    line.click()
    assert called.all_inner_texts() == ["models.py:15", "models.py:21", "models.py:22"]
    line.click()
    assert called.count() == 0
    line.focus()
    page.keyboard.press("Enter")
    assert called.count() == 3

    page.click("[data-key=mode-plan]")
    page.click(".wb-plan-list [role=option]:has-text('h = ')")
    detail = page.locator(".wb-plan .wb-heading:has(.wb-where)").first
    unfold = detail.locator("[aria-expanded]")
    own = detail.locator("button.wb-where[data-key^=line-]")
    assert own.first.inner_text() == "In[5]:2"
    assert own.nth(1).is_hidden() and unfold.first.get_attribute("aria-expanded") == "false"
    unfold.first.click()
    assert own.nth(1).is_visible() and own.nth(1).inner_text().startswith("models.py:")


def test_arguments_have_the_names_of_arrays(pages: Pages) -> None:
    """In the head of the loops, in statements and in code; what is copied is the kernel's."""
    page = pages("operators by name, and map")
    heads = page.locator(".wb-buffer").all_inner_texts()
    assert {"x p1 in", "v p2 in"} <= set(heads), heads
    page.click("[data-key=code-C]")
    tag = page.locator(".wb-code-body .wb-named[data-user=x]").first
    assert tag.inner_text() == "p1" and tag.get_attribute("title") == "p1: your x"
    drawn = tag.evaluate("e => getComputedStyle(e, '::after').content")
    assert "x" in drawn
    assert page.locator(".wb-stmt .wb-named[data-user=v]").count() > 0
    labels = page.evaluate(
        "[...document.querySelectorAll('.wb-stmt')].map((e) => e.textContent).join('')"
    )
    assert "p1[" in labels
