"""The user's line: found outside the package, first line wins, freed with the node."""

from __future__ import annotations

import gc
import linecache
import sys
import types
from typing import Any

import numpy as np
import pytest

from workbench import source
from workbench.source import SourceLine, here, source_of
from workbench.tensor import Tensor


def line_of(tensor: Tensor) -> SourceLine:
    found = source_of(tensor.uop)
    assert found is not None
    return found


def test_here_is_the_calling_line() -> None:
    line = here()
    assert line is not None
    assert line.name == __file__
    assert line.text == "line = here()"
    assert str(line) == f"test_source.py:{line.line}"


def test_an_operation_keeps_its_line() -> None:
    x = Tensor(np.ones((3, 4)))
    y = (x @ x.T).relu()  # the line
    assert line_of(y).text == "y = (x @ x.T).relu()  # the line"
    assert line_of(x).text == "x = Tensor(np.ones((3, 4)))"


def test_all_that_an_operation_makes_has_the_line() -> None:
    x = Tensor(np.ones((3, 4)))
    y = x.tanh()
    made = [
        n for n in y.uop.toposort(lambda n: n is not x.uop) if n.src and n is not x.uop
    ]
    assert len(made) > 5
    assert {source_of(n) for n in made} == {line_of(y)}


def test_equal_nodes_keep_the_first_line() -> None:
    x = Tensor(np.ones(7))
    first = x + 1
    second = x + 1
    assert first.uop is second.uop
    assert line_of(second).text == "first = x + 1"


def test_constants_have_no_line() -> None:
    assert source_of(Tensor(3.0).uop) is None


def test_computing_keeps_the_line() -> None:
    x = Tensor(np.ones(7)) + 1
    line = line_of(x)
    assert line_of(x.realize()) is line


def test_lines_do_not_keep_nodes_alive() -> None:
    x = Tensor(np.ones(7))
    x + 1
    gc.collect()
    before = len(source._LINES)
    y = x * 12345.0
    assert len(source._LINES) > before
    del y
    gc.collect()
    assert len(source._LINES) == before


def test_cells_have_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    filename = "/tmp/ipykernel_1/123.py"
    text = "def cell(x):\n    return x - 9\n"
    cache = (len(text), None, text.splitlines(True), filename)
    monkeypatch.setitem(linecache.cache, filename, cache)
    shell = FakeShell(filename)
    ipython = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)  # type: ignore[arg-type]
    names: dict[str, Any] = {}
    exec(compile(text, filename, "exec"), names)
    x = Tensor(np.ones(3))
    assert line_of(names["cell"](x)) == SourceLine("In[3]", 2, "return x - 9")


class FakeShell:
    """As much of IPython's shell as a cell's name needs."""

    def __init__(self, filename: str):
        self.compile = self
        self._filename = filename

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        return ("Cell", "In[3]") if name == self._filename else None
