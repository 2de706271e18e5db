"""The launch of a kernel: the loops that a device runs in parallel, and their parts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.node.views import LoopRole


class LaunchAxis(NamedTuple):
    """A loop that a launch runs a part of: its role, the name of its axis, its steps."""

    role: LoopRole
    name: str
    extent: int


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """The loops of a kernel that a launch runs in parallel or in part, outermost first; lowering
    chooses them for the device's Target (`ir/lower/launch.py`).

    A processor runs all steps of a "thread" loop at once, and of a "chunked" loop the steps from lo
    to hi. A device with work-groups runs a group for each step of its "grid" axes together, and in
    each group a work-item for each step of its "item" axes together.
    """

    axes: tuple[LaunchAxis, ...] = ()

    @staticmethod
    def on_processor(steps: int, threads: int = 1) -> LaunchShape:
        """Return the shape of a kernel on `threads` threads, each of which runs `steps` steps."""
        return LaunchShape(
            (LaunchAxis("thread", "t0", threads), LaunchAxis("chunked", "g0", steps))
        )

    @property
    def threads(self) -> int:
        """How many parts of the kernel run at once, each with scratch memory of its own."""
        return math.prod(self._extents("thread"))

    @property
    def steps(self) -> int | None:
        """The steps of the chunked loop, which may run in slices; None if there is no such loop."""
        return next(iter(self._extents("chunked")), None)

    @property
    def grid(self) -> tuple[int, ...]:
        """The work-groups along each grid loop; () is one group."""
        return self._extents("grid")

    @property
    def group(self) -> tuple[int, ...]:
        """The work-items of a group along each of its axes; () is one item."""
        return self._extents("item")

    def names(self, role: LoopRole) -> tuple[str, ...]:
        """Return the names of the axes with a role, outermost first."""
        return tuple(axis.name for axis in self.axes if axis.role == role)

    def _extents(self, role: LoopRole) -> tuple[int, ...]:
        return tuple(axis.extent for axis in self.axes if axis.role == role)


def launch_shape(linear: Iterable[UOp]) -> LaunchShape:
    """Return the launch shape of a linear program."""
    nodes = [n for n in linear if n.op in (Ops.LOOP, Ops.SPECIAL)]
    numbers = [n for n in nodes if n.op is Ops.SPECIAL]
    numbers.sort(key=lambda n: (n.role, -n.dimension))
    loops = [n for n in nodes if n.op is Ops.LOOP]
    return LaunchShape(
        tuple(
            LaunchAxis(n.role, n.axis.axis_name, n.axis.extent)
            for n in (*numbers, *loops)
            if n.role is not None
        )
    )


def group_size(launch: LaunchShape) -> tuple[int, int, int]:
    """Return the work-items of a group along x, y and z."""
    x, y, z = (*reversed(launch.group), 1, 1, 1)[:3]
    return x, y, z


def item_counts(launch: LaunchShape) -> tuple[int, ...]:
    """Return the work-items of all groups along x, y and z."""
    sizes = zip(grid_size(launch), group_size(launch), strict=True)
    return tuple(groups * items for groups, items in sizes)


def grid_size(launch: LaunchShape) -> tuple[int, int, int]:
    """Return the work-groups of a grid along x, y and z."""
    x, y, z = (*reversed(launch.grid), 1, 1, 1)[:3]
    return x, y, z
