"""The order in which a loop of a kernel accesses memory: the elements of each buffer that its steps
touch, one after the other.

A step of a loop is one iteration with all loops inside of it; the loops around it stand still at
given positions. The statement tree says the order: statements one after the other, inner loops
faster, of a statement first its loads, then its store; the lanes of a vector in order, and a load
that does not depend on a lane once for all. Compilers may keep a value in a register instead of
loading it again, and work-items of a group run side by side: the order is that of the tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from workbench.base.errors import WorkbenchError
from workbench.ir.nest.accesses import MemoryAccess, accesses, lanes_of
from workbench.ir.node.exact_range import index_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate

Array = np.ndarray[Any, Any]

MOST_ACCESSES = 1 << 19
"""Most accesses of all steps together that are listed."""


@dataclass(frozen=True, slots=True)
class OrderedAccesses:
    """The accesses of one buffer, in order. `steps` has the step of the loop of each, `elements`
    the number of the element in the buffer, `writes` whether it is written, `statements` the number
    of the statement among those of the tree (see `statements_of`). `unknown` counts the places in
    the program whose index depends on memory: they are not among the accesses."""

    buffer: UOp
    steps: Array
    elements: Array
    writes: Array
    statements: Array
    unknown: int = 0


class _Place(NamedTuple):
    """A place in the tree that accesses memory: the access, the LOOPs and IFs around it with the
    statement itself, and the number of each among its siblings, last that of the access."""

    access: MemoryAccess
    nodes: tuple[UOp, ...]
    numbers: tuple[int, ...]
    lanes: tuple[UOp, ...]
    statement: int
    """The number of the statement among all that access memory."""

    @property
    def axes(self) -> tuple[UOp, ...]:
        """The axes that it is inside of, loops first."""
        return (*(n.axis for n in self.nodes if n.op is Ops.LOOP), *self.lanes)


def ordered_accesses(
    block: UOp, name: str, at: Mapping[str, int], first: int = 0, most: int = 0
) -> list[OrderedAccesses]:
    """Return the accesses of each buffer by the loop or lane axis `name` of a statement tree, from
    step `first` on, at most `most` steps (0: all); axes around it stand at the positions `at` (0
    where it says none). Where loops of one name follow each other, these are all of them.

    Errors: WorkbenchError for an axis that the tree does not have, a position out of its range, and
    for more than MOST_ACCESSES accesses.
    """
    axes = axes_of(block)
    if name not in axes:
        because = f"its axes are {', '.join(axes) or 'none'}"
        hint = f'"{next(iter(axes), "g0")}"'
        raise WorkbenchError(f"there is no axis {name!r:.40}", because, hint)
    for outer, position in at.items():
        if outer not in axes or position not in range(axes[outer].extent):
            upto = "it is no axis"
            if outer in axes:
                upto = f"it goes from 0 to {axes[outer].extent - 1}"
            raise WorkbenchError(f"cannot stand at {outer!r:.40}={position!r:.40}", upto)
    axis = axes[name]
    last = axis.extent if most == 0 else min(first + most, axis.extent)
    by_buffer: dict[UOp, list[tuple[_Place, Array | None]]] = {}
    room = MOST_ACCESSES
    for place in _places(block):
        if axis in place.axes:
            columns = _columns(place, axis, range(first, last), at, room)
            room -= 0 if columns is None else columns.shape[1]
            by_buffer.setdefault(place.access.buffer, []).append((place, columns))
    return [_in_order(buffer, found) for buffer, found in by_buffer.items()]


def axes_of(block: UOp) -> dict[str, UOp]:
    """Return the loops of a statement tree and the lane axes of its accesses, by name."""
    axes = (axis for place in _places(block) for axis in place.axes)
    return {axis.axis_name: axis for axis in axes}


def statements_of(block: UOp) -> list[UOp]:
    """Return the statements of a tree that access memory, in program order."""
    numbered = {place.statement: place.nodes[-1] for place in _places(block)}
    return [numbered[number] for number in range(len(numbered))]


def _places(block: UOp) -> Iterator[_Place]:
    """Yield the places of a statement tree that access memory, in program order."""
    statement = 0
    stack: list[tuple[tuple[UOp, ...], tuple[int, ...]]] = [((block,), ())]
    while stack:
        nodes, numbers = stack.pop()
        node = nodes[-1]
        if node.op in (Ops.BLOCK, Ops.LOOP, Ops.IF):
            body = node.src if node.op is Ops.BLOCK else node.body
            below = [((*nodes, child), (*numbers, n)) for n, child in enumerate(body)]
            stack += reversed(below)
        elif node.op in (Ops.STORE, Ops.ACCUMULATE):
            lanes = lanes_of(node)
            own_accesses = accesses(node)
            for number, access in enumerate(own_accesses):
                used = access.flat.toposort()
                own = tuple(lane for lane in lanes if lane in used)
                yield _Place(access, nodes, (*numbers, number), own, statement)
            statement += bool(own_accesses)


def _columns(
    place: _Place, axis: UOp, steps: range, at: Mapping[str, int], room: int
) -> Array | None:
    """Return the accesses of a place in rows: the elements, the steps, and then what orders the
    accesses of a step. None where the index depends on memory.

    Errors: WorkbenchError for more than `room` accesses.
    """
    inner = [*place.lanes] if axis in place.lanes else [*_inside(place.axes, axis)]
    inner = [r for r in inner if r is not axis]
    shape = len(steps), *(r.extent for r in inner)
    if math.prod(shape) > room:
        because = f"they are more than {MOST_ACCESSES:,}"
        raise WorkbenchError("these accesses are too many to list", because, "fewer steps")
    index, gate = split_gate(place.access.flat)
    conditions = [n.src[0] for n in place.nodes if n.op is Ops.IF]
    # only the wanted steps are computed: the axis may be long
    step = UOp.range(len(steps), f"{axis.axis_name}_step", axis.axis_kind)
    still = {r: UOp.index(at.get(r.axis_name, 0)) for r in place.axes if r not in inner}
    still[axis] = step + steps.start
    roots = [index, *([] if gate is None else [gate]), *conditions]
    found = index_values([r.substitute(still) for r in roots], [step, *inner], MOST_ACCESSES)
    if found is None:
        return None
    values = [np.broadcast_to(each, shape) for each in found]
    active = np.logical_and.reduce([np.ones(shape, bool), *values[1:]])
    positions = dict(zip([axis, *inner], np.nonzero(active), strict=True))
    positions[axis] = positions[axis] + steps.start
    rows = values[0][active], positions[axis], *_order(place, axis, positions)
    return np.stack(rows).astype(np.int64)


def _inside(axes: Sequence[UOp], axis: UOp) -> Sequence[UOp]:
    """Return an axis and those after it."""
    return axes[axes.index(axis) :]


def _order(place: _Place, axis: UOp, positions: Mapping[UOp, Array]) -> Iterator[Array]:
    """Yield what orders the accesses of a step: by depth the number among its siblings and the
    position of a loop; then the number of the access in its statement, and its lanes."""
    still = np.zeros_like(positions[axis])
    for node, number in zip(place.nodes[1:], place.numbers, strict=False):
        yield still + number
        moves = node.op is Ops.LOOP and node.axis is not axis and node.axis in positions
        yield positions[node.axis] if moves else still
    yield still + place.numbers[-1]
    for lane in place.lanes:
        if lane is not axis:
            yield positions[lane]


def _in_order(buffer: UOp, found: Sequence[tuple[_Place, Array | None]]) -> OrderedAccesses:
    known = [(place, columns) for place, columns in found if columns is not None]
    depth = max((len(columns) for _, columns in known), default=2)
    padded = [
        np.pad(columns, ((0, depth - len(columns)), (0, 0)), constant_values=-1)
        for _, columns in known
    ]
    if not known:
        empty = np.zeros(0, np.int64)
        return OrderedAccesses(buffer, empty, empty, empty.astype(bool), empty, len(found))
    counts = [columns.shape[1] for _, columns in known]
    writes = np.repeat([place.access.writes for place, _ in known], counts)
    statements = np.repeat([place.statement for place, _ in known], counts)
    rows = np.concatenate(padded, axis=1)
    order = np.lexsort(rows[:0:-1])
    return OrderedAccesses(
        buffer, rows[1][order], rows[0][order], writes[order], statements[order],
        len(found) - len(known),
    )  # fmt: skip
