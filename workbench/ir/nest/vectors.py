"""The vector axis of each statement: the lane axis that its vectors run along.

The axis is chosen for each statement, consumers first. A STORE or STAGE takes the unit-stride lane
of its target. A REDUCE takes the axis of its consumer if its value depends on that axis, else its
own reduction lane with most unit-stride loads. A load is a vector, a broadcast or a gather.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.base.target import Target
from workbench.ir.nest.loops import Statement
from workbench.ir.node.exact_range import terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vector axis of each statement (`axes`), None for scalars. `own` has the reductions whose
    vectors run along a reduction lane."""

    axes: Mapping[UOp, UOp | None]
    own: frozenset[UOp]

    def axis(self, node: UOp) -> str | None:
        """Return the name of a statement's vector axis, or None for scalars."""
        axis = self.axes[node]
        return None if axis is None else axis.axis_name

    def accumulator_lanes(self, statement: Statement) -> tuple[UOp, ...]:
        """Return the reduction lanes that have accumulators of their own until they are read."""
        axis = self.axes[statement.node]
        return () if axis is None or statement.node not in self.own else (axis,)


def choose_vectors(statements: Mapping[UOp, Statement], target: Target) -> Vectors:
    """Return the vector axis of every statement."""
    axes: dict[UOp, UOp | None] = {}
    own: set[UOp] = set()
    for node, statement in reversed(list(statements.items())):
        if node.op is Ops.REDUCE and node.src[0].op is Ops.WMMA:
            axes[node] = node.src[0].elements
        elif node.op is Ops.REDUCE:
            axes[node] = _reduce_axis(statement, statements, axes)
            if axes[node] is None:
                axes[node] = lane = _reduction_lane(statement, target)
                if lane is not None:
                    own.add(node)
        else:
            axes[node] = _unit_lane(statement)
    return Vectors(axes, frozenset(own))


def width(extent: int, widest: int) -> int:
    """Return the vector width for an axis of `extent` lanes: the greatest power of two up to
    `widest` that divides `extent`."""
    best = 1
    while best * 2 <= widest and extent % (best * 2) == 0:
        best *= 2
    return best


def _unit_lane(statement: Statement) -> UOp | None:
    """Return the lane axis along which the target's elements are contiguous; None without one."""
    node = statement.node
    index = split_gate(node.place.flat_index)[0] if node.op is Ops.STORE else node.src[-1]
    parts, _ = terms(index)
    lanes = [
        a
        for a, k in parts.items()
        if k == 1 and a in (*statement.lanes, *statement.reduction_lanes)
    ]
    return lanes[0] if lanes and lanes[0].extent > 1 else None


def _reduce_axis(
    statement: Statement, statements: Mapping[UOp, Statement], axes: Mapping[UOp, UOp | None]
) -> UOp | None:
    for consumer in statements.values():
        if statement.node in consumer.reads:
            axis = axes[consumer.node]
            if axis is not None and axis in statement.lanes:
                return axis
    return None


def _reduction_lane(statement: Statement, target: Target) -> UOp | None:
    """Return the reduction lane axis with most unit-stride loads, if its accumulators take few
    registers: at most as many vectors as cover the latency of an FMA, or as there are output lanes.
    Without unit-stride loads it is gathered: a chain of additions would be slower still, and round
    more."""
    lanes = statement.reduction_lanes
    if not lanes:
        return None
    counts = dict.fromkeys(lanes, 0)
    for node in statement.node.src[0].toposort():
        if node.op is Ops.LOAD:
            parts, _ = terms(split_gate(node.place.flat_index)[0])
            for lane in lanes:
                counts[lane] += parts.get(lane) == 1
    best = max(lanes, key=lambda lane: counts[lane])
    widest = target.vector_width(statement.node.dtype.itemsize)
    rows = 1
    for lane in statement.lanes:
        rows *= lane.extent
    registers = rows * best.extent // width(best.extent, widest)
    fits = registers <= max(target.fmas_in_flight, rows)
    return best if width(best.extent, widest) > 1 and fits else None
