"""The C device: its compiler, its runtime, and C that a user wrote.

Sections: The C device; The C compiler of this machine; The C runtime; C kernels that a user
wrote.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from workbench.backends.c.bounds_checks import bounds_checked
from workbench.backends.c.c_dialect import C_LANGUAGE, C
from workbench.backends.compilers.child import LIMIT_S, run_compiler
from workbench.backends.compilers.compilers import zig_command, zig_environment
from workbench.backends.compilers.refusal import refusal
from workbench.backends.contract import KEPT_PROGRAMS, Program
from workbench.backends.native import jit, object_cache
from workbench.backends.native.machine import CPU_WITHOUT, MISCOMPILED, features_in_use
from workbench.backends.native.processor import Processor, compiled_target, processor_target
from workbench.backends.native.program import AsmLine, NativeProgram, readable
from workbench.backends.program.text import (
    CheckedText,
    Declaration,
    DeclaredArgument,
    Source,
    slots_of,
    source_of,
)
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError, DeviceError, DTypeError, ParseError
from workbench.base.installation import install_command
from workbench.base.interrupts import no_fork, once
from workbench.base.target import Target
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# The C device. Imports hold `no_fork`: in a child that is forked during an import, a module would
# stay half imported.


class CDevice(Processor):
    """The processor, through a C compiler; the C can be read without one."""

    name = "C"
    about = "this machine's processor, through its C compiler"
    extra = "c"
    needs = "or a cc, clang or gcc on PATH"
    packages = ("llvmlite",)  # which loads its machine code
    aliases = ("CLANG", "GCC")
    rank = 20
    renders_anywhere = True
    takes_text = True
    language = C_LANGUAGE

    @property
    def absence(self) -> str:
        return super().absence or "there is no C compiler"

    @property
    def is_available(self) -> bool:
        with suppress(DeviceError):  # a launch raises the error of a $CC that cannot be read
            return find_compiler() is not None and find_spec("llvmlite") is not None
        return False

    def _target(self) -> Target:
        if find_spec("llvmlite") is None:
            return processor_target(self.name)
        # Compilers differ in their support of float16 and in their syntax of non-temporal stores;
        # all have integers and plain stores. Tile products are intrinsics of single processors.
        return replace(
            compiled_target(self.name),
            conversions=(),
            non_temporal_bytes=0,
            tensor_cores=(),
            no_tensor_cores="products of tiles are intrinsics of single processors, not C",
        )

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        with no_fork:
            from workbench.backends.c_like.render import render

        return render(C(), block, linear, self.target, tree)

    def declaration(self, text: str) -> Declaration:
        return declaration(text)

    def bounds_checked(self, text: str, sizes: Sequence[int]) -> CheckedText:
        return bounds_checked(text, sizes)

    def framed(self, kernel: UOp) -> Source:
        return framed(kernel)

    def as_function(self, source: Source, written: Sequence[int]) -> str:
        return as_function(source, written)

    def load(self, source: Source) -> Program:
        return load(source)


DEVICE = CDevice()


# --------------------------------------------------------------------------------------------------
# The C compiler of this machine: on PATH, or the one of the ziglang package.
#
# $CC is tried first, then cc, clang and gcc. tcc is left out: it miscompiles vectors.

# The renderer relies on these flags: signed integers wrap, a product and its sum are each rounded,
# float operations keep their order. Without -fno-trapping-math: with it GCC 12 replaces
# (float)(int)x by trunc(x), which may be a negative zero where an integer has none. Loops are not
# vectorised, as on LLVM: UPCAST does that (and GCC 12 miscompiles sums over falling indexes when it
# vectorises them). Code that is written lane by lane may become one instruction
# (-ftree-slp-vectorize), as may a marked loop over the lanes of a masked access (-fopenmp-simd).
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
"""Features that others are built on: turning one off turns the others off, too."""
_NAMES = ("cc", "clang", "gcc")


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler of this machine: its command line, flags and version."""

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
        """Return the object file (or the assembly) of C text; with `lines` the output names the
        line of the text that each instruction is for.

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
                "c", f"{self.command[0]} wrote no output: {error}", last_good=text
            ) from error

    def require_declarations(self, text: str) -> None:
        """Check that each called function is declared: C takes an undeclared one for a function of
        another file. Errors: CompileError with the line of the call."""
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
        executable = shutil.which(command[0], path=path) if command else None
        if executable is not None and "tcc" not in Path(os.path.realpath(executable)).name:
            return Compiler((executable, *command[1:]), is_zig="zig" in Path(executable).name)
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


# --------------------------------------------------------------------------------------------------
# The C runtime: C to a Program that runs in this process, through a compiler of the machine.
#
# A compiler takes tens of milliseconds, so a kernel is compiled when it is first run, and many
# kernels can share one call (`compile_many`). The object file is loaded by LLVM's linker, in
# memory: no shared library has to be linked or written.

_KERNELS_PER_CALL = 64


@lru_cache(maxsize=KEPT_PROGRAMS)
def load(source: Source) -> CProgram:
    """Return the Program of a Source, the same one for the same text, without compiling it."""
    return CProgram(source)


def compile_many(sources: Sequence[Source]) -> list[CProgram]:
    """Return the compiled Programs of many sources, with few calls of the compiler.

    `load` returns the same ones afterwards. Errors: as CProgram, for the first source that is
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

        Instructions of a helper function have the line of its call with Clang, and their own line
        with GCC, which gives no other.
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
            if jit.UNLINKABLE in error.because:
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
        codes = [program._code for program in programs]  # one by one: the error names the kernel
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
            is_block = paragraph.startswith(("static ", "#if", "#define"))
            parts = [paragraph] if is_block else paragraph.splitlines()
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
    compiler_key = [c_compiler.version, *c_compiler.flags]
    return object_cache.object_of(text, compiler_key, jit.host().machine, c_compiler.compile)


