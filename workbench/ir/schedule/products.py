"""Matrix products that would share a kernel with other reductions.

A kernel has one register tile, for the sums of one reduction. Two products in one kernel, or a
product and a sum beside it, have none, and take several times as long. So enough of them are stored
that no product shares a kernel, where that costs less than the tile gains. The decision needs a
whole plan: only a plan says which values share a kernel.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.access import Access
from workbench.ir.schedule.cost import LAUNCH_COST, STORE_COST, UNTILED_COST, is_product, reducing
from workbench.ir.schedule.plan import Decision, DecisionName


class Member(NamedTuple):
    """A reduction of a kernel. `value` is the value to store for it, None where none can be; `work`
    is the number of multiplications that a register tile would speed up; `recompute_cost` is the
    cost of computing once more the values that the rest of the kernel may share with it.
    """

    reduction: UOp
    value: UOp | None
    work: int
    recompute_cost: float

    @property
    def cost(self) -> float:
        """The cost of storing it."""
        if self.value is None:
            return math.inf
        return self.value.size * STORE_COST + LAUNCH_COST + self.recompute_cost


def separations(
    nodes: dict[UOp, None],
    reads: Mapping[UOp, list[Access]],
    stored: Collection[UOp],
    forced: Mapping[UOp, bool],
    costs: Mapping[UOp, float],
) -> dict[UOp, Decision]:
    """Return decisions for values of a plan to store in addition: none where each product has a
    kernel of its own, or is so small that it does not matter.

    In every kernel with several reductions, the values that are cheapest to store are stored, if
    that costs less than its products lose without a register tile. The next walk has other kernels,
    so the caller asks again.
    """
    kernels: dict[UOp, list[UOp]] = {}
    for node in nodes:
        if node.op is Ops.REDUCE_AXIS and node.src[0].size > node.size:
            for access in reads[node]:
                kernels.setdefault(access.root, []).append(node)
    several = [reductions for reductions in kernels.values() if len(reductions) > 1]
    work = {
        node: node.src[0].size if is_product(node, stored) else 0
        for node in {n for reductions in several for n in reductions}
    }
    # the only product of a kernel stays fused with sums if a user fused it
    several = [
        reductions
        for reductions in several
        if any(forced.get(n, True) for n in reductions if work[n])
    ]
    if not several:
        return {}
    chains, fixed = _chains(nodes, stored), {*stored, *forced}
    decisions: dict[UOp, Decision] = {}
    for reductions in several:
        times = Counter(reductions)  # a product that is read twice is computed twice
        members = []
        for node in times:
            value = _to_store(chains[node], reads, fixed)
            recompute_cost = 0.0 if work[node] else costs[node]
            members.append(Member(node, value, work[node], recompute_cost))
        lost = sum(work[n] for n in reductions) * UNTILED_COST
        stored_members, cost = _cheapest(members, times)
        if cost < lost:
            for member in stored_members:
                assert member.value is not None  # it has a finite cost
                decisions[member.value] = _decision(member, reads[member.value], lost)
    return decisions


def _cheapest(members: list[Member], times: Mapping[UOp, int]) -> tuple[list[Member], float]:
    """Return the cheapest members to store so that no product shares the kernel, and their cost."""
    plans = [
        [m for m in members if m is not product]
        for product in members
        if product.work and times[product.reduction] == 1
    ]
    plans.append([m for m in members if m.work])
    costs = [sum(m.cost for m in {m.value: m for m in plan}.values()) for plan in plans]
    best = min(range(len(plans)), key=costs.__getitem__)
    return plans[best], costs[best]


def _decision(member: Member, reads: list[Access], lost: float) -> Decision:
    assert member.value is not None
    estimates = {
        "reads": len(reads),
        "evaluations": sum(a.evaluations for a in reads),
        "elements": member.value.size,
        "cost_of_lost_tile": lost,
        "cost_to_store": member.cost,
    }
    name: DecisionName = "store-beside-product"
    what = "a sum and a product of matrices"
    if member.work:
        name, what = "store-second-product", "two products of matrices"
    reason = f"{what} in one kernel would keep no tile of results in registers"
    return Decision(name, member.value, True, reason, estimates)


def _chains(nodes: dict[UOp, None], stored: Collection[UOp]) -> dict[UOp, list[UOp]]:
    """Return per reduction a chain of values, each computed from the one before and none larger
    than the reduction. It ends where a value is stored or has several users, and before one that
    is, or reads, another reduction."""
    users: dict[UOp, list[UOp]] = {node: [] for node in nodes}
    for node in nodes:
        for source in dict.fromkeys(node.src):
            users[source].append(node)
    reduces = reducing(nodes, set(stored))
    chains: dict[UOp, list[UOp]] = {}
    for node in nodes:
        if node.op is not Ops.REDUCE_AXIS:
            continue
        chain = [node]
        while chain[-1] not in stored and len(users[chain[-1]]) == 1:
            (user,) = users[chain[-1]]
            below = [s for s in user.src if reduces[s] and s not in stored]
            if below != [chain[-1]] or user.op is Ops.REDUCE_AXIS or user.size > node.size:
                break
            chain.append(user)
        chains[node] = chain
    return chains


def _to_store(
    chain: list[UOp], reads: Mapping[UOp, list[Access]], fixed: Collection[UOp]
) -> UOp | None:
    """Return the value of a chain to store: the last of the smallest ones that are read whole."""
    candidates = [
        value
        for value in chain
        if value not in fixed
        and value.op not in MOVEMENT - {Ops.SHRINK}
        and sum(a.evaluations for a in reads[value]) >= value.size
    ]
    return min(reversed(candidates), key=_bytes, default=None)


def _bytes(value: UOp) -> int:
    return value.size * value.dtype.itemsize
