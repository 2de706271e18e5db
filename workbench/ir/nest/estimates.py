"""Counts of a kernel that need no clock: operations and bytes of the algorithm, and instructions of
the generated program times their trip counts. The counts are deterministic, so that exercises can
be checked by them.

Sections: The number of distinct elements of a buffer that a set of index expressions touches;
Counts of a kernel that need no clock.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from workbench.base.terminal import Displayed
from workbench.ir.nest.accesses import idle_lanes
from workbench.ir.node.exact_range import IndexSteps, Step, index_steps, index_values, terms
from workbench.ir.node.ops import CASTS, ELEMENTWISE, Ops
from workbench.ir.node.uop import UOp, closed, leaves, memoised, split_gate
from workbench.pickles import pickled

# --------------------------------------------------------------------------------------------------
# The number of distinct elements of a buffer that a set of index expressions touches.
#
# An affine index over n loops is a sum of strided steps. Sorted by stride, each step either exceeds
# the span of all smaller ones (the counts multiply) or lands inside one unbroken run of elements
# (the run grows): both are exact. In other cases elements are counted one by one where that is
# cheap, and else bounded (`exact` is False). An index from memory counts as another element at
# every point.

ENUMERATED = 1 << 14
"""Most points that are counted one by one."""


class Touched(NamedTuple):
    """A number of distinct elements; an upper bound where not `exact`."""

    elements: int
    exact: bool = True


class Runs(NamedTuple):
    """`number` unbroken runs of `length` elements each. The distances of their starts are multiples
    of `step` elements, a power of 2; 0 where it is unknown, or for one run."""

    number: int
    length: int
    step: int


def touched(indexes: Iterable[UOp], inside: Collection[UOp], size: int) -> Touched:
    """Return how many of a buffer's `size` elements the flat `indexes`, gated or not, touch while
    the ranges `inside` run and all others are fixed."""
    different = tuple(dict.fromkeys(indexes))
    footprints = list(dict.fromkeys(index_steps(index, inside) for index in different))
    if len(footprints) == 1:
        one = _touched_by_index(footprints[0])
        if one is not None and one.exact:
            return Touched(min(one.elements, size))
    points = sum(_points(index, inside) for index in different)
    if points <= ENUMERATED:
        reached = _enumerated(different, footprints, inside)
        if reached is not None:
            return Touched(len(reached))
    return Touched(min(_touched_by_windows(footprints), size), exact=False)


def _touched_by_index(footprint: IndexSteps) -> Touched | None:
    """Return how many elements one index touches; None where no formula counts them."""
    count = count_sums(footprint.steps)
    if count is None or footprint.others > 1 < count:
        return None  # parts that are no steps may touch the same elements as the steps
    return Touched(count * footprint.others, footprint.exact)


def _touched_by_windows(footprints: Sequence[IndexSteps]) -> int:
    """Return an upper bound of the elements that indexes touch. Indexes that differ only in their
    starts, as windows do, count as the box around them."""
    alike: dict[IndexSteps, list[int]] = {}
    for one in footprints:
        alike.setdefault(one._replace(start=0), []).append(one.start)
    return sum(_upper_bound(*pair) for pair in alike.items())


def _upper_bound(one: IndexSteps, starts: Sequence[int]) -> int:
    """Return an upper bound of the elements that steps from several starts touch."""
    span = 1 + sum(stride * (extent - 1) for stride, extent in one.steps)
    points = math.prod(extent for _, extent in one.steps)
    count = count_sums(one.steps)
    by_starts = len(starts) * (min(span, points) if count is None else count)
    box = _box(one.steps, starts)
    return one.others * (by_starts if box is None else min(by_starts, box))


def _box(steps: Sequence[Step], starts: Sequence[int]) -> int | None:
    """Return how many elements the steps touch if they are made so long that, from the first start,
    they reach all elements of every start; None where no length is enough."""
    least = [0] * len(steps)
    most = [0] * len(steps)
    for start in starts:
        rest = start - min(starts)
        for place, (stride, _) in reversed([*enumerate(steps)]):
            whole, rest = divmod(rest, stride)
            least[place] = min(least[place], whole)
            most[place] = max(most[place], whole)
        if rest:
            return None
    grown = zip(steps, least, most, strict=True)
    return count_sums([(s, n + high - low) for (s, n), low, high in grown])


def count_sums(steps: Iterable[tuple[int, int]]) -> int | None:
    """Return how many different values `sum(stride * i)` takes, i below each extent; None
    where the steps interleave so that no formula here counts them.

    >>> count_sums([(48, 64), (1, 48)])
    3072
    >>> count_sums([(1, 28), (1, 5)])
    32
    """
    merged: dict[int, int] = {}
    for stride, extent in steps:
        if stride and extent > 1:
            merged[abs(stride)] = merged.get(abs(stride), 1) + extent - 1
    unit = math.gcd(*merged) or 1
    count = span = 1
    for stride, extent in sorted((s // unit, n) for s, n in merged.items()):
        if stride >= span:
            count *= extent
        elif count == span:
            count += stride * (extent - 1)
        else:
            return None
        span += stride * (extent - 1)
    return count


def runs(indexes: Iterable[UOp], inside: Collection[UOp], line: int) -> tuple[Runs, ...]:
    """Return an estimate of the elements that the flat `indexes` touch while the ranges `inside`
    run, as unbroken runs, for a memory that moves lines of `line` elements. A gate that depends on
    a fixed range or on data counts as open.

    A step shorter than a line, or than the span of the shorter steps, makes a run longer; others
    begin a run. A part that is not a step, such as a loaded index, begins one for each of its
    points.
    """
    runs_by_key: dict[tuple[object, ...], Runs] = {}
    for index in dict.fromkeys(indexes):
        one = index_steps(index, inside)
        length, far = _unbroken(one.steps, line)
        number = one.others * math.prod(extent for _, extent in far)
        step = min((stride & -stride for stride, _ in far), default=0)
        key: tuple[object, ...] = far, length, one.fixed, one.start // line
        if one.others > 1:
            step, key = 0, (index,)
        runs_by_key[key] = Runs(number, length, step)
    return tuple(runs_by_key.values())


def _unbroken(steps: Iterable[Step], line: int) -> tuple[int, tuple[Step, ...]]:
    """Return (elements from the first to the last of an unbroken run, the steps between runs)."""
    merged: dict[int, int] = {}
    for stride, extent in steps:
        merged[stride] = merged.get(stride, 1) + extent - 1
    length, far = 1, []
    for stride, extent in sorted(merged.items()):
        if stride <= max(length, line - 1):
            length += stride * (extent - 1)
        else:
            far.append((stride, extent))
    return length, tuple(far)


def strides(indexes: Iterable[UOp], axis: UOp) -> tuple[int, ...] | None:
    """Return the different distances, in elements, by which one step of `axis` moves the flat
    `indexes`; None where a distance is not the same everywhere."""
    steps: dict[int, None] = {}
    for index in indexes:
        parts, _ = terms(split_gate(index)[0])
        if any(atom is not axis and axis in atom.ranges for atom in parts):
            return None
        steps[parts.get(axis, 0)] = None
    return tuple(sorted(steps))


def _points(index: UOp, inside: Collection[UOp]) -> int:
    return math.prod(r.extent for r in index.ranges if r in inside)


def _enumerated(
    indexes: Sequence[UOp], footprints: Sequence[IndexSteps], inside: Collection[UOp]
) -> set[int] | None:
    """Return the elements touched, by trying all points; None where they depend on a fixed range,
    or on memory."""
    moving = any(r not in inside for index in indexes for r in index.ranges)
    fixed = {one.fixed for one in footprints}
    if moving and (len(fixed) > 1 or any(_mixes(index, inside) for index in indexes)):
        return None
    reached: set[int] = set()
    for index in indexes:
        values = _values(index, inside)
        if values is None:
            return None
        reached.update(values)
    return reached


def _mixes(index: UOp, inside: Collection[UOp]) -> bool:
    """Whether a fixed range is in the gate, or in a term together with a range of `inside`."""
    plain, gate = split_gate(index)
    parts = [atom for atom in terms(plain)[0] if not atom.ranges.isdisjoint(inside)]
    parts += [] if gate is None else [gate]
    return any(r not in inside for part in parts for r in part.ranges)


def _values(index: UOp, inside: Collection[UOp]) -> list[int] | None:
    """Return the values of a gated index where the gate holds, with fixed ranges at 0; None where
    they cannot be computed."""
    plain, gate = split_gate(index)
    axes = sorted((r for r in index.ranges if r in inside), key=lambda r: r.axis_name)
    arrays = index_values(
        [plain] if gate is None else [plain, gate], axes, ENUMERATED, others_stand=True
    )
    if arrays is None:
        return None
    values, *gates = np.broadcast_arrays(*arrays)
    elements: list[int] = np.unique(values[gates[0]] if gates else values).tolist()
    return elements


# --------------------------------------------------------------------------------------------------
# Counts of a kernel that need no clock.


@dataclass(frozen=True, slots=True)
class Estimates(Displayed):
    """Operations and bytes of a kernel as it was planned, before opts. `flops` counts arithmetic
    operations and comparisons of values (an FMA is two), each as often as the loops compute it: a
    sum that is computed again for each of its users counts each time. Selections, casts and moves
    of values, index arithmetic and conditions on axes are not counted. `bytes` counts each element
    that is read or written once; if the index is data, each read counts as another element: an
    upper bound."""

    flops: int
    bytes: int

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / max(1, self.bytes)


@pickled
@dataclass(frozen=True, slots=True)
class Counts(Displayed):
    """Counts of one run of the generated program, of all its threads together. `loads`, `stores`,
    `fmas` and `other` count instructions: a vector is one, masked or not. But work-items have no
    instructions for arithmetic of vectors, and each element of `fmas` and `other` counts. `other`
    has operations on values and conditions, combined lanes and shuffles, but not index arithmetic.
    The bytes are those that loads and stores move. `barriers` is the number that all work-groups
    execute (see `barriers` in ir/lower/launch.py; on a CPU, loops are split there instead)."""

    loads: int = 0
    stores: int = 0
    fmas: int = 0
    other: int = 0
    bytes_loaded: int = 0
    bytes_stored: int = 0
    barriers: int = 0


@memoised
def estimate(kernel: UOp) -> Estimates:
    """Return the Estimates of a kernel (a SINK) without opts: these may add work, as PADTO does."""
    loops = _PlannedLoops(kernel)
    flops = sum(each * loops.trips(ranges) for each, ranges in _operations(kernel))
    return Estimates(flops, _bytes(kernel))


def together(parts: Iterable[Estimates]) -> Estimates:
    """Return the Estimates of several kernels together, such as those of a plan."""
    all_parts = [*parts]
    return Estimates(sum(e.flops for e in all_parts), sum(e.bytes for e in all_parts))


def loop_bytes(kernel: UOp) -> int:
    """Return the bytes that the loops of a kernel without opts read from buffers and write to them.
    In contrast to `Estimates.bytes`, an element counts each time that it is read; a read under a
    condition counts as if that held, and a kernel of the user's own code as there."""
    if kernel.code is not None:
        return _bytes(kernel)
    loops = _PlannedLoops(kernel)
    accesses = filter(_is_of_memory, kernel.toposort())
    return sum(node.src[0].src[0].dtype.itemsize * loops.trips(node.ranges) for node in accesses)


