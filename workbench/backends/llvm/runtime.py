"""The LLVM runtime: LLVM IR to a Program that runs in this process."""

from __future__ import annotations

from functools import lru_cache

from workbench.backends.llvm.machine_passes import MachinePass, machine_passes
from workbench.backends.llvm_ir.locations import with_locations
from workbench.backends.native import jit
from workbench.backends.native.assembly import AsmLine, readable
from workbench.backends.native.objects import object_of
from workbench.backends.native.program import KEPT_PROGRAMS, NativeProgram
from workbench.backends.program.source import Source
from workbench.base.forking import once


@lru_cache(maxsize=KEPT_PROGRAMS)
def load(source: Source) -> LLVMProgram:
    """Return the Program of a Source: the same one for the same text."""
    return LLVMProgram(source)


class LLVMProgram(NativeProgram):
    """A kernel in LLVM's machine code, compiled (or read from the cache) at construction.

    Errors: CompileError if LLVM refuses the text; DeviceError for buffers that do not fit.
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
        """Return the passes of LLVM's code generator that change it, in a process of its own."""
        return machine_passes(self.source.text)

    def _load(self) -> jit.Code:
        return jit.load_object(object_of(self.source.text), self.source.name)
