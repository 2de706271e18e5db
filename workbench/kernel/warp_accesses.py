"""The memory accesses of a warp's instructions: which elements the lanes of one load or store
access together, and the sectors or passes over banks that this takes.

The instructions are those of the linear program of one work-item, from which source is written. A
warp is the neighbouring work-items of a group that take each step together; on a processor an
instruction has the lanes of its vector alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.backends.device import Device
from workbench.backends.native.machine import line_bytes
from workbench.base.errors import WorkbenchError, plural
from workbench.base.terminal import Printed
from workbench.base.trace import unobserved
from workbench.ir.nest.accesses import idle_lanes, name_of
from workbench.ir.nest.transactions import BANK_BYTES, BANKS, bank_passes, sectors, words_at_once
from workbench.ir.node.exact_range import index_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.runnable import RunnableKernel
from workbench.pipeline import stages

Array = np.ndarray[Any, Any]
MOST_ITEMS = 1 << 12
"""Most work-items of a group whose addresses are computed."""
MOST_PRINTED = 8
"""Most elements of an instruction that are printed."""
NAME_WIDTH = 8
"""Characters of the name of an instruction."""


@dataclass(frozen=True, slots=True, repr=False)
class WarpInstruction(Printed):
    """A load or store of a warp. `elements` has a row for each lane with the numbers of the
    elements that it accesses in `buffer`, -1 where it takes no part; None where they depend on
    memory. `place` is the number of the instruction in the linear program.

    `transactions` counts sectors of memory (of a processor cache lines), or passes over the banks
    of shared memory, as `unit` says; `least` is what the same data would take in the best order.
    """

    place: int
    buffer: UOp
    is_store: bool
    elements: Array | None
    transactions: int
    least: int
    unit: str

    @property
    def name(self) -> str:
        """ "load p1" or "store p0"."""
        return f"{'store' if self.is_store else 'load'} {name_of(self.buffer)}"

    @property
    def space(self) -> str:
        """ "memory", "shared" or, for an array of each work-item, "scratch"."""
        if self.buffer.op is Ops.PARAM:
            return "memory"
        return "shared" if self.buffer.space == "shared" else "scratch"

    @property
    def cost(self) -> str:
        """The transactions in words."""
        if self.elements is None:
            return "its addresses depend on memory"
        if self.space == "scratch":
            return "memory of each lane"
        words = plural(self.transactions, self.unit)
        return words if self.transactions <= self.least else f"{words}, {self.least} would do"

    @property
    def banks(self) -> Array | None:
        """The bank of each element, if the buffer begins with bank 0."""
        if self.elements is None:
            return None
        return self.elements * self.buffer.dtype.itemsize // BANK_BYTES % BANKS

    def __str__(self) -> str:
        if self.elements is None:
            return f"{self.name}: {self.cost}"
        active = self.elements[(self.elements >= 0).any(axis=1)]
        flat = [str(n) for n in active.reshape(-1)[:MOST_PRINTED].tolist()]
        more = ["..."] if active.size > MOST_PRINTED else []
        lanes = plural(len(active), "lane")
        wide = f" of {active.shape[1]} elements" if active.shape[1] > 1 else ""
        return f"{self.name:{NAME_WIDTH}}  {lanes}{wide}, {self.cost}: {' '.join([*flat, *more])}"


@dataclass(frozen=True, slots=True, repr=False)
class WarpAccesses(Printed):
    """The loads and stores of a warp of `lanes` work-items, number `warp` of `warps` of its group,
    in the order of the program; `axes` has the loops and the axes of the grid, which stand at
    `at`."""

    warp: int
    warps: int
    lanes: int
    axes: Mapping[str, UOp]
    at: Mapping[str, int]
    instructions: tuple[WarpInstruction, ...]

    def __str__(self) -> str:
        stands = "".join(f", {name}={place}" for name, place in self.at.items())
        head = f"warp {self.warp} of {self.warps}: {plural(self.lanes, 'lane')}{stands}"
        return "\n".join([head, *map(str, self.instructions)])


def warp_accesses(kernel: RunnableKernel, warp: int, at: Mapping[str, int]) -> WarpAccesses:
    """Return the accesses of one warp of a group, with loops and grid at the positions `at` (0
    where it says none).

    Errors: WorkbenchError for a warp that the group lacks, for a position out of range, and for a
    group of more than MOST_ITEMS work-items.
    """
    target = Device[kernel.device].target
    with unobserved(), without(kernel.rules_off):
        linear = stages(kernel.ast, target, upto="linear").linear
    items = [n for n in linear if n.op is Ops.SPECIAL and n.role == "item"]
    items.sort(key=lambda n: -n.dimension)
    group = WarpGroup([n.axis for n in items], target.warp_lanes, target.has_groups)
    standing = {n.axis.axis_name: n.axis for n in linear if n.op in (Ops.SPECIAL, Ops.LOOP)}
    standing = {name: axis for name, axis in standing.items() if axis not in group.axes}
    _check(group, warp, at, {name: axis.extent for name, axis in standing.items()})
    positions = {axis: UOp.index(at.get(name, 0)) for name, axis in standing.items()}
    idle = idle_lanes(linear)
    found = tuple(
        _instruction(group, place, node, conditions, idle.get(node, 0), warp, positions)
        for place, node, conditions in _accesses(linear)
    )
    return WarpAccesses(warp, group.warps, group.lanes, standing, dict(at), found)


class WarpGroup:
    """The work-items of a group: their axes, outermost first, and their warps."""

    def __init__(self, axes: Sequence[UOp], warp_lanes: int, is_gpu: bool):
        self.axes, self.warp_lanes, self.is_gpu = axes, warp_lanes, is_gpu
        self.shape = tuple(axis.extent for axis in axes)
        self.count = math.prod(self.shape)
        self.warps = -(-self.count // warp_lanes)
        self.lanes = min(warp_lanes, self.count)

    def numbers(self, warp: int) -> Array:
        """Return the numbers of the work-items of a warp."""
        return np.arange(warp * self.warp_lanes, min((warp + 1) * self.warp_lanes, self.count))

    def values(self, index: UOp, warp: int) -> Array | None:
        """Return an expression at each work-item of a warp; None if it depends on memory."""
        values = index_values([index], self.axes, MOST_ITEMS)
        if values is None:
            return None
        return np.broadcast_to(values[0], self.shape).reshape(-1)[self.numbers(warp)]


def _check(group: WarpGroup, warp: object, at: Mapping[str, int], sizes: Mapping[str, int]) -> None:
    if group.count > MOST_ITEMS:
        because = f"a group has {group.count:,} work-items, and up to {MOST_ITEMS:,} are listed"
        raise WorkbenchError("these work-items are too many", because, "a smaller LOCAL axis")
    if type(warp) is not int or not 0 <= warp < group.warps:
        because = f"a group has {plural(group.warps, 'warp')}, from 0 on"
        raise WorkbenchError(f"there is no warp {warp!r:.40}", because, "warp=0")
    for name, position in at.items():
        if name not in sizes:
            because = f"loops and grid are {', '.join(sizes) or 'none'}"
            raise WorkbenchError(f"{name!r:.40} is no axis around the warp", because, "one of them")
        if type(position) is not int or not 0 <= position < sizes[name]:
            because = f"it goes from 0 to {sizes[name] - 1}"
            raise WorkbenchError(f"cannot stand at {name}={position!r:.40}", because, f"{name}=0")


def _accesses(linear: Sequence[UOp]) -> Iterator[tuple[int, UOp, tuple[UOp, ...]]]:
    """Yield the loads and stores of a linear program, with their numbers and the conditions around
    them."""
    conditions: list[UOp] = []
    for place, node in enumerate(linear):
        if node.op is Ops.IF:
            conditions.append(node.condition)
        elif node.op is Ops.ENDIF:
            conditions.pop()
        elif node.op in (Ops.LOAD, Ops.STORE):
            yield place, node, tuple(conditions)


def _instruction(
    group: WarpGroup,
    place: int,
    node: UOp,
    conditions: Sequence[UOp],
    idle: int,
    warp: int,
    positions: Mapping[UOp, UOp],
) -> WarpInstruction:
    is_store = node.op is Ops.STORE
    value, gates = (node.src[1], node.src[2:]) if is_store else (node, node.src[1:])
    memory, index = node.place.param, node.place.src[1]
    width = value.dtype.count
    first = group.values(index.substitute(positions), warp)
    active = group.numbers(warp) % group.warp_lanes & idle == 0
    masks = np.repeat(active[:, None], width, axis=1)
    for condition in (*conditions, *gates[:1]):
        lanes = _gates(condition.substitute(positions), group, warp, width)
        if lanes is None:
            first = None
        else:
            masks &= lanes
    if first is None:
        return WarpInstruction(place, memory, is_store, None, 0, 0, "")
    elements = np.where(masks, first[:, None] + np.arange(width), -1).astype(np.int64)
    if group.is_gpu:
        counts = _transactions(memory, first, np.asarray(masks.any(axis=1)), width)
    else:
        counts = _cache_lines(memory, elements)
    return WarpInstruction(place, memory, is_store, elements, *counts)


def _gates(condition: UOp, group: WarpGroup, warp: int, width: int) -> Array | None:
    """Return where a condition holds: a row for each lane, of one column or of one for each element
    of a vector; None if it depends on memory."""
    parts = [_element(condition, n) for n in range(width if condition.dtype.count > 1 else 1)]
    columns = [None if part is None else group.values(part, warp) for part in parts]
    known = [column for column in columns if column is not None]
    return np.stack(known, axis=1).astype(bool) if len(known) == len(columns) else None


def _element(node: UOp, number: int) -> UOp | None:
    """Return one element of a vector as an expression of scalars; None if that is not known."""
    if node.dtype.count == 1:
        return node
    if node.op is Ops.BROADCAST:
        return node.src[0]
    if node.op is Ops.STACK:
        return node.src[number]
    if node.op is Ops.LANES:
        return UOp.const(node.dtype.scalar, node.arg[number])
    sources = [_element(source, number) for source in node.src]
    known = tuple(source for source in sources if source is not None)
    if not node.is_elementwise or len(known) < len(sources):
        return None
    return UOp(node.op, node.dtype.scalar, known, node.arg)


def _cache_lines(memory: UOp, elements: Array) -> tuple[int, int, str]:
    """Return the cache lines of an access by a processor, if the buffer begins with one."""
    itemsize, line = memory.dtype.itemsize, line_bytes()
    touched = np.unique(elements[elements >= 0])
    lines = np.unique(touched * itemsize // line)
    return len(lines), -(-len(touched) * itemsize // line), "cache line"


def _transactions(memory: UOp, first: Array, active: Array, width: int) -> tuple[int, int, str]:
    """Return the sectors or passes over banks of an access, the least of the same data, and which
    of both they are."""
    nbytes = memory.dtype.itemsize * width
    addresses = (first * memory.dtype.itemsize).astype(np.int64)[None]
    if memory.op is Ops.PARAM:
        moved, least = sectors(addresses, active[None], nbytes)
        return int(moved.sum()), int(least.sum()), "sector"
    if memory.space != "shared":
        return 0, 0, ""
    passes = bank_passes(*words_at_once(addresses, active[None], nbytes))
    return int(passes.sum()), int(np.minimum(passes, 1).sum()), "pass"
