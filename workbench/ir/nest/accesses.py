"""The buffer accesses of the statements of a lowered kernel, each as one flat index.

The statements are those of the statement tree; the buffers are the kernel's arguments and its
arrays in scratch memory, not its registers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from workbench.base.tensor_cores.layout import NO_AXIS
from workbench.ir.node.affine import row_major
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp


class MemoryAccess(NamedTuple):
    """A place where a statement reads or writes a buffer, as one flat index."""

    buffer: UOp
    flat: UOp
    writes: bool


def idle_lanes(linear: Iterable[UOp]) -> dict[UOp, int]:
    """Return the LOADs by which lanes of a warp read rows of matrices, with the bits of a lane's
    number that the layout of the rows does not have: only the lanes that have 0 there read."""
    layouts = {n.src[0]: n.arg[0] for n in linear if n.op is Ops.EXCHANGE}
    return {
        load: sum(1 << place for place, bit in enumerate(rows.lane.split()) if bit == NO_AXIS)
        for load, rows in layouts.items()
    }


def async_stores(linear: Iterable[UOp]) -> frozenset[UOp]:
    """Return the STOREs of a linear program that end copies which go on while the program does,
    where a device has such: of elements of an argument to a shared tile of several buffers."""
    return frozenset(node for node in linear if node.op is Ops.STORE and _is_async(node))


def _is_async(store: UOp) -> bool:
    tile, value = store.place.param, store.src[1]
    return (
        tile.op is Ops.DEFINE
        and tile.space == "shared"
        and tile.buffers > 1
        and len(store.src) == 2
        and value.op is Ops.LOAD
        and not value.dtype.is_bool
        and value.place.param.op is Ops.PARAM
    )


def buffers_of(block: UOp) -> list[UOp]:
    """Return the buffers of a statement tree: arguments by slot, then arrays in scratch."""
    buffers = [n for n in block.toposort() if is_buffer(n)]
    slots = [n for n in buffers if n.op is Ops.PARAM]
    arrays = [n for n in buffers if n.op is Ops.DEFINE]
    return [*sorted(slots, key=lambda n: n.slot), *sorted(arrays, key=lambda n: n.name)]


def accesses(statement: UOp) -> tuple[MemoryAccess, ...]:
    """Return the buffer accesses of a STORE or ACCUMULATE."""
    target = statement.src[0]
    loads = [n.src[0] for n in statement.toposort() if n.op is Ops.LOAD]
    memory_accesses = [MemoryAccess(at.src[0], _flat(at), False) for at in loads]
    updates = statement.op is Ops.ACCUMULATE
    memory_accesses += [MemoryAccess(target.src[0], _flat(target), w) for w in {True, not updates}]
    return tuple(a for a in memory_accesses if is_buffer(a.buffer))


def lanes_of(statement: UOp) -> tuple[UOp, ...]:
    """Return the lane axes of a statement, the one that becomes the vector last."""
    vector = vector_of(statement)
    lanes = [n for n in statement.toposort() if n.op is Ops.RANGE and n.axis_kind.is_lane]
    return tuple(sorted(lanes, key=lambda r: (r.axis_name == vector, r.axis_name)))


def vector_of(statement: UOp) -> str | None:
    """Return the name of the axis that becomes a statement's vector."""
    name: str | None
    name = statement.vector
    return name


def is_buffer(node: UOp) -> bool:
    """Whether a node is memory, and not a register."""
    if node.op is Ops.DEFINE:
        return node.space != "register"
    return node.op is Ops.PARAM


def name_of(buffer: UOp) -> str:
    """Return the name of a buffer in text: "p0", or that of an array in scratch."""
    return f"p{buffer.slot}" if buffer.op is Ops.PARAM else buffer.name


def size_of(buffer: UOp) -> int:
    """Return the elements of a buffer."""
    return math.prod(buffer.memory_shape)


def _flat(at: UOp) -> UOp:
    """Return the one flat index of an INDEX, with its gate."""
    if at.memory.op is Ops.PARAM:
        return at.flat_index
    return row_major(at.indexes, at.memory.memory_shape)
