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

`args` holds a pointer per argument and then, if it is large, one to scratch memory; `lo` and
`hi` are the steps of the sliced loop that this launch does, `thread` is its step of the loop
over threads, where there is one.

The text needs a compiler that wraps signed integers (-fwrapv) and fuses `a * b + c` where the
machine can (-ffp-contract=fast), which is what the runtime asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from workbench.backends.render.c_comments import Follower
from workbench.backends.render.c_helpers import Prelude
from workbench.backends.render.c_plan import LEAVES, TRANSPARENT, Layout, lay_out
from workbench.backends.render.c_text import Text, identifier
from workbench.backends.render.c_values import (
    ATOM,
    EITHER,
    EQUAL,
    MUL,
    UNARY,
    Expression,
    Values,
    call,
    paren,
)
from workbench.backends.render.llvm_plan import (
    ALIGNMENT_BYTES,
    Plan,
    elements,
    memory,
    survey,
)
from workbench.backends.render.source import Source
from workbench.dtypes import DType, dtypes
from workbench.errors import CompileError
from workbench.ir.axis import AxisType
from workbench.ir.ops import Ops
from workbench.ir.uop import KernelInfo, UOp, leaves
from workbench.target import Target

_SHORT_INDEX = 40  # arithmetic this short is repeated; what is longer gets a name
_SHORT_VALUE = 72
_PARTS = {"sliced": ("lo", "hi"), "thread": ("thread", "thread + 1")}
"""What a launch does of the loops that it takes a part of."""
_UPDATES = {Ops.ADD: "+=", Ops.MUL: "*="}


def render(block: UOp, linear: tuple[UOp, ...], target: Target) -> Source:
    """Return the C of a linear program, with comments from the statement tree `block`.

    Errors: CompileError for a program that no machine could run (an op that lowering should
    have taken apart, a register read before it is set).
    """
    info: KernelInfo = linear[0].arg
    plan = survey(linear, target)
    name = identifier(info.name)
    writer = _Writer(name, plan, lay_out(linear), Follower(block), linear)
    writer.body(linear)
    prelude = writer.prelude.text()
    head = [*prelude.split("\n"), ""] if prelude else []
    head += _about(info, plan, block)
    thread = ", long thread" if plan.threads > 1 else ""
    head.append(f"void {name}(void **args, long lo, long hi{thread}) {{")
    foot = ["}", ""]
    return Source(
        name=name,
        language="C",
        text="\n".join([*head, *writer.text.lines, *foot]),
        params=_params(plan),
        scratch_bytes=0 if plan.on_stack else plan.scratch_bytes,
        extent=None if plan.sliced is None else plan.sliced.extent,
        threads=plan.threads,
        lines=((),) * len(head) + tuple(writer.text.positions) + ((),) * len(foot),
    )


def _about(info: KernelInfo, plan: Plan, block: UOp) -> list[str]:
    """Return the comment above the function: the arguments, and the axes without a loop."""
    title = " ".join(info.name.split()).replace("\\", "/")  # \ would join two lines
    lines = ["// " + title]
    for param in plan.params:
        slot, size = param.arg
        lines.append(f"//   p{slot}  {param.dtype.scalar.name}[{size}]")
    lanes = {r for r in leaves([block], Ops.RANGE) if r.axis_kind.is_lane}
    for axis in sorted(lanes, key=lambda r: r.axis_name):
        kind = axis.axis_kind.name.lower()
        lines.append(f"//   {axis.axis_name}  0..{axis.extent - 1} at once ({kind})")
    return lines


def _params(plan: Plan) -> tuple[tuple[DType, int], ...]:
    found = {int(p.arg[0]): (p.dtype.scalar, int(p.arg[1])) for p in plan.params}
    slots = max(found, default=-1) + 1
    return tuple(found.get(slot, (dtypes.void, 0)) for slot in range(slots))


