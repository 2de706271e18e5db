"""Linear program -> LLVM IR text that reads like the loops it came from.

One block per loop, tested at its end (a loop runs at least once), so that whatever was
computed further up is at hand further down. Registers become phis. Values are named after
what they are: `%g0` an axis, `%acc_s_0` an accumulator, `%p1_at3` an address in argument 1
and `%p1_v3` a value loaded from there.

    void name(ptr args, i64 lo, i64 hi)

`args` holds a pointer per argument and then, if it is large, one to scratch memory; `lo` and
`hi` are the steps of the sliced loop that this launch does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

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
from workbench.backends.render.llvm_values import (
    SUPPORTED,
    combine,
    constant,
    elementwise,
    lanes,
    memory_type,
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
    return Source(
        name=info.name,
        language="LLVM IR",
        text=_module(info.name, plan, writer.lines),
        params=_params(plan),
        scratch_bytes=0 if plan.on_stack else plan.scratch_bytes,
        extent=None if plan.sliced is None else plan.sliced.extent,
    )


def _module(name: str, plan: Plan, lines: Sequence[str]) -> str:
    about = ["; " + " ".join(name.split())]
    for param in plan.params:
        slot, size = param.arg
        about.append(f";   p{slot}  {param.dtype.scalar.name}[{size}]")
    quoted = name if re.fullmatch(r"[A-Za-z_.$][\w.$]*", name) else _quote(name)
    zeros = (
        f"@zeros = private constant [{plan.zero_bytes} x i8] zeroinitializer,"
        f" align {ALIGNMENT_BYTES}"
    )
    return "\n".join(
        [
            *about,
            *([zeros] if plan.zero_bytes else []),
            f"define void @{quoted}(ptr %args, i64 %lo, i64 %hi) #0 {{",
            *lines,
            "}",
            'attributes #0 = { nounwind "no-stack-arg-probe" }',
            "",
        ]
    )


def _quote(name: str) -> str:
    plain = [
        c if c.isascii() and c.isprintable() and c not in '"\\' else None for c in name
    ]
    hexed = ["".join(f"\\{b:02X}" for b in c.encode()) for c in name]
    return '"' + "".join(p or h for p, h in zip(plain, hexed, strict=True)) + '"'


def _params(plan: Plan) -> tuple[tuple[DType, int], ...]:
    found = {int(p.arg[0]): (p.dtype.scalar, int(p.arg[1])) for p in plan.params}
    slots = max(found, default=-1) + 1
    return tuple(found.get(slot, (dtypes.void, 0)) for slot in range(slots))


@dataclass(slots=True)
class _Loop:
    """A loop that is open: where its header goes, and what the header will need."""

    range: UOp
    at: int
    name: str
    label: str
    came_from: str
    phis: list[tuple[UOp, str, str]]


class _Writer:
    """Writes one node after another; `lines` is the body of the function."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.lines: list[str] = []
        self.block = "entry"
        self.loops: list[_Loop] = []
        self.values: dict[UOp, str] = {}
        self.bases: dict[tuple[str, str], str] = {}
        self.counts: dict[str, int] = {}
        self.taken: set[str] = {"args", "lo", "hi", "entry", "begin", "done", "some"}

    # names and lines

    def put(self, text: str) -> None:
        self.lines.append("  " * (len(self.loops) + 1) + text)

    def label(self, name: str) -> None:
        self.lines.append("  " * len(self.loops) + name + ":")
        self.block = name

    def emit(self, instruction: str, name: str) -> str:
        self.put(f"%{name} = {instruction}")
        return "%" + name

    def unique(self, name: str) -> str:
        """Return `name`, with a number behind it from its second use on."""
        name = re.sub(r"[^\w.]", "_", name)
        found, number = name, 1
        while found in self.taken:
            number += 1
            found = f"{name}.{number}"
        self.taken.add(found)
        return found

    def numbered(self, name: str) -> str:
        """Return `name0`, `name1`, ... in turn."""
        number = self.counts.get(name, 0)
        self.counts[name] = number + 1
        return self.unique(f"{name}{number}")

    def helper(self, instruction: str) -> str:
        """Write an instruction whose result is a step on the way."""
        return self.emit(instruction, self.numbered("t"))

    # the frame

    def prologue(self) -> None:
        """Fetch the arguments, set up scratch memory, and leave if there is nothing to do."""
        self.lines.append("entry:")
        for param in self.plan.params:
            slot = int(param.arg[0])
            self.values[param] = self._argument(f"p{slot}", slot)
        self._scratch()
        if self.plan.sliced is not None:
            self.put("%some = icmp slt i64 %lo, %hi")
            self.put("br i1 %some, label %begin, label %done")
            self.label("begin")

    def _argument(self, name: str, slot: int) -> str:
        name = self.unique(name)
        where = "%args"
        if slot:
            where = self.emit(
                f"getelementptr ptr, ptr %args, i64 {slot}", f"{name}.slot"
            )
        return self.emit(f"load ptr, ptr {where}, align 8", name)

    def _scratch(self) -> None:
        if not self.plan.scratch:
            return
        base = (
            ""
            if self.plan.on_stack
            else self._argument("scratch", len(_params(self.plan)))
        )
        for define, offset in self.plan.scratch.items():
            name = self.unique(define.arg.name)
            kind = f"[{elements(define)} x {memory_type(define.dtype.scalar)}]"
            place = f"getelementptr i8, ptr {base}, i64 {offset}"
            on_stack = f"alloca {kind}, align {ALIGNMENT_BYTES}"
            self.values[define] = self.emit(place if base else on_stack, name)

    # nodes

    def write(self, position: int, node: UOp) -> None:
        """Write one node of the program."""
        op = node.op
        if op is Ops.BLOCK and position:
            raise CompileError("render", "BLOCK is not the first node of the program")
        if op is Ops.LOOP:
            self._open(position, node)
        elif op is Ops.ENDLOOP:
            self._close(node)
        elif op is Ops.SET:
            self.values[node.src[0]] = self.operand(node.src[1], node.src[0].dtype)
        elif op is Ops.STORE:
            self._store(node)
        elif op is Ops.INDEX:
            self.values[node] = self._address(node)
        elif op not in _NEVER_WRITTEN and node not in self.plan.folded:
            self.values[node] = self._value(node)

    def finish(self) -> None:
        """End the function."""
        if self.plan.sliced is not None:
            self.put("br label %done")
            self.label("done")
        self.put("ret void")

    def operand(self, node: UOp, like: DType | None = None) -> str:
        """Return the text that stands for a node's value; a constant may widen to `like`."""
        dtype = (
            node.dtype
            if like is None or like.count == 1
            else node.dtype.vec(like.count)
        )
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
        if node.op in SUPPORTED:
            wide = max((s.dtype for s in node.src), key=lambda d: d.count)
            args = [self._argument_of(node, n, wide) for n in range(len(node.src))]
            return self._named(node, elementwise(node, args, self.helper))
        if node.op is Ops.LOAD:
            return self._load(node)
        if node.op is Ops.BROADCAST:
            return self._broadcast(node)
        if node.op is Ops.STACK:
            return self._stack(node)
        if node.op is Ops.EXTRACT:
            source = node.src[0]
            taken = f"extractelement {type_of(source.dtype)} {self.operand(source)}"
            return self._named(node, f"{taken}, i64 {node.arg}")
        if node.op is Ops.HREDUCE:
            return self._combine_lanes(node)
        raise CompileError(
            "render",
            f"LLVM has no instruction for {node.op.name}",
            hint="a rule of lowering should have taken it apart",
        )

    def _argument_of(self, node: UOp, number: int, wide: DType) -> str:
        source = node.src[number]
        is_condition = node.op is Ops.WHERE and number == 0
        return self.operand(source, None if is_condition else wide)

    def _named(self, node: UOp, instruction: str) -> str:
        """Write an instruction under a name that says what its result is."""
        register = self.plan.names.get(node)
        if register is not None:
            return self.emit(instruction, self.unique(_register(register)))
        if node.op is Ops.LOAD:
            return self.emit(instruction, self.numbered(f"{self._memory_name(node)}_v"))
        if node.dtype is dtypes.index:
            return self.emit(instruction, self.numbered("idx"))
        return self.emit(instruction, self.numbered(node.op.name.lower()))

    def _memory_name(self, node: UOp) -> str:
        return self.values[memory(node.src[0])].removeprefix("%")

    # lanes

    def _broadcast(self, node: UOp) -> str:
        source, dtype = node.src[0], node.dtype
        if source.op is Ops.CONST:
            return constant(source.arg, dtype)
        kind = type_of(dtype)
        scalar = f"{type_of(source.dtype)} {self.operand(source)}"
        first = self.helper(f"insertelement {kind} poison, {scalar}, i64 0")
        zeros = f"<{dtype.count} x i32> zeroinitializer"
        return self._named(
            node, f"shufflevector {kind} {first}, {kind} poison, {zeros}"
        )

    def _stack(self, node: UOp) -> str:
        if all(s.op is Ops.CONST for s in node.src):
            return lanes([s.arg for s in node.src], node.dtype)
        kind, vector = type_of(node.dtype), "poison"
        for lane, source in enumerate(node.src):
            scalar = f"{type_of(source.dtype)} {self.operand(source)}"
            step = f"insertelement {kind} {vector}, {scalar}, i64 {lane}"
            last = lane == len(node.src) - 1
            vector = self._named(node, step) if last else self.helper(step)
        return vector

    def _combine_lanes(self, node: UOp) -> str:
        """Halve a vector until one lane is left; an odd lane waits for the end."""
        dtype, vector = node.src[0].dtype, self.operand(node.src[0])
        odd: list[str] = []
        while dtype.count > 1:
            kind, half = type_of(dtype), dtype.vec(dtype.count // 2)
            if dtype.count % 2:
                odd.append(
                    self.helper(
                        f"extractelement {kind} {vector}, i64 {dtype.count - 1}"
                    )
                )
            parts = [self._part(vector, dtype, half, n) for n in (0, 1)]
            vector, dtype = (
                self.helper(combine(node.arg, half, parts, self.helper)),
                half,
            )
        for lane in odd:
            vector = self.helper(combine(node.arg, dtype, (vector, lane), self.helper))
        return vector

    def _part(self, vector: str, dtype: DType, half: DType, number: int) -> str:
        kind, first = type_of(dtype), number * half.count
        if half.count == 1:
            return self.helper(f"extractelement {kind} {vector}, i64 {first}")
        picks = ", ".join(f"i32 {first + lane}" for lane in range(half.count))
        mask = f"<{half.count} x i32> <{picks}>"
        return self.helper(f"shufflevector {kind} {vector}, {kind} poison, {mask}")

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
        return self.emit(text, self.numbered(f"{name[1:]}_at"))

    def _base(self, name: str, kind: str, index: UOp, step: str) -> str:
        if index.op is Ops.CONST and not index.arg:
            return name
        text = self.operand(index)
        if (name, text) not in self.bases:
            address = f"{step} {kind}, ptr {name}, i64 {text}"
            self.bases[name, text] = self.emit(address, self.numbered(f"{name[1:]}_at"))
        return self.bases[name, text]

    def _load(self, node: UOp) -> str:
        address, *condition = node.src
        pointer, dtype = self.operand(address), node.dtype
        kind, align = memory_type(dtype), _alignment(address)
        if not condition:
            text = f"load {kind}, ptr {pointer}, align {align}"
        elif condition[0].dtype.count > 1:
            mask = f"{type_of(condition[0].dtype)} {self.operand(condition[0])}"
            text = (
                f"call {kind} @llvm.masked.load.v{dtype.count}{_element(dtype)}.p0"
                f"(ptr align {align} {pointer}, {mask}, {kind} zeroinitializer)"
            )
        else:
            test = self.operand(condition[0])
            safe = self.helper(f"select i1 {test}, ptr {pointer}, ptr @zeros")
            text = f"load {kind}, ptr {safe}, align {align}"
        if not dtype.is_bool:
            return self._named(node, text)
        byte = self.helper(text)
        zero = constant(0, dtypes.uint8.vec(dtype.count))
        return self._named(node, f"icmp ne {kind} {byte}, {zero}")

    def _store(self, node: UOp) -> None:
        address, value = node.src
        kind, text = memory_type(value.dtype), self.operand(value)
        if value.dtype.is_bool:
            text = self.helper(f"zext {type_of(value.dtype)} {text} to {kind}")
        pointer = self.operand(address)
        self.put(f"store {kind} {text}, ptr {pointer}, align {_alignment(address)}")

    # loops

    def _open(self, position: int, node: UOp) -> None:
        axis = node.src[0]
        name = self.unique(axis.axis_name)
        label = self.unique(f"for_{name}")
        phis = []
        for register in self.plan.carried[position]:
            before = self.operand(register)
            phi = self.unique(_register(register))
            phis.append((register, phi, before))
            self.values[register] = "%" + phi
        self.put(f"br label %{label}")
        self.lines.append("")
        self.loops.append(_Loop(axis, len(self.lines), name, label, self.block, phis))
        self.values[axis] = "%" + name
        self.block = label

    def _close(self, node: UOp) -> None:
        loop = self.loops[-1]
        if loop.range is not node.src[0]:
            raise CompileError(
                "render", f"the loop over {loop.name} is not the one that ends"
            )
        axis, name = loop.range, loop.name
        is_sliced = axis is self.plan.sliced
        first, last = ("%lo", "%hi") if is_sliced else ("0", str(axis.extent))
        self.put(f"%{name}.next = add nuw nsw i64 %{name}, 1")
        self.put(f"%{name}.more = icmp slt i64 %{name}.next, {last}")
        after = self.unique(f"end_{name}")
        self.put(f"br i1 %{name}.more, label %{loop.label}, label %{after}")
        self.lines[loop.at : loop.at] = self._header(loop, first, last)
        self.loops.pop()
        self.label(after)

    def _header(self, loop: _Loop, first: str, last: str) -> list[str]:
        inner = "  " * len(self.loops)
        kind = loop.range.axis_kind.name.lower()
        lines = [
            f"{inner}; for {loop.name} in {first.lstrip('%')}..{last.lstrip('%')}  ({kind})",
            f"{inner}{loop.label}:",
            f"{inner}  %{loop.name} = phi i64 [ {first}, %{loop.came_from} ],"
            f" [ %{loop.name}.next, %{self.block} ]",
        ]
        for register, phi, before in loop.phis:
            after = self.operand(register)
            lines.append(
                f"{inner}  %{phi} = phi {type_of(register.dtype)}"
                f" [ {before}, %{loop.came_from} ], [ {after}, %{self.block} ]"
            )
        return lines


def _register(register: UOp) -> str:
    name, lane = register.arg
    return f"acc_{name}_{lane}"


def _gep(is_inside: bool) -> str:
    """ "inbounds" is a promise: an address under a condition may lie outside of its buffer."""
    return "getelementptr inbounds" if is_inside else "getelementptr"


def _element(dtype: DType) -> str:
    if dtype.is_bool:
        return "i8"
    return f"{'f' if dtype.is_float else 'i'}{dtype.bits}"


def _alignment(address: UOp) -> int:
    """Return the bytes an address is a multiple of: scratch is aligned, arguments need not be."""
    itemsize = element_type(address).itemsize
    if memory(address).op is Ops.PARAM:
        return itemsize
    return max(itemsize, math.gcd(ALIGNMENT_BYTES, divisor(address.src[1]) * itemsize))
