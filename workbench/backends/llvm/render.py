"""Linear program -> LLVM IR text that reads like the loops it came from.

One block per loop, tested at its end (a loop runs at least once), so that every value computed
above is available below. Registers become phis. Values have telling names: `%g0` an axis,
`%acc_s_0` an accumulator, `%p1_at3` an address in argument 1 and `%p1_v3` a value loaded from
there.

    void name(ptr args, i64 lo, i64 hi, i64 thread)

This file has the order of the program; loops.py, memory.py, lanes.py and instructions.py have the
instructions, operands.py the names; program/analysis.py has the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.llvm.instructions import SUPPORTED, constant, elementwise
from workbench.backends.llvm.lanes import (
    broadcast,
    combine_lanes,
    extract,
    shuffle,
    stack,
)
from workbench.backends.llvm.loops import Loops
from workbench.backends.llvm.memory import LLVMMemory
from workbench.backends.llvm.operands import Operands
from workbench.backends.llvm.remainder import remainder
from workbench.backends.llvm.ssa import SSAPlan, construct_ssa
from workbench.backends.llvm.writer import LLVMWriter, global_name
from workbench.backends.program.analysis import (
    ProgramAnalysis,
    about,
    analyse,
    finished,
)
from workbench.backends.program.non_temporal import non_temporal_stores
from workbench.backends.program.source import Source
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.rewriting.rewrite import advice

_RESERVED = frozenset({"args", "lo", "hi", "thread", "entry", "begin", "done", "some"})
_NEVER_WRITTEN = frozenset(
    {
        Ops.CONST,
        Ops.PARAM,
        Ops.RANGE,
        Ops.LANES,
        Ops.REG,
        Ops.DEFINE,
        Ops.BLOCK,
        Ops.AFTER,
    }
)


def render(linear: tuple[UOp, ...], target: Target) -> Source:
    """Return the LLVM IR of a linear program, whose first node is BLOCK with a KernelInfo.

    Errors: CompileError for a program that no machine could run (an op that lowering should have
    decomposed, a register read before it is set).
    """
    info: KernelInfo = linear[0].arg
    plan, ssa = analyse(linear, target), construct_ssa(linear)
    non_temporal = non_temporal_stores(linear, target)
    writer = _LLVMRenderer(plan, ssa, non_temporal)
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
    head += [
        f";   p{slot} is written with non-temporal stores"
        for slot in non_temporal_slots
    ]
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


class _LLVMRenderer:
    """Writes one node after another."""

    def __init__(
        self, plan: ProgramAnalysis, ssa: SSAPlan, non_temporal: frozenset[UOp]
    ):
        self.plan, self.ssa = plan, ssa
        self.text = LLVMWriter(_RESERVED)
        self.operands = Operands(ssa, self.text)
        self.memory = LLVMMemory(plan, non_temporal, self.operands, self.text)
        self.loops = Loops(self.operands, self.text)

    def prologue(self) -> None:
        """Load the arguments, set up scratch memory, and return if there are no steps."""
        self.text.begin("entry")
        self.memory.pointers()
        if self.plan.launch.steps is not None:
            self.text.put("%some = icmp slt i64 %lo, %hi")
            self.text.put("br i1 %some, label %begin, label %done")
            self.text.begin("begin")

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
        elif op not in _NEVER_WRITTEN and node not in self.ssa.folded:
            values[node] = self._value(node)

    def finish(self) -> None:
        """End the function."""
        self.text.at = ()
        if self.plan.launch.steps is not None:
            self.text.put("br label %done")
            self.text.begin("done")
        if self.memory.non_temporal:  # later stores may overtake non-temporal ones
            self.text.put("fence seq_cst")
        self.text.put("ret void")

    def _value(self, node: UOp) -> str:
        if node.op is Ops.BROADCAST and node.src[0].is_const:
            return constant(node.src[0].arg, node.dtype)
        return self.operands.named(node, self._instruction(node))

    def _instruction(self, node: UOp) -> str:
        """Return the last instruction of a value; those before it are written."""
        step = self.text.step
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
        raise CompileError(
            "render",
            f"LLVM has no instruction for {node.op.name}",
            hint=advice(),
        )
