"""The course runs from top to bottom, and what is committed of it is clean."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from run_notebooks import MAX_BYTES, differences, dumps, main, problems, stored_outputs, stripped

from tests.peers import peer
from tests.support import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CHAPTERS = [path for path in NOTEBOOKS if path.stem != "00_index"]
EXERCISES = {
    "02_rewrites": 2, "03_scheduling": 3, "04_opts_by_hand": 2, "05_matmul_to_the_peak": 2,
    "06_train_digits": 1, "07_gpu_in_slow_motion": 4,
}  # fmt: skip
NEEDED = {"08_your_own_model": ("torch", "onnx")}
"""Libraries that a chapter is about."""
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
Cells = list[nbformat.NotebookNode]


@pytest.mark.parametrize("page", ["notebooks/00_index.ipynb", "README.md"])
def test_every_chapter_is_listed(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\((?:notebooks/)?(\d\d_\w+\.ipynb)\)", text))
    assert [int(path.stem[:2]) for path in CHAPTERS] == [*range(1, 9)]
    assert linked - {"00_index.ipynb"} == {path.name for path in CHAPTERS}


@each_notebook
def test_links_lead_somewhere(path: Path) -> None:
    for name in re.findall(r"\]\(([\w./]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / name).is_file(), name


@each_notebook
@pytest.mark.timeout(400)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_notebook_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NEEDED.get(path.stem, ()):
        peer(name)
    failed = main(["--out", str(tmp_path), str(path)])
    assert not failed, capsys.readouterr().err
    executed = nbformat.read(tmp_path / path.name, as_version=4)
    counts = [c.execution_count for c in executed.cells if c.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    committed = nbformat.read(path, as_version=4)
    changed = "\n".join(differences(executed, committed))
    assert not changed, f"{changed}\nread its texts again, then `make notebooks`"
    attempts, solutions = _tagged(executed, "exercise"), _tagged(executed, "solution")
    assert len(attempts) == len(solutions) == EXERCISES.get(path.stem, 0)
    assert all(_said(cell).startswith("not yet: ") for cell in attempts)
    assert all(_said(cell).startswith("right: ") for cell in solutions)


def _tagged(notebook: nbformat.NotebookNode, tag: str) -> Cells:
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


def _said(cell: nbformat.NotebookNode) -> str:
    return str(cell.outputs[-1].data["text/plain"])


@pytest.mark.parametrize("name", EXERCISES)
def test_answers_are_folded_and_far_from_the_question(name: str) -> None:
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    answers = [c for c in notebook.cells if c.source.rstrip().split("\n")[-1][:8] == "predict("]
    assert len(answers) >= 4
    for cell in answers:
        (output,) = cell.outputs
        html = output.data["text/html"]
        assert html.startswith("<details><summary>")
        assert output.data["text/plain"] == "No guess yet: the answer is folded."
        why = html.split("<p>")[1].split(". ")[-1].removesuffix("</p></details>")
        assert why not in cell.source


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
        (new_output("stream", text="it took 1.25 ms"), "a time or an address"),
        (new_output("stream", text="at 96.5 GFLOP/s"), "a time or an address"),
        (new_output("stream", text="<a 0x7f3da8c0>"), "a time or an address"),
        (
            new_output("display_data", data={"text/html": "&lt;f at 0x7f3da8c0&gt;"}),
            "a time or an address",
        ),
    ],
)
def test_what_must_not_be_committed(output: nbformat.NotebookNode, expected: str) -> None:
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
    notebook = new_notebook(cells=[new_markdown_cell("a/b"), new_code_cell("1", outputs=[output])])
    assert list(problems(dumps(notebook))) == []


def test_times_of_passes_go() -> None:
    """They stand in the text, the tables and the headings of pictures."""
    notebook = nbformat.read(ROOT / "notebooks" / "00_index.ipynb", as_version=4)
    (picture,) = notebook.cells[1].outputs
    html = picture.data["text/html"]
    timed = html.replace('<td class="n"></td>', '<td class="n">12.5 µs</td>')
    timed = timed.replace('<span class="mu"></span>', '<span class="mu">1.2 ms</span>')
    assert timed.count("12.5 µs") > 5 and timed.count("1.2 ms") >= 2
    plain = picture.data["text/plain"].replace("simplify-tensor", "simplify-tensor   80 µs")
    picture.data["text/html"], picture.data["text/plain"] = timed, plain
    (again,) = stripped(notebook)["cells"][1].outputs
    assert again.data["text/html"] == html
    assert "80 µs" not in again.data["text/plain"]


def test_what_was_measured_before_is_kept_while_its_cell_is_the_same() -> None:
    def notebook(source: str, svg: str) -> nbformat.NotebookNode:
        output = new_output("execute_result", data={"image/svg+xml": svg, "text/plain": "1 s"})
        cell = new_code_cell(source, outputs=[output], metadata={"tags": ["measured"]})
        return new_notebook(cells=[cell])

    def shown(notebook: nbformat.NotebookNode) -> dict[str, str]:
        return dict(stripped(notebook).cells[0].outputs[0].data)

    before = notebook("race(a)", "old")
    same, changed = notebook("race(a)", "new"), notebook("race(b)", "new")
    assert shown(stored_outputs(same, before))["image/svg+xml"] == "old"
    assert shown(stored_outputs(changed, before))["image/svg+xml"] == "new"
    assert "1 s" not in shown(changed)["text/plain"]


def test_other_text_than_is_committed_is_told() -> None:
    def notebook(
        output: nbformat.NotebookNode, tag: str = "", machine: str = "here"
    ) -> nbformat.NotebookNode:
        metadata = {"tags": [tag]} if tag else {}
        cell = new_code_cell("f()", outputs=[output], metadata=metadata)
        cells = [new_markdown_cell("It is 1."), cell]
        return new_notebook(cells=cells, metadata={"machine": machine})

    def folded(answer: int) -> nbformat.NotebookNode:
        html = f"<details><p>{answer}</p></details>"
        data = {"text/plain": "No guess yet", "text/html": html}
        return new_output("execute_result", data=data)

    one, two = (new_output("stream", text=f"a\n{n} matches\n") for n in (1, 2))
    (told,) = differences(notebook(two), notebook(one))
    assert told.startswith("cell [1] ")
    assert told.endswith("-1 matches\n+2 matches")
    assert list(differences(notebook(one), notebook(one))) == []
    assert list(differences(notebook(folded(2)), notebook(folded(1))))
    result = new_output("execute_result", data={"text/plain": "1 matches"})
    assert list(differences(notebook(result), notebook(two)))
    assert list(differences(notebook(two, "measured"), notebook(one, "measured"))) == []
    assert list(differences(notebook(two, "machine"), notebook(one, "machine")))
    there = notebook(one, "machine", "there")
    assert list(differences(notebook(two, "machine"), there)) == []
    assert list(differences(notebook(two), notebook(one, machine="there")))


def test_what_was_printed_is_in_one_piece() -> None:
    pieces = [new_output("stream", name="stdout", text=text) for text in ("a", "b\n")]
    pieces.insert(1, new_output("stream", name="stdout", text=""))
    cell = new_code_cell("f()", outputs=pieces)
    (output,) = stripped(new_notebook(cells=[cell])).cells[0].outputs
    assert output.text == "ab\n"


def test_solutions_are_folded() -> None:
    cell = new_code_cell("f()", metadata={"tags": ["solution"]})
    (folded,) = stripped(new_notebook(cells=[cell])).cells
    assert folded.metadata.jupyter.source_hidden


def test_stripping_twice_changes_nothing() -> None:
    output = new_output("execute_result", data={"text/plain": "2"}, execution_count=7)
    cell = new_code_cell("1 + 1\n", outputs=[output], execution_count=7)
    once = dumps(stripped(new_notebook(cells=[cell])))
    assert dumps(stripped(nbformat.reads(once, as_version=4))) == once
