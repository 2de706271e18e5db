"""Memory in LLVM: the pointers a kernel begins with, addresses, loads and stores.

A load or store under a condition must not access memory where the condition fails: a scalar load
then reads zeros from elsewhere, a vector load is masked, and a store branches.
"""

from __future__ import annotations

from workbench.backends.llvm.instructions import (
    constant,
    memory_type,
    suffix,
    type_of,
)
from workbench.backends.llvm.operands import Operands
from workbench.backends.llvm.ssa import split_offset
from workbench.backends.llvm.writer import LLVMWriter
from workbench.backends.program.analysis import (
    ProgramAnalysis,
    alignment,
    element_type,
)
from workbench.base.dtypes import dtypes
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


class LLVMMemory:
    """Writes memory accesses. `non_temporal` has the STOREs that are non-temporal."""

    def __init__(
        self,
        plan: ProgramAnalysis,
        non_temporal: frozenset[UOp],
        operands: Operands,
        text: LLVMWriter,
    ):
        self.plan, self.non_temporal = plan, non_temporal
        self.operands, self.text = operands, text
        self.bases: dict[tuple[str, str], str] = {}

    # pointers

    def pointers(self) -> None:
        """Fetch the pointers to the arguments, and those to the arrays in scratch memory."""
        for param in self.plan.params:
            slot = param.slot
            self.operands.values[param] = self._argument(f"p{slot}", slot)
        if self.plan.scratch:
            self._scratch()

    def _argument(self, name: str, slot: int) -> str:
        name = self.text.unique(name)
        where = "%args"
        if slot:
            where = self.text.emit(
                f"getelementptr ptr, ptr %args, i64 {slot}", f"{name}.slot"
            )
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
            self.operands.values[define] = self.text.emit(
                place if base else on_stack, name
            )

    def address(self, node: UOp) -> str:
        """Return a pointer; the constant part of the index is an offset of its own, so that
        neighbouring addresses share what varies and differ in what an instruction encodes."""
        place, (rest, offset) = node.param, split_offset(node.src[1])
        kind, name = memory_type(place.dtype.scalar), self.operands.values[place]
        low, high, size = int(rest.vmin), int(rest.vmax), size_of(place)
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
        text = self.operands.operand(index)
        if (name, text) not in self.bases:
            address = f"{step} {kind}, ptr {name}, i64 {text}"
            self.bases[name, text] = self.text.emit(
                address, self.text.numbered(f"{name[1:]}_at")
            )
        return self.bases[name, text]

    # loads and stores

    def load(self, node: UOp) -> str:
        """Write a LOAD and return the name of its value; a bool is a byte in memory."""
        text, dtype = self._loaded(node), node.dtype
        if not dtype.is_bool:
            return self.operands.named(node, text)
        byte = self.text.step(text)
        zero = constant(0, dtypes.uint8.vec(dtype.count))
        return self.operands.named(node, f"icmp ne {memory_type(dtype)} {byte}, {zero}")

    def _loaded(self, node: UOp) -> str:
        """Return the instruction that reads the bytes of a LOAD."""
        address, *condition = node.src
        pointer, dtype = self.operands.operand(address), node.dtype
        kind, align = memory_type(dtype), self._alignment(address)
        if not condition:
            return f"load {kind}, ptr {pointer}, align {align}"
        test = self.operands.operand(condition[0])
        if condition[0].dtype.count == 1:
            safe = self.text.step(f"select i1 {test}, ptr {pointer}, ptr @zeros")
            return f"load {kind}, ptr {safe}, align {align}"
        mask = f"{type_of(condition[0].dtype)} {test}"
        over = suffix(dtypes.uint8.vec(dtype.count) if dtype.is_bool else dtype)
        return (
            f"call {kind} @llvm.masked.load.{over}.p0"
            f"(ptr align {align} {pointer}, {mask}, {kind} zeroinitializer)"
        )

    def store(self, node: UOp) -> None:
        """Write a STORE; a bool becomes a byte."""
        address, value, *condition = node.src
        kind, text = memory_type(value.dtype), self.operands.operand(value)
        if value.dtype.is_bool:
            text = self.text.step(f"zext {type_of(value.dtype)} {text} to {kind}")
        pointer = self.operands.operand(address)
        if condition:
            self._masked_store(node, kind, text)
            return
        self.text.put(f"store {kind} {text}, ptr {pointer}{self._manner(node)}")

    def _manner(self, store: UOp) -> str:
        """Return the suffix of a store: its alignment, and whether it is non-temporal."""
        if store in self.non_temporal:
            most = self.plan.alignment_bytes
            return f", align {alignment(store.src[0], most)}, !nontemporal !0"
        return f", align {self._alignment(store.src[0])}"

    def _alignment(self, address: UOp) -> int:
        """Return the alignment of an address in bytes: scratch is aligned, arguments need not
        be."""
        if address.param.op is Ops.PARAM:
            return element_type(address).itemsize
        return alignment(address, self.plan.alignment_bytes)

    def _masked_store(self, store: UOp, kind: str, text: str) -> None:
        """Store where the condition holds: all lanes at once where it holds in all, which is nearly
        always; at an edge lane by lane, which is slow."""
        address, value, condition = store.src
        dtype, pointer = value.dtype, self.operands.operand(address)
        test = self.operands.operand(condition)
        place = f"ptr {pointer}{self._manner(store)}"
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
            at = f"ptr align {self._alignment(address)} {pointer}"
            self.text.put(
                f"call void @llvm.masked.store.{over}.p0({kind} {text}, {at}, {mask} {test})"
            )
            self.text.put(f"br label %{after}")
        self.text.begin(whole)
        self.text.put(f"store {kind} {text}, {place}")
        self.text.put(f"br label %{after}")
        self.text.begin(after)


def _gep(is_inside: bool) -> str:
    """Return the instruction for an address. Its "inbounds" is a promise, and an address under
    a condition may well lie outside of its buffer."""
    return "getelementptr inbounds" if is_inside else "getelementptr"
