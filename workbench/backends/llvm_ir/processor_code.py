"""Machine code of LLVM IR for a processor of another machine."""

from __future__ import annotations

import re
from dataclasses import replace

from workbench.backends.compilers import compilers
from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.compilers import MachineCode, code_of
from workbench.backends.llvm_ir.loops import with_locations
from workbench.backends.native.program import readable

_FUNCTION = re.compile(r"^\s*\.globl\s+(\w+)", re.MULTILINE)
_CALL = re.compile(r"\bcall\b[^@\n]*@(\w+)\(")
"""A call in LLVM IR: a function that is called is a helper, not the kernel."""
_SVE_BYTES = 16
"""Least bytes of an SVE vector: without an attribute, LLVM assumes no more."""


def processor_machine_code(text: str, isa: compilers.Isa, vector_bytes: int) -> MachineCode:
    """Return the machine code of a kernel, compiled as for this machine's processor: without LLVM's
    optimisation passes. `vector_bytes` is the width of the processor's vectors.

    Errors: CompileError if LLVM refuses the text.
    """

    def compile_text() -> MachineCode:
        written = in_child(compilers.assembly_of, with_locations(_sized(text)), isa)
        family = isa.triple.partition("-")[0]
        lines = readable(written)
        name = f"{family} for {isa.cpu or 'any processor'}"
        kernels = tuple(_FUNCTION.findall(written))
        return MachineCode(family, name, f"LLVM {version}", written, lines, kernels)

    def _sized(ir: str) -> str:
        """Return LLVM IR with an attribute for the length of SVE vectors above the least one."""
        if isa.triple.startswith("aarch64") and vector_bytes > _SVE_BYTES:
            times = vector_bytes // _SVE_BYTES
            return ir.replace("nounwind", f"nounwind vscale_range({times},{times})", 1)
        return ir

    version = compilers.package_version()
    code = code_of(compile_text, text, *isa, str(vector_bytes), version)
    callees = set(_CALL.findall(text))
    return replace(code, kernels=tuple(k for k in code.kernels if k not in callees))
