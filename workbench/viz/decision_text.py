"""Decisions and passes as text.

Sections: Decisions as text; Passes as text.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.measure.kernel_time import seconds_text
from workbench.viz.model.words import figure_text, plural
from workbench.viz.schema.plan import DecisionRow
from workbench.viz.schema.record import PassOutcome
from workbench.viz.schema.variant import NamedNumber

# --------------------------------------------------------------------------------------------------
# Decisions as text: the value, its storage, the reason, and the numbers.


def decisions_text(decisions: Sequence[DecisionRow], count: int) -> str:
    """Return a line for each decision, and the number of the others of `count`."""
    cells = [decision_cells(decision) for decision in decisions]
    widths = [max((len(row[i]) for row in cells), default=0) for i in range(3)]
    lines = []
    for row in cells:
        aligned = [f"{c:{w}}" for c, w in zip(row, widths, strict=False)]
        lines.append("  ".join([*aligned, row[3]]).rstrip())
    if count > len(decisions):
        lines.append(f"and {plural(count - len(decisions), 'more decision')}")
    return "\n".join(lines)


def explained_text(decisions: Sequence[DecisionRow], kernels: int) -> str:
    """Return why there are not more kernels, the most interesting decision first: a line for each
    value that is fused although that costs something. A single kernel without such a value has a
    line for the value at which it could have ended. "" if there is no line."""
    ranks = {d.rank: d for d in decisions if d.rank is not None}
    rows = [ranks[rank] for rank in sorted(ranks) if kernels == 1 or ranks[rank].tradeoff]
    if not rows:
        return ""
    heading = (
        "fused, although that costs something:"
        if rows[0].tradeoff
        else "fused at no cost, although a kernel could have ended here:"
    )
    return "\n".join([heading, *[f"  {d.value}: {d.reason}. {d.costs}" for d in rows]])


def decision_cells(decision: DecisionRow) -> tuple[str, str, str, str]:
    """Return (value, "stored" or "fused", reason, estimates) of a decision as text."""
    estimates = [_estimate_text(f) for f in decision.estimates]
    outcome = "stored" if decision.stored else "fused"
    return decision.value, outcome, decision.reason, ", ".join(estimates)


def _estimate_text(estimate: NamedNumber) -> str:
    unit = " operations" if estimate.name.startswith("cost") else ""
    return f"{estimate.name} {figure_text(estimate.value)}{unit}"


# --------------------------------------------------------------------------------------------------
# Passes as text: a line each, with their effect and their time.


def passes_text(rows: Sequence[PassOutcome], times: bool = True) -> str:
    """Return the rows as text; without `times` it is the same on every machine."""
    width = max((2 * r.depth + len(r.name) for r in rows), default=0)
    lines = []
    for row in rows:
        name = "  " * row.depth + row.name
        time = f"  {seconds_text(row.seconds):>8}" if times else ""
        lines.append(f"{name:{width}}{time}  {outcome(row)}")
    return "\n".join(lines)


def outcome(row: PassOutcome) -> str:
    """Return the outcome of a pass: "12 rewrites", "done", "changed nothing", or its error."""
    if row.error:
        return f"failed: {row.error}"
    if row.matches:
        lost = f" ({row.dropped:,} not kept)" if row.dropped else ""
        return plural(row.matches, row.unit) + lost
    return "done" if row.changed else "changed nothing"
