"""The film of scheduling: for each decision the rewrites that make kernels of its value.

A rule of rangeify replaces a read of a value, so it belongs to the decision about that value. A
value that needed no decision, because it only moves another one or is in memory, belongs to that
about what it moves, or else to that about its first reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from workbench.base.trace import Match, PassRecord, ProvenanceEdge
from workbench.ir.node.construct import is_read
from workbench.ir.node.ops import MOVEMENT, Ops
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.plan import SchedulePlan
from workbench.ir.schedule.schedule import DECIDE, RANGEIFY
from workbench.viz.record.passes import MOST_REWRITES

Rewrites = tuple[int, list[int]]
"""The place of a pass among the passes of scheduling, and the numbers of its steps, from 1."""


def rewrites_of_decisions(passes: Sequence[PassRecord]) -> dict[UOp, Rewrites]:
    """Return the rewrites of rangeify that are about each decided value."""
    rewrites: dict[UOp, Rewrites] = {}
    plan: SchedulePlan | None = None
    for place, record in enumerate(passes):
        if record.name == DECIDE.name:
            plan = record.after
        elif record.name == RANGEIFY.name and plan is not None:
            decided = _decided_for(plan)
            values = _values(record.edges, decided)
            for number, match in enumerate(record.matches[:MOST_REWRITES], 1):
                subjects = [decided[v] for v in _subjects(match, values) if v in decided]
                for node in dict.fromkeys(subjects):
                    rewrites.setdefault(node, (place, []))[1].append(number)
            plan = None
    return rewrites


def _decided_for(plan: SchedulePlan) -> dict[UOp, UOp]:
    """Return, for each value of a plan, the value that a kernel computes to which it belongs."""
    decided = {d.node: d.node for d in plan.decisions if d.node.op is not Ops.COPY}
    readers: dict[UOp, list[UOp]] = {}
    for node in plan.nodes:
        for source in node.src:
            readers.setdefault(source, []).append(node)
        below = node
        while below not in decided and below.op in MOVEMENT:
            below = below.src[0]
        if below in decided:
            decided.setdefault(node, decided[below])
    for node in reversed(plan.nodes):
        own = [decided[r] for r in readers.get(node, ()) if r in decided]
        if own:
            decided.setdefault(node, own[0])
    return decided


def _values(edges: Iterable[Any], decided: Mapping[UOp, object]) -> dict[UOp, UOp]:
    """Return the value of the plan that each value of the opened graph was made from."""
    values: dict[UOp, UOp] = {}
    for edge in edges:
        if isinstance(edge, ProvenanceEdge) and edge.source in decided:
            values.setdefault(edge.product, edge.source)
    return values


def _subjects(match: Match, values: Mapping[UOp, UOp]) -> list[UOp]:
    """Return the values that a step is about: the one that is read, or those that are stored."""
    if is_read(match.before):
        value = match.before.src[0]
        return [values.get(value, value)]
    roots = match.before.src if match.before.op is Ops.SINK else (match.before,)
    stored = [root.place.memory if root.op is Ops.STORE else root for root in roots]
    return [values.get(each, each) for each in stored if each.op is not Ops.COPY]
