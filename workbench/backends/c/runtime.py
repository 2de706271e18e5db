"""The C runtime: C to a Program that runs in this process, through a compiler of the machine.

A compiler takes tens of milliseconds, so a kernel is compiled when it is first run, and many
kernels can share one call (`compile_many`). The object file is loaded by LLVM's linker, in
memory: no shared library has to be linked or written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from workbench.backends.c.compiler import compiler
from workbench.backends.native import jit, object_cache
from workbench.backends.native.assembly import AsmLine, readable
from workbench.backends.native.program import KEPT_PROGRAMS, NativeProgram
from workbench.backends.program.source import Source
from workbench.base.errors import CompileError
from workbench.base.forking import once

_KERNELS_PER_CALL = 64


@lru_cache(maxsize=KEPT_PROGRAMS)
def load(source: Source) -> CProgram:
    """Return the Program of a Source, the same one for the same text, without compiling it."""
    return CProgram(source)


def compile_many(sources: Sequence[Source]) -> list[CProgram]:
    """Return the compiled Programs of many sources, with few calls of the compiler.

    `load` returns the same ones afterwards. Errors: as Program, for the first source that is
    refused.
    """
    programs = [load(source) for source in sources]
    pending = [p for p in dict.fromkeys(programs) if not p.is_compiled]
    groups = [pending[i : i + _KERNELS_PER_CALL] for i in range(0, len(pending), _KERNELS_PER_CALL)]
    with ThreadPoolExecutor(os.cpu_count() or 1) as workers:
        list(workers.map(_compile_together, groups))
    return programs


class CProgram(NativeProgram):
    """A kernel in C; it is compiled (or found in the cache) when it is first launched.

    Errors at a launch: DeviceError where there is no compiler, CompileError if it refuses the text.
    """

    device = "C"

    @property
    def is_compiled(self) -> bool:
        """Whether there is machine code already; else a launch compiles it."""
        return "_code" in self.__dict__

    @once
    def assembly(self) -> str:
        """The machine's instructions, as text."""
        text = compiler().compile(self.source.text, assembly=True)
        return text.decode("utf-8", "replace")

    @once
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The instructions without directives, each with its line of the source.

        Those of a helper function have the line of its call if the compiler is Clang, and its own
        line if it is GCC, which gives no other.
        """
        helper = "static inline __attribute__((nodebug)) "
        source = self.source.text.replace("static inline ", helper)
        text = compiler().compile(source, assembly=True, lines=True)
        return readable(text.decode("utf-8", "replace"))

    def _load(self) -> jit.Code:
        text = self.source.text
        try:
            return _loaded(text, [self.source.name])[0]
        except CompileError as error:
            if jit.NOT_HERE in error.because:
                compiler().require_declarations(text)
            raise

    def use(self, code: jit.Code) -> None:
        """Use machine code that was compiled together with other kernels."""
        self.__dict__.setdefault("_code", code)


def _compile_together(programs: Sequence[CProgram]) -> None:
    text, names = one_text([program.source for program in programs])
    try:
        codes = _loaded(text, names)
    except CompileError:
        codes = [program._code for program in programs]  # the error names it
    for program, code in zip(programs, codes, strict=True):
        program.use(code)


def one_text(sources: Sequence[Source]) -> tuple[str, list[str]]:
    """Return many sources as one text: each definition once, and the kernels numbered."""
    definitions: dict[str, None] = {}
    kernels, names = [], []
    for number, source in enumerate(sources):
        start = re.search(r"^void ", source.text, re.MULTILINE)
        at = 0 if start is None else start.start()
        for paragraph in source.text[:at].split("\n\n"):
            one = paragraph.startswith(("static ", "#if", "#define"))
            parts = [paragraph] if one else paragraph.splitlines()
            definitions.update(dict.fromkeys(p for p in parts if p[:2] != "//"))
        names.append(f"kernel_{number}")
        named = f"void {source.name}("
        kernels.append(source.text[at:].replace(named, f"void {names[-1]}(", 1))
    return "\n".join([*definitions, *kernels]), names


def _loaded(text: str, names: Sequence[str]) -> list[jit.Code]:
    try:
        return jit.load_functions(_object(text), names)
    except CompileError as error:
        raise CompileError("c", error.because, text, hint=error.hint, line=error.line) from error


def _object(text: str) -> bytes:
    """Return the object file of `text`, from the cache if it is there."""
    c_compiler = compiler()
    about = [c_compiler.version, *c_compiler.flags]
    return object_cache.object_of(text, about, jit.host().machine, c_compiler.compile)
