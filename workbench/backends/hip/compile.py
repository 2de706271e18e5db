"""Machine code for any AMD GPU, present or not."""

from __future__ import annotations

from dataclasses import replace

from workbench.backends.compilers.clang import Clang, clang_for
from workbench.backends.compilers.code_cache import code_of
from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.hip.header import HEADER, NAME
from workbench.backends.llvm_ir.gpu.code import gpu_machine_code, read_gpu
from workbench.backends.llvm_ir.gpu.targets import AMDGCN
from workbench.backends.program.source import Source
from workbench.base.errors import DeviceError
from workbench.base.installation import install_command
from workbench.base.target import Target

# Wherever clang is from, the header is ours, so that lines are those of the text.
_FLAGS = (
    "-x", "hip", "--cuda-device-only", "-nogpulib", "-nogpuinc", "-std=c++17",
    "-O3", "-ffp-contract=off", "-gline-tables-only", "-include", NAME,
)  # fmt: skip
_NO_LINES = "__attribute__((nodebug))"


def compile_source(source: Source, target: Target) -> MachineCode:
    """Return the machine code of a kernel's text by clang; where that is not here, that of its
    program by LLVM.

    Errors: CompileError with the line of the source; DeviceError without clang, for a text that
    a user wrote.
    """
    arch = AMDGCN.processor(target)
    clang = clang_for("amdgcn", arch)
    if clang is not None:
        text, parts = source.text, (HEADER, *_FLAGS, clang.stamp)
        return code_of(lambda: compile_text(clang, text, arch), text, arch, *parts)
    if not source.linear:
        what = f"there is no compiler of HIP for {arch} here"
        raise DeviceError(what, f"no clang here knows {arch}", how_to_get())
    code = gpu_machine_code(AMDGCN, arch, source, target)
    return replace(code, compiler=f"{code.compiler} (of the text itself: {how_to_get()})")


def how_to_get() -> str:
    """Return the command that installs a clang which knows AMD's GPUs."""
    return f"{install_command('c')}, which brings zig's clang"


def compile_text(clang: Clang, text: str, arch: str) -> MachineCode:
    """Return what clang makes of a text for an architecture such as "gfx942".

    Errors: CompileError with the line that clang refuses.
    """
    # An instruction of a function before the kernel is of the line that calls it.
    text = text.replace("__device__ inline ", f"__device__ inline {_NO_LINES} ")
    written = clang.compile(text, {NAME: HEADER}, *_FLAGS, f"--offload-arch={arch}")
    return replace(read_gpu(AMDGCN, arch, written), compiler=clang.name)
