"""Plans of kernels on the PYTHON device, and their statements, which numpy computes for all lanes
at once.

Sections: The plan of a kernel on the PYTHON device; A statement on the PYTHON device.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import unwrap
from typing import Any

import numpy as np

from workbench.base.errors import CompileError, WorkbenchError
from workbench.base.sequences import common_prefix
from workbench.ir.meaning.values import bitcast_array, cast_array
from workbench.ir.meaning.values import cast_elementwise as elementwise
from workbench.ir.node.ops import OPS, REDUCTIONS, Ops
from workbench.ir.node.uop import UOp, leaves, split_gate

# --------------------------------------------------------------------------------------------------
# The plan of a kernel on the PYTHON device: its loops, the steps of each statement, and the loop
# that owns each storage.

Path = tuple[int, ...]
"""The position of a loop: the numbers of the loops around it, and its own number, each among the
children of its parent."""


Access = tuple[UOp, tuple[UOp, ...], tuple[UOp, ...]]
_ACCESSES = (Ops.LOAD, Ops.STORE, Ops.ACCUMULATE)


@dataclass(frozen=True, slots=True)
class EmulatorStatement:
    """A STORE or ACCUMULATE. `steps` has the values that it needs, sources first, each with the
    values that no later step needs; `lanes` its lane axes, `accesses` the access of each INDEX."""

    node: UOp
    steps: tuple[tuple[UOp, tuple[UOp, ...]], ...]
    lanes: tuple[UOp, ...]
    accesses: Mapping[UOp, Access]


@dataclass(frozen=True, slots=True)
class EmulatorLoop:
    """A loop, and the storage that each iteration has. `lanes` is the greatest number of elements
    that a statement or storage has in one iteration."""

    axis: UOp
    body: tuple[EmulatorLoop | EmulatorStatement, ...]
    storage: tuple[UOp, ...]
    lanes: int

    @property
    def independent(self) -> bool:
        """Whether the loop is a dimension of arrays: no step needs another one's result."""
        return self.axis.axis_kind.is_independent


@dataclass(frozen=True, slots=True)
class EmulatorPlan:
    """A whole kernel; all its loops share `storage`."""

    name: str
    body: tuple[EmulatorLoop | EmulatorStatement, ...]
    storage: tuple[UOp, ...]


def make_plan(block: UOp) -> EmulatorPlan:
    """Return the plan of a statement tree.

    Errors: CompileError for a node that is neither a loop nor a statement.
    """
    owned = _storage_by_owner(block)
    return EmulatorPlan(block.arg.name, _body(block.src, (), owned), owned.get((), ()))


def access(index: UOp) -> Access:
    """Return (PARAM or DEFINE, indexes, conditions) of an INDEX."""
    indexes, gates = [], []
    for part in index.indexes:
        part, gate = split_gate(part)
        while gate is not None:
            gates.append(gate)
            part, gate = split_gate(part)
        indexes.append(part)
    return index.param, tuple(indexes), tuple(gates)


def _body(
    children: Sequence[UOp], path: Path, owned: Mapping[Path, tuple[UOp, ...]]
) -> tuple[EmulatorLoop | EmulatorStatement, ...]:
    body: list[EmulatorLoop | EmulatorStatement] = []
    for position, child in enumerate(children):
        if child.op is Ops.LOOP:
            inside = (*path, position)
            parts = _body(child.src[1:], inside, owned)
            storage = owned.get(inside, ())
            body.append(EmulatorLoop(child.src[0], parts, storage, _lanes(parts, storage)))
        elif child.op in (Ops.STORE, Ops.ACCUMULATE):
            body.append(_statement(child))
        elif child.op not in (Ops.DEFINE, Ops.BARRIER):
            raise CompileError("emulator", f"{child.op.name} is not a statement", child)
    return tuple(body)


def _lanes(body: Sequence[EmulatorLoop | EmulatorStatement], storage: Sequence[UOp]) -> int:
    sizes = [math.prod(define.memory_shape) for define in storage]
    for part in body:
        if isinstance(part, EmulatorStatement):
            sizes.append(math.prod(axis.extent for axis in part.lanes))
        else:
            sizes.append(part.lanes * (part.axis.extent if part.independent else 1))
    return max(1, *sizes) if sizes else 1


