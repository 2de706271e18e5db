"""Safe in-place outputs: kernels whose output may take over the memory of an input.

An output may, where each element of the input is read only to compute the element of the output
that takes its place: then it is read before it is written, in every order of loops, with all opts,
since what is written depends on it. Source of the idea: in-place buffers of array compilers (XLA's
donation, Halide's inplace).
"""

from __future__ import annotations

import math

from workbench.ir.nest.footprint import touched
from workbench.ir.node.exact_range import exact_range
from workbench.ir.node.ops import Ops
from workbench.ir.node.ranges import closed
from workbench.ir.node.uop import UOp, split_gate

_CLOSERS = frozenset({Ops.REDUCE, Ops.STAGE})


def reads_where_it_writes(kernel: UOp, in_slot: int, out_slot: int) -> bool:
    """Return whether the memory of slot `in_slot` may be that of slot `out_slot`, too: `kernel`, a
    simplified SINK without opts, reads each element of the one only at the index at which it writes
    the other, and for nothing but what it writes there. True where it does not read `in_slot`.

    False, to be careful, where the write has a gate or writes an element twice, and where a
    staged row lies between the two. A gate of a read only makes it read less.
    """
    if kernel.code is not None:
        return False
    ends = [end for end in kernel.src if end.store.place.param.slot == out_slot]
    if len(ends) != 1 or in_slot == out_slot:
        return False
    (end,) = ends
    nodes = kernel.toposort()
    loads = [n for n in nodes if n.op is Ops.LOAD and _reads(n, in_slot)]
    if not loads:
        return True
    written, gate = split_gate(end.store.place.flat_index)
    if gate is not None or not _writes_each_once(end, written):
        return False
    sizes = {load.dtype.itemsize for load in loads}
    if sizes != {end.store.value.dtype.itemsize}:
        return False
    return (
        all(_is_at(load, in_slot, written) for load in loads)
        and not _is_closed(nodes, loads, written)
        and all(_is_earlier(kernel, other, end, loads) for other in kernel.src)
    )


def _reads(load: UOp, slot: int) -> bool:
    return load.place.param.op is Ops.PARAM and load.place.param.slot == slot


def _writes_each_once(end: UOp, written: UOp) -> bool:
    """Whether each step of an END's ranges writes an element of its own."""
    axes = closed(end)
    if any(n.op is Ops.LOAD for n in written.toposort()):
        return False
    steps = math.prod(axis.extent for axis in axes)
    elements = touched([written], axes, end.store.place.param.length)
    return elements.exact and elements.elements == steps


def _is_at(load: UOp, slot: int, written: UOp) -> bool:
    """Whether a LOAD reads the element at the index `written`, or none."""
    if load.place.memory.op is not Ops.PARAM:  # ordered after what it reads
        return False
    index, _ = split_gate(load.place.flat_index)
    return index is written or exact_range(index + written * -1) == (0, 0)


def _is_closed(nodes: dict[UOp, None], loads: list[UOp], written: UOp) -> bool:
    """Whether a reduction or a staged row above one of `loads` is over a range of the index
    `written`: then it is read for other elements, too."""
    above = set(loads)
    for node in nodes:
        if not above.isdisjoint(node.src):
            above.add(node)
            if node.op in _CLOSERS and not written.ranges.isdisjoint(closed(node)):
                return True
    return False


def _is_earlier(kernel: UOp, other: UOp, end: UOp, loads: list[UOp]) -> bool:
    """Whether the output `other` is `end`, does not read the memory that `end` overwrites, or reads
    it before: stores in the same loops that wait for the same reductions, with nothing else in
    these loops, are in the kernel's order."""
    below = other.toposort()
    if other is end or set(loads).isdisjoint(below):
        return True
    first = {n for n in kernel.toposort() if n.op in _CLOSERS}
    return (
        kernel.src.index(other) < kernel.src.index(end)
        and closed(other) == closed(end)
        and all(n.op is Ops.REDUCE for n in first)
        and first <= below.keys() & end.toposort().keys()
    )
