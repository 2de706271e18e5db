"""Asynchronous copies in progress: the cells of shared memory that they may still fill.

A work-item's copies since it last waited are a batch. A BARRIER with a count ends the batch, and
waits until all batches of each work-item are complete but that number of the last ones; a BARRIER
without a count waits for no copy. Source: NVIDIA, PTX ISA 8.5, cp.async.commit_group and
cp.async.wait_group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.emulator.cells import NOBODY, AccessLog, CellAccess
from workbench.ir.nest.transactions import Array


@dataclass(frozen=True)
class UnfinishedCopy:
    """An access of a cell that a copy may still fill: the work-items and positions of the copy and
    of the access; `batches` of the copier may be on their way, -1 where none was ended since."""

    cell: int
    items: tuple[int, int]
    positions: tuple[int, int]
    batches: int


class CopyBatches:
    """The batches of work-items that run together: how many each has ended, and how many of these
    are complete."""

    def __init__(self, numbers: Array):
        self._first = int(numbers.min())
        self.ended, self.complete = (np.zeros(numbers.shape, int) for _ in range(2))

    def wait(self, mask: NDArray[np.bool_], count: int) -> None:
        """End the batch of the work-items that come to a barrier, and wait for all but `count`."""
        self.ended += mask
        waits = np.maximum(self.complete, self.ended - count)
        self.complete = np.where(mask, waits, self.complete)

    def of_items(self, counts: Array, items: Array) -> Array:
        """Return the counts of some work-items, by their numbers among all."""
        of_items: Array = counts.reshape(-1)[items - self._first]
        return of_items


class CellCopies:
    """The last copy to each cell of a memory, until something else is stored there."""

    def __init__(self, size: int, batches: CopyBatches):
        self._log, self._numbers = AccessLog(size), np.zeros(size, int)
        self._batches = batches

    def begin(self, access: CellAccess) -> None:
        """Note copies to cells."""
        self._log.note(access)
        ended = self._batches.of_items(self._batches.ended, access.items)
        self._numbers[access.cells] = ended

    def replace(self, access: CellAccess) -> None:
        """Note that something else is stored in cells."""
        self._log.items[access.cells] = NOBODY

    def unfinished(self, access: CellAccess) -> UnfinishedCopy | None:
        """Return the first cell of an access that a copy may still fill."""
        copiers, numbers = self._log.items[access.cells], self._numbers[access.cells]
        is_copy = copiers != NOBODY
        if not is_copy.any():
            return None
        copiers = np.where(is_copy, copiers, access.items)
        complete = self._batches.of_items(self._batches.complete, copiers)
        races = is_copy & (numbers >= complete)
        if not races.any():
            return None
        lane = int(np.argmax(races))
        cell, copier = int(access.cells[lane]), copiers[lane : lane + 1]
        ended = int(self._batches.of_items(self._batches.ended, copier)[0])
        batches = ended - int(complete[lane]) if numbers[lane] < ended else -1
        items = int(copier[0]), int(access.items[lane])
        positions = int(self._log.positions[cell]), access.position
        return UnfinishedCopy(cell, items, positions, batches)
