"""The default opts: an ordered table of steps, each decided by a few counts of the kernel.

    pieces           an axis along which conditions of joined or padded tensors change, in pieces
                     within which they are constant
    in-register-transpose
                     square blocks along the unit-stride axes of the result and of an operand,
                     transposed in registers
    dot-tile         the reduce axis with stride 1 in both operands as lanes, and output axes as
                     rows, if the result has too few neighbours
    register-tile    the unit-stride axis of the result as vector lanes, and other output axes as
                     rows, so that each load serves several results
    vector-lanes     that axis alone, if no two results share a load
    row-lanes        the fill axes of rows that are staged inside the kernel, as lanes
    reduction-lanes  the reduce axis with the shortest strides in the operands as lanes, if no
                     output axis is lanes of the sum
    pack-operand     a copy of the tile that every step of an outer loop reads again
    threads          the outermost output loop, in parts for the cores
    sum-blocks       a long reduction with a long stride in an operand, in blocks
    short-sums       reductions of a few steps, unrolled
    known-masks      the steps of a short scan along lanes, unrolled
    reduce-outside   the loop of a reduction with a long stride, outside of the output loop

These are for a processor. If it runs work-items one after another, it has these steps without
pack-operand and threads, and at the end the step work-items. A device with work-groups has others:

    transposed-tile  a square of a transposed operand in shared memory
    tensor-tile      a product on tensor cores: tiles for each warp, warps for each work-group
    product-tile     a tile of a product for each work-group, with its operands in shared memory
    group-rows       reductions along rows of neighbours, each row by a work-group
    group-columns    a long reduction with few results, in parts
    vectors          a vector of neighbours for each work-item
    work-items       the outputs of a work-group, neighbours by neighbouring work-items
    short-sums       reductions of a few steps, unrolled

A step proposes opts with its counts, or returns None; those for reductions alone stand in
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
from workbench.ir.opt.heuristic.group_sums import group_columns, group_rows
from workbench.ir.opt.heuristic.group_tiles import product_tile, transposed_tile
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
from workbench.ir.opt.heuristic.tensor_tiles import tensor_tile
from workbench.ir.opt.heuristic.work_groups import vectors, work_items
from workbench.ir.opt.kinds.stage import fill_name
from workbench.ir.opt.opt import Opt, OptOps, ranges, store_strides

Propose = Callable[[UOp, Target], HeuristicStep | None]
PACKED_SHARE = 1
"""Greatest size of a packed tile, as a share of the second-level cache. With it, on a core with
1 MiB, some products were ten times as fast as without a packed tile, and none slower."""
BLOCKS = range(128, 63, -1)
"""Steps of a block, the preferred number first. The cache lines of a block fill at most a quarter
of the first-level cache."""
OVERLAP = 2
"""A tile is not copied if the copy would have at least this many times the elements of the tile in
memory, as with overlapping windows."""
THREAD_STEPS = 1 << 17
"""Steps of all loops, times lanes, below which waking other cores gains nothing: about ten
microseconds of work."""


def heuristic(
    kernel: UOp, target: Target, without: Sequence[Propose] = ()
) -> tuple[UOp, tuple[Opt, ...], HeuristicSteps]:
    """Return the kernel with the default opts, those opts, and the steps that fired, each with the
    opts that were legal. `without` are steps to leave out."""
    applied: list[Opt] = []
    fired: list[HeuristicStep] = []
    doc = "The default opts, each step with the numbers that made it fire."
    with recording("heuristic", doc, kernel) as record:
        for propose in steps_for(target):
            step = None if propose in without else propose(kernel, target)
            if step is None:
                continue
            before = kernel
            step, kernel = _legal(kernel, step, target)
            if not step.opts:
                continue
            applied += step.opts
            fired.append(step)
            if record.matches is not None:
                record.matches.append(Match(step, before, kernel))
        record.after = kernel
    return kernel, tuple(applied), HeuristicSteps(fired)


def next_steps(kernel: UOp, target: Target) -> list[HeuristicStep]:
    """Return the steps that would fire on a kernel as it is, each with its legal opts."""
    proposed = (propose(kernel, target) for propose in steps_for(target))
    return [_legal(kernel, step, target)[0] for step in proposed if step is not None]


def _legal(kernel: UOp, step: HeuristicStep, target: Target) -> tuple[HeuristicStep, UOp]:
    """Return a step with those of its opts that are legal one after another, and the kernel with
    these."""
    opts: list[Opt] = []
    with unobserved():
        for opt in step.opts:
            next_kernel = apply_if_legal(kernel, opt, target)
            if next_kernel is not None:
                kernel = next_kernel
                opts.append(opt)
    return replace(step, opts=tuple(opts)), kernel


def in_register_transpose(kernel: UOp, target: Target) -> HeuristicStep | None:
    """Square blocks of vectors, if an operand has its unit stride along another axis than the
    result, as in a transposed copy."""
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
            why = f"along {axis.axis_name} an operand has a stride of {strides(load)[axis]:,}"
            opts = tuple(opt for _, split in splits for opt in split)
            return HeuristicStep("in-register-transpose", opts, why, {"lanes": wide})
    return None


def vector_lanes(kernel: UOp, target: Target) -> HeuristicStep | None:
    """The unit-stride axis of the result as lanes, unless `vector_axis` refuses it."""
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
    """The fill axes of staged rows as lanes: the elements of a row are neighbours."""
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
    """A copy of an operand's tile. The operand depends on the vector lanes but not on some outer
    loop, so that every step of that loop reads it again, from lines far apart. The loops that
    the operand depends on move outside, and its tile is packed once for all steps of other loops.

    Some products are ten times as fast with it. The step takes the first operand that is read again
    often enough to pay for the copy, and whose copy, or memory in place, fits in a share of L2. If
    the copy would hold each element several times (windows of a convolution), the loops move and
    nothing is copied.
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
        varying, repeating = loops_of(kernel, load)
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
            why += f"; the loop over {block[0].axis_name} is split into blocks (see sum-blocks)"
            return HeuristicStep("pack-operand", tuple(opts), why, {"reuse": reuse})
        if copied < OVERLAP * bytes_in_place:
            opts.append(Opt(OptOps.STAGE, varying[-1].axis_name, slot))
            opts += _transposed_fill(load, tile, target)
        else:
            why += "; it is not copied, since a copy would hold each element several times"
            counts["bytes_in_place"] = bytes_in_place
        return HeuristicStep("pack-operand", tuple(opts), why, counts)
    return None


