"""Transactions of an access of warps, from the addresses of its work-items.

Work-items of a warp execute each step together. An access of global memory moves sectors of 32
bytes: neighbours that access neighbouring elements share them. Shared memory has 32 banks of 4
bytes: words of one bank are read one after the other, unless they are the same word.

The cost model computes the addresses by index algebra; the emulator has those of a run. Source:
NVIDIA, CUDA C++ Best Practices Guide (coalesced access, shared memory); other makers' GPUs are
alike.
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
"""The least that global memory moves at a time."""
_INACTIVE = np.iinfo(np.int64).min


def by_warps(values: Any, lanes: int, fill: object) -> Any:
    """Return an array (groups, items, ..) as (warps, lanes, ..). A warp belongs to one group; the
    last warp of a group is padded with `fill`."""
    groups, items = values.shape[:2]
    rest = -items % lanes
    if rest:
        shape = (groups, rest, *values.shape[2:])
        values = np.concatenate([values, np.full(shape, fill, values.dtype)], axis=1)
    return values.reshape(-1, lanes, *values.shape[2:])


def sectors(first: Array, active: Mask, nbytes: int) -> tuple[Array, Array]:
    """Return, for each warp, how many sectors it touches, and how many its bytes would fill.
    `first` has the address of the first byte of each work-item (warps, lanes), `active` whether the
    work-item takes part; each accesses `nbytes`."""
    last = first + (nbytes - 1)
    whole = SECTOR_BYTES % nbytes == 0 and not (first % nbytes).any()
    most = 1 if whole else -(-nbytes // SECTOR_BYTES) + 1
    touched = first[..., None] // SECTOR_BYTES + np.arange(most)
    is_touched = active[..., None] & (touched <= last[..., None] // SECTOR_BYTES)
    moved = _distinct(np.where(is_touched, touched, _INACTIVE).reshape(len(first), -1))
    wanted_bytes = _distinct(np.where(active, first, _INACTIVE)) * nbytes
    return moved, -(-wanted_bytes // SECTOR_BYTES)


def words_at_once(
    first: Array, active: Mask, nbytes: int, banks: int = BANKS
) -> tuple[Array, Mask]:
    """Return the words of shared memory that work-items access at the same time, and whether they
    are active, as (parts, lanes, words). A part has at most one word for each of `banks`: a warp of
    64 work-items has two parts, and more if an access has more than 4 bytes."""
    words = max(1, nbytes // BANK_BYTES)
    lanes = first.shape[1]
    together = max(1, min(lanes * banks // BANKS, banks) // words)
    first, active = by_warps(first, together, 0), by_warps(active, together, False)
    word = first[..., None] // BANK_BYTES + np.arange(words)
    return word, np.repeat(active[..., None], words, 2)


def bank_passes(word: Array, active: Mask) -> Array:
    """Return, for each row of words, the most different words that are in one bank."""
    rows = len(word)
    word, active = word.reshape(rows, -1), active.reshape(rows, -1)
    is_new, ordered = _first_of_each(np.where(active, word, _INACTIVE))
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
    """Return (where a value stands first in its row, the rows sorted); _INACTIVE stands nowhere."""
    ordered = np.sort(values, axis=1)
    is_new = np.ones_like(ordered, bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return is_new & (ordered != _INACTIVE), ordered
