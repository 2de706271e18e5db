"""Prefetching: measurements without a request, of plain kernels, default opts, baselines and
offers. It waits for requests, and stops when the reader selects something else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from workbench.backends.device import Device
from workbench.base.errors import WorkbenchError
from workbench.ir.opt.opt import OptOps
from workbench.measure.side_by_side import MIN_ROUNDS, compared
from workbench.measure.timing import Samples
from workbench.viz.model.words import opt_kind_rows
from workbench.viz.record.about import device_rows, language_rows
from workbench.viz.schema.messages import NoResult
from workbench.viz.schema.variant import OfferRow
from workbench.viz.session.handlers import all_kernels, baselines, measurement, plan_comparison
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import parse_opts
from workbench.viz.session.requests import PREFETCH

BUDGET_S = 0.25
"""Seconds for timing one group of variants or offers."""
SAMPLES = 9
"""Most samples of each of these variants and offers."""
KERNELS = 4
"""Most kernels that are timed without a request."""
FLOPS = 4e9
"""Most operations of a kernel, or of two plans, that are timed without a request."""
AT_ONCE = 4
"""Offers that are measured together, beside the variant itself."""
MOST_OFFERS = 24
"""Most offers of one variant that are measured without a request."""
SLOW_S = 0.1
"""Most seconds of a variant whose offers are measured."""


def times(session: LiveRecord) -> Iterator[None]:
    """Time in this order: the first kernels, plain and with the default opts; all kernels, unless
    on an emulator; both plans if there was another one; baselines; the offers of the first kernel,
    unless another variant is selected. Kernels and plans of more than FLOPS operations are left
    out. On a machine that is not here nothing is timed."""
    if Device[session.device].is_elsewhere:
        return
    for number, kernel in enumerate(session.record.kernels[:KERNELS]):
        if kernel.flops <= FLOPS:
            _time_kernel(session, number)
            yield
    with suppress(WorkbenchError):  # an error is ignored: there was no request
        if not Device[session.device].is_emulator:
            yield from all_kernels.measured(session, FLOPS)
    if session.before is not None and plan_comparison.is_small(session, FLOPS):
        with suppress(WorkbenchError):  # as above
            plan_comparison.measure(session)
        yield
    if baselines.by_name(session):
        with suppress(WorkbenchError):  # as above
            baselines.measure_all(session)
        yield
    first = [k.root for k in session.record.kernels[:1]]
    for variant in first:
        if session.watched in (None, variant):  # else another is selected
            session.watched = variant
            yield from _offers(session, variant)


def offers(session: LiveRecord, variant: int) -> NoResult:
    """List the offers of a variant, which is selected now. In the background its code gets links
    and its passes are added; in a session that prefetches, its offers are measured, too."""
    if not session.row(variant).offers:
        session.recorder.add_offers(variant)
    is_new = session.watched != variant
    session.watched = variant
    if is_new:
        steps = session.in_this_plan(_complete_selected(session, variant))
        session.jobs.submit(session, steps, PREFETCH)
    return NoResult()


def registered(session: LiveRecord) -> None:
    """Add the devices, languages and kinds of opts that were registered since. If opts were, list
    all offers again in the background."""
    rows = {"devices": device_rows(), "languages": language_rows()}
    rows |= {"opt_kinds": opt_kind_rows()}
    for name, listed in rows.items():
        if getattr(session.record, name) != listed:
            session.put((name,), listed)
    if session.opts != OptOps.registered:
        session.opts = OptOps.registered
        steps = session.in_this_plan(_relist_offers(session))
        session.jobs.submit(session, steps, PREFETCH)


def _relist_offers(session: LiveRecord) -> Iterator[None]:
    for variant, row in enumerate(session.record.variants):
        if row.offers or row.refused:
            with session.lock:
                session.recorder.add_offers(variant)
                session.send_changes()
            yield


def _complete_selected(session: LiveRecord, variant: int) -> Iterator[None]:
    with session.lock:
        row = session.row(variant)
        if not row.passes and row.error is None and variant not in session.edited:
            session.recorder.add_compiled(variant)
            session.send_changes()
    yield
    if session.prefetches:
        yield from _offers(session, variant)


def _time_kernel(session: LiveRecord, number: int) -> None:
    group = _headline(session, number)
    if group:
        _time_or_ignore(session, group)


def _headline(session: LiveRecord, number: int) -> list[int]:
    """Return the plain variant of a kernel and the one with its default opts."""
    return [
        v for v, row in enumerate(session.record.variants)
        if row.kernel == number and row.name in measurement.HEADLINE
        and row.error is None and not row.deleted
    ]  # fmt: skip


def _time_or_ignore(session: LiveRecord, group: list[int]) -> None:
    """Time variants; an error is ignored, because there was no request."""
    try:
        with session.jobs.use_worker(session.device) as worker:
            measurement.time_group(session, worker, group, False, BUDGET_S, SAMPLES)
        session.save()
    except WorkbenchError:
        pass


def _offers(session: LiveRecord, variant: int) -> Iterator[None]:
    """Measure a variant's offers, best first."""
    if Device[session.device].is_elsewhere or variant in session.edited:
        return  # source that a user edited may crash, or not end: it runs when the user asks
    timing = session.row(variant).timing
    if timing is None and session.record.kernels[_kernel(session, variant)].flops <= FLOPS:
        number = _kernel(session, variant)
        is_alone = Device[session.device].is_emulator  # its times are not compared
        group = [variant]
        if not is_alone:
            group = measurement.with_latest(session, [variant, *_headline(session, number)])
        _time_or_ignore(session, group)
        yield
        timing = session.row(variant).timing
    if timing is None or timing.emulator or timing.median_s / (timing.had or 1.0) > SLOW_S:
        return  # an emulator's times are not compared
    listed = session.row(variant).offers
    order = [n for n, offer in enumerate(listed[:MOST_OFFERS]) if offer.measured is None]
    for begin in range(0, len(order), AT_ONCE):
        if session.watched != variant:
            return
        _measure_offers(session, variant, listed, order[begin : begin + AT_ONCE])
        yield


