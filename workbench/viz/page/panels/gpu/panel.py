"""A kernel on the emulator, as text: its run on a device with work-groups, and the cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.backends.program.launch import launch_shape
from workbench.base.errors import plural
from workbench.emulator.emulate import seconds_for_steps, target_of
from workbench.ir.text.program import program_lines
from workbench.kernel.kernel import Kernel
from workbench.pipeline import stages
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.words import explained
from workbench.viz.page.panel import Panel, kernels_text
from workbench.viz.page.panels.gpu.run_text import run_text
from workbench.viz.record.kernels import MOST_KERNELS, unasked_run


def gpu_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return the runs of the first kernels, and the programs of the others. A kernel without opts
    has groups of one work-item: as in the pane, it has the default opts here."""
    first = {place for place, _ in kernels[:MOST_KERNELS]}

    def text_of(place: int, kernel: Kernel) -> str:
        return explained(lambda: _kernel_text(kernel, place in first))

    return kernels_text(ex, kernels, text_of)


def _kernel_text(kernel: Kernel, is_first: bool) -> str:
    opened = kernel if kernel.applied_opts else kernel.optimized()
    opts = ", ".join(map(str, opened.applied_opts)) or "no opts"
    names = [f"p{slot} is {name}" for slot, name in enumerate(opened.names) if name]
    head = f"{target_of(opened).device}, {opts}"
    lines = [head, *([", ".join(names)] if names else [])]
    trace = unasked_run(opened) if is_first and opened.has_data else None
    lines.append(_program(opened, is_first) if trace is None else run_text(trace))
    return "\n".join(lines)


def _program(kernel: Kernel, is_first: bool) -> str:
    """Return the program of a kernel that is not run, and why it is not."""
    linear = stages(kernel.ast, target_of(kernel), "linear").linear
    launch = launch_shape(linear)
    groups = plural(math.prod(launch.grid), "group")
    items = plural(math.prod(launch.group), "work-item")
    if not kernel.has_data:
        why = "the data of its tensors are not here"
    elif is_first:
        seconds = plural(round(seconds_for_steps(kernel)), "second")
        why = f"a group alone would take about {seconds}"
    else:
        why = f"only the first {MOST_KERNELS} kernels are; emulate(kernel) runs this"
    lines = [f"{groups} of {items}", f"not run: {why}"]
    lines += ["  " * (x.depth + 1) + x.text for x in program_lines(linear)]
    return "\n".join(lines)


PANEL = Panel(pane="gpu", mode="gpu", text=gpu_text, has_steps=True)
