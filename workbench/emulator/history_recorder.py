"""The recorder of a work-group's history while a machine runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from workbench.backends.program.launch import LaunchShape
from workbench.base.dtypes import DType
from workbench.emulator.accesses import AccessCount
from workbench.emulator.history import GroupHistory, StepAccess, ValueHistory, space_of, tiles_of
from workbench.emulator.machine import Machine
from workbench.emulator.memory import Lanes
from workbench.emulator.stored_floats import numbers, stored_floats
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.text.program import ProgramLine, program_lines

Array = Any  # numpy arrays of any dtype
NOTHING: Mapping[int, DType] = {}
MOST_BYTES = 64 << 20
"""Most bytes of a history."""
MOST_STEPS = 100_000


def history_of(
    linear: Sequence[UOp],
    arrays: Sequence[Array],
    warp_lanes: int,
    group: int,
    most_bytes: int = MOST_BYTES,
    arguments: Mapping[int, DType] = NOTHING,
) -> GroupHistory:
    """Return what one work-group does, alone, over `arrays`, which it writes to; `arguments` are
    the dtypes of those that have floats as bits, by slot."""
    recorder = HistoryRecorder(linear, most_bytes, arguments)
    machine = Machine(linear, arrays, warp_lanes, watcher=recorder)
    is_whole = True
    try:
        machine.run(group, 1)
    except HistoryFull:
        is_whole = False
    return recorder.history(machine.launch, group, is_whole)


class HistoryFull(Exception):
    """The history has as much as it may have."""


class HistoryRecorder:
    """Watches a machine."""

    def __init__(
        self,
        linear: Sequence[UOp],
        most_bytes: int = MOST_BYTES,
        arguments: Mapping[int, DType] = NOTHING,
    ):
        self.linear, self.most_bytes = tuple(linear), most_bytes
        self._floats = stored_floats(self.linear, arguments)
        self.lines: tuple[ProgramLine, ...] = tuple(program_lines(linear))
        self.line_of = {p: n for n, ln in enumerate(self.lines) for p in ln.positions}
        self._named = {self.linear[line.positions[-1]] for line in self.lines if line.name}
        self._own = {n.src[0] if n.op is Ops.SET else n for n in self._named}
        """What has its value noted at a line of its own."""
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
        """Note an access of the step that is being executed."""
        self._access = lanes, values

    def open(self, axis: UOp, step: int) -> None:
        """Note the round of a loop."""
        self._open[axis] = step

    def close(self, axis: UOp) -> None:
        """Note the end of a loop."""
        del self._open[axis]

    def step(self, position: int, machine: Machine) -> None:
        """Note a step, after it. Errors: HistoryFull."""
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
            self._accesses[number] = self._noted(position, node, *access, machine)
        if node.op is Ops.SPECIAL or node in self._named:
            self._note_value(number, node, machine)
        if node.op is Ops.WMMA:
            for tile in tiles_of(node):
                if tile not in self._own:
                    self._note_value(number, tile, machine)

    def history(self, launch: LaunchShape, group: int, is_whole: bool) -> GroupHistory:
        """Return what was noted."""
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

    def _noted(
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
    """Return a value of the only group that runs, without the dimension for groups."""
    array = np.asarray(value)
    return np.array(array[0] if array.ndim > 1 else array)
