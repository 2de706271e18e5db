"""Reads of elements of a STAGE before any step writes them: refused in a kernel from text.

Their values would differ from device to device. An element counts as written if some step of the
fill writes a value to it that is computed from written elements. A read counts if its value is
used: beyond the end of a padded axis, a WHERE or the gate of a STORE discards it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from workbench.base.errors import VerifyError
from workbench.ir.meaning.evaluate import Array
from workbench.ir.node.exact_range import index_values, terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate

MOST_POINTS = 1 << 18
"""Most positions that are tried one by one."""
MOST_CONDITIONS = 8
"""Most conditions of one read that are evaluated; without the others, fewer reads are excused."""
Conditions = frozenset[UOp]


class Read(NamedTuple):
    """An INDEX of a STAGE, and the conditions under which its value is used. With a STAGE as its
    `place` it is the write by that STAGE's own fill."""

    place: UOp
    conditions: Conditions = frozenset()
    outer: tuple[UOp, ...] = ()
    """Ranges around the STAGE that decide which elements are written."""

    @property
    def stage(self) -> UOp:
        return self.place if self.place.op is Ops.STAGE else self.place.src[0]


class Written(NamedTuple):
    """The written elements of a STAGE: the first `lengths[i]` of each dimension i, or the flat
    `positions`; those of step n of the ranges `outer` are n times the STAGE's size further. Both
    are None where that is not known."""

    lengths: tuple[int, ...] | None
    positions: Array | None
    outer: tuple[UOp, ...] = ()


def refuse_unwritten(kernel: UOp) -> None:
    """Errors: VerifyError for an element of a STAGE that is used and never written, or where the
    positions are too many to know."""
    written: dict[UOp, Written] = {}
    for node in kernel.toposort():
        if node.op is Ops.STAGE:
            written[node] = _written(node, written)
        elif node.op is Ops.STORE:
            gates = [split_gate(index)[1] for index in node.place.indexes]
            for read in _reads(node, _range_conditions(gates)):
                _refuse(read, written)


def _reads(root: UOp, conditions: Conditions) -> Iterator[Read]:
    """Yield the reads of STAGEs by a STORE or a fill, without those by the fills below it."""
    visited: set[tuple[UOp, Conditions]] = set()
    todo = [(source, conditions) for source in root.src]
    while todo:
        node, facts = todo.pop()
        if (node, facts) in visited or node.op is Ops.STAGE:
            continue
        visited.add((node, facts))
        if node.op is Ops.LOAD and node.place.memory.op is Ops.STAGE:
            gates = [split_gate(index)[1] for index in node.place.indexes]
            yield Read(node.src[0], facts | _range_conditions(gates))
        if node.op is Ops.WHERE and len(facts) < MOST_CONDITIONS:
            condition, value, other = node.src
            todo.append((condition, facts))
            todo.append((value, facts | _range_conditions([condition])))
            todo.append((other, facts | _range_conditions([~condition])))
        else:
            todo += [(source, facts) for source in node.src]


def _range_conditions(conditions: Iterable[UOp | None]) -> Conditions:
    """Return the conditions that ranges alone decide; a conjunction gives its parts."""
    parts: set[UOp] = set()
    todo = [each for each in conditions if each is not None]
    while todo:
        node = todo.pop()
        if node.op is Ops.AND:
            todo += node.src
        elif all(n.op is not Ops.LOAD for n in node.toposort()):
            parts.add(node)
    return frozenset(parts)


def _written(stage: UOp, written: dict[UOp, Written]) -> Written:
    """Return the elements that a fill writes, without those computed from unwritten elements."""
    lengths = _lengths(stage)
    doubtful = [
        read._replace(outer=written[read.stage].outer)
        for read in _reads(stage, frozenset())
        if not _is_sure(read, written)
    ]
    if not doubtful:
        return Written(lengths, None if lengths else _positions(Read(stage)))
    outer = tuple(sorted(_axes(doubtful) & stage.ranges, key=lambda r: r.axis_name))
    steps = _steps([Read(stage, outer=outer), *doubtful])
    if steps is None:
        return Written(None, None)
    (at, is_open), *others = steps
    spoilt = np.zeros((), bool)
    for read, (place, used) in zip(doubtful, others, strict=True):
        fill_positions = _fill_positions(written[read.stage], read.stage)
        if fill_positions is None:
            return Written(None, None)
        spoilt = spoilt | (used & ~np.isin(place, fill_positions))
    at, is_open, spoilt = np.broadcast_arrays(at, is_open, spoilt)
    return Written(None, np.setdiff1d(at[is_open], at[spoilt]), outer)