def _measure_offers(
    session: LiveRecord, variant: int, listed: list[OfferRow], places: list[int]
) -> None:
    with session.lock:
        if session.row(variant).offers is not listed:
            return  # the device has changed, and the offers with it
        kernel = session.kernels[variant]
    try:
        with session.lock:
            candidates = [measurement.worker_row(session, variant)]
        for place in places:
            candidate = kernel.apply(*parse_opts(listed[place].opt))
            candidates.append(measurement.kernel_row(candidate))
        with session.jobs.use_worker(session.device) as worker:
            rows = measurement.times(session, worker, variant, candidates, False, BUDGET_S, SAMPLES)
    except WorkbenchError:
        return
    with session.lock:
        if session.row(variant).offers is not listed:
            return
        base = rows[0].warm
        for place, result in zip(places, rows[1:], strict=True):
            if base.samples_s and result.samples:
                seconds = result.warm.median_s
                is_possible = measurement.is_possible(session, kernel, result.threads, seconds)
                for name, value in _measured(base, result.warm, is_possible):
                    session.put(("variants", variant, "offers", place, name), value)
        session.send_changes()


def _measured(
    base: Samples, samples: Samples, is_possible: bool
) -> Iterator[tuple[str, float | bool | None]]:
    """Yield the measured fields of an offer, from its samples and those of its variant in the same
    rounds: none where other programs had the cores, or the time `is_possible` on no machine like
    this."""
    comparison = compared(base, samples)
    yield "busy", not comparison.rounds or not is_possible
    if not comparison.rounds or not is_possible:
        return
    is_sure = comparison.rounds >= MIN_ROUNDS
    half = (comparison.high - comparison.low) / 2 / comparison.median
    yield "measured", comparison.median
    yield "spread", half if is_sure else None
    # An offer is called faster or slower only beyond the spread that is shown beside it.
    gain = abs(comparison.median - 1) / comparison.median
    yield "differs", comparison.is_measurable and gain > half
    yield "seconds", samples.median_s


def _kernel(session: LiveRecord, variant: int) -> int:
    return session.row(variant).kernel
