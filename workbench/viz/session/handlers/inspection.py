"""Requests about rewrites: a node's value at a position, why a rule did not fire, and the wrong
rewrite.
"""

from __future__ import annotations

import math
from typing import Any

from workbench.base.errors import WorkbenchError
from workbench.check.bisect import FirstWrongRewrite
from workbench.check.node_values import NodeValues, values_of_tensor
from workbench.ir.node.ops import Ops
from workbench.ir.rewriting.rewrite import Rule
from workbench.viz.exploration.questions import bisected
from workbench.viz.model import passes as why
from workbench.viz.schema.messages import BisectReply, NodeValue, WhyNotReply
from workbench.viz.schema.record import RecordedPass
from workbench.viz.session.live_record import LiveRecord

MAX_VALUES = 16
"""Most values that are shown, from the first on."""


def values(
    session: LiveRecord, variant: int | None, place: int, step: int, node: int, at: dict[str, int]
) -> NodeValue:
    """Return the value of a node at a position of its axes, and the least and the greatest of all
    its values (of those computed, where there are too many).

    Errors: WorkbenchError where a node has no value of its own, or is too large to compute.
    """
    uop = session.recorder.node(node)
    if not any(n.op in (Ops.PARAM, Ops.RANGE) for n in uop.toposort()):
        return _value_row(values_of_tensor(uop, {}), values_of_tensor(uop, {}))
    kernel = session.record.passes[place].kernel or 0  # none: the same in all
    root = session.record.kernels[kernel].root
    kernel_at = session.kernels[root if variant is None else variant]
    names = {r.axis_name for r in uop.ranges}
    selected = kernel_at.values(uop, {n: p for n, p in at.items() if n in names})
    return _value_row(selected, kernel_at.values(uop))


def _value_row(selected: NodeValues, everywhere: NodeValues) -> NodeValue:
    first = [_plain(v) for v in selected.array.reshape(-1)[:MAX_VALUES].tolist()]
    return NodeValue(
        value=first if selected.axes else first[0],
        least=_plain(everywhere.min),
        greatest=_plain(everywhere.max),
        nan=everywhere.nans,
        shape=list(selected.array.shape),
    )


def _plain(value: Any) -> Any:
    """Return a number as JSON can represent it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def bisect(session: LiveRecord, variant: int) -> BisectReply:
    """Return the first wrong rewrite of a variant, from the tensors to its program, in words, and
    its place; None where all states agree.

    Errors: WorkbenchError where they are too large to compute, and for source edited by hand.
    """
    kernel, row = session.kernels[variant], session.row(variant)
    if row.edited:
        because = "its source was edited by hand: no rewrite made it"
        raise WorkbenchError("this cannot be bisected", because, "the variant it is of")
    ex = session.recorder.exploration
    session.status("bisect", 0, 1, "computing states")
    try:
        wrong_rewrite = bisected(ex.passes, ex.items, kernel, row.kernel)
    finally:
        session.status(None)
    if wrong_rewrite is None:
        return BisectReply("every state computes the same", None, 0)
    with session.lock:
        if not row.passes:
            session.recorder.add_compiled(variant)
        place = _place_of(session, variant, wrong_rewrite)
    text = str(wrong_rewrite).split("\n")[0]
    return BisectReply(text, place, wrong_rewrite.number)


def _place_of(session: LiveRecord, variant: int, wrong_rewrite: FirstWrongRewrite) -> int | None:
    """Return the place of the pass that a rewrite is in: of scheduling, or the variant's own."""
    rows, row = session.record.passes, session.row(variant)
    scheduling = [p for p, entry in enumerate(rows) if entry.variant is None]
    places = [*scheduling, *row.passes]
    named = [
        p for p in places
        if rows[p].name == wrong_rewrite.stage and rows[p].kernel in (None, row.kernel)
    ]  # fmt: skip
    matches = [p for p in named if _has_step(session, rows[p], wrong_rewrite)]
    return next(iter(matches or reversed(named)), None)


def _has_step(session: LiveRecord, row: RecordedPass, wrong_rewrite: FirstWrongRewrite) -> bool:
    """Whether the pass of a row has the rewrite: others may have its name."""
    if not 0 < wrong_rewrite.number <= len(row.rewrites):
        return False
    rewrite, node = row.rewrites[wrong_rewrite.number - 1], session.recorder.node
    is_same = node(rewrite.before) is wrong_rewrite.before
    return is_same and node(rewrite.after) is wrong_rewrite.after


def why_not(session: LiveRecord, place: int, step: int, node: int, rule: int) -> WhyNotReply:
    """Return why a rule does not fire at a node: its text, the part that fails, a sentence.

    Errors: WorkbenchError for an opt or a step, which are not rules.
    """
    of_pass = session.record.passes[place].name
    explanation = why.why_not(rule_at(session, rule), session.recorder.node(node), of_pass)
    because = f"it fires: {explanation.because}" if explanation.fires else explanation.because
    return WhyNotReply(explanation.text, explanation.start, explanation.end, because)


def rule_at(session: LiveRecord, place: int) -> Rule:
    """Return the rule at a place of the record.

    Errors: WorkbenchError for an opt or a step, which are not rules.
    """
    rule = session.recorder.rule(place)
    if rule is None:
        name = session.record.rules[place].name
        raise WorkbenchError(f"{name} is not a rule", "it is a step of its own")
    return rule
