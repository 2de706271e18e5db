"""The LLVM device. A fork waits for an import: in a child, a module that is half imported would
stay so."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from workbench.backends.compilers.machine_code import MachineCode
from workbench.backends.contract import Program
from workbench.backends.llvm.machines import MACHINES
from workbench.backends.llvm_ir import render as render_llvm
from workbench.backends.native.processor import Processor, compiled_target
from workbench.backends.program.language import Language
from workbench.backends.program.source import Source
from workbench.base.forking import no_fork
from workbench.base.target import Target
from workbench.ir.node.uop import UOp


class LLVMDevice(Processor):
    """The processor, through llvmlite's LLVM."""

    name = "LLVM"
    about = "this machine's processor, through the LLVM of llvmlite"
    how_to_get = "pip install 'llvmlite>=0.50'"
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
        # asked for each new tensor; llvmlite may be installed meanwhile
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
        with no_fork:
            from workbench.backends.compilers.llvm import Isa
            from workbench.backends.llvm_ir.processor_code import processor_machine_code
        isa = Isa(hardware.triple, hardware.arch, hardware.features)
        return processor_machine_code(source.text, isa, target.vector_bytes)

    def load(self, source: Source) -> Program:
        with no_fork:
            from workbench.backends.llvm.runtime import load
        return load(source)


DEVICE = LLVMDevice()
