"""Kernels from text get a fence: no gate is believed before it is shown to keep its index inside.

Scheduling makes gates that are right by construction. A kernel that somebody typed, or changed,
may gate an index that leaves its buffer all the same, and native code would follow it. It may
also read what no statement has written: every device then finds something else.
"""

from __future__ import annotations

import numpy as np

from workbench.errors import VerifyError
from workbench.ir.affine import terms
from workbench.ir.evaluate import Array
from workbench.ir.index_values import index_values
from workbench.ir.ops import Ops
from workbench.ir.uop import UOp, gated, split_gate

POINTS = 1 << 18
"""Positions up to which every one is tried; beyond, the bounds are added to the gate."""


def fenced(kernel: UOp) -> UOp:
    """Return `kernel` with every gated index of a PARAM inside its buffer.

    Errors: VerifyError for an index that is outside where its gate is open, and for elements of a
    STAGE that are read and never written.
    """
    changes = {}
    for node in kernel.toposort():
        if node.op is Ops.INDEX and node.src[0].op is Ops.STAGE:
            _refuse_unwritten(node)
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
    values = _values(index, gate)
    if values is None:
        return None
    at, is_open = values
    return not np.any(is_open & ((at < 0) | (at >= size)))


def _refuse_unwritten(read: UOp) -> None:
    """Refuse a read of a STAGE at a position that its fill does not reach, or is not known to."""
    stage = read.src[0]
    name, shape = stage.arg
    if _fills(stage):
        return
    written, found = _positions(stage, shape), _positions(read, shape)
    if written is None or found is None:
        raise VerifyError(
            f"an element of the STAGE {name} may be read and never written",
            "its fill is no plain sum of ranges, and too large to try every position",
            "an index that is a range, or tiles like 4*a + b, over each whole dimension",
        )
    missing = np.setdiff1d(found, written)
    if missing.size:
        at = tuple(int(n) for n in np.unravel_index(missing[0], shape))
        raise VerifyError(
            f"an element of the STAGE {name} is read and never written",
            f"its fill does not reach {at}, one of {missing.size} such elements",
        )


def _fills(stage: UOp) -> bool:
    """Return whether each index of a STAGE is a sum of ranges of its own that takes every value
    of its dimension: like 4*a + b with b in 4, each range begins where the finer ones end."""
    seen: set[UOp] = set()
    for index, size in zip(stage.src[1:], stage.arg[1], strict=True):
        parts, low = terms(index)
        if low or not seen.isdisjoint(parts):
            return False
        seen.update(parts)
        covered = 1
        for axis, factor in sorted(parts.items(), key=lambda part: part[1]):
            if axis.op is not Ops.RANGE or not 0 < factor <= covered:
                return False
            covered += factor * (axis.extent - 1)
        if covered < size:
            return False
    return True


def _positions(node: UOp, shape: tuple[int, ...]) -> Array | None:
    """Return the flat positions that the indexes of a node take, where its gates are open."""
    parts = [split_gate(index) for index in node.src[1:]]
    if any(index.op is Ops.INVALID for index, _ in parts):
        return None
    gates = [gate for _, gate in parts if gate is not None]
    values = _values(*[index for index, _ in parts], *gates)
    if values is None or not shape:
        return None
    *values, _ = np.broadcast_arrays(*values, np.array(0))
    at = np.ravel_multi_index(values[: len(parts)], shape, mode="clip").ravel()
    is_open = np.logical_and.reduce(
        [np.ones_like(at, bool), *map(np.ravel, values[len(parts) :])]
    )
    return np.unique(at[is_open])


def _values(*wanted: UOp) -> list[Array] | None:
    """Return the values of index expressions at every step of their ranges, the same steps for
    all; None where there are too many, or they depend on what is loaded."""
    axes = sorted(UOp.sink(*wanted).ranges, key=lambda r: r.axis_name)
    return index_values(wanted, axes, POINTS)
