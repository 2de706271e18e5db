"""Transactions of an access of warps, from the addresses of its work-items.

Work-items of a warp take each step together. An access of global memory moves sectors of 32 bytes:
neighbours that access neighbouring elements share them. Shared memory has 32 banks of 4 bytes:
words of one bank are read one after the other, unless they are the same word.

The model has addresses of index algebra, the emulator those of a run. Source: NVIDIA, CUDA C++ Best
Practices Guide (coalesced access, shared memory); other makers' GPUs have the same form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]
Mask = NDArray[np.bool_]
BANKS = 32
BANK_BYTES = 4
SECTOR_BYTES = 32
"""What global memory moves at least."""
_NOBODY = np.iinfo(np.int64).min


def by_warps(values: Any, lanes: int, fill: object) -> Any:
    """Return an array (groups, items, ..) as (warps, lanes, ..): the last warp of a group is filled
    up, and a warp is of one group."""
    groups, items = values.shape[:2]
    rest = -items % lanes
    if rest:
        shape = (groups, rest, *values.shape[2:])
        values = np.concatenate([values, np.full(shape, fill, values.dtype)], axis=1)
    return values.reshape(-1, lanes, *values.shape[2:])


def sectors(first: Array, active: Mask, nbytes: int) -> tuple[Array, Array]:
    """Return, for each warp, the sectors that it touches, and those that would hold what it wants.
    `first` has the address of the first byte of each work-item (warps, lanes), `active` whether it
    takes part; `nbytes` are what one accesses."""
    last = first + (nbytes - 1)
    whole = SECTOR_BYTES % nbytes == 0 and not (first % nbytes).any()
    most = 1 if whole else -(-nbytes // SECTOR_BYTES) + 1
    touched = first[..., None] // SECTOR_BYTES + np.arange(most)
    is_touched = active[..., None] & (touched <= last[..., None] // SECTOR_BYTES)
    moved = _distinct(np.where(is_touched, touched, _NOBODY).reshape(len(first), -1))
    wanted_bytes = _distinct(np.where(active, first, _NOBODY)) * nbytes
    return moved, -(-wanted_bytes // SECTOR_BYTES)


def words_at_once(
    first: Array, active: Mask, nbytes: int, banks: int = BANKS
) -> tuple[Array, Mask]:
    """Return the words of shared memory that work-items access at once, and whether they do (parts,
    lanes, words). A warp accesses in parts that have a word for each of `banks`: one of 64
    work-items in two halves, and more of them where an access has more than 4 bytes."""
    words = max(1, nbytes // BANK_BYTES)
    lanes = first.shape[1]
    together = max(1, min(lanes * banks // BANKS, banks) // words)
    first, active = by_warps(first, together, 0), by_warps(active, together, False)
    word = first[..., None] // BANK_BYTES + np.arange(words)
    return word, np.repeat(active[..., None], words, 2)


def bank_passes(word: Array, active: Mask) -> Array:
    """Return, for each row of words, the most different ones that one bank has."""
    rows = len(word)
    word, active = word.reshape(rows, -1), active.reshape(rows, -1)
    is_new, ordered = _first_of_each(np.where(active, word, _NOBODY))
    row = np.broadcast_to(np.arange(rows)[:, None], ordered.shape)
    slots = row[is_new] * BANKS + ordered[is_new] % BANKS
    in_banks = np.bincount(slots, minlength=rows * BANKS).reshape(rows, BANKS)
    passes: Array = in_banks.max(1)
    return passes


def _distinct(values: Array) -> Array:
    """Return how many different values each row has."""
    counts: Array = _first_of_each(values)[0].sum(1)
    return counts


def _first_of_each(values: Array) -> tuple[Mask, Array]:
    """Return rows in order, and where each value stands first; that of no work-item is left out."""
    ordered = np.sort(values, axis=1)
    is_new = np.ones_like(ordered, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return is_new & (ordered != _NOBODY), ordered
