"""Memory in C: the pointers at the head of a kernel, loads and stores.

A bool is a byte in memory. A vector is read through a pointer of its type, which the prelude
declares as aligned like one element and free to alias.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.c.expressions.operands import COperands
from workbench.backends.program.analysis import ProgramAnalysis
from workbench.backends.program.expression import (
    ATOM,
    EITHER,
    EQUAL,
    UNARY,
    Expression,
    call,
    paren,
)
from workbench.backends.program.writer import CodeWriter
from workbench.base.dtypes import DType, dtypes
from workbench.base.errors import CompileError
from workbench.ir.nest.accesses import size_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


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
