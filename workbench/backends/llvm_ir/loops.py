"""Loops, IFs, the arguments of a kernel, and debug locations in LLVM IR.

Sections: Loops in LLVM; IFs in LLVM; The arguments of a kernel on this processor; LLVM IR with a
debug location on each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from workbench.backends.llvm_ir.instructions import Operands, memory_type, register_name, type_of
from workbench.backends.llvm_ir.memory import LLVMMemory
from workbench.backends.llvm_ir.ssa import LLVMWriter
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# Loops in LLVM: each begins a block, is tested at its end, and has a phi per loop-carried register.
#
# A phi names the register's value at the end of the loop. So the header of a loop is written when
# the loop is closed, and inserted where it began.


@dataclass(slots=True)
class _Loop:
    """An open loop: the position of its LOOP, the line of its header (`at`), and its parts."""

    range: UOp
    first: str
    stop: str
    name: str
    label: str
    came_from: str
    phis: list[tuple[UOp, str, str]]
    at: int
    position: int


class Loops:
    """The writer of a kernel's loops. `set_at` has the position of each register's last SET. With
    `runs_whole`, a launch runs all steps of each loop."""

    def __init__(self, operands: Operands, text: LLVMWriter):
        self.operands, self.text = operands, text
        self.runs_whole = False
        self.stack: list[_Loop] = []
        self.set_at: dict[UOp, int] = {}

    def open(self, position: int, node: UOp) -> None:
        """Begin the loop of the LOOP at `position`."""
        axis = node.src[0]
        name = self.text.unique(axis.axis_name)
        label = self.text.unique(f"for_{name}")
        phis = []
        for register in self.operands.ssa.loop_carried[position]:
            before = self.operands.before(register)
            phi = self.text.unique(register_name(register))
            phis.append((register, phi, before))
            self.operands.values[register] = "%" + phi
        self.text.at = ()
        bounds = self._bounds(node)
        self.text.put(f"br label %{label}")
        self.text.blank()
        block, at = self.text.block, len(self.text.lines)
        self.stack.append(_Loop(axis, *bounds, name, label, block, phis, at, position))
        self.operands.values[axis] = "%" + name
        self.text.depth, self.text.block = len(self.stack), label

    def _bounds(self, node: UOp) -> tuple[str, str]:
        """Return (first, stop) of the steps of a loop that this launch runs."""
        if self.runs_whole:
            return "0", str(node.src[0].extent)
        if node.role == "thread":
            return "%thread", self.text.emit(
                f"add nuw nsw {type_of(dtypes.index)} %thread, 1", "upto"
            )
        if node.role == "chunked":
            return "%lo", "%hi"
        return "0", str(node.src[0].extent)

    def close(self, node: UOp) -> None:
        """End the innermost loop.

        Errors: CompileError if the ENDLOOP is another loop's.
        """
        loop = self.stack[-1]
        if loop.range is not node.src[0]:
            raise CompileError("render", f"the loop over {loop.name} is not the one that ends")
        name = loop.name
        kind = type_of(dtypes.index)
        self.text.put(f"%{name}.next = add nuw nsw {kind} %{name}, 1")
        self.text.put(f"%{name}.more = icmp slt {kind} %{name}.next, {loop.stop}")
        after = self.text.unique(f"end_{name}")
        self.text.put(f"br i1 %{name}.more, label %{loop.label}, label %{after}")
        self.text.insert(loop.at, self._header(loop))
        self.stack.pop()
        self.text.depth = len(self.stack)
        self.text.begin(after)

    def _header(self, loop: _Loop) -> list[tuple[str, tuple[int, ...]]]:
        """Return the lines that begin a loop, each with the positions of its nodes."""
        inner = "  " * len(self.stack)
        steps = f"{loop.first}..{loop.stop}".replace("%", "")
        kind = loop.range.axis_kind.name.lower()
        counter = (
            f"{inner}  %{loop.name} = phi {type_of(dtypes.index)}"
            f" [ {loop.first}, %{loop.came_from} ],"
            f" [ %{loop.name}.next, %{self.text.block} ]"
        )
        lines: list[tuple[str, tuple[int, ...]]] = [
            (f"{inner}; for {loop.name} in {steps}  ({kind})", ()),
            (f"{inner}{loop.label}:", ()),
            (counter, (loop.position,)),
        ]
        for register, phi, before in loop.phis:
            after = self.operands.operand(register)
            loop_carried = (
                f"{inner}  %{phi} = phi {type_of(register.dtype)}"
                f" [ {before}, %{loop.came_from} ], [ {after}, %{self.text.block} ]"
            )
            lines.append((loop_carried, (loop.position, self.set_at[register])))
        return lines


# --------------------------------------------------------------------------------------------------
# IFs in LLVM: a block for the body, and a phi for each register that it sets.


@dataclass(slots=True)
class _Branch:
    """An open IF: the block before it, the label after it, the registers that it sets, with their
    values before it, and the addresses that were computed before it."""

    came_from: str
    after: str
    registers: tuple[tuple[UOp, str], ...]
    bases: dict[tuple[str, str], str]


class Branches:
    """The writer of a kernel's IFs."""

    def __init__(self, operands: Operands, memory: LLVMMemory, text: LLVMWriter):
        self.operands, self.memory, self.text = operands, memory, text
        self.stack: list[_Branch] = []

    def open(self, position: int, node: UOp) -> None:
        """Begin the IF at `position`."""
        registers = tuple(
            (register, self.operands.before(register))
            for register in self.operands.ssa.set_in[position]
        )
        inside, after = self.text.unique("if"), self.text.unique("endif")
        test = self.operands.operand(node.condition)
        self.text.put(f"br i1 {test}, label %{inside}, label %{after}")
        branch = _Branch(self.text.block, after, registers, {**self.memory.bases})
        self.stack.append(branch)
        self.text.begin(inside)

    def close(self) -> None:
        """End the innermost IF; addresses that were computed in it are not used after it."""
        branch = self.stack.pop()
        self.text.put(f"br label %{branch.after}")
        inside = self.text.block
        self.text.begin(branch.after)
        self.memory.bases = branch.bases
        for register, before in branch.registers:
            value = self.operands.operand(register)
            phi = (
                f"phi {type_of(register.dtype)} [ {value}, %{inside} ],"
                f" [ {before}, %{branch.came_from} ]"
            )
            name = self.text.unique(register_name(register))
            self.operands.values[register] = self.text.emit(phi, name)


