"""Steps of the default opts for reductions: loops that become lanes, that are unrolled, or that
move out of the output loops.

    reduction-lanes  the reduce axis with the shortest strides in the operands as lanes, if no
                     output axis is lanes of the sum
    short-sums       reductions of a few steps, unrolled
    known-masks      the steps of a short scan along lanes, unrolled
    reduce-outside   the loop of a reduction with a long stride, outside of the output loop
    dot-tile         the reduce axis with stride 1 in both operands as lanes, and output axes as
                     rows, if the result has too few neighbours

Sections: Steps of the default opts for reductions; The dot tile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

from workbench.base.target import Target
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.register_tile import (
    ISSUE,
    OVERHEAD,
    best_tile,
    dot_axis,
    itemsize,
    lanes_are_neighbours,
    loads,
    reduces,
    strides,
    unit_axis,
)
from workbench.ir.opt.heuristic.step import HeuristicStep, choose_lanes
from workbench.ir.opt.heuristic.step import split as padded_split
from workbench.ir.opt.opt import Opt, OptOps, ranges

# --------------------------------------------------------------------------------------------------
# Steps of the default opts for reductions.

CHAINS = 4
"""Independent accumulators (vectors) of a dot product: additions to one do not wait for others."""
DOT_ROWS = (4, 3, 2)
"""Rows of dot products that share an operand, the preferred number first: their accumulators and
loads fit in the registers."""
DOT_PADDED = 4
"""Rows are rounded up to whole blocks if there are at least this many blocks."""
ROW_SHARE = 1 / 4
"""Share of the second-level cache that a row of accumulators may fill; the operand passes through
the rest. Columns of 30,000 numbers were still summed twice as fast that way."""
SHORT = 9
"""Most steps of a reduction that is unrolled completely."""
SHORT_IN_ALL = 64
"""Most steps of all loops of a reduction together. With more, no loop is unrolled, so that the sums
stay in registers."""
FAR_STEPS = 128
"""A reduction of fewer steps touches so few lines that the next columns find them in the cache."""
STEPS_AT_ONCE = (4, 2)
"""Steps of an outer reduction loop that are added to a sum between its load and its store."""


def reduction_lanes(kernel: UOp, target: Target) -> HeuristicStep | None:
    """The reduce axis with the shortest strides as lanes, if no output axis is lanes of the sum:
    several independent accumulators are faster than a chain of additions, and round less."""
    opts: list[Opt] = []
    counts: dict[str, float] = {}
    why = "the shortest strides in what is reduced"
    for reduce in reduces(kernel):
        # not `itemsize(kernel)`: a 32-bit sum may be stored in 64 bits
        widest = max(4, *[n.dtype.itemsize for n in (reduce, *loads(reduce))])
        wide = target.vector_width(widest)
        if any(r.axis_kind.is_lane for r in reduce.src[0].ranges):
            continue
        axis, stride = dot_axis(reduce)
        if axis is None:
            continue
        row, rows = _dot_rows(kernel, reduce)
        choices = (CHAINS * wide, 2 * wide, wide, wide // 2)[stride > 1 :]
        if row is not None:  # sums of rows are independent accumulators already
            choices = tuple(c for c in choices if c * rows <= CHAINS * wide)
        lanes, split = choose_lanes(axis, OptOps.UNROLL, choices)
        if lanes > 1:
            opts += split
            counts[axis.axis_name] = lanes
            if row is not None:
                opts += padded_split(row, OptOps.UPCAST, rows)
                counts[row.axis_name] = rows
                why += f", and rows of {row.axis_name} share loads"
    return HeuristicStep("reduction-lanes", tuple(opts), why, counts) if opts else None


def _dot_rows(kernel: UOp, reduce: UOp) -> tuple[UOp | None, int]:
    """Return the output loop that becomes rows of dot products, and how many rows; (None, 1) for
    none. Some load does not depend on the loop, so that rows share the load. The loop is not the
    unit-stride axis of the result, which would become the vector."""
    unit, operands = unit_axis(kernel), loads(reduce.src[0])
    if len(reduces(kernel)) != 1 or unit is None:
        return None, 1
    for axis in ranges(kernel).values():
        if axis is unit or axis.axis_kind is not AxisType.GLOBAL:
            continue
        if 0 < sum(axis in n.ranges for n in operands) < len(operands):
            rows = next((n for n in DOT_ROWS if axis.extent % n == 0), 0)
            if not rows and axis.extent >= DOT_PADDED * DOT_ROWS[0]:
                rows = DOT_ROWS[0]
            if rows:
                return axis, rows
    return None, 1


def short_sums(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A reduction of a few steps, as over a window or three coordinates, unrolled: its inner loops,
    as many as the lanes and the length of the code allow."""
    reductions = reduces(kernel)
    if len(reductions) != 1 or any(n.op is Ops.STAGE for n in kernel.toposort()):
        return None
    loops = [ranges(kernel)[name] for name in kernel.arg.order]
    inside = [r for r in reversed(loops) if r in reductions[0].src[1:]]
    lanes = math.prod(r.extent for r in ranges(kernel).values() if r.axis_kind.is_lane)
    whole = math.prod(r.extent for r in inside)
    registers = _register_count(reductions[0], target)
    if whole > SHORT_IN_ALL or registers > target.vector_registers:
        return None
    opts: list[Opt] = []
    counts: dict[str, float] = {"steps": whole, "lanes": lanes, "registers": registers}
    steps = 1
    for axis, loop in zip(inside, reversed(loops), strict=False):
        steps *= axis.extent
        if axis is not loop or steps > SHORT or steps * lanes > target.max_lanes:
            break
        opts.append(Opt(OptOps.UNROLL, axis.axis_name, axis.extent))
        counts[axis.axis_name] = axis.extent
    why = "counting these few steps costs as much as the work"
    return HeuristicStep("short-sums", tuple(opts), why, counts) if opts else None


