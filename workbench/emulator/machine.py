"""The emulator: a linear program, run by all work-items of many groups in lock step.

A value is an array (groups, items), or (groups, items, lanes) for a vector, or smaller where it is
the same for all. An IF switches work-items off. Every access is checked against the size of its
memory, counted, and compared with those of other work-items.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from inspect import unwrap
from typing import Any

import numpy as np

from workbench.backends.program.launch import LaunchShape, launch_shape
from workbench.emulator.accesses import (
    AccessCount,
    by_warps,
    count_global,
    count_shared,
)
from workbench.emulator.cells import Access, Cells, Conflict
from workbench.emulator.findings import Finding, WorkItem
from workbench.ir.meaning.casts import bitcast_array, cast_array
from workbench.ir.nest.accesses import name_of, size_of
from workbench.ir.node.ops import OPS, REDUCTIONS, Ops
from workbench.ir.node.uop import UOp

Array = Any  # numpy arrays of any dtype
_ELEMENTWISE: dict[Ops, Callable[..., Array]] = {
    op: unwrap(row.python) for op, row in OPS.items() if row.python is not None
}
MOST_FINDINGS = 20


@dataclass
class Totals:
    """What is counted over a whole run, by positions in the program.

    accesses: loads and stores; executed: how often a work-item came to a step; divergent: warps at
    an IF of which some work-items go on and some do not; barriers: how often a group waited.
    """

    accesses: dict[int, AccessCount] = field(default_factory=dict)
    executed: dict[int, int] = field(default_factory=dict)
    divergent: dict[int, int] = field(default_factory=dict)
    barriers: dict[int, int] = field(default_factory=dict)


Watch = Callable[["Machine", int, UOp], None]
"""Called after each step of the program, with the machine, the position and the node."""


class Machine:
    """Runs a program over `params`, one array for each slot, which it changes.

    `warp_lanes` work-items are a warp; at most `lanes_at_once` run together; `watch` sees each
    step.
    """

    def __init__(
        self,
        linear: Sequence[UOp],
        params: Sequence[Array],
        warp_lanes: int = 32,
        lanes_at_once: int = 1 << 14,
        watch: Watch | None = None,
    ):
        self.linear, self.warp_lanes, self.watch = tuple(linear), warp_lanes, watch
        self.launch: LaunchShape = launch_shape(linear)
        self.params = {n.slot: params[n.slot] for n in _params(linear)}
        self.totals, self.findings = Totals(), list[Finding]()
        self.group_items = math.prod(self.launch.group)
        self.group_count = math.prod(self.launch.grid)
        self.at_once = max(1, min(self.group_count, lanes_at_once // self.group_items))
        self.globals = {
            slot: Cells(array.size, True) for slot, array in self.params.items()
        }
        self._found: set[tuple[str, str, tuple[int, ...]]] = set()
        self._ends = _ends(self.linear)
        self._numbers = {n.axis: n for n in linear if n.op is Ops.SPECIAL}

    def run(self, first_group: int = 0, groups: int | None = None) -> None:
        """Run work-groups, by default all."""
        last = self.group_count if groups is None else first_group + groups
        with np.errstate(all="ignore"):
            for first in range(first_group, last, self.at_once):
                self._start(first, min(self.at_once, last - first))
                self._body(0, len(self.linear))

    # the state of the groups that run together

    def _start(self, first: int, groups: int) -> None:
        self.first_group, self.groups = first, groups
        self.values: dict[UOp, Array] = {}
        self.registers: dict[UOp, Array] = {}
        self.arrays: dict[UOp, Array] = {}
        self.cells: dict[UOp, Cells] = {}
        self.epoch = 0
        self.mask = np.ones((groups, self.group_items), bool)
        self.item_numbers = np.arange(self.group_items)[None, :]
        self.group_numbers = np.arange(first, first + groups)[:, None]
        shape = self.mask.shape
        number = self.group_numbers * self.group_items + self.item_numbers
        self.numbers = np.broadcast_to(number, shape)
        self.whole_groups = np.broadcast_to(self.group_numbers, shape)

    def _body(self, begin: int, end: int) -> None:
        position = begin
        while position < end:
            node = self.linear[position]
            if node.op is Ops.LOOP:
                close = self._ends[position]
                for step in range(node.axis.extent):
                    self.values[node.axis] = np.int64(step)
                    self._watched(position, node)
                    self._body(position + 1, close)
                position = close
            elif node.op is Ops.IF:
                self._if(position, node)
                position = self._ends[position]
            else:
                self._step(position, node)
                self._watched(position, node)
            position += 1

    def _watched(self, position: int, node: UOp) -> None:
        if self.watch is not None:
            self.watch(self, position, node)

    def _if(self, position: int, node: UOp) -> None:
        before = self.mask
        holds = np.broadcast_to(self.value(node.condition), before.shape)
        self.mask = before & holds
        warps = (
            by_warps(before, self.warp_lanes, False),
            by_warps(self.mask, self.warp_lanes, False),
        )
        some = warps[1].any(1) & (warps[0] & ~warps[1]).any(1)
        count = self.totals.divergent
        count[position] = count.get(position, 0) + int(some.sum())
        self._watched(position, node)
        if self.mask.any():
            self._body(position + 1, self._ends[position])
        self.mask = before

    # steps

    def _step(self, position: int, node: UOp) -> None:
        op = node.op
        executed = self.totals.executed
        executed[position] = executed.get(position, 0) + int(self.mask.sum())
        if op is Ops.LOAD:
            self.values[node] = self._load(position, node)
        elif op is Ops.STORE:
            self._store(position, node)
        elif op is Ops.SET:
            self._set(node)
        elif op is Ops.BARRIER:
            self._barrier(position)
        elif op is Ops.SPECIAL:
            self.values[node.axis] = self._number(node)
        elif op is Ops.DEFINE:
            self._define(node)
        elif op not in _NO_STEP:
            self.values[node] = self._compute(node)

    def value(self, node: UOp) -> Array:
        """Return the value of a node, for the work-items that run together."""
        if node.op is Ops.CONST:
            return np.asarray(node.arg, node.dtype.numpy)
        if node.op is Ops.LANES:
            return np.asarray(node.arg, node.dtype.scalar.numpy)
        if node.op is Ops.REG:
            return self.registers[node]
        if node.op is Ops.AFTER:
            return self.value(node.src[0])
        return self.values[node]

    def _number(self, node: UOp) -> Array:
        """Return the number along a dimension; dimension 0 is the innermost."""
        sizes = self.launch.grid if node.role == "grid" else self.launch.group
        inner = math.prod(sizes[len(sizes) - node.dimension :])
        flat = self.group_numbers if node.role == "grid" else self.item_numbers
        numbers: Array = flat // inner % node.axis.extent
        return numbers

    def _define(self, node: UOp) -> None:
        size = size_of(node)
        poison = math.nan if node.dtype.is_float else node.dtype.min
        owners = self.groups * (1 if node.space == "shared" else self.group_items)
        self.arrays[node] = np.full(owners * size, poison, node.dtype.numpy)
        self.cells[node] = Cells(owners * size, False)

    def _set(self, node: UOp) -> None:
        register, value = node.src
        lanes = () if register.dtype.count == 1 else (register.dtype.count,)
        shape = (*self.mask.shape, *lanes)
        new = _spread(self.value(value), value, shape)
        if not self.mask.all() and register in self.registers:
            mask = self.mask[..., None] if lanes else self.mask
            new = np.where(mask, new, self.registers[register])
        self.registers[register] = new

    def _barrier(self, position: int) -> None:
        self.epoch += 1
        count = self.totals.barriers
        count[position] = count.get(position, 0) + self.groups
        if not self.mask.all():
            lane = tuple(np.argwhere(~self.mask)[0])
            words = "not all work-items of a group come to a barrier"
            self._add("divergent barrier", "", 0, [lane], (position,), words)

    def _compute(self, node: UOp) -> Array:
        op, count = node.op, node.dtype.count
        if op is Ops.BROADCAST:
            return self.value(node.src[0])[..., None]
        if op is Ops.STACK:
            parts = [np.asarray(self.value(s)) for s in node.src]
            return np.stack(np.broadcast_arrays(*parts), -1)
        if op is Ops.EXTRACT:
            return self.value(node.src[0])[..., node.arg]
        if op is Ops.SHUFFLE:
            width = node.src[0].dtype.count
            both = [
                np.broadcast_to(v, (*v.shape[:-1], width))
                for v in map(self.value, node.src)
            ]
            shape = np.broadcast_shapes(*[v.shape for v in both])
            whole = np.concatenate([np.broadcast_to(v, shape) for v in both], -1)
            return whole[..., list(node.arg)]
        if op is Ops.HREDUCE:
            source = node.src[0]
            whole = np.asarray(self.value(source))
            whole = np.broadcast_to(whole, (*whole.shape[:-1], source.dtype.count))
            return (
                REDUCTIONS[node.combines]
                .ufunc.reduce(whole, -1)
                .astype(node.dtype.numpy)
            )
        parts = [_beside(self.value(s), s, count) for s in node.src]
        if op in (Ops.CAST, Ops.BITCAST):
            convert = cast_array if op is Ops.CAST else bitcast_array
            return convert(
                np.asarray(parts[0]), node.src[0].dtype.scalar, node.dtype.scalar
            )
        return _ELEMENTWISE[op](*parts)

    # memory

    def _load(self, position: int, node: UOp) -> Array:
        memory, dtype = node.place.param, node.dtype
        first, takes_part = self._access(
            position, node.place, node.src[1:], dtype.count, False
        )
        array = self._array(memory)
        lanes = np.arange(dtype.count)
        safe = np.where(takes_part, first[..., None] + lanes, 0)
        if not array.size:
            return np.zeros(
                safe.shape if dtype.count > 1 else safe.shape[:-1], array.dtype
            )
        values = np.where(takes_part, array[safe], array.dtype.type(0))
        return values if dtype.count > 1 else values[..., 0]

    def _store(self, position: int, node: UOp) -> None:
        value = node.src[1]
        count = value.dtype.count
        first, takes_part = self._access(
            position, node.place, node.src[2:], count, True
        )
        shape = (*self.mask.shape, count)
        new = _spread(self.value(value), value, shape if count > 1 else shape[:-1])
        new = new.reshape(shape)
        places = (first[..., None] + np.arange(count))[takes_part]
        self._array(node.place.param)[places] = new[takes_part]

    def _array(self, memory: UOp) -> Array:
        return (
            self.params[memory.slot] if memory.op is Ops.PARAM else self.arrays[memory]
        )

    def _access(
        self,
        position: int,
        place: UOp,
        gates: Sequence[UOp],
        count: int,
        is_store: bool,
    ) -> tuple[Array, Array]:
        """Return the first element that each work-item accesses, and for each lane whether it takes
        part: (groups, items) and (groups, items, lanes). Notes all that there is to note."""
        memory = place.param
        shape = self.mask.shape
        index = np.broadcast_to(self.value(place.src[1]), shape).astype(np.int64)
        takes_part = np.broadcast_to(self.mask[..., None], (*shape, count))
        if gates:
            gate = _beside(self.value(gates[0]), gates[0], max(count, 2))
            gate = (
                gate
                if gates[0].dtype.count > 1
                else np.asarray(self.value(gates[0]))[..., None]
            )
            takes_part = takes_part & np.broadcast_to(gate, takes_part.shape)
        size = size_of(memory)
        elements = index[..., None] + np.arange(count)
        outside = takes_part & ((elements < 0) | (elements >= size))
        if outside.any():
            self._outside(position, memory, elements, outside, size, is_store)
            takes_part = takes_part & ~outside
        owner = self._owner(memory, size)
        first = index + owner
        self._count(position, memory, index, takes_part, is_store)
        self._compare(position, memory, first, takes_part, is_store, size)
        return first, takes_part

    def _owner(self, memory: UOp, size: int) -> Array:
        """Return where the memory of each work-item's group, or of itself, begins."""
        if memory.op is Ops.PARAM:
            return np.int64(0)
        groups = np.arange(self.groups)[:, None]
        if memory.space == "shared":
            return groups * size
        return (groups * self.group_items + self.item_numbers) * size

    def _count(
        self,
        position: int,
        memory: UOp,
        index: Array,
        takes_part: Array,
        is_store: bool,
    ) -> None:
        is_global = memory.op is Ops.PARAM
        if not is_global and memory.space != "shared":
            return
        space = "global" if is_global else "shared"
        count = self.totals.accesses.get(position)
        if count is None:
            count = self.totals.accesses[position] = AccessCount(space, is_store)
        itemsize = memory.dtype.itemsize
        address = by_warps(index * itemsize, self.warp_lanes, 0)
        active = by_warps(takes_part.any(-1), self.warp_lanes, False)
        add = count_global if is_global else count_shared
        add(count, address, active, itemsize * takes_part.shape[-1])

    def _compare(
        self,
        position: int,
        memory: UOp,
        first: Array,
        takes_part: Array,
        is_store: bool,
        size: int,
    ) -> None:
        cells = (
            self.globals[memory.slot] if memory.op is Ops.PARAM else self.cells[memory]
        )
        lanes = takes_part.shape[-1]
        access = Access(
            (first[..., None] + np.arange(lanes))[takes_part],
            np.broadcast_to(self.numbers[..., None], takes_part.shape)[takes_part],
            np.broadcast_to(self.whole_groups[..., None], takes_part.shape)[takes_part],
            self.epoch,
            position,
        )
        if not access.cells.size:
            return
        if is_store:
            conflict, unwritten = cells.write(access), None
        else:
            conflict, unwritten = cells.read(access)
        if conflict is not None:
            self._race(memory, conflict, size)
        if unwritten is not None:
            cell, number = int(access.cells[unwritten]), int(access.items[unwritten])
            item, name = self.item(number), name_of(memory)
            words = f"{item} reads {name}[{cell % size}], which nobody has written"
            self._note("unwritten", name, cell % size, (item,), (position,), words)

    # findings

    def item(self, number: int) -> WorkItem:
        """Return a work-item by its number among all."""
        group, item = divmod(number, self.group_items)
        return WorkItem(
            _along(group, self.launch.grid), _along(item, self.launch.group)
        )

    def _race(self, memory: UOp, conflict: Conflict, size: int) -> None:
        name, element = name_of(memory), conflict.cell % size
        one, other = (
            (self.item(n) for n in conflict.items)
            if min(conflict.items) >= 0
            else (None, self.item(conflict.items[1]))
        )
        first, second = conflict.verbs
        who = "several work-items" if one is None else str(one)
        verb = first.removesuffix("s") if one is None else first
        words = f"{who} {verb} {name}[{element}], and {other} {second} it: no barrier is between"
        items = tuple(i for i in (one, other) if i is not None)
        self._note("race", name, element, items, conflict.positions, words)

    def _outside(
        self,
        position: int,
        memory: UOp,
        elements: Array,
        outside: Array,
        size: int,
        is_store: bool,
    ) -> None:
        group, lane, part = (int(n) for n in np.argwhere(outside)[0])
        index, name = int(elements[group, lane, part]), name_of(memory)
        verb = "writes" if is_store else "reads"
        item = self.item(int(self.numbers[group, lane]))
        words = f"{item} {verb} {name}[{index}], and there are {size} elements"
        self._note("out of bounds", name, index, (item,), (position,), words)

    def _add(
        self,
        kind: Any,
        memory: str,
        element: int,
        lanes: list[Any],
        positions: tuple[int, ...],
        words: str,
    ) -> None:
        items = tuple(self.item(int(self.numbers[lane])) for lane in lanes)
        self._note(kind, memory, element, items, positions, words)

    def _note(
        self,
        kind: Any,
        memory: str,
        element: int,
        items: tuple[WorkItem, ...],
        positions: tuple[int, ...],
        words: str,
    ) -> None:
        key = kind, memory, positions
        if key not in self._found and len(self.findings) < MOST_FINDINGS:
            self._found.add(key)
            self.findings.append(
                Finding(kind, memory, element, items, positions, words)
            )


