"""The step of the default opts for devices with work-groups."""

from __future__ import annotations

from workbench.base.target import Target
from workbench.ir.node.axis import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.opt.heuristic.step import HeuristicStep
from workbench.ir.opt.opt import Opt, OptOps, ranges


def work_items(kernel: UOp, target: Target) -> HeuristicStep | None:
    """The innermost loop over outputs, a part for each work-item of a warp."""
    if not target.has_groups:
        return None
    axes = [a for a in _loops(kernel) if a.axis_kind is AxisType.GLOBAL]
    if not axes:
        return None
    axis = axes[-1]
    most = min(target.warp_lanes, target.group_items, axis.extent)
    items = max(n for n in range(1, most + 1) if axis.extent % n == 0)
    if items < 2:
        return None
    why = f"{axis.axis_name} is the innermost loop over outputs"
    counts = {"extent": axis.extent, "items": items, "warp": target.warp_lanes}
    opts = (Opt(OptOps.LOCAL, axis.axis_name, items),)
    return HeuristicStep("work-items", opts, why, counts)


def _loops(kernel: UOp) -> list[UOp]:
    axes = ranges(kernel)
    return [axes[name] for name in kernel.arg.order]
