"""A kernel as text: its number and title, its source line, and its work."""

from __future__ import annotations

from workbench.viz.model.words import bytes_text, figure_text, kernel_number
from workbench.viz.schema.record import KernelRow


def kernel_heading(place: int, kernel: KernelRow, where: str) -> str:
    """Return which kernel it is, what it computes, and `where` the user's line is."""
    return f"kernel {kernel_number(place)}: {kernel.title}{where and f'  {where}'}"


def work_text(kernel: KernelRow) -> str:
    """Return how much it computes, and how much memory it needs."""
    flops, size_bytes = figure_text(kernel.flops), bytes_text(int(kernel.bytes))
    return f"{flops} operations, {size_bytes}"
