"""The user's lines: found outside of libraries, kept by tensors, freed with them."""

from __future__ import annotations

import gc
import linecache
import pickle
import sys
import types
from typing import Any
from weakref import ref

import numpy as np
import pytest

from tests.support import count
from workbench.base import source
from workbench.base.source import Derivation, SourceLine, user_line
from workbench.tensor import Tensor
from workbench.tensor.autograd.leaves import plain_value


def lines_of(tensor: Tensor) -> list[SourceLine]:
    """The lines that made a tensor, that of this module's function first."""
    assert tensor.derivation is not None
    return [source.line_of(call) for call in tensor.derivation.calls]


def line_of(tensor: Tensor) -> SourceLine:
    return lines_of(tensor)[0]


def test_the_semicolon_that_hides_a_value_is_no_part_of_a_line() -> None:
    code = "line = user_line();\n"
    name = "semicolon.py"
    linecache.cache[name] = (len(code), None, [code], name)
    env: dict[str, Any] = {"user_line": user_line}
    exec(compile(code, name, "exec"), env)
    assert env["line"].text == "line = user_line()"


def test_here_is_the_calling_line() -> None:
    line = user_line()
    assert line is not None
    assert line.name == __file__
    assert line.text == "line = user_line()"
    assert str(line) == f"test_source.py:{line.line}"


def test_an_operation_keeps_its_line() -> None:
    x = Tensor(np.ones((3, 4)))
    y = (x @ x.T).relu()  # the line
    assert line_of(y).text == "y = (x @ x.T).relu()  # the line"
    assert line_of(x).text == "x = Tensor(np.ones((3, 4)))"


def helper(x: Tensor) -> Tensor:
    return x.tanh() - 1  # inside


def test_an_operation_knows_who_called() -> None:
    """Frames of this package and of what is installed are no one's."""
    y = helper(Tensor(np.ones(3)))  # outside
    # a process of pytest-xdist is started by `python -c`, whose line has no text
    texts = [line.text.partition("  # ")[2] for line in lines_of(y) if line.text]
    assert texts == ["inside", "outside"]


def test_equal_nodes_of_two_lines_have_their_own() -> None:
    x = Tensor(np.ones(7))
    first = x + 1
    second = x + 1
    assert plain_value(first.uop) is plain_value(second.uop)
    assert line_of(first).text == "first = x + 1"
    assert line_of(second).text == "second = x + 1"


def test_one_call_is_kept_once() -> None:
    x = Tensor(np.ones((3, 4)))
    y = x.softmax(1)
    assert y.derivation is not None and x.derivation is not None
    steps = [d for d in _above(y.derivation) if d is not x.derivation]
    assert len(steps) >= 5 and len({id(d.calls) for d in steps}) == 1


def _above(derivation: Derivation) -> list[Derivation]:
    derivations = [derivation]
    for one in derivations:
        derivations += [s for s in one.sources if s not in derivations]
    return derivations


def test_constants_have_no_line() -> None:
    assert Tensor(3.0).derivation is None


def test_computing_keeps_the_line_and_forgets_of_what() -> None:
    x = Tensor(np.ones(7)) + 1
    line = line_of(x)
    assert line_of(x.realize()) == line
    assert x.derivation is not None
    assert x.derivation.node is plain_value(x.uop) and x.derivation.sources == ()


def test_what_changes_nothing_is_no_step() -> None:
    x = Tensor(np.ones((3, 4)))
    assert x.reshape(3, 4).derivation is x.derivation
    assert Tensor(x).derivation is x.derivation


def test_derivations_end_with_their_tensors() -> None:
    """However long a chain is; and they keep no node alive."""
    x = Tensor(np.ones(7))
    for _ in range(count(30_000, 6)):
        x = x.flip(0)
    assert x.derivation is not None
    last, first = ref(x.derivation), x.derivation
    while first.sources:
        (first,) = first.sources
    del x
    gc.collect()
    assert last() is None and first.node is None


def test_a_stack_that_is_very_deep_is_bounded() -> None:
    def down(x: Tensor, n: int) -> Tensor:
        return down(x, n - 1) if n else x + 2  # here

    y = down(Tensor(np.ones(3)), 500)
    assert y.derivation is not None
    assert len(y.derivation.calls) <= source.MOST_CALLS
    assert line_of(y).text.endswith("# here")


def test_a_copy_elsewhere_has_no_line_there() -> None:
    x = Tensor(np.ones(3))
    assert pickle.loads(pickle.dumps(x.derivation)) is None


def test_cells_have_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a cell that is run again, which keeps its file's name."""
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
    first = names["cell"](x)
    assert line_of(first) == SourceLine("In[3]", 2, "return x - 9")
    shell.execution_count = 4
    assert line_of(names["cell"](x)) == SourceLine("In[4]", 2, "return x - 9")
    assert line_of(first) == SourceLine("In[3]", 2, "return x - 9")


class FakeShell:
    """As much of IPython's shell as a cell's name needs."""

    def __init__(self, filename: str):
        self.compile = self
        self.execution_count = 3
        self._filename = filename

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        label = "Cell", f"In [{self.execution_count}]"
        return label if name == self._filename else None
