"""What an access of a warp costs: transactions of global memory, conflicts in shared memory.

Work-items of a warp take each step together. A load from global memory moves sectors of 32 bytes:
neighbours that read neighbouring elements share them. Shared memory has 32 banks of 4 bytes: words
of one bank are read one after the other, unless they are the same word. (NVIDIA, CUDA C++ Best
Practices Guide: coalesced access, shared memory.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.int64]
Mask = NDArray[np.bool_]
SECTOR_BYTES = 32
BANKS = 32
BANK_BYTES = 4
_NOBODY = np.int64(-1)


@dataclass
class AccessCount:
    """All accesses at one place of a program, over all warps.

    requests: warps that came there with a work-item that takes part; transactions: sectors of
    global memory, or passes over the banks of shared memory; conflicts: passes beyond those that
    the width of the access needs.
    Units: bytes_wanted are those that work-items asked for, bytes_moved those of whole sectors.
    """

    space: str
    is_store: bool
    requests: int = 0
    transactions: int = 0
    conflicts: int = 0
    bytes_wanted: int = 0
    bytes_moved: int = 0


def by_warps(values: Any, lanes: int, fill: object) -> Any:
    """Return an array (groups, items, ..) as (warps, lanes, ..): the last warp of a group is filled
    up, and a warp is of one group."""
    groups, items = values.shape[:2]
    rest = -items % lanes
    if rest:
        shape = (groups, rest, *values.shape[2:])
        values = np.concatenate([values, np.full(shape, fill, values.dtype)], axis=1)
    return values.reshape(-1, lanes, *values.shape[2:])


def count_global(count: AccessCount, first: Array, active: Mask, nbytes: int) -> None:
    """Add an access to global memory: for each work-item (warps, lanes) the address of its first
    byte, and whether it takes part; `nbytes` are what one accesses."""
    last = first + (nbytes - 1)
    sectors = -(-nbytes // SECTOR_BYTES) + 1
    touched = first[..., None] // SECTOR_BYTES + np.arange(sectors)
    is_touched = active[..., None] & (touched <= last[..., None] // SECTOR_BYTES)
    moved = _distinct(np.where(is_touched, touched, _NOBODY).reshape(len(first), -1))
    count.requests += int(active.any(1).sum())
    count.transactions += int(moved.sum())
    count.bytes_moved += int(moved.sum()) * SECTOR_BYTES
    count.bytes_wanted += int(active.sum()) * nbytes


def count_shared(count: AccessCount, first: Array, active: Mask, nbytes: int) -> None:
    """Add an access to shared memory. One of more than 4 bytes is done by as many parts of the warp
    as it has words."""
    words = max(1, nbytes // BANK_BYTES)
    lanes = first.shape[1]
    parts = min(words, lanes)
    shape = len(first) * parts, lanes // parts
    first, active = first[:, : shape[1] * parts], active[:, : shape[1] * parts]
    word = first.reshape(shape)[..., None] // BANK_BYTES + np.arange(words)
    takes_part = np.repeat(active.reshape(shape)[..., None], words, 2)
    passes = _passes(word.reshape(shape[0], -1), takes_part.reshape(shape[0], -1))
    used = passes > 0
    count.requests += int(active.any(1).sum())
    count.transactions += int(passes.sum())
    count.conflicts += int((passes - used).sum())
    count.bytes_wanted += int(active.sum()) * nbytes
    count.bytes_moved += int(active.sum()) * nbytes


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
