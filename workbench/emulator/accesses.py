"""Counts of the accesses of a program, with the worst warp of each; asynchronous copies.

Sections: Counts of the accesses of a program, with the worst warp of each; Asynchronous copies in
progress.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.emulator.cells import NO_ITEM, AccessLog, CellAccess
from workbench.ir.nest.transactions import (
    BANKS,
    SECTOR_BYTES,
    Array,
    Mask,
    bank_passes,
    sectors,
    words_at_once,
)

# --------------------------------------------------------------------------------------------------
# Counts of the accesses of a program, with the worst warp of each.


@dataclass(frozen=True)
class WorstWarp:
    """The warp in which an access has the most needless transactions: its transactions, the least
    that would do, and two of its work-items (by their numbers among all) that cause the difference,
    with their elements."""

    transactions: int
    least: int
    items: tuple[int, int]
    elements: tuple[int, int]


@dataclass
class AccessCount:
    """All accesses at one position of a program, over all warps.

    requests: warps with a work-item that takes part; transactions: sectors of global memory, or
    passes over the banks of shared memory; least: those that would do for the same bytes in another
    order; conflicts: passes beyond `least`.
    Units: bytes_wanted is what work-items access; bytes_moved counts whole sectors of global
    memory; of shared memory it is bytes_wanted.
    """

    space: str
    is_store: bool
    requests: int = 0
    transactions: int = 0
    least: int = 0
    conflicts: int = 0
    bytes_wanted: int = 0
    bytes_moved: int = 0
    worst: WorstWarp | None = None


@dataclass(frozen=True)
class RowCosts:
    """The costs of an access for rows of work-items that execute it together: transactions, and the
    least that would do. `pair` returns two lanes of a row that cause the difference."""

    transactions: Array
    least: Array
    pair: Callable[[int], tuple[int, int]]

    def worse(self, worst: WorstWarp | None) -> int | None:
        """Return the row with the most needless transactions, None if `worst` has as many."""
        excess = self.transactions - self.least
        row = int(np.argmax(excess))
        least = 0 if worst is None else worst.transactions - worst.least
        return row if excess[row] > least else None

    def example(self, row: int, items: Array, elements: Array) -> WorstWarp:
        """Return a row as a WorstWarp. `items` and `elements` are those of all rows, in order."""
        width = items.size // len(self.transactions)
        lanes = [row * width + lane for lane in self.pair(row)]
        one, other = (int(n) for n in items.ravel()[lanes])
        first, second = (int(n) for n in elements.ravel()[lanes])
        totals = int(self.transactions[row]), int(self.least[row])
        return WorstWarp(*totals, (one, other), (first, second))


def count_global(count: AccessCount, first: Array, active: Mask, nbytes: int) -> RowCosts:
    """Add an access to global memory; return its costs by warp. `first` (warps, lanes) is the
    address of each work-item's first byte, `active` whether it takes part; it accesses `nbytes`."""
    moved, least = sectors(first, active, nbytes)
    count.requests += int(active.any(1).sum())
    count.transactions += int(moved.sum())
    count.least += int(least.sum())
    count.bytes_moved += int(moved.sum()) * SECTOR_BYTES
    count.bytes_wanted += int(active.sum()) * nbytes
    return RowCosts(moved, least, lambda row: _distant_lanes(first[row], active[row], nbytes))


def count_shared(count: AccessCount, first: Array, active: Mask, nbytes: int) -> RowCosts:
    """Add an access to shared memory; return its costs by part of a warp (see `words_at_once`)."""
    word, takes_part = words_at_once(first, active, nbytes)
    passes = bank_passes(word, takes_part)
    least = (passes > 0).astype(np.int64)
    count.requests += int(active.any(1).sum())
    count.transactions += int(passes.sum())
    count.least += int(least.sum())
    count.conflicts += int((passes - least).sum())
    count.bytes_wanted += int(active.sum()) * nbytes
    count.bytes_moved += int(active.sum()) * nbytes
    return RowCosts(passes, least, lambda row: _conflicting_lanes(word[row], takes_part[row]))


def _distant_lanes(first: Array, active: Mask, nbytes: int) -> tuple[int, int]:
    """Return two successive active lanes whose elements are not adjacent, or else the first two."""
    lanes = np.flatnonzero(active)
    if len(lanes) == 1:
        return int(lanes[0]), int(lanes[0])
    apart = np.abs(np.diff(first[lanes]))
    place = int(np.argmax((apart != nbytes) & (apart != 0)))
    return int(lanes[place]), int(lanes[place + 1])