# --------------------------------------------------------------------------------------------------
# C kernels that a user wrote: the parameters of the function, and the code around it.
#
#     void scaled(float *out, const float *x) { for (int i = 0; i < 4; i++) out[i] = 2 * x[i]; }
#
# The function has a pointer for each tensor; through a pointer to const it only reads. The frame is
# the function that a launch calls: it unpacks the pointers.

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_FUNCTION = re.compile(
    r"(?P<before>[\w ]*)\bvoid\s+(?P<name>[A-Za-z_]\w*)\s*\((?P<args>[^()]*)\)\s*\{"
)
_ARGUMENT = re.compile(
    r"(?P<type>[\w ]+?)\s*(?:\*\s*(?P<words>(?:const|restrict|__restrict|__restrict__|\s)*)"
    r"(?P<name>[A-Za-z_]\w*)|\s(?P<array>[A-Za-z_]\w*)\s*\[\s*\d*\s*\])"
)
_MEMORY = [d for d in vars(dtypes).values() if isinstance(d, DType) and (d.is_int or d.is_bool)]
_TYPES: dict[str, DType] = {
    "float": dtypes.float32, "double": dtypes.float64, "_Float16": dtypes.float16,
    "_Bool": dtypes.bool, "bool": dtypes.bool,
    "char": dtypes.int8, "signed char": dtypes.int8, "unsigned char": dtypes.uint8,
    "short": dtypes.int16, "unsigned short": dtypes.uint16,
    "int": dtypes.int32, "unsigned": dtypes.uint32, "unsigned int": dtypes.uint32,
    "long": dtypes.int64, "long long": dtypes.int64, "size_t": dtypes.uint64,
    "unsigned long": dtypes.uint64, "unsigned long long": dtypes.uint64,
    **{f"{d.name}_t": d for d in _MEMORY if d.is_int},
}  # fmt: skip
"""Dtypes by their types in C; other types are refused."""


