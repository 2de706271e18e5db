"""What an access of a warp costs: transactions of global memory, conflicts in shared memory.

Work-items of a warp take each step together. A load from global memory moves sectors of 32 bytes:
neighbours that read neighbouring elements share them. Shared memory has 32 banks of 4 bytes: words
of one bank are read one after the other, unless they are the same word. (NVIDIA, CUDA C++ Best
Practices Guide: coalesced access, shared memory.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.ir.nest.banks import BANK_BYTES, BANKS, SECTOR_BYTES

Array = NDArray[np.int64]
Mask = NDArray[np.bool_]
_NOBODY = np.int64(-1)


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


def by_warps(values: Any, lanes: int, fill: object) -> Any:
    """Return an array (groups, items, ..) as (warps, lanes, ..): the last warp of a group is filled
    up, and a warp is of one group."""
    groups, items = values.shape[:2]
    rest = -items % lanes
    if rest:
        shape = (groups, rest, *values.shape[2:])
        values = np.concatenate([values, np.full(shape, fill, values.dtype)], axis=1)
    return values.reshape(-1, lanes, *values.shape[2:])


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


def count_global(
    count: AccessCount, first: Array, active: Mask, nbytes: int
) -> RowCosts:
    """Add an access to global memory: for each work-item (warps, lanes) the address of its first
    byte, and whether it takes part; `nbytes` are what one accesses."""
    last = first + (nbytes - 1)
    whole = SECTOR_BYTES % nbytes == 0 and not (first % nbytes).any()
    sectors = 1 if whole else -(-nbytes // SECTOR_BYTES) + 1
    touched = first[..., None] // SECTOR_BYTES + np.arange(sectors)
    is_touched = active[..., None] & (touched <= last[..., None] // SECTOR_BYTES)
    moved = _distinct(np.where(is_touched, touched, _NOBODY).reshape(len(first), -1))
    request_bytes = _distinct(np.where(active, first, _NOBODY)) * nbytes
    least = -(-request_bytes // SECTOR_BYTES)
    count.requests += int(active.any(1).sum())
    count.transactions += int(moved.sum())
    count.least += int(least.sum())
    count.bytes_moved += int(moved.sum()) * SECTOR_BYTES
    count.bytes_wanted += int(active.sum()) * nbytes
    return RowCosts(
        moved, least, lambda row: _far_apart(first[row], active[row], nbytes)
    )


def count_shared(
    count: AccessCount, first: Array, active: Mask, nbytes: int
) -> RowCosts:
    """Add an access to shared memory. A warp does it in parts that have a word for each bank: one
    of 64 work-items in two halves, and more of them where an access has more than 4 bytes."""
    words = max(1, nbytes // BANK_BYTES)
    lanes = first.shape[1]
    together = max(1, min(lanes, BANKS) // words)
    parts = lanes // together
    shape = len(first) * parts, together
    first, active = first[:, : together * parts], active[:, : together * parts]
    word = first.reshape(shape)[..., None] // BANK_BYTES + np.arange(words)
    takes_part = np.repeat(active.reshape(shape)[..., None], words, 2)
    passes = _passes(word.reshape(shape[0], -1), takes_part.reshape(shape[0], -1))
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


def _distinct(values: Array) -> Array:
    """Return how many different values each row has, beside -1."""
    ordered = np.sort(values, axis=1)
    is_new = np.ones_like(ordered, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    counts: Array = (is_new & (ordered != _NOBODY)).sum(1)
    return counts


def _passes(word: Array, active: Mask) -> Array:
    """Return, for each row, the most different words that one bank has."""
    ordered = np.sort(np.where(active, word, _NOBODY), axis=1)
    is_new = np.ones_like(ordered, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    is_new &= ordered != _NOBODY
    rows = np.broadcast_to(np.arange(len(word))[:, None], ordered.shape)
    slots = rows[is_new] * BANKS + ordered[is_new] % BANKS
    in_banks = np.bincount(slots, minlength=len(word) * BANKS).reshape(len(word), BANKS)
    passes: Array = in_banks.max(1)
    return passes
