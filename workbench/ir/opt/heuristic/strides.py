"""Strides of the loads and stores of a kernel along its axes, for the default opts."""

from __future__ import annotations

import math

from workbench.ir.node.affine import terms
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.opt.kinds.stage import read_by
from workbench.ir.opt.opt import OUTPUT_KINDS, REDUCE_KINDS, ranges, store_strides

REUSE = 8
"""An operand is packed if it is read at least this often."""
FEW_LANES = 8
"""A reduction of fewer steps, such as a window's width, does not become lanes."""
FAR = 1 << 62
"""The step of a load whose index is not affine."""
GATHERED_REUSE = 2
"""The same for an operand that would be gathered: a gather takes as many loads as the vector has
lanes."""
PACKED_REUSE = 16
"""Reads from which on packing is faster than dot products of neighbours."""


def strides(load: UOp) -> dict[UOp, int]:
    """Return how many elements one step of each axis moves a load."""
    return terms(split_gate(load.place.flat_index)[0])[0]


def unit_axis(kernel: UOp) -> UOp | None:
    """Return the loop along which the first result's elements are neighbours."""
    axes = [a for a, k in store_strides(kernel).items() if k == 1 and a.op is Ops.RANGE]
    return axes[0] if axes and not axes[0].axis_kind.is_lane else None


def dot_axis(reduce: UOp) -> tuple[UOp | None, int]:
    """Return the loop of a reduction along which loads move in the shortest constant steps, and the
    longest of these steps: 1 where neighbours are combined. Loops that are too short for a vector,
    as a window's, are left out."""
    candidates: list[tuple[int, UOp]] = []
    for axis in reduce.src[1:]:
        if axis.extent < FEW_LANES:
            continue
        steps = [step(n, axis) for n in loads(reduce.src[0]) if axis in n.ranges]
        if axis.axis_kind in REDUCE_KINDS and steps and max(steps) < FAR:
            candidates.append((max(steps), axis))
    least, best = min(candidates, key=lambda pair: pair[0], default=(FAR, None))
    return best, least


def vector_axis(kernel: UOp) -> UOp | None:
    """Return the unit-stride axis of the result, if it should become lanes: not where they would
    gather elements that lie nearer together along a reduction that is long enough for lanes, and
    not where a reduction has lanes already."""
    axis = unit_axis(kernel)
    if axis is None or any(_has_lanes(n) for n in reduces(kernel)):
        return None
    across = max((step(n, axis) for n in loads(kernel) if axis in n.ranges), default=0)
    along = [dot_axis(n)[1] for n in reduces(kernel)]
    if across > 1 and min(along, default=FAR) < across and not packs(kernel, axis):
        return None
    return axis


def _has_lanes(reduce: UOp) -> bool:
    return any(r.axis_kind.is_lane for r in reduce.src[1:])


def step(load: UOp, axis: UOp) -> int:
    """Return the distance of the elements that a load reads along `axis`."""
    return abs(strides(load).get(axis, FAR))


def gathers(value: UOp, axis: UOp) -> bool:
    """Whether some load along `axis` is neither of neighbours nor of one element."""
    return any(axis in n.ranges and strides(n).get(axis) != 1 for n in loads(value))


def lanes_are_neighbours(load: UOp) -> bool:
    """Whether some lanes of a load are neighbours in memory."""
    walk = strides(load)
    return any(r.axis_kind.is_lane and walk.get(r) == 1 for r in load.ranges)


def packs(kernel: UOp, axis: UOp) -> bool:
    """Whether an operand that is gathered along `axis` is used so often that packing it first is
    faster."""
    reductions = reduces(kernel)
    gathered = [n for n in loads(kernel) if axis in n.ranges and strides(n).get(axis) != 1]
    if len(reductions) != 1 or len(gathered) != 1 or axis in reductions[0].src[1:]:
        return False
    varying, repeating = loops_of(kernel, gathered[0])
    source = gathered[0].place.memory
    if source.op is not Ops.PARAM or not varying:
        return False
    if read_by(kernel, source.slot, varying[-1].axis_name) is not gathered[0]:
        return False  # STAGE could not tell it from other reads of the same input
    if varying == [axis] and axis.extent < 2 * FEW_LANES:
        return False  # the loop inside of which it would be packed takes half of the lanes
    least = PACKED_REUSE if dot_axis(reductions[0])[1] == 1 else GATHERED_REUSE
    return math.prod(r.extent for r in repeating) >= least


def loops_of(kernel: UOp, load: UOp) -> tuple[list[UOp], list[UOp]]:
    """Return the output loops that a load depends on, and those it does not, outermost first."""
    axes = ranges(kernel)
    outputs = [axes[n] for n in kernel.arg.order if axes[n].axis_kind in OUTPUT_KINDS]
    around = [r for r in outputs if r in load.ranges]
    return around, [r for r in outputs if r not in load.ranges]


def loads(value: UOp) -> list[UOp]:
    """Return the LOADs below a value."""
    return [n for n in value.toposort() if n.op is Ops.LOAD]


def reduces(kernel: UOp) -> list[UOp]:
    """Return the reductions of a kernel."""
    return [n for n in kernel.toposort() if n.op is Ops.REDUCE]


def itemsize(kernel: UOp) -> int:
    """Return the bytes of the widest element that a kernel reads or writes, at least 4."""
    values = [*loads(kernel), *[store.value for store in kernel.stores]]
    return max(4, *[n.dtype.itemsize for n in values])
