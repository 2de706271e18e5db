"""The memory budget of a kernel: the memory that it needs, and the memory that a device has.

Two bounds: the stages of a work-group, as a GPU's local memory would hold them, and the arrays of
the statement tree, to which a loop order may add. Both are checked before lowering; lowering checks
the second again. A row that the kernel could not hold before an opt need not fit after it.
"""

from __future__ import annotations

import math

from workbench.base.target import Target
from workbench.ir.nest.fragments import lane_kernel
from workbench.ir.nest.launch_dims import GROUP_DIMENSIONS, group_excess, group_shape
from workbench.ir.nest.loops import statements
from workbench.ir.nest.recompute import item_kernel
from workbench.ir.nest.storage import excess
from workbench.ir.node.ops import Ops
from workbench.ir.node.ranges import closed
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import Opt, Refusal, ranges


def stage_bytes(kernel: UOp) -> int:
    """Return the bytes of all stages of a work-group: elements, times the lanes and work-items that
    have a stage each."""
    total = 0
    for stage in (n for n in statements(kernel) if n.op is Ops.STAGE):
        each = [r.extent for r in stage.ranges if _has_its_own(r)]
        shape = stage.buffers, *stage.memory_shape
        total += stage.dtype.itemsize * math.prod((*shape, *each))
    return total


def refuse_bytes(opt: Opt, kernel: UOp, next_kernel: UOp, target: Target) -> Refusal | None:
    """Return why `next_kernel`, which `opt` makes of `kernel`, needs too much memory, or None. Rows
    that did not fit before are computed where they are read, and so they may be after."""
    refusal = _refusal(opt, lane_kernel(next_kernel, target), target)
    before = refusal and _refusal(opt, lane_kernel(kernel, target), target)
    if before is None:
        return refusal
    if _fills_a_row(opt, kernel) and opt.axis not in ranges(item_kernel(kernel, target)):
        because = f"{opt.axis} fills a row that is computed where it is read: {before.because}"
        return Refusal(because, "opts before it that share the row, or another axis")
    return _refusal(opt, item_kernel(next_kernel, target), target)


def _fills_a_row(opt: Opt, kernel: UOp) -> bool:
    axis = ranges(kernel).get(str(opt.axis))
    stages = (n for n in statements(kernel) if n.op is Ops.STAGE)
    return any(axis in closed(stage) for stage in stages)


def _refusal(opt: Opt, kernel: UOp, target: Target) -> Refusal | None:
    """Return why the arrays of a kernel do not fit, or None."""
    needed = stage_bytes(kernel)
    limit = target.shared_bytes if target.has_groups else target.scratch_bytes
    if needed <= limit:
        over = excess(kernel, target)
        return None if over is None else Refusal(str(over), opt.op.less_memory(over))
    because = f"it needs {needed:,} bytes of local memory, and this device gives {limit:,}"
    return Refusal(because, opt.op.less_memory(None))


def refuse_items(next_kernel: UOp, target: Target) -> Refusal | None:
    """Return why no work-group of `next_kernel` fits the target, or None."""
    if not target.has_groups:
        return None
    shape = group_shape(lane_kernel(next_kernel, target))
    because = group_excess(shape, target)
    if not because:
        return None
    is_deep = len(shape) > GROUP_DIMENSIONS
    return Refusal(because, "a LOCAL or GROUP less" if is_deep else "a smaller amount")


def _has_its_own(axis: UOp) -> bool:
    return axis.axis_kind.is_lane or axis.axis_kind.is_work_item
