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

This file has the order of the program, the loops, and which values get names, with loads,
stores and registers; expressions.py writes the expressions, program/text.py the comments,
helpers.py the functions above the kernel; program/analysis.py has the arguments.

The text needs a compiler that wraps signed integers (-fwrapv) and fuses no product with a sum by
itself (-ffp-contract=off), which are the runtime's flags: a multiply-add is a function.

Sections: Memory in C; Registers in C; The C renderer.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.c.expressions import (
    LANES,
    COperands,
    about_bools,
    arithmetic,
    is_about_bools,
)
from workbench.backends.c.helpers import Prelude
from workbench.backends.program.analysis import ProgramAnalysis, about, analyse, finished
from workbench.backends.program.inlining import LEAVES, TRANSPARENT, InliningPlan, plan_inlining
from workbench.backends.program.text import (
    ATOM,
    EITHER,
    EQUAL,
    MUL,
    UNARY,
    CodeWriter,
    Expression,
    Follower,
    Source,
    StatementWriter,
    call,
    identifier,
    paren,
)
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.base.target import Target
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import KernelInfo, UOp, leaves
from workbench.ir.node.views import LoopRole

# --------------------------------------------------------------------------------------------------
# Memory in C: the pointers at the head of a kernel, loads and stores.
#
# A bool is a byte in memory. A vector is read through a pointer of its type, which the prelude
# declares as aligned like one element and free to alias.


class CMemory:
    """Writes memory accesses. `names` has the name of each argument and array."""

    def __init__(
        self, plan: ProgramAnalysis, values: COperands, text: CodeWriter, linear: Sequence[UOp]
    ):
        self.plan, self.values, self.text = plan, values, text
        self.prelude = values.prelude
        self.names: dict[UOp, str] = {}
        self._written = {n.place.param for n in linear if n.op is Ops.STORE}

    def pointers(self) -> None:
        """Declare the arguments, and the arrays in scratch memory."""
        for param in self.plan.params:
            slot = param.slot
            self.names[param] = name = self.text.unique(f"p{slot}")
            constant = "" if param in self._written else "const "
            kind = self.prelude.element(param.dtype.scalar)
            self.text.put(f"{constant}{kind} *{name} = args[{slot}];")
        handed_in = bool(self.plan.scratch) and not self.plan.on_stack
        if handed_in:
            self.text.put(f"char *scratch = args[{self.plan.slots}];")
        for define, offset in self.plan.scratch.items():
            self.names[define] = name = self.text.unique(define.name)
            kind = self.prelude.element(define.dtype.scalar)
            if handed_in:
                self.text.put(f"{kind} *{name} = ({kind} *)(scratch + {offset});")
            else:
                aligned = f"__attribute__((aligned({self.plan.alignment_bytes})))"
                value = " = {0}" if define in self.plan.padded else ""
                self.text.put(f"{kind} {name}[{size_of(define)}] {aligned}{value};")

    def _place(self, address: UOp) -> tuple[str, str]:
        """Return (name of the memory, index) of an address."""
        name = self.names.get(address.param)
        if name is None:
            raise CompileError("render", f"{address.param!r} is used before its DEFINE")
        return name, self.values.text(address.src[1])[0]

    def _vector_at(self, address: UOp, dtype: DType, constant: str) -> str:
        name, index = self._place(address)
        kind = self.prelude.type(_in_memory(dtype))
        return f"*({constant}{kind} *)&{name}[{index}]"

    # loads

    def load(self, node: UOp) -> Expression:
        """Return the expression of a LOAD: 0 where its condition does not hold."""
        address, *condition = node.src
        if node.dtype.count > 1:
            return self._load_vector(node, address, _test_of(condition))
        name, index = self._place(address)
        text = f"{name}[{index}]"
        if node.dtype.is_bool:
            text = f"{text} != 0"
        if condition:
            test = paren(self.values.text(condition[0]), EITHER)
            return f"({test} ? {text} : 0)", ATOM
        return text, EQUAL if node.dtype.is_bool else ATOM

    def _load_vector(self, node: UOp, address: UOp, condition: Sequence[UOp]) -> Expression:
        dtype, place = node.dtype, address.param
        constant = "" if place in self._written or place.op is Ops.DEFINE else "const "
        if condition and condition[0].dtype.count > 1:
            mask = self._mask_of(condition[0], dtype)
            text = call(self.prelude.load_where(dtype), *self._place(address), mask)
        else:
            text = self._vector_at(address, dtype, constant), UNARY
            if condition:
                test = paren(self.values.text(condition[0]), EITHER)
                zero = f"({self.prelude.type(_in_memory(dtype))}){{0}}"
                text = f"({test} ? {text[0]} : {zero})", ATOM
        if not dtype.is_bool:
            return text
        self.values.mask_bits[node] = 8
        self.prelude.mask(8, dtype.count)
        return f"{text[0]} != 0", EQUAL

    def _mask_of(self, condition: UOp, dtype: DType) -> str:
        """Return a condition as a mask as wide as the elements in memory."""
        bits = 8 if dtype.is_bool else dtype.bits
        return self.values.mask(condition, bits, dtype.count)[0]

    # stores

    def store(self, node: UOp) -> None:
        """Write a STORE, which does nothing where its condition does not hold."""
        address, value, *condition = node.src
        if value.dtype.count > 1:
            self._store_vector(address, value, _test_of(condition))
            return
        name, index = self._place(address)
        test = self._if(condition)
        self.text.put(f"{test}{name}[{index}] = {self.values.text(value)[0]};")

    def _store_vector(self, address: UOp, value: UOp, condition: Sequence[UOp]) -> None:
        dtype, count = value.dtype, value.dtype.count
        if dtype.is_bool:
            kind = self.prelude.type(_in_memory(dtype))
            words = f"({kind}){paren(self.values.mask(value, 8, count), ATOM)} & 1"
        else:
            words = self.values.vector(value, count)[0]
        if condition and condition[0].dtype.count > 1:
            mask = self._mask_of(condition[0], dtype)
            name, place = self.prelude.store_where(dtype), self._place(address)
            self.text.put(f"{name}({', '.join(place)}, {mask}, {words});")
            return
        test = self._if(condition)
        self.text.put(f"{test}{self._vector_at(address, dtype, '')} = {words};")

    def _if(self, condition: Sequence[UOp]) -> str:
        """Return the `if` before a statement under one condition, "" without one."""
        return f"if ({self.values.text(condition[0])[0]}) " if condition else ""


