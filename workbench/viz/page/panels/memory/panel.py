"""The memory of the plan: the bytes allocated while each kernel runs, by value."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.kernel.kernel import Kernel
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.page.panel import Panel
from workbench.viz.page.panels.memory.chart import memory_chart
from workbench.viz.record.nodes import Nodes
from workbench.viz.schema.plan import MemoryChart
from workbench.viz.text import memory_text


def memory_rows(ex: ScheduledTensors, nodes: Nodes) -> MemoryChart:
    """Return the chart of a record."""
    return memory_chart(ex, nodes.add)


def memory_pane(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the chart as text, of all kernels: memory is that of a schedule."""
    nothing = [ex.nothing_to_do] if ex.nothing_to_do else []
    titles = [kernel.title for kernel in ex.kernels]
    return "\n".join([ex.headline, *nothing, memory_text(memory_chart(ex), titles)])


PANEL = Panel(pane="memory", mode="plan", text=memory_pane, section=memory_rows)