def _statement(node: UOp) -> EmulatorStatement:
    order = _values(node)
    last = {source: i for i, value in enumerate(order) for source in _needs(value)}
    for operand in _needs(node):
        last.pop(operand, None)
    unneeded = defaultdict(list)
    for value, i in last.items():
        unneeded[i].append(value)
    steps = tuple((value, tuple(unneeded[i])) for i, value in enumerate(order))
    ranges = [r for v in order for r in (v, *_closed(v)) if r.op is Ops.RANGE]
    lanes = dict.fromkeys(r for r in ranges if r.axis_kind.is_lane)
    accesses = {v.src[0]: access(v.src[0]) for v in (*order, node) if v.op in _ACCESSES}
    return EmulatorStatement(node, steps, tuple(lanes), accesses)


def _values(statement: UOp) -> list[UOp]:
    """Return the values that a statement needs, sources first; addresses are not values."""
    visited: dict[UOp, None] = {}
    stack = [(need, False) for need in reversed(_needs(statement))]
    while stack:
        node, ready = stack.pop()
        if node in visited:
            continue
        if ready:
            visited[node] = None
        else:
            stack.append((node, True))
            stack.extend((need, False) for need in reversed(_needs(node)))
    return list(visited)


def _needs(node: UOp) -> tuple[UOp, ...]:
    """Return the values that a node is computed from."""
    if node.op in _ACCESSES:
        _, indexes, gates = access(node.src[0])
        return (*indexes, *gates, *node.src[1:])
    if node.op is Ops.REDUCE:
        return node.src[:1]
    return () if node.op is Ops.RANGE else node.src


def _closed(node: UOp) -> tuple[UOp, ...]:
    return node.src[1:] if node.op is Ops.REDUCE else ()


def _storage_by_owner(block: UOp) -> dict[Path, tuple[UOp, ...]]:
    """Return the storage of each loop: a DEFINE belongs to the innermost loop around all its
    uses."""
    owner: dict[UOp, Path] = {}
    for path, statement in _statements(block.src, ()):
        for define in leaves([statement], Ops.DEFINE):
            owner[define] = common_prefix(owner.get(define, path), path)
    owned: dict[Path, tuple[UOp, ...]] = {}
    for define, path in owner.items():
        owned[path] = (*owned.get(path, ()), define)
    return owned


def _statements(children: Sequence[UOp], path: Path) -> Iterator[tuple[Path, UOp]]:
    for position, child in enumerate(children):
        if child.op is Ops.LOOP:
            yield from _statements(child.src[1:], (*path, position))
        elif child.op not in (Ops.DEFINE, Ops.BARRIER):
            yield path, child


Array = Any  # numpy arrays of any dtype, and numpy scalars


# --------------------------------------------------------------------------------------------------
# A statement on the PYTHON device.


@dataclass(slots=True)
class State:
    """The state of a launch: its open loops and its storage.

    Of a loop in `axes`, `count` steps from `first` on run together; a loop that runs in sequence
    has its step in `first`, and is not in `axes`.
    """

    name: str
    params: list[Array]
    axes: list[UOp] = field(default_factory=list)
    first: dict[UOp, int] = field(default_factory=dict)
    count: dict[UOp, int] = field(default_factory=dict)
    storage: dict[UOp, Array] = field(default_factory=dict)

    def open_storage(self, defines: Sequence[UOp]) -> None:
        """Allocate arrays of NaN or the least integer, so that a read before a write shows."""
        lanes = tuple(self.count[axis] for axis in self.axes)
        for define in defines:
            dtype, shape = define.dtype, lanes + define.memory_shape
            poison = math.nan if dtype.is_float else dtype.min
            self.storage[define] = np.full(shape, poison, dtype.numpy)


def execute(state: State, statement: EmulatorStatement) -> None:
    """Execute a statement for all lanes that run together.

    Errors: WorkbenchError where an index leaves its buffer, with the position in the loops.
    """
    _Frame(state, statement).execute()


