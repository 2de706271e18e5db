"""The bytes that a run of work-groups moves from each level of a GPU's memory.

There is one rule. Of the data that a step of a loop touches and a later step touches again, a share
is still in a cache: all of it if the data fit, and less the more they exceed the cache. The whole
loop loads that share once, and each step loads the rest again. Work-items take a step together: all
those of a unit in the first cache, and all those that run at a time in later caches. Sources: the
capacity-miss models of loop tiling (`cost/cache_traffic.py`); for the share, caches that replace
lines at random, as those of GPUs nearly do (X. Mei and X. Chu, Dissecting GPU Memory Hierarchy
through Microbenchmarking, 2017).

Sections: The memory accesses of warps; The bytes from each level of memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.base.target import Hardware, Target
from workbench.cost.gpu.item_work import merged_loads
from workbench.ir.nest.accesses import idle_lanes, size_of
from workbench.ir.nest.estimates import runs
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
from workbench.ir.node.exact_range import index_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, leaves

# --------------------------------------------------------------------------------------------------
# The memory accesses of warps in a program of work-items, and their costs.
#
# The addresses follow from the index at every work-item of a group; axes that are not work-items
# are at 0. Both kinds of memory share one pipe: a request takes a cycle of it at least, and more
# for each further 128 bytes, or each bank conflict.

Place = Literal["global", "shared", "private"]
PASS_SECTORS = 4
"""Sectors that pass through the first cache in a cycle."""
MOST_ITEMS = 1 << 12
"""The maximal number of steps of axes at which an index is computed."""


@dataclass(frozen=True, slots=True)
class WarpAccess:
    """An access of a program by one work-group; each active work-item executes it `times` times.

    `requests` counts the warps that execute it. `transactions` counts the sectors that they move,
    or their passes over the banks of shared memory, and `least` those that the same data would
    need in the best order. `pipe` is the cycles of the pipe to both memories, after a compiler has
    merged accesses. Units: `item_bytes` for a work-item at a time, `wanted_bytes` for all
    work-items of the group in a run.
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
    """The work-items of a group: their axes, outermost first, and their warps."""

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
        """Return the value of an expression at each work-item; None if it depends on memory."""
        values = index_values([index], self.axes, MOST_ITEMS, others_stand=True)
        if values is None:
            return None
        return np.broadcast_to(values[0], self.shape).reshape(-1).astype(np.int64)

    def in_warps(self, values: Any, fill: int) -> Any:
        """Return an array over work-items with a row for each warp."""
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
    """Yield each node with its executions by a work-item, the conditions around it that choose
    work-items, and its loops. A condition that depends on loops alone, as for a tile that is filled
    some steps before it is read, reduces the executions instead."""
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
    """Return the share of the steps of loops for which a condition holds; None if it depends on
    anything else."""
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
    if place == "private":  # the private arrays of neighbours are interleaved
        at = np.arange(items.count, dtype=np.int64)
    if at is None:  # assume that each work-item accesses sectors of its own
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
    """Return the passes over the banks for the vectors of warps. Two parts of a warp, each with a
    word for each bank, take one pass if lanes in pairs, 1 or 2 apart, read the same vector (as
    measured by others; the makers do not publish it)."""
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
    """Return which parts have lanes in pairs, 1 or 2 apart, with the same start."""
    lanes = np.arange(starts.shape[1])
    apart = [n for n in (1, 2) if len(lanes) % (2 * n) == 0]
    same = [(starts == starts[:, lanes ^ n]).all(1) for n in apart]
    in_pairs: NDArray[np.bool_] = np.any(same, axis=0)
    return in_pairs


# --------------------------------------------------------------------------------------------------
# The bytes from each level of memory that a run of work-groups moves.

