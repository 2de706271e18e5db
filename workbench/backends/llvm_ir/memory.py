"""Memory in LLVM: addresses, loads and stores.

A load or store under a condition must not access memory where the condition fails: a scalar load
then reads zeros from elsewhere, or branches; a vector load is masked, and a store branches.
"""

from __future__ import annotations

import re

from workbench.backends.llvm_ir.instructions import Operands, constant, memory_type, suffix, type_of
from workbench.backends.llvm_ir.ssa import LLVMWriter, split_offset
from workbench.backends.program.analysis import ProgramAnalysis, alignment, element_type
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

    def pointer(self, place: UOp) -> str:
        """Return the type of a pointer into a memory."""
        return "ptr"

    def address(self, node: UOp) -> str:
        """Return a pointer. The constant part of the index is added last, so that neighbouring
        addresses share the variable part, and differ in an offset that an instruction encodes."""
        place, (rest, offset) = node.param, split_offset(node.src[1])
        kind, name = memory_type(place.dtype.scalar), self.operands.values[place]
        low, high, size = int(rest.vmin), int(rest.vmax), size_of(place)
        is_inside = low >= 0 and high <= size
        pointer = self._base(place, name, rest, _gep(is_inside))
        if not offset:
            return pointer
        step = _gep(is_inside and low + offset >= 0 and high + offset <= size)
        index = f"{type_of(dtypes.index)} {offset}"
        text = f"{step} {kind}, {self.pointer(place)} {pointer}, {index}"
        return self.text.emit(text, self.text.numbered(f"{name[1:]}_at"))

    def _base(self, place: UOp, name: str, index: UOp, step: str) -> str:
        if index.op is Ops.CONST and not index.arg:
            return name
        text = self.operands.operand(index)
        if (name, text) not in self.bases:
            pointer = f"{memory_type(place.dtype.scalar)}, {self.pointer(place)} {name}"
            address = f"{step} {pointer}, {type_of(dtypes.index)} {text}"
            self.bases[name, text] = self.text.emit(address, self.text.numbered(f"{name[1:]}_at"))
        return self.bases[name, text]

    # loads and stores

    def load(self, node: UOp) -> str:
        """Write a LOAD, and return the name of its value; a bool is a byte in memory."""
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
        kind, align = memory_type(dtype), self.alignment(address)
        where = self.pointer(address.param)
        if not condition:
            return f"load {kind}, {where} {pointer}, align {align}"
        test = self.operands.operand(condition[0])
        if condition[0].dtype.count == 1:
            return self.conditional_load(node, test, kind)
        return self.masked_load(node, test, f"{where} align {align} {pointer}")

    def masked_load(self, load: UOp, test: str, place: str) -> str:
        """Return the instruction that loads the lanes for which the test holds, and zeros for the
        others."""
        address, condition = load.src
        dtype, kind = load.dtype, memory_type(load.dtype)
        over = suffix(dtypes.uint8.vec(dtype.count) if dtype.is_bool else dtype)
        name = f"@llvm.masked.load.{over}.{_space(self.pointer(address.param))}"
        mask = f"{type_of(condition.dtype)} {test}"
        return f"call {kind} {name}({place}, {mask}, {kind} zeroinitializer)"

    def conditional_load(self, node: UOp, test: str, kind: str) -> str:
        """Return the instruction that loads a scalar LOAD, or zero if the test fails."""
        address = node.src[0]
        pointer = self.operands.operand(address)
        safe = self.text.step(f"select i1 {test}, ptr {pointer}, ptr @zeros")
        return f"load {kind}, ptr {safe}, align {self.alignment(address)}"

    def load_in_branch(self, node: UOp, test: str, kind: str) -> str:
        """Return the last instruction of a scalar LOAD under a condition: a phi of the value that a
        branch loads, and zero."""
        address, dtype = node.src[0], node.dtype
        pointer = f"{self.pointer(address.param)} {self.operands.operand(address)}"
        inside, after = self.text.unique("load"), self.text.unique("loaded")
        before = self.text.block
        self.text.put(f"br i1 {test}, label %{inside}, label %{after}")
        self.text.begin(inside)
        align = self.alignment(address)
        value = self.text.step(f"load {kind}, {pointer}, align {align}")
        self.text.put(f"br label %{after}")
        self.text.begin(after)
        zero = constant(0, dtypes.uint8.vec(dtype.count) if dtype.is_bool else dtype)
        return f"phi {kind} [ {value}, %{inside} ], [ {zero}, %{before} ]"

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
        where = self.pointer(address.param)
        self.text.put(f"store {kind} {text}, {where} {pointer}{self._store_suffix(node)}")

    def _store_suffix(self, store: UOp) -> str:
        """Return the suffix of a store: its alignment, and whether it is non-temporal."""
        if store in self.non_temporal:
            most = self.plan.alignment_bytes
            return f", align {alignment(store.src[0], most)}, !nontemporal !0"
        return f", align {self.alignment(store.src[0])}"

    def alignment(self, address: UOp) -> int:
        """Return the alignment of an address in bytes: scratch memory is aligned for vectors,
        arguments only for their elements."""
        if address.param.op is Ops.PARAM:
            return element_type(address).itemsize
        return alignment(address, self.plan.alignment_bytes)

    def _masked_store(self, store: UOp, kind: str, text: str) -> None:
        """Store under a condition. If it holds in all lanes, as it nearly always does, they are
        stored at once; at an edge by `masked_store`, which may be slow."""
        address, value, condition = store.src
        dtype, pointer = value.dtype, self.operands.operand(address)
        test = self.operands.operand(condition)
        where = self.pointer(address.param)
        place = f"{where} {pointer}{self._store_suffix(store)}"
        whole = self.text.unique("whole")
        after = self.text.unique("stored")
        if dtype.count == 1:
            self.text.put(f"br i1 {test}, label %{whole}, label %{after}")
        else:
            edge, full = self.text.unique("edge"), self.every_lane(condition, test)
            self.text.put(f"br i1 {full}, label %{whole}, label %{edge}")
            self.text.begin(edge)
            at = f"{where} align {self.alignment(address)} {pointer}"
            self.masked_store(store, text, test, at)
            self.text.put(f"br label %{after}")
        self.text.begin(whole)
        self.text.put(f"store {kind} {text}, {place}")
        self.text.put(f"br label %{after}")
        self.text.begin(after)

    def every_lane(self, condition: UOp, test: str) -> str:
        """Return whether all lanes of a test hold."""
        count, mask = condition.dtype.count, type_of(condition.dtype)
        return self.text.step(f"call i1 @llvm.vector.reduce.and.v{count}i1({mask} {test})")

    def masked_store(self, store: UOp, text: str, test: str, place: str) -> None:
        """Write the store of the lanes for which the test holds."""
        address, value, condition = store.src
        dtype, where = value.dtype, self.pointer(address.param)
        over = f"v{dtype.count}{suffix(dtypes.uint8 if dtype.is_bool else dtype.scalar)}"
        name = f"@llvm.masked.store.{over}.{_space(where)}"
        values = f"{memory_type(dtype)} {text}, {place}, {type_of(condition.dtype)}"
        self.text.put(f"call void {name}({values} {test})")


def _space(pointer: str) -> str:
    """Return the part of an intrinsic's name that names the type of a pointer: p0, p3."""
    number = re.search(r"\d+", pointer)
    return f"p{number[0] if number else 0}"


def _gep(is_inside: bool) -> str:
    """Return the instruction for an address. "inbounds" asserts that it is inside of its memory,
    which an address under a condition need not be."""
    return "getelementptr inbounds" if is_inside else "getelementptr"
