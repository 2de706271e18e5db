"""The memory of the plan: the bytes allocated while each kernel runs, by value.

Sections: The memory chart of a schedule; The memory of the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.base.errors import plural
from workbench.execution.memory_plan import MemoryPlan
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.by_hand import stored_by
from workbench.ir.schedule.schedule import base
from workbench.kernel.kernel import Kernel
from workbench.measure.timing import bytes_text
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.title import value_title
from workbench.viz.model.words import kernel_number
from workbench.viz.page.panel import Panel
from workbench.viz.record.nodes import Nodes
from workbench.viz.schema.plan import MemoryChart, MemoryStep, MemoryValue
from workbench.viz.text import memory_text

# --------------------------------------------------------------------------------------------------
# The memory chart of a schedule: the bytes allocated at each kernel, by value.


def memory_chart(
    ex: ScheduledTensors, place_of: Callable[[UOp], int] = lambda node: -1
) -> MemoryChart:
    """Return the memory of a schedule, if only its results are read later. `place_of` returns the
    place of a node in the record (-1: there is no record)."""
    results = {base(output) for output in ex.outputs}
    computed = {buffer: node for node, buffer in stored_by(ex.items).items()}
    plan = ex.memory_plan
    numbers = {buffer: number for number, buffer in enumerate(computed)}
    values = [
        MemoryValue(place_of(node), value_title(node, ex.lines), _nbytes(buffer), node in results)
        for buffer, node in computed.items()
    ]
    steps, kernel = [], 0
    for number, (item, held_bytes) in enumerate(zip(ex.items, plan.held_bytes, strict=True)):
        is_kernel = item.kernel is not None
        live = sorted(numbers[buffer] for buffer in plan.live(number))
        place = kernel if is_kernel else None
        nbytes = sum(values[value].bytes for value in live)
        steps.append(MemoryStep(place, nbytes, held_bytes, live))
        kernel += is_kernel
    sizes = [step.bytes for step in steps]
    peak = sizes.index(max(sizes)) if sizes else None
    return MemoryChart(values, steps, peak, _words(plan, steps, peak), ex.budget_words)


def _nbytes(buffer: UOp) -> int:
    return buffer.size * buffer.dtype.itemsize


def _words(plan: MemoryPlan, steps: list[MemoryStep], peak: int | None) -> str:
    """Return in words the step that needs the most bytes, the greatest number of bytes that are
    allocated, and the bytes that values on the way take if they share memory, and if not."""
    if peak is None:
        return "nothing is computed"
    kernel = steps[peak].kernel
    where = "a copy needs" if kernel is None else f"kernel {kernel_number(kernel)} needs"
    words = (
        f"{where} most, {bytes_text(steps[peak].bytes)}; "
        f"at most {bytes_text(plan.peak_bytes)} are allocated"
    )
    if not plan.pieces:
        return words
    together = plan.shared_bytes
    values = plural(len(plan.pieces), "value")
    share = "shares" if len(plan.pieces) == 1 else "share"
    return (
        f"{words}; {values} on the way {share} {bytes_text(together)}, and would need "
        f"{bytes_text(plan.apart_bytes)} apart"
    )


# --------------------------------------------------------------------------------------------------
# The memory of the plan.


def memory_rows(ex: ScheduledTensors, nodes: Nodes) -> MemoryChart:
    """Return the chart with the places of its nodes in a record."""
    return memory_chart(ex, nodes.add)


def memory_pane(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the chart as text, always of the whole schedule."""
    nothing = [ex.nothing_to_do] if ex.nothing_to_do else []
    titles = [kernel.title for kernel in ex.kernels]
    return "\n".join([ex.headline, *nothing, memory_text(memory_chart(ex), titles)])


PANEL = Panel(pane="memory", mode="plan", text=memory_pane, section=memory_rows)