def _refuse(read: Read, written: dict[UOp, Written]) -> None:
    if _is_sure(read, written):
        return
    name, shape = read.stage.name, read.stage.memory_shape
    read = read._replace(outer=written[read.stage].outer)
    fill_positions, read_positions = (
        _fill_positions(written[read.stage], read.stage),
        _positions(read),
    )
    if fill_positions is None or read_positions is None:
        raise VerifyError(
            f"an element of the STAGE {name} may be read and never written",
            "its fill is not a plain sum of ranges, and too large to try every position",
            "an index that is a range, or tiles like 4*a + b, over each whole dimension",
        )
    missing = np.setdiff1d(read_positions, fill_positions)
    if missing.size:
        at = tuple(int(n) for n in np.unravel_index(missing[0] % math.prod(shape), shape))
        raise VerifyError(
            f"an element of the STAGE {name} is read and never written",
            f"its fill does not reach {at}, one of {missing.size} such elements",
        )


def _is_sure(read: Read, written: dict[UOp, Written]) -> bool:
    """Return whether bounds alone prove that a read stays within the written elements."""
    lengths = written[read.stage].lengths
    if lengths is None:
        return False
    shorter = {}
    for each in read.conditions:
        if each.op is Ops.CMPLT and each.src[0].op is Ops.RANGE:  # as PADTO masks
            axis, end = each.src[0], each.src[1]
            length = min(axis.extent, int(end.vmax))
            if length <= 0:
                return True
            shorter[axis] = UOp.range(length, axis.axis_name, axis.axis_kind)
    for index, limit, size in zip(
        read.place.indexes, lengths, read.stage.memory_shape, strict=True
    ):
        inner = split_gate(index)[0].substitute(shorter)
        if limit < size and not (inner.vmin >= 0 and inner.vmax < limit):
            return False
    return True


def _lengths(stage: UOp) -> tuple[int, ...] | None:
    """Return how many values from 0 on each index of a STAGE takes. None unless each is a sum of
    ranges of its own that leaves no value out, like 4*a + b with b in 4."""
    atoms: set[UOp] = set()
    lengths = []
    for index in stage.src[1:]:
        parts, low = terms(index)
        if low or not atoms.isdisjoint(parts):
            return None
        atoms.update(parts)
        length = 1
        for axis, factor in sorted(parts.items(), key=lambda part: part[1]):
            if axis.op is not Ops.RANGE or not 0 < factor <= length:
                return None
            length += factor * (axis.extent - 1)
        lengths.append(length)
    return tuple(lengths)


def _fill_positions(written: Written, stage: UOp) -> Array | None:
    """Return the flat positions of a STAGE that are written, or None where they are too many."""
    return _positions(Read(stage)) if written.lengths else written.positions


def _positions(read: Read) -> Array | None:
    """Return the flat positions at which a STAGE is written or used."""
    steps = _steps([read]) or _steps([_without_others(read)])
    if steps is None:
        return None
    at, is_open = np.broadcast_arrays(*steps[0])
    return np.unique(at[is_open])


def _without_others(read: Read) -> Read:
    """Return a read without the conditions that are decided by ranges on which its position does
    not depend: the end of a padded row says nothing of the sum that the row is divided by."""
    conditions, axes = frozenset[UOp](), _axes([read._replace(conditions=frozenset())])
    while more := {c for c in read.conditions - conditions if c.ranges & axes}:
        conditions |= more
        axes |= UOp.sink(*more).ranges
    return read._replace(conditions=conditions)


def _axes(reads: list[Read]) -> frozenset[UOp]:
    return UOp.sink(*[node for read in reads for node in _expressions(read)]).ranges


def _expressions(read: Read) -> list[UOp]:
    """Return the expressions that say where and when a STAGE is read."""
    parts = [split_gate(index) for index in read.place.indexes]
    gates = [gate for _, gate in parts if gate is not None]
    return [*[index for index, _ in parts], *gates, *read.conditions, *read.outer]


def _steps(reads: list[Read]) -> list[tuple[Array, Array]] | None:
    """Return for each read, at every step of all their ranges, the flat position in its STAGE and
    whether its conditions hold; None where steps are too many, or memory decides."""
    nodes = [node for read in reads for node in _expressions(read)]
    if any(node.op is Ops.INVALID for node in nodes):
        return None
    axes = sorted(_axes(reads), key=lambda r: r.axis_name)
    values = index_values(nodes, axes, MOST_POINTS)
    if values is None:
        return None
    at = dict(zip(nodes, values, strict=True))
    return [_step(read, at) for read in reads]


def _step(read: Read, values: dict[UOp, Array]) -> tuple[Array, Array]:
    rank, shape = len(read.place.src) - 1, read.stage.memory_shape
    indexes = [values[split_gate(index)[0]] for index in read.place.indexes]
    is_open = np.ones((), bool)
    for each in _expressions(read)[rank : len(_expressions(read)) - len(read.outer)]:
        is_open = is_open & values[each]
    at = np.asarray(np.ravel_multi_index(np.broadcast_arrays(*indexes), shape, mode="clip"))
    size = math.prod(shape)
    for axis in read.outer:
        at = at + size * values[axis]
        size *= axis.extent
    return at, is_open
