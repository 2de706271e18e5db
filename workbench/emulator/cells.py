"""Who wrote and who read each cell of a memory, and when: that finds races.

Two accesses of one cell by different work-items race where one is a write and no barrier stands
between them. Between work-groups there is no barrier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]
Mask = NDArray[np.bool_]
NOBODY = -1
MANY = -2


@dataclass(frozen=True)
class CellAccess:
    """An access of lanes that take part: their cells, their numbers among all work-items, their
    work-groups, how many barriers they have passed, and the position in the program."""

    cells: Array
    items: Array
    groups: Array
    epoch: int
    position: int


@dataclass(frozen=True)
class Conflict:
    """Two accesses of one cell that race, the earlier one first."""

    cell: int
    items: tuple[int, int]
    positions: tuple[int, int]
    verbs: tuple[str, str]


class Cells:
    """The cells of one memory. A cell's last reader is MANY where several have read it since the
    last barrier."""

    def __init__(self, size: int, is_written: bool):
        self.is_written = np.full(size, is_written)
        self._writer, self._reader = np.full(size, NOBODY), np.full(size, NOBODY)
        self._writer_group, self._reader_group = (
            np.full(size, NOBODY),
            np.full(size, NOBODY),
        )
        self._write_epoch, self._read_epoch = (
            np.full(size, NOBODY),
            np.full(size, NOBODY),
        )
        self._write_at, self._read_at = np.full(size, NOBODY), np.full(size, NOBODY)

    def read(self, access: CellAccess) -> tuple[Conflict | None, Mask | None]:
        """Note a read; return a race, and which lanes read a cell that nobody has written (None if
        none does)."""
        cells = access.cells
        unwritten = ~self.is_written[cells]
        lanes = unwritten if unwritten.any() else None
        conflict = self._with_writes(access, "reads")
        same_time = (self._read_epoch[cells] == access.epoch) & (
            self._reader_group[cells] == access.groups
        )
        another = (self._reader[cells] != access.items) & (
            self._reader[cells] != NOBODY
        )
        self._reader[cells] = np.where(same_time & another, MANY, access.items)
        self._note_many(access)
        self._read_epoch[cells], self._read_at[cells] = access.epoch, access.position
        self._reader_group[cells] = access.groups
        return conflict, lanes

    def _note_many(self, access: CellAccess) -> None:
        """Where several lanes read one cell at once, the last of them is noted: it is MANY."""
        others = self._reader[access.cells] != access.items
        self._reader[access.cells[others]] = MANY

    def write(self, access: CellAccess) -> Conflict | None:
        """Note a write; return a race."""
        cells = access.cells
        conflict = self._with_writes(access, "writes") or self._with_reads(access)
        conflict = conflict or self._at_once(access)
        self._writer[cells], self._writer_group[cells] = access.items, access.groups
        self._write_epoch[cells], self._write_at[cells] = access.epoch, access.position
        self.is_written[cells] = True
        return conflict

    def _unordered(self, access: CellAccess, epochs: Array, groups: Array) -> Mask:
        """Return where an earlier access of these epochs and groups is not before a barrier."""
        cells = access.cells
        elsewhere = groups[cells] != access.groups
        mask: Mask = elsewhere | (epochs[cells] == access.epoch)
        return mask

    def _with_writes(self, access: CellAccess, verb: str) -> Conflict | None:
        cells = access.cells
        writer = self._writer[cells]
        races = (writer != NOBODY) & (writer != access.items)
        races &= self._unordered(access, self._write_epoch, self._writer_group)
        return self._first(access, races, writer, self._write_at, ("writes", verb))

    def _with_reads(self, access: CellAccess) -> Conflict | None:
        cells = access.cells
        reader = self._reader[cells]
        races = (reader != NOBODY) & (reader != access.items)
        races &= self._unordered(access, self._read_epoch, self._reader_group)
        return self._first(access, races, reader, self._read_at, ("reads", "writes"))

    def _at_once(self, access: CellAccess) -> Conflict | None:
        """Two lanes of one step that write one cell."""
        order = np.argsort(access.cells, kind="stable")
        ordered = access.cells[order]
        twice = np.flatnonzero(ordered[1:] == ordered[:-1])
        if not twice.size:
            return None
        one, other = order[twice[0]], order[twice[0] + 1]
        items = int(access.items[one]), int(access.items[other])
        at = access.position, access.position
        return Conflict(int(access.cells[one]), items, at, ("writes", "writes"))

    def _first(
        self,
        access: CellAccess,
        races: Mask,
        others: Array,
        at: Array,
        verbs: tuple[str, str],
    ) -> Conflict | None:
        if not races.any():
            return None
        lane = int(np.argmax(races))
        cell = int(access.cells[lane])
        items = int(others[lane]), int(access.items[lane])
        return Conflict(cell, items, (int(at[cell]), access.position), verbs)
