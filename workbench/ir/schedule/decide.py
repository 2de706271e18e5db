"""Which values are stored, which are fused, and why.

One walk from the outputs to the inputs. When it reaches a value, every read of it is known, with
the loops around the read; so the cost of fusing is known, too: the value is computed once per step
of those loops, at every read. It is fused where that costs no more than storing it. Which products
share a kernel is known at the end of the walk; where some must not, it is walked once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from workbench.base.errors import WorkbenchError
from workbench.base.trace import derived_from
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.access import Access, push, root_access
from workbench.ir.schedule.choose import Facts, choose
from workbench.ir.schedule.cost import products_below, reducing, steps, totals
from workbench.ir.schedule.item import Decision
from workbench.ir.schedule.products import stored_apart
from workbench.ir.schedule.staging import Staging

LEAVES = frozenset({Ops.BUFFER, Ops.CONST, Ops.IOTA, Ops.VAR})
NOTHING_FORCED: Mapping[UOp, bool] = MappingProxyType({})


@dataclass(slots=True, repr=False)
class SchedulePlan:
    """The result of the walk. `decisions` are in its order, `stored` has those of stored values.
    `reads`: the accesses of each value (its own one where it is stored); `links`: per value and
    access, the accesses of its sources."""

    nodes: dict[UOp, None]
    staged: dict[UOp, Staging] = field(default_factory=dict)
    stored: dict[UOp, Decision] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    reads: dict[UOp, list[Access]] = field(default_factory=dict)
    links: dict[tuple[UOp, Access], tuple[Access | None, ...]] = field(
        default_factory=dict
    )

    def __repr__(self) -> str:
        stored = len(self.stored)
        return f"Plan({stored} values stored, {len(self.decisions) - stored} fused)"


def decide(
    outputs: Iterable[UOp], forced: Mapping[UOp, bool] = NOTHING_FORCED
) -> SchedulePlan:
    """Return the plan for `outputs`, values that must be stored. A value in `forced` is stored
    (True) or fused (False) whatever the costs are.

    Errors: WorkbenchError where that is impossible.
    """
    roots = list(outputs)
    nodes = UOp.sink(*roots).toposort()
    nodes.popitem()
    reasons = _store_reasons(roots, nodes)
    _check_forced(forced, nodes, reasons)
    stops = set(reasons)
    products = products_below(nodes, stops)
    facts = Facts(
        reasons,
        totals(nodes, reasons),
        totals(nodes, reasons, products),
        reducing(nodes, stops),
        products,
        forced,
        {},
    )
    plan = _walk(nodes, facts)
    while more := stored_apart(nodes, plan.reads, plan.stored, forced, facts.cost):
        facts = replace(facts, apart={**facts.apart, **more})
        plan = _walk(nodes, facts)
    return plan


def _walk(nodes: dict[UOp, None], facts: Facts) -> SchedulePlan:
    """Return the plan for `nodes`, decided one by one."""
    plan = SchedulePlan(nodes)
    accesses: dict[UOp, dict[Access, None]] = {node: {} for node in nodes}
    step_counts: dict[UOp, int] = {}
    for node in reversed(nodes):
        if node.op in LEAVES and node not in facts.store_reasons:
            plan.reads[node] = list(accesses[node])
            continue
        reads = list(accesses[node])
        decision, row = choose(node, reads, facts, step_counts)
        if decision.stored:
            plan.stored[node] = decision
            reads = [root_access(node)]
        elif row is not None:
            plan.staged[node] = row
            reads = [row.fill]
        if decision.stored or decision.forced or node.op not in MOVEMENT:
            plan.decisions.append(decision)
        plan.reads[node] = reads
        with derived_from(node):
            for access in reads:
                step_counts[access.root] = step_counts.get(access.root, 0) + steps(node)
                plan.links[node, access] = below = push(node, access)
                for source, at in zip(node.src, below, strict=True):
                    if at is not None:
                        accesses[source][at] = None
    return plan


def _store_reasons(roots: list[UOp], nodes: dict[UOp, None]) -> dict[UOp, str]:
    """Return the values that must be stored, each with the reason."""
    reasons = {n: "contiguous() asks for it" for n in nodes if n.op is Ops.CONTIGUOUS}
    for node in nodes:
        if node.op is Ops.COPY:
            reasons[node] = f"it is copied to device {node.arg}"
            if node.src[0].op is not Ops.BUFFER:
                reasons[node.src[0]] = f"a copy to device {node.arg} reads it"
    return reasons | dict.fromkeys(roots, "it is a result that was asked for")


def _check_forced(
    forced: Mapping[UOp, bool], nodes: dict[UOp, None], reasons: Mapping[UOp, str]
) -> None:
    for node, stored in forced.items():
        what = (
            f"cannot {'store' if stored else 'fuse'} {node.op.name} {list(node.shape)}"
        )
        if node in nodes and node.op in LEAVES:
            because = "it is in memory, or known, already: nothing computes it"
            raise WorkbenchError(what, because)
        if not stored and node in reasons:
            raise WorkbenchError(what, reasons[node], "another value")