class _Frame:
    """One statement for all its lanes. Every value is an array with a dimension for each open
    independent loop and each lane axis (of size 1 where it is the same for all), or a scalar."""

    def __init__(self, state: State, statement: EmulatorStatement):
        self.state, self.statement = state, statement
        self.axes = [*state.axes, *statement.lanes]
        self.dimension = {axis: i for i, axis in enumerate(self.axes)}
        self.values: dict[UOp, Array] = {}

    def execute(self) -> None:
        for node, unneeded in self.statement.steps:
            self.values[node] = _MEANINGS.get(node.op, _elementwise)(self, node)
            for operand in unneeded:
                del self.values[operand]
        node = self.statement.node
        _EFFECTS[node.op](self, node)

    def span(self, axis: UOp) -> tuple[int, int]:
        """Return the first step of an axis, and the number of its steps that run together."""
        if axis.axis_kind.is_lane:
            return 0, axis.extent
        return self.state.first[axis], self.state.count[axis]

    def steps(self, axis: UOp) -> Array:
        """Return the steps of an axis that run together, along its own dimension."""
        shape = [1] * len(self.axes)
        first, count = self.span(axis)
        shape[self.dimension[axis]] = count
        return np.arange(first, first + count, dtype=np.int64).reshape(shape)

    def condition(self, gates: Sequence[UOp]) -> Array | None:
        """Return the lanes in which all gates are true; None without gates."""
        total = None
        for gate in gates:
            value = self.values[gate]
            total = value if total is None else total & value
        return total

    def check(self, index: Array, size: int, target: UOp, at: UOp, verb: str) -> None:
        if np.ndim(index) == 0:
            if 0 <= index < size:
                return
        # as unsigned numbers, the negative ones are the greatest: one comparison is enough
        elif index.size == 0 or _greatest(index.view(np.uint64), axis=None) < size:
            return
        wrong = (index < 0) | (index >= size)
        lane = np.unravel_index(int(np.argmax(wrong)), np.shape(index))
        what = f"PARAM {target.slot}" if target.op is Ops.PARAM else target.name
        raise WorkbenchError(
            f"kernel {self.state.name} {verb} outside {what}",
            f"the index is {int(np.asarray(index)[lane])}, "
            f"and {what} has {size} elements of {target.dtype} there",
            where=self._position(at, lane),
        )

    def _position(self, at: UOp, lane: tuple[Any, ...]) -> str:
        """Return the axes that an index depends on, with their values in a lane, for an error."""
        words = []
        for axis in sorted(at.ranges, key=lambda r: r.axis_name):
            value = self.state.first.get(axis, 0)
            if axis in self.dimension:
                value += int(lane[self.dimension[axis]])
            words.append(f"{axis.axis_name} = {value}")
        return ", ".join(words)

    def element(self, at: UOp, index: UOp, valid: Array | None, verb: str) -> Array:
        """Return the checked index into a PARAM; 0 for lanes that are not valid."""
        value = self.values[index]
        if valid is not None:
            value = np.where(valid, value, 0)
            if not np.any(valid):
                return value
        buffer = self.statement.accesses[at][0]
        self.check(value, buffer.length, buffer, at, verb)
        return value

    def cells(self, at: UOp, indexes: Sequence[UOp], valid: Array | None) -> tuple[Array, Any]:
        """Return (array, key): `array[key]` are the elements of storage, lane by lane.

        Where each index is a whole axis or one number, the array is a view with a dimension per
        axis and the key selects all of it; else the key gathers.
        """
        define = self.statement.accesses[at][0]
        offsets = [self.values[index] for index in indexes]
        if valid is not None:
            offsets = [np.where(valid, index, 0) for index in offsets]
        data = self.state.storage[define]
        depth = data.ndim - len(indexes)
        for size, value in zip(data.shape[depth:], offsets, strict=True):
            self.check(value, size, define, at, "reaches")
        places: list[int] = list(range(depth))
        picks: list[Any] = [slice(None)] * depth
        for size, index, value in zip(data.shape[depth:], indexes, offsets, strict=True):
            if np.ndim(value) == 0:
                picks.append(int(value))
            elif self._covers(index, size) and self.dimension[index] not in places:
                picks.append(slice(None))
                places.append(self.dimension[index])
            else:
                return data, self._gather(depth, offsets)
        view = data[(*picks, ...)].transpose([places.index(i) for i in sorted(places)])
        dims = range(len(self.axes))
        spread = tuple(slice(None) if i in places else None for i in dims)
        # with the ellipsis it is a view, even without any other index
        return view[(*spread, ...)], ...

    def _covers(self, index: UOp, size: int) -> bool:
        return index in self.dimension and self.span(index) == (0, size)

    def _gather(self, depth: int, offsets: Sequence[Array]) -> tuple[Array, ...]:
        """Return the key of storage: the steps of its loops, counted from 0, then its indexes."""
        own = [self.steps(axis) - self.state.first[axis] for axis in self.axes[:depth]]
        return (*own, *offsets)


