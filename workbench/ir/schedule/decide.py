"""The decisions of scheduling: the values to store, the values to fuse, and the reasons.

One walk from the outputs to the inputs. When it reaches a value, every read of it is known, with
the loops around the read; so the cost of fusing is known, too: the value is computed once per step
of those loops, at every read. It is fused where that costs no more than storing it.

The end of a walk shows which matrix products share a kernel. If some must not, values between them
are stored, and the walk is repeated until each product has a kernel of its own (`_settled`). Then
stored values that can be outputs of one kernel are grouped, and the walk is repeated with the
groups until it leaves all of them whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from workbench.base.errors import WorkbenchError
from workbench.base.trace import derived_from
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp, leaves
from workbench.ir.schedule.access import Access, RangeNumbers, numbered_ranges, push
from workbench.ir.schedule.choose import Facts, as_planned, choose, is_full
from workbench.ir.schedule.cost import Staging, products_below, reducing, rereads, steps, totals
from workbench.ir.schedule.outputs import SharedRanges, fitting, output_groups
from workbench.ir.schedule.plan import Decision, SchedulePlan, base
from workbench.ir.schedule.products import separations
from workbench.ir.verify.tensor import custom_kernel

LEAVES = frozenset({Ops.BUFFER, Ops.CONST, Ops.IOTA, Ops.VAR})
SEPARATE = frozenset({Ops.COPY, Ops.CONTIGUOUS, Ops.CUSTOM})
"""Values that are not fused into other kernels: a COPY is no kernel, contiguous() asks for a
boundary, and the kernel of a CUSTOM is the user's."""
NOTHING_FORCED: Mapping[UOp, bool] = MappingProxyType({})
NO_REASONS: Mapping[UOp, str] = MappingProxyType({})


def decide(
    outputs: Iterable[UOp],
    forced: Mapping[UOp, bool] = NOTHING_FORCED,
    reasons_by_hand: Mapping[UOp, str] = NO_REASONS,
) -> SchedulePlan:
    """Return the plan for `outputs`, values that must be stored. A value in `forced` is stored
    (True) or fused (False) whatever the costs are, and so is one in `reasons_by_hand`, which has
    the user's reason to store it.

    Errors: WorkbenchError where a value cannot be forced.
    """
    roots = list(outputs)
    nodes = UOp.sink(*roots).toposort()
    nodes.popitem()
    if any(node.op is Ops.CUSTOM for node in nodes):
        nodes = {n: None for node in nodes for n in outputs_of(node)}
    reasons = _store_reasons(roots, nodes)
    _check_forced(forced, nodes, {**reasons_by_hand, **reasons})
    by_hand = {n: why for n, why in reasons_by_hand.items() if n in nodes}
    reasons |= {n: why for n, why in by_hand.items() if n not in roots}
    stops = set(reasons)
    products = products_below(nodes, stops)
    facts = Facts(
        store_reasons=reasons,
        cost=totals(nodes, reasons),
        whole_cost=totals(nodes, reasons, products),
        reduces=reducing(nodes, stops),
        products=products,
        forced={n: each for n, each in forced.items() if n not in by_hand},
        by_hand=by_hand,
    )
    with numbered_ranges() as numbers:
        return _decided(nodes, facts, {*forced, *by_hand}, numbers)


def _decided(
    nodes: dict[UOp, None], facts: Facts, by_user: set[UOp], numbers: RangeNumbers
) -> SchedulePlan:
    earlier = Earlier()
    plan, facts = _settled(nodes, facts, numbers, earlier)
    single = {*by_user, *[n for n in plan.stored if n.op in SEPARATE or not n.size]}
    groups = output_groups(plan, single, devices_of(nodes), _products(plan))
    while groups:
        by_member = {node: group for group in groups for node in group.members}
        joined, _ = _settled(nodes, replace(facts, groups=by_member), numbers, earlier)
        whole = fitting(joined, groups)
        if whole == groups:
            plan = joined
            break
        groups = whole
    _charge(plan, facts)
    return plan


def _charge(plan: SchedulePlan, facts: Facts) -> None:
    """Charge the decisions of a plan with what fusing costs beside the values that it stores."""
    nodes, stored = plan.nodes, set(plan.stored)
    known = replace(
        facts,
        cost=totals(nodes, stored),
        whole_cost=totals(nodes, stored, facts.products),
        reduces=reducing(nodes, stored),
    )
    plan.decisions = [as_planned(decision, known) for decision in plan.decisions]
    plan.stored = {d.node: d for d in plan.decisions if d.stored}


def devices_of(nodes: dict[UOp, None]) -> dict[UOp, str]:
    """Return the device of every value: of the nearest COPY or BUFFER below; "" for none."""
    devices: dict[UOp, str] = {}
    for node in nodes:
        if node.op in (Ops.COPY, Ops.BUFFER):
            devices[node] = node.device
        else:
            devices[node] = next((devices[s] for s in node.src if devices[s]), "")
    return devices


def outputs_of(node: UOp) -> tuple[UOp, ...]:
    """Return the values of all outputs of the kernel of a CUSTOM; of another op, the node alone."""
    if node.op is not Ops.CUSTOM:
        return (node,)
    params = {p.slot: p for p in leaves([custom_kernel(node.kernel_text)], Ops.PARAM)}
    name, _, shapes, text = node.arg
    with derived_from(node):
        return tuple(
            [
                UOp(Ops.CUSTOM, params[n].dtype, node.src, (name, n, shapes, text))
                for n in range(len(shapes))
            ]
        )


