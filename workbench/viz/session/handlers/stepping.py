"""The request of the pane GPU: a kernel on the emulator, one group of it step by step."""

from __future__ import annotations

import time
from contextlib import suppress

from msgspec.structs import replace

from workbench.base.errors import WorkbenchError
from workbench.emulator.emulate import (
    MOST_PAGE_S,
    emulate_for_steps,
    emulate_if_small,
    seconds_for_steps,
)
from workbench.emulator.trace import Trace
from workbench.viz.schema.messages import NoResult
from workbench.viz.session.live_record import LiveRecord
from workbench.viz.session.opt_text import parse_opt
from workbench.worker.client import TaskStopped

COUNT_S = 4.0
"""Seconds for counting what the offers of a variant do."""
OFFER_S = 0.4
"""Most seconds of an offered kernel."""
UNASKED_S = 2.0
"""Most seconds of a run without a request."""


def emulate(
    session: LiveRecord, variant: int, group: list[int] | None, without: int | None, unasked: bool
) -> NoResult:
    """Add to a variant its run on the emulator, with the steps of a group (None: that of the first
    finding, else the first one), `without` one of the program's barriers. One that is `unasked` is
    left out where it takes long.

    Errors: WorkbenchError where its data are not here, for code edited by hand, and for a group
    that there is not.
    """
    kernel, mine = session.kernels[variant], session.recorder
    if session.row(variant).edited:
        what, because = "this cannot be stepped", "its code was edited by hand"
        raise WorkbenchError(what, because, "the variant it is of")
    if unasked and seconds_for_steps(kernel) > UNASKED_S:
        return NoResult()
    most_s = UNASKED_S if unasked else MOST_PAGE_S
    session.status("emulate", 0, 1, "running all work-items")
    try:
        first = True if group is None else group
        run = emulate_for_steps(kernel, first, without, most_s)
    finally:
        session.status(None)
    if session.jobs.is_stopped():
        raise TaskStopped()
    with session.lock:
        if session.recorder is mine and session.kernels[variant] is kernel:
            mine.add_trace(variant, run, without)
            session.tell_changes()
    if without is None and run.is_whole:
        _count_offers(session, variant, run)
    return NoResult()


def _count_offers(session: LiveRecord, variant: int, run: Trace) -> None:
    """Say of the offers of a variant what they would do to its accesses, of as many as there is
    time for."""
    kernel, mine = session.kernels[variant], session.recorder
    words: dict[str, str] = {}
    end_s = time.monotonic() + COUNT_S
    for offer in session.row(variant).offers:
        if time.monotonic() > end_s or session.jobs.is_stopped():
            break
        session.status("emulate", len(words), 0, f"counting {offer.opt}")
        with suppress(WorkbenchError):
            changed = emulate_if_small(kernel.apply(parse_opt(offer.opt)), OFFER_S)
            if changed is not None:
                words[offer.opt] = counts_text(run, changed)
    session.status(None)
    with session.lock:
        if session.recorder is not mine:
            return
        listed = session.row(variant).offers
        rows = [replace(o, counts=words.get(o.opt, o.counts)) for o in listed]
        session.set(variant, "offers", rows)
        session.tell_changes()


def counts_text(before: Trace, after: Trace) -> str:
    """Return how the counts of two runs differ, in words: "sectors 4,608 -> 1,024"."""
    pairs = {
        "sectors": [t.total("global").transactions for t in (before, after)],
        "conflicts": [t.total("shared").conflicts for t in (before, after)],
        "barriers": [sum(t.barriers.values()) for t in (before, after)],
    }
    texts = [f"{n} {a:,} -> {b:,}" for n, (a, b) in pairs.items() if a != b]
    return ", ".join(texts) or f"sectors {pairs['sectors'][0]:,}, as before"
