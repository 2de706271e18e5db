"""The memory accesses of a program of work-items, and what each costs a warp.

The addresses follow from the index at every work-item of a group; axes that are not work-items are
at 0. Both kinds of memory are behind one pipe: a request takes it for a cycle at least, and for one
more for each 128 bytes, or each conflict of banks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from workbench.cost.gpu.instructions import merged_loads
from workbench.ir.nest.accesses import idle_lanes
from workbench.ir.nest.transactions import (
    BANK_BYTES,
    BANKS,
    SECTOR_BYTES,
    Array,
    bank_passes,
    by_warps,
    sectors,
    words_at_once,
)
from workbench.ir.node.index_values import index_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, leaves

Place = Literal["global", "shared", "private"]
PASS_SECTORS = 4
"""Sectors that pass through the first cache in a cycle."""
MOST_ITEMS = 1 << 12


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """An access at one place of a program, by one work-group: `times` by each of its work-items
    that takes part.

    requests: warps that come there; transactions: sectors that they move, or passes over the banks
    of shared memory; least: those that would do for what is wanted, in another order; pipe: cycles
    of the pipe to both memories, where a compiler makes one instruction of what it can. Units:
    item_bytes are those that a work-item wants at a time, wanted_bytes those of the group.
    """

    memory: UOp
    index: UOp
    place: Place
    is_store: bool
    times: int
    item_bytes: int
    requests: int
    transactions: int
    least: int
    wanted_bytes: int
    pipe: float

    @property
    def moved_bytes(self) -> int:
        """The bytes of whole sectors that a group moves from or to global memory."""
        return self.transactions * SECTOR_BYTES


class ItemNumbers:
    """The work-items of a group: their axes, the outermost first, and the warps they are in."""

    def __init__(self, linear: Sequence[UOp], warp_lanes: int):
        numbers = [n for n in linear if n.op is Ops.SPECIAL and n.role == "item"]
        numbers.sort(key=lambda n: -n.dimension)
        self.axes = [n.axis for n in numbers]
        self.shape = tuple(axis.extent for axis in self.axes)
        self.count = math.prod(self.shape)
        self.lanes = min(warp_lanes, max(1, self.count))
        self.warps = -(-self.count // warp_lanes)
        self.warp_lanes = warp_lanes

    def at(self, index: UOp) -> Array | None:
        """Return the value of an expression at each work-item; None where it depends on memory."""
        values = index_values([index], self.axes, MOST_ITEMS, others_stand=True)
        if values is None:
            return None
        return np.broadcast_to(values[0], self.shape).reshape(-1).astype(np.int64)

    def in_warps(self, values: Any, fill: int) -> Any:
        """Return an array of work-items as one row for each warp."""
        return by_warps(values[None], self.warp_lanes, fill)


def warp_accesses(linear: Sequence[UOp], warp_lanes: int) -> list[WarpAccess]:
    """Return the accesses of a linear program, in their order."""
    items, idle = ItemNumbers(linear, warp_lanes), idle_lanes(linear)
    return [
        _access(items, node, times, conditions, idle.get(node, 0), loops)
        for node, times, conditions, loops in _executed(linear)
        if node.op in (Ops.LOAD, Ops.STORE)
    ]


def _executed(linear: Sequence[UOp]) -> Iterator[tuple[UOp, int, tuple[UOp, ...], Sequence[UOp]]]:
    """Yield each node with how often a work-item comes to it, the conditions around it that choose
    work-items, and its loops: conditions of loops alone, as of a tile that is filled steps before
    it is read, are in how often."""
    times, conditions, loops = [1], list[UOp | None](), list[UOp]()
    for node in linear:
        if node.op is Ops.LOOP:
            loops.append(node.axis)
            times.append(times[-1] * node.axis.extent)
        elif node.op is Ops.ENDLOOP:
            loops.pop()
            times.pop()
        elif node.op is Ops.IF:
            share = _share_of_steps(node.condition, loops)
            conditions.append(node.condition if share is None else None)
            times.append(round(times[-1] * (1 if share is None else share)))
        elif node.op is Ops.ENDIF:
            conditions.pop()
            times.pop()
        else:
            count = times[-1]
            if node.op is Ops.LOAD and len(node.src) > 1:
                gate = node.src[1]
                if gate.op is Ops.BROADCAST:
                    gate = gate.src[0]
                share = _share_of_steps(gate, loops)
                count = count if share is None else round(count * share)
            yield node, count, tuple(c for c in conditions if c is not None), loops


def _share_of_steps(condition: UOp, loops: Sequence[UOp]) -> float | None:
    """Return the share of the steps of loops for which a condition holds; None where it depends on
    more than these."""
    axes = [*leaves([condition], Ops.RANGE)]
    if not axes or not set(axes) <= set(loops):
        return None
    values = index_values([condition], axes, MOST_ITEMS)
    return None if values is None else float(np.mean(values[0]))


def _access(
    items: ItemNumbers,
    node: UOp,
    times: int,
    conditions: Sequence[UOp],
    idle: int,
    loops: Sequence[UOp],
) -> WarpAccess:
    is_store = node.op is Ops.STORE
    value, gates = (node.src[1], node.src[2:]) if is_store else (node, node.src[1:])
    memory, index = node.place.param, node.place.src[1]
    nbytes = memory.dtype.itemsize * value.dtype.count
    active = np.arange(items.count) % items.warp_lanes & idle == 0
    for condition in (*conditions, *gates[:1]):
        holds = items.at(condition) if condition.dtype.count == 1 else None
        active = active if holds is None else active & holds.astype(bool)
    place: Place = "global"
    if memory.op is not Ops.PARAM:
        place = "shared" if memory.space == "shared" else "private"
    at = items.at(index)
    if place == "private":  # neighbours' arrays lie side by side
        at = np.arange(items.count, dtype=np.int64)
    if at is None:  # each work-item has a place of its own
        at = np.arange(items.count, dtype=np.int64) * max(1, SECTOR_BYTES // nbytes + 1)
    elements = items.in_warps(at * memory.dtype.itemsize, 0)
    takes_part = items.in_warps(active, 0)
    if place == "shared":
        counts = bank_passes(*words_at_once(elements, takes_part, nbytes))
        leasts = np.minimum(counts, 1)
    else:
        counts, leasts = sectors(elements, takes_part, nbytes)
    transactions, least = int(counts.sum()), int(leasts.sum())
    total_bytes = int(takes_part.sum()) * nbytes * times
    requests = int(takes_part.any(1).sum()) * times
    if place == "shared":
        merged = merged_loads(node, loops)
        pipe = _pipe_passes(elements, takes_part, merged * nbytes) / merged
    else:
        pipe = max(transactions / PASS_SECTORS, requests / max(1, times))
    return WarpAccess(
        memory, index, place, is_store, times, nbytes, requests,
        transactions * times, least * times, total_bytes, pipe * times,
    )  # fmt: skip


def _pipe_passes(first: Array, active: NDArray[np.bool_], nbytes: int) -> int:
    """Return the passes of the vectors of warps. Two parts of a warp that each have a word for each
    bank are one where neighbours in pairs, or those two apart, read the same vector (as measured by
    others; the makers say nothing of it)."""
    banks = BANKS if nbytes <= BANK_BYTES else 2 * BANKS
    word, takes_part = words_at_once(first, active, nbytes, banks)
    whole = bank_passes(word, takes_part)
    if banks == BANKS or word.shape[1] == 1:
        return int(whole.sum())
    half = 2 * len(word), word.shape[1] // 2, word.shape[2]
    halves = bank_passes(word.reshape(half), takes_part.reshape(half))
    apart = halves.reshape(-1, 2).sum(1)
    return int(np.where(_in_pairs(word[..., 0]), whole, apart).sum())


def _in_pairs(starts: Array) -> NDArray[np.bool_]:
    """Return the parts in which neighbours in pairs, or those two apart, have the same start."""
    lanes = np.arange(starts.shape[1])
    apart = [n for n in (1, 2) if len(lanes) % (2 * n) == 0]
    same = [(starts == starts[:, lanes ^ n]).all(1) for n in apart]
    in_pairs: NDArray[np.bool_] = np.any(same, axis=0)
    return in_pairs
