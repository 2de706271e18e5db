"""The memories of a run: every access is bounds-checked, counted, and checked for races."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from workbench.base.dtypes import DType, dtypes
from workbench.emulator.accesses import (
    AccessCount,
    CellCopies,
    CopyBatches,
    count_global,
    count_shared,
)
from workbench.emulator.cells import AccessLog, CellAccess, Cells, ReadOrigin
from workbench.emulator.findings import FindingList
from workbench.ir.nest.accesses import name_of, size_of
from workbench.ir.nest.transactions import by_warps
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

Array = Any  # numpy arrays of any dtype


NO_IDLE_LANES: Mapping[int, int] = MappingProxyType({})


@dataclass(frozen=True)
class Lanes:
    """An access of the work-items that run together. `index` (groups, items) is the first element
    in the memory, `first` the same in the array of all groups; `takes_part` is a mask (groups,
    items, lanes)."""

    index: Array
    first: Array
    takes_part: Array

    @property
    def places(self) -> Array:
        """The accessed elements in the array of all groups, in one dimension."""
        count = self.takes_part.shape[-1]
        return (self.first[..., None] + np.arange(count))[self.takes_part]

    def backwards(self, rounds: int) -> Lanes:
        """Return the access of several rounds of a loop, the last round first."""
        parts = (self.index, self.first, self.takes_part)
        shapes = [(rounds, -1, *part.shape[1:]) for part in parts]
        return Lanes(
            *[
                part.reshape(shape)[::-1].reshape(part.shape)
                for part, shape in zip(parts, shapes, strict=True)
            ]
        )


@dataclass(frozen=True)
class Shadow:
    """A mask of the elements of a value that depend on unwritten memory, and a read of it."""

    mask: Array
    read: ReadOrigin


class Memories:
    """The arrays that work-items read and write. `numbers` (groups, items) has the number among all
    of each work-item that runs, `epochs` the number of barriers that each group has passed. The
    params of the slots `fresh` are unwritten."""

    def __init__(
        self,
        params: Mapping[int, Array],
        findings: FindingList,
        warp_lanes: int,
        written: Set[int],
        fresh: Set[int] = frozenset(),
        idle: Mapping[int, int] = NO_IDLE_LANES,
        copies: Set[int] = frozenset(),
    ):
        """`idle` has a mask of bits, by the position of each load in which only some lanes of a
        warp take part: those whose number has 0 in these bits. `copies` are the positions of
        stores that end asynchronous copies."""
        self.idle, self._copies = idle, copies
        self.reads_outside = False
        """Whether a read outside of its memory gives any value, and is no defect by itself."""
        self.atomic: Set[UOp] = frozenset()
        """Memories of which all accesses are atomic, so that none races."""
        self.is_zeroed = False
        """Whether the memory of a work-group begins as 0."""
        self.outside: Array | None = None
        """The lanes of the last access that are outside of its memory; None: none is."""
        self.params, self.findings, self.warp_lanes = params, findings, warp_lanes
        self.counts: dict[int, AccessCount] = {}
        self._globals = {
            slot: Cells(params[slot].size, slot not in fresh, findings.group_items)
            for slot in written
        }

    def start(self, numbers: Array) -> None:
        """Begin the run of the work-groups with these work-items."""
        self.numbers, self.rounds = numbers, 1
        self.epochs = np.zeros((len(numbers), 1), int)
        self.arrays: dict[UOp, Array] = {}
        self.cells: dict[UOp, Cells] = {}
        self.batches = CopyBatches(numbers)
        self._copied: dict[UOp, CellCopies] = {}

    @contextmanager
    def repeated(self, rounds: int) -> Iterator[None]:
        """In the block, accesses are of several rounds of a loop: each round has groups of its
        own."""
        before = self.numbers, self.epochs
        self.numbers, self.epochs = (np.tile(each, (rounds, 1)) for each in before)
        self.rounds = rounds
        try:
            yield
        finally:
            self.numbers, self.epochs = before
            self.rounds = 1

    def define(self, node: UOp) -> None:
        """Make an array for each group, or each work-item, filled with conspicuous values, or 0."""
        count, items = self.numbers.shape
        is_shared = node.space == "shared"
        total = size_of(node) * count * (1 if is_shared else items)
        is_written = is_shared and self.is_zeroed
        first = 0 if is_written else poison(node.dtype)
        self.arrays[node] = np.full(total, first, node.dtype.numpy)
        self.cells[node] = Cells(total, is_written, self.findings.group_items)
        if self._copies and node.space == "shared":
            self._copied[node] = CellCopies(total, self.batches)

    def array(self, memory: UOp) -> Array:
        """Return the array of a memory, of all groups."""
        if memory.op is Ops.PARAM:
            return self.params[memory.slot]
        return self.arrays[memory]

    def lanes(
        self, position: int, place: UOp, index: Array, takes_part: Array, is_store: bool
    ) -> Lanes:
        """Count an access; return it without the elements outside of its memory, which are a
        finding."""
        memory = place.param
        size = size_of(memory)
        elements = index[..., None] + np.arange(takes_part.shape[-1])
        outside = takes_part & ((elements < 0) | (elements >= size))
        self.outside = outside if outside.any() else None
        if outside.any() and (is_store or not self.reads_outside):
            where = tuple(int(n) for n in np.argwhere(outside)[0])
            verb = "writes" if is_store else "reads"
            number, element = int(self.numbers[where[:2]]), int(elements[where])
            name = name_of(memory)
            self.findings.outside(name, element, number, position, size, verb)
        if self.outside is not None:
            takes_part = takes_part & ~outside
        self.count(position, memory, index, takes_part, is_store)
        return self.at(place, index, takes_part)

    def at(self, place: UOp, index: Array, takes_part: Array) -> Lanes:
        """Return an access, all of which is inside of its memory."""
        first = index + self._owner(place.param, size_of(place.param))
        return Lanes(index, first, takes_part)

    def reads_freely(self, position: int, place: UOp, lanes: Lanes) -> bool:
        """Whether reads have no finding, and may come in any order. The order matters for a param
        that the program also writes: its log has only two readers of each cell."""
        cells = self._cells(place.param)
        if cells is None or not lanes.takes_part.any():
            return True
        is_of_all = place.param.op is Ops.PARAM
        access = self._accessed(position, lanes)
        return not is_of_all and cells.are_read_freely(access) and self._is_complete(place, access)

    def writes_freely(self, position: int, place: UOp, lanes: Lanes) -> bool:
        """Whether writes have no finding, and no two are of one cell."""
        cells = self._cells(place.param)
        assert cells is not None
        access = self._accessed(position, lanes)
        return cells.are_written_freely(access) and self._is_complete(place, access)

    def _is_complete(self, place: UOp, access: CellAccess) -> bool:
        copies = self._copied.get(place.param)
        return copies is None or copies.unfinished(access) is None

    def read(self, position: int, place: UOp, lanes: Lanes) -> Shadow | None:
        """Record a read; return a Shadow of the unwritten elements, None if all are written."""
        memory, size = place.param, size_of(place.param)
        cells = self._cells(memory)
        if cells is None or not lanes.takes_part.any():
            return None
        access = self._accessed(position, lanes)
        conflict, unwritten = cells.read(access)
        if memory in self.atomic:
            conflict = None
        if conflict is not None:
            self.findings.race(name_of(memory), conflict, size)
        else:
            self._require_complete(memory, access, "reads")
        if unwritten is None:
            return None
        mask = np.zeros(lanes.takes_part.shape, bool)
        mask[lanes.takes_part] = unwritten
        group, item, lane = (int(n) for n in np.argwhere(mask)[0])
        cell = int(lanes.first[group, item]) + lane
        element, number = cell % size, int(self.numbers[group, item])
        here = ReadOrigin(name_of(memory), element, number, position)
        return Shadow(mask, cells.origins.get(cell, here))

    def write(self, position: int, place: UOp, lanes: Lanes, shadow: Shadow | None) -> None:
        """Record a write; `shadow` has the lanes whose value depends on unwritten memory."""
        memory, size = place.param, size_of(place.param)
        access = self._accessed(position, lanes)
        if not access.cells.size:
            return
        cells = self._cells(memory)
        assert cells is not None
        conflict = cells.write(access)
        if memory in self.atomic:
            conflict = None
        if conflict is not None:
            self.findings.race(name_of(memory), conflict, size)
        else:
            self._require_complete(memory, access, "writes")
        copies = self._copied.get(memory)
        if copies is not None:
            note = copies.begin if position in self._copies else copies.replace
            note(access)
        if shadow is not None:
            cells.spoil(access.cells[shadow.mask[lanes.takes_part]], shadow.read)

    def _require_complete(self, memory: UOp, access: CellAccess, verb: str) -> None:
        copies = self._copied.get(memory)
        copy = None if copies is None else copies.unfinished(access)
        if copy is not None:
            self.findings.unfinished(name_of(memory), copy, size_of(memory), verb)

    def writes(self, slot: int) -> AccessLog | None:
        """Return the log of the last writes to a param; None if the program only reads it."""
        cells = self._globals.get(slot)
        return None if cells is None else cells.writes

    def _cells(self, memory: UOp) -> Cells | None:
        """Return the cells of a memory, None if the program only reads it."""
        if memory.op is Ops.PARAM:
            return self._globals.get(memory.slot)
        return self.cells[memory]

    def _owner(self, memory: UOp, size: int) -> Array:
        """Return the first element of each work-item's memory in the array of all groups."""
        if memory.op is Ops.PARAM:
            return np.int64(0)
        count, items = self.numbers.shape
        groups = (np.arange(count) % (count // self.rounds))[:, None]
        if memory.space == "shared":
            return groups * size
        return (groups * items + np.arange(items)) * size

    def count(
        self, position: int, memory: UOp, index: Array, takes_part: Array, is_store: bool
    ) -> None:
        """Count an access to global or shared memory."""
        is_global = memory.op is Ops.PARAM
        if not is_global and memory.space != "shared":
            return
        count = self.counts.get(position)
        if count is None:
            space = "global" if is_global else "shared"
            count = self.counts[position] = AccessCount(space, is_store)
        itemsize = memory.dtype.itemsize
        lanes = self.warp_lanes
        if is_global:  # lanes that a group does not have cost nothing
            lanes = min(lanes, self.numbers.shape[1])
        address = by_warps(index * itemsize, lanes, 0)
        of_warp = np.arange(self.numbers.shape[1]) % self.warp_lanes
        takes_part = takes_part & (of_warp & self.idle.get(position, 0) == 0)[:, None]
        active = by_warps(takes_part.any(-1), lanes, False)
        add = count_global if is_global else count_shared
        costs = add(count, address, active, itemsize * takes_part.shape[-1])
        row = costs.worse(count.worst)
        if row is not None:
            numbers = by_warps(self.numbers, lanes, 0)
            count.worst = costs.example(row, numbers, address // itemsize)

    def _accessed(self, position: int, lanes: Lanes) -> CellAccess:
        shape, takes_part = lanes.takes_part.shape, lanes.takes_part
        return CellAccess(
            lanes.places,
            np.broadcast_to(self.numbers[..., None], shape)[takes_part],
            np.broadcast_to(self.epochs[..., None], shape)[takes_part],
            position,
        )


def spoil(arrays: Sequence[Array], slots: Set[int]) -> None:
    """Fill unwritten arrays with conspicuous values."""
    for slot in slots:
        arrays[slot][...] = poison(dtypes.from_numpy(arrays[slot].dtype))


def poison(dtype: DType) -> bool | int | float:
    """Return a conspicuous value for unwritten memory."""
    return np.nan if dtype.is_float else dtype.min