def known_masks(kernel: UOp, target: Target) -> HeuristicStep | None:
    """Reductions of a few steps in which a lane adds the steps up to its position, as in a scan.
    Unrolled, the comparison is a constant for each step."""
    opts = []
    for reduce in reduces(kernel):
        axis, value = reduce.src[1], reduce.src[0]
        if len(reduce.src) != 2 or axis.op is not Ops.RANGE or axis.extent > SHORT:
            continue
        if value.op is not Ops.WHERE or value.src[0].op is not Ops.CMPLT:
            continue
        lanes = value.src[0].ranges - {axis}
        if lanes and all(r.axis_kind is AxisType.UPCAST for r in lanes):
            opts.append(Opt(OptOps.UNROLL, axis.axis_name, axis.extent))
    why = "unrolled, the mask of each step is a constant"
    return HeuristicStep("known-masks", tuple(opts), why) if opts else None


def _register_count(reduce: UOp, target: Target) -> int:
    """Return the registers that a reduction needs: for its accumulators, for its largest load that
    several of them share, and for one vector that is used once."""
    wide = target.vector_width(reduce.dtype.itemsize)
    lanes = [r for r in reduce.ranges if r.axis_kind.is_lane]
    shared = [
        math.prod(r.extent for r in lanes if r in load.ranges)
        for load in loads(reduce.src[0])
        if not lanes_are_neighbours(load) and not load.ranges >= set(lanes)
    ]
    sums = math.prod(r.extent for r in lanes)
    return -(-sums // wide) + max(shared, default=0) + 1


def reduce_outside(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A reduction along the longer stride of an operand that is read once, with its loop outside:
    memory is read in order, and the row of sums stays in the cache. Adding a few steps at a time
    saves most loads and stores of that row. Several sums over one loop move together."""
    axes, sums, order = ranges(kernel), reduces(kernel), kernel.arg.order
    if not sums or len(order) < 2:
        return None
    outer, inner = (axes[name] for name in order[-2:])
    if outer.axis_kind is not AxisType.GLOBAL or inner.extent < FAR_STEPS:
        return None
    if not all(_has_long_stride(s, inner, outer) for s in sums):
        return None
    row = sum(_row_bytes(s, outer) for s in sums)
    if row > ROW_SHARE * target.l2_bytes:
        return None
    at_once, unrolled = choose_lanes(inner, OptOps.UNROLL, STEPS_AT_ONCE)
    opts = [Opt(OptOps.ORDER, inner.axis_name, outer.axis_name)]
    opts += unrolled if at_once > 1 else []
    why = f"{inner.axis_name} has the longer stride, and only the sums are reused"
    counts = {"row_bytes": row, "steps_at_once": at_once}
    return HeuristicStep("reduce-outside", tuple(opts), why, counts)


def _has_long_stride(reduce: UOp, inner: UOp, outer: UOp) -> bool:
    """Whether a reduction over `inner` has lanes and no reduction inside, and each load along
    `outer` has a longer stride along `inner`."""
    read = [n for n in loads(reduce.src[0]) if outer in n.ranges]
    is_nested = any(n.op is Ops.REDUCE for n in reduce.src[0].toposort())
    if inner not in reduce.src[1:] or is_nested or not read or not _lanes(reduce):
        return False
    return all(_stride_along(n, inner) > _stride_along(n, outer) > 0 for n in read)


def _lanes(reduce: UOp) -> list[UOp]:
    return [r for r in reduce.ranges if r.axis_kind is AxisType.UPCAST]


def _row_bytes(reduce: UOp, outer: UOp) -> int:
    row = math.prod(r.extent for r in (outer, *_lanes(reduce)))
    return row * reduce.dtype.itemsize


def _stride_along(load: UOp, axis: UOp) -> int:
    """Return the stride of a load along `axis`, in elements; its index may be clamped at the end of
    the axis."""
    parts = strides(load).items()
    return sum(k for part, k in parts if axis in part.ranges)


# --------------------------------------------------------------------------------------------------
# The dot tile: reduction lanes along neighbours in memory, times rows along output axes.
#
# Every step loads a vector of each operand for each row that the operand depends on; other rows
# share it. The sums are vectors, whose lanes are added at the end. The tile is for results with few
# neighbours: the gradient of a convolution's weights has three along a row of a kernel, which would
# be three lanes of eight, while the images that are summed have many.
#
# Source: the "inner product" micro-kernels beside the outer product ones of Goto and van de Geijn
# (2008).

ROWS = (4, 3, 2)
"""Rows along an axis."""
GAIN = 1.2
"""A dot tile is used if a register tile costs at least this many times as much."""


@dataclass(frozen=True, slots=True)
class DotTile:
    """Lanes along a reduce axis, and rows of output axes; `cost` is in slots per multiply-add."""

    axis: UOp
    opts: tuple[Opt, ...]
    lanes: int
    rows: dict[UOp, int]
    cost: float


def dot_tile(kernel: UOp, target: Target) -> HeuristicStep | None:
    """The reduce axis with stride 1 in both operands as lanes, and output axes as rows that share
    loads, if the results have too few neighbours for a register tile."""
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
    """Yield the dot tiles that fit the registers."""
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
