"""Linear program -> LLVM IR text that reads like the loops it came from.

One block per loop, tested at its end (a loop runs at least once), so that whatever was
computed further up is at hand further down. Registers become phis. Values are named after
what they are: `%g0` an axis, `%acc_s_0` an accumulator, `%p1_at3` an address in argument 1
and `%p1_v3` a value loaded from there.

    void name(ptr args, i64 lo, i64 hi, i64 thread)

`args` holds a pointer per argument and then, if it is large, one to scratch memory; `lo` and
`hi` are the steps of the sliced loop that this launch does, `thread` is its step of the loop
over threads, where there is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from workbench.backends.render.llvm_lanes import (
    broadcast,
    combine_lanes,
    extract,
    shuffle,
    stack,
)
from workbench.backends.render.llvm_plan import (
    ALIGNMENT_BYTES,
    Plan,
    divisor,
    element_type,
    elements,
    memory,
    split_offset,
    survey,
)
from workbench.backends.render.llvm_text import Text, global_name
from workbench.backends.render.llvm_values import (
    SUPPORTED,
    constant,
    elementwise,
    lanes,
    memory_type,
    suffix,
    type_of,
)
from workbench.backends.render.source import Source
from workbench.dtypes import DType, dtypes
from workbench.errors import CompileError
from workbench.ir.ops import Ops
from workbench.ir.uop import KernelInfo, UOp
from workbench.target import Target

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

    Errors: CompileError for a program that no machine could run (an op that lowering should
    have taken apart, a register read before it is set).
    """
    info: KernelInfo = linear[0].arg
    plan = survey(linear, target)
    writer = _Writer(plan)
    writer.prologue()
    for position, node in enumerate(linear):
        writer.write(position, node)
    writer.finish()
    head, foot = _frame(info.name, plan)
    return Source(
        name=info.name,
        language="LLVM IR",
        text="\n".join([*head, *writer.text.lines, *foot]),
        params=_params(plan),
        scratch_bytes=0 if plan.on_stack else plan.scratch_bytes,
        extent=None if plan.sliced is None else plan.sliced.extent,
        threads=plan.threads,
        lines=((),) * len(head) + tuple(writer.text.positions) + ((),) * len(foot),
    )


def _frame(name: str, plan: Plan) -> tuple[list[str], list[str]]:
    """Return the lines before and after those of the function's body."""
    about = ["; " + " ".join(name.split())]
    for param in plan.params:
        slot, size = param.arg
        about.append(f";   p{slot}  {param.dtype.scalar.name}[{size}]")
    if plan.zero_bytes:
        zeros = f"[{plan.zero_bytes} x i8] zeroinitializer, align {ALIGNMENT_BYTES}"
        about.append(f"@zeros = private constant {zeros}")
    thread = ", i64 %thread" if plan.threads > 1 else ""
    taken = f"ptr %args, i64 %lo, i64 %hi{thread}"
    define = f"define void {global_name(name)}({taken}) #0 {{"
    attributes = 'attributes #0 = { nounwind "no-stack-arg-probe" }'
    return [*about, define], ["}", attributes, ""]


def _params(plan: Plan) -> tuple[tuple[DType, int], ...]:
    found = {int(p.arg[0]): (p.dtype.scalar, int(p.arg[1])) for p in plan.params}
    slots = max(found, default=-1) + 1
    return tuple(found.get(slot, (dtypes.void, 0)) for slot in range(slots))


@dataclass(slots=True)
class _Loop:
    """A loop that is open: where its header goes, and what the header will need."""

    range: UOp
    first: str
    last: str
    name: str
    label: str
    came_from: str
    phis: list[tuple[UOp, str, str]]
    at: int
    position: int


