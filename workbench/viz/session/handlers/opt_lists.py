"""Requests with lists of opts: the legality of an edited list, its variant, and the search for a
better one. A list is applied to the un-optimised kernel, with the rules of the variant off.

Sections: Edited lists of opts; The request that searches for a faster variant.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.base.trace import unobserved
from workbench.cost.kernel_cost import float_kind
from workbench.ir.opt.apply import apply_if_legal
from workbench.ir.opt.opt import Opt
from workbench.ir.rewriting.rewrite import without
from workbench.kernel.kernel import Kernel
from workbench.measure.timing import Samples
from workbench.pipeline import build
from workbench.search import search as searching
from workbench.search.moves import Candidate
from workbench.search.result import SearchResult
from workbench.viz.model.words import opt_row
from workbench.viz.schema.messages import OptsReply, OptVerdict, VariantReply
from workbench.viz.schema.variant import CheckRow
from workbench.viz.session.handlers import measurement, variants
from workbench.viz.session.handlers.measurement import (
    BUDGET_S,
    HEADLINE,
    SAMPLES,
    reference,
    show_timing,
    with_latest,
)
from workbench.viz.session.handlers.variants import free_name, variant_of
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import parse_opts, run_name, search_row, timing_row
from workbench.worker.client import TaskStopped

# --------------------------------------------------------------------------------------------------
# Edited lists of opts.


def verdicts(
    session: LiveRecord, variant: int, opts: list[str], place: int | None, amount: int | None
) -> OptsReply:
    """Return whether each opt of a list is legal after the legal opts before it, and the legal
    amounts of the opt at `place`, which first gets `amount` (None: it keeps its own).

    Errors: ParseError; WorkbenchError if there is no opt at `place`, or it has no amount to change.
    """
    listed = [opt for text in opts for opt in parse_opts(text)]
    if place is not None:
        listed[place : place + 1] = [_with_amount(listed, place, amount)]
    kernel, amounts, rows = un_optimised(session, variant), list[int](), []
    for number, opt in enumerate(listed):
        if number == place:
            amounts = _legal_amounts(kernel, opt)
        try:
            kernel = kernel.apply(opt)
        except WorkbenchError as error:
            rows.append(OptVerdict(str(opt), opt_row(opt), error.because, error.hint))
        else:
            named = kernel.applied_opts[-1]
            rows.append(OptVerdict(str(named), opt_row(named), "", ""))
    return OptsReply(rows, amounts, ", ".join(row.text for row in rows))


def paste(session: LiveRecord, variant: int, text: str, name: str) -> VariantReply:
    """Apply a whole list of opts to the un-optimised kernel of a variant, and call the result
    `name` ("": it keeps its name, or is called by its opts).

    Errors: ParseError; KernelOptError if an opt is not legal, and WorkbenchError if another variant
    has that name: then no opt is applied.
    """
    kernel = un_optimised(session, variant).apply(*parse_opts(text))
    existing = session.recorder.variant_of(variant, kernel)
    if name:
        number = session.row(variant).kernel
        variants.require_free(session, number, name, existing)
    place = variant_of(session, kernel, variant)
    if name:
        variants.name(session, place, name)
    return VariantReply(place)


def un_optimised(session: LiveRecord, variant: int) -> Kernel:
    """Return the kernel of a variant without opts, with the same rules off."""
    root = session.record.kernels[session.row(variant).kernel].root
    plain, off = session.kernels[root], session.kernels[variant].rules_off
    off_here = [rule for rule in off if rule not in plain.rules_off]
    return plain.without(*off_here) if off_here else plain


def _with_amount(listed: Sequence[Opt], place: int, amount: int | None) -> Opt:
    if place >= len(listed):
        because = f"the list has {len(listed)}"
        raise WorkbenchError(f"there is no opt {place}", because)
    opt = listed[place]
    if amount is None:
        return opt
    if opt_row(opt).amount is None:
        because = f"{opt.op.name} takes none"
        raise WorkbenchError(f"{opt!s:.60} has no amount to change", because)
    return replace(opt, arg=amount)


def _legal_amounts(kernel: Kernel, opt: Opt) -> list[int]:
    """Return the amounts of an opt that menus offer, as far as they are legal on a kernel."""
    if opt_row(opt).amount is None:
        return []
    target = Device[kernel.device].target
    with unobserved(), without(kernel.rules_off):
        return [
            amount for amount in opt.op.amounts_on(target)
            if apply_if_legal(kernel.ast, replace(opt, arg=amount), target) is not None
        ]  # fmt: skip


# --------------------------------------------------------------------------------------------------
# The request that searches for a faster variant.

MOST_STARTS = 2
"""Most other variants from which the search for a variant starts."""


def search(session: LiveRecord, variant: int, budget_s: float) -> VariantReply:
    """Search for a faster candidate for a variant. The best one becomes a variant, with the rows of
    all candidates, and is timed beside the variant; for a machine that is not here all times are
    predicted. A stopped search returns the best so far.

    Errors: TaskStopped if it was stopped before any candidate had a time.
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
    child = _add_result(session, variant, outcome, budget_s)
    if not session.jobs.is_stopped() and not is_elsewhere:
        group = with_latest(session, [variant, child, reference(session, variant)])
        # A stop ends only this timing: the result stays.
        with suppress(TaskStopped), measurement.use_worker(session, group) as worker:
            measurement.time_group(session, worker, group, False, BUDGET_S, SAMPLES)
    with session.lock:
        _set_search_time(session, child, outcome)
        session.send_changes()
    return VariantReply(child)


def _add_result(
    session: LiveRecord, variant: int, outcome: SearchResult[Kernel], budget_s: float
) -> int:
    """Return the position of the variant that the best candidate of a search becomes. One that
    other searches found already keeps theirs."""
    with session.lock:
        number = session.row(variant).kernel
        name = free_name(session, number, "search", counts=True)
        kernel = variants.on_device(outcome.kernel, session.kernels[variant].device)
        child = variants.variant_of(session, kernel, variant, name)
        session.set(child, "note", session.row(child).note or outcome.ended)
        row = search_row(outcome, budget_s, int(time.time()))
        session.set(child, "searches", [*session.row(child).searches, row])
        if outcome.answer:
            verdict = CheckRow(not outcome.tried[outcome.best].note, outcome.answer)
            session.checks[child, session.device] = verdict
            session.set(child, "check", verdict)
        session.send_changes()
    return child


def _fastest(session: LiveRecord, variant: int) -> dict[str, Sequence[Opt]]:
    """Return the opts of the kernel's fastest variants on the session's device, by name: a search
    that does not start from them could return a slower one. It starts from plain and auto
    anyway."""
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
    """Set the time that the search measured for its result, if the result was not timed beside
    others: the search was stopped, or the worker ended. A time that this machine cannot reach was
    disturbed, and is none."""
    seconds = outcome.tried[outcome.best].seconds
    if outcome.is_predicted or seconds is None or session.row(variant).timing:
        return
    kernel = session.kernels[variant]
    with unobserved(), without(kernel.rules_off):
        threads = build(kernel.ast, session.device).source.launch.threads
    if not measurement.is_possible(session, kernel, threads, seconds):
        return
    row = timing_row(
        Samples((seconds,)), kernel.estimates, session.device, float_kind(kernel.original),
        threads, run=run_name(), random_inputs=not kernel.has_data,
    )  # fmt: skip
    session.timings[variant, row.device] = row
    show_timing(session, variant, row)
