"""The default opts: an ordered table of steps, each decided by figures that a person can read.

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
from workbench.ir.opt.opt import REDUCE_KINDS, Opt, OptOps, ranges
from workbench.ir.uop import UOp, split_gate
from workbench.target import Target
from workbench.trace import Match, recording, unobserved

CHAINS = 4
"""Vectors of a dot product kept apart, so that one addition need not wait for the last."""
TILE_ROWS = (6, 4, 3, 2)
PADDING = 1.2
"""An axis is rounded up to whole vectors where that adds at most this share."""
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


def vector_lanes(kernel: UOp, target: Target) -> Step | None:
    """The result's unit-stride axis, where loads along it are neighbours or the same element."""
    axis = _unit_axis(kernel)
    reduces = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    dots = [n for n in reduces if _dot_axis(n) is not None]
    if axis is None or dots and _gathers(kernel, axis):
        return None
    wide, name = target.vector_width(_itemsize(kernel)), axis.axis_name
    lanes = _divisor(axis.extent, (2 * wide, wide))
    padded = -(-axis.extent // wide) * wide
    why = f"{name} has stride 1 in the result"
    figures = {"extent": axis.extent, "lanes": lanes, "vector": wide}
    if lanes < wide and padded <= axis.extent * PADDING:
        opts = Opt(OptOps.PADTO, name, wide), Opt(OptOps.UPCAST, name, wide)
        return Step(
            "vector-lanes", opts, why, figures | {"padded": padded, "lanes": wide}
        )
    lanes = max(lanes, _divisor(axis.extent, (wide // 2, wide // 4)))
    if lanes < 2:
        return None
    return Step("vector-lanes", (Opt(OptOps.UPCAST, name, lanes),), why, figures)


def row_lanes(kernel: UOp, target: Target) -> Step | None:
    """The fill axes of staged rows, whose elements are neighbours by construction."""
    wide = target.vector_width(_itemsize(kernel))
    opts, figures = [], {}
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
    opts, figures = [], {}
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
    for axis in ranges(kernel).values():
        if axis.axis_kind is not AxisType.GLOBAL:
            continue
        reused = sum(axis not in load.ranges for load in loads)
        amount = _divisor(axis.extent, tuple(rows))
        if reused and reused < len(loads) and amount > 1:
            why = f"{reused} of {len(loads)} loads do not depend on {axis.axis_name}"
            figures = {"rows": amount, "registers": amount * chunks + chunks + 1}
            opt = Opt(OptOps.UPCAST, axis.axis_name, amount)
            return Step("register-tile", (opt,), why, figures)
    return None


def pack_operand(kernel: UOp, target: Target) -> Step | None:
    """An operand that vector lanes walk and an outer loop does not: read again at every step of
    it, from lines far apart. The loop goes inside, the operand's tile is packed once."""
    found = ranges(kernel)
    loops = [
        found[n] for n in kernel.arg.order if found[n].axis_kind is AxisType.GLOBAL
    ]
    reduces = [n for n in kernel.toposort() if n.op is Ops.REDUCE]
    if len(reduces) != 1 or len(loops) < 2:
        return None
    for load in reduces[0].src[0].toposort():
        if load.op is not Ops.LOAD or not _walks_lanes(load):
            continue
        again = [r for r in loops if r not in load.ranges]
        around = [r for r in loops if r in load.ranges]
        inner = [r for r in load.ranges if r not in around]
        size = math.prod(r.extent for r in inner) * load.dtype.itemsize
        reuse = math.prod(r.extent for r in again)
        if len(again) != 1 or len(around) != 1 or reuse < REUSE or size > PACKED_BYTES:
            continue
        slot, axis, other = (
            load.src[0].src[0].arg[0],
            around[0].axis_name,
            again[0].axis_name,
        )
        opts = [Opt(OptOps.STAGE, axis, slot)]
        if kernel.arg.order.index(axis) > kernel.arg.order.index(other):
            opts.insert(0, Opt(OptOps.ORDER, axis, other))
        why = f"input {slot} is read again at every step of {other}"
        figures = {"reuse": reuse, "tile_bytes": size}
        return Step("pack-operand", tuple(opts), why, figures)
    return None


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


def _unit_axis(kernel: UOp) -> UOp | None:
    """Return the loop along which the first result's elements are neighbours."""
    strides = terms(split_gate(kernel.src[0].src[0].src[0].src[1])[0])[0]
    found = [a for a, k in strides.items() if k == 1 and a.op is Ops.RANGE]
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


def _walks_lanes(load: UOp) -> bool:
    axes = [a for a, k in _strides(load).items() if k == 1 and a.op is Ops.RANGE]
    return any(a.axis_kind.is_lane for a in axes)


def _itemsize(kernel: UOp) -> int:
    sizes = [n.dtype.itemsize for n in kernel.toposort() if n.op is Ops.LOAD]
    return max(4, *sizes, kernel.src[0].src[0].src[1].dtype.itemsize)


def _lanes(
    axis: UOp, op: OptOps, choices: tuple[int, ...]
) -> tuple[int, tuple[Opt, ...]]:
    """Return (lanes, the opts that make them): the first choice that divides the axis, or the
    first whole vectors that it can be rounded up to at little cost."""
    name, extent = axis.axis_name, axis.extent
    lanes = _divisor(extent, choices)
    if lanes > choices[-1] or lanes == extent:
        return lanes, (Opt(op, name, lanes),)
    for wide in choices[:-1]:
        if wide <= extent and -(-extent // wide) * wide <= extent * PADDING:
            return wide, (Opt(OptOps.PADTO, name, wide), Opt(op, name, wide))
    return lanes, (Opt(op, name, lanes),)


def _divisor(extent: int, choices: tuple[int, ...]) -> int:
    return next((c for c in choices if c > 1 and extent % c == 0), 1)
