"""The scheduler's decisions as text: the value, what became of it, why, and the figures."""

from __future__ import annotations

from workbench.ir.schedule.item import Decision
from workbench.viz.model.title import value_name
from workbench.viz.model.words import figure_text, plural, shape_text

MOST_DECISIONS = 60
"""Decisions shown in one place; `Exploration.decisions` has them all."""


def decisions_text(decisions: tuple[Decision, ...]) -> str:
    """Return a line per decision: the value, what became of it, why, and the figures."""
    rows = [decision_cells(d) for d in decisions[:MOST_DECISIONS]]
    widths = [max((len(r[i]) for r in rows), default=0) for i in range(3)]
    lines = []
    for row in rows:
        cells = [f"{c:{w}}" for c, w in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row[3]]).rstrip())
    if len(decisions) > MOST_DECISIONS:
        lines.append(f"and {plural(len(decisions) - MOST_DECISIONS, 'more decision')}")
    return "\n".join(lines)


def decision_cells(decision: Decision) -> tuple[str, str, str, str]:
    """Return (value, "stored" or "fused", reason, figures) of a decision as words."""
    node = decision.node
    value = f"{value_name(node)} {shape_text(node.shape)}"
    words = [
        f"{k.replace('_', ' ')} {figure_text(v)}" for k, v in decision.estimates.items()
    ]
    outcome = "stored" if decision.stored else "fused"
    return value, outcome, decision.reason, ", ".join(words)
