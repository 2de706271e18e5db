"""The default opts: an ordered table of steps, each decided by a few counts of the kernel.

    pieces           an axis along which the conditions of joined or padded tensors change, as
                     pieces side by side in which they do not
    in-register-transpose
                     the axes along which the result's and an operand's elements are neighbours,
                     as square blocks that are transposed in registers
    dot-tile         the reduce axis along which both operands' elements are neighbours as lanes,
                     and output axes as rows, where the result has too few neighbours
    register-tile    the axis along which the result's elements are neighbours as vector lanes, and
                     other output axes as rows, so that each load serves several results
    vector-lanes     that axis alone, where no two results share a load
    row-lanes        the fill axes of rows that are staged inside the kernel
    reduction-lanes  the reduce axes along which the operands' elements lie nearest, where no
                     output axis is lanes of the sum
    pack-operand     the operand that every step of an outer loop reads again, as a tile
    threads          the outermost loop over the output, one part per core
    sum-blocks       a long reduction along which an operand is read across, in blocks
    short-sums       reductions of a few steps, without their loops
    known-masks      the steps of a scan in a block of lanes, without their loop
    reduce-outside   the loop of a reduction over the far stride, outside of the outputs of a core

These are for a processor. A device with work-groups has steps of its own
(`work_group_steps.py`), unless a processor runs its work-items one after another: then these make
the tile of a work-item, and work-items are the parts of its loops.
A step proposes opts with its counts, or nothing; those of reductions alone stand in
`reductions.py`. Source: Goto and van de Geijn (packing), Halide's and tinygrad's hand-coded
schedulers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from workbench.base.target import Target
from workbench.base.trace import Match, recording, unobserved
from workbench.ir.nest.estimates import touched
from workbench.ir.nest.loops import Statement, statements
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, split_gate
from workbench.ir.opt.apply import apply_if_legal
from workbench.ir.opt.heuristic.reductions import (
    dot_tile,
    known_masks,
    reduce_outside,
    reduction_lanes,
    short_sums,
)
from workbench.ir.opt.heuristic.register_tile import (
    GATHERED_REUSE,
    REUSE,
    gathers,
    itemsize,
    lanes_are_neighbours,
    loads,
    loops_of,
    pieces,
    reduces,
    register_tile,
    strides,
    unit_axis,
    vector_axis,
)
from workbench.ir.opt.heuristic.step import PADDING, HeuristicStep, HeuristicSteps, choose_lanes
from workbench.ir.opt.heuristic.work_group_steps import GROUP_STEPS
from workbench.ir.opt.heuristic.work_groups import work_items
from workbench.ir.opt.kinds.stage import fill_name
from workbench.ir.opt.opt import Opt, OptOps, ranges, store_strides

Propose = Callable[[UOp, Target], HeuristicStep | None]
PACKED_SHARE = 1
"""Greatest size of a packed tile, in second-level caches. At this size, on a core with 1 MiB, some
products were ten times as fast as without a packed tile, and none slower."""
BLOCKS = range(128, 63, -1)
"""Steps of a block, the longest first: their cache lines fill at most a quarter of the first-level
cache."""
OVERLAP = 2
"""A tile is read in place where its copy has at least this many times the elements that it touches,
as with overlapping windows."""
THREAD_STEPS = 1 << 17
"""Lane-steps below which waking other cores gains nothing: about ten microseconds of work."""


def heuristic(
    kernel: UOp, target: Target, without: Sequence[Propose] = ()
) -> tuple[UOp, tuple[Opt, ...], HeuristicSteps]:
    """Return the kernel with the default opts, those opts, and the steps that fired, each with its
    opts that were legal and are applied; `without` are steps that are left out."""
    applied: list[Opt] = []
    fired: list[HeuristicStep] = []
    doc = "The default opts, each step with the numbers that made it fire."
    with recording("heuristic", doc, kernel) as record:
        for propose in steps_for(target):
            step = None if propose in without else propose(kernel, target)
            if step is None:
                continue
            before, step_opts = kernel, []
            with unobserved():
                for opt in step.opts:
                    next_kernel = apply_if_legal(kernel, opt, target)
                    if next_kernel is not None:
                        kernel = next_kernel
                        step_opts.append(opt)
            if not step_opts:
                continue
            step = replace(step, opts=tuple(step_opts))
            applied += step_opts
            fired.append(step)
            if record.matches is not None:
                record.matches.append(Match(step, before, kernel))
        record.after = kernel
    return kernel, tuple(applied), HeuristicSteps(fired)


def in_register_transpose(kernel: UOp, target: Target) -> HeuristicStep | None:
    """Square blocks of vectors, where an operand is read across its rows, as in a transposed
    copy."""
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
        splits = [choose_lanes(each, OptOps.UPCAST, (wide,)) for each in (axis, across[0])]
        if all(lanes == wide for lanes, _ in splits):
            why = f"along {axis.axis_name} what is read lies {strides(load)[axis]:,} apart"
            opts = tuple(opt for _, split in splits for opt in split)
            return HeuristicStep("in-register-transpose", opts, why, {"lanes": wide})
    return None


def vector_lanes(kernel: UOp, target: Target) -> HeuristicStep | None:
    """The result's unit-stride axis, where loads along it are neighbours or the same element."""
    axis = vector_axis(kernel)
    if axis is None:
        return None
    wide, name = target.vector_width(itemsize(kernel)), axis.axis_name
    choices = (2 * wide, wide, wide // 2, wide // 4)
    lanes, opts = choose_lanes(axis, OptOps.UPCAST, choices)
    if lanes < 2:
        return None
    why = f"{name} has stride 1 in the result"
    counts = {"extent": axis.extent, "lanes": lanes, "vector": wide}
    return HeuristicStep("vector-lanes", opts, why, counts)


def row_lanes(kernel: UOp, target: Target) -> HeuristicStep | None:
    """The fill axes of staged rows, whose elements are neighbours by construction."""
    wide = target.vector_width(itemsize(kernel))
    opts: list[Opt] = []
    counts: dict[str, float] = {}
    for row in kernel.toposort():
        axis = row.src[-1] if row.op is Ops.STAGE else None
        if axis is None or axis.op is not Ops.RANGE or axis.axis_kind is not AxisType.FILL:
            continue
        lanes, split = choose_lanes(axis, OptOps.UPCAST, (2 * wide, wide, wide // 2))
        if lanes > 1 and not gathers(row.src[0], axis):
            opts += split
            counts[axis.axis_name] = lanes
    return (
        HeuristicStep("row-lanes", tuple(opts), "rows are filled in order", counts)
        if opts
        else None
    )


def pack_operand(kernel: UOp, target: Target) -> HeuristicStep | None:
    """An operand that moves along vector lanes but not with an outer loop, so that every step of
    that loop reads it again, from lines far apart. The loops that it depends on move outside, and
    its tile is packed once for all others.

    Some products are ten times as fast by it. The first operand is taken that is read again often
    enough to pay for the copy, and of which either the copy or the memory in place fits in a share
    of L2. If the copy would hold each element several times (windows of a convolution), the loops
    move and nothing is copied.
    """
    reductions = reduces(kernel)
    if len(reductions) != 1:
        return None
    moves, most = store_strides(kernel), PACKED_SHARE * target.l2_bytes
    for load in loads(reductions[0].src[0]):
        if load.place.memory.op is not Ops.PARAM:
            continue  # it is already packed
        if not any(r.axis_kind.is_lane and moves.get(r) == 1 for r in load.ranges):
            continue
        varying, repeating = loops_of(kernel, load)  # loops that it depends on, or not
        inside = [r for r in ranges(kernel).values() if r in load.ranges]
        tile = [r for r in inside if r not in varying]
        copied = math.prod(r.extent for r in tile) * load.dtype.itemsize
        bytes_in_place = _tile_elements(load, tile) * load.dtype.itemsize
        reuse = math.prod(r.extent for r in repeating)
        least = REUSE if lanes_are_neighbours(load) else GATHERED_REUSE
        if not varying or reuse < least or min(copied, bytes_in_place) > most:
            continue
        slot, order = load.place.memory.slot, kernel.arg.order
        first = min(order.index(r.axis_name) for r in repeating)
        late = [r.axis_name for r in varying if order.index(r.axis_name) > first]
        opts = [Opt(OptOps.ORDER, name, order[first]) for name in late]
        names = " ".join(r.axis_name for r in repeating)
        why = f"input {slot} is read again at every step of {names}"
        counts = {"reuse": reuse, "tile_bytes": copied}
        block = _block(kernel, load, target)
        if block is not None:
            why += f"; the loop over {block[0].axis_name} comes in blocks (see sum-blocks)"
            return HeuristicStep("pack-operand", tuple(opts), why, {"reuse": reuse})
        if copied < OVERLAP * bytes_in_place:
            opts.append(Opt(OptOps.STAGE, varying[-1].axis_name, slot))
            opts += _transposed_fill(load, tile, target)
        else:
            why += "; it stays where it is, since a copy holds each element several times"
            counts["bytes_in_place"] = bytes_in_place
        return HeuristicStep("pack-operand", tuple(opts), why, counts)
    return None


def _transposed_fill(load: UOp, tile: list[UOp], target: Target) -> list[Opt]:
    """Return the opts that fill a tile with whole vectors where its lanes are not neighbours in
    memory: loaded along the axis whose elements are, they are transposed in registers."""
    walk, slot = strides(load), load.place.memory.slot
    wide = target.vector_width(load.dtype.itemsize)
    strided = [r for r in tile if r.axis_kind.is_lane and walk.get(r) != 1]
    across = [r for r in tile if not r.axis_kind.is_lane and walk.get(r) == 1]
    opts = [Opt(OptOps.UPCAST, fill_name(slot, r), r.extent) for r in strided]
    whole = [r for r in across if strided and r.extent % wide == 0]
    opts += [Opt(OptOps.UPCAST, fill_name(slot, r), wide) for r in whole]
    return opts


def _tile_elements(load: UOp, tile: list[UOp]) -> int:
    """Return how many elements of memory a tile touches; those of its copy, where reading it in
    place needs masks or parts of vectors."""
    index, gate = split_gate(load.place.flat_index)
    if gate is not None or not lanes_are_neighbours(load):
        return math.prod(r.extent for r in tile)
    return touched([index], tile, load.place.memory.length).elements


def sum_blocks(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A reduction along which the operand that is not packed is read across, one cache line a step,
    in blocks whose lines stay in the cache for the next rows. The sums are in memory between
    blocks, and the packed tile is that of a block."""
    reductions = reduces(kernel)
    if len(reductions) != 1 or any(n.op is Ops.STAGE for n in kernel.toposort()):
        return None
    moves = store_strides(kernel)
    for load in loads(reductions[0].src[0]):
        varying, repeating = loops_of(kernel, load)
        lanes = [r for r in load.ranges if r.axis_kind.is_lane and moves.get(r) == 1]
        if not lanes or not varying or not repeating:
            continue
        block = _block(kernel, load, target)
        if block is None:
            continue
        (axis, length), slot = block, load.place.memory.slot
        name = axis.axis_name
        opts = (
            Opt(OptOps.SPLIT, name, length),
            Opt(OptOps.ORDER, name, varying[0].axis_name),
            Opt(OptOps.STAGE, varying[-1].axis_name, slot),
        )
        why = f"along {name} the other operand is read across, a line for each step"
        counts = {"steps": axis.extent, "block": length}
        return HeuristicStep("sum-blocks", opts, why, counts)
    return None


def _block(kernel: UOp, load: UOp, target: Target) -> tuple[UOp, int] | None:
    """Return the reduction and the length of its blocks, where `load` is to be packed and another
    operand is read across, in more lines than the first-level cache has."""
    (reduce,), order = reduces(kernel), kernel.arg.order
    axis = ranges(kernel)[order[-1]]
    around, _ = loops_of(kernel, load)
    if not lanes_are_neighbours(load) or axis.extent * target.line_bytes < target.l1_bytes:
        return None
    if {axis} != {r for r in reduce.src[1:] if not r.axis_kind.is_lane}:
        return None
    length = next((n for n in BLOCKS if axis.extent % n == 0), 0)
    for other in loads(reduce.src[0]):
        if other is load or axis not in other.ranges or other.ranges & set(around):
            continue
        stride_bytes = strides(other).get(axis, 1) * other.dtype.itemsize
        if length and stride_bytes >= target.line_bytes and lanes_are_neighbours(other):
            return axis, length
    return None


def threads(kernel: UOp, target: Target) -> HeuristicStep | None:
    """The outermost output axis, a part for each core, where there is work for several."""
    work = max((_lane_steps(s) for s in statements(kernel).values()), default=0)
    outer = ranges(kernel)[kernel.arg.order[0]] if kernel.arg.order else None
    if target.cores < 2 or work < THREAD_STEPS or outer is None:
        return None
    if outer.axis_kind is not AxisType.GLOBAL:
        return None
    name, n = outer.axis_name, outer.extent
    parts = max(d for d in range(1, target.cores + 1) if n % d == 0)
    counts = {"lane_steps": work, "extent": n, "cores": target.cores, "parts": parts}
    why = f"{name} is outermost, and there is work for {target.cores} cores"
    opts = [Opt(OptOps.THREAD, name, parts)]
    if 2 * parts <= target.cores:
        padded = -(-n // target.cores) * target.cores
        if padded > n * PADDING:
            return None
        opts = [Opt(o, name, target.cores) for o in (OptOps.PADTO, OptOps.THREAD)]
        counts |= {"parts": target.cores, "padded": padded}
    return HeuristicStep("threads", tuple(opts), why, counts)


def _lane_steps(statement: Statement) -> int:
    axes = (*statement.nest, *statement.lanes, *statement.reduction_lanes)
    return math.prod(r.extent for r in axes)


STEPS: tuple[Propose, ...] = (
    pieces,
    in_register_transpose,
    dot_tile,
    register_tile,
    vector_lanes,
    row_lanes,
    reduction_lanes,
    pack_operand,
    threads,
    sum_blocks,
    short_sums,
    known_masks,
    reduce_outside,
)
SERIAL_STEPS = (*(step for step in STEPS if step not in (pack_operand, threads)), work_items)
"""Steps where work-items run one after another: a tile in shared memory would be copied in vain."""


def steps_for(target: Target) -> tuple[Propose, ...]:
    """Return the steps of a target, in their order."""
    if not target.has_groups:
        return STEPS
    return SERIAL_STEPS if target.serial_items else GROUP_STEPS