L2_OF_DRAM = 3.0
"""How much faster than memory L2 is, if its speed is not published (3.1 times on NVIDIA's V100,
4.6 times on A100)."""
STEPS = 64
"""Steps of Newton's method for the share that a cache keeps."""
Bytes = Counter[UOp]
"""Bytes by memory."""
Footprint = Callable[[UOp, Sequence[WarpAccess], Collection[UOp]], int]
"""A function that returns the bytes of a memory that accesses touch while some ranges run."""


class Residency(NamedTuple):
    """The groups of a launch: all, those in a unit at a time, and those in all units at a time."""

    groups: int
    in_unit: int
    at_once: int


@dataclass(slots=True)
class LoopAccesses:
    """A loop, or the whole program: its accesses, and its inner loops."""

    axis: UOp | None = None
    accesses: list[WarpAccess] = field(default_factory=list)
    loops: list[LoopAccesses] = field(default_factory=list)

    @property
    def everything(self) -> list[WarpAccess]:
        """The accesses, also those of inner loops."""
        return [*self.accesses, *(a for inner in self.loops for a in inner.everything)]

    @property
    def axes(self) -> set[UOp]:
        """The axes of the inner loops."""
        inner = [{*s.axes, s.axis} for s in self.loops if s.axis is not None]
        return set().union(*inner)


def bytes_from(
    linear: Sequence[UOp], accesses: Sequence[WarpAccess], target: Target, residency: Residency
) -> dict[str, int]:
    """Return the bytes of a run from "L1" (what loads and stores move), each later cache of the
    target, and "memory". A cache keeps data of the run before, as far as they fit."""
    program = scopes(linear, accesses)
    items = {n.axis for n in linear if n.op is Ops.SPECIAL and n.role == "item"}
    grid = [n for n in linear if n.op is Ops.SPECIAL and n.role == "grid"]
    axes = [n.axis for n in sorted(grid, key=lambda n: n.dimension)]
    groups = residency.groups

    def of_wave(memory: UOp, rows: Sequence[WarpAccess], inside: Collection[UOp]) -> int:
        return wave_footprint(memory, rows, inside, axes, residency.at_once)

    whole = _each(program.everything, {*items, *program.axes, *axes}, footprint)
    room = target.l1_bytes // residency.in_unit
    requested = _requested(program)
    from_l2 = _loads(program, items, room, footprint)
    # the footprint of an index that is not a sum of steps is too large
    from_l2 = Counter({m: min(n, requested[m]) for m, n in from_l2.items()})
    waves = groups / residency.at_once
    moved = {
        "L1": groups * sum(a.moved_bytes for a in accesses if a.place != "shared"),
        "L2": groups * from_l2.total(),
    }
    above = Counter({memory: groups * n for memory, n in from_l2.items()})
    shared = [level for level in target.caches if level[0] != "L1"]
    for number, (_, size) in enumerate(shared):
        loaded = _loads(program, items, size, of_wave)
        below = {m: min(max(whole[m], round(waves * n)), above[m]) for m, n in loaded.items()}
        # the cache still has a share of the data of the run before
        lost = 1 - kept_share(whole.total(), size)
        above = Counter({memory: round(lost * n) for memory, n in below.items()})
        name = shared[number + 1][0] if number + 1 < len(shared) else "memory"
        moved[name] = above.total()
    return moved


def kept_share(touched_bytes: int, cache_bytes: int) -> float:
    """Return the share of data that a cache still has when they are touched again in the same
    order. Lines are replaced at random: the share is the chance that none of the misses in between
    has replaced a line.

    >>> [round(kept_share(size, 100), 2) for size in (100, 110, 150, 200, 400)]
    [1.0, 0.82, 0.42, 0.2, 0.02]
    """
    if touched_bytes <= cache_bytes:
        return 1.0
    ratio, lost = touched_bytes / max(1, cache_bytes), 1.0
    for _ in range(STEPS):  # by Newton: lost = 1 - exp(-ratio * lost)
        stays = math.exp(-ratio * lost)
        lost -= (lost - 1 + stays) / (1 - ratio * stays)
    return 1 - lost


