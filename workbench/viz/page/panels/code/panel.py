"""The C of a kernel as text."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.words import explained
from workbench.viz.page.panel import Panel, kernels_text
from workbench.viz.record.links import readable
from workbench.viz.record.variants import readable_code


def code_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the C of each kernel."""
    return kernels_text(ex, kernels, _source_text)


def _source_text(place: int, kernel: Kernel) -> str:
    return explained(lambda: "\n".join(readable_code(readable(kernel)[0]).lines))


PANEL = Panel(pane="code", mode="tune", text=code_text)
