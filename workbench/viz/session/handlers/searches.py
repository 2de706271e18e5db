"""The request that searches for a faster variant."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from workbench.backends.device import Device
from workbench.cost.kernel_cost import float_kind
from workbench.ir.opt.opt import Opt
from workbench.kernel.kernel import Kernel
from workbench.search import search as searching
from workbench.search.moves import Candidate
from workbench.search.result import SearchResult
from workbench.viz.schema.messages import VariantReply
from workbench.viz.schema.variant import CheckRow
from workbench.viz.session.handlers import measurement
from workbench.viz.session.handlers import variants as tuning
from workbench.viz.session.handlers.measurement import (
    BUDGET_S,
    HEADLINE,
    SAMPLES,
    headline,
    reference,
    show_timing,
)
from workbench.viz.session.handlers.variant_names import free_name
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import run_name, search_row, timing_row
from workbench.worker.client import TaskStopped

MOST_STARTS = 2
"""Most variants that a search starts from, besides the one that it is of."""


def search(session: LiveRecord, variant: int, budget_s: float) -> VariantReply:
    """Search for a faster candidate for a variant; the best becomes a variant, timed beside it,
    with all candidates; of a machine that is not here all are predicted. A stopped search gives the
    best so far.

    Errors: TaskStopped where it was stopped before the first time.
    """
    is_elsewhere = Device[session.device].is_elsewhere
    kernel, began = session.kernels[variant], time.monotonic()

    def report(candidate: Candidate) -> None:
        text = f"{candidate.number + 1} tried, {candidate.how}"
        session.status("search", round(time.monotonic() - began), round(budget_s), text)

    with session.jobs.use_worker(session.device) as worker:
        try:
            report(Candidate(0, None, (), "starting"))
            outcome = searching.run(
                kernel, budget_s=budget_s, shows_progress=False, worker=worker,
                stop=session.jobs.is_stopped, report=report,
                others=_fastest(session, variant),
            )  # fmt: skip
        finally:
            session.status(None)
    if session.jobs.is_stopped() and not outcome.ranked():
        raise TaskStopped()
    child = _add_result(session, variant, outcome)
    if not session.jobs.is_stopped() and not is_elsewhere:
        number = session.row(variant).kernel
        group = [variant, child, reference(session, variant)]
        group = list(dict.fromkeys(group + headline(session, number)))
        # The result stays.
        with suppress(TaskStopped), measurement.use_worker(session, group) as worker:
            measurement.time_group(session, worker, group, False, BUDGET_S, SAMPLES)
    with session.lock:
        _set_search_time(session, child, outcome)
        session.tell_changes()
    return VariantReply(child)


def _add_result(session: LiveRecord, variant: int, outcome: SearchResult[Kernel]) -> int:
    """Return the place of the variant that the best of a search becomes."""
    with session.lock:
        number = session.row(variant).kernel
        name = free_name(session, number, "search", counts=True)
        kernel = tuning.on_device(outcome.kernel, session.kernels[variant].device)
        child = tuning.variant_of(session, kernel, variant, name)
        session.set(child, "note", session.row(child).note or outcome.ended)
        session.set(child, "search", search_row(outcome))
        if outcome.answer:
            row = CheckRow(not outcome.tried[outcome.best].note, outcome.answer)
            session.checks[child, session.device] = row
            session.set(child, "check", row)
        session.tell_changes()
    return child


def _fastest(session: LiveRecord, variant: int) -> dict[str, Sequence[Opt]]:
    """Return the opts of the fastest variants of the kernel on the session's device, by name: a
    search that did not know them could return what is slower. Plain and auto are starts anyway."""
    kernel = session.kernels[variant]
    measurements = [
        (timing.median_s, row.name, session.kernels[v].applied_opts)
        for v, row in enumerate(session.record.variants)
        if row.kernel == session.row(variant).kernel and v != variant
        and not (row.deleted or row.edited or row.name in HEADLINE)
        and session.kernels[v].rules_off == kernel.rules_off
        and (timing := session.timings.get((v, session.device)))
    ]  # fmt: skip
    return {name: opts for _, name, opts in sorted(measurements)[:MOST_STARTS]}


def _set_search_time(session: LiveRecord, variant: int, outcome: SearchResult[Kernel]) -> None:
    """Set the time that a search has of its result, where that was not timed beside others: it was
    stopped, or the program that would time it ended."""
    seconds = outcome.tried[outcome.best].seconds
    if outcome.is_predicted or seconds is None or session.row(variant).timing:
        return
    kernel = session.kernels[variant]
    row = timing_row(
        [seconds], kernel.estimates, session.device, float_kind(kernel.original),
        run=run_name(), random_inputs=not kernel.has_data,
    )  # fmt: skip
    session.timings[variant, row.device] = row
    show_timing(session, variant, row)
