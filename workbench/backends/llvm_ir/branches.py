"""IFs in LLVM: a block for the body, and a phi for each register that it sets."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.backends.llvm_ir.instructions import type_of
from workbench.backends.llvm_ir.memory import LLVMMemory
from workbench.backends.llvm_ir.operands import Operands, register_name
from workbench.backends.llvm_ir.writer import LLVMWriter
from workbench.ir.node.uop import UOp


@dataclass(slots=True)
class _Branch:
    """An open IF: the block before it, the label after it, the registers that it sets with their
    values before, and the addresses that are known before."""

    came_from: str
    after: str
    registers: tuple[tuple[UOp, str], ...]
    bases: dict[tuple[str, str], str]


class Branches:
    """Writes the IFs of one kernel."""

    def __init__(self, operands: Operands, memory: LLVMMemory, text: LLVMWriter):
        self.operands, self.memory, self.text = operands, memory, text
        self.stack: list[_Branch] = []

    def open(self, position: int, node: UOp) -> None:
        """Begin the IF at `position`."""
        registers = tuple(
            (register, self.operands.before(register))
            for register in self.operands.ssa.set_in[position]
        )
        inside, after = self.text.unique("if"), self.text.unique("endif")
        test = self.operands.operand(node.condition)
        self.text.put(f"br i1 {test}, label %{inside}, label %{after}")
        branch = _Branch(self.text.block, after, registers, {**self.memory.bases})
        self.stack.append(branch)
        self.text.begin(inside)

    def close(self) -> None:
        """End the innermost IF: what it computed is known only in it."""
        branch = self.stack.pop()
        self.text.put(f"br label %{branch.after}")
        inside = self.text.block
        self.text.begin(branch.after)
        self.memory.bases = branch.bases
        for register, before in branch.registers:
            value = self.operands.operand(register)
            phi = (
                f"phi {type_of(register.dtype)} [ {value}, %{inside} ],"
                f" [ {before}, %{branch.came_from} ]"
            )
            name = self.text.unique(register_name(register))
            self.operands.values[register] = self.text.emit(phi, name)
