"""The bytes that a run of work-groups moves from each level of a GPU's memory.

There is one rule. Of the data that a step of a loop touches, and that a later step touches again,
a share is still in a cache: all of it where they fit, and less the more they exceed it. That share
the whole loop loads once; the rest each step loads again. Work-items take a step together: for the
first cache those of all groups in a unit, for later ones those of all groups that run at a time.
Sources: the capacity-miss models of loop tiling (`cost/cache_traffic.py`); for the share, caches
that replace lines at random, as those of GPUs nearly do (X. Mei and X. Chu, Dissecting GPU Memory
Hierarchy through Microbenchmarking, 2017).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from workbench.base.target import Hardware, Target
from workbench.cost.gpu.warp_accesses import WarpAccess
from workbench.ir.nest.accesses import size_of
from workbench.ir.nest.footprint import runs
from workbench.ir.nest.transactions import SECTOR_BYTES
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp

L2_OF_DRAM = 3.0
"""How much faster than memory a second cache is where its speed is not published (of NVIDIA's V100
and A100 it is 3.1 and 4.6 times)."""
STEPS = 64
"""Steps of the equation for the share that a cache keeps."""
Bytes = Counter[UOp]
"""Bytes by memory."""
Footprint = Callable[[UOp, Sequence[WarpAccess], Collection[UOp]], int]
"""The bytes of a memory that accesses touch while some ranges run."""


class Residency(NamedTuple):
    """The groups of a launch: how many in all, in a unit, and in all units at a time."""

    groups: int
    in_unit: int
    at_once: int


@dataclass(slots=True)
class LoopAccesses:
    """A loop, or the whole program: its accesses, and the loops in it."""

    axis: UOp | None = None
    accesses: list[WarpAccess] = field(default_factory=list)
    loops: list[LoopAccesses] = field(default_factory=list)

    @property
    def everything(self) -> list[WarpAccess]:
        """The accesses in it, at any depth."""
        return [*self.accesses, *(a for inner in self.loops for a in inner.everything)]

    @property
    def axes(self) -> set[UOp]:
        """The axes of the loops in it, without its own."""
        inner = [{*s.axes, s.axis} for s in self.loops if s.axis is not None]
        return set().union(*inner)


def bytes_from(
    linear: Sequence[UOp], accesses: Sequence[WarpAccess], target: Target, residency: Residency
) -> dict[str, int]:
    """Return the bytes of a run from "L1" (those that loads and stores move), each later cache of
    the target, and "memory". Runs follow each other: what a cache keeps is there already."""
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
    # an index that is no sum of steps has a footprint that is too large
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
        # the run before left a part of it there
        lost = 1 - kept_share(whole.total(), size)
        above = Counter({memory: round(lost * n) for memory, n in below.items()})
        name = shared[number + 1][0] if number + 1 < len(shared) else "memory"
        moved[name] = above.total()
    return moved


def kept_share(touched_bytes: int, cache_bytes: int) -> float:
    """Return the share of data that a cache still has when they are touched again, in turns: of
    lines that are replaced at random, each is there with the chance that none of the misses
    between has taken its place.

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
    """Return the bytes per second from each level of memory, the fastest first."""
    dram = hardware.bandwidth("DRAM")
    second = hardware.bandwidth("L2") or L2_OF_DRAM * dram
    first = hardware.bandwidth("L1") or hardware.bandwidth("shared") or 2 * second
    third = hardware.bandwidth("L3")
    levels = {"L1": first, "L2": second} | ({"L3": third} if third else {})
    return levels | {"memory": dram}


def _requested(program: LoopAccesses) -> Bytes:
    """Return the bytes that a group's loads and stores move from or to each memory."""
    requested = Bytes()
    for access in program.everything:
        requested[access.memory] += access.moved_bytes
    return requested


def scopes(linear: Sequence[UOp], accesses: Sequence[WarpAccess]) -> LoopAccesses:
    """Return the loops of a linear program with their accesses of global memory, in their order."""
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
    """Return the bytes that one run of a scope loads into a cache with this much `room`."""
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
    more = max(a.item_bytes for a in accesses) // itemsize - 1  # of the last vector
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
    """Return what `groups` neighbouring groups touch: whole inner `axes` of the grid, the innermost
    first, and a part of the next one."""
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
