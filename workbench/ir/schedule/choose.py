"""The decision for one value: store it, stage a row of it in the kernel, or compute it where it is
read. Functions are tried in order; the first that answers decides, and its reason and estimates are
recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from workbench.ir.node.ops import CASTS, MOVEMENT, AxisType, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.access import TRUE, Access
from workbench.ir.schedule.cost import (
    FEW_RESULTS,
    LAUNCH_COST,
    MASK_COST,
    PARALLEL_WORK,
    READ_COST,
    SPLIT_WORK,
    STAGE_COST,
    STORE_COST,
    TILE_REUSE,
    WINDOW,
    WINDOW_REUSE,
    Staging,
    compares_positions,
    rounds_in_order,
    staging,
)
from workbench.ir.schedule.plan import Decision, DecisionName, OutputGroup

MAX_READS = 16
"""Most different reads of a fused value; more make the kernel's code too long."""
MAX_INDEX = 150
"""Most nodes of the indexes of an access; chains of reshapes and pads make them ever longer."""
MAX_STEPS = 1000
"""Most steps of a kernel; more compile too slowly, so the next value starts a new kernel."""


GROWING = frozenset({Ops.RESHAPE, Ops.PAD, Ops.SHRINK, Ops.FLIP})


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about the values of a schedule, by node."""

    store_reasons: Mapping[UOp, str]
    """The values that must be stored, each with the reason."""
    cost: Mapping[UOp, float]
    """The cost of computing a value, without the matrix products that it is computed from."""
    whole_cost: Mapping[UOp, float]
    """The same with these products."""
    reduces: Mapping[UOp, bool]
    """Whether a reduction is below a value."""
    products: Mapping[UOp, bool]
    """Whether a matrix product is below: a reduction that reads its operands many times."""
    forced: Mapping[UOp, bool]
    """The values that a user stores (True) or fuses (False)."""
    by_hand: Mapping[UOp, str] = field(default_factory=dict)
    """The values that another choice of the user stores, each with the reason."""
    separated: Mapping[UOp, Decision] = field(default_factory=dict)
    """The values that are stored to give each product a kernel of its own."""
    groups: Mapping[UOp, OutputGroup] = field(default_factory=dict)
    """The values that are outputs of one kernel with others."""


def choose(
    node: UOp, reads: list[Access], facts: Facts, step_counts: Mapping[UOp, int]
) -> tuple[Decision, Staging | None]:
    """Return the decision for `node`, which has the accesses `reads`, and its Staging if a row of
    it is staged. `step_counts` has, for each kernel, the steps so far for one element."""
    if node in facts.by_hand:
        estimates = _if_fused(node, reads, facts)
        name: DecisionName = "store-copy" if node.op is Ops.CONTIGUOUS else "store-parts"
        return Decision(name, node, True, facts.by_hand[node], estimates, True), None
    if node in facts.store_reasons:
        return Decision("store-asked", node, True, facts.store_reasons[node]), None
    if node in facts.forced:
        return _forced(node, reads, facts)
    if node in facts.separated:
        return facts.separated[node], None
    if node.op in GROWING and any(_long_index(a) for a in reads):
        reason = "its index expressions have grown too long"
        return Decision("store-long-index", node, True, reason), None
    if _is_free(node):
        return _moved(node, reads), None
    if compares_positions(node):
        reason = "it compares positions, which are known: reading it would take as long"
        estimates = _estimates(node, reads, facts, facts.cost)
        return Decision("fuse-positions", node, False, reason, estimates), None
    obstacle = _obstacle(node, reads, facts, step_counts)
    if obstacle is not None:
        estimates = _if_fused(node, reads, facts)
        return Decision(obstacle[0], node, True, obstacle[1], estimates), None
    return _by_cost(node, reads, facts)


def _forced(node: UOp, reads: list[Access], facts: Facts) -> tuple[Decision, Staging | None]:
    stored, reason = facts.forced[node], "you asked for it"
    name: DecisionName = "store-forced" if stored else "fuse-forced"
    by_cost = _estimates(node, reads, facts, facts.cost)
    row = _row(node, reads, facts, by_cost)
    if row is not None and not _is_epilogue(node, facts):
        estimates = by_cost | {"cost_to_stage": row[1]}
    elif stored:
        estimates = _if_fused(node, reads, facts)
    else:
        estimates = _estimates(node, reads, facts, facts.whole_cost)
    kept = None if stored or row is None else row[0]
    return Decision(name, node, stored, reason, estimates, True), kept


def _estimates(
    node: UOp, reads: list[Access], facts: Facts, cost: Mapping[UOp, float]
) -> dict[str, float]:
    evaluations, elements = sum([a.evaluations for a in reads]), node.size
    return {
        "reads": len(reads),
        "evaluations": evaluations,
        "elements": elements,
        "cost_to_recompute": _recompute_cost(node, evaluations, facts, cost),
        "cost_to_store": elements * STORE_COST + LAUNCH_COST,
    }


def _if_fused(node: UOp, reads: list[Access], facts: Facts) -> dict[str, float]:
    """Return the estimates for a value that is stored whatever it costs. What fusing the epilogue
    of a product costs is not among them: it depends on whether the product is then stored in its
    place, which only another plan says."""
    estimates = _estimates(node, reads, facts, facts.whole_cost)
    if _is_epilogue(node, facts):
        del estimates["cost_to_recompute"]
    return estimates


def _is_epilogue(node: UOp, facts: Facts) -> bool:
    return facts.products[node] and node.op is not Ops.REDUCE_AXIS


def as_planned(decision: Decision, facts: Facts) -> Decision:
    """Return a decision whose cost of fusing is that of a whole plan: `facts` are those with the
    plan's stored values, each of which costs a read. They were not known when the decision was
    made, since a value is decided before what it is computed from."""
    estimates = decision.estimates
    if "cost_to_recompute" not in estimates or "cost_to_stage" in estimates:
        return decision
    is_by_cost = decision.name in ("store-cheaper", "fuse-cheaper", "fuse-once", "fuse-positions")
    if decision.stored and is_by_cost:
        return decision  # the numbers that decided
    cost = facts.cost if is_by_cost else facts.whole_cost
    again = _recompute_cost(decision.node, int(estimates["evaluations"]), facts, cost)
    return replace(decision, estimates={**estimates, "cost_to_recompute": again})


def _recompute_cost(node: UOp, evaluations: int, facts: Facts, cost: Mapping[UOp, float]) -> float:
    """Return the cost of evaluating a value more often than once per element."""
    elements = node.size
    each = cost[node] / max(1, elements)
    reuse = 1.0 if facts.reduces[node] else TILE_REUSE
    return max(0, evaluations - elements) * max(0.0, each - READ_COST) / reuse


def _row(
    node: UOp, reads: list[Access], facts: Facts, estimates: Mapping[str, float]
) -> tuple[Staging, float] | None:
    """Return the Staging of a row of a value in the kernel, and its cost; None where no row can be
    staged, or computing the value at each read costs less. The row is filled again in each step of
    the loops around it, even of loops that the value does not depend on."""
    recompute_cost = estimates["cost_to_recompute"]
    row = staging(node, reads) if recompute_cost > node.size * STAGE_COST else None
    if row is None:
        return None
    fills = row.fill.evaluations
    cost = fills * STAGE_COST + _recompute_cost(node, fills, facts, facts.cost)
    return (row, cost) if cost < recompute_cost else None


def _long_index(access: Access) -> bool:
    return len(UOp.sink(*access.indices, access.valid).toposort()) > MAX_INDEX


def _is_free(node: UOp) -> bool:
    widens = node.op in CASTS and node.src[0].dtype.bits < node.dtype.bits
    return node.op in MOVEMENT or widens


def _moved(node: UOp, reads: list[Access]) -> Decision:
    """Return the decision for a value that moves or widens another: it is fused. Only a padded
    value may be stored, where the tests for padding at its reads cost more than a copy with zeros
    in memory. A padded constant is fused: reading it from memory would need the same test."""
    if node.op is Ops.PAD and not _is_constant(node):
        evaluations = sum(a.evaluations for a in reads)
        estimates = {
            "evaluations": evaluations,
            "elements": node.size,
            "cost_of_masks": sum(_masks(node, a) for a in reads),
            "cost_to_store": node.size * STORE_COST + LAUNCH_COST,
        }
        if estimates["cost_of_masks"] > estimates["cost_to_store"]:
            reason = "testing every read for the padding costs more than storing it"
            return Decision("store-padded", node, True, reason, estimates)
    reason = "it moves or widens what its source gives"
    return Decision("fuse-free", node, False, reason)


def _masks(node: UOp, access: Access) -> float:
    """Return the cost of testing the reads by `access` for padding. In a register tile, one test
    serves all loops that do not move the read. Where all reduced axes in the tests are as short as
    a window, one test serves all steps of the other reduced axes, such as channels."""
    moved = access.valid.ranges.union(*[i.ranges for i in access.indices])
    reuse = WINDOW_REUSE if moved.issuperset(access.loops) else TILE_REUSE
    sides = zip(access.indices, node.arg, strict=True)
    tested = {r for index, (a, b) in sides if a or b for r in index.ranges}
    sums = [r for r in access.loops if r.axis_kind is AxisType.REDUCE]
    if all(r.extent <= WINDOW for r in sums if r in tested):
        beside = math.prod(r.extent for r in sums if r not in tested)
    else:
        beside = 1
    return access.evaluations / beside * MASK_COST / reuse


def _is_constant(node: UOp) -> bool:
    """Whether a value is one number, moved."""
    while node.op in MOVEMENT:
        node = node.src[0]
    return node.is_const


def _obstacle(
    node: UOp, reads: list[Access], facts: Facts, step_counts: Mapping[UOp, int]
) -> tuple[DecisionName, str] | None:
    """Return (name, reason) of an obstacle to fusing a value, whatever the costs are."""
    if is_full(reads, step_counts):
        return "store-large-kernel", "the kernel that reads it is full"
    if len(reads) > MAX_READS:
        return "store-many-reads", "it is read in too many ways"
    if facts.reduces[node] and _blocks_cores(node, reads):
        reason = "a full reduction inside the kernel would keep its loops on one core"
        return "store-for-parallel", reason
    if _is_partial(node, reads):
        reason = "as a kernel of its own it can be shared out among the cores"
        return "store-partial", reason
    if facts.products[node] and any(_in_a_row(a) for a in reads):
        reason = "a product of matrices inside another loop keeps no tile of results in registers"
        return "store-for-tile", reason
    if facts.products[node] and any(a.valid is not TRUE for a in reads):
        reason = "a product of matrices would be computed for what is padded, too"
        return "store-for-tile", reason
    return None


def is_full(reads: list[Access], step_counts: Mapping[UOp, int]) -> bool:
    """Whether a kernel that has one of the accesses `reads` has as many steps as it may have."""
    return any(step_counts[a.root] > MAX_STEPS for a in reads)


def _by_cost(node: UOp, reads: list[Access], facts: Facts) -> tuple[Decision, Staging | None]:
    """Compare the costs of computing a value again, of storing it, and of a row inside the
    kernel."""
    estimates = _estimates(node, reads, facts, facts.cost)
    evaluations = int(estimates["evaluations"])
    recompute_cost, storing = estimates["cost_to_recompute"], estimates["cost_to_store"]
    staged = _row(node, reads, facts, estimates)
    if staged is not None and staged[1] <= storing:
        row, row_cost = staged
        reason = "a row of it, kept in the kernel, is cheaper than computing it again"
        return Decision(
            "fuse-row", node, False, reason, estimates | {"cost_to_stage": row_cost}
        ), row
    if recompute_cost > storing:
        reason = f"computing it {evaluations:,} times for {node.size:,} elements costs more"
        return Decision("store-cheaper", node, True, reason, estimates), None
    if len(reads) > 1 and rounds_in_order(node):
        reason = "loops that add it up in other orders would round it in other ways"
        return Decision("store-one-order", node, True, reason, estimates), None
    if evaluations <= node.size:
        reason = "fused, each element is computed once"
        return Decision("fuse-once", node, False, reason, estimates), None
    reason = "computing it again is cheaper than storing"
    return Decision("fuse-cheaper", node, False, reason, estimates), None


def _blocks_cores(node: UOp, reads: list[Access]) -> bool:
    """Whether a large reduction to one value would be fused in front of its readers' loops."""
    if node.op is not Ops.REDUCE_AXIS or node.src[0].size < PARALLEL_WORK:
        return False
    return any(not a.loops and a.root.size > 1 for a in reads)


def _is_partial(node: UOp, reads: list[Access]) -> bool:
    """Whether a large reduction would be fused into another one that has few results."""
    if node.op is not Ops.REDUCE_AXIS or node.src[0].size < SPLIT_WORK:
        return False
    whole = sum(a.evaluations for a in reads) >= node.size  # and not a slice of it
    few = any(a.root.size <= FEW_RESULTS for a in reads)
    return whole and few and node.size > FEW_RESULTS


def _in_a_row(access: Access) -> bool:
    """Whether a read stands inside a reduction or a row's fill."""
    return any(r.axis_kind is not AxisType.GLOBAL for r in access.loops)
