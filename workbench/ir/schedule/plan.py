"""The plan of a schedule: the stored values, the fused values, and the outputs of each kernel.

Sections: The result of scheduling; The plan of a schedule.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from workbench.base.errors import plural
from workbench.ir.node.ops import Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.access import Access
from workbench.ir.schedule.cost import Staging

# --------------------------------------------------------------------------------------------------
# The result of scheduling: items to run in order, and the decisions that led to them.


def base(node: UOp) -> UOp:
    """Return the value under RESHAPEs and DETACHs: the memory is the same."""
    while node.op in (Ops.RESHAPE, Ops.DETACH):
        node = node.src[0]
    return node


DecisionName = Literal[
    "store-asked", "store-forced", "store-parts", "store-copy", "store-long-index",
    "store-padded", "store-large-kernel",
    "store-many-reads", "store-for-parallel", "store-partial", "store-for-tile", "store-cheaper",
    "store-one-order", "store-beside-product", "store-second-product",
    "fuse-forced", "fuse-free", "fuse-positions", "fuse-row", "fuse-once", "fuse-cheaper",
]  # fmt: skip
"""The reasons for decisions. They are choices about single values, which a user can force, and no
rules, which are switched off for all values."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Why a value is stored or fused. `estimates` are the numbers that decided; if a user `forced`
    the decision, they are only for comparison."""

    name: DecisionName
    node: UOp
    stored: bool
    reason: str
    estimates: Mapping[str, float] = field(default_factory=dict)
    forced: bool = False

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        estimates = ", ".join(f"{k} {v:,.0f}" for k, v in self.estimates.items())
        node = self.node
        name = node.name if node.op is Ops.CUSTOM else node.op.name.lower()
        value = f"{name} {list(node.shape)}"
        what = f"{self.name} {value}: {self.reason}"
        return what + (f" ({estimates})" if estimates else "")


@dataclass(frozen=True, slots=True)
class ScheduleItem:
    """One thing to run: a kernel, or (kernel None) a copy between devices.

    `buffers` are BUFFER nodes by PARAM slot (of a copy: the target, then the source); `nodes` are
    the tensor-level values that the item computes, one per output, and `decisions` the reasons why
    they are stored.
    """

    kernel: UOp | None
    buffers: tuple[UOp, ...]
    nodes: tuple[UOp, ...]
    decisions: tuple[Decision, ...]

    @property
    def is_users(self) -> bool:
        """Whether the kernel is a user's own: its name and its loops stay."""
        return any(node.op is Ops.CUSTOM for node in self.nodes)

    @property
    def slots(self) -> tuple[int, ...]:
        """The slots of the BUFFERs that the item writes."""
        return (0,) if self.kernel is None else self.kernel.outputs

    @property
    def outputs(self) -> tuple[UOp, ...]:
        """The BUFFERs that the item writes."""
        return tuple([self.buffers[slot] for slot in self.slots])

    @property
    def inputs(self) -> tuple[UOp, ...]:
        """The BUFFERs that the item reads."""
        written = self.slots
        return tuple([b for slot, b in enumerate(self.buffers) if slot not in written])

    def computed(self, ends: set[UOp]) -> list[UOp]:
        """Return the nodes that the item computes: from its values down to `ends`, the values that
        other items store."""
        stops = ends.difference(self.nodes)
        nodes = UOp.sink(*self.nodes).toposort(lambda n: n not in stops)
        return [n for n in nodes if n not in stops and n.op is not Ops.SINK]

    @property
    def device(self) -> str:
        """The device that the item runs on."""
        return self.outputs[0].device

    def __repr__(self) -> str:
        what = "copy" if self.kernel is None else self.kernel.arg.name
        why = "; ".join(dict.fromkeys([d.reason for d in self.decisions]))
        return f"ScheduleItem({what}, {len(self.buffers)} buffers: {why})"


@dataclass(frozen=True, slots=True)
class Schedule:
    """All items in execution order; `stored` maps each stored value to its BUFFER. `originals` has
    the value of the graph without choices by hand for each value of a graph that they changed."""

    items: tuple[ScheduleItem, ...]
    stored: Mapping[UOp, UOp]
    decisions: tuple[Decision, ...]
    originals: Mapping[UOp, UOp] = field(default_factory=dict)


def drawing(
    items: Sequence[ScheduleItem], keys: Container[UOp], results: Container[UOp]
) -> frozenset[int]:
    """Return the positions of the items that only draw random numbers of some `keys`: copies of
    these BUFFERs, and kernels that read nothing else, reduce nothing, and store none of the
    `results`."""
    copies: set[UOp] = set()
    places: set[int] = set()
    for place, item in enumerate(items):
        read = item.inputs
        if not read or not all(b in keys or b in copies for b in read):
            continue
        if item.kernel is None:
            copies.update(item.outputs)
        elif any(n in results for n in item.nodes) or _reduces(item.kernel):
            continue
        places.add(place)
    return frozenset(places)


def _reduces(kernel: UOp) -> bool:
    return any(node.op is Ops.REDUCE for node in kernel.toposort())


# --------------------------------------------------------------------------------------------------
# The plan of a schedule.


@dataclass(slots=True, repr=False)
class SchedulePlan:
    """The result of the walk: all `decisions` in its order; `stored` has the decisions to store a
    value. `groups` has the values that share their kernel with others. `reads` has the accesses by
    which a value is computed: of a stored value the write alone, while `readers` has the accesses
    by which others read it. `links` has, for a value and an access, the accesses of its sources."""

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
    """Values that one kernel stores, sources first. `together` maps reductions to those whose loops
    they share."""

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
        """The numbers that decided."""
        return {
            "outputs": len(self.members),
            "bytes_read_once": self.bytes_read_once,
            "launches_saved": len(self.members) - 1,
            "reads_and_writes": self.accesses,
        }