def least_operations(kernel: UOp) -> int:
    """Return the operations of a kernel if each value is computed once per point of the axes that
    it depends on: no order of its loops has fewer."""
    return sum(each * math.prod(r.extent for r in axes) for each, axes in _operations(kernel))


def _operations(kernel: UOp) -> Iterator[tuple[int, frozenset[UOp]]]:
    """Yield the operations of each node of a kernel, with the axes that it depends on."""
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
                yield 2 if node.op is Ops.FMA else 1, node.ranges
        elif node.op is Ops.REDUCE:
            yield 1, node.src[0].ranges.union(node.src[1:])


class _PlannedLoops:
    """The loops around the values of a kernel without opts. A value is computed in the innermost
    loop of those that it depends on, so again in each round of a loop around that: a sum of columns
    whose user's outer loop is over rows is computed for every row."""

    def __init__(self, kernel: UOp) -> None:
        self._places = {name: place for place, name in enumerate(kernel.arg.order)}
        nodes = kernel.toposort()
        self._stores = {self._sorted(n.src[1:]) for n in nodes if n.op is Ops.END}
        self._closing: dict[UOp, list[UOp]] = {}
        for node in nodes:
            if node.op in (Ops.REDUCE, Ops.STAGE):
                for axis in closed(node):
                    self._closing.setdefault(axis, []).append(node)
        self._around: dict[frozenset[UOp], frozenset[UOp]] = {}

    def trips(self, axes: frozenset[UOp]) -> int:
        """Return how often a value that depends on `axes` is computed."""
        return math.prod(axis.extent for axis in self._loops(axes))

    def _loops(self, axes: frozenset[UOp]) -> frozenset[UOp]:
        if axes not in self._around:
            self._around[axes] = axes  # while it is searched: axes may be closed by several nodes
            self._around[axes] = self._find(axes)
        return self._around[axes]

    def _find(self, axes: frozenset[UOp]) -> frozenset[UOp]:
        found = set(axes)
        for axis in axes:
            for node in self._closing.get(axis, ()):
                own = self._sorted(closed(node))
                found |= {*own[: own.index(axis)], *self._loops(node.ranges)}
        outer = frozenset(axis for axis in axes if axis not in self._closing)
        for store in self._stores:
            if outer and outer.issubset(store):
                found.update(store[: 1 + max(map(store.index, outer))])
        return frozenset(found)

    def _sorted(self, axes: Iterable[UOp]) -> tuple[UOp, ...]:
        """Return axes as loops, outermost first."""
        return tuple(sorted(axes, key=lambda axis: self._places.get(axis.axis_name, -1)))


