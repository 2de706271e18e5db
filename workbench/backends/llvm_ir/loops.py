"""Loops in LLVM: one block each, tested at its end, with a phi per loop-carried register.

A phi names its value at the end of the loop, which is known only when the loop has been written:
its header is inserted afterwards, where the loop began.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.backends.llvm_ir.instructions import type_of
from workbench.backends.llvm_ir.operands import Operands, register_name
from workbench.backends.llvm_ir.writer import LLVMWriter
from workbench.base.dtypes import dtypes
from workbench.base.errors import CompileError
from workbench.ir.node.uop import UOp


@dataclass(slots=True)
class _Loop:
    """An open loop: the position of its header, and the values that the header needs."""

    range: UOp
    first: str
    last: str
    name: str
    label: str
    came_from: str
    phis: list[tuple[UOp, str, str]]
    at: int
    position: int


class Loops:
    """Writes the loops of one kernel. `set_at` has the position in the program of the last SET of
    each register. With `runs_whole`, a launch runs all steps of each loop."""

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
        """Return (first, last) of the steps of a loop that this launch runs."""
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

        Errors: CompileError if it is not the one of this ENDLOOP.
        """
        loop = self.stack[-1]
        if loop.range is not node.src[0]:
            raise CompileError("render", f"the loop over {loop.name} is not the one that ends")
        name = loop.name
        kind = type_of(dtypes.index)
        self.text.put(f"%{name}.next = add nuw nsw {kind} %{name}, 1")
        self.text.put(f"%{name}.more = icmp slt {kind} %{name}.next, {loop.last}")
        after = self.text.unique(f"end_{name}")
        self.text.put(f"br i1 %{name}.more, label %{loop.label}, label %{after}")
        self.text.insert(loop.at, self._header(loop))
        self.stack.pop()
        self.text.depth = len(self.stack)
        self.text.begin(after)

    def _header(self, loop: _Loop) -> list[tuple[str, tuple[int, ...]]]:
        """Return the lines that begin a loop, each with the positions of the nodes whose code it
        is."""
        inner = "  " * len(self.stack)
        steps = f"{loop.first}..{loop.last}".replace("%", "")
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
