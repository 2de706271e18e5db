"""The default opts: an ordered table of steps, each decided by figures that a person can read.

    turned-block     the axes along which the result's and an operand's elements are neighbours,
                     as square blocks that are turned round in registers
    vector-lanes     the axis along which the result's elements are neighbours, as vector lanes
    row-lanes        the fill axes of rows that are staged inside the kernel
    dot-lanes        the reduce axes along which the operands' elements are neighbours, where no
                     output axis is lanes of the sum
    register-tile    a second output axis, so that each load serves several results
    pack-operand     the operand that is read again for every step of an outer loop, as a tile
    reduce-outside   the loop of a reduction over the far stride, outside of the outputs
    threads          the outermost loop over the output, one part per core

A step proposes opts with its figures, or nothing. Source: the figures of Goto and van de Geijn
(packing), and of Halide's and tinygrad's hand-coded schedulers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from workbench.ir.affine import terms
from workbench.ir.axis import AxisType
from workbench.ir.loops import Statement, statements
from workbench.ir.ops import Ops
from workbench.ir.opt.apply import apply_opt, why_not
from workbench.ir.opt.opt import OUTPUT_KINDS, REDUCE_KINDS, Opt, OptOps, ranges
from workbench.ir.uop import UOp, split_gate
from workbench.target import Target
from workbench.trace import Match, recording, unobserved

CHAINS = 4
"""Vectors of a dot product kept apart, so that one addition need not wait for the last."""
TILE_ROWS = (8, 6, 4, 3, 2)
PADDING = 1.2
"""An axis is rounded up to whole vectors where that adds at most this share."""
LITTLE = 1.03
"""Growth that costs nothing worth mentioning: wider lanes are worth it."""
ROW_BYTES = 16 << 10
"""A row of accumulators that stays in the first-level cache."""
REUSE = 8
"""An operand packed must be read again at least this often."""
PACKED_BYTES = 256 << 10
"""A packed tile should leave half of a common second-level cache free."""
THREAD_STEPS = 1 << 17
"""Lane-steps of work below which waking other cores gains nothing: some ten microseconds."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step that fired: what it proposes and the figures that made it."""

    name: str
    opts: tuple[Opt, ...]
    why: str
    figures: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.name


def heuristic(
    kernel: UOp, target: Target
) -> tuple[UOp, tuple[Opt, ...], tuple[Step, ...]]:
    """Return (kernel with the default opts, those opts, the steps that fired)."""
    applied: list[Opt] = []
    fired: list[Step] = []
    doc = "The default opts, each step with the figures that made it fire."
    with recording("heuristic", doc, kernel) as record:
        for propose in STEPS:
            step = propose(kernel, target)
            if step is None:
                continue
            before = kernel
            with unobserved():
                for opt in step.opts:
                    if why_not(kernel, opt, target) is None:
                        kernel, named = apply_opt(kernel, opt, target)
                        applied.append(named)
            fired.append(step)
            if record.matches is not None:
                record.matches.append(Match(step, before, kernel))
        record.after = kernel
    return kernel, tuple(applied), tuple(fired)


def turned_block(kernel: UOp, target: Target) -> Step | None:
    """Where an operand is read across, as in a transposed copy: blocks of vectors by vectors."""
    axis = _unit_axis(kernel)
    if axis is None or any(n.op is Ops.REDUCE for n in kernel.toposort()):
        return None
    wide = target.vector_width(_itemsize(kernel))
    for load in kernel.toposort():
        if load.op is not Ops.LOAD or _strides(load).get(axis, 1) == 1:
            continue
        across = [a for a, k in _strides(load).items() if k == 1 and a.op is Ops.RANGE]
        if len(across) != 1 or across[0].axis_kind is not AxisType.GLOBAL:
            continue
        splits = [_lanes(each, OptOps.UPCAST, (wide,)) for each in (axis, across[0])]
        if all(lanes == wide for lanes, _ in splits):
            why = f"along {axis.axis_name} what is read lies {_strides(load)[axis]:,} apart"
            opts = tuple(opt for _, split in splits for opt in split)
            return Step("turned-block", opts, why, {"lanes": wide})
    return None


