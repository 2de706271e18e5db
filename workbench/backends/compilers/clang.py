"""Clang as a compiler for GPUs: it reads HIP and OpenCL C, and writes what their drivers take.

ROCm's own is tried first, which is the compiler inside of hipRTC; then the one that zig brings, and
the one on PATH. A clang that was built without the machine in question is passed over.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from workbench.backends.compilers.ending import LIMIT_S, run_compiler
from workbench.backends.compilers.refusal import refusal
from workbench.backends.compilers.zig import zig_command, zig_environment
from workbench.base.errors import CompileError

_QUIET = ("-w", "-Qunused-arguments")
_VERSION = re.compile(r"clang version (\S+)")


@dataclass(frozen=True, slots=True)
class Clang:
    """A clang: its command line, and the environment of its calls."""

    command: tuple[str, ...]
    is_zig: bool

    @property
    def stamp(self) -> str:
        """What tells versions of it apart, without a call."""
        about = Path(self.command[0]).stat()
        return f"{self.command[0]} {about.st_size} {about.st_mtime_ns}"

    @property
    def name(self) -> str:
        """Its name and version, such as "clang 22.1.8"."""
        version = _VERSION.search(self.run("--version"))
        return f"clang {version[1]}" if version else "clang"

    def compile(self, text: str, headers: Mapping[str, str], *flags: str) -> str:
        """Return what clang writes of a text with `flags`, which may include the `headers`, by
        name.

        Errors: CompileError with the first error and its line.
        """
        with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
            for name, words in headers.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(words)
            return self.run(
                *flags, f"-I{folder}", *_QUIET, "-S", "-o", "-", "-", text=text
            )

    def run(self, *arguments: str, text: str = "") -> str:
        """Return what a call writes. Errors: CompileError."""
        environment = zig_environment() if self.is_zig else None
        command = [*self.command, *arguments]
        process = run_compiler("clang", command, LIMIT_S, text, environment)
        if process.returncode:
            raise refusal("clang", process.stderr, text)
        return process.stdout


def clang_for(machine: str) -> Clang | None:
    """Return a clang that compiles for a kind of machine, such as "amdgcn"; None where there is
    none."""
    return _first(machine, os.environ.get("ROCM_PATH", ""), os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _first(machine: str, rocm: str, path: str) -> Clang | None:
    return next((c for c in _compilers(rocm, path) if _knows(c, machine)), None)


def _compilers(rocm: str, path: str) -> Iterator[Clang]:
    own = Path(rocm or "/opt/rocm", "llvm", "bin", "clang")
    if own.exists():
        yield Clang((str(own),), is_zig=False)
    if zig := zig_command():
        yield Clang((*zig, "clang"), is_zig=True)
    if place := shutil.which("clang", path=path):
        yield Clang((place,), is_zig=False)


def _knows(clang: Clang, machine: str) -> bool:
    try:
        listed = clang.run("--print-targets")
    except CompileError:  # one of an older kind, or none that runs here
        return False
    return re.search(rf"^\s+{machine}\s", listed, re.MULTILINE) is not None
