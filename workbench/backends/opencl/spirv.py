"""SPIR-V of OpenCL C, which the driver of any GPU compiles."""

from __future__ import annotations

import re
from dataclasses import replace

from workbench.backends.compilers.clang import Clang, clang_for
from workbench.backends.compilers.code_cache import code_of
from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.gpu.opencl_c import STANDARD
from workbench.backends.llvm_ir.gpu.code import gpu_machine_code, read_spirv
from workbench.backends.llvm_ir.gpu.spirv_lines import with_marks
from workbench.backends.llvm_ir.gpu.targets import SPIRV
from workbench.backends.llvm_ir.locations import without_locations
from workbench.backends.opencl.header import HEADER, NAME
from workbench.backends.program.source import Source
from workbench.base.errors import DeviceError
from workbench.base.installation import install_command
from workbench.base.target import Target

_MACHINE = "spirv64"
_TARGET = f"--target={SPIRV.triple}"
_NAMES = "-fno-discard-value-names"  # blocks are found by them
_READ = ("-x", "cl", STANDARD, "-gline-tables-only", "-emit-llvm", _NAMES)
_WRITE = ("-x", "ir", "-Xclang", "-disable-llvm-passes", _NAMES, "-mllvm", "--spirv-ext=all")
_COPY = re.compile(r"^define [^\n]*@__clang_ocl_kern_imp_.*?^}\n", re.MULTILINE | re.DOTALL)
"""A kernel as a function, which clang writes for other kernels to call."""


def compile_source(source: Source, target: Target) -> MachineCode:
    """Return the SPIR-V of a kernel's text by clang; where that is not here, that of its program by
    LLVM.

    Errors: CompileError with the line of the source; DeviceError without clang, for a text that
    a user wrote.
    """
    clang = clang_for(_MACHINE)
    if clang is not None:
        text, parts = source.text, (HEADER, *_READ, *_WRITE, clang.stamp)
        return code_of(lambda: compile_text(clang, text), text, *parts)
    if not source.linear:
        what = "there is no compiler of OpenCL C for other machines here"
        raise DeviceError(what, "no clang here writes SPIR-V", how_to_get())
    code = gpu_machine_code(SPIRV, "", source, target)
    return replace(code, compiler=f"{code.compiler} (of the text itself: {how_to_get()})")


def how_to_get() -> str:
    """Return the command that installs a clang which knows SPIR-V."""
    return f"{install_command('c')}, which brings zig's clang"


def compile_text(clang: Clang, text: str) -> MachineCode:
    """Return what clang makes of a text.

    Errors: CompileError with the line that clang refuses.
    """
    ir = clang.compile(text, {NAME: HEADER}, *_READ, _TARGET, "-O2", "-fno-unroll-loops")
    located = without_locations(_COPY.sub("", ir))
    marked = with_marks(located.text, lambda line: located.numbers[line - 1])
    written = clang.compile(marked.text, {}, *_WRITE, _TARGET, "-O2", "-fno-unroll-loops")
    return replace(read_spirv(written, marked), compiler=clang.name)
