"""The LLVM device. Imports at first use hold `no_fork`: in a child that was forked during one, the
module would stay half imported.

Sections: The LLVM device; The LLVM runtime; Machine code for a processor of another machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec

from workbench.backends.compilers import compilers
from workbench.backends.compilers.child import in_child
from workbench.backends.compilers.compilers import MachineCode, code_of
from workbench.backends.contract import KEPT_PROGRAMS, Program
from workbench.backends.llvm.llvm_machines import MACHINES
from workbench.backends.llvm.machine_passes import MachinePass, machine_passes
from workbench.backends.llvm_ir import render as render_llvm
from workbench.backends.llvm_ir.loops import with_locations
from workbench.backends.native import jit
from workbench.backends.native.jit import object_of
from workbench.backends.native.processor import Processor, compiled_target
from workbench.backends.native.program import AsmLine, NativeProgram, readable
from workbench.backends.program.text import Language, Source
from workbench.base.interrupts import once
from workbench.base.target import Target
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# The LLVM device.


class LLVMDevice(Processor):
    """The processor, through llvmlite's LLVM."""

    name = "LLVM"
    about = "this machine's processor, through the LLVM of llvmlite"
    how_to_get = "pip install 'llvmlite>=0.50'"
    packages = ("llvmlite",)
    aliases = ("CPU",)
    rank = 10
    language = Language(
        "LLVM",
        "LLVM IR",
        comment=";.*$",
        word=r"\b(?:define|br|label|load|store|fmul|fadd|phi|ret|icmp|getelementptr|call"
        r"|declare|attributes|select)\b",
        head="^define ",
    )
    compiles_text = True

    _is_installed = False

    @property
    def is_available(self) -> bool:
        # read for each new tensor; llvmlite may be installed meanwhile
        self._is_installed = self._is_installed or find_spec("llvmlite") is not None
        return self._is_installed

    def _target(self) -> Target:
        return compiled_target(self.name)

    @property
    def machines(self) -> Mapping[str, Target]:
        return MACHINES

    def render(self, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None) -> Source:
        return render_llvm.render(linear, self.target)

    def render_for(
        self, target: Target, block: UOp, linear: tuple[UOp, ...], tree: UOp | None = None
    ) -> Source:
        return render_llvm.render(linear, target)

    def compile_for(self, target: Target, source: Source) -> MachineCode | None:
        hardware = target.hardware
        if hardware is None or not hardware.triple:
            return None
        isa = compilers.Isa(hardware.triple, hardware.arch, hardware.features)
        return processor_machine_code(source.text, isa, target.vector_bytes)

    def load(self, source: Source) -> Program:
        return load(source)


DEVICE = LLVMDevice()


# --------------------------------------------------------------------------------------------------
# The LLVM runtime: LLVM IR to a Program that runs in this process.


@lru_cache(maxsize=KEPT_PROGRAMS)
def load(source: Source) -> LLVMProgram:
    """Return the Program of a Source: the same one for the same text."""
    return LLVMProgram(source)


class LLVMProgram(NativeProgram):
    """A kernel in LLVM's machine code, compiled (or read from the cache) at construction.

    Errors: CompileError if LLVM refuses the text; in a call, DeviceError for buffers that do not
    fit.
    """

    device = "LLVM"

    def __init__(self, source: Source):
        super().__init__(source)
        _ = self._kernel

    @once
    def assembly(self) -> str:
        """The machine's instructions, as text."""
        return jit.compile_assembly(self.source.text)

    @once
    def assembly_lines(self) -> tuple[AsmLine, ...]:
        """The instructions without directives, each with its line of the source."""
        return readable(jit.compile_assembly(with_locations(self.source.text)))

    def passes(self) -> list[MachinePass]:
        """Return the passes of LLVM's code generator that change the kernel; another process runs
        them."""
        return machine_passes(self.source.text)

    def _load(self) -> jit.Code:
        return jit.load_object(object_of(self.source.text), self.source.name)


# --------------------------------------------------------------------------------------------------
# Machine code of LLVM IR for a processor of another machine.

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
