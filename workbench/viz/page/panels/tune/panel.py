"""The loop nest of a kernel as text."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.loops import kernel_nest
from workbench.viz.model.words import explained
from workbench.viz.page.panel import Panel, kernels_text
from workbench.viz.text import nest_text


def loops_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the loop nest of each kernel, with what each loop touches."""
    return kernels_text(ex, kernels, _nest_text)


def _nest_text(place: int, kernel: Kernel) -> str:
    return explained(lambda: nest_text(kernel_nest(kernel)))


PANEL = Panel(pane="loops", mode="tune", text=loops_text)
