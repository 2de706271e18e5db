"""The walk of a linear program that writes LLVM IR: SSA form, named values, and the loops of the
kernel.

One block per loop, tested at its end (a loop runs at least once), so that every value computed
above is available below. Registers become phis. Values have telling names: `%g0` an axis,
`%acc_s_0` an accumulator, `%p1_at3` an address in argument 1 and `%p1_v3` a value loaded from
there.

This file has the order of the program; loops.py, branches.py, memory.py, lanes.py and
instructions.py have the instructions, operands.py the names. The frame of a kernel, its arguments
and its numbers are the machine's (`render.py`, `gpu/render.py`).
"""

from __future__ import annotations

from workbench.backends.llvm_ir.branches import Branches
from workbench.backends.llvm_ir.instructions import SUPPORTED, constant, elementwise
from workbench.backends.llvm_ir.lanes import broadcast, combine_lanes, extract, shuffle, stack
from workbench.backends.llvm_ir.loops import Loops
from workbench.backends.llvm_ir.memory import LLVMMemory
from workbench.backends.llvm_ir.operands import Operands
from workbench.backends.llvm_ir.remainder import remainder
from workbench.backends.llvm_ir.writer import LLVMWriter
from workbench.base.errors import CompileError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import advice

_NEVER_WRITTEN = frozenset(
    {Ops.CONST, Ops.PARAM, Ops.RANGE, Ops.LANES, Ops.REG, Ops.DEFINE, Ops.BLOCK, Ops.AFTER}
)


class LLVMWalker:
    """Writes one node after another."""

    def __init__(self, text: LLVMWriter, operands: Operands, memory: LLVMMemory):
        self.text, self.operands, self.memory = text, operands, memory
        self.loops = Loops(operands, text)
        self.branches = Branches(operands, memory, text)

    def write(self, position: int, node: UOp) -> None:
        """Write one node of the program."""
        op, values = node.op, self.operands.values
        self.text.at = (position,)
        if op is Ops.BLOCK and position:
            raise CompileError("render", "BLOCK is not the first node of the program")
        if op is Ops.LOOP:
            self.loops.open(position, node)
        elif op is Ops.ENDLOOP:
            self.loops.close(node)
        elif op is Ops.IF:
            self.branches.open(position, node)
        elif op is Ops.ENDIF:
            self.branches.close()
        elif op is Ops.SPECIAL:
            values[node.axis] = self.number(node)
        elif op is Ops.BARRIER:
            self.barrier()
        elif op is Ops.SET:
            register, value = node.src
            values[register] = self.operands.operand(value, register.dtype)
            self.loops.set_at[register] = position
        elif op is Ops.STORE:
            self.memory.store(node)
        elif op is Ops.INDEX:
            values[node] = self.memory.address(node)
        elif op is Ops.LOAD:
            values[node] = self.memory.load(node)
        elif op not in _NEVER_WRITTEN and node not in self.operands.ssa.folded:
            values[node] = self._value(node)

    def number(self, node: UOp) -> str:
        """Write the number of a work-item or of a group, and return its name."""
        raise CompileError("render", "this machine has no work-groups")

    def barrier(self) -> None:
        """Write a barrier."""
        raise CompileError("render", "this machine has no work-groups")

    def function(self, node: UOp) -> str | None:
        """Return the last instruction of an operation that only some machines have, or None."""
        return None

    def _value(self, node: UOp) -> str:
        if node.op is Ops.BROADCAST and node.src[0].is_const:
            return constant(node.src[0].arg, node.dtype)
        return self.operands.named(node, self._instruction(node))

    def _instruction(self, node: UOp) -> str:
        """Return the last instruction of a value; those before it are written."""
        step = self.text.step
        function = self.function(node)
        if function is not None:
            return function
        if node.op is Ops.FMOD:
            return remainder(node, self.operands.operands(node), self.text)
        if node.op in SUPPORTED:
            return elementwise(node, self.operands.operands(node), step)
        args = [self.operands.operand(s) for s in node.src]
        if node.op is Ops.BROADCAST:
            return broadcast(args[0], node.dtype, step)
        if node.op is Ops.STACK:
            return stack(args, node.dtype, step)
        if node.op is Ops.EXTRACT:
            return extract(args[0], node.src[0].dtype, node.arg)
        if node.op is Ops.SHUFFLE:
            return shuffle(args, node.dtype, node.arg)
        if node.op is Ops.HREDUCE:
            return combine_lanes(node.arg, args[0], node.src[0].dtype, step)
        raise CompileError("render", f"LLVM has no instruction for {node.op.name}", hint=advice())
