"""The LLVM renderer: a linear program as a function in LLVM IR for this processor.

    void name(ptr args, i64 lo, i64 hi, i64 thread)

`llvm_ir/walker.py` has the order of the program, and what it looks like; program/analysis.py has
the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.llvm_ir.arguments import ArgumentMemory
from workbench.backends.llvm_ir.instructions import SUPPORTED
from workbench.backends.llvm_ir.operands import Operands
from workbench.backends.llvm_ir.products.processor import processor_product
from workbench.backends.llvm_ir.ssa import SSAPlan, construct_ssa
from workbench.backends.llvm_ir.walker import LLVMWalker
from workbench.backends.llvm_ir.writer import LLVMWriter, global_name
from workbench.backends.program.analysis import ProgramAnalysis, about, analyse, finished
from workbench.backends.program.non_temporal import non_temporal_stores
from workbench.backends.program.source import Source
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.rewriting.rewrite import advice

_RESERVED = frozenset({"args", "lo", "hi", "thread", "entry", "begin", "done", "some"})
_ROUNDED = SUPPORTED - {Ops.BITCAST, Ops.WHERE}
"""Ops whose results are rounded to their dtype."""


def render(linear: tuple[UOp, ...], target: Target) -> Source:
    """Return the LLVM IR of a linear program, whose first node is BLOCK with a KernelInfo.

    Errors: CompileError for a program that no machine could run (an op that lowering should have
    decomposed, a register read before it is set).
    """
    info: KernelInfo = linear[0].arg
    plan, ssa = analyse(linear, target), construct_ssa(linear)
    non_temporal = non_temporal_stores(linear, target)
    writer = _ProcessorWalker(plan, ssa, non_temporal, target.conversions)
    writer.prologue()
    for position, node in enumerate(linear):
        writer.write(position, node)
    writer.finish()
    non_temporal_slots = sorted({s.place.param.slot for s in non_temporal})
    head, foot = _frame(info.name, plan, ssa, non_temporal_slots)
    body = writer.text.lines, writer.text.positions
    return finished(info.name, "LLVM IR", plan, head, body, foot, non_temporal_slots)


def _frame(
    name: str, plan: ProgramAnalysis, ssa: SSAPlan, non_temporal_slots: Sequence[int]
) -> tuple[list[str], list[str]]:
    """Return the lines before and after those of the function's body."""
    head = ["; " + words for words in about(name, plan)]
    head += [f";   p{slot} is written with non-temporal stores" for slot in non_temporal_slots]
    if ssa.zero_bytes:
        least = plan.alignment_bytes
        zeros = f"[{max(least, ssa.zero_bytes)} x i8] zeroinitializer, align {least}"
        head.append(f"@zeros = private constant {zeros}")
    thread = ", i64 %thread" if plan.launch.threads > 1 else ""
    parameters = f"ptr %args, i64 %lo, i64 %hi{thread}"
    define = f"define void {global_name(name)}({parameters}) #0 {{"
    attributes = 'attributes #0 = { nounwind "no-stack-arg-probe" }'
    marks = ["!0 = !{i32 1}"] if non_temporal_slots else []
    return [*head, define], ["}", attributes, *marks, ""]


def _is_library_call(node: UOp, conversions: tuple[DType, ...]) -> bool:
    """Whether LLVM would round a result by a function of a library, which a process has or lacks by
    what else it has loaded."""
    dtype = node.dtype.scalar
    if not dtype.is_low_precision or node.op not in _ROUNDED:
        return False
    is_of_float64 = any(s.dtype.scalar is dtypes.float64 for s in node.src)
    return is_of_float64 or dtype not in conversions


class _ProcessorWalker(LLVMWalker):
    """Writes the program between the entry of the function and its end."""

    def __init__(
        self,
        plan: ProgramAnalysis,
        ssa: SSAPlan,
        non_temporal: frozenset[UOp],
        conversions: tuple[DType, ...],
    ):
        text = LLVMWriter(_RESERVED)
        operands = Operands(ssa, text)
        memory = ArgumentMemory(plan, non_temporal, operands, text)
        super().__init__(text, operands, memory)
        self.plan, self.arguments = plan, memory
        self.conversions = conversions

    def function(self, node: UOp) -> str | None:
        if _is_library_call(node, self.conversions):
            source, dtype = node.src[0].dtype.scalar, node.dtype.scalar
            what = f"a {node.op.name} of {source} that gives {dtype}"
            because = f"LLVM has no instruction for {what}"
            raise CompileError("render", because, hint=advice())
        if node.op is not Ops.WMMA:
            return None
        values = [self.operands.operand(s) for s in node.src]
        return processor_product(node.arg, values, self.text.step)

    def prologue(self) -> None:
        """Load the arguments, set up scratch memory, and return if there are no steps."""
        self.text.begin("entry")
        self.arguments.pointers()
        if self.plan.launch.steps is not None:
            self.text.put("%some = icmp slt i64 %lo, %hi")
            self.text.put("br i1 %some, label %begin, label %done")
            self.text.begin("begin")

    def finish(self) -> None:
        """End the function."""
        self.text.at = ()
        if self.plan.launch.steps is not None:
            self.text.put("br label %done")
            self.text.begin("done")
        if self.memory.non_temporal:  # later stores may overtake non-temporal ones
            self.text.put("fence seq_cst")
        self.text.put("ret void")
