"""Loads, stores and registers in a language like C: vectors where the language and the address
allow them; a register is a variable, declared in the innermost loop around all of its uses.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.c_like.dialect import COMPONENTS, CopyText, Dialect
from workbench.backends.c_like.helpers import Helpers
from workbench.backends.c_like.values import Lanes, Values
from workbench.backends.program.analysis import alignment, wrapping_dtype
from workbench.backends.program.text import ADD, ATOM, MUL, CodeWriter, Expression, paren
from workbench.base.errors import CompileError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

_SPACES = {"shared": "shared", "scratch": "private", "register": "private"}

PART = 4
"""Lanes of a vector type that every language has."""


class WorkItemMemory:
    """Writes memory accesses. `names` has the name of each argument and array, `written` the
    memory that the kernel writes."""

    def __init__(self, dialect: Dialect, values: Values, text: CodeWriter, written: set[UOp]):
        self.dialect, self.values, self.text = dialect, values, text
        self.names: dict[UOp, str] = {}
        self.written = written

    def load(self, node: UOp) -> Expression | Lanes:
        """Return the value of a LOAD, whole or by lanes; 0 where its condition is false."""
        address, *rest = node.src
        condition, count = of_all_lanes(rest), node.dtype.count
        if count == 1:
            return self._element(node, 0, condition)
        per_lane = bool(condition) and condition[0].dtype.count > 1
        has_vector = self.dialect.has_vector(node.dtype) and not node.dtype.is_bool
        may_branch = not condition or self.dialect.masked is None
        if not per_lane and has_vector and may_branch:
            whole = self._load_vector(node, address)
            if whole is not None:
                return self._where(condition, 0, whole, node)
        return tuple(self._element(node, i, condition) for i in range(count))

    def _load_vector(self, node: UOp, address: UOp) -> Expression | None:
        name, index = self._name_and_index(address)
        text = self.dialect.load_vector(
            name,
            index[0],
            node.dtype,
            self._space(address),
            self._is_aligned(address, node.dtype.itemsize),
            address.param not in self.written,
        )
        return None if text is None else (text, ATOM)

    def _element(self, node: UOp, i: int, condition: Sequence[UOp]) -> Expression:
        name, index = self._name_and_index(node.place)
        at = index[0] if i == 0 else f"{index[0]} + {i}"
        dtype, masked = node.dtype.scalar, self.dialect.masked
        if condition and masked:
            test = self.values.lane(condition[0], i)
            first, _ = self.dialect.choose(test, (at, ADD), ("0", ATOM))
            words, _ = self.dialect.load_element(name, first, dtype)
            return masked(test, words, dtype), ATOM
        text = self.dialect.load_element(name, at, dtype)
        return self._where(condition, i, text, None, node)

    def _where(
        self,
        condition: Sequence[UOp],
        i: int,
        text: Expression,
        whole: UOp | None,
        node: UOp | None = None,
    ) -> Expression:
        if not condition:
            return text
        test = self.values.lane(condition[0], i)
        if whole is not None:
            zeros = [self.dialect.constant(0, whole.dtype)] * whole.dtype.count
            zero = self.dialect.build(whole.dtype, zeros)
        else:
            assert node is not None
            zero = self.dialect.constant(0, node.dtype)
        words, _ = self.dialect.choose(test, text, zero)
        return f"({words})", ATOM

    def element(self, address: UOp) -> str:
        """Return the element at an INDEX."""
        name, index = self._name_and_index(address)
        return self.dialect.element(name, index[0])

    def copy(self, node: UOp, helpers: Helpers | None) -> None:
        """Write a STORE of a LOAD that nothing else uses. With `helpers`, a copy between aligned
        addresses is asynchronous where the language can do that."""
        address, load = node.src
        source, *rest = load.src
        condition, nbytes = of_all_lanes(rest), load.dtype.itemsize
        aligned = all(self._is_aligned(a, nbytes) for a in (address, source))
        if not aligned or any(n.dtype.count > 1 for n in condition):
            self._copy_parts(address, load, 1)
            return
        test = self.values.lane(condition[0], 0)[0] if condition else ""
        copy = CopyText(self.element(address), self.element(source), nbytes, test)
        text = helpers.begin_copy(copy) if helpers else None
        text = text or self.dialect.copy(copy)
        if text is None:
            self._copy_parts(address, load, min(load.dtype.count, PART))
        else:
            self.text.put(text)

    def _copy_parts(self, address: UOp, load: UOp, count: int) -> None:
        """Copy `count` elements at a time."""
        source, *condition = load.src
        (name, to), (from_name, at) = self._name_and_index(address), self._name_and_index(source)
        constant = source.param not in self.written
        dtype = load.dtype.scalar.vec(count)
        for begin in range(0, load.dtype.count, count):
            to_index, from_index = (
                f"{words} + {begin}" if begin else words for words in (to[0], at[0])
            )
            words: str | None = self.dialect.element(from_name, from_index)
            zero = self.dialect.constant(0, load.dtype.scalar)
            if count > 1:
                words = self.dialect.load_vector(
                    from_name, from_index, dtype, "global", True, constant
                )
                zero = self.dialect.build(dtype, [zero] * count)
            if words is None:
                self._copy_parts(address, load, 1)
                return
            if condition:
                test = self.values.lane(condition[0], begin)
                words = self.dialect.choose(test, (words, ATOM), zero)[0]
            text: str | None = f"{self.dialect.element(name, to_index)} = {words};"
            if count > 1:
                text = self.dialect.store_vector(name, to_index, dtype, "shared", True, words)
            self.text.put(text or "")

    def store(self, node: UOp) -> None:
        """Write a STORE, which does nothing where its condition is false."""
        address, value, *rest = node.src
        condition, count = of_all_lanes(rest), value.dtype.count
        per_lane = bool(condition) and condition[0].dtype.count > 1
        if count > 1 and not per_lane and not value.dtype.is_bool:
            size = count if self.dialect.has_vector(value.dtype) else PART
            begins = range(0, count, size) if count % size == 0 else range(0)
            parts = [self._store_part(address, value, n, size) for n in begins]
            if parts and None not in parts:
                self._write_guarded(condition, 0, " ".join(filter(None, parts)))
                return
        elements = [self._store_element(address, value, i) for i in range(count)]
        if condition and not per_lane:
            self._write_guarded(condition, 0, " ".join(elements))
            return
        for i, element in enumerate(elements):
            self._write_guarded(condition, i, element)

    def _store_part(self, address: UOp, value: UOp, begin: int, size: int) -> str | None:
        """Store `size` lanes of a vector, from lane `begin`; None where the language cannot."""
        name, index = self._name_and_index(address)
        at = f"{index[0]} + {begin}" if begin else index[0]
        dtype = value.dtype.scalar.vec(size)
        if size == value.dtype.count:
            words = self.values.whole(value)[0]
        else:
            lanes = [self.values.lane(value, begin + i) for i in range(size)]
            words = self.dialect.build(dtype, lanes)[0]
        is_aligned = self._is_aligned(address, dtype.itemsize)
        space = self._space(address)
        return self.dialect.store_vector(name, at, dtype, space, is_aligned, words)

    def _store_element(self, address: UOp, value: UOp, i: int) -> str:
        name, index = self._name_and_index(address)
        at = index[0] if i == 0 else f"{index[0]} + {i}"
        words = self.values.lane(value, i)
        return self.dialect.store_element(name, at, value.dtype.scalar, words)

    def _write_guarded(self, condition: Sequence[UOp], i: int, statement: str) -> None:
        if not condition:
            self.text.put(statement)
            return
        test = self.values.lane(condition[0], i)[0]
        self.text.put(f"if ({test}) {{ {statement} }}")

    def _name_and_index(self, address: UOp) -> tuple[str, Expression]:
        name = self.names.get(address.param)
        if name is None:
            raise CompileError("render", f"{address.param!r} is used before its DEFINE")
        return name, self.values.scalar(address.src[1])

    def _space(self, address: UOp) -> str:
        memory = address.param
        return "global" if memory.op is Ops.PARAM else _SPACES[memory.space]

    def _is_aligned(self, address: UOp, nbytes: int) -> bool:
        """Whether an address is a multiple of `nbytes`, counted from the beginning of its memory,
        which itself begins at a multiple of 16 or more."""
        return alignment(address, nbytes) == nbytes


def of_all_lanes(condition: Sequence[UOp]) -> list[UOp]:
    """Return the conditions; a bool that all lanes share becomes a scalar, so that a vector is
    accessed whole."""
    return [each.src[0] if each.op is Ops.BROADCAST else each for each in condition]


class WorkItemRegisters:
    """Writes declarations and SETs of registers. A vector without a type in the language, such as
    one of bools, becomes a scalar per lane."""

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
        if self.values.is_split(register.dtype):
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
        is_split = self.values.is_split(dtype)
        return self.values.type(dtype.scalar) if is_split else self.values.type_of(register)

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
            whole = self.values.stored(value, register.dtype.count)[0]
            self._assign(names[0], self._type(register), whole, is_new)
        self.values.wholes[register] = names[0], ATOM

    def _assign(self, name: str, kind: str, words: str, is_new: bool) -> None:
        if is_new:
            self.text.put(self.dialect.define(kind, name, words, constant=False))
        else:
            self.text.put(f"{name} = {words};")

    def _update(self, register: UOp, value: UOp) -> str | None:
        """Return `+= ...` or `*= ...` for a value that combines the register with another value;
        None for any other value."""
        whole = self.values.wholes.get(value)
        if whole is None or whole[0].isidentifier() or value.dtype.is_bool:
            return None
        if not self.values.can_update(register.dtype):
            return None
        if not self.dialect.wraps and wrapping_dtype(value) is not None:
            return None
        is_vector = register.dtype.count > 1
        if value.op not in (Ops.ADD, Ops.MUL) or value.src[0] is not register:
            return None
        words = self.values.whole(value.src[1])
        if is_vector:
            sign = "*=" if value.op is Ops.MUL else "+="
            self.dialect.operator(sign, register.dtype, True, True)
        return f"*= {paren(words, MUL)}" if value.op is Ops.MUL else f"+= {words[0]}"
