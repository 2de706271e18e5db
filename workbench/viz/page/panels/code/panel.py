"""The code of a kernel as text: C, or the language of another machine."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.device import Device
from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.words import explained
from workbench.viz.page.panel import Panel, kernels_text
from workbench.viz.record.links import readable


def code_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the code of each kernel, in the language that the page opens with."""
    return kernels_text(ex, kernels, _source_text)


def _source_text(place: int, kernel: Kernel) -> str:
    device = kernel.device if Device[kernel.device].is_elsewhere else ""
    return explained(lambda: readable(kernel, device)[0].source.text.rstrip("\n"))


PANEL = Panel(pane="code", mode="tune", text=code_text)
