"""Kernels of several outputs: groups of values that one kernel computes, their shared ranges, and
their reads.

Sections: The reads of each kernel of a plan, named so that kernels can be compared; Groups
of values that are outputs of one kernel; The ranges that the outputs of one kernel share, and
the check that they fit together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from workbench.base.trace import derived_from
from workbench.ir.node.ops import OPS, AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.access import (
    Access,
    Ranges,
    output_access,
    output_loops,
    reduction_ranges,
    root_access,
    settle,
)
from workbench.ir.schedule.cost import steps
from workbench.ir.schedule.plan import Decision, OutputGroup, SchedulePlan

# --------------------------------------------------------------------------------------------------
# The reads of each kernel of a plan, named so that kernels can be compared.
#
# Two kernels of one iteration space read the same element at the same step if their indexes are
# equal after each range is named by its position in the loops.


class PlacedRead(NamedTuple):
    """A read of memory; its ranges are named by their positions in the loops around it."""

    source: UOp
    indices: tuple[UOp, ...]
    valid: UOp


@dataclass(slots=True)
class KernelReads:
    """The reads of the kernel that stores `root` by the access `own`. `nbytes` has the bytes of
    each read, `around` the reductions whose ranges are around the read, outermost first. `sources`
    are the stored values that the kernel reads, with the accesses; it computes `reductions`.
    `steps` counts the operations of one element, `work` those of all elements."""

    root: UOp
    own: Access
    nbytes: dict[PlacedRead, int] = field(default_factory=dict)
    around: dict[PlacedRead, tuple[UOp, ...]] = field(default_factory=dict)
    sources: dict[UOp, list[Access]] = field(default_factory=dict)
    reductions: dict[UOp, None] = field(default_factory=dict)
    steps: int = 0
    work: float = 0.0

    @property
    def traffic(self) -> int:
        """Bytes that it reads and writes."""
        return sum(self.nbytes.values()) + self.root.size * self.root.dtype.itemsize


def kernel_reads(plan: SchedulePlan, placed: ReadPlacing) -> dict[UOp, KernelReads]:
    """Return the reads of each kernel, or copy, of a plan, by the stored value at its root."""
    kernels = {node: KernelReads(node, plan.reads[node][0]) for node in plan.stored}
    reduction_of = _reductions(plan)
    for (node, access), below in plan.links.items():
        kernel = kernels[access.root]
        kernel.steps += steps(node)
        if node.is_elementwise:
            kernel.work += access.evaluations * OPS[node.op].cost
        elif node.op is Ops.REDUCE_AXIS and node.src[0].size > node.size:
            kernel.reductions[node] = None
            kernel.work += access.evaluations * (node.src[0].size // node.size)
        for source, at in zip(node.src, below, strict=True):
            if at is None:
                continue
            if source in plan.stored:
                kernel.sources.setdefault(source, []).append(at)
            elif source.op is not Ops.BUFFER:
                continue
            read = placed(source, at)
            elements = min(source.size, at.evaluations)
            kernel.nbytes[read] = elements * source.dtype.itemsize
            kernel.around[read] = tuple([reduction_of[r] for r in at.loops if r in reduction_of])
    return kernels


class ReadPlacing:
    """Names the ranges of accesses by their positions. An index is renamed once for equal loops."""

    def __init__(self) -> None:
        self._renamed: dict[Ranges, dict[UOp, UOp]] = {}

    def __call__(self, source: UOp, access: Access) -> PlacedRead:
        """Return an access with its ranges named by position."""
        if not access.loops:
            return PlacedRead(source, access.indices, access.valid)
        renamed = self._renamed.get(access.loops)
        if renamed is None:
            renamed = self._renamed[access.loops] = {
                axis: UOp.range(axis.extent, f"_{place}", axis.axis_kind)
                for place, axis in enumerate(access.loops)
            }
        with derived_from():
            for index in (*access.indices, access.valid):
                for node in index.toposort(lambda n: n not in renamed):
                    if node not in renamed:
                        renamed[node] = node.rebuild(tuple([renamed[s] for s in node.src]))
        return PlacedRead(
            source, tuple([renamed[index] for index in access.indices]), renamed[access.valid]
        )


def _reductions(plan: SchedulePlan) -> dict[UOp, UOp]:
    """Return the reduction of each range that belongs to one."""
    reduction_of: dict[UOp, UOp] = {}
    for (node, access), below in plan.links.items():
        if node.op is Ops.REDUCE_AXIS and below[0] is not None:
            inner = below[0].loops[len(access.loops) :]
            reduction_of.update(dict.fromkeys(inner, node))
    return reduction_of


# --------------------------------------------------------------------------------------------------
# Groups of values that are outputs of one kernel.
#
# Kernels of one iteration space are joined where that gains: they read the same elements at the
# same step, one reads what another computes, or both are so small that a launch takes longer than
# their work. A path between two through a third kernel forbids it: joining them makes a cycle.
# Source of the idea: the horizontal fusion of tensor compilers, tinygrad's multi-output kernels.

MOST_OUTPUTS = 8
"""Most outputs of one kernel; more make its code too long."""
MOST_ACCESSES = 12
"""Most different reads and writes of a kernel that is not small: a core prefetches no more."""
MOST_STEPS = 600
"""Most operations of an element of a joined kernel; a longer one compiles too slowly."""
SHARED_PART = 0.25
"""Share of the bytes of the smaller of two kernels that joining them must save."""
SMALL_WORK = 1 << 16
"""Most operations of kernels that take no longer than a launch."""
FAR_BYTES = 1 << 19
"""Most bytes of an array that may be summed along its long stride in any order: it stays in the
second-level cache."""
EPILOGUE_PART = 0.125
"""Most work of a kernel without reductions that joins one with reductions, as a share of the work
of the latter: the lanes of the loops are chosen for the reductions."""


def output_groups(
    plan: SchedulePlan,
    single: Collection[UOp],
    devices: Mapping[UOp, str],
    products: Collection[UOp],
) -> list[OutputGroup]:
    """Return the groups of stored values that gain from one kernel. Values in `single` have a
    kernel of their own; `products` are the reductions that need a register tile."""
    spaces = {node: _space(node, devices) for node in plan.stored if node not in single}
    counts = Counter(spaces.values())
    if all(count < 2 for count in counts.values()):
        return []
    placed = ReadPlacing()
    joins = _Joins(plan.nodes, kernel_reads(plan, placed), products, placed)
    for node, space in reversed(spaces.items()):
        if counts[space] > 1:
            joins.add(node, space)
    return [joined.group() for joined in joins.joined() if len(joined.kernels) > 1]


def _space(node: UOp, devices: Mapping[UOp, str]) -> IterationSpace:
    return IterationSpace(tuple(n for n in node.shape if n != 1), devices[node])


class IterationSpace(NamedTuple):
    """The loops over the outputs of a kernel, and its device."""

    extents: tuple[int, ...]
    device: str


@dataclass(slots=True, eq=False)
class _Joined:
    """Kernels that are joined into one (or a single kernel): a node of a graph, in which `needs`
    are the nodes whose values it reads, and `readers` those that read its own. `together` maps
    reductions to those whose loops they share."""

    kernels: list[KernelReads]
    needs: set[_Joined] = field(default_factory=set)
    readers: set[_Joined] = field(default_factory=set)
    together: dict[UOp, UOp] = field(default_factory=dict)
    bytes_read_once: int = 0

    @property
    def roots(self) -> dict[UOp, Access]:
        return {kernel.root: kernel.own for kernel in self.kernels}

    @property
    def reads(self) -> dict[PlacedRead, tuple[UOp, ...]]:
        """What it reads from memory, with the reductions around each read."""
        roots = self.roots
        reads: dict[PlacedRead, tuple[UOp, ...]] = {}
        for kernel in self.kernels:
            reads.update((r, a) for r, a in kernel.around.items() if r.source not in roots)
        return reads

    @property
    def work(self) -> float:
        return sum(kernel.work for kernel in self.kernels)

    @property
    def traffic(self) -> int:
        return sum(kernel.traffic for kernel in self.kernels) - self.bytes_read_once

    @property
    def reductions(self) -> list[UOp]:
        return [r for kernel in self.kernels for r in kernel.reductions]

    def group(self) -> OutputGroup:
        """Return the kernels as a group."""
        members = tuple([kernel.root for kernel in self.kernels])
        accesses = len(self.reads) + len(members)
        return OutputGroup(members, self.together, self.bytes_read_once, accesses)


class _Joins:
    """The kernels of a plan while they are joined, one after the other, sources first."""

    def __init__(
        self,
        nodes: Iterable[UOp],
        kernels: Mapping[UOp, KernelReads],
        products: Collection[UOp],
        placed: ReadPlacing,
    ):
        self._placed = placed
        self._place = {node: place for place, node in enumerate(nodes)}
        """The places of nodes in an order in which sources come first."""
        self._of = {root: _Joined([kernel]) for root, kernel in kernels.items()}
        self._order = [self._of[root] for root in sorted(kernels, key=self._place.__getitem__)]
        """The kernels in an order in which none comes before one that it needs."""
        self._rank = {joined: rank for rank, joined in enumerate(self._order)}
        for root, kernel in kernels.items():
            for source in kernel.sources:
                self._of[root].needs.add(self._of[source])
                self._of[source].readers.add(self._of[root])
        self._products = products
        self._readers: dict[tuple[IterationSpace, PlacedRead], UOp] = {}
        self._roots: dict[UOp, IterationSpace] = {}
        self._small: dict[IterationSpace, UOp] = {}

    def joined(self) -> list[_Joined]:
        """Return all kernels as they are now."""
        return list(dict.fromkeys(self._of.values()))

    def add(self, root: UOp, space: IterationSpace) -> None:
        """Join the kernel of `root` to the earlier kernel with which it saves most bytes, if that
        gains anything."""
        kernel = self._of[root]
        gains: dict[_Joined, int] = {}
        for other in self._related(kernel.kernels[0], space):
            gain = self._gain(other, kernel)
            if gain is not None and self._between(other, kernel) is not None:
                gains[other] = gain
        if gains:
            best = max(gains, key=gains.__getitem__)
            self._join(best, kernel, gains[best])
            kernel = best
        self._roots[root] = space
        self._readers.update(((space, read), root) for read in kernel.reads)
        if kernel.work <= SMALL_WORK:
            self._small[space] = root

    def _related(self, kernel: KernelReads, space: IterationSpace) -> Iterable[_Joined]:
        """Return kernels that share a read with `kernel`, compute its operands, or are small."""
        roots = [self._readers.get((space, read)) for read in kernel.nbytes]
        roots += [s for s in kernel.sources if self._roots.get(s) == space]
        roots.append(self._small.get(space))
        return dict.fromkeys(self._of[root] for root in roots if root is not None)

    def _gain(self, one: _Joined, other: _Joined) -> int | None:
        """Return the bytes that joining `other` (one kernel) to `one` saves; None where that is
        impossible, or gains too little."""
        (kernel,) = other.kernels
        roots, reads = one.roots, one.reads
        if len(roots) == MOST_OUTPUTS or not self._reads_in_place(kernel, roots):
            return None
        if sum(k.steps for k in one.kernels) + kernel.steps > MOST_STEPS:
            return None
        if not self._loops_agree(one, other):
            return None
        read_once = [r for r in kernel.nbytes if r in reads or r.source in roots]
        gain = sum(kernel.nbytes[read] for read in read_once)
        if one.work + other.work <= SMALL_WORK:
            return gain
        if one.reductions and kernel.reductions and _waits_far(kernel, roots, reads):
            return None
        accesses = len(reads) + len(roots) + len(kernel.nbytes) - len(read_once) + 1
        least = SHARED_PART * min(one.traffic, other.traffic)
        return gain if gain >= least and accesses <= MOST_ACCESSES else None

    def _loops_agree(self, one: _Joined, other: _Joined) -> bool:
        """Whether one choice of lanes suits both: a matrix product does not join other reductions,
        and a kernel without reductions joins one with reductions only if it has little work."""
        both = one.reductions, other.reductions
        if any(r in self._products for r in (*both[0], *both[1])):
            return not all(both)
        if all(both) or not any(both):
            return True
        beside, reducing = (other, one) if both[0] else (one, other)
        return beside.work <= EPILOGUE_PART * reducing.work

    def _join(self, one: _Joined, other: _Joined, gain: int) -> None:
        (kernel,) = other.kernels
        self._bring_together(one, other)
        self._share_loops(one, kernel)
        one.kernels.append(kernel)
        one.bytes_read_once += gain
        self._of[kernel.root] = one
        for source in other.needs:
            source.readers.discard(other)
            source.readers.add(one)
        for reader in other.readers:
            reader.needs.discard(other)
            reader.needs.add(one)
        one.needs = (one.needs | other.needs) - {one, other}
        one.readers = (one.readers | other.readers) - {one, other}

    def _between(self, one: _Joined, other: _Joined) -> set[_Joined] | None:
        """Return the kernels after the first of two that the second needs; None if one of them
        needs the first: joining the two would make a cycle."""
        first, last = sorted((one, other), key=self._rank.__getitem__)
        rank, lowest = self._rank, self._rank[first]
        needed = {below for below in last.needs if rank[below] > lowest}
        stack = list(needed)
        while stack:
            for below in stack.pop().needs:
                if below is first:
                    return None
                if rank[below] > lowest and below not in needed:
                    needed.add(below)
                    stack.append(below)
        return needed

    def _bring_together(self, one: _Joined, other: _Joined) -> None:
        """Give the kernels from the first of two to the second an order in which `one` stands for
        both: after what they need, and before what needs them."""
        needed = self._between(one, other)
        assert needed is not None
        start, end = sorted((self._rank[one], self._rank[other]))
        part = self._order[start : end + 1]
        rest = [each for each in part if each not in needed and each not in (one, other)]
        self._order[start : end + 1] = [*[n for n in part if n in needed], one, other, *rest]
        for rank in range(start, end + 1):
            self._rank[self._order[rank]] = rank

    def _reads_in_place(self, kernel: KernelReads, roots: Mapping[UOp, Access]) -> bool:
        """Whether a kernel reads each of `roots` only at the element that is written at that
        step."""
        for root, own in roots.items():
            written = self._placed(root, own)
            for access in kernel.sources.get(root, ()):
                if self._placed(root, settle(access)) != written:
                    return False
        return True

    def _share_loops(self, one: _Joined, kernel: KernelReads) -> None:
        """Map each reduction of `kernel` to a reduction of `one` that reads the same elements at
        the same steps, if there is one and neither is computed from the other."""
        reads = one.reads
        for read, around in kernel.around.items():
            for new, old in zip(around, reads.get(read, ()), strict=False):
                first = one.together.get(old, old)
                if new is first or new in one.together or _extents(new) != _extents(first):
                    continue
                others = [old, first, *[r for r, to in one.together.items() if to is first]]
                if all(self._are_independent(new, r) for r in others):
                    one.together[new] = first

    def _are_independent(self, one: UOp, other: UOp) -> bool:
        """Whether neither of two nodes is below the other."""
        place = self._place
        first, last = sorted((one, other), key=place.__getitem__)
        return first not in last.toposort(lambda node: place[node] > place[first])


def _waits_far(
    kernel: KernelReads, roots: Mapping[UOp, Access], shared: Collection[PlacedRead]
) -> bool:
    """Whether a kernel needs complete results of another one, and sums a large array, which both
    read, along its long stride. Such a loop belongs outside of the loops over the outputs, with all
    sums of a row at once; beside it there, a loop that needs its sums cannot stand."""
    if roots.keys().isdisjoint(kernel.sources):
        return False
    return any(
        kernel.nbytes[read] > FAR_BYTES and kernel.around[read] and _is_far(read)
        for read in kernel.nbytes
        if read in shared
    )


def _is_far(read: PlacedRead) -> bool:
    """Whether neighbours in memory are along an output axis, not along a reduced axis."""
    kinds = {axis.axis_kind for axis in read.indices[-1].ranges}
    return kinds == {AxisType.GLOBAL}


def _extents(reduction: UOp) -> list[int]:
    shape = reduction.src[0].shape
    return [shape[axis] for axis in sorted(reduction.reduced_axes) if shape[axis] != 1]


# --------------------------------------------------------------------------------------------------
# The ranges that the outputs of one kernel share, and the check that they fit together.


class SharedRanges:
    """The ranges of kernels with several outputs, in one walk: loops over outputs, and loops of
    reductions that read the same."""

    def __init__(self, groups: Mapping[UOp, OutputGroup]):
        self._groups = groups
        self._first = {new: old for g in groups.values() for new, old in g.together.items()}
        self._first |= {old: old for old in self._first.values()}
        self._loops: dict[UOp, Ranges] = {}
        self._inner: dict[tuple[UOp, Access | Ranges], Ranges] = {}

    def output(self, node: UOp) -> Access:
        """Return the access by which a stored value is written."""
        group = self._groups.get(node)
        if group is None:
            return root_access(node)
        leader = group.leader
        if leader not in self._loops:
            self._loops[leader] = output_loops(node, leader)
        return output_access(node, leader, self._loops[leader])

    def reduction(self, node: UOp, access: Access) -> Ranges | None:
        """Return the ranges of a reduction that shares its loop; None where it has its own."""
        first = self._first.get(node)
        if first is None or node.op is not Ops.REDUCE_AXIS:
            return None
        key = first, (access.root, *access.loops)
        if key not in self._inner:
            self._inner[key] = reduction_ranges(node, access.root)
        return self._inner[key]

    def beside(self, decision: Decision) -> Decision:
        """Return the decision to store a value, with the reason and the estimates of its group."""
        group = self._groups.get(decision.node)
        if group is None:
            return decision
        reason = f"{decision.reason}; {group.reason}"
        estimates = {**decision.estimates, **group.estimates}
        return replace(decision, reason=reason, estimates=estimates)


def fitting(plan: SchedulePlan, groups: Sequence[OutputGroup]) -> list[OutputGroup]:
    """Return the groups that are left after a plan was made with them; all, if the plan can be
    used. A value that is no longer stored, since it is read only once, leaves its group. A group is
    dropped if a value of it is read at other elements than the one written at that step, or if it
    is on a cycle."""
    remaining = [_without_fused(plan, group) for group in groups]
    whole = [g for g in remaining if len(g.members) > 1 and _group_reads_in_place(plan, g)]
    if whole != groups:
        return whole
    cycles = _in_cycles(plan, groups)
    return [group for group in groups if group not in cycles]


def _without_fused(plan: SchedulePlan, group: OutputGroup) -> OutputGroup:
    members = tuple([node for node in group.members if node in plan.stored])
    return group if members == group.members else replace(group, members=members)


def _group_reads_in_place(plan: SchedulePlan, group: OutputGroup) -> bool:
    for node in group.members:
        own = plan.reads[node][0]
        inside = [a for a in plan.readers[node] if a.root is own.root]
        if any(settle(access) != own for access in inside):
            return False
    return True


def _in_cycles(plan: SchedulePlan, groups: Iterable[OutputGroup]) -> set[OutputGroup]:
    """Return the groups that are on a cycle of kernels that read each other, or depend on one."""
    leader_of = {node: group.leader for group in groups for node in group.members}
    needs: dict[UOp, set[UOp]] = {leader_of.get(n, n): set() for n in plan.stored}
    readers: dict[UOp, list[UOp]] = {kernel: [] for kernel in needs}
    for (node, access), below in plan.links.items():
        for source, at in zip(node.src, below, strict=True):
            if at is not None and source in plan.stored:
                kernel = leader_of.get(source, source)
                if kernel is not access.root and kernel not in needs[access.root]:
                    needs[access.root].add(kernel)
                    readers[kernel].append(access.root)
    ready = [kernel for kernel, sources in needs.items() if not sources]
    for kernel in ready:  # it grows
        for reader in readers[kernel]:
            needs[reader].discard(kernel)
            if not needs[reader]:
                ready.append(reader)
    return {group for group in groups if needs[group.leader]}
