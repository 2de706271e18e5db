"""Kinds of axis: what a loop of a kernel is for, and the letter its names begin with."""

from __future__ import annotations

from enum import Enum


class AxisType(Enum):
    """The kind of an axis, in the order in which kernels list their axes."""

    GLOBAL = "g"
    LOOP = "i"
    LOCAL = "l"
    THREAD = "t"
    GROUP_REDUCE = "x"
    REDUCE = "r"
    UPCAST = "u"
    UNROLL = "n"
    WARP = "w"
    FILL = "f"

    @property
    def letter(self) -> str:
        """What the names of such axes begin with."""
        return self.value

    @property
    def is_lane(self) -> bool:
        """Lanes are computed together, without a loop: they have no place in the loop order."""
        return self in (AxisType.UPCAST, AxisType.UNROLL, AxisType.WARP)

    def __repr__(self) -> str:
        return f"AxisType.{self.name}"


AXIS_ORDER = {kind: rank for rank, kind in enumerate(AxisType)}
