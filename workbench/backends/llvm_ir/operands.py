"""Values as LLVM operands: the current name of each node, and names for new values."""

from __future__ import annotations

from workbench.backends.llvm_ir.instructions import constant, lanes
from workbench.backends.llvm_ir.ssa import SSAPlan
from workbench.backends.llvm_ir.writer import LLVMWriter
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


class Operands:
    """The values of one kernel. `values` has the current name of each node's value: that of a
    register changes with every SET."""

    def __init__(self, ssa: SSAPlan, text: LLVMWriter):
        self.ssa, self.text = ssa, text
        self.values: dict[UOp, str] = {}

    def operand(self, node: UOp, like: DType | None = None) -> str:
        """Return the text that stands for a node's value; a constant may widen to `like`.

        Errors: CompileError if the node has no value yet.
        """
        dtype = node.dtype
        if like is not None and like.count > 1:
            dtype = dtype.vec(like.count)
        if node.op is Ops.CONST:
            return constant(node.arg, dtype)
        if node.op is Ops.LANES:
            return lanes(node.arg, dtype)
        if node.op is Ops.AFTER:
            return self.operand(node.src[0])
        if node not in self.values:
            raise CompileError("render", f"{node!r} is used before it has a value")
        return self.values[node]

    def before(self, register: UOp) -> str:
        """Return the value of a register where one of two branches begins, or a loop. One that is
        set in branches only may have none yet: then nothing reads it.

        Errors: CompileError for any other one that has no value.
        """
        if register in self.ssa.conditional and register not in self.values:
            return "poison"
        return self.operand(register)

    def operands(self, node: UOp) -> list[str]:
        """Return the operands of an elementwise node, equally wide but for a condition."""
        wide = max((s.dtype for s in node.src), key=lambda dtype: dtype.count)
        if node.op is Ops.WHERE:
            condition, *values = node.src
            return [self.operand(condition), *(self.operand(v, wide) for v in values)]
        return [self.operand(s, wide) for s in node.src]

    def named(self, node: UOp, instruction: str) -> str:
        """Write an instruction under a name derived from `node`; return the name."""
        register = self.ssa.names.get(node)
        if register is not None:
            return self.text.emit(instruction, self.text.unique(register_name(register)))
        if node.op is Ops.LOAD:
            place = self.values[node.place.param].lstrip("%@")
            return self.text.emit(instruction, self.text.numbered(f"{place}_v"))
        if node.dtype is dtypes.index:
            return self.text.emit(instruction, self.text.numbered("idx"))
        return self.text.emit(instruction, self.text.numbered(node.op.name.lower()))


def register_name(register: UOp) -> str:
    """Return the name for values of a REG: its accumulator and its position in it."""
    return f"{register.name}_{register.first_lane}"
