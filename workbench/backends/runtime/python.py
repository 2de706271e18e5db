"""The PYTHON device: numpy runs the statement tree, all lanes of many work-items in lock step.

Loops whose iterations are independent are not run: each is a dimension of numpy arrays, and
so is each lane axis. A statement is carried out for all of them before the next one begins,
so barriers cost nothing. REDUCE loops run in sequence. Where the lanes would be too many, the
outermost loops run in pieces. Every access to a buffer is checked against its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from workbench.backends.render.source import Source
from workbench.backends.runtime.python_plan import (
    Loop,
    Plan,
    Statement,
    access,
    make_plan,
)
from workbench.errors import DeviceError, WorkbenchError
from workbench.ir.casts import bitcast_array, cast_array
from workbench.ir.ops import OPS, Ops
from workbench.ir.uop import UOp

LANES_AT_ONCE = 1 << 20

Array = Any  # numpy arrays of any dtype, and numpy scalars


class HasArray(Protocol):
    """A buffer: `array` is its memory, one-dimensional."""

    @property
    def array(self) -> Array: ...


class Program:
    """A kernel that the emulator can run. Calling it runs it once over `buffers`, by slot.

    Errors: WorkbenchError where an index leaves its buffer, with the position it happened at.
    """

    def __init__(self, source: Source, lanes_at_once: int = LANES_AT_ONCE):
        if source.block is None:
            raise DeviceError(
                f"the emulator cannot run {source.name}",
                f"it runs the statement tree, and this source is {source.language} only",
            )
        self.source, self.lanes_at_once = source, lanes_at_once
        self._plan = make_plan(source.block)

    def __call__(self, buffers: Sequence[HasArray]) -> None:
        self.bind(buffers)()

    def bind(self, buffers: Sequence[HasArray]) -> Launch:
        """Return a function that runs the kernel over these buffers."""
        arrays = [b.array for b in buffers]
        self._check_buffers(arrays)
        return Launch(self._plan, arrays, self.lanes_at_once)

    def _check_buffers(self, arrays: Sequence[Array]) -> None:
        what = f"cannot launch {self.source.name}"
        params = self.source.params
        if len(arrays) < len(params):
            raise DeviceError(
                what, f"it takes {len(params)} buffers, not {len(arrays)}"
            )
        for slot, (dtype, size) in enumerate(params):
            array = arrays[slot]
            if dtype.bits and (array.dtype != dtype.numpy or array.size < size):
                raise DeviceError(
                    what,
                    f"buffer {slot} is {array.size} x {array.dtype}, "
                    f"and the kernel needs {size} x {dtype}",
                )


class Launch:
    """A kernel and the memory that it runs over: call it to run. `move` gives a slot other
    memory, of the same dtype and size."""

    def __init__(self, plan: Plan, arrays: list[Array], lanes_at_once: int):
        self._plan, self._arrays, self._lanes_at_once = plan, arrays, lanes_at_once

    def __call__(self) -> None:
        _Run(self._plan, self._arrays, self._lanes_at_once).everything()

    def move(self, slot: int, buffer: HasArray) -> None:
        self._arrays[slot] = buffer.array


class _Run:
    """One launch: where each open loop stands, and the storage that is alive.

    `first` and `count` describe a loop's steps in flight; a loop run in sequence has its
    value in `first` and no place among `axes`.
    """

    def __init__(self, plan: Plan, params: Sequence[Array], lanes_at_once: int):
        self.plan, self.lanes_at_once = plan, lanes_at_once
        # Lanes that a gate shuts out read element 0, which an empty buffer lacks.
        self.params = [p if p.size else np.zeros(1, p.dtype) for p in params]
        self.axes: list[UOp] = []
        self.first: dict[UOp, int] = {}
        self.count: dict[UOp, int] = {}
        self.storage: dict[UOp, Array] = {}

    def everything(self) -> None:
        with np.errstate(all="ignore"):
            self.body(self.plan.body, self.plan.storage)

    def body(
        self, body: tuple[Loop | Statement, ...], storage: tuple[UOp, ...]
    ) -> None:
        lanes = tuple(self.count[axis] for axis in self.axes)
        for define in storage:
            self.storage[define] = _poisoned(lanes + define.arg.shape, define)
        for child in body:
            if isinstance(child, Loop):
                self.loop(child)
            else:
                _Frame(self, child).execute()

    def loop(self, loop: Loop) -> None:
        if not loop.independent:
            for step in range(loop.axis.extent):
                self.first[loop.axis] = step
                self.body(loop.body, loop.storage)
            del self.first[loop.axis]
            return
        self.axes.append(loop.axis)
        for first, count in self.pieces(loop):
            self.first[loop.axis], self.count[loop.axis] = first, count
            self.body(loop.body, loop.storage)
        self.axes.pop()
        del self.first[loop.axis], self.count[loop.axis]

    def pieces(self, loop: Loop) -> Iterator[tuple[int, int]]:
        """Yield (first step, steps) so that no statement has too many lanes at once."""
        held = math.prod(self.count[axis] for axis in self.axes[:-1])
        step = max(1, self.lanes_at_once // (held * loop.lanes))
        for first in range(0, loop.axis.extent, step):
            yield first, min(step, loop.axis.extent - first)


class _Frame:
    """One statement for all its lanes. Every value is an array with a dimension for each open
    independent loop and each lane axis (of size 1 where it is the same for all), or a scalar."""

    def __init__(self, run: _Run, statement: Statement):
        self.run, self.statement = run, statement
        self.axes = [*run.axes, *statement.lanes]
        self.place = {axis: i for i, axis in enumerate(self.axes)}
        self.values: dict[UOp, Array] = {}

    def execute(self) -> None:
        for node, unneeded in self.statement.steps:
            self.values[node] = _MEANINGS.get(node.op, _elementwise)(self, node)
            for done in unneeded:
                del self.values[done]
        node = self.statement.node
        _EFFECTS[node.op](self, node)

    def span(self, axis: UOp) -> tuple[int, int]:
        """Return the first value and the number of values of an axis in flight."""
        if axis.axis_kind.is_lane:
            return 0, axis.extent
        return self.run.first[axis], self.run.count[axis]

    def steps(self, axis: UOp) -> Array:
        """Return the values of an axis along its own dimension."""
        shape = [1] * len(self.axes)
        first, count = self.span(axis)
        shape[self.place[axis]] = count
        return np.arange(first, first + count, dtype=np.int64).reshape(shape)

    def condition(self, gates: Sequence[UOp]) -> Array | None:
        """Return where all gates are open; None if there is no gate."""
        total = None
        for gate in gates:
            value = self.values[gate]
            total = value if total is None else total & value
        return total

    def check(self, index: Array, size: int, target: UOp, at: UOp, verb: str) -> None:
        if np.size(index) == 0 or (np.min(index) >= 0 and np.max(index) < size):
            return
        wrong = (index < 0) | (index >= size)
        lane = np.unravel_index(int(np.argmax(wrong)), np.shape(index))
        what = f"PARAM {target.arg[0]}" if target.op is Ops.PARAM else target.arg.name
        raise WorkbenchError(
            f"kernel {self.run.plan.name} {verb} outside {what}",
            f"the index is {int(np.asarray(index)[lane])}, "
            f"and {what} has {size} elements of {target.dtype} there",
            where=self._position(at, lane),
        )

    def _position(self, at: UOp, lane: tuple[Any, ...]) -> str:
        """Name the axes that an index depends on, and where they stand in a lane."""
        words = []
        for axis in sorted(at.ranges, key=lambda r: r.axis_name):
            value = self.run.first.get(axis, 0)
            if axis in self.place:
                value += int(lane[self.place[axis]])
            words.append(f"{axis.axis_name} = {value}")
        return ", ".join(words)

    def element(self, at: UOp, index: UOp, valid: Array | None, verb: str) -> Array:
        """Return the checked index into a PARAM; 0 for lanes that are not valid."""
        value = self.values[index]
        if valid is not None:
            value = np.where(valid, value, 0)
            if not np.any(valid):
                return value
        buffer = access(at)[0]
        self.check(value, buffer.arg[1], buffer, at, verb)
        return value

    def cells(
        self, at: UOp, indexes: Sequence[UOp], valid: Array | None
    ) -> tuple[Array, Any]:
        """Return (array, key): `array[key]` are the elements of storage, lane by lane.

        Where each index is an axis from end to end, or one number, the array is a view with
        a dimension per axis and the key is everything; else the key gathers.
        """
        define, found = access(at)[0], [self.values[index] for index in indexes]
        if valid is not None:
            found = [np.where(valid, index, 0) for index in found]
        data = self.run.storage[define]
        depth = data.ndim - len(indexes)
        for size, value in zip(data.shape[depth:], found, strict=True):
            self.check(value, size, define, at, "reaches")
        places: list[int] = list(range(depth))
        picks: list[Any] = [slice(None)] * depth
        for size, index, value in zip(data.shape[depth:], indexes, found, strict=True):
            if np.ndim(value) == 0:
                picks.append(int(value))
            elif self._covers(index, size) and self.place[index] not in places:
                picks.append(slice(None))
                places.append(self.place[index])
            else:
                return data, self._gather(depth, found)
        view = data[(*picks, ...)].transpose([places.index(i) for i in sorted(places)])
        dims = range(len(self.axes))
        spread = tuple(slice(None) if i in places else None for i in dims)
        # the ellipsis keeps a view where nothing is left
        return view[(*spread, ...)], ...

    def _covers(self, index: UOp, size: int) -> bool:
        return index in self.place and self.span(index) == (0, size)

    def _gather(self, depth: int, found: Sequence[Array]) -> tuple[Array, ...]:
        """Return the key of storage: its own loops, counted from 0, and then its indexes."""
        own = [self.steps(axis) - self.run.first[axis] for axis in self.axes[:depth]]
        return (*own, *found)


def _poisoned(shape: tuple[int, ...], define: UOp) -> Array:
    """Return storage full of values that show: what is read was to be written first."""
    dtype = define.dtype
    return np.full(shape, math.nan if dtype.is_float else dtype.min, dtype.numpy)


def _constant(frame: _Frame, node: UOp) -> Array:
    return node.dtype.numpy.type(node.arg)


def _range(frame: _Frame, node: UOp) -> Array:
    if node in frame.place:
        return frame.steps(node)
    if node not in frame.run.first:
        raise WorkbenchError(f"axis {node.axis_name} is used outside its loop")
    return np.int64(frame.run.first[node])


def _elementwise(frame: _Frame, node: UOp) -> Array:
    meaning = OPS[node.op].python
    if meaning is None:
        raise WorkbenchError(f"the emulator gives {node.op.name} no value")
    return meaning(*[frame.values[s] for s in node.src])


def _cast(frame: _Frame, node: UOp) -> Array:
    return cast_array(frame.values[node.src[0]], node.src[0].dtype, node.dtype)


def _bitcast(frame: _Frame, node: UOp) -> Array:
    return bitcast_array(frame.values[node.src[0]], node.src[0].dtype, node.dtype)


def _load(frame: _Frame, node: UOp) -> Array:
    buffer, indexes, gates = access(node.src[0])
    valid = frame.condition([*gates, *node.src[1:]])
    if buffer.op is Ops.DEFINE:
        array, key = frame.cells(node.src[0], indexes, valid)
        value = array[key]
    else:
        index = frame.element(node.src[0], indexes[0], valid, "reads")
        value = frame.run.params[buffer.arg[0]][index]
    return value if valid is None else np.where(valid, value, node.dtype.numpy.type(0))


def _reduce(frame: _Frame, node: UOp) -> Array:
    """Combine over lane axes; an axis that the value does not depend on repeats it."""
    value = np.asarray(frame.values[node.src[0]])
    shape = list(value.shape or (1,) * len(frame.axes))
    lanes = tuple(frame.place[axis] for axis in node.src[1:])
    for axis in node.src[1:]:
        shape[frame.place[axis]] = frame.span(axis)[1]
    return _combine(node.arg, np.broadcast_to(value, shape), lanes)


def _combine(op: Ops, value: Array, lanes: tuple[int, ...]) -> Array:
    return _UFUNCS[op].reduce(value, axis=lanes, keepdims=True, dtype=value.dtype)


def _store(frame: _Frame, node: UOp) -> None:
    buffer, indexes, gates = access(node.src[0])
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
    frame.run.params[buffer.arg[0]][index] = value


def _accumulate(frame: _Frame, node: UOp) -> None:
    """Combine a value into storage; lanes that the value alone has are combined first."""
    op = node.arg[0]
    _, indexes, _ = access(node.src[0])
    array, key = frame.cells(node.src[0], indexes, None)
    before, value = array[key], np.asarray(frame.values[node.src[1]])
    if value.ndim:
        shape = before.shape if np.ndim(before) else (1,) * value.ndim
        extra = [i for i, n in enumerate(value.shape) if n > 1 and shape[i] == 1]
        value = _combine(op, value, tuple(extra)) if extra else value
    array[key] = _UFUNCS[op](before, value)


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
_UFUNCS: dict[Ops, np.ufunc] = {
    Ops.ADD: np.add,
    Ops.MUL: np.multiply,
    Ops.MAX: np.maximum,
    Ops.MIN: np.minimum,
}
