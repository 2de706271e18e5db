"""The C renderer: a kernel as C that keeps the form of its loops.

    for (long g0 = lo; g0 < hi; g0++) {  // global
      float acc0 = 0.0f;
      for (long r0 = 0; r0 < 16; r0++) {  // reduce
        acc0 += p1[g0*16 + r0] * p2[r0];
      }
      p0[g0] = acc0;
    }

Axes and accumulators keep their names; a value that is used once, and is short, stands where
it is used. A comment says which part of the expression the lines below it compute, where one
statement became several. Vectors are the compilers' own (GCC's and Clang's vector extension).

    void name(void **args, long lo, long hi, long thread)

This file has the order of the program, the loops, and which values get names; memory.py,
registers.py and expressions/ write the expressions, comments.py the comments,
expressions/helpers.py the functions above the kernel; program/analysis.py has the arguments.

The text needs a compiler that wraps signed integers (-fwrapv) and fuses no product with a sum by
itself (-ffp-contract=off), which are the runtime's flags: a multiply-add is a function.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.c.expressions.bools import about_bools, is_about_bools
from workbench.backends.c.expressions.helpers import Prelude
from workbench.backends.c.expressions.lanes import LANES
from workbench.backends.c.expressions.operands import COperands
from workbench.backends.c.expressions.operators import arithmetic
from workbench.backends.c.memory import CMemory
from workbench.backends.c.registers import CRegisters
from workbench.backends.program.analysis import ProgramAnalysis, about, analyse, finished
from workbench.backends.program.comments import Follower
from workbench.backends.program.expression import ATOM, Expression
from workbench.backends.program.inlining import LEAVES, TRANSPARENT, InliningPlan, plan_inlining
from workbench.backends.program.source import Source
from workbench.backends.program.statement_writer import StatementWriter
from workbench.backends.program.writer import CodeWriter, identifier
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp, leaves
from workbench.ir.node.views import LoopRole

RESERVED = frozenset(
    "args lo hi scratch main auto break case char const continue default do double else enum"
    " extern float for goto if inline int long register restrict return short signed sizeof"
    " static struct switch typedef union unsigned void volatile while asm typeof linux unix"
    " i386 arm".split()
)
"""Names that an axis, a value or a kernel does not get."""
_PARTS: dict[LoopRole | None, tuple[str, str]] = {
    "chunked": ("lo", "hi"),
    "thread": ("thread", "thread + 1"),
}
"""First and last step of the loops that a launch runs a part of."""


def render(block: UOp, linear: tuple[UOp, ...], target: Target, tree: UOp | None = None) -> Source:
    """Return the C of a linear program, with comments from the statement tree `block`, whose text
    is that of `tree`: the same statements before exp2 and the like were decomposed.

    Errors: CompileError for a program that no machine could run (an op that lowering should have
    decomposed, a register read before it is set).
    """
    info: KernelInfo = linear[0].arg
    plan = analyse(linear, target)
    name = identifier(info.name, RESERVED)
    writer = _CRenderer(name, plan, plan_inlining(linear), Follower(block, tree), linear)
    writer.body(linear)
    prelude = writer.prelude.text()
    head = [*prelude.split("\n"), ""] if prelude else []
    head += ["// " + words for words in _about(info, plan, block)]
    thread = ", long thread" if plan.launch.threads > 1 else ""
    head.append(f"void {name}(void **args, long lo, long hi{thread}) {{")
    body = writer.text.lines, writer.text.positions
    return finished(name, "C", plan, head, body, ["}", ""])


def _about(info: KernelInfo, plan: ProgramAnalysis, block: UOp) -> list[str]:
    """Return the comment above the function: the arguments, and the axes without a loop."""
    title = info.name.replace("\\", "/")  # \ at its end would join two lines
    lines = about(title, plan)
    lanes = {r for r in leaves([block], Ops.RANGE) if r.axis_kind.is_lane}
    for axis in sorted(lanes, key=lambda r: r.axis_name):
        kind = axis.axis_kind.name.lower()
        lines.append(f"  {axis.axis_name}  0..{axis.extent - 1} at once ({kind})")
    return lines


class _CRenderer(StatementWriter):
    """Writes one node after another."""

    def __init__(
        self,
        name: str,
        plan: ProgramAnalysis,
        inlining: InliningPlan,
        follower: Follower,
        linear: Sequence[UOp],
    ):
        super().__init__(CodeWriter({*RESERVED, name, "thread"}), inlining, follower)
        self.prelude = Prelude()
        self.values = COperands(self.prelude)
        self.memory = CMemory(plan, self.values, self.text, linear)
        self.registers = CRegisters(self.values, self.text, linear)
        self.axes: dict[UOp, str] = {}
        self.open: list[UOp] = []
        self._extracted = {n.src[0] for n in linear if n.op is Ops.EXTRACT}

    def body(self, linear: Sequence[UOp]) -> None:
        """Write the whole program."""
        self.memory.pointers()
        self._statement_at = len(self.text.lines)
        for position, node in enumerate(linear):
            self.text.at = ()
            for register in self.inlining.begins.get(position, ()):
                self.registers.begin(register, node)
            self._write(position, node)
        if self.open:
            raise CompileError("render", f"the loop over {self._innermost} does not end")

    def _write(self, position: int, node: UOp) -> None:
        op = node.op
        self.text.at = self._written_with(position, node)
        if op is Ops.BLOCK:
            if position:
                raise CompileError("render", "BLOCK is not the first node of the program")
        elif op is Ops.LOOP:
            self._loop(node)
        elif op is Ops.ENDLOOP:
            self._end(node)
        elif op is Ops.SET:
            self.registers.set(node)
            self._finish_statement(node)
        elif op is Ops.STORE:
            self.memory.store(node)
            self._finish_statement(node)
        elif op in TRANSPARENT:
            self._inline[node] = self.text.at
        elif op not in LEAVES and position not in self.inlining.unused:
            self._value(position, node)

    # values

    def _value(self, position: int, node: UOp) -> None:
        """Inline a value where its expression is short and that is allowed, else name it."""
        text = self._expression(node)
        self.values.texts[node] = text
        if node.op is Ops.EXTRACT or self._stands_inline(position, node, text[0]):
            self._inline[node] = self.text.at
            return
        self._inline.pop(node, None)
        if node.dtype.count > 1 and node.dtype.is_bool:
            kind = self.prelude.mask(self.values.mask_bits[node], node.dtype.count)
        else:
            kind = self.prelude.type(node.dtype)
        name = self.text.numbered(self._stem(node, self.memory.names))
        self.text.put(f"const {kind} {name} = {text[0]};")
        self.values.texts[node] = name, ATOM

    def _expression(self, node: UOp) -> Expression:
        if node.is_elementwise:
            count = max(s.dtype.count for s in node.src)
            write = about_bools if is_about_bools(node, count) else arithmetic
            return write(self.values, node, count)
        if node.op is Ops.LOAD:
            return self.memory.load(node)
        if node.op in LANES:
            return LANES[node.op](self.values, node)
        raise CompileError("render", f"C has nothing for {node.op.name}")

    def _stands_inline(self, position: int, node: UOp, words: str) -> bool:
        return node not in self._extracted and self._is_short(position, words)

    # loops

    @property
    def _innermost(self) -> str:
        return self.axes[self.open[-1]]

    def _loop(self, node: UOp) -> None:
        axis = node.src[0]
        if axis not in self.axes:
            self.axes[axis] = self.text.unique(axis.axis_name)
        name = self.axes[axis]
        first, last = _PARTS.get(node.role, ("0", str(axis.extent)))
        note = axis.axis_kind.name.lower().replace("_", " ")
        self.text.put(f"for (long {name} = {first}; {name} < {last}; {name}++) {{  // {note}")
        self.values.texts[axis] = name, ATOM
        self.open.append(axis)
        self._open()
        self.follower.open(axis)

    def _end(self, node: UOp) -> None:
        if not self.open or self.open[-1] is not node.src[0]:
            names = self._innermost if self.open else "nothing"
            raise CompileError("render", f"the loop over {names} is not the one that ends")
        self.open.pop()
        self._close()
