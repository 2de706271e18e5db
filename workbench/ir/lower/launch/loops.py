"""The loops of a launch: those of a statement tree that the Target runs as work-groups and
work-items. `LaunchShape` (`backends/program/launch.py`) says what a device does with them.
"""

from __future__ import annotations

from collections.abc import Mapping

from workbench.base.target import Target
from workbench.ir.nest.launch_dims import grid_dims
from workbench.ir.nest.placement import Loop
from workbench.ir.node.axis import AxisType
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import LoopRole

Roles = Mapping[UOp, LoopRole]
"""The role of the loops over an axis."""


def launch_roles(root: Loop, target: Target) -> Roles:
    """Return the roles of axes, whose other loops are plain. Only loops around all statements can
    be spread over cores or work-groups."""
    return _of_groups(root, target) if target.has_groups else _of_processor(root)


def _of_processor(root: Loop) -> Roles:
    """Each thread does one step of a THREAD loop, and a GLOBAL loop may run in chunks."""
    roles: dict[UOp, LoopRole] = {}
    loop = _only_loop(root)
    if loop is not None and _kind(loop) is AxisType.THREAD:
        roles[_axis(loop)] = "thread"
        loop = _only_loop(loop)
    if loop is not None and _kind(loop) is AxisType.GLOBAL:
        roles[_axis(loop)] = "chunked"
    return roles


def _of_groups(root: Loop, target: Target) -> Roles:
    """The GLOBAL and THREAD loops are its grid, without the outermost ones where it has no room for
    all; the axes of a work-group are its work-items, wherever their loops stand."""
    loop, spread = _only_loop(root), []
    while loop is not None:
        axis = _axis(loop)
        if axis.axis_kind in _OF_GRID:
            spread.append(axis)
        elif not axis.axis_kind.is_work_item:
            break
        loop = _only_loop(loop)
    limits = target.grid_limits
    while spread and grid_dims([axis.extent for axis in spread], limits) is None:
        del spread[0]
    roles: dict[UOp, LoopRole] = dict.fromkeys(spread, "grid")
    pending = [root]
    while pending:
        loops = [child for child in pending.pop().body if isinstance(child, Loop)]
        pending += loops
        roles |= {_axis(x): "item" for x in loops if _kind(x).is_work_item}
    return roles


def _only_loop(loop: Loop) -> Loop | None:
    """Return the loop that is the whole body of another one."""
    child = loop.body[0] if len(loop.body) == 1 else None
    return child if isinstance(child, Loop) else None


def _axis(loop: Loop) -> UOp:
    assert loop.axis is not None
    return loop.axis


def _kind(loop: Loop) -> AxisType:
    return _axis(loop).axis_kind


_OF_GRID = (AxisType.GLOBAL, AxisType.THREAD)
