"""The history of one work-group, line by line, from which any step can be restored.

history = emulate(kernel, history=True).history
print(history[41])

Sections: The history of one work-group, line by line, from which any step can be restored; The
recorder of a work-group's history while a machine runs it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from workbench.backends.program.launch import LaunchShape
from workbench.base.dtypes import DType, dtypes
from workbench.base.target import Target
from workbench.emulator.accesses import AccessCount
from workbench.emulator.arithmetic import numbers, stored_floats
from workbench.emulator.cells import NO_ITEM
from workbench.emulator.findings import Finding, along, among_all
from workbench.emulator.machine import Machine
from workbench.emulator.memory import Lanes
from workbench.emulator.source.program import TextProgram, annotations_of
from workbench.ir.nest.accesses import name_of, size_of
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.program import ProgramLine, program_lines

Array = Any  # numpy arrays of any dtype

# --------------------------------------------------------------------------------------------------
# The history of one work-group, line by line, from which any step can be restored.

Space = Literal["global", "shared", "private"]


@dataclass(frozen=True)
class StepAccess:
    """An access to memory in one step. `first` has the first element that each work-item accesses,
    `takes_part` is a mask (work-items, lanes of a vector), `values` are those loaded or stored.

    Units: transactions are sectors of global memory, or passes over the banks of shared memory;
    conflicts are the needless passes. Both are 0 for memory of a work-item.
    """

    memory: UOp
    is_store: bool
    first: NDArray[np.int64]
    takes_part: NDArray[np.bool_]
    values: Array
    transactions: int
    conflicts: int
    bytes_wanted: int
    bytes_moved: int

    @property
    def name(self) -> str:
        """The name of the memory."""
        return name_of(self.memory)

    @property
    def space(self) -> Space:
        """Where the memory is: "global", "shared", or "private" to a work-item."""
        return space_of(self.memory)

    @property
    def elements(self) -> NDArray[np.int64]:
        """The accessed elements (work-items, lanes), -1 for a lane without an access."""
        lanes = np.arange(self.takes_part.shape[1])
        return np.where(self.takes_part, self.first[:, None] + lanes, NO_ITEM)


@dataclass(frozen=True)
class MemoryCells:
    """The cells of a memory after a step: their values, the work-items that wrote them last, and
    the steps of these writes (-1: none)."""

    values: Array
    writers: NDArray[np.int64]
    steps: NDArray[np.int64]


@dataclass(frozen=True)
class CellUse:
    """A read or write of a cell: the step, the work-item, the value."""

    step: int
    item: int
    is_store: bool
    value: Any


@dataclass(frozen=True)
class ValueHistory:
    """The values of a node, each with its step, and with a mask of the work-items whose value
    depends on unwritten memory (None: no work-item's)."""

    steps: list[int]
    values: list[Array]
    undefined: list[Array | None]


@dataclass(frozen=True)
class GroupHistory:
    """The steps of one work-group. A step is one execution of a line of the program (of a loop: its
    next round), or of a load in the line.

    `group` is its number among all; `lines` are those of the program, `line_of` has the line of a
    position, `positions` the position of each step. `rounds` has the round of each loop at each
    step (-1: not in the loop); `masks` are the different masks of active work-items, `mask_of` has
    the number of each step's mask. `accesses` are by step, `values` by node; `floats` has the dtype
    of the nodes with low-precision floats, or their bits. `cut` says why the history ends before
    the program ("": it does not).
    """

    linear: tuple[UOp, ...]
    launch: LaunchShape
    group: int
    lines: tuple[ProgramLine, ...]
    line_of: Mapping[int, int]
    positions: NDArray[np.int32]
    rounds: Mapping[UOp, NDArray[np.int32]]
    masks: NDArray[np.bool_]
    mask_of: NDArray[np.int32]
    accesses: Mapping[int, StepAccess]
    values: Mapping[UOp, ValueHistory]
    cut: str = ""
    floats: Mapping[UOp, DType] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.positions.size)

    def __repr__(self) -> str:
        x_y_z = along(self.group, self.launch.grid)
        cut = f"; {self.cut}" if self.cut else ""
        return f"<{len(self):,} steps of group {x_y_z}{cut}>"

    @property
    def items(self) -> int:
        """The number of work-items in the group."""
        return int(self.masks.shape[1])

    @property
    def names(self) -> dict[UOp, str]:
        """The names of the values that work-items hold, by node. A tile of a tensor core without a
        line of its own is named after the core's result: in a line of a text, the product is one
        step of several."""
        names: dict[UOp, str] = {}
        tiles: dict[UOp, str] = {}
        for line in self.lines:
            nodes = [self.linear[place] for place in line.positions]
            names |= {node: node.axis.axis_name for node in nodes if node.op is Ops.SPECIAL}
            last = nodes[-1]
            if line.name and last.op is not Ops.SPECIAL:
                names[last.src[0] if last.op is Ops.SET else last] = line.name
            products = [node for node in nodes if node.op is Ops.WMMA]
            for number, product in enumerate(products):
                result = line.name.strip() or f"line {line.number}"
                which = f" {number + 1}" if len(products) > 1 else ""
                for name, tile in zip("ABC", tiles_of(product), strict=True):
                    tiles[tile] = f"{name} of {result}{which}"
        return tiles | names

    @property
    def memories(self) -> tuple[UOp, ...]:
        """The memories of the group and of its work-items, in order."""
        return tuple(n for n in self.linear if n.op is Ops.DEFINE)

    @property
    def shuffles(self) -> dict[int, int]:
        """The position of the shuffle, by the number of each line that has one."""
        ends = [line.positions[-1] for line in self.lines]
        places = (p for p, n in enumerate(self.linear) if n.op is Ops.WARP_SHUFFLE)
        return {self.line_of.get(place, bisect_left(ends, place)): place for place in places}

    def steps_of(self, finding: Finding) -> tuple[int, ...]:
        """Return the steps at which a finding occurred, in the order of its positions; () if it is
        of other groups, or not in this history."""
        x_y_z = along(self.group, self.launch.grid)
        items = [i for i in finding.items if i.group == x_y_z]
        if not items or len(items) < len(finding.items):
            return ()
        numbers = [among_all(item.item, self.launch.group) for item in items]
        if not finding.memory:
            return self._missed(finding.positions[0], numbers[0])
        one = numbers[0] if len(numbers) == len(finding.positions) else None
        is_race = finding.kind == "race"  # no barrier is between its steps; copies outlast barriers
        epochs = np.cumsum([self.linear[p].op is Ops.BARRIER for p in self.positions])
        for later in self._at(finding, finding.positions[-1], numbers[-1]):
            if len(finding.positions) == 1:
                return (later,)
            earlier = [
                step
                for step in self._at(finding, finding.positions[0], one)
                if step <= later and (not is_race or epochs[step] == epochs[later])
            ]
            if earlier:
                return earlier[-1], later
        return ()

    def _missed(self, barrier: int, item: int) -> tuple[int, ...]:
        """Return the step of a barrier that a work-item does not come to."""
        at = np.flatnonzero(self.positions == barrier)
        return tuple(int(s) for s in at if not self.masks[self.mask_of[s], item])[:1]

    def _at(self, finding: Finding, position: int, item: int | None) -> Iterator[int]:
        """Yield the steps at a position at which a work-item (None: any one) accesses the element
        of a finding."""
        for step in np.flatnonzero(self.positions == position):
            access = self.accesses.get(int(step))
            if access is None:
                continue
            elements = access.elements if item is None else access.elements[item]
            if (elements == finding.element).any():
                yield int(step)


