"""Registers in C: variables, declared in the innermost loop around all of their uses."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.c.expressions.operands import COperands
from workbench.backends.program.expression import ATOM, MUL, paren
from workbench.backends.program.writer import CodeWriter
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


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
