"""The C compiler of this machine: on PATH, or the one of the ziglang package.

$CC is tried first, then cc, clang and gcc. tcc is left out: it miscompiles vectors.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from workbench.backends.compilers.child import LIMIT_S, run_compiler
from workbench.backends.compilers.refusal import refusal
from workbench.backends.compilers.zig import zig_command, zig_environment
from workbench.backends.native.machine import CPU_WITHOUT, MISCOMPILED, features_in_use
from workbench.base.errors import CompileError, DeviceError
from workbench.base.installation import install_command

# What the renderer relies on: signed integers wrap, a product and a sum are rounded each, float
# operations are never done in another order. Not -fno-trapping-math: with it GCC 12 takes
# (float)(int)x for trunc(x), which has a negative zero where an integer has none. Loops are not
# vectorised, as on LLVM: UPCAST does that (and GCC 12 miscompiles sums over falling indexes when it
# vectorises them). But code that is written lane by lane may become one instruction, and the
# loops over the lanes of a masked load or store say that they are one (-fopenmp-simd).
# fmt: off
_FLAGS = (
    "-x", "c", "-std=gnu11", "-O2", "-fPIC", "-w", "-g0",
    "-fwrapv", "-ffp-contract=off", "-fno-math-errno",
    "-fno-tree-vectorize", "-ftree-slp-vectorize", "-fopenmp-simd",
    "-fno-stack-protector", "-fno-asynchronous-unwind-tables",
)
_ZIG_FLAGS = ("-fno-sanitize=all", "-fomit-frame-pointer")
# fmt: on
_ROOTS = "+avx,+avx2,+fma,+f16c,+avx512f,+avx512bf16,+amx-tile"
"""Features of processors without which there are none of those that are built on them."""
_NAMES = ("cc", "clang", "gcc")


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler: its command line, and its version."""

    command: tuple[str, ...]
    is_zig: bool

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of every call: this processor's instructions, and the semantics that kernels' C
        relies on."""
        machine = platform.machine().lower()
        native = "-mcpu=native" if machine in ("arm64", "aarch64") else "-march=native"
        off = features_in_use(_ROOTS, os.environ.get(CPU_WITHOUT, "")).split(",")
        without = [f"-mno-{word[1:]}" for word in off if word.startswith("-")]
        if machine in ("x86_64", "amd64") and (self.is_zig or "clang" in self.version):
            without += [f"-mno-{feature}" for feature in MISCOMPILED.split()]
        return (*_FLAGS, native, *without, *(_ZIG_FLAGS if self.is_zig else ()))

    @property
    def version(self) -> str:
        """Its name and version, as it prints them."""
        return _version(self)

    def compile(self, text: str, assembly: bool = False, lines: bool = False) -> bytes:
        """Return the object file (or the assembly) of C text; with `lines` it says which line
        of the text each instruction is for.

        Errors: CompileError with the first error, and its line.
        """
        try:
            with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
                out = Path(folder) / "kernel"
                kind = ("-S" if assembly else "-c", *(["-g1"] if lines else []))
                self._run(*self.flags, *kind, "-o", str(out), "-", text=text)
                return out.read_bytes()
        except OSError as error:
            raise CompileError(
                "c", f"{self.command[0]} left nothing: {error}", last_good=text
            ) from error

    def require_declarations(self, text: str) -> None:
        """Errors: CompileError with the line that calls a function which nothing declares: C takes
        it for one that is elsewhere."""
        flags = [flag for flag in self.flags if flag != "-w"]
        declared = "-Werror=implicit-function-declaration"
        self._run(*flags, declared, "-fsyntax-only", "-", text=text)

    def _run(self, *arguments: str, text: str = "") -> str:
        command = [*self.command, *arguments]
        process = run_compiler("c", command, LIMIT_S, text, self._environment())
        if process.returncode:
            status = f"{self.command[0]} ended with status {process.returncode}"
            raise refusal("c", process.stderr or status, text)
        return process.stdout

    def _environment(self) -> dict[str, str] | None:
        return zig_environment() if self.is_zig else None


def compiler() -> Compiler:
    """Return the compiler to use.

    Errors: DeviceError where there is none, with how to get one.
    """
    c_compiler = find_compiler()
    if c_compiler is None:
        raise DeviceError(
            "the device C needs a C compiler",
            "$CC names none, and there is no cc, clang or gcc on PATH",
            install_command("c"),
        )
    return c_compiler


def find_compiler() -> Compiler | None:
    """Return the compiler to use, None where there is none. Nothing is run.

    Errors: DeviceError for a $CC that cannot be read.
    """
    return _find(os.environ.get("CC", ""), os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _find(named: str, path: str) -> Compiler | None:
    for command in [_words(named), *([name] for name in _NAMES)]:
        place = shutil.which(command[0], path=path) if command else None
        if place is not None and "tcc" not in Path(os.path.realpath(place)).name:
            return Compiler((place, *command[1:]), is_zig="zig" in Path(place).name)
    zig = zig_command()
    return Compiler((*zig, "cc"), is_zig=True) if zig else None


def _words(named: str) -> list[str]:
    try:
        return shlex.split(named)
    except ValueError as error:
        raise DeviceError(
            "$CC cannot be read",
            f"{named!r:.60} is not a command: {str(error).lower()}",
            "a command such as CC=clang, or no $CC",
        ) from None


@lru_cache(maxsize=8)
def _version(c_compiler: Compiler) -> str:
    lines = c_compiler._run("--version").splitlines()
    return lines[0].strip() if lines else c_compiler.command[0]
