"""`%load_ext workbench`: the magics, in an IPython of this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench
from tests.viz.record.support import plain
from workbench.backends.device import Device
from workbench.base.context import Context
from workbench.viz import Exploration
from workbench.viz.schema.messages import ViewState
from workbench.viz.session.requests import jobs

SETUP = """
import numpy as np
from workbench import Tensor
a = Tensor(np.ones((8, 8), dtype=np.float32), device="LLVM")
"""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, nothing_saved: Path, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    off = Config({"HistoryManager": {"enabled": False}})
    InteractiveShell.clear_instance()
    ipython = InteractiveShell.instance(config=off)
    workbench.load_ipython_extension(ipython)
    ipython.run_cell(SETUP)
    with Context(LIVE=1):
        yield ipython
    InteractiveShell.clear_instance()
    jobs().close()


def test_a_cell_is_explored(shell: Any) -> None:
    ran = shell.run_cell("%%kernel -o 'UPCAST(\"g1\", 4)'\nb = a @ a\nb.relu()")
    ex = ran.result
    assert isinstance(ex, Exploration)
    assert ex.kernels[0].title == "matmul+relu"
    assert ex.line is not None and str(ex.line).endswith(":3"), "as the cell counts"
    assert plain(ex.display.session.row(1))["opts"] == ['UPCAST("g1", 4)']
    assert ex.display.view == ViewState(variant=1)
    assert "b" in shell.user_ns, "the cell ran as any other"


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_line_has_the_number_of_its_cell(shell: Any, is_stored: bool) -> None:
    """IPython counts on before a cell runs where it stores it, and not at all where it does not."""
    for _ in range(3):
        cell = "%%kernel\nb = a @ a\n\nb.relu()"
        ran = shell.run_cell(cell, store_history=is_stored)
        assert str(ran.result.line) == f"In[{ran.execution_count}]:4"


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ("%%kernel\nb = 1", "last line of the cell is not an expression"),
        ("%%kernel\n3", "cannot explore argument 1, an int"),
        ("%%kernel --faster\na", "there is no option --faster"),
        ("%%kernel -o 'UPCAST\na", "No closing quotation"),
        ("%%kernel -o 'UPCAST(\"g0\", 2)'\nTensor(2.0)", "no kernel to apply opts to"),
        ("%timekernel Tensor(2.0)", "Nothing to compute"),
        ("%%kernel -s everything\na", "invalid choice"),
        ("%%kernel -d ABACUS\na + 1", "there is no device"),
        ("%%kernel -o nonsense\na + 1", "nonsense is not an opt"),
        ("%timekernel", "nothing to explore"),
    ],
)
def test_what_is_wrong_is_said(
    shell: Any, capsys: pytest.CaptureFixture[str], cell: str, says: str
) -> None:
    ran = shell.run_cell(cell)
    ran.raise_error()
    assert says in capsys.readouterr().out


def test_timekernel(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("%timekernel (a @ a).exp()").raise_error()
    assert capsys.readouterr().out.startswith("matmul+exp: ")


def test_an_error_of_the_cell_is_the_cells_own(shell: Any) -> None:
    ran = shell.run_cell("%%kernel\nint('no number')")
    assert isinstance(ran.error_in_exec, ValueError), "with its traceback"


def test_a_cell_is_explored_for_a_machine_that_is_not_here(shell: Any) -> None:
    name = Device.machine_names()[0]
    device, machine = name.split(":")
    for options in (f"-t {machine}", f"-d {device} -t {machine}", f"-d {name}"):
        ex = shell.run_cell(f"%%kernel {options}\n(a @ a).relu()").result
        assert ex.device == name and ex.kernels[0].device == name


def test_a_name_with_blanks_needs_no_quotes(shell: Any) -> None:
    ex = shell.run_cell("%%kernel -t RTX 4090 -o 'UPCAST(\"g0\", 2)'\na + 1").result
    assert ex.device == "CUDA:RTX 4090" and ex.display.view.variant


def test_kernels_are_for_the_device_also_where_tensors_are_elsewhere(shell: Any) -> None:
    ex = shell.run_cell("%%kernel -d PYTHON\na + 1").result
    assert ex.device == ex.kernels[0].device == "PYTHON"


def test_a_cell_is_profiled(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    ran = shell.run_cell("%%profile run\nb = (a @ a).relu()\nfor _ in range(2): (b + 1).realize()")
    run = ran.result
    assert run is shell.user_ns["run"]
    assert {row.line for row in run.kernels} and len(run.kernels) >= 2
    failed = shell.run_cell("%%profile seen\n(a + 1).realize()\n1 / 0")
    assert isinstance(failed.error_in_exec, ZeroDivisionError)
    assert len(shell.user_ns["seen"].kernels) == 1
    assert "ended by  ZeroDivisionError" in capsys.readouterr().out
    shell.run_cell("%%profile 1 + 2\na")
    assert "is not the name of a variable" in capsys.readouterr().out
