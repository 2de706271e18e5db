"""Kernels of an exploration as text, each below its heading."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.kernel.kernel import Kernel
from workbench.viz.model.words import kernel_number
from workbench.viz.scheduled_tensors import ScheduledTensors


def kernels_text(
    ex: ScheduledTensors,
    kernels: Sequence[tuple[int, Kernel]],
    text_of: Callable[[int, Kernel], str],
) -> str:
    """Return a text of each kernel below its heading; where there is none, why."""
    parts = [f"{heading(place, k)}\n{text_of(place, k)}" for place, k in kernels]
    return "\n\n".join(parts) or f"{ex.headline}\n{ex.nothing_to_do}"


def heading(place: int, kernel: Kernel) -> str:
    """Return which kernel it is, what it computes, and the user's line."""
    where = "" if kernel.line is None else f"  {kernel.line}"
    return f"kernel {kernel_number(place)}: {kernel.title or kernel.name}{where}"
