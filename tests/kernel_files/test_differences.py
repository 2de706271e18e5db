"""Differences of kernel files, the kernels of the benchmark's models, and two commits compared."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from kernel_changes import NothingToCompare, kernel_changes
from msgspec.structs import replace

from tests.kernel_files.test_kernel_file import PROGRAM, ROW
from workbench.bench.model_kernels import ALL_MODELS, model_kernels
from workbench.kernel_files.differences import kernel_differences
from workbench.kernel_files.kernel_file import CapturedKernel, KernelFile

FILE = KernelFile.of([PROGRAM, ROW])


def test_equal_files_have_no_differences() -> None:
    differences = kernel_differences(FILE, KernelFile.parse(FILE.text()))
    assert not differences.differs
    assert str(differences) == "0 kernels differ, 1 are as before"


def test_every_difference_has_its_reason() -> None:
    changed = replace(
        ROW, opts="", steps=["plain: no step applies"], source="1" * 32, source_lines=9,
        counts={"loads": 32}, rules={}, launches=9, line="elsewhere.py:1",
    )  # fmt: skip
    gone, new = replace(ROW, ir="a", kernel="e_3"), replace(ROW, ir="b", kernel="e_4", axes="g0=4")
    program = replace(PROGRAM, rules={"simplify-kernel: add-zero": 5}, decisions={"fuse-row": 1})
    old = KernelFile.of([PROGRAM, ROW, gone])
    text = str(kernel_differences(old, KernelFile.of([program, changed, new])))
    assert text == (
        "3 kernels differ in 1 program, 0 are as before\n"
        "net on LLVM: 1 changed, 1 gone, 1 new, 0 as before\n"
        "  rules of scheduling: simplify-kernel: add-zero 2 -> 5\n"
        "  decisions: fuse-free 1 -> 0, fuse-row 0 -> 1\n"
        '  - e_3: g0=8 r0=4; UPCAST("g0", 4)\n'
        '  + e_4: g0=4; UPCAST("g0", 4)\n'
        "  ~ r_8_4\n"
        '      opts     UPCAST("g0", 4)\n'
        "            -> none\n"
        "      no more  vector-lanes: stride 1\n"
        "      because  plain: no step applies\n"
        "      rules: decompose: form-fma 1 -> 0\n"
        "      counts: loads 8 -> 32\n"
        "      source: 12 -> 9 lines"
    )


def test_kernels_are_paired_by_ir_then_by_name() -> None:
    def named(name: str, ir: str) -> CapturedKernel:
        return replace(ROW, kernel=name, ir=ir, axes=ir)

    old = KernelFile.of([named("a", "1"), named("b", "2"), named("c", "3")])
    new = KernelFile.of([named("c", "9"), named("d", "1"), named("b", "2")])
    (program,) = kernel_differences(old, new).programs
    assert program.same == 2 and not program.gone and not program.new
    assert [(a.ir, b.ir) for a, b in program.changed] == [("3", "9")]


def test_the_kernels_of_a_model_are_those_that_its_steps_run() -> None:
    model = next(model for model in ALL_MODELS if model.name == "softmax")
    file = model_kernels([model], "LLVM")
    (program,) = file.programs.values()
    assert sum(program.decisions.values()) and sum(program.rules.values())
    assert {row.program for row in file.kernels.values()} == {"softmax"}
    assert all(row.source and row.counts and row.graph() for row in file.kernels.values())
    again = model_kernels([model], "LLVM")
    assert again.text() == file.text()


PACKAGE = """
import sys, pathlib
kernels = pathlib.Path(__file__).with_name("kernels.jsonl")
assert sys.argv[1:3] == ["kernels", "models"]
pathlib.Path(sys.argv[3]).write_bytes(kernels.read_bytes())
"""


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_two_commits_are_compared(tmp_path: Path) -> None:
    """Each side is listed by its own package; here that is a file that prints another one."""

    def git(*arguments: str) -> None:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    def commit(file: KernelFile) -> None:
        file.write(tmp_path / "workbench" / "kernels.jsonl")
        git("add", "-A")
        git("commit", "-m", "more")

    with pytest.raises(NothingToCompare, match="git"):
        kernel_changes(tmp_path)
    git("init")
    (tmp_path / "workbench").mkdir()
    (tmp_path / ".gitignore").write_text("__pycache__/\n")
    (tmp_path / "workbench" / "__init__.py").write_text("")
    (tmp_path / "workbench" / "__main__.py").write_text(PACKAGE)
    commit(FILE)
    with pytest.raises(NothingToCompare, match="there is no commit HEAD~1: .* without its history"):
        kernel_changes(tmp_path)
    changed = KernelFile.of([PROGRAM, replace(ROW, opts="")])
    commit(changed)
    assert "1 kernel differs in 1 program" in kernel_changes(tmp_path)
    assert kernel_changes(tmp_path, "HEAD").startswith("nothing in workbench/ has changed since ")
    (tmp_path / "other.txt").write_text("x")
    git("add", "-A")
    git("commit", "-m", "another folder")
    assert kernel_changes(tmp_path).startswith("nothing in workbench/ has changed since ")
    assert "1 kernel differs" in kernel_changes(tmp_path, "HEAD~2")
    (tmp_path / "workbench" / "__main__.py").write_text("exit('it is broken')")
    with pytest.raises(NothingToCompare, match="the working tree cannot be listed: it is broken"):
        kernel_changes(tmp_path)