def declaration(text: str) -> Declaration:
    """Return the name and the arguments of the one function in C text that is not static.

    Errors: ParseError for no such function, for several, and for an argument that is not memory.
    """
    uncommented = _COMMENT.sub(" ", text)
    functions = [m for m in _FUNCTION.finditer(uncommented) if "static" not in m["before"].split()]
    if len(functions) != 1:
        names = ", ".join(m["name"] for m in functions) or "none"
        raise ParseError(
            "a kernel in C is one function",
            f"there must be one `void name(float *out, const float *x) {{`, and there is {names}",
            "`static` before the functions that it calls",
        )
    (match,) = functions
    words = match["args"].strip()
    arguments = [] if words in ("", "void") else words.split(",")
    return Declaration(match["name"], tuple(map(_argument, arguments)))


def framed(kernel: UOp) -> Source:
    """Return the Source of a user's kernel in C: its text, and the frame."""
    code = kernel.code
    assert code is not None
    name = f"{declaration(code.text).name}_launch"
    slots, copies = slots_of(kernel)
    moves = [
        f"  __builtin_memcpy(args[{to}], args[{begins_as}], {size});\n"
        for to, begins_as, size in copies
    ]
    values = ", ".join(f"args[{slot}]" for slot in slots)
    frame = (
        f"void {name}(void **args, long lo, long hi, long thread) {{\n"
        f"{''.join(moves)}  {declaration(code.text).name}({values});\n}}\n"
    )
    text = code.text.rstrip("\n").lstrip("\n")
    return source_of(kernel, name, "C", f"{text}\n\n{frame}")


def as_function(source: Source, written: Sequence[int]) -> str:
    """Return a Source, even an edited one, as a function with a pointer for each slot, to const but
    for those `written`.

    Errors: ParseError for another function that is not static; DTypeError for a dtype that no
    argument may have.
    """
    steps = 1 if source.launch.steps is None else source.launch.steps
    arguments, values = [], []
    for slot, (dtype, _) in enumerate(source.params):
        word = next((word for word, one in _TYPES.items() if one is dtype), None)
        if word is None:
            because = f"its argument {slot} is {dtype}, which C has no number of"
            raise DTypeError(f"the kernel {source.name} is no function of C", because)
        arguments.append(f"{'' if slot in written else 'const '}{word} *p{slot}")
        values.append(f"(void *)p{slot}")
    frame = [f"void {source.name}_on_tensors({', '.join(arguments)}) {{"]
    if source.scratch_bytes:
        frame.append(f"  static char scratch[{source.scratch_bytes}] __attribute__((aligned(64)));")
        values.append("scratch")
    frame += [
        f"  void *args[] = {{{', '.join(values)}}};",
        *_launches(f"{source.name}(args, 0, {steps}", source.launch.threads),
        "}",
    ]
    own = re.compile(rf"^void (?={re.escape(source.name)}\()", re.MULTILINE)
    text = own.sub("static void ", source.text.strip("\n"), count=1) + "\n\n" + "\n".join(frame)
    declaration(text)
    return text


def _launches(call: str, threads: int) -> list[str]:
    """Return the lines that launch a kernel; only one with threads has an argument for them."""
    if threads == 1:
        return [f"  {call});"]
    return [f"  for (long thread = 0; thread < {threads}; thread++)", f"    {call}, thread);"]


def _argument(words: str) -> DeclaredArgument:
    match = _ARGUMENT.fullmatch(words.strip())
    kinds = [] if match is None else match["type"].split()
    dtype = _TYPES.get(" ".join(kind for kind in kinds if kind != "const"))
    if match is None or dtype is None:
        raise ParseError(
            f"`{' '.join(words.split())}` is not the memory of a tensor",
            "an argument is a pointer to a number: `const float *x`, or `int *out`",
            f"one of {', '.join(list(_TYPES)[:8])} .. or int32_t",
        )
    return DeclaredArgument(match["name"] or match["array"], dtype, "const" not in kinds)