def _transposed_fill(load: UOp, tile: list[UOp], target: Target) -> list[Opt]:
    """Return the opts that fill a tile with whole vectors although its lanes are not neighbours in
    memory: vectors are loaded along the unit-stride axis, and transposed in registers."""
    load_strides, slot = strides(load), load.place.memory.slot
    wide = target.vector_width(load.dtype.itemsize)
    strided = [r for r in tile if r.axis_kind.is_lane and load_strides.get(r) != 1]
    across = [r for r in tile if not r.axis_kind.is_lane and load_strides.get(r) == 1]
    opts = [Opt(OptOps.UPCAST, fill_name(slot, r), r.extent) for r in strided]
    whole = [r for r in across if strided and r.extent % wide == 0]
    opts += [Opt(OptOps.UPCAST, fill_name(slot, r), wide) for r in whole]
    return opts


def _tile_elements(load: UOp, tile: list[UOp]) -> int:
    """Return how many elements of memory a tile touches. If reading it in place needs masks or
    gathers, return the elements of its copy."""
    index, gate = split_gate(load.place.flat_index)
    if gate is not None or not lanes_are_neighbours(load):
        return math.prod(r.extent for r in tile)
    return touched([index], tile, load.place.memory.length).elements


def sum_blocks(kernel: UOp, target: Target) -> HeuristicStep | None:
    """A reduction in blocks, if an operand that is not packed has a stride of a cache line or more
    along it. The lines of a block stay in the cache for the next rows. Between blocks the sums are
    in memory, and the packed tile has the steps of one block."""
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
        why = f"along {name} each step reads a new line of the other operand"
        counts = {"steps": axis.extent, "block": length}
        return HeuristicStep("sum-blocks", opts, why, counts)
    return None


def _block(kernel: UOp, load: UOp, target: Target) -> tuple[UOp, int] | None:
    """Return the reduce axis and the length of its blocks; None unless `load` is to be packed, and
    another operand reads a new line in each step, in all at least as many as L1 has."""
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
    """The outermost output axis in parts for the cores, if there is work for several."""
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
"""Steps for work-items that run one after another: sharing a tile between them gains nothing."""
GROUP_STEPS: tuple[Propose, ...] = (
    transposed_tile,
    tensor_tile,
    product_tile,
    group_rows,
    group_columns,
    vectors,
    work_items,
    short_sums,
)


def steps_for(target: Target) -> tuple[Propose, ...]:
    """Return the steps for a target, in their order."""
    if not target.has_groups:
        return STEPS
    return SERIAL_STEPS if target.serial_items else GROUP_STEPS