def cells_at(history: GroupHistory, memory: str, step: int, item: int) -> MemoryCells:
    """Return the cells of a memory after a step; for memory of a work-item, those of `item`."""
    named = {name_of(node): node for node in history.memories}
    node = named[memory]
    size = size_of(node)
    dtype = dtypes.float32 if node in history.floats else node.dtype.scalar
    values = np.zeros(size, dtype.numpy)
    writers, steps = np.full(size, NO_ITEM), np.full(size, NO_ITEM)
    for number, access in history.accesses.items():
        if number > step or access.memory is not node or not access.is_store:
            continue
        who = slice(item, item + 1) if access.space == "private" else slice(None)
        elements, takes_part = access.elements[who], access.takes_part[who]
        at = elements[takes_part]
        values[at] = access.values[who][takes_part]
        rows = np.broadcast_to(np.arange(history.items)[who, None], elements.shape)
        writers[at], steps[at] = rows[takes_part], number
    return MemoryCells(values, writers, steps)


def tiles_of(product: UOp) -> tuple[UOp, ...]:
    """Return the nodes that hold A, B and C of a WMMA: a REG for an AFTER of it."""
    return tuple(s.src[0] if s.op is Ops.AFTER else s for s in product.src)


def of_item(value: Array, item: int) -> Any:
    """Return a work-item's part of a value of shape (), (items,), or (items, lanes); a dimension of
    size 1 is for all work-items."""
    if not value.ndim:
        return value
    return value[item if value.shape[0] > 1 else 0]


