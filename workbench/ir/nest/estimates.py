"""Counts of a kernel that need no clock: operations and bytes of the algorithm, and instructions of
the generated program times their trip counts. The counts are deterministic, so that exercises can
be checked by them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from workbench.base.display import Displayed
from workbench.ir.nest.accesses import idle_lanes
from workbench.ir.nest.footprint import touched
from workbench.ir.node.index_values import index_values
from workbench.ir.node.ops import CASTS, ELEMENTWISE, Ops
from workbench.ir.node.uop import UOp, leaves


@dataclass(frozen=True, slots=True)
class Estimates(Displayed):
    """Operations and bytes of the algorithm. `flops` counts arithmetic operations and comparisons
    of values, each once per point of the axes it depends on: not what only chooses, casts or moves
    a value, nor index arithmetic and conditions on axes. `bytes` counts each element that is read
    or written once. Where the index is data, each read is of another element: an upper bound."""

    flops: int
    bytes: int

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / max(1, self.bytes)


@dataclass(frozen=True, slots=True)
class Counts(Displayed):
    """Counts of one run of the generated program, of all its threads together. `loads`, `stores`,
    `fmas` and `other` count instructions: a vector is one, masked or not. `other` has operations on
    values and conditions, combined lanes and shuffles, but not index arithmetic. The bytes are
    those that loads and stores move; `barriers` is how often the kernel's work-groups wait until a
    tile is filled, before work-items read what others wrote (see ir/lower/launch/barriers.py; on a
    CPU, loops are cut there instead)."""

    loads: int = 0
    stores: int = 0
    fmas: int = 0
    other: int = 0
    bytes_loaded: int = 0
    bytes_stored: int = 0
    barriers: int = 0


def estimate(kernel: UOp) -> Estimates:
    """Return the counts of a kernel (a SINK), the same for every opt list."""
    flops = 0
    places: set[UOp] = set()  # of axes alone: indexes and conditions
    nodes = kernel.toposort()
    choices = [n.src[0] for n in nodes if n.op is Ops.WHERE and n.src[0].is_of_axes]
    masks = {node for choice in choices for node in choice.toposort()}
    for node in nodes:
        if node.dtype.kind == "index" or node.op in CASTS or node in masks:
            continue
        elif node.op in ELEMENTWISE:
            if all(s.dtype.kind == "index" or s in places for s in node.src):
                places.add(node)
            elif node.op is not Ops.WHERE:
                each = 2 if node.op is Ops.FMA else 1
                flops += each * math.prod(r.extent for r in node.ranges)
        elif node.op is Ops.REDUCE:
            inside = node.src[0].ranges.union(node.src[1:])
            flops += math.prod(r.extent for r in inside)
    return Estimates(flops, _bytes(kernel))


def _bytes(kernel: UOp) -> int:
    nodes = kernel.toposort()
    if kernel.code is not None:  # as if its text touched each element once
        params = [n for n in nodes if n.op is Ops.PARAM]
        return sum(p.length * p.dtype.itemsize for p in params)
    axes = [n for n in nodes if n.op is Ops.RANGE]
    places: dict[tuple[UOp, bool], list[UOp]] = {}
    for node in nodes:
        if node.op in (Ops.LOAD, Ops.STORE) and node.place.memory.op is Ops.PARAM:
            buffer, flat = node.src[0].src
            places.setdefault((buffer, node.op is Ops.STORE), []).append(flat)
    return sum(
        buffer.dtype.itemsize * touched(flats, axes, buffer.length).elements
        for (buffer, _), flats in places.items()
    )


MOST_STEPS = 1 << 16
"""Most steps for which a condition is evaluated."""
_COUNTED = ELEMENTWISE | {Ops.HREDUCE, Ops.SHUFFLE, Ops.WMMA, Ops.EXCHANGE}


def count(linear: tuple[UOp, ...], barriers: int) -> Counts:
    """Return the counts of one run of a linear program; its barriers are counted on the kernel."""
    totals = dict.fromkeys(("loads", "stores", "fmas", "other", "bytes_loaded", "bytes_stored"), 0)
    items = math.prod(n.axis.extent for n in linear if n.op is Ops.SPECIAL)
    idle = idle_lanes(linear)
    for node, own_trips, share in executed(linear):
        trips = int(own_trips * items * share)
        if node.op is Ops.LOAD:
            totals["loads"] += trips
            of_lanes = trips >> idle.get(node, 0).bit_count()
            totals["bytes_loaded"] += of_lanes * node.dtype.itemsize
        elif node.op is Ops.STORE:
            totals["stores"] += trips
            totals["bytes_stored"] += trips * node.src[1].dtype.itemsize
        elif node.op is Ops.FMA:
            totals["fmas"] += trips
        elif node.dtype.kind != "index" and node.op in _COUNTED:
            totals["other"] += trips
    return Counts(**totals, barriers=barriers)


def executed(linear: tuple[UOp, ...]) -> Iterator[tuple[UOp, int, Fraction]]:
    """Yield the nodes of a linear program that are not loops, how often one run comes to each, or
    one work-item of it, and in which share of these times the conditions around it hold."""
    trips, conditions = [1], list[UOp]()
    shares = [Fraction(1)]
    for node in linear:
        if node.op is Ops.LOOP:
            trips.append(trips[-1] * node.axis.extent)
        elif node.op is Ops.ENDLOOP:
            trips.pop()
        elif node.op is Ops.IF:
            conditions.append(node.condition)
            shares.append(_share(conditions))
        elif node.op is Ops.ENDIF:
            conditions.pop()
            shares.pop()
        else:
            yield node, trips[-1], shares[-1]


def _share(conditions: list[UOp]) -> Fraction:
    """Return the share of the steps of their axes, loops and work-items, in which conditions hold;
    1, a bound, where they depend on memory or on too many steps."""
    axes = [*leaves(conditions, Ops.RANGE)]
    values = index_values(conditions, axes, MOST_STEPS)
    if values is None:
        return Fraction(1)
    whole = np.ones([axis.extent for axis in axes], bool)
    for value in values:
        whole &= value.astype(bool)
    return Fraction(int(whole.sum()), whole.size)
