"""The values of what each kernel computes, as text."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.words import explained
from workbench.viz.page.panel import Panel, kernels_text


def values_pane(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the values that each kernel computes, on the expression's own data."""
    results = [item.nodes[0] for item in ex.items if item.kernel is not None]
    return kernels_text(
        ex, kernels, lambda place, _: explained(lambda: str(ex.values(results[place])))
    )


PANEL = Panel(pane="values", mode="values", text=values_pane)
