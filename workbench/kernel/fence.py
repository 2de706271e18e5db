"""Kernels from text get a fence: no gate is believed before it is shown to keep its index inside.

Scheduling makes gates that are right by construction. A kernel that somebody typed, or changed,
may gate an index that leaves its buffer all the same, and native code would follow it.
"""

from __future__ import annotations

import math

import numpy as np

from workbench.errors import VerifyError
from workbench.ir.evaluate import constant, elementwise
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp, gated, split_gate

POINTS = 1 << 18
"""Positions up to which every one is tried; beyond, the bounds are added to the gate."""


def fenced(kernel: UOp) -> UOp:
    """Return `kernel` with every gated index of a PARAM inside its buffer.

    Errors: VerifyError for an index that is outside where its gate is open.
    """
    changes = {}
    for node in kernel.toposort():
        if node.op is not Ops.INDEX or node.src[0].op is not Ops.PARAM:
            continue
        index, gate = split_gate(node.src[1])
        size = node.src[0].arg[1]
        if gate is None or (index.vmin >= 0 and index.vmax < size):
            continue
        inside = _always_inside(index, gate, size)
        if inside is False:
            raise VerifyError(
                f"an index of PARAM {node.src[0].arg[0]} leaves its {size} elements",
                "its condition is true at a position where the index is outside",
            )
        if inside is None:
            changes[node.src[1]] = gated(index, gate & (index >= 0) & (index < size))
    return kernel.substitute(changes) if changes else kernel


def _always_inside(index: UOp, gate: UOp, size: int) -> bool | None:
    """Return whether `index` is in 0..size wherever `gate` is open; None if that is not known."""
    axes = sorted(index.ranges | gate.ranges, key=lambda r: r.axis_name)
    nodes = UOp.sink(index, gate).toposort()
    plain = all(
        n.is_elementwise or n.op in (Ops.CONST, Ops.RANGE, Ops.SINK) for n in nodes
    )
    if not plain or math.prod(r.extent for r in axes) > POINTS:
        return None
    grids = np.meshgrid(
        *[np.arange(r.extent) for r in axes], indexing="ij", sparse=True
    )
    values = dict(zip(axes, grids, strict=True))
    for node in nodes:
        if node.op is Ops.CONST:
            values.setdefault(node, constant(node, False))
        elif node.op is not Ops.SINK and node not in values:
            values[node] = elementwise(node, [values[s] for s in node.src], False)
    at = values[index]
    return not np.any(values[gate] & ((at < 0) | (at >= size)))
