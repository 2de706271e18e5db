"""The last run of an exploration as text."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.page.panel import Panel


def run_pane(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return where the time of the last run of all kernels went."""
    runs = ex.display.runs
    if not runs:
        return ex.nothing_to_do or "no run yet: ex.run(repeat=10) makes one"
    return str(runs[-1])


PANEL = Panel(pane="run", mode="run", text=run_pane)
