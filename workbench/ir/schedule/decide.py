"""Which values are stored, which are fused, and why.

One walk from the outputs to the inputs. When it reaches a value, every read of it is known,
with the loops around it; so what fusing costs is known too: it is computed once per step of
those loops, at every read. It is fused where that costs no more than storing it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from workbench.ir.ops import CASTS, MOVEMENT, Ops
from workbench.ir.schedule.access import Access, push, root_access
from workbench.ir.schedule.cost import (
    LAUNCH_COST,
    PARALLEL_WORK,
    STORE_COST,
    TILE_REUSE,
    reducing,
    totals,
)
from workbench.ir.schedule.item import Decision
from workbench.ir.schedule.staging import STAGE_COST, Staging, staging
from workbench.ir.uop import UOp

MAX_READS = 16
"""A value fused at more different reads than this makes the kernel's code too long."""
MAX_NODES = 1000
"""A kernel of more values than this compiles too slowly; the next value starts a new one."""

LEAVES = frozenset({Ops.BUFFER, Ops.CONST, Ops.IOTA, Ops.VAR})


@dataclass(slots=True, repr=False)
class Plan:
    """What the walk found. `reads`: per value, how it is accessed (one access, its own, where it
    is stored); `links`: per value and access, the accesses of its sources."""

    nodes: dict[UOp, None]
    staged: dict[UOp, Staging] = field(default_factory=dict)
    stored: dict[UOp, Decision] = field(default_factory=dict)
    fused: list[Decision] = field(default_factory=list)
    reads: dict[UOp, list[Access]] = field(default_factory=dict)
    links: dict[tuple[UOp, Access], tuple[Access | None, ...]] = field(
        default_factory=dict
    )

    def __repr__(self) -> str:
        return f"Plan({len(self.stored)} values stored, {len(self.fused)} fused)"


def decide(outputs: Iterable[UOp]) -> Plan:
    """Return the plan for `outputs`, values that must be stored."""
    roots = list(outputs)
    nodes = UOp.sink(*roots).toposort()
    nodes.popitem()
    plan = Plan(nodes)
    asked = _asked(roots, nodes)
    cost, reduces = totals(nodes), reducing(nodes, set(asked))
    found: dict[UOp, dict[Access, None]] = {node: {} for node in nodes}
    held: dict[UOp, int] = {}
    for node in reversed(nodes):
        if node.op in LEAVES and node not in asked:
            plan.reads[node] = list(found[node])
            continue
        reads = list(found[node])
        decision = _decide(node, reads, asked, cost[node], reduces[node], held)
        if decision.stored:
            plan.stored[node] = decision
            reads = [root_access(node)]
        elif decision.name == "fuse-row":
            plan.staged[node] = held_row = _row(node, reads)
            plan.fused.append(decision)
            reads = [held_row.fill]
        elif node.op not in MOVEMENT:
            plan.fused.append(decision)
        plan.reads[node] = reads
        for access in reads:
            held[access.root] = held.get(access.root, 0) + 1
            plan.links[node, access] = below = push(node, access)
            for source, at in zip(node.src, below, strict=True):
                if at is not None:
                    found[source][at] = None
    return plan


def _asked(roots: list[UOp], nodes: dict[UOp, None]) -> dict[UOp, str]:
    """Return the values that are stored whatever it costs, with the reason."""
    asked = {n: "contiguous() asks for it" for n in nodes if n.op is Ops.CONTIGUOUS}
    for node in nodes:
        if node.op is Ops.COPY:
            asked[node] = f"it is copied to device {node.arg}"
            if node.src[0].op is not Ops.BUFFER:
                asked[node.src[0]] = f"a copy to device {node.arg} reads it"
    return asked | dict.fromkeys(roots, "it is a result that was asked for")


def _decide(
    node: UOp,
    reads: list[Access],
    asked: dict[UOp, str],
    cost: float,
    reduces: bool,
    held: dict[UOp, int],
) -> Decision:
    if node in asked:
        return Decision("store-asked", node, True, asked[node])
    if (
        node.op in MOVEMENT
        or node.op in CASTS
        and node.src[0].dtype.bits < node.dtype.bits
    ):
        return Decision(
            "fuse-free", node, False, "it moves or widens what its source gives"
        )
    evaluations = sum(a.evaluations for a in reads)
    figures: dict[str, float] = {
        "reads": len(reads),
        "evaluations": evaluations,
        "elements": node.size,
    }
    if any(held[a.root] > MAX_NODES for a in reads):
        return Decision(
            "store-large-kernel",
            node,
            True,
            "the kernel that reads it is full",
            figures,
        )
    if len(reads) > MAX_READS:
        return Decision(
            "store-many-reads", node, True, "it is read in too many ways", figures
        )
    if reduces and _blocks_cores(node, reads):
        reason = "a full reduction inside the kernel would keep its loops on one core"
        return Decision("store-for-parallel", node, True, reason, figures)
    each = cost / max(1, node.size)
    again = max(0, evaluations - node.size) * each / (1.0 if reduces else TILE_REUSE)
    storing = node.size * STORE_COST + LAUNCH_COST
    figures |= {"cost_to_recompute": again, "cost_to_store": storing}
    row = staging(node, reads) if again > node.size * STAGE_COST else None
    if row is not None:
        figures |= {"cost_to_stage": node.size * STAGE_COST}
        reason = "a row of it, kept in the kernel, is cheaper than computing it again"
        return Decision("fuse-row", node, False, reason, figures)
    if again > storing:
        reason = (
            f"computing it {evaluations:,} times for {node.size:,} elements costs more"
        )
        return Decision("store-cheaper", node, True, reason, figures)
    if evaluations <= node.size:
        return Decision(
            "fuse-once", node, False, "fused, each element is computed once", figures
        )
    return Decision(
        "fuse-cheaper",
        node,
        False,
        "computing it again is cheaper than storing",
        figures,
    )


def _row(node: UOp, reads: list[Access]) -> Staging:
    found = staging(node, reads)
    assert found is not None
    return found


def _blocks_cores(node: UOp, reads: list[Access]) -> bool:
    """Whether a large reduction to one value would be fused in front of its readers' loops."""
    if node.op is not Ops.REDUCE_AXIS or node.src[0].size < PARALLEL_WORK:
        return False
    return any(not a.loops and a.root.size > 1 for a in reads)
