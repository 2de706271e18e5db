"""Piecewise axes, as joining and padding make them: a kernel computes one value up to a border, and
another beyond it.

    for g1 in 800: s(g1, g1 < 400)  ->  for g2 in 400: s(g2, True); s(400 + g2, False)

Where borders are multiples of one length, the axis is split into pieces of that length, which
become lanes: within a piece every condition is constant, so no load needs a mask.
"""

from __future__ import annotations

import math

from workbench.base.target import Target
from workbench.ir.node.affine import terms
from workbench.ir.node.axis import AxisType
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.opt.divide import unused
from workbench.ir.opt.heuristic.step import HeuristicStep
from workbench.ir.opt.heuristic.strides import gathers, itemsize, reduces, unit_axis
from workbench.ir.opt.opt import Opt, OptOps, ranges

MOST_PIECES = 16
"""Most pieces of an axis: more are long code, and more streams than a core prefetches."""


def pieces(kernel: UOp, target: Target) -> HeuristicStep | None:
    """An axis with borders, in pieces within which each of its conditions is constant."""
    unit = unit_axis(kernel)
    if unit is None or reduces(kernel) or gathers(kernel, unit):
        return None
    wide = target.vector_width(itemsize(kernel))
    for axis in ranges(kernel).values():
        if axis.axis_kind is not AxisType.GLOBAL:
            continue
        positions = borders(kernel, axis)
        length = math.gcd(axis.extent, *positions)
        count = axis.extent // length
        # along the vector a piece is whole vectors, or halves of them: no store needs a mask
        lanes = next((n for n in (2 * wide, wide, wide // 2) if length % n == 0), 0)
        if not positions or count > MOST_PIECES or (axis is unit and lanes < 2):
            continue
        name, opts = axis.axis_name, []
        if length > 1:
            opts = [Opt(OptOps.SPLIT, name, length)]
        opts.append(Opt(OptOps.UPCAST, name, count))
        if axis is unit:
            opts.append(Opt(OptOps.UPCAST, unused(kernel, AxisType.GLOBAL), lanes))
        why = f"what is computed changes along {name}, and in no piece of it"
        counts = {"borders": len(positions), "pieces": count, "length": length}
        return HeuristicStep("pieces", tuple(opts), why, counts)
    return None


def borders(kernel: UOp, axis: UOp) -> set[int]:
    """Return where along `axis` the conditions that compare it with a number change."""
    positions: set[int] = set()
    for node in kernel.toposort():
        if node.op not in _BEYOND or axis not in node.ranges:
            continue
        (left, low), (right, high) = terms(node.src[0]), terms(node.src[1])
        if left == {axis: 1} and not right:
            positions.add(high - low + _BEYOND[node.op])
        elif right == {axis: 1} and not left:
            positions.add(low - high + 1 - _BEYOND[node.op])
    return positions


_BEYOND = {Ops.CMPLT: 0, Ops.CMPLE: 1}
"""How far behind n `axis < n` changes, and `axis <= n`."""
