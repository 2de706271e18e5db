"""Staged rows: values that several statements of a kernel read under shared outer loops.

Softmax reads exp(x - m) twice, to sum it and to divide it; under the loop over rows that is one
row, which fits in cache. So it is computed once per row into scratch: cheaper than computing it
twice, and far cheaper than a round through memory.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from workbench.base.sequences import common_prefix
from workbench.ir.node.ops import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.access import TRUE, ZERO, Access, fresh, settle

ROW_BYTES = 64 << 10
"""Bytes of the longest row: an eighth of a second-level cache of 512 KiB, since a longer one would
evict its own start. It does not depend on the Target on purpose: the schedule is the same on every
machine and device, so that kernels, their names and a search's lists of opts mean the same
everywhere. Where a device has no room for a row, lowering computes it where it is read
(`ir/nest/recompute.py`)."""
STAGE_COST = 2.0
"""Per element: written to cache once and read back."""


class Staging(NamedTuple):
    """How a value is staged: `fill` is the access that computes the row; `private` are the axes of
    the value that the row has; the loops around it fix the others."""

    fill: Access
    private: tuple[int, ...]


def staging(node: UOp, reads: list[Access]) -> Staging | None:
    """Return how to stage `node` for `reads`, or None where they share no loop that the row
    depends on, or the row is too long. Filled before all loops, the row would be the whole value,
    computed and stored by every core: a kernel of its own is better."""
    first = reads[0]
    if len(reads) < 2 or any(a.root is not first.root or a.valid is not TRUE for a in reads):
        return None
    common = common_prefix(*[a.loops for a in reads])
    private = tuple(
        axis
        for axis, n in enumerate(node.shape)
        if n > 1 and not _fixed([a.indices[axis] for a in reads], common)
    )
    indices = tuple(ZERO if axis in private else index for axis, index in enumerate(first.indices))
    shared = settle(Access(indices, TRUE, common, first.root)).loops
    row = math.prod(node.shape[axis] for axis in private) * node.dtype.itemsize
    if not shared or not private or row > ROW_BYTES:
        return None
    fills = {axis: fresh(node.shape[axis], AxisType.FILL) for axis in private}
    indices = tuple(fills.get(axis, i) for axis, i in enumerate(indices))
    return Staging(Access(indices, TRUE, (*shared, *fills.values()), first.root), private)


def _fixed(indices: list[UOp], loops: tuple[UOp, ...]) -> bool:
    """Whether all reads use one index, and the shared loops determine it."""
    if any(i is not indices[0] for i in indices):
        return False
    return indices[0] is ZERO or indices[0].ranges <= set(loops)