# --------------------------------------------------------------------------------------------------
# The arguments of a kernel on this processor: an array of pointers; scratch memory is on the stack,
# or is passed after the arguments.


class ArgumentMemory(LLVMMemory):
    """The memory of a kernel on a processor: its arguments, scratch memory, and accesses."""

    def pointers(self) -> None:
        """Load the pointers to the arguments; compute the pointers to arrays in scratch memory."""
        for param in self.plan.params:
            slot = param.slot
            self.operands.values[param] = self._argument(f"p{slot}", slot)
        if self.plan.scratch:
            self._scratch()

    def _argument(self, name: str, slot: int) -> str:
        name = self.text.unique(name)
        where = "%args"
        if slot:
            where = self.text.emit(f"getelementptr ptr, ptr %args, i64 {slot}", f"{name}.slot")
        return self.text.emit(f"load ptr, ptr {where}, align 8", name)

    def _scratch(self) -> None:
        base = ""
        if not self.plan.on_stack:
            base = self._argument("scratch", self.plan.slots)
        for define, offset in self.plan.scratch.items():
            name = self.text.unique(define.name)
            kind = f"[{size_of(define)} x {memory_type(define.dtype.scalar)}]"
            place = f"getelementptr i8, ptr {base}, i64 {offset}"
            on_stack = f"alloca {kind}, align {self.plan.alignment_bytes}"
            address = self.text.emit(place if base else on_stack, name)
            self.operands.values[define] = address
            if define in self.plan.padded and not base:
                self.text.put(f"store {kind} zeroinitializer, ptr {address}")


# --------------------------------------------------------------------------------------------------
# LLVM IR with a debug location on each instruction: its line in the text.
#
# Debug locations change no instruction: LLVM's code generator writes them into the assembly as
# `.loc` lines, which map machine code to the lines of the text.

_NUMBERED = re.compile(r"^!(\d+) =", re.MULTILINE)
_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+)", re.MULTILINE)
_DEBUG_LOCATION = re.compile(r",? !dbg !(\d+)")


def with_locations(text: str, line_of: Callable[[int], int] | None = None) -> str:
    """Return `text` with a debug location on each instruction: its line, from 1, or what `line_of`
    returns for that line (0: none). An instruction that LLVM combines from two keeps a location
    only if both have the same one: so `line_of` gives all instructions of a line of C one line."""
    free = free_metadata(text)
    unit, file, flag, function, kind, none = (f"!{free + i}" for i in range(6))
    lines = list(_located(text, function, free + 6))
    options = "isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly"
    lines += [
        f"!llvm.dbg.cu = !{{{unit}}}",
        f"!llvm.module.flags = !{{{flag}}}",
        f"{unit} = distinct !DICompileUnit(language: DW_LANG_C99, file: {file}, {options})",
        f'{file} = !DIFile(filename: "kernel.ll", directory: "")',
        f'{flag} = !{{i32 2, !"Debug Info Version", i32 3}}',
        f"{function} = distinct !DISubprogram(scope: {file}, file: {file}, line: 1,"
        f" type: {kind}, unit: {unit}, spFlags: DISPFlagDefinition)",
        f"{kind} = !DISubroutineType(types: {none})",
        f"{none} = !{{}}",
    ]
    for number in range(1, text.count("\n") + 2):
        line = line_of(number) if line_of else number
        place = f"!DILocation(line: {line}, column: 1, scope: {function})"
        lines.append(f"!{free + 6 + number} = {place}")
    return "\n".join([*lines, ""])


def free_metadata(text: str) -> int:
    """Return the least number from which on no metadata of a text of LLVM IR has a number."""
    return 1 + max((int(n) for n in _NUMBERED.findall(text)), default=-1)


class LocatedIr(NamedTuple):
    """LLVM IR without debug locations; `numbers` has the line of the source of each of its lines,
    from 1 (0: none)."""

    text: str
    numbers: Sequence[int]


def without_locations(text: str) -> LocatedIr:
    """Return LLVM IR without its debug locations, and their lines."""
    numbers = {m[1]: int(m[2]) for m in _LOCATION.finditer(text)}
    lines = [x for x in text.split("\n") if not x.startswith("!llvm.dbg.")]
    places = [_DEBUG_LOCATION.search(line) for line in lines]
    return LocatedIr(
        "\n".join([_DEBUG_LOCATION.sub("", line) for line in lines]),
        [numbers.get(place[1], 0) if place else 0 for place in places],
    )


def _located(text: str, function: str, first: int) -> Iterator[str]:
    """Yield the lines of a module with debug locations: line n has the metadata `first` + n."""
    inside = False
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition(";")[0].strip()
        if line.startswith("define "):
            inside = True
            yield f"{line.rstrip().removesuffix('{')}!dbg {function} {{"
        elif inside and words and not words.endswith(":") and words != "}":
            yield f"{line.partition(';')[0].rstrip()}, !dbg !{first + number}"
        else:
            inside = inside and words != "}"
            yield line
