"""One pane of an exploration: a value that prints as text, and is shown alone in a notebook.

Its panel makes the text (`workbench/viz/page/panel.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET

from workbench.base.terminal import Printed
from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.page.panel import panes
from workbench.viz.schema.messages import ViewState


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pane(Printed):
    """One pane of an exploration, by its name; `variant` is its kernel, with the kernel's position
    (None: all kernels)."""

    exploration: ScheduledTensors
    name: str
    variant: tuple[int, Kernel] | None = None

    @property
    def view(self) -> ViewState:
        """The selection with which a page shows this pane alone."""
        kernel = UNSET if self.variant is None else self.variant[0]
        return ViewState(mode=panes()[self.name].mode, kernel=kernel, only=self.name)

    def __str__(self) -> str:
        ex = self.exploration
        if ex.waits:
            return ex.waits
        every = list(enumerate(ex.kernels))
        kernels = every if self.variant is None else [self.variant]
        return panes()[self.name].text(ex, kernels)
