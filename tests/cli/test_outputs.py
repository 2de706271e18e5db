"""What commands write: never over a file of another kind, and where the command was started."""

from __future__ import annotations

import os
import subprocess
import sys
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


@pytest.mark.parametrize("command", ["profile .", "kernels capture k.jsonl .", "tune ."])
def test_a_folder_is_no_script(
    command: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 1
    assert "it is a folder" in capsys.readouterr().err


@pytest.mark.parametrize("to", ["a closed pipe", "/dev/full"])
def test_a_profile_is_saved_where_nobody_reads_what_it_prints(folder: Path, to: str) -> None:
    """It also prints to a stream without the letter µ, and says what the script ended with."""
    (folder / "other.py").write_text("import sys\nsys.exit('no luck')\n")
    if to == "/dev/full" and not os.path.exists(to):
        pytest.skip("this system has no full disk")
    read, write = os.pipe()
    os.close(read)
    output = write if to == "a closed pipe" else os.open(to, os.O_WRONLY)
    ended = subprocess.run(
        [sys.executable, "-m", "workbench", "profile", "--save", "run.json", "other.py"],
        stdout=output, stderr=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert ended.returncode == 1 and "no luck" in ended.stderr
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr
    assert ("cannot print" in ended.stderr) == (to == "/dev/full")
    assert str(workbench.load(folder / "run.json")).startswith("run of other.py")


def test_a_script_may_close_its_output(folder: Path) -> None:
    """Its run is saved, and read with the mark that an editor of Windows puts before it."""
    (folder / "other.py").write_text("import sys\nsys.stdout.close()\n")
    command = [sys.executable, "-m", "workbench", "profile", "--save", "run.json", "other.py"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and "Traceback" not in ended.stderr
    saved = (folder / "run.json").read_text()
    (folder / "run.json").write_text(saved, encoding="utf-8-sig")
    assert str(workbench.load(folder / "run.json")).startswith("run of other.py")


@pytest.mark.parametrize("option", ["--budget -1", "--budget nan", "--width 0"])
def test_a_search_is_checked_before_the_script_runs(folder: Path, option: str) -> None:
    assert main(["tune", "script.py", *option.split()]) == 1
    assert not (folder / "ran").exists()


def test_two_outputs_have_two_paths(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--save", "a", "--html", "./a", "script.py"]) == 1
    assert "named for two outputs" in capsys.readouterr().err
    assert not (folder / "ran").exists()
