"""Whose line: kernels and instructions lead to the line of the expression that is explored, in
notebooks and scripts as people write them."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench import Tensor, explore
from workbench.viz import Exploration
from workbench.viz.model.lines import UserLines

MODULE = """import numpy as np
from workbench import Tensor
WEIGHTS = Tensor(np.ones((128, 32), np.float32))

def block(x):
    y = x @ WEIGHTS
    return y.relu()
"""
# Behind each exploration stand the lines that its kernels must name and, behind "/", all those to
# which their arithmetic must lead: cell and line.
CELLS = """import numpy as np
from workbench import Tensor, explore
R = np.random.default_rng(0)
def T(*s): return Tensor(R.standard_normal(s).astype("float32"))
---
x, w = T(64, 128), T(128, 128)
---
ex = explore(x.layernorm())  # 3:1 / 3:1
---
(x.layernorm() + x.mean(-1, keepdim=True) + x.sum()).realize()
ex = explore(x.mean(-1), x.var(-1))  # 4:2 / 4:2
---
def norm(t):
    m = t.mean(-1, keepdim=True)
    return (t - m) / 4
---
ex = explore(norm(x))  # 6:1 / 6:1 5:2 5:3
---
import strangers
ex = explore(strangers.block(x))  # 7:2 / 7:2 strangers.py:6 strangers.py:7
---
f = lambda t: (
    t.exp()
     .sum(-1)
)
ex = explore(f(x))  # 8:5 / 8:5 8:2 8:3
---
class Scale:
    def __init__(self, k): self.k = k
    def __call__(self, t):
        return (t * self.k).sum(-1)
s = Scale(3)
ex = explore(s(x))  # 9:6 / 9:6 9:4
---
ys = [x.sum(-1) * k
      for k in range(1, 3)]
ex = explore(*ys)  # 10:1 / 10:1
---
ex = explore(x.layernorm())  # 11:1 / 11:1
---
y = x.layernorm()
---
z = x.mean(-1)
---
x.realize()
ex = explore(y)  # 12:1 / 12:1
---
ex = explore(z * 2)  # 15:1 / 13:1 15:1
---
ex = explore(y, without=("div-power-of-two",))  # 12:1 / 12:1
---
m = x.mean(-1, keepdim=True)
c = x - m
v = (c * c).mean(-1, keepdim=True)
ex = explore(c / (v + 1).sqrt())  # 17:4 / 17:1 17:2 17:3 17:4
---
def show(t): return explore(t)
---
ex = show(norm(x) @ w)  # 19:1 / 19:1 5:2 5:3
---
total = x
for k in (2, 3):
    total = norm(total) * k
ex = explore(total)  # 20:3 / 20:3 5:2 5:3
---
ex = explore(x.layernorm())  # 21:1 / 21:1
"""
SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in sys.stdin.read().split("\\n---\\n"):
    shell.run_cell(cell, store_history=True).raise_error()
    if "ex = " in cell:
        print(told(shell.user_ns["ex"], cell))
"""
TOLD = '''
import json
from msgspec import to_builtins
from workbench.viz.model.provenance import links_of
from workbench.viz.record.record import build

def told(ex, cell):
    """What kernels and their code say of lines, and what a page is given of it."""
    code, numbers = {}, [i.nodes[0] for i in ex.items if i.kernel is not None]
    for kernel, node in zip(ex.kernels, numbers):
        made = kernel.compile("LLVM")
        links = links_of(made, ex.passes, ex.lines, node)
        for number, text in enumerate(made.source.split("\\n"), 1):
            if any(f" {op} " in text for op in ("fadd", "fmul", "fsub", "fdiv", "fcmp"))\\
                    or "@llvm.fmuladd" in text and "declare" not in text:
                code.update(dict.fromkeys(map(str, links.of_line(number).lines)))
    record = to_builtins(build(ex, "first"))
    where = lambda row: record["lines"][row["line"]]["where"]
    return json.dumps({"cell": cell, "kernels": [str(k.line) for k in ex.kernels],
        "page": [where(k) for k in record["kernels"]], "code": list(code)})
'''


def run(folder: Path, program: str, text: str = "") -> list[Any]:
    """Return what a program in a process of its own prints, a JSON value a line."""
    (folder / "strangers.py").write_text(MODULE)
    (folder / "main.py").write_text(program)
    env = os.environ | {"IPYTHONDIR": str(folder), "PYTHONSAFEPATH": ""}
    process = subprocess.run(
        [sys.executable, "main.py"], cwd=folder, env=env, input=text, text=True,
        capture_output=True, timeout=200, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-2000:]
    return [json.loads(line) for line in process.stdout.splitlines() if line[:1] == "{"]


def test_lines_of_a_notebook(tmp_path: Path) -> None:
    """Helpers of other cells and of modules, lambdas, comprehensions, classes, loops; the same
    expression in several cells, values shared between them, and values that were computed."""
    rows = run(tmp_path, TOLD + SHELL, CELLS)
    assert len(rows) >= 14
    for row in rows:
        kernels, code = row["cell"].rpartition("# ")[2].split("/")
        expected = {f"In[{k.replace(':', ']:')}" for k in kernels.split()}
        assert row["kernels"] == row["page"] and set(row["page"]) == expected, row
        lines = {c if ".py" in c else f"In[{c.replace(':', ']:')}" for c in code.split()}
        assert set(row["code"]) == lines, row


