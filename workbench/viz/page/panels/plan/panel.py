"""The plan as text: the kernels, and the decisions that made them."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.kernel.kernel import Kernel
from workbench.viz.model.decisions import printed_decisions
from workbench.viz.page.panel import Panel, heading
from workbench.viz.scheduled_tensors import ScheduledTensors
from workbench.viz.text.decisions import decisions_text


def plan_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the kernels, and the decisions about all values."""
    nothing = [ex.nothing_to_do] if ex.nothing_to_do else []
    headings = [heading(place, kernel) for place, kernel in kernels]
    decisions = decisions_text(printed_decisions(ex.decisions), len(ex.decisions))
    return "\n".join([ex.headline, *nothing, *headings, decisions])


PANEL = Panel(pane="plan", mode="plan", text=plan_text)
