"""The dot tile: reduction lanes along neighbours in memory, times rows along output axes.

Every step loads a vector of each operand for each row that it depends on, and all rows share what
they do not depend on. The sums are vectors, which are added across at the end. It is the tile for
results of few neighbours: the gradient of a convolution's weights has three along a row of a
kernel, which would be three lanes of eight, while the images that are summed over have many.

Source: the "inner product" micro-kernels beside the outer product ones of Goto and van de Geijn
(2008).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from workbench.base.target import Target
from workbench.ir.node.axis import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.register_tile import ISSUE, OVERHEAD, best_tile
from workbench.ir.opt.heuristic.step import HeuristicStep, choose_lanes
from workbench.ir.opt.heuristic.strides import dot_axis, itemsize, loads, reduces, unit_axis
from workbench.ir.opt.opt import Opt, OptOps, ranges

ROWS = (4, 3, 2)
"""Rows along an axis."""
GAIN = 1.2
"""A dot tile is used where a register tile takes this many times as long."""


@dataclass(frozen=True, slots=True)
class DotTile:
    """Lanes along a reduce axis, and rows of output axes; `cost` is in slots per multiply-add."""

    axis: UOp
    opts: tuple[Opt, ...]
    lanes: int
    rows: dict[UOp, int]
    cost: float


def dot_tile(kernel: UOp, target: Target) -> HeuristicStep | None:
    """The reduce axis along which both operands are neighbours as lanes, and output axes as rows
    that share loads, where the results have too few neighbours for a register tile."""
    tiles = list(_tiles(kernel, target))
    if not tiles:
        return None
    best = min(tiles, key=lambda tile: tile.cost)
    beside = best_tile(kernel, target)
    if beside is None or beside.cost < GAIN * best.cost:
        return None
    rows = [Opt(OptOps.UPCAST, r.axis_name, n) for r, n in best.rows.items()]
    shape = " x ".join(f"{n} of {r.axis_name}" for r, n in best.rows.items())
    wide = target.vector_width(itemsize(kernel))
    why = (
        f"{best.lanes} neighbours of {best.axis.axis_name} for {shape}: the results have too few"
        " neighbours for lanes of their own"
    )
    counts = {
        "slots_per_multiply_add": round(best.cost * wide, 3),
        "in_a_register_tile": round(beside.cost * wide, 3),
    }
    return HeuristicStep("dot-tile", (*best.opts, *rows), why, counts)


def _tiles(kernel: UOp, target: Target) -> Iterator[DotTile]:
    """Yield the tiles that fit the registers."""
    reductions, unit = reduces(kernel), unit_axis(kernel)
    if len(reductions) != 1 or unit is None:
        return
    (reduce,) = reductions
    operands, (axis, stride) = loads(reduce.src[0]), dot_axis(reduce)
    if axis is None or stride != 1 or any(axis not in n.ranges for n in operands):
        return
    wide = target.vector_width(itemsize(kernel))
    lanes, opts = choose_lanes(axis, OptOps.UNROLL, (wide, wide // 2))
    if lanes < 2:
        return
    steps = math.prod(r.extent for r in reduce.src[1:]) / lanes
    shared = [
        r
        for r in ranges(kernel).values()
        if r is not unit
        and r.axis_kind is AxisType.GLOBAL
        and 0 < sum(r in n.ranges for n in operands) < len(operands)
    ]
    for axes in [*combinations(shared, 1), *combinations(shared, 2)]:
        amounts = [[n for n in ROWS if r.extent % n == 0] for r in axes]
        for each in product(*amounts):
            rows = dict(zip(axes, each, strict=True))
            sums = math.prod(each)
            loaded = sum(
                math.prod([n for r, n in rows.items() if r in load.ranges]) for load in operands
            )
            if sums + loaded > target.vector_registers:
                continue
            busy = max(sums, loaded, target.fmas_in_flight)
            at_the_end = sums * lanes / steps
            slots = busy + ISSUE * (sums + loaded) + OVERHEAD + at_the_end
            yield DotTile(axis, opts, lanes, rows, slots / (sums * lanes))