SCRIPT = """
import numpy as np
from workbench import Tensor, explore
import strangers

def data(*shape):
    return Tensor(np.random.rand(*shape).astype("float32"))

def layer(x):
    return x.layernorm()

def main():
    x = data(64, 128)
    layer(x).realize()
    y = layer(x)
    print(told(explore(y), "y = layer(x)"))
    print(told(explore(strangers.block(x)), "strangers.block(x)"))

x = data(64, 128)
x.mean(-1).realize()
z = x.mean(-1)
print(told(explore(z), "z = x.mean(-1)"))
if __name__ == "__main__":
    main()
"""


def test_lines_of_a_script(tmp_path: Path) -> None:
    """The line is seen from where it is asked: a function's, not the call of `main` at the end."""
    program = (TOLD + SCRIPT).splitlines()
    rows = run(tmp_path, "\n".join(program))
    assert [row["cell"] for row in rows] == [
        "z = x.mean(-1)", "y = layer(x)", "strangers.block(x)",
    ]  # fmt: skip
    for row in rows:
        ((name, number),) = {tuple(line.split(":")) for line in row["kernels"]}
        assert name == "main.py" and row["cell"] in program[int(number) - 1]
        texts = [program[int(li.split(":")[1]) - 1] for li in row["code"] if "main" in li]
        assert any(row["cell"] in text for text in texts)
    inner = next(li for li in rows[1]["code"] if li != rows[1]["kernels"][0])
    assert "x.layernorm()" in program[int(inner.split(":")[1]) - 1]
    assert rows[2]["code"][1:] == ["strangers.py:6", "strangers.py:7"]


def test_a_rewrite_has_the_line_of_what_it_replaced() -> None:
    x = Tensor(np.ones((16, 128), np.float32))
    total = x.sum(1)
    shared = total / 128
    ex = explore(shared.contiguous(), total.contiguous())
    (rewritten,) = [n for n in ex.outputs[0].toposort() if n.op.name == "MUL"]
    assert ex.lines.nearest(rewritten) == ex.lines.first(rewritten)
    line = ex.lines.first(rewritten)
    assert line is not None and line.text == "shared = total / 128"


def test_the_line_of_the_run_that_asks_stands_before_that_of_another_run() -> None:
    x = Tensor(np.ones((16, 128), np.float32))

    def another() -> Tensor:
        return x.exp()  # another

    with ThreadPoolExecutor(1) as runs:  # as an earlier cell's: nothing of ours called it
        before = runs.submit(another).result()
    near = x.exp()
    ex = explore(before + near)
    texts = [line.text for line in ex.lines.of(x.exp().uop)]
    assert texts == ["near = x.exp()", "return x.exp()  # another"]


def test_a_module_that_is_loaded_again_shows_its_new_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "loaded_twice.py"
    file.write_text("def f(t):\n    return t + 1\n")
    os.utime(file, (1, 1))  # older than what follows, by whole seconds
    module: Any = importlib.import_module("loaded_twice")
    x = Tensor(np.ones(8, np.float32))
    for text in ("return t + 1", "return (t * 3).relu()"):
        if "relu" in text:
            file.write_text(f"def f(t):\n    {text}\n")
            importlib.reload(module)
        line = explore(module.f(x)).kernels[0].line
        assert line is not None and [i.text for i in line.inner] == [text]


def test_a_value_of_several_lines_has_all() -> None:
    x = Tensor(np.ones((16, 128), np.float32))

    def elsewhere() -> Tensor:
        return x.exp()  # elsewhere

    def here() -> Exploration:
        near = x.exp()
        return explore(elsewhere() + near)

    before = elsewhere()
    ex = here()
    texts = [line.text for line in ex.lines.of(x.exp().uop)]
    assert texts == ["return explore(elsewhere() + near)", "near = x.exp()"]
    (line,) = explore(before).lines.of(before.uop)
    assert [line.text, *[i.text for i in line.inner]] == [
        "before = elsewhere()", "return x.exp()  # elsewhere",
    ]  # fmt: skip


def test_nobodys_values_have_no_line() -> None:
    x = Tensor(np.ones(3))
    assert UserLines().of(x.uop) == () and UserLines().nearest(x.uop) is None


@pytest.mark.parametrize("without", [(), ("div-power-of-two",)])
def test_planning_again_keeps_the_lines(without: tuple[str, ...]) -> None:
    x = Tensor(np.ones((16, 128), np.float32))
    y = (x.mean(1, keepdim=True) - x).exp().sum(1)
    ex = explore(y, without=without)
    stored = next(d.node for d in ex.decisions if not d.stored)
    again = ex.replan({stored: True})
    assert {str(k.line) for k in again.kernels} == {str(ex.line)}
    assert ex.line is not None and ex.line.text.startswith("y = ")