def level_speeds(hardware: Hardware) -> dict[str, float]:
    """Return the bytes per second from each level of memory, fastest first."""
    dram = hardware.bandwidth("DRAM")
    second = hardware.bandwidth("L2") or L2_OF_DRAM * dram
    first = hardware.bandwidth("L1") or hardware.bandwidth("shared") or 2 * second
    third = hardware.bandwidth("L3")
    levels = {"L1": first, "L2": second} | ({"L3": third} if third else {})
    return levels | {"memory": dram}


def _requested(program: LoopAccesses) -> Bytes:
    """Return the bytes that the loads and stores of a group move, by memory."""
    requested = Bytes()
    for access in program.everything:
        requested[access.memory] += access.moved_bytes
    return requested


def scopes(linear: Sequence[UOp], accesses: Sequence[WarpAccess]) -> LoopAccesses:
    """Return the loops of a linear program with their accesses of global memory, in order."""
    opened, rest = [LoopAccesses()], iter(accesses)
    for node in linear:
        if node.op is Ops.LOOP:
            opened.append(LoopAccesses(node.axis))
            opened[-2].loops.append(opened[-1])
        elif node.op is Ops.ENDLOOP:
            opened.pop()
        elif node.op in (Ops.LOAD, Ops.STORE):
            access = next(rest)
            if access.place == "global":
                opened[-1].accesses.append(access)
    return opened[0]


def _loads(scope: LoopAccesses, items: set[UOp], room: int, size: Footprint) -> Bytes:
    """Return the bytes that one run of a scope loads into a cache of `room` bytes, by memory."""
    step = items | scope.axes
    own = set() if scope.axis is None else {scope.axis}
    share = kept_share(_each(scope.everything, step, size).total(), room)
    once = _each(scope.everything, step | own, size)
    if share == 1:
        return once
    total = _each(scope.accesses, items, size)
    for inner in scope.loops:
        total.update(_loads(inner, items, room, size))
    steps = 1 if scope.axis is None else scope.axis.extent
    return Counter({m: round(share * once[m] + (1 - share) * steps * n) for m, n in total.items()})


def _each(accesses: Iterable[WarpAccess], inside: Collection[UOp], size: Footprint) -> Bytes:
    of_memory: dict[UOp, list[WarpAccess]] = {}
    for access in accesses:
        of_memory.setdefault(access.memory, []).append(access)
    return Counter({m: size(m, rows, inside) for m, rows in of_memory.items()})


def footprint(memory: UOp, accesses: Sequence[WarpAccess], inside: Collection[UOp]) -> int:
    """Return the bytes of the sectors that accesses touch while the ranges `inside` run."""
    itemsize, size = memory.dtype.itemsize, size_of(memory)
    line = max(1, SECTOR_BYTES // itemsize)
    more = max(a.item_bytes for a in accesses) // itemsize - 1  # of an access after its first
    parts = runs([a.index for a in accesses], inside, line)
    total = sum(n * _sectors((length + more) * itemsize) for n, length, _ in parts)
    return min(total, _sectors(size * itemsize))


def wave_footprint(
    memory: UOp,
    accesses: Sequence[WarpAccess],
    inside: Collection[UOp],
    axes: Sequence[UOp],
    groups: int,
) -> int:
    """Return the bytes that `groups` neighbouring groups touch. `axes` of the grid begin with the
    innermost: the groups take all steps of the first axes, and some steps of the next one."""
    rest, within = groups, {*inside}
    size = footprint(memory, accesses, within)
    for axis in axes:
        within.add(axis)
        whole = footprint(memory, accesses, within)
        if axis.extent > rest:
            return size + round((whole - size) * (rest - 1) / (axis.extent - 1))
        size, rest = whole, rest // axis.extent
    return size


def _sectors(nbytes: int) -> int:
    return math.ceil(nbytes / SECTOR_BYTES) * SECTOR_BYTES
