"""The course runs from top to bottom, and what is committed of it is clean."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from run_notebooks import MAX_BYTES, dumps, problems, stripped

from tests.support import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_the_tour_exists() -> None:
    assert (ROOT / "notebooks" / "01_tour.ipynb") in NOTEBOOKS


@each_notebook
@pytest.mark.timeout(400)
def test_notebook_runs_from_top_to_bottom(path: Path, tmp_path: Path) -> None:
    script = ROOT / "scripts" / "run_notebooks.py"
    run = subprocess.run(
        [sys.executable, script, "--out", tmp_path, path],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    executed = nbformat.read(tmp_path / path.name, as_version=4)
    counts = [c.execution_count for c in executed.cells if c.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))


@each_notebook
def test_committed_notebook_is_clean(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert list(problems(text)) == []
    notebook = nbformat.reads(text, as_version=4)
    assert text == dumps(stripped(notebook)), "run `make notebooks`"
    assert any(c.get("outputs") for c in notebook.cells), "run `make notebooks`"


VIEW = {"application/vnd.jupyter.widget-view+json": {"model_id": "a"}}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (new_output("error", ename="KeyError", evalue="1"), "ended in KeyError"),
        (new_output("display_data", data=VIEW), "shows a widget"),
        (new_output("stream", text="saved /usr/lib/thing.so"), "path of one machine"),
        (new_output("stream", text=str(ROOT / "a")), "path of one machine"),
        (new_output("stream", text=r"saved C:\Users\me"), "path of one machine"),
        (new_output("display_data", data={"text/html": "x" * MAX_BYTES}), "bytes"),
    ],
)
def test_what_must_not_be_committed(
    output: nbformat.NotebookNode, expected: str
) -> None:
    notebook = new_notebook(cells=[new_code_cell("1", outputs=[output])])
    assert any(expected in problem for problem in problems(dumps(notebook)))


def test_widget_state_is_refused_and_stripped() -> None:
    notebook = new_notebook(
        cells=[new_code_cell("1", outputs=[new_output("display_data", data=VIEW)])],
        metadata={"widgets": {"application/vnd.jupyter.widget-state+json": {}}},
    )
    assert "it holds widget state" in list(problems(dumps(notebook)))
    assert list(problems(dumps(stripped(notebook)))) == []


def test_ordinary_text_is_not_taken_for_a_path() -> None:
    html = "<b>g0/4</b> <a href='https://host.org/usr/lib'>x</a> and/or 1 / 2 ./tmp/a"
    output = new_output("display_data", data={"text/html": html})
    notebook = new_notebook(
        cells=[new_markdown_cell("a/b"), new_code_cell("1", outputs=[output])]
    )
    assert list(problems(dumps(notebook))) == []


def test_stripping_twice_changes_nothing() -> None:
    output = new_output("execute_result", data={"text/plain": "2"}, execution_count=7)
    cell = new_code_cell("1 + 1\n", outputs=[output], execution_count=7)
    once = dumps(stripped(new_notebook(cells=[cell])))
    assert dumps(stripped(nbformat.reads(once, as_version=4))) == once
