"""Runs on the emulator without a request, for a pane that is shown alone."""

from __future__ import annotations

from workbench.emulator.emulate import emulate_for_steps, seconds_for_steps
from workbench.emulator.trace import Trace
from workbench.kernel.kernel import Kernel

MOST_KERNELS = 4
"""Most kernels that are run."""
MOST_S = 0.5
"""Most seconds of one of them; of a longer one a group alone runs, if that is short."""


def unasked_run(kernel: Kernel) -> Trace | None:
    """Return the run of a kernel, with the steps of a group; None where it takes long.

    Errors: WorkbenchError where its data are not here; DeviceError for one that its device has no
    room for.
    """
    if seconds_for_steps(kernel) > MOST_S:
        return None
    return emulate_for_steps(kernel, True, most_s=MOST_S)
