"""The ranges that the outputs of one kernel share, and the check that they fit together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from workbench.ir.node.ops import Ops
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
from workbench.ir.schedule.item import Decision
from workbench.ir.schedule.plan import OutputGroup, SchedulePlan


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
            self._loops[leader] = output_loops(node)
        return output_access(node, leader, self._loops[leader])

    def reduction(self, node: UOp, access: Access) -> Ranges | None:
        """Return the ranges of a reduction that shares its loop; None where it has its own."""
        first = self._first.get(node)
        if first is None or node.op is not Ops.REDUCE_AXIS:
            return None
        key = first, (access.root, *access.loops)
        if key not in self._inner:
            self._inner[key] = reduction_ranges(node)
        return self._inner[key]

    def beside(self, decision: Decision) -> Decision:
        """Return the decision to store a value with what its kernel stores besides."""
        group = self._groups.get(decision.node)
        if group is None:
            return decision
        reason = f"{decision.reason}; {group.reason}"
        estimates = {**decision.estimates, **group.estimates}
        return replace(decision, reason=reason, estimates=estimates)


def fitting(plan: SchedulePlan, groups: Sequence[OutputGroup]) -> list[OutputGroup]:
    """Return the groups of which a plan that was made with them has kernels: all of them where it
    can be used. A value that is stored no longer, since it is read once now, leaves its group; a
    group is gone where a value is read at other elements than those that are written at that step,
    or where there is a cycle."""
    mended = [_without_fused(plan, group) for group in groups]
    whole = [g for g in mended if len(g.members) > 1 and _reads_in_place(plan, g)]
    if whole != groups:
        return whole
    cycles = _in_cycles(plan, groups)
    return [group for group in groups if group not in cycles]


def _without_fused(plan: SchedulePlan, group: OutputGroup) -> OutputGroup:
    members = tuple([node for node in group.members if node in plan.stored])
    return group if members == group.members else replace(group, members=members)


def _reads_in_place(plan: SchedulePlan, group: OutputGroup) -> bool:
    for node in group.members:
        own = plan.reads[node][0]
        inside = [a for a in plan.readers[node] if a.root is own.root]
        if any(settle(access) != own for access in inside):
            return False
    return True


def _in_cycles(plan: SchedulePlan, groups: Iterable[OutputGroup]) -> set[OutputGroup]:
    """Return the groups on a cycle of kernels that read each other, or behind one."""
    leader_of = {node: group.leader for group in groups for node in group.members}
    needs: dict[UOp, set[UOp]] = {leader_of.get(n, n): set() for n in plan.stored}
    for (node, access), below in plan.links.items():
        for source, at in zip(node.src, below, strict=True):
            if at is not None and source in plan.stored:
                needs[access.root].add(leader_of.get(source, source))
    for kernel, sources in needs.items():
        sources.discard(kernel)
    while ready := [kernel for kernel, sources in needs.items() if not sources]:
        for kernel in ready:
            del needs[kernel]
        for sources in needs.values():
            sources.difference_update(ready)
    return {group for group in groups if group.leader in needs}
