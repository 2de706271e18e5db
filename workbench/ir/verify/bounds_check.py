"""Bounds checks of kernels from text: every gate is proved right, or tightened.

Scheduling builds gates that are right by construction. A kernel that a user typed or changed may
have a gate that lets an index leave its buffer, and native code would access it. It may also read
elements that no statement has written: their values differ from device to device.
"""

from __future__ import annotations

import numpy as np

from workbench.base.errors import VerifyError
from workbench.ir.meaning.evaluate import Array
from workbench.ir.node.exact_range import index_values
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp, gated, split_gate
from workbench.ir.verify.unwritten import POINTS, refuse_unwritten


def bounds_checked(kernel: UOp) -> UOp:
    """Return `kernel` with every gated index of a PARAM inside its buffer: where there are too many
    positions to try each, the bounds are added to the gate.

    Errors: VerifyError for an index that is outside where its gate is open, and for elements of a
    STAGE that are read and never written.
    """
    refuse_unwritten(kernel)
    changes = {}
    for node in kernel.toposort():
        if node.op is not Ops.INDEX or node.src[0].op is not Ops.PARAM:
            continue
        index, gate = split_gate(node.src[1])
        size = node.memory.length
        if gate is None or (index.vmin >= 0 and index.vmax < size):
            continue
        inside = _always_inside(index, gate, size)
        if inside is False:
            raise VerifyError(
                f"an index of PARAM {node.memory.slot} leaves its {size} elements",
                "its condition is true at a position where the index is outside",
            )
        if inside is None:
            changes[node.src[1]] = gated(index, gate & (index >= 0) & (index < size))
    return kernel.substitute(changes) if changes else kernel


def _always_inside(index: UOp, gate: UOp, size: int) -> bool | None:
    """Return whether `index` is in 0..size wherever `gate` is open; None if that is not known."""
    values = _values(index, gate)
    if values is None:
        return None
    at, is_open = values
    return not np.any(is_open & ((at < 0) | (at >= size)))


def _values(*indexes: UOp) -> list[Array] | None:
    """Return the values of index expressions at every step of their ranges, the same steps for all;
    None where there are too many, or they depend on memory."""
    axes = sorted(UOp.sink(*indexes).ranges, key=lambda r: r.axis_name)
    return index_values(indexes, axes, POINTS)
