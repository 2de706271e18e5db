"""Counts of the accesses of a program, and what makes one of them cost more than it has to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workbench.ir.nest.transactions import (
    BANKS,
    SECTOR_BYTES,
    Array,
    Mask,
    bank_passes,
    sectors,
    words_at_once,
)


@dataclass(frozen=True)
class WorstWarp:
    """The warp that an access costs the most: its transactions, those that would do, and two of its
    work-items (by their numbers among all) that make the difference, with their elements."""

    transactions: int
    least: int
    items: tuple[int, int]
    elements: tuple[int, int]


@dataclass
class AccessCount:
    """All accesses at one place of a program, over all warps.

    requests: warps that came there with a work-item that takes part; transactions: sectors of
    global memory, or passes over the banks of shared memory; least: those that would do for what
    is wanted, in another order; conflicts: passes beyond these.
    Units: bytes_wanted are those that work-items asked for, bytes_moved those of whole sectors.
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
    """What an access costs, for rows of work-items that do it at once: transactions, those that
    would do, and for a row two of its work-items that make the difference."""

    transactions: Array
    least: Array
    pair: Callable[[int], tuple[int, int]]

    def worse(self, worst: WorstWarp | None) -> int | None:
        """Return a row that costs more beyond what would do than `worst`."""
        excess = self.transactions - self.least
        row = int(np.argmax(excess))
        least = 0 if worst is None else worst.transactions - worst.least
        return row if excess[row] > least else None

    def example(self, row: int, items: Array, elements: Array) -> WorstWarp:
        """Return a row: `items` and `elements` are those of all work-items, row after row."""
        width = items.size // len(self.transactions)
        lanes = [row * width + lane for lane in self.pair(row)]
        one, other = (int(n) for n in items.ravel()[lanes])
        first, second = (int(n) for n in elements.ravel()[lanes])
        totals = int(self.transactions[row]), int(self.least[row])
        return WorstWarp(*totals, (one, other), (first, second))


def count_global(count: AccessCount, first: Array, active: Mask, nbytes: int) -> RowCosts:
    """Add an access to global memory: for each work-item (warps, lanes) the address of its first
    byte, and whether it takes part; `nbytes` are what one accesses."""
    moved, least = sectors(first, active, nbytes)
    count.requests += int(active.any(1).sum())
    count.transactions += int(moved.sum())
    count.least += int(least.sum())
    count.bytes_moved += int(moved.sum()) * SECTOR_BYTES
    count.bytes_wanted += int(active.sum()) * nbytes
    return RowCosts(moved, least, lambda row: _far_apart(first[row], active[row], nbytes))


def count_shared(count: AccessCount, first: Array, active: Mask, nbytes: int) -> RowCosts:
    """Add an access to shared memory."""
    word, takes_part = words_at_once(first, active, nbytes)
    passes = bank_passes(word, takes_part)
    least = (passes > 0).astype(np.int64)
    count.requests += int(active.any(1).sum())
    count.transactions += int(passes.sum())
    count.least += int(least.sum())
    count.conflicts += int((passes - least).sum())
    count.bytes_wanted += int(active.sum()) * nbytes
    count.bytes_moved += int(active.sum()) * nbytes
    return RowCosts(passes, least, lambda row: _in_one_bank(word[row], takes_part[row]))


def _far_apart(first: Array, active: Mask, nbytes: int) -> tuple[int, int]:
    """Return two lanes, neighbours whose elements are not if there are any."""
    lanes = np.flatnonzero(active)
    if len(lanes) == 1:
        return int(lanes[0]), int(lanes[0])
    apart = np.abs(np.diff(first[lanes]))
    place = int(np.argmax((apart != nbytes) & (apart != 0)))
    return int(lanes[place]), int(lanes[place + 1])


def _in_one_bank(word: Array, active: Mask) -> tuple[int, int]:
    """Return two lanes that access different words of a bank; (lanes, words of each)."""
    banks = [np.unique(word[active & (word % BANKS == b)]) for b in range(BANKS)]
    words = max(banks, key=len)
    one, other = (np.argwhere((word == w) & active)[0][0] for w in words[:2])
    return int(one), int(other)
