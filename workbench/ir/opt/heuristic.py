"""The default opts: an ordered table of steps, each decided by figures that a person can read.

    turned-block     the axes along which the result's and an operand's elements are neighbours,
                     as square blocks that are turned round in registers
    register-tile    the axis along which the result's elements are neighbours as vector lanes, and
                     other output axes as rows, so that each load serves several results
    vector-lanes     that axis alone, where nothing is shared
    row-lanes        the fill axes of rows that are staged inside the kernel
    dot-lanes        the reduce axes along which the operands' elements lie nearest, where no
                     output axis is lanes of the sum
    pack-operand     the operand that is read again for every step of an outer loop, as a tile
    threads          the outermost loop over the output, one part per core
    short-sums       reductions of a few steps, without their loops
    reduce-outside   the loop of a reduction over the far stride, outside of the outputs of a core

A step proposes opts with its figures, or nothing. Source: the figures of Goto and van de Geijn
(packing), and of Halide's and tinygrad's hand-coded schedulers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from workbench.ir.axis import AxisType
from workbench.ir.footprint import touched
from workbench.ir.loops import Statement, statements
from workbench.ir.ops import Ops
from workbench.ir.opt.apply import form
from workbench.ir.opt.heuristic_step import PADDING, Step, Steps, chosen_lanes
from workbench.ir.opt.heuristic_step import split as padded_split
from workbench.ir.opt.heuristic_tile import register_tile
from workbench.ir.opt.heuristic_walks import (
    GATHERED_REUSE,
    REUSE,
    dot_axis,
    gathers,
    itemsize,
    loads,
    loops_of,
    reduces,
    store_strides,
    strides,
    unit_axis,
    vector_axis,
)
from workbench.ir.opt.opt import Opt, OptOps, ranges
from workbench.ir.opt.stage import fill_name
from workbench.ir.uop import UOp, split_gate
from workbench.target import Target
from workbench.trace import Match, recording, unobserved

CHAINS = 4
"""Vectors of a dot product kept apart, so that one addition need not wait for the last."""
DOT_ROWS = (4, 3, 2)
"""Rows of dot products that share an operand: so many sums and the loads fit the registers."""
DOT_PADDED = 4
"""Rows are rounded up where there are so many times as many."""
ROW_SHARE = 1 / 4
"""A row of accumulators may fill so much of the second-level cache: columns of 30,000 numbers were
still summed twice as fast that way, and what is summed passes through the rest."""
SHORT = 9
"""Steps of a reduction that may stand in the code one by one."""
SHORT_IN_ALL = 64
"""More than so many steps keep all their loops: their sums are better off with the registers."""
FAR_STEPS = 128
"""A reduction of fewer steps touches so few lines that the next columns find them in the cache."""
STEPS_AT_ONCE = (4, 2)
"""Steps of a reduction outside that are added to a sum between its load and its store."""
PACKED_SHARE = 1
"""A packed tile may be so many times the second-level cache: at that size some products were
still ten times as fast as without one, and none slower, on a core with 1 MiB."""
OVERLAP = 2
"""A tile whose copy is so many times what it touches, as windows are, is read in place."""
THREAD_STEPS = 1 << 17
"""Lane-steps of work below which waking other cores gains nothing: some ten microseconds."""


def heuristic(kernel: UOp, target: Target) -> tuple[UOp, tuple[Opt, ...], Steps]:
    """Return (kernel with the default opts, those opts, the steps that fired, each with what was
    applied of it: an opt that is not legal is left out)."""
    applied: list[Opt] = []
    fired: list[Step] = []
    doc = "The default opts, each step with the figures that made it fire."
    with recording("heuristic", doc, kernel) as record:
        for propose in STEPS:
            step = propose(kernel, target)
            if step is None:
                continue
            before, taken = kernel, []
            with unobserved():
                for opt in step.opts:
                    made = form(kernel, opt, target)
                    if made is not None:
                        kernel = made
                        taken.append(opt)
            if not taken:
                continue
            step = replace(step, opts=tuple(taken))
            applied += taken
            fired.append(step)
            if record.matches is not None:
                record.matches.append(Match(step, before, kernel))
        record.after = kernel
    return kernel, tuple(applied), Steps(fired)


def turned_block(kernel: UOp, target: Target) -> Step | None:
    """Where an operand is read across, as in a transposed copy: blocks of vectors by vectors."""
    axis = unit_axis(kernel)
    if axis is None or reduces(kernel):
        return None
    wide = target.vector_width(itemsize(kernel))
    for load in loads(kernel):
        if strides(load).get(axis, 1) == 1:
            continue
        across = [a for a, k in strides(load).items() if k == 1 and a.op is Ops.RANGE]
        if len(across) != 1 or across[0].axis_kind is not AxisType.GLOBAL:
            continue
        splits = [
            chosen_lanes(each, OptOps.UPCAST, (wide,)) for each in (axis, across[0])
        ]
        if all(lanes == wide for lanes, _ in splits):
            why = f"along {axis.axis_name} what is read lies {strides(load)[axis]:,} apart"
            opts = tuple(opt for _, split in splits for opt in split)
            return Step("turned-block", opts, why, {"lanes": wide})
    return None


def vector_lanes(kernel: UOp, target: Target) -> Step | None:
    """The result's unit-stride axis, where loads along it are neighbours or the same element."""
    axis = vector_axis(kernel)
    if axis is None:
        return None
    wide, name = target.vector_width(itemsize(kernel)), axis.axis_name
    choices = (2 * wide, wide, wide // 2, wide // 4)
    lanes, opts = chosen_lanes(axis, OptOps.UPCAST, choices)
    if lanes < 2:
        return None
    why = f"{name} has stride 1 in the result"
    figures = {"extent": axis.extent, "lanes": lanes, "vector": wide}
    return Step("vector-lanes", opts, why, figures)


def row_lanes(kernel: UOp, target: Target) -> Step | None:
    """The fill axes of staged rows, whose elements are neighbours by construction."""
    wide = target.vector_width(itemsize(kernel))
    opts: list[Opt] = []
    figures: dict[str, float] = {}
    for row in kernel.toposort():
        axis = row.src[-1] if row.op is Ops.STAGE else None
        if (
            axis is None
            or axis.op is not Ops.RANGE
            or axis.axis_kind is not AxisType.FILL
        ):
            continue
        lanes, split = chosen_lanes(axis, OptOps.UPCAST, (2 * wide, wide, wide // 2))
        if lanes > 1 and not gathers(row.src[0], axis):
            opts += split
            figures[axis.axis_name] = lanes
    return (
        Step("row-lanes", tuple(opts), "rows are filled in order", figures)
        if opts
        else None
    )


def dot_lanes(kernel: UOp, target: Target) -> Step | None:
    """The reduce axis whose loads lie nearest, where no output axis is lanes of the sum: several
    sums are kept apart, which is faster than a chain of additions, and rounds less."""
    wide = target.vector_width(itemsize(kernel))
    opts: list[Opt] = []
    figures: dict[str, float] = {}
    why = "nearest in what is reduced"
    for reduce in reduces(kernel):
        if any(r.axis_kind.is_lane for r in reduce.src[0].ranges):
            continue
        axis, apart = dot_axis(reduce)
        if axis is None:
            continue
        row, rows = _dot_rows(kernel, reduce)
        choices = (CHAINS * wide, 2 * wide, wide, wide // 2)[apart > 1 :]
        if row is not None:  # their sums are chains of their own
            choices = tuple(c for c in choices if c * rows <= CHAINS * wide)
        lanes, split = chosen_lanes(axis, OptOps.UNROLL, choices)
        if lanes > 1:
            opts += split
            figures[axis.axis_name] = lanes
            if row is not None:
                opts += padded_split(row, OptOps.UPCAST, rows)
                figures[row.axis_name] = rows
                why += f", and rows of {row.axis_name} share what is loaded"
    return Step("dot-lanes", tuple(opts), why, figures) if opts else None


def _dot_rows(kernel: UOp, reduce: UOp) -> tuple[UOp | None, int]:
    """Return an output loop as rows of dot products, and how many: one that some load does not
    depend on, so that rows share it, and along which the result has no neighbours, since those
    would become the vector."""
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


def pack_operand(kernel: UOp, target: Target) -> Step | None:
    """An operand that vector lanes walk and an outer loop does not: read again at every step of
    it, from lines far apart. The loops that it depends on go outside, and its tile is packed
    once for all the others."""
    found = reduces(kernel)
    if len(found) != 1:
        return None
    moves, most = store_strides(kernel), PACKED_SHARE * target.l2_bytes
    for load in loads(found[0].src[0]):
        if load.src[0].src[0].op is not Ops.PARAM:
            continue  # it is packed already
        if not any(r.axis_kind.is_lane and moves.get(r) == 1 for r in load.ranges):
            continue
        around, again = loops_of(kernel, load)
        inside = [r for r in ranges(kernel).values() if r in load.ranges]
        tile = [r for r in inside if r not in around]
        copied = math.prod(r.extent for r in tile) * load.dtype.itemsize
        held = _held(load, tile) * load.dtype.itemsize
        reuse = math.prod(r.extent for r in again)
        least = REUSE if _lanes_are_neighbours(load) else GATHERED_REUSE
        if not around or reuse < least or min(copied, held) > most:
            continue
        slot, order = load.src[0].src[0].arg[0], kernel.arg.order
        first = min(order.index(r.axis_name) for r in again)
        late = [r.axis_name for r in around if order.index(r.axis_name) > first]
        opts = [Opt(OptOps.ORDER, name, order[first]) for name in late]
        names = " ".join(r.axis_name for r in again)
        why = f"input {slot} is read again at every step of {names}"
        figures = {"reuse": reuse, "tile_bytes": copied}
        if copied < OVERLAP * held:
            opts.append(Opt(OptOps.STAGE, around[-1].axis_name, slot))
            opts += _turned_fill(load, tile, target)
        else:
            why += (
                "; it stays where it is, since a copy holds each element several times"
            )
            figures["bytes_in_place"] = held
        return Step("pack-operand", tuple(opts), why, figures)
    return None


def _lanes_are_neighbours(load: UOp) -> bool:
    """Whether some lanes of a load are neighbours in memory."""
    walk = strides(load)
    return any(r.axis_kind.is_lane and walk.get(r) == 1 for r in load.ranges)


def _turned_fill(load: UOp, tile: list[UOp], target: Target) -> list[Opt]:
    """Return the opts that fill a tile by whole vectors where its lanes are not neighbours in
    memory: read along the axis that is, they are turned round in registers."""
    walk, slot = strides(load), load.src[0].src[0].arg[0]
    wide = target.vector_width(load.dtype.itemsize)
    apart = [r for r in tile if r.axis_kind.is_lane and walk.get(r) != 1]
    across = [r for r in tile if not r.axis_kind.is_lane and walk.get(r) == 1]
    opts = [Opt(OptOps.UPCAST, fill_name(slot, r), r.extent) for r in apart]
    whole = [r for r in across if apart and r.extent % wide == 0]
    opts += [Opt(OptOps.UPCAST, fill_name(slot, r), wide) for r in whole]
    return opts


def _held(load: UOp, tile: list[UOp]) -> int:
    """Return how many elements a tile has where it lies; as many as a copy of it has, where
    reading it there needs masks or is no matter of whole vectors."""
    index, gate = split_gate(load.src[0].src[-1])
    if gate is not None or not _lanes_are_neighbours(load):
        return math.prod(r.extent for r in tile)
    return touched([index], tile, load.src[0].src[0].arg[1]).elements


def threads(kernel: UOp, target: Target) -> Step | None:
    """The outermost output axis, a part for each core, where there is work for several."""
    work = max((_lane_steps(s) for s in statements(kernel).values()), default=0)
    outer = ranges(kernel)[kernel.arg.order[0]] if kernel.arg.order else None
    if target.cores < 2 or work < THREAD_STEPS or outer is None:
        return None
    if outer.axis_kind is not AxisType.GLOBAL:
        return None
    name, n = outer.axis_name, outer.extent
    parts = max(d for d in range(1, target.cores + 1) if n % d == 0)
    figures = {"lane_steps": work, "extent": n, "cores": target.cores, "parts": parts}
    why = f"{name} is outermost, and there is work for {target.cores} cores"
    opts = [Opt(OptOps.THREAD, name, parts)]
    if 2 * parts <= target.cores:
        padded = -(-n // target.cores) * target.cores
        if padded > n * PADDING:
            return None
        opts = [Opt(o, name, target.cores) for o in (OptOps.PADTO, OptOps.THREAD)]
        figures |= {"parts": target.cores, "padded": padded}
    return Step("threads", tuple(opts), why, figures)


def _lane_steps(statement: Statement) -> int:
    """Return how often a statement computes an element."""
    axes = (*statement.nest, *statement.lanes, *statement.own_lanes)
    return math.prod(r.extent for r in axes)


def short_sums(kernel: UOp, target: Target) -> Step | None:
    """A reduction of a few steps, as over a window or three coordinates, without its loops: as
    many of them, from the inside, as the lanes and the length of the code allow."""
    found = reduces(kernel)
    if len(found) != 1 or any(n.op is Ops.STAGE for n in kernel.toposort()):
        return None
    loops = [ranges(kernel)[name] for name in kernel.arg.order]
    inside = [r for r in reversed(loops) if r in found[0].src[1:]]
    lanes = math.prod(r.extent for r in ranges(kernel).values() if r.axis_kind.is_lane)
    whole = math.prod(r.extent for r in inside)
    held = _held_registers(found[0], target)
    if whole > SHORT_IN_ALL or held > target.vector_registers:
        return None
    opts: list[Opt] = []
    figures: dict[str, float] = {"steps": whole, "lanes": lanes, "registers": held}
    steps = 1
    for axis, loop in zip(inside, reversed(loops), strict=False):
        steps *= axis.extent
        if axis is not loop or steps > SHORT or steps * lanes > target.max_lanes:
            break
        opts.append(Opt(OptOps.UNROLL, axis.axis_name, axis.extent))
        figures[axis.axis_name] = axis.extent
    why = "so few steps that counting them costs as much as the work"
    return Step("short-sums", tuple(opts), why, figures) if opts else None


def _held_registers(reduce: UOp, target: Target) -> int:
    """Return the registers of a reduction's sums, of the most numbers that a load gives to
    several of them, and of one vector that passes by."""
    wide = target.vector_width(reduce.dtype.itemsize)
    lanes = [r for r in reduce.ranges if r.axis_kind.is_lane]
    shared = [
        math.prod(r.extent for r in lanes if r in load.ranges)
        for load in loads(reduce.src[0])
        if not _lanes_are_neighbours(load) and not load.ranges >= set(lanes)
    ]
    sums = math.prod(r.extent for r in lanes)
    return -(-sums // wide) + max(shared, default=0) + 1


def reduce_outside(kernel: UOp, target: Target) -> Step | None:
    """A reduction over the far stride of what is read once: with its loop outside, memory is
    walked in order, and the row of sums stays in cache. A few steps at once save most of its
    loads and stores there."""
    axes, sums, order = ranges(kernel), reduces(kernel), kernel.arg.order
    if len(sums) != 1 or len(order) < 2:
        return None
    outer, inner = (axes[name] for name in order[-2:])
    lanes = [r for r in sums[0].ranges if r.axis_kind is AxisType.UPCAST]
    if inner not in sums[0].src[1:] or outer.axis_kind is not AxisType.GLOBAL:
        return None
    row = math.prod(r.extent for r in (outer, *lanes)) * sums[0].dtype.itemsize
    read = [n for n in loads(sums[0].src[0]) if outer in n.ranges]
    if inner.extent < FAR_STEPS:
        return None
    if not lanes or not read or row > ROW_SHARE * target.l2_bytes:
        return None
    if not all(_walk(n, inner) > _walk(n, outer) > 0 for n in read):
        return None
    at_once, unrolled = chosen_lanes(inner, OptOps.UNROLL, STEPS_AT_ONCE)
    opts = [Opt(OptOps.ORDER, inner.axis_name, outer.axis_name)]
    opts += unrolled if at_once > 1 else []
    why = f"{inner.axis_name} has the far stride, and nothing is reused but the sums"
    figures = {"row_bytes": row, "steps_at_once": at_once}
    return Step("reduce-outside", tuple(opts), why, figures)


def _walk(load: UOp, axis: UOp) -> int:
    """Return how far one step of `axis` moves in what is read; clamped at the end or not."""
    parts = strides(load).items()
    return sum(k for part, k in parts if axis in part.ranges)


STEPS: tuple[Callable[[UOp, Target], Step | None], ...] = (
    turned_block,
    register_tile,
    vector_lanes,
    row_lanes,
    dot_lanes,
    pack_operand,
    threads,
    short_sums,
    reduce_outside,
)