class _Writer:
    """Writes one node after another."""

    def __init__(
        self,
        name: str,
        plan: Plan,
        layout: Layout,
        follower: Follower,
        linear: Sequence[UOp],
    ):
        self.plan, self.layout, self.follower = plan, layout, follower
        self.prelude = Prelude()
        self.values = Values(self.prelude)
        self.text = Text({name, "thread"})
        self.open: list[UOp] = []
        self.names: dict[UOp, str] = {}
        self._registers: dict[str, set[UOp]] = {}
        self._declared: set[UOp] = set()
        self._inline: dict[UOp, tuple[int, ...]] = {}  # what stands in a value's text
        self._statement_at = 0  # the line where the statement being written begins
        self._written = {memory(n.src[0]) for n in linear if n.op is Ops.STORE}
        self._extracted = {n.src[0] for n in linear if n.op is Ops.EXTRACT}
        for node in linear:
            if node.op is Ops.SET:
                name, _ = node.src[0].arg
                self._registers.setdefault(name, set()).add(node.src[0])

    def body(self, linear: Sequence[UOp]) -> None:
        """Write the whole program."""
        self._arguments()
        self._statement_at = len(self.text.lines)
        for position, node in enumerate(linear):
            self.text.at = ()
            for register in self.layout.begins.get(position, ()):
                self._begin(register, position, node)
            self._write(position, node)
        if self.open:
            raise CompileError(
                "render", f"the loop over {self._innermost} does not end"
            )

    # the frame

    def _arguments(self) -> None:
        for param in self.plan.params:
            slot = int(param.arg[0])
            self.names[param] = name = self.text.unique(f"p{slot}")
            constant = "" if param in self._written else "const "
            kind = self.prelude.element(param.dtype.scalar)
            self.text.put(f"{constant}{kind} *{name} = args[{slot}];")
        handed_in = bool(self.plan.scratch) and not self.plan.on_stack
        if handed_in:
            self.text.put(f"char *scratch = args[{len(_params(self.plan))}];")
        for define, offset in self.plan.scratch.items():
            self.names[define] = name = self.text.unique(define.arg.name)
            kind = self.prelude.element(define.dtype.scalar)
            if handed_in:
                self.text.put(f"{kind} *{name} = ({kind} *)(scratch + {offset});")
            else:
                aligned = f"__attribute__((aligned({ALIGNMENT_BYTES})))"
                self.text.put(f"{kind} {name}[{elements(define)}] {aligned};")

    # nodes

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
            self._set(node)
        elif op is Ops.STORE:
            self._store(node)
        elif op in TRANSPARENT:
            self._inline[node] = self.text.at
        elif op not in LEAVES and position not in self.layout.unused:
            self._value(position, node)

    def _written_with(self, position: int, node: UOp) -> tuple[int, ...]:
        """Return the positions of a node and of all that stands inside of its expression."""
        inside = [self._inline[s] for s in node.src if s in self._inline]
        return (
            tuple(dict.fromkeys([position, *chain(*inside)])) if inside else (position,)
        )

    def _value(self, position: int, node: UOp) -> None:
        """Keep a value as an expression where that is short and allowed, else name it."""
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

    def _stands_inline(self, position: int, node: UOp, words: str) -> bool:
        if node in self._extracted:
            return False
        if position in self.layout.anywhere and len(words) <= _SHORT_INDEX:
            return True
        return position in self.layout.once and len(words) <= _SHORT_VALUE

    def _stem(self, node: UOp) -> str:
        """Return what the name of a value begins with: what it is."""
        if node.op is Ops.LOAD:
            return f"{self.names[memory(node.src[0])]}_v"
        if node.dtype is dtypes.index:
            return "at"
        return "is" if node.dtype.is_bool else "v"

    def _expression(self, node: UOp) -> Expression:
        values, op = self.values, node.op
        if node.is_elementwise:
            return values.elementwise(node)
        if op is Ops.LOAD:
            return self._load(node)
        if op is Ops.STACK:
            return self._stack(node)
        if op is Ops.EXTRACT:
            test = " != 0" if node.dtype.is_bool else ""
            words = f"{paren(values.text(node.src[0]), ATOM)}[{node.arg}]{test}"
            return words, EQUAL if test else ATOM
        if op is Ops.SHUFFLE:
            a, b = (values.vector(s, node.dtype.count)[0] for s in node.src)
            return call("__builtin_shufflevector", a, b, *map(str, node.arg))
        if op is Ops.HREDUCE:
            return self._combined(node)
        raise CompileError("render", f"C has nothing for {op.name}")

    def _stack(self, node: UOp) -> Expression:
        parts = [self.values.text(s) for s in node.src]
        if not node.dtype.is_bool:
            kind = self.prelude.type(node.dtype)
            return f"({kind}){{{', '.join(p[0] for p in parts)}}}", ATOM
        self.values.mask_bits[node] = 8
        kind = self.prelude.mask(8, node.dtype.count)
        return f"({kind}){{{', '.join('-' + paren(p, UNARY) for p in parts)}}}", ATOM

    def _combined(self, node: UOp) -> Expression:
        whole = node.src[0]
        if node.dtype.is_bool:
            bits, count = self.values.mask_width(whole), whole.dtype.count
            name = self.prelude.combine_masks(node.arg, bits, count)
            return call(name, self.values.mask(whole, bits, count)[0])
        vector = self.values.vector(whole, whole.dtype.count)
        return call(self.prelude.combine(node.arg, whole.dtype), vector[0])

    # memory

    def _place(self, address: UOp) -> tuple[str, str]:
        """Return (name of the memory, index) of an address."""
        name = self.names.get(memory(address))
        if name is None:
            raise CompileError(
                "render", f"{memory(address)!r} is used before its DEFINE"
            )
        return name, self.values.text(address.src[1])[0]

    def _vector_at(self, address: UOp, dtype: DType, constant: str) -> str:
        name, index = self._place(address)
        memory_dtype = dtypes.uint8.vec(dtype.count) if dtype.is_bool else dtype
        return f"*({constant}{self.prelude.type(memory_dtype)} *)&{name}[{index}]"

    def _load(self, node: UOp) -> Expression:
        address, *condition = node.src
        if node.dtype.count > 1:
            return self._load_vector(node, address, condition)
        name, index = self._place(address)
        text = f"{name}[{index}]"
        if node.dtype.is_bool:
            text = f"{text} != 0"
        if condition:
            test = paren(self.values.text(condition[0]), EITHER)
            return f"({test} ? {text} : 0)", ATOM
        return text, EQUAL if node.dtype.is_bool else ATOM

    def _load_vector(
        self, node: UOp, address: UOp, condition: Sequence[UOp]
    ) -> Expression:
        dtype, place = node.dtype, memory(address)
        constant = "" if place in self._written or place.op is Ops.DEFINE else "const "
        if condition and condition[0].dtype.count > 1:
            bits = 8 if dtype.is_bool else dtype.bits
            mask = self.values.mask(condition[0], bits, dtype.count)[0]
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

    def _store(self, node: UOp) -> None:
        address, value, *condition = node.src
        count = value.dtype.count
        if count == 1:
            name, index = self._place(address)
            test = ""
            if condition:
                test = f"if ({self.values.text(condition[0])[0]}) "
            self.text.put(f"{test}{name}[{index}] = {self.values.text(value)[0]};")
        else:
            self._store_vector(address, value, condition)
        self._finish_statement(node)

    def _store_vector(self, address: UOp, value: UOp, condition: Sequence[UOp]) -> None:
        dtype, count = value.dtype, value.dtype.count
        if dtype.is_bool:
            kind = self.prelude.type(dtypes.uint8.vec(count))
            words = f"({kind}){paren(self.values.mask(value, 8, count), ATOM)} & 1"
        else:
            words = self.values.vector(value, count)[0]
        if not condition:
            self.text.put(f"{self._vector_at(address, dtype, '')} = {words};")
        elif condition[0].dtype.count > 1:
            bits = 8 if dtype.is_bool else dtype.bits
            mask = self.values.mask(condition[0], bits, count)[0]
            name = self.prelude.store_where(dtype)
            self.text.put(
                f"{name}({', '.join(self._place(address))}, {mask}, {words});"
            )
        else:
            test = self.values.text(condition[0])[0]
            self.text.put(
                f"if ({test}) {self._vector_at(address, dtype, '')} = {words};"
            )

    # registers

    def _begin(self, register: UOp, position: int, node: UOp) -> None:
        """Name a register; declare it unless the SET that comes now does."""
        name, lane = register.arg
        several = len(self._registers.get(name, ())) > 1
        self.names[register] = words = self.text.unique(
            f"{name}_{lane}" if several else name
        )
        if node.op is Ops.SET and node.src[0] is register:
            return
        self.text.put(f"{self._register_type(register)} {words};")
        self._declared.add(register)

    def _register_type(self, register: UOp) -> str:
        if register.dtype.is_bool and register.dtype.count > 1:
            return self.prelude.mask(8, register.dtype.count)
        return self.prelude.type(register.dtype)

    def _set(self, node: UOp) -> None:
        register, value = node.src
        name, count = self.names[register], register.dtype.count
        if register not in self._declared:
            self._declared.add(register)
            kind, words = self._register_type(register), self._whole(value, count)
            zero = "{0}" if words == f"({kind}){{0}}" else words
            self.text.put(f"{kind} {name} = {zero};")
        elif (update := self._update(register, value)) is not None:
            self.text.put(f"{name} {update};")
        else:
            self.text.put(f"{name} = {self._whole(value, count)};")
        self.values.texts[register] = name, ATOM
        if register.dtype.is_bool and count > 1:
            self.values.mask_bits[register] = 8
        self._finish_statement(node)

    def _whole(self, value: UOp, count: int) -> str:
        if value.dtype.is_bool and count > 1:
            return self.values.mask(value, 8, count)[0]
        return self.values.vector(value, count)[0]

    def _update(self, register: UOp, value: UOp) -> str | None:
        """Return `+= ...` or `*= ...` where a value is the register and something more."""
        named = self.values.texts.get(value, ("", ATOM))[0].isidentifier()
        if named or value.dtype.is_bool:
            return None
        if value.op is Ops.FMA and value.src[2] is register:
            return f"+= {self.values.product(value)[0]}"
        if value.op in _UPDATES and value.src[0] is register:
            other = value.src[1]
            words = self.values.text(other)
            if value.op is Ops.MUL:
                return f"*= {paren(words, MUL)}"
            return f"+= {words[0]}"
        return None

    # loops

    @property
    def _innermost(self) -> str:
        return self.names[self.open[-1]]

    def _loop(self, node: UOp) -> None:
        axis = node.src[0]
        if axis not in self.names:
            self.names[axis] = self.text.unique(axis.axis_name)
        name = self.names[axis]
        first, last = _PARTS.get(node.arg, ("0", str(axis.extent)))
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

    # comments

    def _finish_statement(self, node: UOp) -> None:
        """A SET or STORE is written: if that completes a statement of the tree which took
        several lines, or a vector, say above it what it is."""
        leaf = self.follower.write(node)
        if leaf is None:
            return
        at, self._statement_at = self._statement_at, len(self.text.lines)
        if (
            leaf.src[1].is_const
            or len(self.text.lines) - at < 2
            and not _has_lanes(leaf)
        ):
            return
        self.text.comment(self.follower.comment(leaf), at)
        self._statement_at = len(self.text.lines)


def _has_lanes(leaf: UOp) -> bool:
    return any(
        r.axis_kind in (AxisType.UPCAST, AxisType.UNROLL) for r in leaf.src[1].ranges
    )


def _in_memory(dtype: DType) -> DType:
    return dtypes.uint8.vec(dtype.count) if dtype.is_bool else dtype
