"""The compilers of machine code: clang, LLVM, Zig's clang and OpenCL drivers, and their results on
disk.

Sections: Zig, a Python package that brings clang; Clang as a compiler for GPUs; LLVM's code
generators for other machines, in the process of compilers, since they abort at unsupported
requests; The compiler of an OpenCL driver, in the process that calls it; Machine code that a
compiler made for a machine, present or not, and its use of that machine's resources; Machine
code of other machines on disk, beside the object files of this one.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

from workbench.backends.compilers.child import LIMIT_S, run_compiler
from workbench.backends.compilers.refusal import missing_kernel, refusal
from workbench.backends.gpu.cpp import STANDARD
from workbench.backends.native import object_cache
from workbench.backends.native.program import AsmLine
from workbench.backends.program.text import Source
from workbench.base.cache import cache_folder, key_of
from workbench.base.errors import CompileError, DeviceError
from workbench.base.installation import install_command, library
from workbench.base.typed import to_json, typed_json

# --------------------------------------------------------------------------------------------------
# Zig, a Python package that brings clang.


def zig_command() -> tuple[str, ...]:
    """Return the command that starts zig; () if the package is not installed. Nothing is run."""
    package = find_spec("ziglang")
    if package is None or package.origin is None:
        return ()
    zig = Path(package.origin).with_name("zig")  # saves the start of another Python
    return (str(zig),) if zig.exists() else (sys.executable, "-m", "ziglang")


def zig_environment() -> dict[str, str]:
    """Return the environment for calls of zig, with cache folders of the workbench: zig's own may
    be missing or read-only."""
    folder = str(cache_folder() / "zig")
    return {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder, **os.environ}


# --------------------------------------------------------------------------------------------------
# Clang as a compiler for GPUs: from HIP and OpenCL C to the code that their drivers take.
#
# ROCm's clang, the compiler inside of hipRTC, is tried first; then zig's, and the one on PATH. A
# clang that was built without the machine in question is skipped.

_QUIET = ("-w", "-Qunused-arguments")
_VERSION = re.compile(r"clang version (\S+)")


@dataclass(frozen=True, slots=True)
class Clang:
    """A clang: its command line, and the environment of its calls."""

    command: tuple[str, ...]
    is_zig: bool

    @property
    def stamp(self) -> str:
        """Path, size and time of its program: they differ between versions of a compiler (of a zig
        that is a Python module: of Python), and need no call."""
        status = Path(self.command[0]).stat()
        return f"{self.command[0]} {status.st_size} {status.st_mtime_ns}"

    @property
    def name(self) -> str:
        """Its name and version, such as "clang 22.1.8"."""
        version = _VERSION.search(self.run("--version"))
        return f"clang {version[1]}" if version else "clang"

    def compile(self, text: str, headers: Mapping[str, str], *flags: str) -> str:
        """Return clang's output for a text with `flags`, as text (assembly, by default). The text
        may include the `headers`, by name.

        Errors: CompileError with the first error and its line.
        """
        with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
            for name, words in headers.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(words)
            return self.run(*flags, f"-I{folder}", *_QUIET, "-S", "-o", "-", "-", text=text)

    def lists(self, name: str, *arguments: str) -> bool:
        """Return whether an indented line of a call's output, on stdout or stderr, begins with
        `name`."""
        process = self._call(*arguments)
        row = re.compile(rf"^\s+{re.escape(name)}(\s|$)", re.MULTILINE)
        return row.search(f"{process.stdout}\n{process.stderr}") is not None

    def run(self, *arguments: str, text: str = "") -> str:
        """Return the output of a call. Errors: CompileError if clang refuses the text."""
        return self._call(*arguments, text=text).stdout

    def _call(self, *arguments: str, text: str = "") -> CompletedProcess[str]:
        environment = zig_environment() if self.is_zig else None
        command = [*self.command, *arguments]
        process = run_compiler("clang", command, LIMIT_S, text, environment)
        if process.returncode:
            raise refusal("clang", process.stderr, text)
        return process


def how_to_get_clang() -> str:
    """Return how to install a clang that compiles for machines elsewhere, too."""
    return f"{install_command('c')}, which brings zig's clang"


def clang_for(machine: str, processor: str = "") -> Clang | None:
    """Return a clang that compiles for a kind of machine, such as "amdgcn", and for a processor of
    it, such as "gfx942" ("" is any); None if there is none."""
    rocm, path = os.environ.get("ROCM_PATH", ""), os.environ.get("PATH", "")
    return first_clang(machine, processor, rocm, path)


@lru_cache(maxsize=16)
def first_clang(machine: str, processor: str, rocm: str, path: str) -> Clang | None:
    every = _compilers(rocm, path)
    return next((clang for clang in every if _supports(clang, machine, processor)), None)


def _compilers(rocm: str, path: str) -> Iterator[Clang]:
    rocm_clang = Path(rocm or "/opt/rocm", "llvm", "bin", "clang")
    if rocm_clang.exists():
        yield Clang((str(rocm_clang),), is_zig=False)
    if zig := zig_command():
        yield Clang((*zig, "clang"), is_zig=True)
    if program := shutil.which("clang", path=path):
        yield Clang((program,), is_zig=False)


def _supports(clang: Clang, machine: str, processor: str) -> bool:
    try:
        if not clang.lists(machine, "--print-targets"):
            return False
        arguments = (f"--target={machine}", "-nogpulib", "--print-supported-cpus")
        return not processor or clang.lists(processor, *arguments)
    except CompileError:  # an older version, or a program that does not run here
        return False


# --------------------------------------------------------------------------------------------------
# LLVM's code generators for other machines, in the process of compilers, since they abort at
# unsupported requests.


class Isa(NamedTuple):
    """A machine as LLVM names it: its triple, processor, and features."""

    triple: str
    cpu: str = ""
    features: str = ""


def assembly_of(text: str, isa: Isa, optimise: bool = False) -> str:
    """Return the assembly of LLVM IR; `optimise` runs LLVM's own passes first.

    Errors: CompileError with the line of the text; DeviceError without llvmlite.
    """
    machine, module = _module(text, isa)
    if optimise:
        llvm = _llvm()
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
    machine.set_asm_verbosity(True)
    return str(machine.emit_assembly(module))


def object_of(text: str, isa: Isa) -> bytes:
    """Return the object file of LLVM IR; errors as `assembly_of`."""
    machine, module = _module(text, isa)
    return bytes(machine.emit_object(module))


@lru_cache(maxsize=1)
def package_version() -> str:
    """Return the version of llvmlite, which contains LLVM, as "of llvmlite 0.50.0"; "" if it is not
    installed. llvmlite is not imported."""
    from importlib import metadata  # slow to import, and seldom needed

    try:
        return f"of llvmlite {metadata.version('llvmlite')}"
    except metadata.PackageNotFoundError:
        return ""


@lru_cache(maxsize=1)
def _llvm() -> Any:
    try:
        binding: Any = importlib.import_module("llvmlite.binding")
    except (ImportError, OSError) as error:
        what = "machine code of other machines needs llvmlite"
        how = "pip install 'llvmlite>=0.50'"
        raise DeviceError(what, f"it cannot be imported: {error}", how) from error
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


def _module(text: str, isa: Isa) -> tuple[Any, Any]:
    llvm = _llvm()
    try:
        machine = _machine(isa)
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = isa.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise refusal("llvm", str(error).strip(), text) from None
    return machine, module


def _machine(isa: Isa) -> Any:
    """Return a new target machine of LLVM each time: for SPIR-V it keeps state of the modules that
    it compiles, as a context does."""
    target = _llvm().Target.from_triple(isa.triple)
    return target.create_target_machine(
        cpu=isa.cpu, features=isa.features, opt=3, reloc="pic", codemodel="default"
    )


# --------------------------------------------------------------------------------------------------
# The compiler of an OpenCL driver, in the process that calls it.


def build(context: Any, text: str, options: str = "") -> Any:
    """Return the program of a text, built with `options` after that of the language standard.

    Errors: CompileError with the line that the driver refuses.
    """
    cl = library("pyopencl")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compilers warn of correct kernels, too
            return cl.Program(context, text).build(f"{STANDARD} {options}")
    except cl.Error as error:
        raise refusal("opencl", str(error), text) from error


def kernel_in(program: Any, name: str, source: Source) -> Any:
    """Return the kernel `name` of a program, which was built from `source`.

    Errors: CompileError where the program has none of that name.
    """
    cl = library("pyopencl")
    try:
        return cl.Kernel(program, name)
    except cl.Error as error:
        raise missing_kernel("opencl", source) from error


def load(context: Any, device: Any, binary: bytes) -> Any | None:
    """Return the program of a binary; None if it is empty, or the driver refuses it."""
    cl = library("pyopencl")
    try:
        if not binary:
            return None
        return cl.Program(context, [device], [binary]).build()
    except cl.Error:
        return None


def binary_in(program: Any) -> bytes:
    """Return the binary of a program that was built for one device; b"" if the driver has none."""
    cl = library("pyopencl")
    try:
        return bytes(program.get_info(cl.program_info.BINARIES)[0])
    except cl.Error:
        return b""


# --------------------------------------------------------------------------------------------------
# Machine code that a compiler made for a machine, present or not, and its use of that machine's
# resources.


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """The resources of a machine that a kernel uses, as its compiler reports them; None: not
    reported.

    registers: 32-bit registers of a work-item; scalar_registers: those of a warp.
    Units: shared_bytes is per work-group; stack_bytes is per work-item, and includes spill_bytes,
    the part for values that found no register; occupancy is in warps that a SIMD unit holds.
    """

    registers: int | None = None
    scalar_registers: int | None = None
    shared_bytes: int = 0
    stack_bytes: int = 0
    spill_bytes: int = 0
    occupancy: int | None = None

    def __str__(self) -> str:
        parts = []
        if self.registers is not None:
            parts.append(f"{self.registers} registers")
        if self.scalar_registers is not None:
            parts.append(f"{self.scalar_registers} scalar registers")
        if self.shared_bytes:
            parts.append(f"{self.shared_bytes:,} bytes of shared memory")
        if self.stack_bytes:
            parts.append(f"{self.stack_bytes:,} bytes of stack")
        if self.registers is not None:
            spills = f"{self.spill_bytes:,} bytes of spills"
            parts.append(spills if self.spill_bytes else "no spills")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class LiveRegisters:
    """The live registers at an instruction: their number, and a mark for each register: `^` is
    written, `v` read, `x` both, `:` kept; a space is free."""

    count: int
    marks: str


@dataclass(frozen=True, slots=True)
class MachineCode:
    """A kernel's machine code: the `isa` and the `compiler`, the instructions, each with its line
    of the source, and the live registers at each (None: not known). `family` names the machines
    with the same instructions; `kernels` are the names of the kernels in it."""

    family: str
    isa: str
    compiler: str
    text: str
    lines: tuple[AsmLine, ...]
    kernels: tuple[str, ...]
    use: ResourceUse = ResourceUse()
    live: tuple[LiveRegisters | None, ...] = ()

    @property
    def about(self) -> str:
        """The machine, the compiler and the resources, in a line."""
        use = str(self.use)
        return f"{self.isa} by {self.compiler}" + (f": {use}" if use else "")

    def from_lines(self, numbers: dict[int, int]) -> MachineCode:
        """Return it with other lines of the source: `numbers` maps old to new; others get none."""
        lines = (AsmLine(line.text, numbers.get(line.source_line or 0)) for line in self.lines)
        return replace(self, lines=tuple(lines))


# --------------------------------------------------------------------------------------------------
# Machine code of other machines on disk, beside the object files of this one.


def code_of(compile_code: Callable[[], MachineCode], *parts: str) -> MachineCode:
    """Return the machine code of `parts`, which determine it (the text, the compiler with its
    version, the machine): from disk, or what `compile_code` returns."""
    key = key_of("machine code", *parts)
    image = object_cache.get(key)
    if image is not None:
        try:
            return typed_json(image.decode(), MachineCode)
        except ValueError:
            pass  # of another version of the workbench
    code = compile_code()
    object_cache.store_object(key, to_json(code).encode())
    return code
