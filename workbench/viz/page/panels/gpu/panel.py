"""A kernel as the program of one work-item, as text; `emulate(kernel)` runs it."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.backends.program.launch import launch_shape
from workbench.emulator.emulate import target_of
from workbench.ir.text.program import program_lines
from workbench.kernel.kernel import Kernel
from workbench.pipeline import stages
from workbench.viz.exploration.scheduled_tensors import ScheduledTensors
from workbench.viz.model.words import explained
from workbench.viz.page.panel import Panel, kernels_text


def gpu_text(ex: ScheduledTensors, kernels: Sequence[tuple[int, Kernel]]) -> str:
    """Return what each work-item of each kernel executes."""
    return kernels_text(ex, kernels, _program_text)


def _program_text(place: int, kernel: Kernel) -> str:
    return explained(lambda: _program(kernel))


def _program(kernel: Kernel) -> str:
    gpu = target_of(kernel)
    linear = stages(kernel.ast, gpu, "linear").linear
    launch = launch_shape(linear)
    grid, group = (" x ".join(map(str, s)) or "1" for s in (launch.grid, launch.group))
    lines = [f"{gpu.device}: grid {grid}, groups of {group} work-items"]
    lines += ["  " * line.depth + line.text for line in program_lines(linear)]
    return "\n".join(lines)


PANEL = Panel(pane="gpu", mode="gpu", text=gpu_text, has_steps=True)
