"""The arguments of a kernel on this processor: an array of pointers; scratch memory is on the
stack, or is passed after the arguments.
"""

from __future__ import annotations

from workbench.backends.llvm_ir.instructions import memory_type
from workbench.backends.llvm_ir.memory import LLVMMemory
from workbench.ir.nest.accesses import size_of


class ArgumentMemory(LLVMMemory):
    """Writes memory accesses of a processor."""

    def pointers(self) -> None:
        """Fetch the pointers to the arguments, and those to the arrays in scratch memory."""
        for param in self.plan.params:
            slot = param.slot
            self.operands.values[param] = self._argument(f"p{slot}", slot)
        if self.plan.scratch:
            self._scratch()

    def _argument(self, name: str, slot: int) -> str:
        name = self.text.unique(name)
        where = "%args"
        if slot:
            where = self.text.emit(f"getelementptr ptr, ptr %args, i64 {slot}", f"{name}.slot")
        return self.text.emit(f"load ptr, ptr {where}, align 8", name)

    def _scratch(self) -> None:
        base = ""
        if not self.plan.on_stack:
            base = self._argument("scratch", self.plan.slots)
        for define, offset in self.plan.scratch.items():
            name = self.text.unique(define.name)
            kind = f"[{size_of(define)} x {memory_type(define.dtype.scalar)}]"
            place = f"getelementptr i8, ptr {base}, i64 {offset}"
            on_stack = f"alloca {kind}, align {self.plan.alignment_bytes}"
            address = self.text.emit(place if base else on_stack, name)
            self.operands.values[define] = address
            if define in self.plan.padded and not base:
                self.text.put(f"store {kind} zeroinitializer, ptr {address}")
