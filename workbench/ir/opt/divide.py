"""The split of an axis, which all splitting opts share, and the checks of its amount.

    for g1 in 512: s(g1)    ->    for g1 in 32: for u0 in 16: s(g1*16 + u0)

An opt is a substitution and a new range; the outer part keeps the name of the axis. Also known as
Halide's split, TVM's split, Exo's divide_loop.
"""

from __future__ import annotations

import math

from workbench.base.target import Target
from workbench.ir.nest.fragments import lane_kernel
from workbench.ir.nest.loops import kinds, statements
from workbench.ir.node import construct
from workbench.ir.node.ops import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, Refusal, ranges
from workbench.ir.rules.index import SIMPLIFY_AXES


def divide(kernel: UOp, name: str, amount: int, kind: AxisType, after: str | None = None) -> UOp:
    """Return `kernel` with axis `name` of N elements as (N // amount, amount).

    The inner part has a new name and `kind`. If it is a loop, it stands right inside of the axis
    `after` (None: of the outer part). If `amount` is N, there is only the inner part.
    """
    old = ranges(kernel)[name]
    inner = UOp.range(amount, unused_axis_name(kernel, kind), kind)
    outer = UOp.range(old.extent // amount, name, old.axis_kind)
    whole = old.extent == amount
    order = list(kernel.arg.order)
    if not kind.is_lane:
        order.insert(order.index(after or name) + 1, inner.axis_name)
    if whole:
        order.remove(name)
    changed = kernel.substitute({old: inner if whole else outer * amount + inner})
    return simplified(construct.in_order(changed, order))


def simplified(kernel: UOp) -> UOp:
    """Return the kernel simplified, with the kinds GLOBAL and LOOP derived from the loop order."""
    return kinds(SIMPLIFY_AXES(kernel))


def unused_axis_name(kernel: UOp, kind: AxisType) -> str:
    """Return the first unused name for an axis of `kind`."""
    names = ranges(kernel)
    number = 0
    while f"{kind.letter}{number}" in names:
        number += 1
    return f"{kind.letter}{number}"


def refuse_amount(kernel: UOp, opt: Opt, what: str) -> Refusal | None:
    """Return why `opt` cannot split its axis, or None: the checks that all splitting opts share.
    `what` names the axes that the opt applies to, such as "reduce".

    A refusal that another amount may avoid has no hint: `apply.py` adds the legal amounts.
    """
    axes = ranges(kernel)
    axis = axes.get(str(opt.axis))
    candidates = [r for r in axes.values() if r.axis_kind in opt.op.applies_to]
    names = ", ".join(f"{r.axis_name} ({r.extent})" for r in candidates) or "none"
    if axis is None:
        return Refusal(f"the kernel has no axis {opt.axis}", f"one of its {what} axes: {names}")
    if axis.axis_kind not in opt.op.applies_to:
        kind = axis.axis_kind.name
        return Refusal(
            f"{opt.op.name} applies to {what} axes, and {opt.axis} is {kind}", f"one of: {names}"
        )
    if not isinstance(opt.arg, int) or isinstance(opt.arg, bool):
        return Refusal(f"the amount must be a whole number, not {opt.arg!r}", "an amount such as 4")
    if axis.extent < 2:
        hint = f'another axis, or PADTO("{opt.axis}", 2) first'
        return Refusal(f"axis {opt.axis} has one element: nothing to split", hint)
    amount = axis.extent if opt.arg == 0 else opt.arg
    if amount < 2:
        n = axis.extent
        rule = f"an amount is 2 or more, and divides {n} (0 for all {n})"
        return Refusal(f"{opt.arg} splits nothing: {rule}")
    if axis.extent % amount:
        n = axis.extent
        return Refusal(f"axis {opt.axis} has {n} elements, and {amount} does not divide {n}")
    return None


def amount_of(kernel: UOp, opt: Opt) -> int:
    """Return the amount of a splitting opt; 0 means the whole axis."""
    assert isinstance(opt.arg, int)
    return opt.arg or ranges(kernel)[str(opt.axis)].extent


def most_lanes_in(kernel: UOp, name: str) -> int:
    """Return the lanes of the statement with the most lanes in loop `name`; 1 without statements.
    Lanes of different statements (a row's fill, the sum over it) are not live at once."""
    axis = ranges(kernel).get(name)
    lane_counts = [1]
    for statement in statements(kernel).values():
        if axis in statement.nest:
            together = (*statement.lanes, *statement.reduction_lanes)
            lane_counts.append(math.prod(r.extent for r in together))
    return max(lane_counts)


def refuse_lanes(kernel: UOp, opt: Opt, target: Target) -> Refusal | None:
    """Return why the opt would give a statement more lanes than `target` holds at once, or None.
    The tile of a tensor core counts with the elements that one work-item holds."""
    lanes = most_lanes_in(lane_kernel(kernel, target), str(opt.axis))
    amount, max_lanes = amount_of(kernel, opt), target.max_lanes
    if lanes * amount <= max_lanes:
        return None
    total = lanes * amount
    because = f"it would hold {total} lanes at once, and this device's limit is {max_lanes}"
    room = max_lanes // lanes
    hint = f"an amount of at most {room}" if room > 1 else "SPLIT, which adds no lanes"
    return Refusal(because, hint)
