"""The last writers and readers of each cell of a memory, by which races are found.

Two accesses of one cell by different work-items race where one is a write and no barrier stands
between them. Between work-groups there is no barrier.

A write races with an earlier read by another work-item, if that is of another group, or has passed
as many barriers. So two reads of a cell are enough: of two work-items since the last barrier, if
all readers are of one group; else of two groups. Of the writes, the last one is enough: an earlier
one races with it, or a barrier is between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]
Mask = NDArray[np.bool_]
Verbs = tuple[str, str]
NO_ITEM = -1


class ReadOrigin(NamedTuple):
    """A read of unwritten memory, or of memory outside of its elements: the name of a memory, an
    element, the number of a work-item, the position in the program; `size` is the number of
    elements if the read is outside, else 0."""

    name: str
    element: int
    item: int
    position: int
    size: int = 0


@dataclass(frozen=True)
class CellAccess:
    """An access of lanes that take part: their cells, their numbers among all work-items, how many
    barriers each has passed, and the position in the program."""

    cells: Array
    items: Array
    epochs: Array
    position: int

    def at(self, lanes: Mask) -> CellAccess:
        """Return the access of some of the lanes."""
        cells, items, epochs = self.cells[lanes], self.items[lanes], self.epochs[lanes]
        return CellAccess(cells, items, epochs, self.position)


@dataclass(frozen=True)
class Conflict:
    """Two accesses of one cell that race, the earlier one first."""

    cell: int
    items: tuple[int, int]
    positions: tuple[int, int]
    verbs: Verbs


class AccessLog:
    """One access of each cell: the work-item, the barriers it had passed, the position."""

    def __init__(self, size: int):
        self.items = np.full(size, NO_ITEM)
        self.epochs, self.positions = np.zeros(size, int), np.zeros(size, int)

    def note(self, access: CellAccess) -> None:
        """Record an access; of several accesses of one cell in it, only one."""
        cells = access.cells
        self.items[cells], self.epochs[cells] = access.items, access.epochs
        self.positions[cells] = access.position


class Cells:
    """The cells of one memory that work-groups of `group_items` access."""

    def __init__(self, size: int, is_written: bool, group_items: int):
        self.is_written = np.full(size, is_written)
        self.group_items = group_items
        self.origins: dict[int, ReadOrigin] = {}
        self.writes, self._reads, self._others = (AccessLog(size) for _ in range(3))

    def read(self, access: CellAccess) -> tuple[Conflict | None, Mask | None]:
        """Record a read; return a race, and a mask of the lanes that read an unwritten cell, each
        None if there is none."""
        unwritten = ~self.is_written[access.cells]
        conflict = self._conflict(access, self.writes, ("writes", "reads"))
        self._note_read(access)
        return conflict, unwritten if unwritten.any() else None

    def write(self, access: CellAccess) -> Conflict | None:
        """Record a write; return a race, None if there is none."""
        conflict = (
            self._conflict(access, self.writes, ("writes", "writes"))
            or self._conflict(access, self._reads, ("reads", "writes"))
            or self._conflict(access, self._others, ("reads", "writes"))
        )
        self.writes.note(access)
        self.is_written[access.cells] = True
        if self.origins:
            for cell in access.cells.tolist():
                self.origins.pop(cell, None)
        return conflict or self._at_once(access)

    def are_read_freely(self, access: CellAccess) -> bool:
        """Whether all cells have been written, and no read races."""
        races = self._conflict(access, self.writes, ("writes", "reads"))
        return races is None and bool(self.is_written[access.cells].all())

    def are_written_freely(self, access: CellAccess) -> bool:
        """Whether all writes are of different cells, none races, and no cell depends on unwritten
        memory."""
        ordered = np.sort(access.cells)
        logs = (self.writes, self._reads, self._others)
        return (
            not self.origins
            and not (ordered[1:] == ordered[:-1]).any()
            and all(self._conflict(access, log, ("", "")) is None for log in logs)
        )

    def spoil(self, cells: Array, origin: ReadOrigin) -> None:
        """Record that the values in some cells depend on unwritten memory."""
        self.is_written[cells] = False
        self.origins |= dict.fromkeys(cells.tolist(), origin)

    def _conflict(self, access: CellAccess, earlier: AccessLog, verbs: Verbs) -> Conflict | None:
        cells, others = access.cells, earlier.items[access.cells]
        races = (others != NO_ITEM) & (others != access.items)
        if not races.any():
            return None
        elsewhere = self._groups(others) != self._groups(access.items)
        races &= elsewhere | (earlier.epochs[cells] == access.epochs)
        if not races.any():
            return None
        lane = int(np.argmax(races))
        cell, items = int(cells[lane]), (int(others[lane]), int(access.items[lane]))
        return Conflict(cell, items, (int(earlier.positions[cell]), access.position), verbs)

    def _at_once(self, access: CellAccess) -> Conflict | None:
        """Return the race of two lanes that write one cell in one step; the log has one of them."""
        winners = self.writes.items[access.cells]
        lost = winners != access.items
        if not lost.any():
            return None
        lane = int(np.argmax(lost))
        items = int(access.items[lane]), int(winners[lane])
        at = access.position, access.position
        return Conflict(int(access.cells[lane]), items, at, ("writes", "writes"))

    def _note_read(self, access: CellAccess) -> None:
        """Record a reader of each cell in `_reads`, and another reader in `_others`."""
        first, second, cells = self._reads, self._others, access.cells
        groups = self._groups(access.items)
        readers, others = first.items[cells], second.items[cells]
        of_several = (others != NO_ITEM) & (self._groups(others) != self._groups(readers))
        is_old = (self._groups(readers) == groups) & (first.epochs[cells] != access.epochs)
        renewed = access.at(((readers == NO_ITEM) | is_old) & ~of_several)
        first.note(renewed)
        second.items[renewed.cells] = NO_ITEM

        readers = first.items[cells]
        another = (readers != access.items) & (second.items[cells] == NO_ITEM)
        if another.any():
            second.note(access.at(another))
        elsewhere = self._groups(readers) != groups
        if elsewhere.any():
            second.note(access.at(elsewhere))

    def _groups(self, items: Array) -> Array:
        groups: Array = items // self.group_items
        return groups