@dataclass(slots=True)
class Earlier:
    """What earlier walks found: most values are read as before in the next one. `choices` has the
    accesses to a value and the decision about it, `links` the accesses of its sources."""

    choices: dict[UOp, tuple[list[Access], Decision]] = field(default_factory=dict)
    links: dict[tuple[UOp, Access], tuple[Access | None, ...]] = field(default_factory=dict)


def _settled(
    nodes: dict[UOp, None], facts: Facts, numbers: RangeNumbers, earlier: Earlier
) -> tuple[SchedulePlan, Facts]:
    """Return the plan in which products that need kernels of their own have them, and the facts
    that led to it. Each round stores at least one value more and gives none back, so it ends."""
    plan = _walk(nodes, facts, numbers, earlier)
    while more := separations(nodes, plan.reads, plan.stored, facts.forced, facts.cost):
        facts = replace(facts, separated={**facts.separated, **more})
        plan = _walk(nodes, facts, numbers, earlier)
    return plan, facts


def _products(plan: SchedulePlan) -> set[UOp]:
    return {n for n in plan.nodes if rereads(n, plan.stored)}


def _walk(
    nodes: dict[UOp, None], facts: Facts, numbers: RangeNumbers, earlier: Earlier
) -> SchedulePlan:
    """Return the plan for `nodes`, decided one by one."""
    numbers.restart()
    plan = SchedulePlan(nodes, facts.groups)
    ranges = SharedRanges(facts.groups)
    accesses: dict[UOp, dict[Access, None]] = {node: {} for node in nodes}
    step_counts: dict[UOp, int] = {}
    for node in reversed(nodes):
        if node.op in LEAVES and node not in facts.store_reasons:
            plan.reads[node] = list(accesses[node])
            continue
        reads = list(accesses[node])
        decision, row = _choice(node, reads, facts, step_counts, earlier)
        if decision.stored:
            plan.stored[node] = decision = ranges.beside(decision)
            plan.readers[node], reads = reads, [ranges.output(node)]
        elif row is not None:
            plan.staged[node] = row
            reads = [row.fill]
        if decision.stored or decision.forced or node.op not in MOVEMENT:
            plan.decisions.append(decision)
        plan.reads[node] = reads
        with derived_from(node):
            for access in reads:
                step_counts[access.root] = step_counts.get(access.root, 0) + steps(node)
                link = node, access
                below = earlier.links.get(link) if node.op is not Ops.REDUCE_AXIS else None
                if below is None:
                    below = push(node, access, ranges.reduction(node, access))
                plan.links[link] = below
                for source, at in zip(node.src, below, strict=True):
                    if at is not None:
                        accesses[source][at] = None
    earlier.links = plan.links
    return plan


def _choice(
    node: UOp, reads: list[Access], facts: Facts, step_counts: Mapping[UOp, int], earlier: Earlier
) -> tuple[Decision, Staging | None]:
    """Return the decision for a value, that of the walk before where it is read as it was then."""
    is_special = node in facts.separated or is_full(reads, step_counts)
    before = None if is_special else earlier.choices.get(node)
    if before is not None and before[0] == reads:
        return before[1], None
    decision, row = choose(node, reads, facts, step_counts)
    if not is_special and row is None:  # the ranges of a row are new in each walk
        earlier.choices[node] = reads, decision
    return decision, row


def _store_reasons(roots: list[UOp], nodes: dict[UOp, None]) -> dict[UOp, str]:
    """Return the values that must be stored, each with the reason."""
    contiguous = [n for n in nodes if n.op is Ops.CONTIGUOUS]
    reasons = dict.fromkeys(contiguous, "contiguous() asks for it")
    with_opts = [n for n in contiguous if n.arg is not None]
    for node in nodes:
        if node.op is Ops.CUSTOM:
            reasons[node] = f"the kernel {node.name}, written by hand, computes it"
            for source in map(base, node.src):
                if source.op is not Ops.BUFFER:
                    reasons.setdefault(source, f"the kernel {node.name} reads it")
        if node.op is Ops.COPY:
            reasons[node] = "it is data in memory already, which no kernel computes"
            if node.src[0].op is not Ops.BUFFER:
                reasons[node] = f"it is copied to {node.arg}"
                reasons[node.src[0]] = f"the copy to {node.arg} reads it"
    reasons |= dict.fromkeys(roots, "it is a result that was asked for")
    return reasons | dict.fromkeys(
        with_opts, "contiguous(arg=..) asks for it, with the opts of its kernel"
    )


def _check_forced(
    forced: Mapping[UOp, bool], nodes: dict[UOp, None], reasons: Mapping[UOp, str]
) -> None:
    for node, stored in forced.items():
        what = f"cannot {'store' if stored else 'fuse'} {node.op.name} {list(node.shape)}"
        if node in nodes and node.op in LEAVES:
            because = "it is in memory, or known, already: nothing computes it"
            raise WorkbenchError(what, because)
        if not stored and node in reasons:
            raise WorkbenchError(what, reasons[node], "another value")