def vector_lanes(kernel: UOp, target: Target) -> Step | None:
    """The result's unit-stride axis, where loads along it are neighbours or the same element."""
    axis = _unit_axis(kernel)
    reduces = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    dots = [n for n in reduces if _dot_axis(n) is not None]
    if axis is None or dots and _gathers(kernel, axis) and not _packs(kernel, axis):
        return None
    wide, name = target.vector_width(_itemsize(kernel)), axis.axis_name
    lanes, opts = _lanes(axis, OptOps.UPCAST, (2 * wide, wide, wide // 2, wide // 4))
    if lanes < 2:
        return None
    why = f"{name} has stride 1 in the result"
    figures = {"extent": axis.extent, "lanes": lanes, "vector": wide}
    return Step("vector-lanes", opts, why, figures)


def row_lanes(kernel: UOp, target: Target) -> Step | None:
    """The fill axes of staged rows, whose elements are neighbours by construction."""
    wide = target.vector_width(_itemsize(kernel))
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
        lanes, split = _lanes(axis, OptOps.UPCAST, (2 * wide, wide, wide // 2))
        if lanes > 1 and not _gathers(row.src[0], axis):
            opts += split
            figures[axis.axis_name] = lanes
    return (
        Step("row-lanes", tuple(opts), "rows are filled in order", figures)
        if opts
        else None
    )


def dot_lanes(kernel: UOp, target: Target) -> Step | None:
    """The reduce axis whose loads are neighbours, where no output axis is lanes of the sum."""
    wide = target.vector_width(_itemsize(kernel))
    opts: list[Opt] = []
    figures: dict[str, float] = {}
    for reduce in kernel.toposort():
        if reduce.op is not Ops.REDUCE or any(
            r.axis_kind.is_lane for r in reduce.src[0].ranges
        ):
            continue
        axis = _dot_axis(reduce)
        if axis is None:
            continue
        choices = (CHAINS * wide, 2 * wide, wide, wide // 2)
        lanes, split = _lanes(axis, OptOps.UNROLL, choices)
        if lanes > 1:
            opts += split
            figures[axis.axis_name] = lanes
    why = "neighbours in what is reduced"
    return Step("dot-lanes", tuple(opts), why, figures) if opts else None


def register_tile(kernel: UOp, target: Target) -> Step | None:
    """An output axis that some operand of a reduction does not depend on: its loads are reused."""
    lanes = [r for r in ranges(kernel).values() if r.axis_kind is AxisType.UPCAST]
    reduces = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    if not lanes or len(reduces) != 1:
        return None
    wide = target.vector_width(_itemsize(kernel))
    chunks = max(1, math.prod(r.extent for r in lanes) // wide)
    rows = [r for r in TILE_ROWS if r * chunks + chunks + 1 <= target.vector_registers]
    loads = [n for n in reduces[0].src[0].toposort() if n.op is Ops.LOAD]
    vectors = [n for n in loads if _walks_lanes(n)]
    outputs = [r for r in ranges(kernel).values() if r.axis_kind is AxisType.GLOBAL]
    # to use a vector again is worth more than to use one number again
    outputs.sort(key=lambda axis: any(axis in n.ranges for n in vectors))
    for axis in outputs if rows else ():
        reused = sum(axis not in load.ranges for load in loads)
        amount, opts = _lanes(axis, OptOps.UPCAST, tuple(rows))
        if reused and reused < len(loads) and amount > 1:
            why = f"{reused} of {len(loads)} loads do not depend on {axis.axis_name}"
            figures = {"rows": amount, "registers": amount * chunks + chunks + 1}
            return Step("register-tile", opts, why, figures)
    return None


def pack_operand(kernel: UOp, target: Target) -> Step | None:
    """An operand that vector lanes walk and an outer loop does not: read again at every step of
    it, from lines far apart. The loops that it depends on go outside, and its tile is packed
    once for all the others."""
    reduces = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    if len(reduces) != 1:
        return None
    strides = _store_strides(kernel)
    for load in reduces[0].src[0].toposort():
        lanes = [r for r in load.ranges if r.axis_kind.is_lane and strides.get(r) == 1]
        if load.op is not Ops.LOAD or not lanes:
            continue
        around, again = _loops_of(kernel, load)
        tile = [r for r in load.ranges if r not in around]
        size = math.prod(r.extent for r in tile) * load.dtype.itemsize
        reuse = math.prod(r.extent for r in again)
        if not around or reuse < REUSE or size > PACKED_BYTES:
            continue
        slot, order = load.src[0].src[0].arg[0], kernel.arg.order
        first = min(order.index(r.axis_name) for r in again)
        late = [r.axis_name for r in around if order.index(r.axis_name) > first]
        opts = [Opt(OptOps.ORDER, name, order[first]) for name in late]
        opts.append(Opt(OptOps.STAGE, around[-1].axis_name, slot))
        names = " ".join(r.axis_name for r in again)
        why = f"input {slot} is read again at every step of {names}"
        figures = {"reuse": reuse, "tile_bytes": size}
        return Step("pack-operand", tuple(opts), why, figures)
    return None


def _loops_of(kernel: UOp, load: UOp) -> tuple[list[UOp], list[UOp]]:
    """Return the output loops that a load depends on, and those it does not, outermost first."""
    found = ranges(kernel)
    outputs = [found[n] for n in kernel.arg.order if found[n].axis_kind in OUTPUT_KINDS]
    around = [r for r in outputs if r in load.ranges]
    return around, [r for r in outputs if r not in load.ranges]


def reduce_outside(kernel: UOp, target: Target) -> Step | None:
    """A reduction over the far stride: with its loop outside, memory is walked in order, and the
    row of accumulators stays in cache."""
    found = ranges(kernel)
    reduces = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    lanes = [r for r in found.values() if r.axis_kind is AxisType.UPCAST]
    if len(reduces) != 1 or len(lanes) != 1 or len(kernel.arg.order) != 2:
        return None
    outer, inner = (found[name] for name in kernel.arg.order)
    loads = [n for n in reduces[0].src[0].toposort() if n.op is Ops.LOAD]
    row = outer.extent * lanes[0].extent * reduces[0].dtype.itemsize
    if inner not in reduces[0].src[1:] or row > ROW_BYTES or not loads:
        return None
    if not all(
        _strides(n).get(inner, 0) > _strides(n).get(outer, 0) > 0 for n in loads
    ):
        return None
    opt = Opt(OptOps.ORDER, inner.axis_name, outer.axis_name)
    why = f"{inner.axis_name} has the far stride, and nothing is reused but the sums"
    return Step("reduce-outside", (opt,), why, {"row_bytes": row})


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


STEPS: tuple[Callable[[UOp, Target], Step | None], ...] = (
    turned_block,
    vector_lanes,
    row_lanes,
    dot_lanes,
    register_tile,
    pack_operand,
    reduce_outside,
    threads,
)


def _strides(load: UOp) -> dict[UOp, int]:
    return terms(split_gate(load.src[0].src[-1])[0])[0]


def _store_strides(kernel: UOp) -> dict[UOp, int]:
    """Return how far one step of each axis moves in the first result."""
    return terms(split_gate(kernel.src[0].src[0].src[0].src[1])[0])[0]


def _unit_axis(kernel: UOp) -> UOp | None:
    """Return the loop along which the first result's elements are neighbours."""
    found = [
        a for a, k in _store_strides(kernel).items() if k == 1 and a.op is Ops.RANGE
    ]
    return found[0] if found and not found[0].axis_kind.is_lane else None


def _dot_axis(reduce: UOp) -> UOp | None:
    """Return the loop of a reduction along which all loads that move are of neighbours."""
    loads = [n for n in reduce.src[0].toposort() if n.op is Ops.LOAD]
    for axis in reduce.src[1:]:
        moving = [n for n in loads if axis in n.ranges]
        fits = axis.axis_kind in REDUCE_KINDS and bool(moving)
        if fits and all(_strides(n).get(axis) == 1 for n in moving):
            return axis
    return None


def _gathers(kernel: UOp, axis: UOp) -> bool:
    """Whether some load along `axis` is neither of neighbours nor of one element."""
    loads = [n for n in kernel.toposort() if n.op is Ops.LOAD]
    return any(axis in n.ranges and _strides(n).get(axis) != 1 for n in loads)


def _packs(kernel: UOp, axis: UOp) -> bool:
    """Whether what is gathered along `axis` is used so often that packing it first pays."""
    reduces = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    loads = [n for n in kernel.toposort() if n.op is Ops.LOAD and axis in n.ranges]
    gathered = [n for n in loads if _strides(n).get(axis) != 1]
    if len(reduces) != 1 or len(gathered) != 1 or axis in reduces[0].src[1:]:
        return False
    again = _loops_of(kernel, gathered[0])[1]
    return math.prod(r.extent for r in again) >= TILE_ROWS[0] * REUSE


def _walks_lanes(load: UOp) -> bool:
    axes = [a for a, k in _strides(load).items() if k == 1 and a.op is Ops.RANGE]
    return any(a.axis_kind.is_lane for a in axes)


def _itemsize(kernel: UOp) -> int:
    sizes = [n.dtype.itemsize for n in kernel.toposort() if n.op is Ops.LOAD]
    return max(4, *sizes, kernel.src[0].src[0].src[1].dtype.itemsize)


def _lanes(
    axis: UOp, op: OptOps, choices: tuple[int, ...]
) -> tuple[int, tuple[Opt, ...]]:
    """Return (lanes, the opts that make them). `choices` are amounts, the best first: the best
    half of them are wanted; where none divides the axis, it is rounded up if that costs little,
    and the others are what is left."""
    name, extent = axis.axis_name, axis.extent
    wanted = choices[: max(1, len(choices) // 2)]
    lanes = _divisor(extent, wanted)
    if lanes > 1 or lanes == extent:
        return lanes, (Opt(op, name, lanes),)
    for most in (LITTLE, PADDING):
        for wide in wanted:
            if wide <= extent and -(-extent // wide) * wide <= extent * most:
                return wide, (Opt(OptOps.PADTO, name, wide), Opt(op, name, wide))
    lanes = _divisor(extent, choices)
    return lanes, (Opt(op, name, lanes),)


def _divisor(extent: int, choices: tuple[int, ...]) -> int:
    return next((c for c in choices if c > 1 and extent % c == 0), 1)
