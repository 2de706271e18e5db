"""Clang as a compiler for GPUs: from HIP and OpenCL C to the code that their drivers take.

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
from subprocess import CompletedProcess

from workbench.backends.compilers.child import LIMIT_S, run_compiler
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
            return self.run(*flags, f"-I{folder}", *_QUIET, "-S", "-o", "-", "-", text=text)

    def lists(self, name: str, *arguments: str) -> bool:
        """Return whether a call lists `name`, in a line of its own, wherever it writes lists."""
        process = self._call(*arguments)
        row = re.compile(rf"^\s+{re.escape(name)}(\s|$)", re.MULTILINE)
        return row.search(f"{process.stdout}\n{process.stderr}") is not None

    def run(self, *arguments: str, text: str = "") -> str:
        """Return what a call writes. Errors: CompileError."""
        return self._call(*arguments, text=text).stdout

    def _call(self, *arguments: str, text: str = "") -> CompletedProcess[str]:
        environment = zig_environment() if self.is_zig else None
        command = [*self.command, *arguments]
        process = run_compiler("clang", command, LIMIT_S, text, environment)
        if process.returncode:
            raise refusal("clang", process.stderr, text)
        return process


def clang_for(machine: str, processor: str = "") -> Clang | None:
    """Return a clang that compiles for a kind of machine, such as "amdgcn", and for that processor
    of it, such as "gfx942"; None where there is none."""
    rocm, path = os.environ.get("ROCM_PATH", ""), os.environ.get("PATH", "")
    return _first(machine, processor, rocm, path)


@lru_cache(maxsize=16)
def _first(machine: str, processor: str, rocm: str, path: str) -> Clang | None:
    every = _compilers(rocm, path)
    return next((clang for clang in every if _knows(clang, machine, processor)), None)


def _compilers(rocm: str, path: str) -> Iterator[Clang]:
    own = Path(rocm or "/opt/rocm", "llvm", "bin", "clang")
    if own.exists():
        yield Clang((str(own),), is_zig=False)
    if zig := zig_command():
        yield Clang((*zig, "clang"), is_zig=True)
    if place := shutil.which("clang", path=path):
        yield Clang((place,), is_zig=False)


def _knows(clang: Clang, machine: str, processor: str) -> bool:
    try:
        if not clang.lists(machine, "--print-targets"):
            return False
        of = (f"--target={machine}", "-nogpulib", "--print-supported-cpus")
        return not processor or clang.lists(processor, *of)
    except CompileError:  # one of an older kind, or none that runs here
        return False
