"""Runs of all kernels of an exploration, for its page and for code."""

from __future__ import annotations

import time
from collections.abc import Callable

from workbench.kernel.kernel import Kernel
from workbench.search.model_search import KernelResult
from workbench.viz.exploration import scheduled_tensors
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.files.script import chosen_by_hand
from workbench.viz.model.words import opts_words, plural
from workbench.viz.run.repeated import repeated
from workbench.viz.run.run import Run, run_rows
from workbench.viz.schema.messages import NoResult, SearchedReply
from workbench.viz.session.live_record import LiveRecord
from workbench.worker.client import TaskStopped

_Chosen = tuple[dict[int, Kernel], dict[int, list[tuple[str, float]]]]
MOST_RUNS = 2
"""Most runs of an exploration that are kept: the last one is compared with the one before."""


def run(session: LiveRecord, repeat: int) -> NoResult:
    """Run all kernels `repeat` times, as they were chosen. A stop ends it after a round: what ran
    before is shown.

    Errors: DeviceError for a machine that is not here; WorkbenchError if there are no kernels;
    TaskStopped.
    """

    def require_going() -> None:
        if session.jobs.is_stopped():
            raise TaskStopped()

    run_of(session.recorder.exploration, session, "", repeat, require_going)
    require_going()
    return NoResult()


def search_all(session: LiveRecord, budget_s: float) -> SearchedReply:
    """Search for faster opts of all kernels, and write what is found to the tuning file, which runs
    use from then on. A stop ends it after a kernel; what was found stays.

    Errors: as `Exploration.search`.
    """
    ex, began = session.recorder.exploration, time.monotonic()
    searched: list[KernelResult] = []

    def report(result: KernelResult) -> None:
        searched.append(result)
        at = round(time.monotonic() - began)
        text = f"{plural(len(searched), 'kernel')}, {result}"
        session.status("search_all", at, round(budget_s), text)
        if session.jobs.is_stopped():
            raise KeyboardInterrupt

    try:
        session.status("search_all", 0, round(budget_s), "timing the default opts")
        return SearchedReply(str(scheduled_tensors.search_all(ex, report, budget_s)))
    finally:
        session.status(None)


def run_of(
    ex: Exploration,
    session: LiveRecord | None,
    device: str,
    repeat: int,
    before_round: Callable[[], None] = lambda: None,
) -> Run:
    """Return the run of repeated rounds of the kernels of an exploration, on a device ("": its
    own), with the variants that were chosen in its session, whose page shows it. An error that
    `before_round` raises ends it."""
    chosen, measured = _chosen(ex, session, device or ex.device)
    result = repeated(ex, chosen, device, repeat, measured, before_round)
    ex.display.runs = (*ex.display.runs, result)[-MOST_RUNS:]
    if session is not None and session.recorder.exploration is ex:
        with session.lock:
            session.put(("runs",), run_rows(ex.display.runs))
            session.send_changes()
    return result


def _chosen(ex: Exploration, session: LiveRecord | None, device: str) -> _Chosen:
    """Return the kernels with opts by hand, by place; and of each kernel the opts that were timed
    on a device, with the times in seconds."""
    chosen: dict[int, Kernel] = {}
    measured: dict[int, list[tuple[str, float]]] = {}
    if session is None or session.recorder.exploration is not ex:
        return chosen, measured
    with session.lock:
        for number in range(len(ex.kernels)):
            place = chosen_by_hand(session, number)
            if place is not None and place not in session.edited:
                chosen[number] = session.kernels[place]
        for place, row in enumerate(session.record.variants):
            timing = row.timing
            if timing is None or timing.machine or row.deleted or place in session.edited:
                continue
            if timing.device == device:
                words = opts_words(session.kernels[place].applied_opts)
                measured.setdefault(row.kernel, []).append((words, timing.median_s))
    return chosen, measured
