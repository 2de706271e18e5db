"""Registers in a dialect: variables, declared in the innermost loop around all of their uses."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.gpu.dialect import COMPONENTS, Dialect
from workbench.backends.gpu.values import Values
from workbench.backends.program.expression import ATOM, MUL, paren
from workbench.backends.program.value_facts import wrapping_dtype
from workbench.backends.program.writer import CodeWriter
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


class WorkItemRegisters:
    """Writes declarations and SETs. A vector that the language has no
    type for, as of bools, is as many scalars."""

    def __init__(self, dialect: Dialect, values: Values, text: CodeWriter, linear: Sequence[UOp]):
        self.dialect, self.values, self.text = dialect, values, text
        self.names: dict[UOp, tuple[str, ...]] = {}
        self._declared: set[UOp] = set()
        self._parts: dict[str, set[UOp]] = {}
        for node in linear:
            if node.op is Ops.SET:
                self._parts.setdefault(node.src[0].name, set()).add(node.src[0])

    def begin(self, register: UOp, node: UOp) -> None:
        """Name a register; declare it unless `node`, the next one, is its first SET."""
        name, count = register.name, register.dtype.count
        if len(self._parts.get(name, ())) > 1:
            name = f"{name}_{register.first_lane}"
        if self._is_split(register):
            names = tuple(self.text.unique(f"{name}_{c}") for c in COMPONENTS[:count])
        else:
            names = (self.text.unique(name),)
        self.names[register] = names
        if node.op is Ops.SET and node.src[0] is register:
            return
        for each in names:
            self.text.put(self.dialect.declare(self._type(register), each))
        self._declared.add(register)

    def _type(self, register: UOp) -> str:
        dtype = register.dtype
        return self.values.type(dtype.scalar if self._is_split(register) else dtype)

    def _is_split(self, register: UOp) -> bool:
        dtype = register.dtype
        has_vector = not dtype.is_bool and self.dialect.has_vector(dtype)
        return dtype.count > 1 and not has_vector

    def set(self, node: UOp) -> None:
        """Write a SET: a declaration, an update such as `+=`, or an assignment."""
        register, value = node.src
        names = self.names[register]
        is_new = register not in self._declared
        self._declared.add(register)
        if len(names) > 1:
            words = [self.values.lane(value, i)[0] for i in range(len(names))]
            for name, word in zip(names, words, strict=True):
                self._assign(name, self._type(register), word, is_new)
            self.values.parts[register] = tuple((name, ATOM) for name in names)
            return
        update = None if is_new else self._update(register, value)
        if update is not None:
            self.text.put(f"{names[0]} {update};")
        else:
            whole = self.values.whole(value)[0]
            if value.dtype.count < register.dtype.count:
                lanes = [self.values.scalar(value)] * register.dtype.count
                whole = self.dialect.build(register.dtype, lanes)[0]
            self._assign(names[0], self._type(register), whole, is_new)
        self.values.wholes[register] = names[0], ATOM

    def _assign(self, name: str, kind: str, words: str, is_new: bool) -> None:
        if is_new:
            self.text.put(self.dialect.define(kind, name, words, constant=False))
        else:
            self.text.put(f"{name} = {words};")

    def _update(self, register: UOp, value: UOp) -> str | None:
        """Return `+= ...` or `*= ...` where a value is the register combined with another one."""
        whole = self.values.wholes.get(value)
        if whole is None or whole[0].isidentifier() or value.dtype.is_bool:
            return None
        if not self.dialect.has_operators(value.dtype):
            return None
        if not self.dialect.wraps and wrapping_dtype(value) is not None:
            return None
        is_vector = register.dtype.count > 1
        if is_vector and not register.dtype.is_float:
            return None
        if value.op not in (Ops.ADD, Ops.MUL) or value.src[0] is not register:
            return None
        words = self.values.whole(value.src[1])
        if is_vector:
            sign = "*=" if value.op is Ops.MUL else "+="
            self.dialect.operator(sign, register.dtype, True, True)
        return f"*= {paren(words, MUL)}" if value.op is Ops.MUL else f"+= {words[0]}"