def space_of(memory: UOp) -> Space:
    """Return where a memory is: "global", "shared", or "private" to a work-item."""
    if memory.op is Ops.PARAM:
        return "global"
    return "shared" if memory.space == "shared" else "private"


# --------------------------------------------------------------------------------------------------
# The recorder of a work-group's history while a machine runs it.

NO_DTYPES: Mapping[int, DType] = {}
MOST_BYTES = 64 << 20
"""Most bytes of a history."""
MOST_STEPS = 100_000


def history_of(
    linear: Sequence[UOp],
    arrays: Sequence[Array],
    target: Target,
    group: int,
    fresh: Set[int],
    most_bytes: int = MOST_BYTES,
    arguments: Mapping[int, DType] = NO_DTYPES,
    text: TextProgram | None = None,
) -> GroupHistory:
    """Return the history of one work-group, which runs alone, as a Machine with this target and
    these `fresh` slots runs it, and writes to `arrays`; `arguments` are the dtypes of their
    numbers, by slot, since the arrays may have them as bits; `text` is the text that the program
    was read from."""
    lines = None if text is None else text.lines
    recorder = HistoryRecorder(linear, most_bytes, arguments, lines)
    annotations = annotations_of(text)
    machine = Machine(linear, arrays, target, fresh, watcher=recorder, annotations=annotations)
    is_whole = True
    try:
        machine.run([group])
    except HistoryFull:
        is_whole = False
    return recorder.history(machine.launch, group, is_whole)


class HistoryFull(Exception):
    """The history has reached its limit of bytes or of steps."""


