"""What would help: the kernels of a run for which another variant saves most of the whole run.

A variant that was measured, by a search or by hand, counts with its time. Of the others the model
predicts how many times as fast one more opt, or the default opts, would make the kernel.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.recording import LaunchedKernel
from workbench.base.trace import unobserved
from workbench.cost.predicted_cost import predicted_cost, predicted_speedups
from workbench.ir.opt.apply import legal_opts
from workbench.kernel.performance import costs_target
from workbench.measure.speeds import earlier_speeds
from workbench.search.realization import tuned
from workbench.viz.model.words import opts_words
from workbench.viz.schema.run import RunHelp, RunKernel

MOST_HELP = 3
"""Most kernels that are listed."""
MOST_CANDIDATES = 8
"""Most kernels that are considered, those of the greatest shares."""
LEAST_GAIN = 1.05
"""Least ratio of two times that counts as help."""
BUDGET_S = 0.5
"""Seconds after which no further opt is predicted."""
DEFAULT = "the default opts"
"""The words for the opts that a kernel gets if nobody chooses others."""

Measured = Mapping[int, Sequence[tuple[str, float]]]
"""The opts and seconds of measured variants, by the place of their kernel in the exploration."""


def help_rows(
    kernels: Sequence[RunKernel], launched: Mapping[int, LaunchedKernel], measured: Measured
) -> list[RunHelp]:
    """Return the rows of what would help, the greatest saving first. `launched` has the kernels by
    their places in the exploration."""
    end_s = time.monotonic() + BUDGET_S
    order = sorted(range(len(kernels)), key=lambda n: -kernels[n].total_ns)[:MOST_CANDIDATES]
    rows = []
    for number in order:
        kernel = kernels[number]
        if kernel.place is None or not kernel.launches or kernel.place not in launched:
            continue
        choices = [(o, s * 1e9, True) for o, s in measured.get(kernel.place, ())]
        predicted = _predicted(kernel, launched[kernel.place], end_s)
        choices += [(opts, ns, False) for opts, ns in predicted]
        opts, to_ns, is_measured = min(choices, key=lambda c: c[1], default=("", 0.0, False))
        if choices and to_ns * LEAST_GAIN <= kernel.median_ns:
            saves = (kernel.median_ns - to_ns) * kernel.launches
            rows.append(RunHelp(number, opts, saves, kernel.median_ns, to_ns, is_measured))
    return sorted(rows, key=lambda row: -row.saves_ns)[:MOST_HELP]


def _predicted(
    kernel: RunKernel, launch: LaunchedKernel, end_s: float
) -> Iterator[tuple[str, float]]:
    """Yield the opts and nanoseconds of what the model predicts to be faster: measured time by the
    predicted ratio."""
    target, speeds = costs_target(launch.device), earlier_speeds()
    if launch.plain.code is not None or (speeds is None and target.hardware is None):
        return
    own = None if Device[launch.device].source_device.has_hardware else speeds
    try:
        with unobserved():
            now = predicted_cost(launch.tuned, target, own, launch.plain).predicted_s
            default = tuned(launch.plain, launch.device)
            if default is not launch.tuned:
                then = predicted_cost(default, target, own, launch.plain).predicted_s
                yield DEFAULT, kernel.median_ns * then / now
            legal = legal_opts(launch.tuned, Device[launch.device].target)
            lists = [(opt,) for opt in legal]
            for found in predicted_speedups(launch.tuned, lists, target, own):
                if found.ratio:
                    before = f"{kernel.opts}, " if kernel.opts else ""
                    yield f"{before}{opts_words(found.opts)}", kernel.median_ns / found.ratio
                if time.monotonic() > end_s:
                    return
    except WorkbenchError:
        return
