"""Writes in place: a write to a part of memory, and the reads that make one unsafe.

Sections: In-place writes to a part of memory; Safe in-place outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from workbench.base.dtypes import dtypes
from workbench.ir.nest.estimates import touched
from workbench.ir.node import construct
from workbench.ir.node.exact_range import exact_range
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, closed, gated, split_gate
from workbench.ir.schedule.build import named
from workbench.ir.schedule.plan import ScheduleItem
from workbench.ir.schedule.schedule import simplified

# --------------------------------------------------------------------------------------------------
# In-place writes to a part of memory: only the part is computed and stored.
#
# A write to a part makes an expression of the whole, `WHERE(inside, value, old)`. Where it is
# written over `old`, what is outside is there already, so the kernel's loops go over the part
# alone.

TRUE = UOp.const(dtypes.bool, True)
Interval = tuple[int, int]
"""The first value of a range, and the one after its last."""


def narrowed(item: ScheduleItem, old: UOp) -> ScheduleItem:
    """Return `item` without the elements that it would write unchanged. It writes its result over
    the BUFFER `old`, and reads each element where it writes it.

    Rewrite: for i in 8: new[i] = i < 2 ? x[i] : old[i]   ->   for i in 2: new[i] = x[i]
    """
    kernel = item.kernel
    if kernel is None or len(kernel.src) != 1 or item.is_users:
        return item
    slot = item.buffers.index(old)
    kernel = _at_position(kernel, slot)
    end = kernel.src[0]
    part = _part(end.store, slot)
    axes = {axis: part[axis] for axis in closed(end) if axis in part}
    axes = {a: (lo, hi) for a, (lo, hi) in axes.items() if _is_piece(a, lo, hi)}
    if not axes and kernel is item.kernel:
        return item
    shorter = {
        axis: UOp.range(hi - lo, axis.axis_name, axis.axis_kind) + lo
        for axis, (lo, hi) in axes.items()
    }
    return simplified(replace(item, kernel=named(kernel.substitute(shorter))))


def _is_piece(axis: UOp, lo: int, hi: int) -> bool:
    return 0 <= lo < hi <= axis.extent and hi - lo < axis.extent


def _at_position(kernel: UOp, slot: int) -> UOp:
    """Return a kernel without the loops over axes along which it changes one position that it reads
    from memory: it stores at that position alone, if the axis has it.

    Rewrite: for i in 8: new[i] = i == p[0] ? x : old[i]   ->   new[p[0] if 0 <= p[0] < 8] = x
    """
    end = kernel.src[0]
    store, axes = end.store, set(closed(end))
    index, gate = split_gate(store.place.flat_index)
    if store.value.op is not Ops.WHERE or gate is not None:
        return kernel
    condition, inside, old = store.value.src
    if not _is_old(old, slot, index):
        return kernel
    places: dict[UOp, UOp] = {}
    rest = TRUE
    for part in _conjuncts(condition):
        axis, value = _equality(part)
        if axis in axes and axis not in places and value.op is not Ops.CONST:
            places[axis] = value.cast(dtypes.index)
        else:
            rest = part if rest is TRUE else rest & part
    if not places:
        return kernel
    value = inside if rest is TRUE else rest.where(inside, old)
    valid = TRUE
    for axis, place in places.items():
        is_inside = (place >= 0) & (place < axis.extent)
        valid = is_inside if valid is TRUE else valid & is_inside
    place = store.place.replace(src=(store.place.src[0], gated(index, valid)))
    order = [n for n in kernel.arg.order if n not in {a.axis_name for a in places}]
    one = end.replace(src=(store.replace(src=(place, value)), *end.src[1:]))
    return construct.in_order(kernel.replace(src=(one,)).substitute(places), order)


def _equality(condition: UOp) -> tuple[UOp, UOp]:
    """Return (axis, value) if a condition is their equality and the value depends on no axis; else
    the condition twice."""
    if condition.op is Ops.CMPEQ:
        for axis, value in (condition.src, condition.src[::-1]):
            if axis.op is Ops.CAST and axis.dtype.is_int:
                most, axis = int(axis.dtype.max), axis.src[0]
                if axis.op is Ops.RANGE and axis.extent - 1 > most:  # it wraps
                    continue
            if axis.op is Ops.RANGE and not value.ranges and value.dtype.is_int:
                return axis, value
    return condition, condition


def _part(store: UOp, slot: int) -> dict[UOp, Interval]:
    """Return an interval for ranges of a STORE: outside of it, the STORE writes what the memory of
    `slot` contains already. {} where that is not known."""
    written, _ = split_gate(store.place.flat_index)
    part: dict[UOp, Interval] | None = None
    value = store.value
    while value.op is Ops.WHERE:
        condition, inside, value = value.src
        intervals = _intervals(condition)
        part = intervals if part is None else _hull(part, intervals)
    if part is None or not _is_old(value, slot, written):
        return {}
    return part


def _is_old(value: UOp, slot: int, written: UOp) -> bool:
    """Whether a value is the element of the memory of `slot` at the index `written`."""
    if value.op is not Ops.LOAD or value.place.memory.op is not Ops.PARAM:
        return False
    index, gate = split_gate(value.place.flat_index)
    is_there = index is written or exact_range(index + written * -1) == (0, 0)
    return gate is None and value.place.param.slot == slot and is_there


def _hull(a: dict[UOp, Interval], b: dict[UOp, Interval]) -> dict[UOp, Interval]:
    """Return the intervals that contain those of `a` and of `b`, for ranges in both."""
    return {r: (min(a[r][0], b[r][0]), max(a[r][1], b[r][1])) for r in a if r in b}


def _intervals(condition: UOp) -> dict[UOp, Interval]:
    """Return, for the ranges that a condition bounds, the values at which it may be true."""
    intervals: dict[UOp, Interval] = {}
    for part in _conjuncts(condition):
        axis, value = _equality(part)
        if axis.op is Ops.RANGE and value.op is Ops.CONST:
            intervals[axis] = int(value.arg), int(value.arg) + 1
        if part.op is not Ops.CMPLT:
            continue
        left, right = part.src
        axis, constant = (right, left) if left.op is Ops.CONST else (left, right)
        if axis.op is not Ops.RANGE or constant.op is not Ops.CONST:
            continue
        lo, hi = intervals.get(axis, (0, axis.extent))
        bound = int(constant.arg)
        is_lower = axis is right
        intervals[axis] = (max(lo, bound + 1), hi) if is_lower else (lo, min(hi, bound))
    return intervals


def _conjuncts(condition: UOp) -> Iterator[UOp]:
    """Yield conditions that all are true where `condition` is."""
    if condition.op is Ops.AND:
        for source in condition.src:
            yield from _conjuncts(source)
    elif condition.op is Ops.WHERE and condition.src[2].is_const and not condition.src[2].arg:
        yield from _conjuncts(condition.src[0])
        yield from _conjuncts(condition.src[1])
    else:
        yield condition


# --------------------------------------------------------------------------------------------------
# Safe in-place outputs: kernels whose output may take over the memory of an input.
#
# An output may, if each element of the input is read only to compute the element of the output in
# the same place. Then it is read before it is written, in every order of loops and with all opts,
# since the written value depends on it. Source of the idea: in-place buffers of array compilers
# (XLA's donation, Halide's inplace).

_CLOSERS = frozenset({Ops.REDUCE, Ops.STAGE})


def reads_where_it_writes(kernel: UOp, in_slot: int, out_slot: int) -> bool:
    """Return whether slots `in_slot` and `out_slot` may have one memory: `kernel`, a simplified
    SINK without opts, reads each element of the input only to compute the element of the output at
    the same index. True where it does not read `in_slot`. See `why_not_in_place`.
    """
    return not why_not_in_place(kernel, in_slot, out_slot)


def why_not_in_place(kernel: UOp, in_slot: int, out_slot: int) -> str:
    """Return why slots `in_slot` and `out_slot` may not have one memory; "" if they may.

    It is refused, to be careful, where the write has a gate or writes an element twice, and where a
    staged row lies between the two. A gate of a read only makes it read less.
    """
    if kernel.code is not None:
        return "its code is the user's, and which elements it reads is not known"
    ends = [end for end in kernel.src if end.store.place.param.slot == out_slot]
    if len(ends) != 1 or in_slot == out_slot:
        return "its kernel does not write it by one statement"
    (end,) = ends
    nodes = kernel.toposort()
    loads = [n for n in nodes if n.op is Ops.LOAD and _reads(n, in_slot)]
    if not loads:
        return ""
    written, gate = split_gate(end.store.place.flat_index)
    if gate is not None or not _writes_each_once(end, written):
        return "its kernel does not write each element exactly once"
    sizes = {load.dtype.itemsize for load in loads}
    if sizes != {end.store.value.dtype.itemsize}:
        return "their elements have different sizes"
    if not all(_is_at(load, written) for load in loads):
        return "its kernel reads an element at another index than it writes at that step"
    if _is_closed(nodes, loads, written):
        return "its kernel reads all elements of a row before it writes one"
    if not all(_is_earlier(kernel, other, end, loads) for other in kernel.src):
        return "another output of its kernel reads it later"
    return ""


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


def _is_at(load: UOp, written: UOp) -> bool:
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
    """Whether the output `other` does not read the memory that `end` overwrites, or reads it
    earlier. Stores run in the kernel's order if they have the same loops, wait for the same
    reductions, and nothing else is in these loops."""
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