def _params(linear: Sequence[UOp]) -> set[UOp]:
    return {n.param for n in linear if n.op is Ops.INDEX and n.param.op is Ops.PARAM}


def _ends(linear: Sequence[UOp]) -> dict[int, int]:
    """Return the position of the end of each LOOP and IF."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for position, node in enumerate(linear):
        if node.op in (Ops.LOOP, Ops.IF):
            opened.append(position)
        elif node.op in (Ops.ENDLOOP, Ops.ENDIF):
            ends[opened.pop()] = position
    return ends


def _beside(value: Array, node: UOp, count: int) -> Array:
    """Return a value with a dimension for lanes, where others of the operation have one."""
    return (
        np.asarray(value)[..., None] if node.dtype.count == 1 and count > 1 else value
    )


def _spread(value: Array, node: UOp, shape: tuple[int, ...]) -> Array:
    """Return a value for all work-items, and lanes."""
    if len(shape) == 3 and node.dtype.count == 1:
        value = np.asarray(value)[..., None]
    return np.broadcast_to(value, shape)


def _along(number: int, sizes: Sequence[int]) -> tuple[int, int, int]:
    """Return a number as numbers along x, y and z."""
    parts = []
    for size in reversed(sizes):
        parts.append(number % size)
        number //= size
    x, y, z = (*parts, 0, 0, 0)[:3]
    return x, y, z


_NO_STEP = frozenset(
    {
        Ops.BLOCK,
        Ops.INDEX,
        Ops.CONST,
        Ops.LANES,
        Ops.REG,
        Ops.RANGE,
        Ops.PARAM,
        Ops.AFTER,
    }
    | {Ops.ENDLOOP, Ops.ENDIF}
)