def _conflicting_lanes(word: Array, active: Mask) -> tuple[int, int]:
    """Return two lanes that access different words of a bank. `word` is (lanes, words of each)."""
    banks = [np.unique(word[active & (word % BANKS == b)]) for b in range(BANKS)]
    words = max(banks, key=len)
    one, other = (np.argwhere((word == w) & active)[0][0] for w in words[:2])
    return int(one), int(other)


# --------------------------------------------------------------------------------------------------
# Asynchronous copies in progress: the cells of shared memory that they may still fill.
#
# The copies of a work-item since its last commit are a batch. A wait with a count lasts until the
# work-item has no more incomplete batches than that. From then on it sees its own copies; others
# see them after a barrier behind the wait. A BARRIER with a count is all three: a commit, a wait
# and a barrier; a text has each as a step of its own. Source: NVIDIA, PTX ISA 8.5,
# cp.async.commit_group and cp.async.wait_group.


@dataclass(frozen=True)
class UnfinishedCopy:
    """An access of a cell that a copy may still fill: the work-items and positions of the copy and
    of the access. `batches`: how many of the copier's may be incomplete; 0 if it has waited for
    the copy, and only a barrier is missing; -1 if it has not committed the copy."""

    cell: int
    items: tuple[int, int]
    positions: tuple[int, int]
    batches: int


class CopyBatches:
    """The batches of work-items that run together: how many each has committed, how many of these
    are complete, and how many of these in turn other work-items see."""

    def __init__(self, numbers: Array):
        self._first = numbers[:, 0]  # of each group, ascending
        self.committed, self.complete, self.seen = (np.zeros(numbers.shape, int) for _ in range(3))

    def commit(self, mask: NDArray[np.bool_]) -> None:
        """End a batch of each work-item."""
        self.committed += mask

    def wait(self, mask: NDArray[np.bool_], count: int) -> None:
        """Wait in each work-item until all but its last `count` batches are complete."""
        waits = np.maximum(self.complete, self.committed - count)
        self.complete = np.where(mask, waits, self.complete)

    def meet(self, groups: NDArray[np.bool_]) -> None:
        """Let the work-items of each group (groups, 1) see the complete batches of all others."""
        self.seen = np.where(groups, self.complete, self.seen)

    def of_items(self, counts: Array, items: Array) -> Array:
        """Return the counts of some work-items, by their numbers among all."""
        groups = np.searchsorted(self._first, items, "right") - 1
        of_items: Array = counts[groups, items - self._first[groups]]
        return of_items


class CellCopies:
    """The last copy to each cell of a memory, until something else is stored there."""

    def __init__(self, size: int, batches: CopyBatches):
        self._log, self._numbers = AccessLog(size), np.zeros(size, int)
        self._batches = batches

    def begin(self, access: CellAccess) -> None:
        """Record copies to cells."""
        self._log.note(access)
        committed = self._batches.of_items(self._batches.committed, access.items)
        self._numbers[access.cells] = committed

    def replace(self, access: CellAccess) -> None:
        """Record other stores to cells."""
        self._log.items[access.cells] = NO_ITEM

    def unfinished(self, access: CellAccess) -> UnfinishedCopy | None:
        """Return the first cell of an access that a copy may still fill, None if there is none."""
        copiers, numbers = self._log.items[access.cells], self._numbers[access.cells]
        is_copy = copiers != NO_ITEM
        if not is_copy.any():
            return None
        copiers = np.where(is_copy, copiers, access.items)
        complete = self._batches.of_items(self._batches.complete, copiers)
        seen = self._batches.of_items(self._batches.seen, copiers)
        races = is_copy & (numbers >= np.where(copiers == access.items, complete, seen))
        if not races.any():
            return None
        lane = int(np.argmax(races))
        cell, copier = int(access.cells[lane]), copiers[lane : lane + 1]
        committed = int(self._batches.of_items(self._batches.committed, copier)[0])
        batches = committed - int(complete[lane]) if numbers[lane] < committed else -1
        if numbers[lane] < complete[lane]:
            batches = 0
        items = int(copier[0]), int(access.items[lane])
        positions = int(self._log.positions[cell]), access.position
        return UnfinishedCopy(cell, items, positions, batches)
