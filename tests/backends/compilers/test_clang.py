"""The clang that compiles for GPUs: which one, and what it says of a text that is wrong."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from workbench.backends.compilers import compilers as clang_module
from workbench.backends.compilers.compilers import Clang, clang_for
from workbench.base.errors import CompileError

TARGETS = "  Registered Targets:\n    {} - a machine\n"


def script(path: Path, out: str = "", err: str = "", status: int = 0) -> Path:
    """Write a program that says something and ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".out").write_text(out)
    path.with_suffix(".err").write_text(err)
    name = str(path)
    path.write_text(f"#!/bin/sh\ncat {name}.out\ncat {name}.err >&2\nexit {status}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No compilers but those that a test writes."""
    monkeypatch.setattr(clang_module, "zig_command", lambda: ())
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin:/bin")
    return tmp_path


def test_rocm_is_first_and_a_clang_without_the_machine_is_passed_over(alone: Path) -> None:
    on_path = script(alone / "bin" / "clang", TARGETS.format("amdgcn"))
    own = alone / "rocm" / "llvm" / "bin" / "clang"
    found = clang_for("amdgcn")
    assert found == Clang((str(on_path),), is_zig=False)
    assert clang_for("amdgcn64") is None and clang_for("spirv64") is None
    script(own, TARGETS.format("x86"))
    clang_module.first_clang.cache_clear()
    assert clang_for("amdgcn") == found
    script(own, TARGETS.format("amdgcn"))
    clang_module.first_clang.cache_clear()
    assert clang_for("amdgcn") == Clang((str(own),), is_zig=False)


def test_a_clang_that_does_not_know_the_processor_is_passed_over(alone: Path) -> None:
    """As Debian's clang 16, which knows gfx940 and not gfx942. Processors are listed on stderr."""
    script(alone / "bin" / "clang", TARGETS.format("amdgcn"), "Available:\n\n\tgfx940\n")
    known = clang_for("amdgcn", "gfx940")
    assert known is not None and known == clang_for("amdgcn")
    assert clang_for("amdgcn", "gfx942") is None
    assert clang_for("amdgcn", "gfx94") is None


def test_one_that_does_not_start_is_passed_over(alone: Path) -> None:
    script(alone / "bin" / "clang", status=1)
    assert clang_for("amdgcn") is None


@pytest.mark.parametrize(
    ("log", "because", "line"),
    [
        ("<stdin>:7:3: error: use of undeclared identifier 'x'\n  x\n", "use of", 7),
        (
            "warning: w\nfatal error: error in backend: no such shuffle\n",
            "error in backend: no",
            None,
        ),
        ("clang: error: unknown target CPU 'gfx1'\n", "unknown target CPU", None),
        ("killed\n", "killed", None),
        ("", "it says nothing", None),
    ],
)
def test_the_first_error_of_a_log(log: str, because: str, line: int | None, tmp_path: Path) -> None:
    compiler = Clang((str(script(tmp_path / "clang", err=log, status=1)),), False)
    with pytest.raises(CompileError) as error:
        compiler.compile("text", {})
    assert error.value.because.startswith(because) and error.value.line == line
    assert error.value.last_good == "text"


def test_versions_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "clang"
    compiler = Clang((str(script(path, "clang version 22.1.8 (somewhere)\n")),), False)
    before = compiler.stamp
    assert compiler.name == "clang 22.1.8"
    path.write_text(path.read_text() + "# newer\n")
    assert compiler.stamp != before


def test_one_that_takes_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clang_module, "LIMIT_S", 0.1)
    path = script(tmp_path / "clang")
    path.write_text("#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(CompileError, match="took more than 0.1 s") as error:
        Clang((str(path),), False).compile("text", {})
    assert error.value.last_good == "text" and "other opts" in error.value.hint
