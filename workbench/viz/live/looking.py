"""Requests about rewrites: a node's value at a position, why a rule did not fire, and what a
kernel is without a rule, and which rewrite was wrong."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError
from workbench.ir.ops import Ops
from workbench.ir.rewrite import Rule
from workbench.kernel.values import Values, values_of_tensor
from workbench.viz.live import tuning
from workbench.viz.model import why

if TYPE_CHECKING:
    from workbench.viz.live.session import Session

SHOWN = 16
"""Values that are shown where there are several, from the beginning."""
Result = dict[str, Any]


def values(
    session: Session,
    variant: int | None,
    place: int,
    step: int,
    node: int,
    at: dict[str, int],
) -> Result:
    """Return the value of a node at a position of its axes, and the least and the greatest of
    all its values (of those that are looked at, where there are too many).

    Errors: WorkbenchError where a node has no value of its own, or computing it is too much.
    """
    uop = session.recorder.node(node)
    if not any(n.op in (Ops.PARAM, Ops.RANGE) for n in uop.toposort()):
        return _told(values_of_tensor(uop, {}), values_of_tensor(uop, {}))
    kernel = session.record["passes"][place]["kernel"] or 0  # none: the same in all
    root = session.record["kernels"][kernel]["root"]
    chosen = session.kernels[root if variant is None else variant]
    names = {r.axis_name for r in uop.ranges}
    here = chosen.values(uop, {n: p for n, p in at.items() if n in names})
    return _told(here, chosen.values(uop))


def _told(here: Values, everywhere: Values) -> Result:
    first = [_plain(v) for v in here.array.reshape(-1)[:SHOWN].tolist()]
    return {
        "value": first if here.axes else first[0],
        "min": _plain(everywhere.min),
        "max": _plain(everywhere.max),
        "nan": everywhere.nans,
        "shape": list(here.array.shape),
    }


def _plain(value: Any) -> Any:
    """Return a number as JSON can say it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def bisect(session: Session, kernel: int) -> Result:
    """Return the first rewrite after which a kernel computes something else, in words, and
    where it stands; None where all states agree.

    Errors: WorkbenchError where that is too much to compute.
    """
    session.status("bisect", 0, 1, "computing states")
    try:
        found = session.recorder.exploration.bisect(kernel)
    finally:
        session.status(None)
    if found is None:
        return {"text": "every state computes the same", "pass": None, "step": 0}
    with session.lock:
        root = session.record["kernels"][kernel]["root"]
        if not session.row(root)["passes"]:
            session.recorder.add_compiled(root)
        own = session.row(root)["passes"]
    rows = session.record["passes"]
    places = [
        place for place, row in enumerate(rows)
        if row["name"] == found.stage and (place in own or row["kernel"] in (None, kernel))
    ]  # fmt: skip
    place = next((p for p in places if p in own), places[0] if places else None)
    return {"text": str(found).split("\n")[0], "pass": place, "step": found.number}


def why_not(session: Session, place: int, step: int, node: int, rule: int) -> Result:
    """Return why a rule does not fire at a node: its text, the part that fails, a sentence.

    Errors: WorkbenchError for what is an opt or a step and no rule.
    """
    of_pass = session.record["passes"][place]["name"]
    found = why.why_not(_rule(session, rule), session.recorder.node(node), of_pass)
    because = f"it fires: {found.because}" if found.fires else found.because
    return {
        "text": found.text,
        "caret_start": found.start,
        "caret_end": found.end,
        "because": because,
    }


def rule_off(
    session: Session, kernel: int, rule: int, on: bool | None, of: int | None
) -> Result:
    """Return the variant `of` (None: the plain one of a kernel) with the same opts and one more
    rule off, or on again.

    Errors: WorkbenchError for a rule that kernels are not made with; KernelOptError where an opt
    is not possible without the rule.
    """
    name = _rule(session, rule).name
    root = session.record["kernels"][kernel]["root"]
    chosen = root if of is None else of
    known = session.kernels[chosen]
    off = [rule_name for rule_name in known.rules_off if rule_name != name]
    made = replace(known, rules_off=()).without(*off, *([] if on else [name]))
    parent = session.row(chosen)["parent"] if on else chosen
    named = tuning.free_name(session, kernel, "without") if made.rules_off else ""
    parent = root if parent is None else parent
    return {"variant": tuning.variant_of(session, made, parent, named)}


def _rule(session: Session, place: int) -> Rule:
    found = session.recorder.rule(place)
    if found is None:
        name = session.record["rules"][place]["name"]
        raise WorkbenchError(f"{name} is no rule", "it is a step of its own")
    return found