def _constant(frame: _Frame, node: UOp) -> Array:
    return node.dtype.numpy.type(node.arg)


def _range(frame: _Frame, node: UOp) -> Array:
    if node in frame.dimension:
        return frame.steps(node)
    if node not in frame.state.first:
        raise WorkbenchError(f"axis {node.axis_name} is used outside its loop")
    return np.int64(frame.state.first[node])


def _elementwise(frame: _Frame, node: UOp) -> Array:
    meaning = _ELEMENTWISE.get(node.op)
    if meaning is None:
        raise WorkbenchError(f"the emulator gives {node.op.name} no value")
    values = [frame.values[s] for s in node.src]
    return elementwise(meaning, [s.dtype for s in node.src], node.dtype, values)


def _cast(frame: _Frame, node: UOp) -> Array:
    return cast_array(frame.values[node.src[0]], node.src[0].dtype, node.dtype)


def _bitcast(frame: _Frame, node: UOp) -> Array:
    return bitcast_array(frame.values[node.src[0]], node.src[0].dtype, node.dtype)


def _load(frame: _Frame, node: UOp) -> Array:
    buffer, indexes, gates = frame.statement.accesses[node.src[0]]
    valid = frame.condition([*gates, *node.src[1:]])
    if buffer.op is Ops.DEFINE:
        array, key = frame.cells(node.src[0], indexes, valid)
        value = array[key]
    else:
        index = frame.element(node.src[0], indexes[0], valid, "reads")
        value = frame.state.params[buffer.slot][index]
    return value if valid is None else np.where(valid, value, node.dtype.numpy.type(0))


def _reduce(frame: _Frame, node: UOp) -> Array:
    """Combine over lane axes; an axis that the value does not depend on repeats it."""
    value = np.asarray(frame.values[node.src[0]])
    shape = list(value.shape or (1,) * len(frame.axes))
    lanes = tuple(frame.dimension[axis] for axis in node.src[1:])
    for axis in node.src[1:]:
        shape[frame.dimension[axis]] = frame.span(axis)[1]
    return _combine(node.arg, np.broadcast_to(value, shape), lanes)


def _combine(op: Ops, value: Array, lanes: tuple[int, ...]) -> Array:
    return REDUCTIONS[op].ufunc.reduce(value, axis=lanes, keepdims=True, dtype=value.dtype)


def _store(frame: _Frame, node: UOp) -> None:
    buffer, indexes, gates = frame.statement.accesses[node.src[0]]
    value = frame.values[node.src[1]]
    if buffer.op is Ops.DEFINE:
        array, key = frame.cells(node.src[0], indexes, None)
        array[key] = value
        return
    valid = frame.condition(gates)
    index = frame.element(node.src[0], indexes[0], valid, "writes")
    index, value = np.broadcast_arrays(index, value)
    if valid is not None:
        index, value, valid = np.broadcast_arrays(index, value, valid)
        index, value = index[valid], value[valid]
    frame.state.params[buffer.slot][index] = value


def _accumulate(frame: _Frame, node: UOp) -> None:
    """Combine a value into storage; lanes that the storage lacks are combined first."""
    op = node.combines
    _, indexes, _ = frame.statement.accesses[node.src[0]]
    array, key = frame.cells(node.src[0], indexes, None)
    before, value = array[key], np.asarray(frame.values[node.src[1]])
    if value.ndim:
        shape = before.shape if np.ndim(before) else (1,) * value.ndim
        extra = [i for i, n in enumerate(value.shape) if n > 1 and shape[i] == 1]
        value = _combine(op, value, tuple(extra)) if extra else value
    array[key] = REDUCTIONS[op].ufunc(before, value)


_greatest = np.maximum.reduce
_ELEMENTWISE: dict[Ops, Callable[..., Array]] = {
    op: unwrap(row.python) for op, row in OPS.items() if row.python is not None
}
"""Functions that do not suppress numpy's warnings themselves: a launch does it once."""
_MEANINGS: dict[Ops, Callable[[_Frame, UOp], Array]] = {
    Ops.CONST: _constant,
    Ops.RANGE: _range,
    Ops.CAST: _cast,
    Ops.BITCAST: _bitcast,
    Ops.LOAD: _load,
    Ops.REDUCE: _reduce,
}
_EFFECTS: dict[Ops, Callable[[_Frame, UOp], None]] = {
    Ops.STORE: _store,
    Ops.ACCUMULATE: _accumulate,
}
