"""What commands write: never over a file of another kind, and where the command was started."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import workbench
from workbench import Tensor, explore
from workbench.base.errors import WorkbenchError
from workbench.cli.command import main
from workbench.measure.speeds import earlier_speeds
from workbench.viz.run import facts

SCRIPT = """
import os
from workbench import Tensor
open("ran", "w").close()
os.chdir("other")
(Tensor([1.0, 2.0]) * 3).realize()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with a script, a notebook and a folder `other`."""
    own = tmp_path / "own"
    (own / "other").mkdir(parents=True)
    (own / "script.py").write_text(SCRIPT)
    (own / "book.ipynb").write_text('{\n "cells": []\n}\n')
    monkeypatch.chdir(own)
    monkeypatch.setattr(facts, "speeds", earlier_speeds)
    return own


@pytest.mark.parametrize("foreign", ["script.py", "book.ipynb"])
@pytest.mark.parametrize(
    "command",
    [
        ["profile", "--save", "OUT", "script.py"],
        ["profile", "--html", "OUT", "script.py"],
        ["profile", "--trace", "OUT", "script.py"],
        ["kernels", "capture", "OUT", "script.py"],
        ["kernels", "merge", "OUT", "none.jsonl"],
        ["kernels", "models", "OUT", "--only", "the MLP of design.md"],
        ["tune", "--merge", "none.jsonl", "--out", "OUT"],
        ["tune", "script.py", "--out", "OUT"],
        ["bench", "--quick", "--json", "OUT"],
        ["bench", "--plot", "OUT"],
        ["tour", "--html", "OUT"],
    ],
    ids=" ".join,
)
def test_a_file_of_another_kind_stays(
    folder: Path, command: list[str], foreign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "none.jsonl").write_text("")
    if "models" in command:
        from workbench.bench.model_kernels import ALL_MODELS

        command = [*command[:-1], ALL_MODELS[0].name]
    content = (folder / foreign).read_text()
    assert main([foreign if part == "OUT" else part for part in command]) == 1
    assert f"cannot write {foreign}" in capsys.readouterr().err
    assert (folder / foreign).read_text() == content
    assert not (folder / "ran").exists(), "nothing runs before"


def test_functions_leave_it_too(folder: Path) -> None:
    ex, content = explore(Tensor([1.0]) + 1), (folder / "script.py").read_text()
    with workbench.profile() as run:
        pass
    for write in (ex.save, ex.to_html, ex.to_python, run.save, run.to_html, run.to_chrome_trace):
        with pytest.raises(WorkbenchError, match="cannot write"):
            write(folder / "script.py")
    with pytest.raises(WorkbenchError, match="cannot write"):
        with workbench.capture_kernels(folder / "script.py"):
            raise AssertionError("the block does not run")
    assert (folder / "script.py").read_text() == content
    assert not (folder / "script.safetensors").exists()


def test_paths_are_of_the_folder_in_which_the_command_was_started(folder: Path) -> None:
    outputs = ["--save", "run.json", "--html", "run.html", "--trace", "trace.json"]
    for _ in range(2):  # what it has written itself is written anew
        os.chdir(folder)
        assert main(["profile", *outputs, "script.py"]) == 0
        os.chdir(folder)
        assert main(["kernels", "capture", "kernels.jsonl", "script.py"]) == 0
    names = {"run.json", "run.html", "trace.json", "kernels.jsonl"}
    assert names <= {*os.listdir(folder)} and not os.listdir(folder / "other")


def test_two_outputs_have_two_paths(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--save", "a", "--html", "./a", "script.py"]) == 1
    assert "named for two outputs" in capsys.readouterr().err
    assert not (folder / "ran").exists()
