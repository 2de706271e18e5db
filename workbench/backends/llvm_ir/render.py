"""The LLVM renderer: a linear program as a function in LLVM IR for this processor.

    void name(ptr args, i64 lo, i64 hi, i64 thread)

The walk below writes the nodes in the order of the program; native/program.py explains the
arguments.

Sections: The remainder of floats in LLVM; The walk of a linear program that writes LLVM IR; The
LLVM renderer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.backends.llvm_ir.instructions import (
    SUPPORTED,
    Operands,
    broadcast,
    call,
    combine_lanes,
    constant,
    elementwise,
    extract,
    shuffle,
    stack,
    type_of,
)
from workbench.backends.llvm_ir.loops import ArgumentMemory, Branches, Loops
from workbench.backends.llvm_ir.memory import LLVMMemory
from workbench.backends.llvm_ir.products import processor_product
from workbench.backends.llvm_ir.ssa import LLVMWriter, SSAPlan, construct_ssa, global_name
from workbench.backends.program.analysis import (
    QUOTIENT_SCALE,
    ProgramAnalysis,
    about,
    analyse,
    finished,
)
from workbench.backends.program.non_temporal import non_temporal_stores
from workbench.backends.program.text import Source
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp
from workbench.ir.rewriting.rewrite import advice

# --------------------------------------------------------------------------------------------------
# The remainder of floats in LLVM: by one quotient if it is small, by several if not.


def remainder(node: UOp, args: Sequence[str], text: LLVMWriter) -> str:
    """Return the last instruction of an FMOD.

    A float has p bits. If the rounded quotient q = x / y is below 2**p, trunc(q) is the integer
    part of the exact quotient, or 1 more. Then x - trunc(q)*y is a float, which an FMA computes
    without rounding; if that is below 0, y is added. The result is NaN where the remainder is.

    A larger q is an integer, and x - q*y is a float again, smaller than x by 2**p. So a loop
    reduces x first; it is skipped if all quotients are small. If q is infinite, y is scaled by
    QUOTIENT_SCALE, once or twice.
    """
    return _Remainder(node.dtype, text).write(*args)


class _Remainder:
    """Writes the instructions of a remainder; the lanes of `dtype` are computed together."""

    def __init__(self, dtype: DType, text: LLVMWriter):
        self.dtype, self.text = dtype, text
        self.kind, self.bit = type_of(dtype), type_of(dtypes.bool.vec(dtype.count))

    def write(self, a: str, b: str) -> str:
        text, kind = self.text, self.kind
        x, y = self._call("fabs", a), self._call("fabs", b)
        q = self._op("fdiv", x, y)
        before, far, near = text.block, text.unique("far"), text.unique("near")
        lower, quotient = text.unique("lower"), text.unique("quotient")
        values = (before, x, q), (far, f"%{lower}", f"%{quotient}")
        self._branch(self._is_large(x, y, q), far, near)
        text.begin(far)
        x, q = self._either(*values)
        less = self._lower(x, y, q)
        is_large = self._is_large(x, y, q)
        text.emit(f"select {self.bit} {is_large}, {kind} {less}, {kind} {x}", lower)
        text.emit(f"fdiv {kind} %{lower}, {y}", quotient)
        is_large = self._is_large(f"%{lower}", y, f"%{quotient}")
        self._branch(is_large, far, near)
        text.begin(near)
        x, q = self._either(*values)
        rest = self._less(x, y, q)
        # an infinite y times 0 is NaN; the remainder is x
        rest = self._select(self._compared(q, "oeq", 0.0), x, rest)
        more = self._op("fadd", rest, y)
        rest = self._select(self._compared(rest, "olt", 0.0), more, rest)
        return call("copysign", self.dtype, (rest, a))

    def _lower(self, x: str, y: str, q: str) -> str:
        """Return x less a multiple of y that is nearly as large as x."""
        for _ in range(2):
            is_infinite = self._compared(self._call("fabs", q), "oeq", math.inf)
            factor = constant(QUOTIENT_SCALE[self.dtype.scalar], self.dtype)
            y = self._select(is_infinite, self._op("fmul", y, factor), y)
            q = self._op("fdiv", x, y)
        return self._less(x, y, q)

    def _less(self, x: str, y: str, q: str) -> str:
        """Return x - trunc(q) * y, rounded once."""
        times = self.text.step(f"fneg {self.kind} {self._call('trunc', q)}")
        return self._call("fma", times, y, x)

    def _is_large(self, x: str, y: str, q: str) -> str:
        limit = 2.0 ** (self.dtype.fraction_bits + 1)
        is_large = self._compared(self._call("fabs", q), "oge", limit)
        is_finite = self._compared(self._call("fabs", x), "olt", math.inf)
        is_number = self._and(is_finite, self._compared(y, "ogt", 0.0))
        return self._and(is_large, is_number)

    def _either(self, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """Return phis of the values of two blocks; each argument has a block's name, then its
        values."""
        pairs = zip(one[1:], other[1:], strict=True)
        return [
            self.text.step(f"phi {self.kind} [ {x}, %{one[0]} ], [ {y}, %{other[0]} ]")
            for x, y in pairs
        ]

    def _branch(self, test: str, some: str, none: str) -> None:
        """Jump to `some` if the test holds in any lane, else to `none`."""
        if self.dtype.count > 1:
            reduced = f"@llvm.vector.reduce.or.v{self.dtype.count}i1"
            test = self.text.step(f"call i1 {reduced}({self.bit} {test})")
        self.text.put(f"br i1 {test}, label %{some}, label %{none}")

    def _call(self, name: str, *operands: str) -> str:
        return self.text.step(call(name, self.dtype, operands))

    def _op(self, name: str, x: str, y: str) -> str:
        return self.text.step(f"{name} {self.kind} {x}, {y}")

    def _compared(self, x: str, sign: str, y: float) -> str:
        other = constant(y, self.dtype)
        return self.text.step(f"fcmp {sign} {self.kind} {x}, {other}")

    def _and(self, x: str, y: str) -> str:
        return self.text.step(f"and {self.bit} {x}, {y}")

    def _select(self, test: str, yes: str, no: str) -> str:
        return self.text.step(f"select {self.bit} {test}, {self.kind} {yes}, {self.kind} {no}")


# --------------------------------------------------------------------------------------------------
# The walk of a linear program that writes LLVM IR: SSA form, named values, and the loops of the
# kernel.
#
# One block per loop, tested at its end (a loop runs at least once), so that every value computed
# above is available below. Registers become phis. Names of values say what they are: `%g0` an axis,
# `%acc_s_0` an accumulator, `%p1_at3` an address in argument 1, and `%p1_v3` a value loaded from
# there.
#
# The walk has the order of the program; loops.py, memory.py and instructions.py write the
# instructions and the names. The frame of a kernel, with its arguments and the numbers of its
# work-items, depends on the machine (see the last section, and `gpu_render.py`).

_NEVER_WRITTEN = frozenset(
    {Ops.CONST, Ops.PARAM, Ops.RANGE, Ops.LANES, Ops.REG, Ops.DEFINE, Ops.BLOCK, Ops.AFTER}
)


class LLVMWalker:
    """Writes a linear program, node by node; a subclass writes what only its machine has."""

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


# --------------------------------------------------------------------------------------------------
# The LLVM renderer.

_RESERVED = frozenset({"args", "lo", "hi", "thread", "entry", "begin", "done", "some"})
_ROUNDED = SUPPORTED - {Ops.BITCAST, Ops.WHERE}
"""Ops whose results are rounded to their dtype."""


def render(linear: tuple[UOp, ...], target: Target) -> Source:
    """Return the LLVM IR of a linear program, whose first node is BLOCK with a KernelInfo.

    Errors: CompileError for an operation that this processor lacks, and for a program that no
    machine could run (an op that lowering should have decomposed, a register read before it is
    set).
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
    """Return the lines before and after the body of the function."""
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
    """Whether LLVM would round a result by a library function, which is in the process only if
    something else has loaded it."""
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
        """Load the arguments, set up scratch memory, and return if there are no steps to run."""
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
