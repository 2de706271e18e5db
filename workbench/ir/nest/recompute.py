"""Recomputation: rows too large for registers or scratch memory are computed again at each read.

A schedule stages a row in a kernel whatever the device, so that kernels and their opts mean the
same everywhere. A work-item of a GPU has little memory of its own: a row that the work-group does
not share may be too long for it. Then each read of the row is replaced by its value:

    f0: row0[f0] = exp(x[f0] - m)          s += exp(x[r1] - m)
    s += row0[r1]                    ->    y[i0] = exp(x[i0] - m) / s
    y[i0] = row0[i0] / s

Also known as: inlining (Halide, TVM); rematerialization.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import count

from workbench.base.target import Target
from workbench.base.trace import derived_from
from workbench.ir.nest.fragments import lane_kernel
from workbench.ir.nest.loops import kinds
from workbench.ir.nest.storage import excess
from workbench.ir.node import construct
from workbench.ir.node.exact_range import exact_range, terms
from workbench.ir.node.ops import AxisType, Ops
from workbench.ir.node.uop import UOp, closed, split_gate


def item_kernel(kernel: UOp, target: Target) -> UOp:
    """Return the kernel of one work-item of `target`: of one lane, if the target has a tensor core
    for the kernel's tile, and without the rows that do not fit."""
    return recompute_rows(lane_kernel(kernel, target), target)


def recompute_rows(kernel: UOp, target: Target) -> UOp:
    """Return the kernel with rows computed where they are read, the longest first, until the other
    arrays fit the memory of `target`; `kernel` itself if all fit, or if this does not help."""
    result = kernel
    while (over := excess(result, target)) is not None:
        nodes = result.toposort()
        places = [n for n in nodes if n.op is Ops.INDEX and n.src[0].op is Ops.STAGE]
        rows = [n for n in nodes if n.op is Ops.STAGE and _is_row(n, places)]
        if not rows:
            return kernel
        longest = max(rows, key=lambda n: (n.name == over.name, _row_bytes(n)))
        result = _without_row(result, longest)
    return result


def _is_row(stage: UOp, places: Sequence[UOp]) -> bool:
    """Whether a STAGE is a row that can be computed at its reads, INDEXes among `places`. It is not
    a copy of an argument, not partial results of a reduction, and not from a tensor core; its reads
    have no gates, and its axes number its elements."""
    value, axes = stage.src[0], closed(stage)
    is_copy = value.op is Ops.LOAD and value.place.memory.op is Ops.PARAM
    if is_copy or any(axis.axis_kind in _REDUCES for axis in axes):
        return False
    if any(n.op in _OF_A_WARP and n.ranges & {*axes} for n in value.toposort()):
        return False
    indexes = [i for place in places if place.src[0] is stage for i in place.src[1:]]
    if any(split_gate(index)[1] is not None for index in indexes):
        return False
    return all(_digits(index) is not None for index in stage.src[1:])


def _row_bytes(stage: UOp) -> int:
    return stage.dtype.itemsize * math.prod(stage.memory_shape)


_REDUCES = (AxisType.REDUCE, AxisType.GROUP_REDUCE, AxisType.UNROLL)
_OF_A_WARP = (Ops.WMMA, Ops.EXCHANGE)


def _without_row(kernel: UOp, stage: UOp) -> UOp:
    """Return the kernel with each read of a STAGE replaced by its value."""
    names = _unused_names(kernel)
    order = list(kernel.arg.order)
    values: dict[UOp, UOp] = {}
    changes: dict[UOp, UOp] = {}
    for node in kernel.toposort():
        src = tuple([changes[s] for s in node.src])
        with derived_from(node):
            if node.op is Ops.LOAD and node.place.memory is stage:
                place = changes[node.place]
                if place not in values:
                    values[place] = _value_at(stage, place.src[1:], order, names)
                changes[node] = values[place]
            else:
                changes[node] = node.rebuild(src)
    return kinds(construct.in_order(changes[kernel], order))


def _value_at(stage: UOp, indexes: Sequence[UOp], order: list[str], names: Iterator[int]) -> UOp:
    """Return the value of a STAGE at `indexes`. Reductions and stages below it that vary along it
    are copied for this read: their new loops, added to `order`, are the innermost."""
    value, axes = stage.src[0], {*closed(stage)}
    changes: dict[UOp, UOp] = {}
    for own, index in zip(stage.src[1:], indexes, strict=True):
        changes |= _axes_at(own, index)
    inner = _reductions_inside(value, axes)
    loops = {r: None for n in inner for r in closed(n)}
    for axis in sorted(loops, key=lambda r: _position(r, order)):
        kind = axis.axis_kind
        name = f"{kind.letter}{next(names)}"
        changes[axis] = UOp.range(axis.extent, name, kind)
        if not kind.is_lane:
            order.append(name)
    for node in value.toposort():
        if node not in changes:
            src = tuple([changes[s] for s in node.src])
            if node.op is Ops.STAGE and node in inner:
                name, *shape = node.arg
                arg = (f"{name}_{next(names)}", *shape)
                changes[node] = UOp(node.op, node.dtype, src, arg)
            else:
                changes[node] = node.rebuild(src)
    return changes[value]


def _reductions_inside(value: UOp, axes: Set[UOp]) -> list[UOp]:
    """Return the reductions and stages that vary along `axes`, or along the loops of another."""
    inner, differs = list[UOp](), {*axes}
    for node in reversed(value.toposort()):
        if node.op in _CLOSES and node.ranges & differs:
            inner.append(node)
            differs |= {*closed(node)}
    return inner


_CLOSES = (Ops.REDUCE, Ops.STAGE)


def _position(axis: UOp, order: Sequence[str]) -> int:
    return order.index(axis.axis_name) if axis.axis_name in order else len(order)


def _digits(index: UOp) -> Mapping[UOp, int] | None:
    """Return the axes that number the elements of a row, each with its stride, the smallest first:
    `f0*4 + u0` is {u0: 1, f0: 4}. None for an index that does not reach each element once."""
    parts, constant = terms(index)
    digits = dict(sorted(parts.items(), key=lambda part: part[1]))
    step = 1
    for axis, factor in digits.items():
        if axis.op is not Ops.RANGE or factor != step:
            return None
        step *= axis.extent
    return None if constant else digits


def _axes_at(own: UOp, index: UOp) -> dict[UOp, UOp]:
    """Return the values of a row's axes, and of their sum `own`, at the element `index`. An index
    beyond the filled elements is clamped: nothing uses elements there."""
    digits = _digits(own)
    assert digits is not None
    end = math.prod(axis.extent for axis in digits)
    if exact_range(index)[1] >= end:
        index = index.min(UOp.index(end - 1))
    *_, last = [None, *digits]
    places = {own: index}
    for axis, step in digits.items():
        above = index // step if step > 1 else index
        places[axis] = above if axis is last else above % axis.extent
    return places


def _unused_names(kernel: UOp) -> Iterator[int]:
    """Yield numbers that are in no name of an axis or a stage of a kernel."""
    nodes = kernel.toposort()
    names = [n.axis_name for n in nodes if n.op is Ops.RANGE]
    names += [n.name for n in nodes if n.op is Ops.STAGE]
    return count(1 + max([_number(name) for name in names], default=0))


def _number(name: str) -> int:
    digits = "".join(c for c in name if c.isdigit())
    return int(digits) if digits else 0
