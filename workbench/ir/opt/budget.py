"""What the stages of a kernel hold, against what a device gives a work-group.

Lowering bounds what it really allocates (a loop order may need more arrays); this is the part
that opts ask for, told before anything is lowered.
"""

from __future__ import annotations

import math

from workbench.ir.axis import AxisType
from workbench.ir.ops import Ops
from workbench.ir.opt.opt import Opt, OptOps, Refusal
from workbench.ir.uop import UOp
from workbench.target import Target

MAKING = frozenset({OptOps.STAGE, OptOps.GROUP, OptOps.GROUPTOP})
_WORK_ITEMS = frozenset({AxisType.LOCAL, AxisType.GROUP_REDUCE})


def holds_stages(kernel: UOp) -> bool:
    """Whether the kernel has a STAGE."""
    return any(n.op is Ops.STAGE for n in kernel.toposort())


def stage_bytes(kernel: UOp) -> int:
    """Return the bytes of all stages of a work-group: elements, times the lanes and work-items
    that each have their own."""
    total = 0
    for stage in (n for n in kernel.toposort() if n.op is Ops.STAGE):
        each = [r.extent for r in stage.ranges if _has_its_own(r)]
        total += stage.dtype.itemsize * math.prod((*stage.arg[1], *each))
    return total


def refuse_bytes(opt: Opt, made: UOp, target: Target) -> Refusal | None:
    """Return why `made`, what an opt made, holds too much, or None."""
    needed, limit = stage_bytes(made), target.scratch_bytes
    if needed <= limit:
        return None
    because = (
        f"it needs {needed:,} bytes of local memory, and this device gives {limit:,}"
    )
    is_tile = opt.op is OptOps.STAGE
    return Refusal(
        because, "a loop further in, or SPLIT first" if is_tile else "a smaller amount"
    )


def _has_its_own(axis: UOp) -> bool:
    return axis.axis_kind.is_lane or axis.axis_kind in _WORK_ITEMS
