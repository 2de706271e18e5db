"""The search of one kernel as a task: here, or as text in another process or on another machine.

The result is compared once more, in turns with the default opts and with new samples: the best of
many noisy times is partly the luckiest one. It counts if it is faster beyond the noise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import median

from msgspec import Struct

from workbench.base.context import Context
from workbench.base.errors import WorkbenchError
from workbench.base.installation import version
from workbench.base.trace import unobserved
from workbench.base.typed import to_json, typed_json
from workbench.kernel.inputs import Seeded, written
from workbench.kernel.kernel import Kernel, graph_of
from workbench.measure.side_by_side import Ratio, ratio, undisturbed_rounds
from workbench.search.search import run
from workbench.search.tuning_file import (
    TuningRow,
    kernel_hash,
    machine_of,
    opts_of,
    opts_text,
    structure_hash,
)
from workbench.worker.client import Worker

COMPARISONS = 2
"""Comparisons, each on memory of its own, of which the worst counts: times depend on where memory
is, and on a busy machine one interval may be too narrow."""
CONFIRM_S = 0.3
"""Seconds of comparing at a time."""
CONFIRM_ROUNDS = 16
"""Undisturbed rounds that are enough to compare two kernels."""
CONFIRM_SHARE = 0.3
"""Share of the seconds of a task that is left for comparing."""
CONFIRM_MOST_S = 6.0
"""Seconds of a comparison after which a busy machine is given up, even if there are more."""
LEAST_GAIN = 1.03
"""Opts that are not so many times as fast as the default ones are not worth a row."""
INTERRUPTED = "interrupted"
"""How a search ended that Ctrl-C ended."""


class KernelTask(Struct, frozen=True):
    """A kernel without opts, as text, to search for `seconds` on a device, comparisons included.
    `starts` are lists of opts to try first, as text, by where they are from."""

    kernel: str
    device: str
    seconds: float
    width: int
    starts: Mapping[str, str] = {}


class KernelOutcome(Struct, frozen=True):
    """What became of a task: the row for a tuning file, or None and a `note` that says why. Units:
    `default_us` are microseconds of a run with the default opts (None: not measured)."""

    machine: str
    tried: int
    row: TuningRow | None = None
    note: str = ""
    default_us: float | None = None
    ended: str = ""


def task_text(text: str) -> str:
    """Do the task of a JSON text, and return its outcome as JSON: this is what executors call."""
    return to_json(done(typed_json(text, KernelTask)))


def done(task: KernelTask, worker: Worker | None = None) -> KernelOutcome:
    """Do a task and return its outcome. A `worker` of the caller stays alive. Errors never leave
    it: they are the note of the outcome."""
    machine = machine_of(task.device)
    try:
        kernel = graph_of(task.kernel)
        shapes = tuple((param.length,) for param in written(kernel))
        with unobserved(), Context(DEV=task.device, BEAM=0):
            plain = Kernel(kernel, kernel, Seeded(), shapes, title=kernel.arg.name)
            return _searched(plain, task, machine, worker)
    except WorkbenchError as error:
        return KernelOutcome(machine, 0, note=": ".join(filter(None, (error.what, error.because))))


def _searched(
    plain: Kernel, task: KernelTask, machine: str, worker: Worker | None
) -> KernelOutcome:
    ends_at = time.monotonic() + task.seconds
    default = plain.optimized()
    result = run(
        default, task.width, (1 - CONFIRM_SHARE) * task.seconds,
        shows_progress=False, worker=worker,
        others={name: opts_of(text) for name, text in task.starts.items()},
    )  # fmt: skip
    tried, best = len(result.tried), result.kernel
    seconds = result.tried[0].seconds
    outcome = KernelOutcome(
        machine, tried, default_us=None if seconds is None else seconds * 1e6, ended=result.ended
    )
    if best.applied_opts == default.applied_opts:
        return _noted(outcome, "nothing faster than the default opts was found")
    most_s = max(CONFIRM_SHARE * task.seconds, ends_at - time.monotonic()) / COMPARISONS
    comparisons = (_compared(default, best, most_s) for _ in range(COMPARISONS))
    base_s, gain = min(comparisons, key=lambda each: each[1].low)
    outcome = KernelOutcome(machine, tried, default_us=base_s * 1e6, ended=result.ended)
    if not gain.is_measurable or gain.median < LEAST_GAIN:
        return _noted(outcome, f"compared once more: {gain}")
    row = TuningRow(
        kernel=best.original.arg.name,
        hash=kernel_hash(best.original),
        structure=structure_hash(best.original),
        device=task.device,
        machine=machine,
        version=version(),
        opts=opts_text(best.applied_opts),
        time_us=float(f"{base_s * 1e6 / gain.median:.4g}"),
        default_us=float(f"{base_s * 1e6:.4g}"),
        when=datetime.now(UTC).strftime("%Y-%m-%d"),
    )
    return KernelOutcome(machine, tried, row, "", base_s * 1e6, result.ended)


def _compared(default: Kernel, best: Kernel, most_s: float) -> tuple[float, Ratio]:
    """Return the seconds of a run with the default opts, and how many times as fast the best is, by
    rounds in which both were undisturbed; on a busy machine these take a while to come, at most
    about `most_s`."""
    rounds: list[tuple[float, float]] = []
    ends_at = time.monotonic() + min(most_s, CONFIRM_MOST_S)
    while True:
        samples = default.compare_times({"found": best}, budget_s=min(most_s, CONFIRM_S)).samples
        rounds += undisturbed_rounds(samples["this"], samples["found"])
        if len(rounds) >= CONFIRM_ROUNDS or time.monotonic() > ends_at:
            break
    if not rounds:
        return samples["this"].median_s, Ratio(1.0, 1.0, 1.0, 0)
    base, other = zip(*rounds, strict=True)
    return median(base), ratio(base, other)


def _noted(outcome: KernelOutcome, note: str) -> KernelOutcome:
    return KernelOutcome(
        outcome.machine, outcome.tried, None, note, outcome.default_us, outcome.ended
    )