class _Writer:
    """Writes one node after another; `values` has the name of what each node stands for now."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.text = Text(
            {"args", "lo", "hi", "thread", "entry", "begin", "done", "some"}
        )
        self.loops: list[_Loop] = []
        self.values: dict[UOp, str] = {}
        self.bases: dict[tuple[str, str], str] = {}
        self.set_at: dict[UOp, int] = {}

    # the frame

    def prologue(self) -> None:
        """Fetch the arguments, set up scratch memory, and leave if there is nothing to do."""
        self.text.begin("entry")
        for param in self.plan.params:
            slot = int(param.arg[0])
            self.values[param] = self._argument(f"p{slot}", slot)
        self._scratch()
        if self.plan.sliced is not None:
            self.text.put("%some = icmp slt i64 %lo, %hi")
            self.text.put("br i1 %some, label %begin, label %done")
            self.text.begin("begin")

    def _argument(self, name: str, slot: int) -> str:
        name = self.text.unique(name)
        where = "%args"
        if slot:
            where = self.text.emit(
                f"getelementptr ptr, ptr %args, i64 {slot}", f"{name}.slot"
            )
        return self.text.emit(f"load ptr, ptr {where}, align 8", name)

    def _scratch(self) -> None:
        if not self.plan.scratch:
            return
        base = ""
        if not self.plan.on_stack:
            base = self._argument("scratch", len(_params(self.plan)))
        for define, offset in self.plan.scratch.items():
            name = self.text.unique(define.arg.name)
            kind = f"[{elements(define)} x {memory_type(define.dtype.scalar)}]"
            place = f"getelementptr i8, ptr {base}, i64 {offset}"
            on_stack = f"alloca {kind}, align {ALIGNMENT_BYTES}"
            self.values[define] = self.text.emit(place if base else on_stack, name)

    # nodes

    def write(self, position: int, node: UOp) -> None:
        """Write one node of the program."""
        op = node.op
        self.text.at = (position,)
        if op is Ops.BLOCK and position:
            raise CompileError("render", "BLOCK is not the first node of the program")
        if op is Ops.LOOP:
            self._open(position, node)
        elif op is Ops.ENDLOOP:
            self._close(node)
        elif op is Ops.SET:
            self.values[node.src[0]] = self.operand(node.src[1], node.src[0].dtype)
            self.set_at[node.src[0]] = position
        elif op is Ops.STORE:
            self._store(node)
        elif op is Ops.INDEX:
            self.values[node] = self._address(node)
        elif op not in _NEVER_WRITTEN and node not in self.plan.folded:
            self.values[node] = self._value(node)

    def finish(self) -> None:
        """End the function."""
        self.text.at = ()
        if self.plan.sliced is not None:
            self.text.put("br label %done")
            self.text.begin("done")
        self.text.put("ret void")

    def operand(self, node: UOp, like: DType | None = None) -> str:
        """Return the text that stands for a node's value; a constant may widen to `like`."""
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

    def _value(self, node: UOp) -> str:
        step = self.text.step
        if node.op in SUPPORTED:
            return self._named(node, elementwise(node, self._arguments(node), step))
        if node.op is Ops.LOAD:
            return self._load(node)
        if node.op is Ops.BROADCAST and node.src[0].is_const:
            return constant(node.src[0].arg, node.dtype)
        args = [self.operand(s) for s in node.src]
        if node.op is Ops.BROADCAST:
            return self._named(node, broadcast(args[0], node.dtype, step))
        if node.op is Ops.STACK:
            return self._named(node, stack(args, node.dtype, step))
        if node.op is Ops.EXTRACT:
            return self._named(node, extract(args[0], node.src[0].dtype, node.arg))
        if node.op is Ops.SHUFFLE:
            return self._named(node, shuffle(args, node.dtype, node.arg))
        if node.op is Ops.HREDUCE:
            whole = node.src[0].dtype
            return self._named(node, combine_lanes(node.arg, args[0], whole, step))
        raise CompileError(
            "render",
            f"LLVM has no instruction for {node.op.name}",
            hint="a rule of lowering should have taken it apart",
        )

    def _arguments(self, node: UOp) -> list[str]:
        wide = max((s.dtype for s in node.src), key=lambda dtype: dtype.count)
        if node.op is Ops.WHERE:
            condition, *values = node.src
            return [self.operand(condition), *(self.operand(v, wide) for v in values)]
        return [self.operand(s, wide) for s in node.src]

    def _named(self, node: UOp, instruction: str) -> str:
        """Write an instruction under a name that says what its result is."""
        register = self.plan.names.get(node)
        if register is not None:
            return self.text.emit(instruction, self.text.unique(_register(register)))
        if node.op is Ops.LOAD:
            return self.text.emit(
                instruction, self.text.numbered(f"{self._memory_name(node)}_v")
            )
        if node.dtype is dtypes.index:
            return self.text.emit(instruction, self.text.numbered("idx"))
        return self.text.emit(instruction, self.text.numbered(node.op.name.lower()))

    def _memory_name(self, node: UOp) -> str:
        return self.values[memory(node.src[0])].removeprefix("%")

    # memory

    def _address(self, node: UOp) -> str:
        """Return a pointer; the constant part of the index is an offset of its own, so that
        neighbouring addresses share what varies and differ in what an instruction encodes."""
        place, (rest, offset) = memory(node), split_offset(node.src[1])
        kind, name = memory_type(place.dtype.scalar), self.values[place]
        low, high, size = int(rest.vmin), int(rest.vmax), elements(place)
        is_inside = low >= 0 and high <= size
        pointer = self._base(name, kind, rest, _gep(is_inside))
        if not offset:
            return pointer
        step = _gep(is_inside and low + offset >= 0 and high + offset <= size)
        text = f"{step} {kind}, ptr {pointer}, i64 {offset}"
        return self.text.emit(text, self.text.numbered(f"{name[1:]}_at"))

    def _base(self, name: str, kind: str, index: UOp, step: str) -> str:
        if index.op is Ops.CONST and not index.arg:
            return name
        text = self.operand(index)
        if (name, text) not in self.bases:
            address = f"{step} {kind}, ptr {name}, i64 {text}"
            self.bases[name, text] = self.text.emit(
                address, self.text.numbered(f"{name[1:]}_at")
            )
        return self.bases[name, text]

    def _load(self, node: UOp) -> str:
        address, *condition = node.src
        pointer, dtype = self.operand(address), node.dtype
        kind, align = memory_type(dtype), _alignment(address)
        if not condition:
            text = f"load {kind}, ptr {pointer}, align {align}"
        elif condition[0].dtype.count > 1:
            mask = f"{type_of(condition[0].dtype)} {self.operand(condition[0])}"
            over = suffix(dtypes.uint8.vec(dtype.count) if dtype.is_bool else dtype)
            text = (
                f"call {kind} @llvm.masked.load.{over}.p0"
                f"(ptr align {align} {pointer}, {mask}, {kind} zeroinitializer)"
            )
        else:
            test = self.operand(condition[0])
            safe = self.text.step(f"select i1 {test}, ptr {pointer}, ptr @zeros")
            text = f"load {kind}, ptr {safe}, align {align}"
        if not dtype.is_bool:
            return self._named(node, text)
        byte = self.text.step(text)
        zero = constant(0, dtypes.uint8.vec(dtype.count))
        return self._named(node, f"icmp ne {kind} {byte}, {zero}")

    def _store(self, node: UOp) -> None:
        address, value, *condition = node.src
        kind, text = memory_type(value.dtype), self.operand(value)
        if value.dtype.is_bool:
            text = self.text.step(f"zext {type_of(value.dtype)} {text} to {kind}")
        pointer = self.operand(address)
        if condition:
            self._masked_store(kind, text, value.dtype, address, condition[0])
            return
        self.text.put(
            f"store {kind} {text}, ptr {pointer}, align {_alignment(address)}"
        )

    def _masked_store(
        self, kind: str, text: str, dtype: DType, address: UOp, condition: UOp
    ) -> None:
        """Store where the condition holds: at once where all of it does, which is nearly always;
        lane by lane at an edge, where the machine is slow."""
        pointer, test = self.operand(address), self.operand(condition)
        place = f"ptr {pointer}, align {_alignment(address)}"
        whole = self.text.unique("whole")
        after = self.text.unique("stored")
        if dtype.count == 1:
            self.text.put(f"br i1 {test}, label %{whole}, label %{after}")
        else:
            edge = self.text.unique("edge")
            mask = type_of(condition.dtype)
            every = f"call i1 @llvm.vector.reduce.and.v{dtype.count}i1({mask} {test})"
            full = self.text.step(every)
            self.text.put(f"br i1 {full}, label %{whole}, label %{edge}")
            self.text.begin(edge)
            over = f"v{dtype.count}{suffix(dtypes.uint8 if dtype.is_bool else dtype.scalar)}"
            at = f"ptr align {_alignment(address)} {pointer}"
            self.text.put(
                f"call void @llvm.masked.store.{over}.p0({kind} {text}, {at}, {mask} {test})"
            )
            self.text.put(f"br label %{after}")
        self.text.begin(whole)
        self.text.put(f"store {kind} {text}, {place}")
        self.text.put(f"br label %{after}")
        self.text.begin(after)

    # loops

    def _open(self, position: int, node: UOp) -> None:
        axis = node.src[0]
        name = self.text.unique(axis.axis_name)
        label = self.text.unique(f"for_{name}")
        phis = []
        for register in self.plan.carried[position]:
            before = self.operand(register)
            phi = self.text.unique(_register(register))
            phis.append((register, phi, before))
            self.values[register] = "%" + phi
        self.text.at = ()
        bounds = self._bounds(node)
        self.text.put(f"br label %{label}")
        self.text.blank()
        block, at = self.text.block, len(self.text.lines)
        self.loops.append(_Loop(axis, *bounds, name, label, block, phis, at, position))
        self.values[axis] = "%" + name
        self.text.depth, self.text.block = len(self.loops), label

    def _bounds(self, node: UOp) -> tuple[str, str]:
        """Return (first, last) of a loop: what this launch does of it."""
        if node.arg == "thread":
            return "%thread", self.text.emit("add nuw nsw i64 %thread, 1", "upto")
        if node.arg == "sliced":
            return "%lo", "%hi"
        return "0", str(node.src[0].extent)

    def _close(self, node: UOp) -> None:
        loop = self.loops[-1]
        if loop.range is not node.src[0]:
            raise CompileError(
                "render", f"the loop over {loop.name} is not the one that ends"
            )
        name = loop.name
        self.text.put(f"%{name}.next = add nuw nsw i64 %{name}, 1")
        self.text.put(f"%{name}.more = icmp slt i64 %{name}.next, {loop.last}")
        after = self.text.unique(f"end_{name}")
        self.text.put(f"br i1 %{name}.more, label %{loop.label}, label %{after}")
        self.text.insert(loop.at, self._header(loop))
        self.loops.pop()
        self.text.depth = len(self.loops)
        self.text.begin(after)

    def _header(self, loop: _Loop) -> list[tuple[str, tuple[int, ...]]]:
        """Return the lines that begin a loop, each with the positions of what it is code of."""
        inner = "  " * len(self.loops)
        steps = f"{loop.first}..{loop.last}".replace("%", "")
        counter = (
            f"{inner}  %{loop.name} = phi i64 [ {loop.first}, %{loop.came_from} ],"
            f" [ %{loop.name}.next, %{self.text.block} ]"
        )
        lines: list[tuple[str, tuple[int, ...]]] = [
            (
                f"{inner}; for {loop.name} in {steps}  ({loop.range.axis_kind.name.lower()})",
                (),
            ),
            (f"{inner}{loop.label}:", ()),
            (counter, (loop.position,)),
        ]
        for register, phi, before in loop.phis:
            after = self.operand(register)
            carried = (
                f"{inner}  %{phi} = phi {type_of(register.dtype)}"
                f" [ {before}, %{loop.came_from} ], [ {after}, %{self.text.block} ]"
            )
            lines.append((carried, (loop.position, self.set_at[register])))
        return lines


def _register(register: UOp) -> str:
    name, lane = register.arg
    return f"{name}_{lane}"


def _gep(is_inside: bool) -> str:
    """Return the instruction for an address. Its "inbounds" is a promise, and an address under
    a condition may well lie outside of its buffer."""
    return "getelementptr inbounds" if is_inside else "getelementptr"


def _alignment(address: UOp) -> int:
    """Return the bytes an address is a multiple of: scratch is aligned, arguments need not be."""
    itemsize = element_type(address).itemsize
    if memory(address).op is Ops.PARAM:
        return itemsize
    return max(itemsize, math.gcd(ALIGNMENT_BYTES, divisor(address.src[1]) * itemsize))