def _test_of(condition: Sequence[UOp]) -> Sequence[UOp]:
    """Return the condition of a vector; where it is the same for all lanes, that of one."""
    return [c.src[0] if c.op is Ops.BROADCAST else c for c in condition]


def _in_memory(dtype: DType) -> DType:
    return dtypes.uint8.vec(dtype.count) if dtype.is_bool else dtype


# --------------------------------------------------------------------------------------------------
# Registers in C: variables, declared in the innermost loop around all of their uses.


class CRegisters:
    """Writes declarations and SETs."""

    def __init__(self, values: COperands, text: CodeWriter, linear: Sequence[UOp]):
        self.values, self.text, self.prelude = values, text, values.prelude
        self.names: dict[UOp, str] = {}
        self._declared: set[UOp] = set()
        self._parts: dict[str, set[UOp]] = {}  # an accumulator may take several registers
        for node in linear:
            if node.op is Ops.SET:
                self._parts.setdefault(node.src[0].name, set()).add(node.src[0])

    def begin(self, register: UOp, node: UOp) -> None:
        """Name a register; declare it unless `node`, the next one, is its first SET."""
        name, lane = register.name, register.first_lane
        if len(self._parts.get(name, ())) > 1:
            name = f"{name}_{lane}"
        self.names[register] = name = self.text.unique(name)
        if node.op is Ops.SET and node.src[0] is register:
            return
        self.text.put(f"{self._type(register)} {name};")
        self._declared.add(register)

    def _type(self, register: UOp) -> str:
        if register.dtype.is_bool and register.dtype.count > 1:
            return self.prelude.mask(8, register.dtype.count)
        return self.prelude.type(register.dtype)

    def set(self, node: UOp) -> None:
        """Write a SET: a declaration, an update such as `+=`, or an assignment."""
        register, value = node.src
        name, count = self.names[register], register.dtype.count
        if register not in self._declared:
            self._declared.add(register)
            kind, words = self._type(register), self._whole(value, count)
            zero = "{0}" if words == f"({kind}){{0}}" else words
            self.text.put(f"{kind} {name} = {zero};")
        elif (update := self._update(register, value)) is not None:
            self.text.put(f"{name} {update};")
        else:
            self.text.put(f"{name} = {self._whole(value, count)};")
        self.values.texts[register] = name, ATOM
        if register.dtype.is_bool and count > 1:
            self.values.mask_bits[register] = 8

    def _whole(self, value: UOp, count: int) -> str:
        if value.dtype.is_bool and count > 1:
            return self.values.mask(value, 8, count)[0]
        return self.values.vector(value, count)[0]

    def _update(self, register: UOp, value: UOp) -> str | None:
        """Return `+= ...` or `*= ...` where a value is the register combined with another one."""
        has_name = self.values.texts.get(value, ("", ATOM))[0].isidentifier()
        if has_name or value.dtype.is_bool:
            return None
        if value.op not in (Ops.ADD, Ops.MUL) or value.src[0] is not register:
            return None
        words = self.values.text(value.src[1])
        return f"*= {paren(words, MUL)}" if value.op is Ops.MUL else f"+= {words[0]}"


# --------------------------------------------------------------------------------------------------
# The C renderer.

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
