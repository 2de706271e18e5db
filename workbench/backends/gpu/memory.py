"""Memory of a kernel in a dialect: addresses of buffers, shared memory and registers.

Sections: Memory in a dialect; GPUs whose kernels take addresses of buffers; Registers in a
dialect.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from workbench.backends.gpu.dialect import COMPONENTS, CopyText, Dialect
from workbench.backends.gpu.driver import GpuDriver
from workbench.backends.gpu.helpers import Helpers
from workbench.backends.gpu.values import Lanes, Values
from workbench.backends.memory import Buffer, Bytes, Memory
from workbench.backends.program.analysis import alignment, wrapping_dtype
from workbench.backends.program.launch import grid_size, group_size
from workbench.backends.program.text import ADD, ATOM, MUL, CodeWriter, Expression, Source, paren
from workbench.base.errors import CompileError
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

# --------------------------------------------------------------------------------------------------
# Memory in a dialect: loads and stores, of vectors where the language and the address allow.

_SPACES = {"shared": "shared", "scratch": "private", "register": "private"}

PART = 4
"""Elements of a vector that every language has."""


class WorkItemMemory:
    """Writes memory accesses. `names` has the name of each argument and array."""

    def __init__(self, dialect: Dialect, values: Values, text: CodeWriter, written: set[UOp]):
        self.dialect, self.values, self.text = dialect, values, text
        self.names: dict[UOp, str] = {}
        self.written = written

    def load(self, node: UOp) -> Expression | Lanes:
        """Return a LOAD: 0 where its condition does not hold."""
        address, *rest = node.src
        condition, count = _of_all_lanes(rest), node.dtype.count
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
        name, index = self._place(address)
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
        name, index = self._place(node.place)
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

    def place(self, address: UOp) -> str:
        """Return the element at an INDEX."""
        name, index = self._place(address)
        return self.dialect.element(name, index[0])

    def copy(self, node: UOp, helpers: Helpers | None) -> None:
        """Write a STORE of a LOAD that nothing else uses. With `helpers`, it goes on while the
        program does, where the language has that."""
        address, load = node.src
        source, *rest = load.src
        condition, nbytes = _of_all_lanes(rest), load.dtype.itemsize
        aligned = all(self._is_aligned(a, nbytes) for a in (address, source))
        if not aligned or any(n.dtype.count > 1 for n in condition):
            self._copy_parts(address, load, 1)
            return
        test = self.values.lane(condition[0], 0)[0] if condition else ""
        copy = CopyText(self.place(address), self.place(source), nbytes, test)
        text = helpers.begin_copy(copy) if helpers else None
        text = text or self.dialect.copy(copy)
        if text is None:
            self._copy_parts(address, load, min(load.dtype.count, PART))
        else:
            self.text.put(text)

    def _copy_parts(self, address: UOp, load: UOp, count: int) -> None:
        """Copy `count` elements at a time."""
        source, *condition = load.src
        (name, to), (from_name, at) = self._place(address), self._place(source)
        constant = source.param not in self.written
        dtype = load.dtype.scalar.vec(count)
        for begin in range(0, load.dtype.count, count):
            target, there = (f"{words} + {begin}" if begin else words for words in (to[0], at[0]))
            words: str | None = self.dialect.element(from_name, there)
            zero = self.dialect.constant(0, load.dtype.scalar)
            if count > 1:
                words = self.dialect.load_vector(from_name, there, dtype, "global", True, constant)
                zero = self.dialect.build(dtype, [zero] * count)
            if words is None:
                self._copy_parts(address, load, 1)
                return
            if condition:
                test = self.values.lane(condition[0], begin)
                words = self.dialect.choose(test, (words, ATOM), zero)[0]
            text: str | None = f"{self.dialect.element(name, target)} = {words};"
            if count > 1:
                text = self.dialect.store_vector(name, target, dtype, "shared", True, words)
            self.text.put(text or "")

    def store(self, node: UOp) -> None:
        """Write a STORE, which does nothing where its condition does not hold."""
        address, value, *rest = node.src
        condition, count = _of_all_lanes(rest), value.dtype.count
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
        name, index = self._place(address)
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
        name, index = self._place(address)
        at = index[0] if i == 0 else f"{index[0]} + {i}"
        words = self.values.lane(value, i)
        return self.dialect.store_element(name, at, value.dtype.scalar, words)

    def _write_guarded(self, condition: Sequence[UOp], i: int, statement: str) -> None:
        if not condition:
            self.text.put(statement)
            return
        test = self.values.lane(condition[0], i)[0]
        self.text.put(f"if ({test}) {{ {statement} }}")

    def _place(self, address: UOp) -> tuple[str, Expression]:
        name = self.names.get(address.param)
        if name is None:
            raise CompileError("render", f"{address.param!r} is used before its DEFINE")
        return name, self.values.scalar(address.src[1])

    def _space(self, address: UOp) -> str:
        memory = address.param
        return "global" if memory.op is Ops.PARAM else _SPACES[memory.space]

    def _is_aligned(self, address: UOp, nbytes: int) -> bool:
        """Whether an address is a multiple of `nbytes` from the beginning of its memory, which
        begins at a multiple of 16 or more."""
        return alignment(address, nbytes) == nbytes


def _of_all_lanes(condition: Sequence[UOp]) -> list[UOp]:
    """Return a condition that all lanes share as one bool: a vector is then accessed whole."""
    return [each.src[0] if each.op is Ops.BROADCAST else each for each in condition]


# --------------------------------------------------------------------------------------------------
# GPUs whose kernels take addresses of buffers: memory, bound kernels, and graphs of them.

KEPT_GRAPHS = 8
"""Graphs of the same launches, for other buffers each."""
L = TypeVar("L", bound="AddressLaunch")


class AddressMemory(Memory):
    """Memory whose handles are addresses. Copies stand in the stream of the launches; those from
    and to this process's memory are done when they return.

    CUDA and HIP have the same functions: `prefix` begins their names, `allocation` and `release`
    are the two whose names differ.
    """

    alignment_bytes = 256
    offset_bytes = 16
    driver: ClassVar[type[GpuDriver]]
    prefix: ClassVar[str]
    allocation: ClassVar[str]
    release: ClassVar[str]

    @property
    @abstractmethod
    def stream(self) -> Any:
        """The stream of launches and copies, as the functions take it."""

    @abstractmethod
    def apply(self, name: str, arguments: Sequence[Any]) -> Any:
        """Return what a function of the driver gives beside its status: a value, or several."""

    def allocate(self, size_bytes: int, alignment_bytes: int) -> int:
        return int(self._call(self.allocation, max(1, size_bytes)))

    def free(self, handle: Any) -> None:
        self._call(self.release, handle)

    def copy_in(self, handle: Any, offset: int, data: Bytes) -> None:
        self._copy("HtoD", handle + offset, data.ctypes.data, data.size)
        self.driver.current().wait()

    def copy_out(self, handle: Any, offset: int, data: Bytes) -> None:
        self._copy("DtoH", data.ctypes.data, handle + offset, data.size)
        self.driver.current().wait()

    def copy(
        self, target: Any, target_offset: int, source: Any, source_offset: int, size_bytes: int
    ) -> None:
        self._copy("DtoD", target + target_offset, source + source_offset, size_bytes)

    def available_bytes(self) -> int | None:
        free, _ = self._call("MemGetInfo")
        return int(free)

    def _copy(self, way: str, to: int, source: int, size_bytes: int) -> None:
        if size_bytes:
            self._call(f"Memcpy{way}Async", to, source, size_bytes, self.stream)

    def _call(self, name: str, *arguments: Any) -> Any:
        what = f"the GPU refuses {self.prefix}{name}"
        return self.driver.explain(what, lambda: self.apply(name, arguments))


class AddressLaunch:
    """The arguments of a launch. `places` has the address of each buffer that the kernel has a
    parameter for, in their order."""

    def __init__(self, source: Source, buffers: Sequence[Buffer]):
        self.name = source.name
        self.grid, self.group = grid_size(source.launch), group_size(source.launch)
        self.places = {slot: _address(buffers[slot]) for slot in source.slots}
        self.buffers = [*buffers]

    def move(self, slot: int, buffer: Buffer) -> None:
        """Give a slot other memory, of the same size and dtype."""
        self.buffers[slot] = buffer
        if slot in self.places:
            self.places[slot] = _address(buffer)


class LaunchGraph(ABC, Generic[L]):
    """Launches in their order, which a GPU runs together: call it to run them, on the memory that
    they have then. A graph has the addresses of its buffers: for other ones it is built anew, and
    the last few are kept."""

    def __init__(self, launches: Sequence[L]):
        self.launches = tuple(launches)
        self._graphs: dict[tuple[int, ...], Any] = {}

    def __call__(self) -> None:
        places = tuple(p for each in self.launches for p in each.places.values())
        graph = self._graphs.pop(places, None)
        if graph is None:
            graph = self.build()
        self._graphs[places] = graph  # the newest again
        while len(self._graphs) > KEPT_GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        self.launch(graph)

    @abstractmethod
    def build(self) -> Any:
        """Return the graph of the launches with the memory that they have."""

    @abstractmethod
    def launch(self, graph: Any) -> None:
        """Run a graph in the stream of all launches."""


def _address(buffer: Buffer) -> int:
    return int(buffer.handle) + buffer.offset


# --------------------------------------------------------------------------------------------------
# Registers in a dialect: variables, declared in the innermost loop around all of their uses.


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
