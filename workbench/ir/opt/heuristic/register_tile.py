"""Strides of loads and stores, the default register tile, and pieces of axes with borders.

Sections: Strides of loads and stores; The register tile; Piecewise axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from workbench.base.target import Target
from workbench.ir.node.exact_range import terms
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, memoised, split_gate
from workbench.ir.opt.divide import unused_axis_name
from workbench.ir.opt.heuristic.step import HeuristicStep, split
from workbench.ir.opt.kinds.padto import MAX_GROWTH
from workbench.ir.opt.kinds.stage import load_to_copy
from workbench.ir.opt.opt import OUTPUT_KINDS, REDUCE_KINDS, Opt, OptOps, ranges, store_strides

# --------------------------------------------------------------------------------------------------
# Strides of loads and stores: which axes of a kernel have neighbouring elements.

REUSE = 8
"""An operand is packed if it is read at least this often."""
FEW_LANES = 8
"""A reduction of fewer steps, such as the width of a window, does not become lanes."""
NOT_AFFINE = 1 << 62
"""The stride of a load whose index is not affine."""
GATHERED_REUSE = 2
"""Like REUSE, for an operand that would be gathered: a gather takes a load for each lane."""
PACKED_REUSE = 16
"""With at least this many reads, packing is faster than dot products of neighbours."""


def strides(load: UOp) -> dict[UOp, int]:
    """Return the stride of a load along each axis, in elements."""
    return terms(split_gate(load.place.flat_index)[0])[0]


def unit_axis(kernel: UOp) -> UOp | None:
    """Return the unit-stride axis of the first output; None if there is none or it is a lane."""
    axes = [a for a, k in store_strides(kernel).items() if k == 1 and a.op is Ops.RANGE]
    return axes[0] if axes and not axes[0].axis_kind.is_lane else None


def dot_axis(reduce: UOp) -> tuple[UOp | None, int]:
    """Return the loop of a reduction whose longest stride in a load is the shortest, and that
    stride: 1 if loads have neighbours along it. Loops with fewer than FEW_LANES steps, such as
    those of a window, are left out; (None, NOT_AFFINE) if no loop is left."""
    candidates: list[tuple[int, UOp]] = []
    for axis in reduce.src[1:]:
        if axis.extent < FEW_LANES:
            continue
        steps = [step(n, axis) for n in loads(reduce.src[0]) if axis in n.ranges]
        if axis.axis_kind in REDUCE_KINDS and steps and max(steps) < NOT_AFFINE:
            candidates.append((max(steps), axis))
    least, best = min(candidates, key=lambda pair: pair[0], default=(NOT_AFFINE, None))
    return best, least


def vector_axis(kernel: UOp) -> UOp | None:
    """Return the unit-stride axis of the result if it should become lanes. None if there is none,
    if a reduction has lanes already, or if the lanes would gather elements that are not packed and
    have shorter strides along a reduction."""
    axis = unit_axis(kernel)
    if axis is None or any(_has_lanes(n) for n in reduces(kernel)):
        return None
    across = max((step(n, axis) for n in loads(kernel) if axis in n.ranges), default=0)
    along = [dot_axis(n)[1] for n in reduces(kernel)]
    if across > 1 and min(along, default=NOT_AFFINE) < across and not packs(kernel, axis):
        return None
    return axis


def _has_lanes(reduce: UOp) -> bool:
    return any(r.axis_kind.is_lane for r in reduce.src[1:])


def step(load: UOp, axis: UOp) -> int:
    """Return the absolute stride of a load along `axis`; NOT_AFFINE without a constant stride."""
    return abs(strides(load).get(axis, NOT_AFFINE))


def gathers(value: UOp, axis: UOp) -> bool:
    """Whether some load below `value` depends on `axis` with another stride than 1."""
    return any(axis in n.ranges and strides(n).get(axis) != 1 for n in loads(value))


def lanes_are_neighbours(load: UOp) -> bool:
    """Whether some lanes of a load are neighbours in memory."""
    load_strides = strides(load)
    return any(r.axis_kind.is_lane and load_strides.get(r) == 1 for r in load.ranges)


def packs(kernel: UOp, axis: UOp) -> bool:
    """Whether packing is faster for the operand that is gathered along `axis`: it is the only one,
    and it is read often enough."""
    reductions = reduces(kernel)
    gathered = [n for n in loads(kernel) if axis in n.ranges and strides(n).get(axis) != 1]
    if len(reductions) != 1 or len(gathered) != 1 or axis in reductions[0].src[1:]:
        return False
    varying, repeating = loops_of(kernel, gathered[0])
    source = gathered[0].place.memory
    if source.op is not Ops.PARAM or not varying:
        return False
    if load_to_copy(kernel, source.slot, varying[-1].axis_name) is not gathered[0]:
        return False  # STAGE would copy another load of the same input
    if varying == [axis] and axis.extent < 2 * FEW_LANES:
        return False  # packing needs a loop around it: half of the axis would be lanes
    least = PACKED_REUSE if dot_axis(reductions[0])[1] == 1 else GATHERED_REUSE
    return math.prod(r.extent for r in repeating) >= least


def loops_of(kernel: UOp, load: UOp) -> tuple[list[UOp], list[UOp]]:
    """Return the output loops that a load depends on, and the others; each outermost first."""
    axes = ranges(kernel)
    outputs = [axes[n] for n in kernel.arg.order if axes[n].axis_kind in OUTPUT_KINDS]
    around = [r for r in outputs if r in load.ranges]
    return around, [r for r in outputs if r not in load.ranges]


def loads(value: UOp) -> list[UOp]:
    """Return the LOADs below a value."""
    return [n for n in value.toposort() if n.op is Ops.LOAD]


@memoised
def reduces(kernel: UOp) -> list[UOp]:
    """Return the reductions of a kernel."""
    return [n for n in kernel.toposort() if n.op is Ops.REDUCE]


def itemsize(kernel: UOp) -> int:
    """Return the bytes of the widest element that a kernel reads or writes, at least 4."""
    values = [*loads(kernel), *[store.value for store in kernel.stores]]
    return max(4, *[n.dtype.itemsize for n in values])


# --------------------------------------------------------------------------------------------------
# The register tile: vector lanes along one axis times rows along one or two others.
#
# Every step of the reduction loads the operands once for all elements of the tile: a vector for
# each chunk of lanes, a broadcast number for each row. The more elements share a load, the closer
# the loop comes to multiply-adds alone. But the sums must stay in registers, and elements beyond
# the end of an axis are wasted. All tiles of a few sizes are compared by their cost per useful
# multiply-add.
#
# Source: Goto and van de Geijn (2008), and Low et al., "Analytical modeling is enough for high-
# performance BLIS" (2016).

TILE_ROWS = (8, 6, 4, 3, 2)
"""Rows along an axis."""
CHUNKS = (2, 1, 3, 4)
"""Vectors of lanes. Of tiles with equal costs the first is chosen."""
OVERHEAD = 1
"""Slots that each step of the reduction takes for the loop: counting and jumping back. In a slot
one multiply-add and one load can begin."""
ISSUE = 1 / 8
"""Slots that a load or a multiply-add adds to the others, since they do not overlap completely: of
two equally large tiles the one with fewer loads is better."""
MASKING = 1.03
"""Cost factor of an axis that is rounded up, for the masks of its last loads and stores."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Lanes and rows by axis, the lanes first; `cost` is in slots per useful multiply-add."""

    amounts: dict[UOp, int]
    registers: int
    loads: int
    cost: float


