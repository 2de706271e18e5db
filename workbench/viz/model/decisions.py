"""The scheduler's decisions as rows: the value, what became of it, why, and the figures."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.ir.schedule.item import Decision
from workbench.viz.model.recipes import REQUESTED
from workbench.viz.model.title import value_name
from workbench.viz.model.words import count_text, shape_text, short, three_digits
from workbench.viz.schema.plan import DecisionRow
from workbench.viz.schema.variant import NamedNumber

MOST_DECISIONS = 60
"""Decisions printed in one place; `Exploration.decisions` has them all."""


def decision_row(
    decision: Decision,
    node: int = -1,
    kernel: int | None = None,
    title: str = "",
    python: str = "",
) -> DecisionRow:
    """Return why a value is stored or fused. A record has its `node`, the `kernel` that computes
    it, and `python` that prints it; `title` is that of the kernel that ends with it."""
    name, shape = value_name(decision.node), shape_text(decision.node.shape)
    estimates = decision.estimates.items()
    return DecisionRow(
        node=node,
        name=f"{short(title or name)} {shape}",
        value=f"{name} {shape}",
        stored=decision.stored,
        reason=decision.reason,
        figures=[NamedNumber(k.replace("_", " "), v) for k, v in estimates],
        costs=cost_sentences(decision),
        kernel=kernel,
        forced=decision.forced,
        asked=decision.name == REQUESTED,
        python=python,
    )


def printed_decisions(decisions: Sequence[Decision]) -> list[DecisionRow]:
    """Return rows of the decisions that are printed in one place."""
    return [decision_row(decision) for decision in decisions[:MOST_DECISIONS]]


def cost_sentences(decision: Decision) -> str:
    """Return what the estimates of a decision say, as sentences; "" where cost did not decide."""
    estimates = decision.estimates
    elements, evaluations = estimates.get("elements"), estimates.get("evaluations")
    if not elements or evaluations is None:
        return ""
    again, storing = estimates["cost_to_recompute"], estimates["cost_to_store"]
    each = (
        f"each of its {elements:,.0f} elements" if elements != 1 else "its one element"
    )
    more = f": {_operations(again)} more" if again > 0 else ""
    often = _often(evaluations / elements)
    if decision.stored:
        by_cost = " By cost alone it would be fused." if again < storing else ""
        return (
            f"Fused, {each} would be computed {often}{more}. "
            f"Storing it and reading it back is like {_operations(storing)}.{by_cost}"
        )
    if "cost_to_stage" in estimates:
        return (
            f"Without that row, {each} would be computed {often}{more}. Keeping the row is "
            f"like {_operations(estimates['cost_to_stage'])}, "
            f"storing all of it like {_operations(storing)}."
        )
    return (
        f"Fused, {each} is computed {often}{more}. "
        f"Storing it and reading it back would be like {_operations(storing)}."
    )


def _operations(cost: float) -> str:
    return f"{count_text(round(cost))} operations"


def _often(times: float) -> str:
    text = three_digits(times)
    whole = text.rstrip("0").rstrip(".") if text.endswith(("0.0", ".00")) else text
    return "once" if times <= 1 else f"{whole} times"