def _bytes(kernel: UOp) -> int:
    nodes = kernel.toposort()
    if kernel.code is not None:  # as if its text touched each element once
        params = [n for n in nodes if n.op is Ops.PARAM]
        return sum(p.length * p.dtype.itemsize for p in params)
    axes = [n for n in nodes if n.op is Ops.RANGE]
    places: dict[tuple[UOp, bool], list[UOp]] = {}
    for node in filter(_is_of_memory, nodes):
        buffer, flat = node.src[0].src
        places.setdefault((buffer, node.op is Ops.STORE), []).append(flat)
    return sum(
        buffer.dtype.itemsize * touched(flats, axes, buffer.length).elements
        for (buffer, _), flats in places.items()
    )


def _is_of_memory(node: UOp) -> bool:
    """Whether a node reads or writes an element of a buffer."""
    return node.op in (Ops.LOAD, Ops.STORE) and node.place.memory.op is Ops.PARAM


MOST_STEPS = 1 << 16
"""Most steps over which conditions are evaluated."""
_COUNTED = ELEMENTWISE | {Ops.HREDUCE, Ops.SHUFFLE, Ops.WMMA, Ops.EXCHANGE}


def count(linear: tuple[UOp, ...], barriers: int, of_work_items: bool) -> Counts:
    """Return the counts of one run of a linear program, `of_work_items` or not; its barriers are
    counted on the kernel."""
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
            totals["fmas"] += trips * (node.dtype.count if of_work_items else 1)
        elif node.dtype.kind != "index" and node.op in _COUNTED:
            totals["other"] += trips * (_scalars(node) if of_work_items else 1)
    return Counts(**totals, barriers=barriers)


def _scalars(node: UOp) -> int:
    """Return how many operations on elements an operation is."""
    if node.op is Ops.HREDUCE:
        return node.src[0].dtype.count - node.dtype.count
    return node.dtype.count if node.op in ELEMENTWISE else 1


def executed(linear: tuple[UOp, ...]) -> Iterator[tuple[UOp, int, Fraction]]:
    """Yield the nodes of a linear program, without loops and conditions. With each comes how often
    one run (of one work-item, if there are any) reaches it, and the share of these times in which
    the conditions around it hold."""
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
    """Return the share of the steps of loops and work-items in which all conditions hold; 1, an
    upper bound, where they depend on memory or on too many steps."""
    axes = [*leaves(conditions, Ops.RANGE)]
    values = index_values(conditions, axes, MOST_STEPS)
    if values is None:
        return Fraction(1)
    whole = np.ones([axis.extent for axis in axes], bool)
    for value in values:
        whole &= value.astype(bool)
    return Fraction(int(whole.sum()), whole.size)
