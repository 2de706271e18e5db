"""The scheduler's decisions as rows: the value, what became of it, why, and the figures."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.ir.schedule.item import Decision
from workbench.viz.model.title import value_name
from workbench.viz.model.words import shape_text, short
from workbench.viz.schema.plan import DecisionRow
from workbench.viz.schema.variant import NamedNumber

MOST_DECISIONS = 60
"""Decisions printed in one place; `Exploration.decisions` has them all."""


def decision_row(
    decision: Decision, node: int = -1, kernel: int | None = None, title: str = ""
) -> DecisionRow:
    """Return why a value is stored or fused. A record has its `node`, and the `kernel` that
    computes it; `title` is that of the kernel that ends with it."""
    name, shape = value_name(decision.node), shape_text(decision.node.shape)
    estimates = decision.estimates.items()
    return DecisionRow(
        node=node,
        name=f"{short(title or name)} {shape}",
        value=f"{name} {shape}",
        stored=decision.stored,
        reason=decision.reason,
        figures=[NamedNumber(k.replace("_", " "), v) for k, v in estimates],
        kernel=kernel,
        forced=decision.forced,
        asked=decision.name == "store-asked",
    )


def printed_decisions(decisions: Sequence[Decision]) -> list[DecisionRow]:
    """Return rows of the decisions that are printed in one place."""
    return [decision_row(decision) for decision in decisions[:MOST_DECISIONS]]
