"""A kernel as C that reads like the loops it came from.

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

The text needs a compiler that wraps signed integers (-fwrapv) and fuses `a * b + c` where the
machine can (-ffp-contract=fast), which are the runtime's flags.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from workbench.backends.c.expressions.bools import about_bools, is_about_bools
from workbench.backends.c.expressions.helpers import Prelude
from workbench.backends.c.expressions.lanes import LANES
from workbench.backends.c.expressions.operands import COperands
from workbench.backends.c.expressions.operators import arithmetic
from workbench.backends.c.memory import CMemory
from workbench.backends.c.registers import CRegisters
from workbench.backends.program.analysis import (
    ProgramAnalysis,
    about,
    analyse,
    finished,
)
from workbench.backends.program.comments import Follower, deserves_comment
from workbench.backends.program.expression import ATOM, Expression
from workbench.backends.program.inlining import (
    LEAVES,
    TRANSPARENT,
    InliningPlan,
    plan_inlining,
)
from workbench.backends.program.source import Source
from workbench.backends.program.writer import CodeWriter, identifier
from workbench.base.dtypes import dtypes
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
_SHORT_INDEX = 40  # arithmetic this short is repeated; longer one gets a name
_SHORT_VALUE = 72
_PARTS: dict[LoopRole | None, tuple[str, str]] = {
    "chunked": ("lo", "hi"),
    "thread": ("thread", "thread + 1"),
}
"""First and last step of the loops that a launch runs a part of."""


def render(
    block: UOp, linear: tuple[UOp, ...], target: Target, tree: UOp | None = None
) -> Source:
    """Return the C of a linear program, with comments from the statement tree `block`, whose text
    is that of `tree`: the same statements before exp2 and the like were decomposed.

    Errors: CompileError for a program that no machine could run (an op that lowering should have
    decomposed, a register read before it is set).
    """
    info: KernelInfo = linear[0].arg
    plan = analyse(linear, target)
    name = identifier(info.name, RESERVED)
    writer = _CRenderer(
        name, plan, plan_inlining(linear), Follower(block, tree), linear
    )
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


class _CRenderer:
    """Writes one node after another."""

    def __init__(
        self,
        name: str,
        plan: ProgramAnalysis,
        inlining: InliningPlan,
        follower: Follower,
        linear: Sequence[UOp],
    ):
        self.inlining, self.follower = inlining, follower
        self.prelude = Prelude()
        self.values = COperands(self.prelude)
        self.text = CodeWriter({*RESERVED, name, "thread"})
        self.memory = CMemory(plan, self.values, self.text, linear)
        self.registers = CRegisters(self.values, self.text, linear)
        self.axes: dict[UOp, str] = {}
        self.open: list[UOp] = []
        self._inline: dict[UOp, tuple[int, ...]] = {}  # inlined positions
        self._statement_at = 0  # the line where the statement being written begins
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
            raise CompileError(
                "render", f"the loop over {self._innermost} does not end"
            )

    def _write(self, position: int, node: UOp) -> None:
        op = node.op
        self.text.at = self._written_with(position, node)
        if op is Ops.BLOCK:
            if position:
                raise CompileError(
                    "render", "BLOCK is not the first node of the program"
                )
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

    def _written_with(self, position: int, node: UOp) -> tuple[int, ...]:
        """Return the positions of a node and of all nodes inlined in its expression."""
        inside = [self._inline[s] for s in node.src if s in self._inline]
        return (
            tuple(dict.fromkeys([position, *chain(*inside)])) if inside else (position,)
        )

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
        name = self.text.numbered(self._stem(node))
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
        if node in self._extracted:
            return False
        if position in self.inlining.anywhere and len(words) <= _SHORT_INDEX:
            return True
        return position in self.inlining.once and len(words) <= _SHORT_VALUE

    def _stem(self, node: UOp) -> str:
        """Return the first part of a value's name, by its op."""
        if node.op is Ops.LOAD:
            return f"{self.memory.names[node.place.param]}_v"
        if node.dtype is dtypes.index:
            return "at"
        return "is" if node.dtype.is_bool else "v"

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
        self.text.put(
            f"for (long {name} = {first}; {name} < {last}; {name}++) {{  // {note}"
        )
        self.values.texts[axis] = name, ATOM
        self.open.append(axis)
        self.text.depth += 1
        self.follower.open(axis)
        self._statement_at = len(self.text.lines)

    def _end(self, node: UOp) -> None:
        if not self.open or self.open[-1] is not node.src[0]:
            names = self._innermost if self.open else "nothing"
            raise CompileError(
                "render", f"the loop over {names} is not the one that ends"
            )
        self.open.pop()
        self.text.depth -= 1
        self.text.put("}")
        self.follower.close()
        self._statement_at = len(self.text.lines)

    def _finish_statement(self, node: UOp) -> None:
        """Write a comment above the lines of a statement of the tree, if this SET or STORE
        completes it and it took several lines, or a vector."""
        leaf = self.follower.write(node)
        if leaf is None:
            return
        at, self._statement_at = self._statement_at, len(self.text.lines)
        if deserves_comment(leaf, len(self.text.lines) - at):
            self.text.comment(self.follower.comment(leaf), at)
            self._statement_at = len(self.text.lines)