def register_tile(kernel: UOp, target: Target) -> HeuristicStep | None:
    """An output axis as vector lanes, and others as rows. Some operand of the reduction does not
    depend on a row axis, so that the rows share its loads."""
    best, wide = best_tile(kernel, target), target.vector_width(itemsize(kernel))
    if best is None:
        return None
    opts = [opt for r, n in best.amounts.items() for opt in split(r, OptOps.UPCAST, n)]
    shape = " x ".join(f"{n} of {r.axis_name}" for r, n in best.amounts.items())
    why = f"{shape}: of the tiles that fit the registers, the one of the least cost"
    counts = {
        "loads": best.loads,
        "registers": best.registers,
        "slots_per_multiply_add": round(best.cost * wide, 3),
    }
    return HeuristicStep("register-tile", tuple(opts), why, counts)


def best_tile(kernel: UOp, target: Target) -> Tile | None:
    """Return the tile with the lowest cost; None if no tile fits the registers, and for a kernel
    without a vector axis or with another number of reductions than one."""
    axis, reductions = vector_axis(kernel), reduces(kernel)
    if axis is None or len(reductions) != 1:
        return None
    operands = loads(reductions[0].src[0])
    others = [r for r in ranges(kernel).values() if r.axis_kind is AxisType.GLOBAL]
    rows = [
        r
        for r in others
        if r is not axis and 0 < sum(r not in n.ranges for n in operands) < len(operands)
    ]
    wide = target.vector_width(itemsize(kernel))
    is_gathered = gathers(kernel, axis)
    each = wide if is_gathered and not packs(kernel, axis) else 1
    # packing transposes the operand in blocks of the lanes times a vector
    most = target.max_lanes // wide if is_gathered else target.max_lanes
    if is_gathered and not _stays_in_a_loop(operands, axis):
        most = min(most, axis.extent // 2)
    tiles = [
        tile
        for amounts in _amounts(axis, rows, wide)
        if (tile := _tile(amounts, operands, target, wide, each))
        and amounts[axis] <= most
        and tile.registers <= target.vector_registers
        and math.prod(amounts.values()) <= target.max_lanes
    ]
    return min(tiles, key=lambda tile: tile.cost, default=None)


def _stays_in_a_loop(operands: list[UOp], axis: UOp) -> bool:
    """Whether each operand that is gathered along `axis` depends on another output loop, too, and
    can be packed inside of it."""
    gathered = [n for n in operands if axis in n.ranges and strides(n).get(axis) != 1]
    return all(
        any(r.axis_kind is AxisType.GLOBAL for r in n.ranges if r is not axis) for n in gathered
    )


def _amounts(axis: UOp, rows: list[UOp], wide: int) -> Iterator[dict[UOp, int]]:
    """Yield the lanes along `axis` and the rows along one or two other axes, of each tile."""
    widths = [*(n * wide for n in CHUNKS), wide // 2, wide // 4]
    lanes = [n for n in widths if 2 <= n < MAX_GROWTH * axis.extent]
    for row_axes in [*combinations(rows, 1), *combinations(rows, 2)]:
        amounts = [[n for n in TILE_ROWS if n <= r.extent] for r in row_axes]
        for most, *each in product(lanes, *amounts):
            yield {axis: most, **dict(zip(row_axes, each, strict=True))}


def _tile(
    amounts: dict[UOp, int], operands: list[UOp], target: Target, wide: int, gathered: int
) -> Tile:
    """Return the tile. `gathered` is the number of loads for a vector without unit stride. Fewer
    accumulators than `target.fmas_in_flight` wait for each other."""
    axis = next(iter(amounts))
    steps = {**amounts, axis: max(1, amounts[axis] // wide)}
    sums = registers = math.prod(steps.values())
    loaded = 0
    for load in operands:
        each = 1 if strides(load).get(axis, 1) == 1 else gathered
        loaded += each * math.prod(n for r, n in steps.items() if r in load.ranges)
        registers += _reused_registers(load, steps, axis)
    waste = math.prod(-(-r.extent // n) * n / r.extent for r, n in amounts.items())
    waste *= MASKING ** sum(bool(r.extent % n) for r, n in amounts.items())
    busy = max(sums, loaded, target.fmas_in_flight)
    slots = busy + ISSUE * (sums + loaded) + OVERHEAD
    cost = slots * waste / math.prod(amounts.values())
    return Tile(amounts, registers, loaded, cost)


def _reused_registers(load: UOp, steps: dict[UOp, int], axis: UOp) -> int:
    """Return the registers that hold a load until its last use. The tile is computed with its
    longest axis outermost and its lanes innermost (see `Expander.spread`)."""
    order = sorted(steps, key=lambda r: (-steps[r], r is axis))
    first = next((i for i, r in enumerate(order) if r not in load.ranges), len(order))
    return math.prod(steps[r] for r in order[first:] if r in load.ranges)


# --------------------------------------------------------------------------------------------------
# Piecewise axes, from joined or padded tensors: a kernel computes one value up to a border, and
# another one beyond it.
#
#     for g1 in 800: s(g1, g1 < 400)  ->  for g2 in 400: s(g2, True); s(400 + g2, False)
#
# If all borders are multiples of one length, the axis is split into pieces of that length, which
# become lanes: within a piece every condition is constant, so no load needs a mask.

MOST_PIECES = 16
"""The greatest number of pieces: more are long code, and more streams than a core prefetches."""


def pieces(kernel: UOp, target: Target) -> HeuristicStep | None:
    """An axis with borders, in pieces within which each condition is constant."""
    unit = unit_axis(kernel)
    if unit is None or reduces(kernel) or gathers(kernel, unit):
        return None
    wide = target.vector_width(itemsize(kernel))
    for axis in ranges(kernel).values():
        if axis.axis_kind is not AxisType.GLOBAL:
            continue
        positions = borders(kernel, axis)
        length = math.gcd(axis.extent, *positions)
        count = axis.extent // length
        # whole or half vectors must fit a piece of the unit-stride axis, so that no store is masked
        lanes = next((n for n in (2 * wide, wide, wide // 2) if length % n == 0), 0)
        if not positions or count > MOST_PIECES or (axis is unit and lanes < 2):
            continue
        name, opts = axis.axis_name, []
        if length > 1:
            opts = [Opt(OptOps.SPLIT, name, length)]
        opts.append(Opt(OptOps.UPCAST, name, count))
        if axis is unit:
            opts.append(Opt(OptOps.UPCAST, unused_axis_name(kernel, AxisType.GLOBAL), lanes))
        why = f"conditions change along {name}, but not within a piece of it"
        counts = {"borders": len(positions), "pieces": count, "length": length}
        return HeuristicStep("pieces", tuple(opts), why, counts)
    return None


def borders(kernel: UOp, axis: UOp) -> set[int]:
    """Return the positions along `axis` at which a comparison with a constant changes."""
    positions: set[int] = set()
    for node in kernel.toposort():
        if node.op not in _BREAK_OFFSET or axis not in node.ranges:
            continue
        (left, low), (right, high) = terms(node.src[0]), terms(node.src[1])
        if left == {axis: 1} and not right:
            positions.add(high - low + _BREAK_OFFSET[node.op])
        elif right == {axis: 1} and not left:
            positions.add(low - high + 1 - _BREAK_OFFSET[node.op])
    return positions


_BREAK_OFFSET = {Ops.CMPLT: 0, Ops.CMPLE: 1}
"""`axis < n` changes at n + 0, `axis <= n` at n + 1."""
