"""The register tile: vector lanes along one axis times rows along one or two others.

Every step of the reduction loads what the tile's elements share: a vector for each chunk of
lanes, one number to broadcast for each row. The more elements share a load, the closer the loop
comes to multiply-adds alone; the sums must stay in registers, and elements beyond the end of an
axis are computed for nothing. All tiles of a few sizes are compared by their cost for one useful
multiply-add.

Source: Goto and van de Geijn (2008), and Low et al., "Analytical modeling is
enough for high-performance BLIS" (2016).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from workbench.base.target import Target
from workbench.ir.node.axis import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.step import HeuristicStep, split
from workbench.ir.opt.heuristic.strides import (
    gathers,
    itemsize,
    loads,
    packs,
    reduces,
    strides,
    vector_axis,
)
from workbench.ir.opt.kinds.padto import GROWTH
from workbench.ir.opt.opt import OptOps, ranges

TILE_ROWS = (8, 6, 4, 3, 2)
"""Rows along an axis."""
CHUNKS = (2, 1, 3, 4)
"""Vectors of lanes; where two tiles cost the same, the first."""
OVERHEAD = 1
"""Slots of the loop itself for each step of the reduction: counting and jumping back. A slot is the
time in which one multiply-add and one load can begin."""
ISSUE = 1 / 8
"""Slots that a load and a multiply-add delay each other: they do not overlap completely, so of two
equally large tiles the one with fewer loads is better."""
MASKING = 1.03
"""Factor on the cost of an axis that is rounded up, for the masks of its last loads and stores."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Amounts of axes, the lanes first; `cost` is in slots per useful multiply-add."""

    amounts: dict[UOp, int]
    registers: int
    loads: int
    cost: float


def register_tile(kernel: UOp, target: Target) -> HeuristicStep | None:
    """An output axis as vector lanes, and others as rows: those that some operand of the reduction
    does not depend on, so that its loads are reused."""
    best, wide = best_tile(kernel, target), target.vector_width(itemsize(kernel))
    if best is None:
        return None
    opts = [opt for r, n in best.amounts.items() for opt in split(r, OptOps.UPCAST, n)]
    shape = " x ".join(f"{n} of {r.axis_name}" for r, n in best.amounts.items())
    why = f"{shape}: of the tiles that fit the registers, this one's elements share most"
    counts = {
        "loads": best.loads,
        "registers": best.registers,
        "slots_per_multiply_add": round(best.cost * wide, 3),
    }
    return HeuristicStep("register-tile", tuple(opts), why, counts)


def best_tile(kernel: UOp, target: Target) -> Tile | None:
    """Return the tile of the lowest cost; None where none fits the registers."""
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
    # packing transposes the operand, in blocks of lanes by a vector
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
    """Whether an operand that is gathered along `axis` depends on another output loop, inside of
    which it can be packed."""
    gathered = [n for n in operands if axis in n.ranges and strides(n).get(axis) != 1]
    return all(
        any(r.axis_kind is AxisType.GLOBAL for r in n.ranges if r is not axis) for n in gathered
    )


def _amounts(axis: UOp, rows: list[UOp], wide: int) -> Iterator[dict[UOp, int]]:
    """Yield amounts of lanes, and of rows along one or two axes."""
    widths = [*(n * wide for n in CHUNKS), wide // 2, wide // 4]
    lanes = [n for n in widths if 2 <= n < GROWTH * axis.extent]
    for row_axes in [*combinations(rows, 1), *combinations(rows, 2)]:
        amounts = [[n for n in TILE_ROWS if n <= r.extent] for r in row_axes]
        for most, *each in product(lanes, *amounts):
            yield {axis: most, **dict(zip(row_axes, each, strict=True))}


def _tile(
    amounts: dict[UOp, int], operands: list[UOp], target: Target, wide: int, gathered: int
) -> Tile:
    """Return the tile; `gathered` is the number of loads for a vector that is not of neighbours.
    Fewer accumulators than `target.fmas_in_flight` wait for each other."""
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
    """Return how many registers a load takes that is used again: a step goes through the tile with
    the longest axis outermost and the lanes innermost (see `Expander.spread`)."""
    order = sorted(steps, key=lambda r: (-steps[r], r is axis))
    first = next((i for i, r in enumerate(order) if r not in load.ranges), len(order))
    return math.prod(steps[r] for r in order[first:] if r in load.ranges)
