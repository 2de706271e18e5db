"""The plan of a schedule: the stored values, the fused values, and the outputs of each kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workbench.base.words import plural
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.access import Access
from workbench.ir.schedule.item import Decision
from workbench.ir.schedule.staging import Staging


@dataclass(slots=True, repr=False)
class SchedulePlan:
    """The result of the walk. `decisions` are in its order, `stored` has those of stored values.
    `groups` has the values that share their kernel with others. `reads`: the accesses of each value
    (its own one where it is stored, then `readers` has those by which others read it); `links`: per
    value and access, the accesses of its sources."""

    nodes: dict[UOp, None]
    groups: Mapping[UOp, OutputGroup] = field(default_factory=dict)
    staged: dict[UOp, Staging] = field(default_factory=dict)
    stored: dict[UOp, Decision] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    reads: dict[UOp, list[Access]] = field(default_factory=dict)
    readers: dict[UOp, list[Access]] = field(default_factory=dict)
    links: dict[tuple[UOp, Access], tuple[Access | None, ...]] = field(default_factory=dict)

    def members(self, node: UOp) -> tuple[UOp, ...]:
        """Return the values that the kernel of a stored value stores."""
        group = self.groups.get(node)
        return (node,) if group is None else group.members

    def is_inside(self, source: UOp, access: Access) -> bool:
        """Whether the kernel of `access` computes `source` as another of its outputs, and does not
        read it from memory."""
        group = self.groups.get(source)
        return group is not None and group.leader is access.root

    def __repr__(self) -> str:
        stored = len(self.stored)
        return f"Plan({stored} values stored, {len(self.decisions) - stored} fused)"


@dataclass(frozen=True, slots=True, eq=False)
class OutputGroup:
    """Values that one kernel stores, sources first. `together`: reductions
    that share their loop with the one that they are mapped to."""

    members: tuple[UOp, ...]
    together: Mapping[UOp, UOp]
    bytes_read_once: int
    accesses: int

    @property
    def leader(self) -> UOp:
        """The value that stands for the kernel as the root of its accesses."""
        return self.members[0]

    @property
    def reason(self) -> str:
        """Why each is stored by the kernel of the others."""
        others = plural(len(self.members) - 1, "other value")
        if self.bytes_read_once:
            gain = f"{self.bytes_read_once:,} bytes are read once"
            return f"stored by one kernel with {others}: {gain}"
        return f"stored by one kernel with {others}: a launch takes longer than each"

    @property
    def estimates(self) -> dict[str, float]:
        """The figures that decided."""
        return {
            "outputs": len(self.members),
            "bytes_read_once": self.bytes_read_once,
            "launches_saved": len(self.members) - 1,
            "reads_and_writes": self.accesses,
        }
