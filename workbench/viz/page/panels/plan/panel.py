"""The plan as text: the kernels, and the decisions that led to them."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.kernel.kernel import Kernel
from workbench.viz.decision_text import decisions_text, explained_text
from workbench.viz.exploration.replanning import replan_calls
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.decisions import printed_decisions, weights_hint
from workbench.viz.page.panel import Panel, heading, kernel_table
from workbench.viz.record.nodes import Lines
from workbench.viz.record.plan import activation_rows
from workbench.viz.text import activations_text


def plan_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the kernels (several as a table), the values stored for the backward, the values fused
    at a cost, the decisions in the order in which the scheduler made them, and the call that makes
    the choices by hand."""
    nothing = [ex.nothing_to_do] if ex.nothing_to_do else []
    headings = [heading(place, kernel) for place, kernel in kernels]
    if len(kernels) > 1:
        headings = [str(kernel_table(ex))]
    rows = printed_decisions(ex.decisions, ex.lines.on)
    lines = Lines()
    parts = [
        weights_hint(ex.kernels),
        activations_text(activation_rows(ex, lines), lines.listed),
        explained_text(rows, len(ex.kernels)),
        decisions_text(rows, len(ex.decisions)),
        *replan_calls(ex),
    ]
    return "\n".join([ex.headline, *nothing, *headings, *filter(None, parts)])


PANEL = Panel(pane="plan", mode="plan", text=plan_text)
