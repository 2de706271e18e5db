"""The accesses of a kernel's innermost loop as text."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.kernel.accesses import innermost
from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.words import explained
from workbench.viz.page.panel import Panel, kernels_text


def accesses_pane(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the accesses of the first steps of the innermost loop of each kernel."""
    return kernels_text(
        ex, kernels, lambda _, kernel: explained(lambda: str(kernel.accesses(innermost(kernel))))
    )


PANEL = Panel(pane="accesses", mode="accesses", text=accesses_pane)
