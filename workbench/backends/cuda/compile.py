"""Machine code for any NVIDIA GPU, present or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.compilers import MachineCode, code_of
from workbench.backends.cuda import nvrtc, sass
from workbench.backends.llvm_ir.gpu_code import gpu_machine_code
from workbench.backends.llvm_ir.gpu_targets import PTX
from workbench.backends.program.text import Source
from workbench.base.errors import DeviceError
from workbench.base.target import Target


def compile_source(source: Source, target: Target) -> MachineCode:
    """Return the SASS of a kernel by NVRTC; without NVRTC or nvdisasm, its PTX by LLVM.

    Errors: CompileError with the line of the source; DeviceError without these tools, for a text
    that a user wrote.
    """
    arch, tools = PTX.processor(target), nvrtc.toolkit()
    if tools is not None and tools.nvdisasm:
        text = source.text
        return code_of(
            lambda: in_child(sass.compile_to_sass, text, arch), text, arch, _version(tools)
        )
    if not source.linear:
        what = f"there is no compiler of CUDA C++ for {arch} here"
        raise DeviceError(
            what,
            "NVRTC and nvdisasm, which compile CUDA C++, are not both installed",
            nvrtc.how_to_get(),
        )
    code = gpu_machine_code(PTX, arch, source, target)
    return replace(code, compiler=f"{code.compiler} (for SASS: {nvrtc.how_to_get()})")


def _version(tools: nvrtc.Toolkit) -> str:
    """Return a text that differs between versions of the tools, without loading them."""
    stat = Path(tools.library).stat() if Path(tools.library).exists() else None
    changed = f"{stat.st_size} {stat.st_mtime_ns}" if stat else ""
    return f"{tools.library} {tools.nvdisasm} {changed}"