class HistoryRecorder:
    """Records the history of the work-group that a machine runs, as its watcher."""

    def __init__(
        self,
        linear: Sequence[UOp],
        most_bytes: int = MOST_BYTES,
        arguments: Mapping[int, DType] = NO_DTYPES,
        lines: Sequence[ProgramLine] | None = None,
    ):
        self.linear, self.most_bytes = tuple(linear), most_bytes
        self._floats = stored_floats(self.linear, arguments)
        self.lines: tuple[ProgramLine, ...] = tuple(
            program_lines(linear) if lines is None else lines
        )
        self.line_of = {p: n for n, ln in enumerate(self.lines) for p in ln.positions}
        self._named = {self.linear[line.positions[-1]] for line in self.lines if line.name}
        self._own = {n.src[0] if n.op is Ops.SET else n for n in self._named}
        """The nodes whose values are recorded at a line of their own."""
        self._loops = [n.axis for n in self.linear if n.op is Ops.LOOP]
        self._open: dict[UOp, int] = {}
        self._positions: list[int] = []
        self._rounds: list[list[int]] = []
        self._masks: dict[bytes, int] = {}
        self._mask_of: list[int] = []
        self._mask_rows: list[Array] = []
        self._accesses: dict[int, StepAccess] = {}
        self._values: dict[UOp, ValueHistory] = {}
        self._counts: dict[int, AccessCount] = {}
        self._access: tuple[Lanes, Array] | None = None
        self._nbytes = 0

    def access(self, lanes: Lanes, values: Array) -> None:
        """Record an access of the current step."""
        self._access = lanes, values

    def open(self, axis: UOp, step: int) -> None:
        """Record the begin of a round of a loop."""
        self._open[axis] = step

    def close(self, axis: UOp) -> None:
        """Record the end of a loop."""
        del self._open[axis]

    def step(self, position: int, machine: Machine) -> None:
        """Record a step after its execution, if it has a line. Errors: HistoryFull."""
        access, self._access = self._access, None
        if position not in self.line_of:
            return
        number, node = len(self._positions), self.linear[position]
        if self._nbytes > self.most_bytes or number >= MOST_STEPS:
            raise HistoryFull
        self._positions.append(position)
        self._rounds.append([self._open.get(axis, -1) for axis in self._loops])
        self._mask_of.append(self._mask(machine.mask[0]))
        if access is not None:
            self._accesses[number] = self._step_access(position, node, *access, machine)
        if node.op is Ops.SPECIAL or node in self._named:
            self._note_value(number, node, machine)
        if node.op is Ops.WMMA:
            for tile in tiles_of(node):
                if tile not in self._own:
                    self._note_value(number, tile, machine)

    def history(self, launch: LaunchShape, group: int, is_whole: bool) -> GroupHistory:
        """Return the history of the recorded steps."""
        rounds = np.array(self._rounds, np.int32).T
        count = len(self._positions)
        cut = f"it ends after {count:,} steps: the program goes on"
        return GroupHistory(
            self.linear,
            launch,
            group,
            self.lines,
            self.line_of,
            np.array(self._positions, np.int32),
            dict(zip(self._loops, rounds, strict=True)),
            np.array(self._mask_rows),
            np.array(self._mask_of, np.int32),
            self._accesses,
            self._values,
            "" if is_whole else cut,
            self._floats,
        )

    def _mask(self, mask: Array) -> int:
        key = mask.tobytes()
        if key not in self._masks:
            self._masks[key] = len(self._mask_rows)
            self._mask_rows.append(mask.copy())
        return self._masks[key]

    def _step_access(
        self, position: int, node: UOp, lanes: Lanes, values: Array, machine: Machine
    ) -> StepAccess:
        memory = node.place.param
        counts = machine.memory.counts.get(position, AccessCount(space_of(memory), False))
        before = self._counts.get(position, AccessCount("", False))
        self._counts[position] = copy(counts)
        first, takes_part = lanes.index[0], lanes.takes_part[0]
        bits = np.array(np.broadcast_to(values, lanes.takes_part.shape)[0])
        values_then = numbers(bits, self._floats.get(memory))
        self._nbytes += first.nbytes + takes_part.nbytes + values_then.nbytes
        return StepAccess(
            memory,
            node.op is Ops.STORE,
            np.array(first),
            np.array(takes_part),
            values_then,
            counts.transactions - before.transactions,
            counts.conflicts - before.conflicts,
            counts.bytes_wanted - before.bytes_wanted,
            counts.bytes_moved - before.bytes_moved,
        )

    def _note_value(self, step: int, node: UOp, machine: Machine) -> None:
        if node.op is Ops.SPECIAL:
            value = machine.values[node.axis]
        else:
            node = node.src[0] if node.op is Ops.SET else node
            value = machine.value(node)
        of_node = self._values.setdefault(node, ValueHistory([], [], []))
        shadow = machine.shadows.get(node)
        values_then = numbers(_of_group(value), self._floats.get(node))
        self._nbytes += values_then.nbytes
        of_node.steps.append(step)
        of_node.values.append(values_then)
        of_node.undefined.append(None if shadow is None else _of_group(shadow.mask))


def _of_group(value: Array) -> Array:
    """Return a value of the only group, without the dimension for groups."""
    array = np.asarray(value)
    return np.array(array[0] if array.ndim > 1 else array)
