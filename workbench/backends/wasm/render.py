"""The LLVM renderer for WebAssembly: a linear program as a function in LLVM IR.

    void name(ptr p0, ptr p1, ptr scratch)

A launch runs all of it. Memory is one piece, of addresses of 32 bits; so are the indexes. There are
no constants in memory, since nothing would put them there, and no library of functions: the
remainder of floats is a function after the kernel.
"""

from __future__ import annotations

from workbench.backends.gpu.wide_index import needs_wide
from workbench.backends.llvm_ir.arguments import ArgumentMemory
from workbench.backends.llvm_ir.instructions import INDEX_BITS, type_of
from workbench.backends.llvm_ir.operands import Operands
from workbench.backends.llvm_ir.ssa import construct_ssa
from workbench.backends.llvm_ir.walker import LLVMWalker
from workbench.backends.llvm_ir.writer import LLVMWriter, global_name
from workbench.backends.program.analysis import about, analyse, finished
from workbench.backends.program.source import Source
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp

_RESERVED = frozenset({"entry", "scratch"})
# The divisor is doubled up to the dividend, and subtracted on its way back: each difference of
# two floats within a factor of two is a float. (Half of infinity is not smaller.)
_REMAINDER = """
define double @fmod(double %a, double %b) #0 {
entry:
  %x = call double @llvm.fabs.f64(double %a)
  %y = call double @llvm.fabs.f64(double %b)
  %finite = fcmp olt double %x, 0x7FF0000000000000
  %positive = fcmp ogt double %y, 0.0
  %valid = and i1 %finite, %positive
  br i1 %valid, label %up, label %nothing
nothing:
  ret double 0x7FF8000000000000
up:
  %t = phi double [ %y, %entry ], [ %double, %up ]
  %double = fmul double %t, 2.0
  %more = fcmp ole double %double, %x
  br i1 %more, label %up, label %down
down:
  %s = phi double [ %t, %up ], [ %half, %down ]
  %r = phi double [ %x, %up ], [ %rest, %down ]
  %fits = fcmp oge double %r, %s
  %less = fsub double %r, %s
  %rest = select i1 %fits, double %less, double %r
  %half = fmul double %s, 0.5
  %above = fcmp oge double %half, %y
  %smaller = fcmp olt double %half, %s
  %again = and i1 %above, %smaller
  br i1 %again, label %down, label %done
done:
  %result = call double @llvm.copysign.f64(double %rest, double %a)
  ret double %result
}
define float @fmodf(float %a, float %b) #0 {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %r = call double @fmod(double %x, double %y)
  %result = fptrunc double %r to float
  ret float %result
}"""


def render(linear: tuple[UOp, ...], target: Target) -> Source:
    """Return the LLVM IR of a linear program.

    Errors: CompileError for an operation that lowering should have decomposed.
    """
    token = INDEX_BITS.set(64 if needs_wide(linear) else 32)
    try:
        return _render(linear, target)
    finally:
        INDEX_BITS.reset(token)


def _render(linear: tuple[UOp, ...], target: Target) -> Source:
    info: KernelInfo = linear[0].arg
    plan = analyse(linear, target)
    text = LLVMWriter(_RESERVED)
    operands = Operands(construct_ssa(linear), text)
    memory = _Arguments(plan, frozenset(), operands, text)
    walker = _WasmWalker(text, operands, memory)
    walker.loops.runs_whole = True
    text.begin("entry")
    memory.pointers()
    for position, node in enumerate(linear):
        walker.write(position, node)
    text.at = ()
    text.put("ret void")
    names = [f"p{param.slot}" for param in plan.params]
    names += [] if plan.on_stack else ["scratch"]
    parameters = ", ".join(f"ptr %{name}" for name in names)
    head = ["; " + words for words in about(info.name, plan)]
    head.append(f"define void {global_name(info.name)}({parameters}) #0 {{")
    foot = ["}", *(_REMAINDER.strip().split("\n") if walker.has_remainder else [])]
    foot += ["attributes #0 = { nounwind }", ""]
    body = text.lines, text.positions
    return finished(info.name, "LLVM IR", plan, head, body, foot)


class _Arguments(ArgumentMemory):
    """Pointers are the function's own arguments."""

    def _argument(self, name: str, slot: int) -> str:
        self.text.unique(name)
        return f"%{name}"

    def conditional_load(self, node: UOp, test: str, kind: str) -> str:
        return self.load_in_branch(node, test, kind)


class _WasmWalker(LLVMWalker):
    """Writes the program."""

    has_remainder = False

    def function(self, node: UOp) -> str | None:
        if node.op is not Ops.FMOD:
            return None
        self.has_remainder = True
        a, b = self.operands.operands(node)
        return f"frem {type_of(node.dtype)} {a}, {b}"
