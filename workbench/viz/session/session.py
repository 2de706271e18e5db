"""A session: an exploration, its record for pages, and the requests that change it.

`handle(request)` answers every request of a page with a ReplyMessage, which has the error if there
is one. A session does not depend on Jupyter: a widget is a Listener.

Sections: A session; Ctrl-C while no cell runs; Sending to pages, also while Python ends.
"""

from __future__ import annotations

import atexit
import math
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache
from threading import Thread, Timer
from types import FrameType
from typing import Any
from weakref import ref

from msgspec import UNSET, Struct

from workbench.base.errors import WorkbenchError
from workbench.base.interrupts import Uninterrupted, free_rlock, scope
from workbench.ir.node.uop import UOp
from workbench.ir.schedule.by_hand import NOTHING_BY_HAND
from workbench.measure.speeds import Speeds
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.record.record import Recorder
from workbench.viz.record.variants import error_row
from workbench.viz.schema.messages import (
    NoResult,
    NoticeMessage,
    PatchCount,
    RenewedMessage,
    ReplyMessage,
    RuleReply,
    StoppedJobs,
    WholeRecord,
)
from workbench.viz.schema.plan import HandKind
from workbench.viz.schema.variant import ErrorWords
from workbench.viz.session import prefetch
from workbench.viz.session.handlers import (
    all_kernels,
    baselines,
    edits,
    hand_choices,
    inspection,
    measurement,
    node_values,
    opt_lists,
    plan_comparison,
    rule_toggles,
    runs,
    variant_comparison,
    variant_transfer,
    variants,
)
from workbench.viz.session.live_record import PAGES, Listener, LiveRecord
from workbench.viz.session.requests import CHOICE, PREFETCH, Jobs, arguments, checked
from workbench.worker.client import TaskStopped

# --------------------------------------------------------------------------------------------------
# A session.

QUICK: dict[str, Callable[..., Any]] = {
    "apply": variants.apply,
    "opts": opt_lists.verdicts,
    "paste": opt_lists.paste,
    "auto": variants.auto,
    "code": variants.code,
    "offers": prefetch.offers,
    "pin": variants.pin,
    "name": variants.name,
    "delete": variants.delete,
    "note": variants.note,
    "forget": variant_transfer.forget,
    "device": variants.device,
    "values": node_values.values,
    "table": node_values.table,
    "accesses": inspection.accesses,
    "pairs": variant_comparison.pairs,
    "why_not": inspection.why_not,
    "rule_code": inspection.rule_code,
    "stop": lambda session: session.stop(),
    "ping": lambda session, have: _ping(session, have),
}
"""Requests that are answered at once: they run no kernel in the worker."""
LONG: dict[str, Callable[..., Any]] = {
    "saved": lambda session, edits, plan: session.show_saved(edits, plan),
    "measure": measurement.measure,
    "check": edits.check,
    "compile": edits.compile_source,
    "edit": edits.edit,
    "data": variants.data,
    "passes": variants.passes,
    "costs": inspection.costs,
    "compiler_passes": inspection.compiler_passes,
    "baseline": baselines.measure_all,
    "search": opt_lists.search,
    "emulate": inspection.emulate,
    "bisect": inspection.bisect,
    "lower_on": inspection.lower_on,
    "compare": variant_comparison.compare,
    "measure_beside": variant_comparison.measure,
    "plans": plan_comparison.measure,
    "kernels": all_kernels.measure,
    "check_all": all_kernels.check_all,
    "run": runs.run,
    "search_all": runs.search_all,
    "check_nodes": node_values.check_nodes,
    "replan": lambda session, node, store, kind, others, parts, undo: session.replan(
        node, store, kind, others, parts, undo
    ),
    "choices": hand_choices.offered,
    "try_rule": rule_toggles.try_rule,
    "rule_off": lambda session, kernel, rule, on, of: session.rule_off(kernel, rule, on, of),
}
"""Requests that take long, most of them because they run kernels; they become jobs."""
SAVES = frozenset(
    {"apply", "paste", "pin", "name", "delete", "note", "measure", "check", "check_all", "edit"}
    | {"search", "rule_off", "try_rule"}
)
"""Requests after which the variants are saved."""
OF_SESSION = frozenset(
    {"compare", "measure_beside", "pairs", "replan", "choices", "plans", "rule_off", "device"}
    | {"saved", "forget", "baseline", "stop", "run", "search_all"}
)
"""Requests that only the record of a session answers: about its plan, its device, what is saved of
it, and what stands beside it."""

PIECES_S = 0.4
"""Seconds between messages with pieces of the record: a page draws all of its panes again for each
message, which takes it 50 ms."""
_STALE_REQUEST = WorkbenchError(
    "the plan has changed", "this request was for the plan before it", "again"
)


class Session(LiveRecord):
    """A live record that answers requests. It completes its record in the background, where it also
    measures if it `prefetches`. `queue` runs its jobs (None: the queue of this Python session)."""

    def __init__(
        self, exploration: Exploration, queue: Jobs | None = None, prefetches: bool = False
    ):
        super().__init__(queue, prefetches)
        self._begun: Recorder | None = None
        self._sent_s = -math.inf
        """When pieces of the record were last sent."""
        self._open(exploration)
        PAGES.add(self)

    def _open(self, exploration: Exploration, speeds: Speeds | None = None) -> None:
        self._begin_with(exploration, speeds)
        baselines.add_rows(self)  # so that pages can list them
        self._pieces: Iterator[str] = self.recorder.rest()
        for variant in range(len(self.kernels)):
            variants.adopt(self, variant)
        variant_transfer.count(self)
        hand_choices.list_saved(self)
        self.recorder.patch()  # dropped: the page gets the whole record, which has these changes
        self.record.n = self._patches

    # requests

    def handle(self, request: object, asker: Listener | None = None) -> ReplyMessage:
        """Return the reply to a request. It is sent to `asker`, and its changes to all other
        listeners. This may take long."""
        if not self.is_quick(request):
            return self._handle(request, asker)
        self.waiting.append(request)
        try:
            with self.lock:  # so that its changes are sent with its own reply
                return self._handle(request, asker)
        finally:
            self.waiting.pop()

    def _handle(self, request: object, asker: Listener | None) -> ReplyMessage:
        result, error = None, None
        live: LiveRecord = self
        try:
            live = self._record_of(request)
            message = checked(request, live.record)
            do = str(message.__struct_config__.tag)
            if live is not self and do in OF_SESSION:
                what = f"this record cannot answer {do}"
                because = "it stands beside another one, for a comparison"
                raise WorkbenchError(what, because, "the page of its own exploration")
            try:
                result = (QUICK.get(do) or LONG[do])(live, **arguments(message))
            finally:  # a task that was stopped may have added its variant
                if live is self and do in SAVES:
                    self.save()
                    variant_transfer.count(self)
        except Exception as problem:  # an internal error, too, must not end the page
            error = error_row(problem)
        return live.send(reply_to(request, result, error), asker)

    def _record_of(self, request: object) -> LiveRecord:
        """Return the record that a request is about: this one, or one that stands beside it.

        Errors: WorkbenchError for one that is no longer kept.
        """
        number = _number(request, "record")
        live = self if number is None else self.sides.get(number)
        if live is None:
            because = "the record beside this one is not kept any more"
            raise WorkbenchError("this cannot be answered", because, "comparing again")
        return live

    def is_quick(self, request: object) -> bool:
        """Whether a request is answered at once (one that is not valid, too); others need a job."""
        do = request.get("do") if isinstance(request, dict) else None
        return not isinstance(do, str) or do not in LONG

    def replan(
        self,
        node: int | None,
        store: bool | None = None,
        kind: HandKind = "changes",
        others: Sequence[int] = (),
        parts: int = 0,
        undo: bool = False,
    ) -> PatchCount:
        """Plan again with a choice by hand, as ReplanRequest says, or without all of them (node
        None); return the number of patches.

        Errors: WorkbenchError where that is impossible.
        """
        ex = self.recorder.exploration
        if node is None:
            reply = self.reopen(ex.planned_again(NOTHING_BY_HAND, ex.rules_off))
        else:
            target = self.recorder.node(node)
            values = [self.recorder.node(other) for other in others]
            choice = hand_choices.arguments(kind, target, store, values, parts, undo)
            reply = self.reopen(ex.replan(**choice), ex.originals.get(target, target))
        hand_choices.save(self)
        return reply

    def reopen(self, planned: Exploration, target: UOp | None = None) -> PatchCount:
        """Replace the exploration by `planned`, one of the same tensors, compare both plans, and
        send the new record; return the number of patches. `target` is the value that a choice by
        hand was about, without such choices (None: a rule was switched, or all were undone)."""
        with self.lock:
            self._patches += 1
            last_record, ex, device = self.record, self.recorder.exploration, self.device
            tried = self.edited, self.timings, self.checks
            last = variant_transfer.LastPlan(self.recorder, *tried)
            planned.display.baselines = ex.display.baselines
            plan = plan_comparison.present_plan(self)
            self._open(planned, self.recorder.speeds)
            if device != self.device:  # the reader chose it
                variants.device(self, device)
            plan_comparison.compare(self, plan, target)
            rule_toggles.compare(self, last_record)
            variant_transfer.transfer(self, last)
            self.recorder.patch()  # dropped, as in `_open`
            # sent now, because patches of the new record may come before the reply
            whole = WholeRecord(self._patches, self.packed())
            self.broadcast(RenewedMessage(whole))
        self.begin()
        return PatchCount(self._patches)

    def rule_off(
        self, kernel: int | None, rule: int | str, on: bool | None, of: int | None
    ) -> RuleReply:
        """Switch a rule off, or on again: see `rule_toggles.rule_off`."""
        result = rule_toggles.rule_off(self, kernel, rule, on, of)
        if isinstance(result, Exploration):
            return RuleReply(n=self.reopen(result).n)
        return result

    def show_saved(self, edits: str, plan: str) -> NoResult:
        """Show the variants that other notebooks saved; or the saved edits that the record counts
        in the words `edits`, in the plan that they are of; or make the saved `plan` by hand again.

        Errors: WorkbenchError for what is not saved, or does not fit this expression.
        """
        if plan:
            made = hand_choices.saved_exploration(self, plan)
            self.plan_id = plan  # the next choice changes this plan
            self.reopen(made)
            return NoResult()
        if not edits:
            return variant_transfer.show(self)
        ex, keys = self.recorder.exploration, variant_transfer.edits_of(self, edits)
        off = keys[0].plan_off
        if off != ex.rules_off:
            self.reopen(ex.planned_again(NOTHING_BY_HAND, off))
        variant_transfer.show_edits(self, keys)
        return NoResult()

    def stop(self) -> StoppedJobs:
        """Drop all jobs; return how many there were. The record is still completed in the
        background."""
        self.watched = None
        stopped = self.jobs.stop(self)
        if stopped and self._begun is self.recorder:
            steps = self.in_this_plan(self._prefetch(measures=False))
            self.jobs.submit(self.recorder, steps, PREFETCH)
        return StoppedJobs(stopped)

    def interrupt(self) -> None:
        """Stop the work that the pages asked for, if there is any, and tell them so."""
        if self.jobs.has_requests(self):
            self.stop()
            self.broadcast(NoticeMessage(INTERRUPTED))

    # prefetching

    def begin(self) -> None:
        """Complete the record in the background, once; then measure there if it `prefetches`."""
        with self.lock:
            if self._begun is self.recorder:
                return
            self._begun = self.recorder
        # before the work of all pages that only takes time: a stop does not drop it
        self.jobs.submit(self.recorder, self.in_this_plan(self._restore()), CHOICE)
        self.jobs.submit(self, self.in_this_plan(self._prefetch()), PREFETCH)

    def stop_background(self) -> None:
        """Drop the work in the background; `begin` starts it again."""
        with self.lock:
            self._begun, self._is_renewing = None, False
        self.jobs.stop_background((self, self.recorder))

    def begin_after(self, seconds: float) -> None:
        """Call `begin` after `seconds`, if the session still exists then."""
        session_ref = ref(self)  # a timer keeps nothing alive

        def begin() -> None:
            session = session_ref()
            if session is not None:
                session.begin()

        timer = Timer(seconds, begin)
        timer.daemon = True
        timer.start()

    def complete(self) -> None:
        """Add all parts of the record that need no request."""
        while self._add_piece():
            pass
        with self.lock:
            for variant in range(len(self.kernels)):
                self.recorder.complete(variant)

    def job(self, request: Mapping[str, object], asker: Listener | None = None) -> Iterator[None]:
        """Return the steps of a job that answers a request; the request waits from now on."""
        steps = self._answer_steps(request, asker)
        next(steps)
        return steps

    def _answer_steps(
        self, request: Mapping[str, object], asker: Listener | None
    ) -> Iterator[None]:
        own_recorder = self.recorder
        self.status(str(request.get("do")), 0, 1, "waiting")
        try:
            yield
        except GeneratorExit:  # dropped while it waited: the page must get a reply
            self.status(None)
            stopped = error_row(TaskStopped())
            self.send(reply_to(request, None, stopped), asker)
            return
        try:
            # The positions in a request are those of the record at the time of the request.
            if self.recorder is not own_recorder and set(request) - {"id", "do"}:
                self.send(reply_to(request, None, error_row(_STALE_REQUEST)), asker)
            else:
                self.handle(request, asker)
        finally:
            self.status(None)

    def _restore(self, waits: bool = True) -> Iterator[None]:
        for _ in variant_transfer.restored(self, waits):
            self.send_changes()
            yield
        self.send_changes()

    def _prefetch(self, measures: bool = True) -> Iterator[None]:
        yield from variants.prefetch_code(self)
        yield from self._restore(waits=False)
        while self._add_piece():
            yield
            self.recorder.prepare()  # without the lock: no request waits for it
        if self.prefetches and measures:
            yield from prefetch.times(self)

    def _add_piece(self) -> bool:
        # Ctrl-C inside a generator would end it, and the record would lack the rest.
        with Uninterrupted(), self.lock:
            before = len(self.kernels)
            has_more = next(self._pieces, None) is not None
            for variant in range(before, len(self.kernels)):
                variants.adopt(self, variant)
            now = time.monotonic()
            if not has_more or now - self._sent_s > PIECES_S:
                self._sent_s = now
                self.send_changes()
            return has_more


def reply_to(request: object, result: Struct | None, error: ErrorWords | None) -> ReplyMessage:
    """Return the reply to a request; its id is None if the request has no valid one."""
    number, record = _number(request, "id"), _number(request, "record")
    about = UNSET if record is None else record
    return ReplyMessage(number, error is None, error, result, record=about)


def _number(request: object, name: str) -> int | None:
    """Return a number that every request may have; None if it has no valid one."""
    value = request.get(name) if isinstance(request, dict) else None
    return value if type(value) is int else None


def _ping(session: LiveRecord, have: int | None) -> WholeRecord:
    """Return the state of a record as `whole_record` does. Devices, languages and opts registered
    since are sent first, as a patch."""
    prefetch.registered(session)
    return session.whole_record(have)


# --------------------------------------------------------------------------------------------------
# Ctrl-C while no cell runs: it ends the work that pages asked for. A cell that runs gets it itself.
#
# Jupyter has a handler of its own for each cell and each message. Between these it ignores Ctrl-C:
# only there its handler is replaced.

INTERRUPTED = "stopped, because Python was interrupted; what is known by now stays"
RETRY_S = 0.05
"""Seconds until Jupyter's handler is looked at again while a cell runs."""


def heed_interrupts(kernel: Any) -> None:
    """Let Ctrl-C end what pages asked for, as soon as no cell runs in this Jupyter kernel."""
    loop = getattr(kernel, "io_loop", None)
    if loop is not None:  # it runs in the main thread; messages of pages may come in another one
        loop.add_callback(_heed, loop)


def _heed(loop: Any) -> None:
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupted)
    elif handler is not _interrupted and any(_has_requests(page) for page in PAGES):
        loop.call_later(RETRY_S, _heed, loop)


def _has_requests(page: LiveRecord) -> bool:
    return page.jobs.has_requests(page)


def _interrupted(number: int, frame: FrameType | None) -> None:
    # in a thread, since the code that is interrupted may hold a lock
    Thread(target=_interrupt_pages, daemon=True).start()


def _interrupt_pages() -> None:
    for page in list(PAGES):
        if isinstance(page, Session):
            page.interrupt()


# --------------------------------------------------------------------------------------------------
# Sending to pages, also while Python ends. A message that is cut off garbles the messages after it:
# if JupyterLab is only restarting the session, those of the new session.
#
# There are two causes. Jupyter passes a large message's own memory to ZeroMQ instead of a copy, and
# when the interpreter ends, that memory is freed, sent or not. And after Jupyter's sending thread
# has ended, every thread sends on the shared socket itself.

_LOCK = free_rlock()
"""Held while a message is sent. It is reentrant, because sending may collect widgets, and they
send, too."""
_is_over = False


@scope
def sending() -> Generator[bool, None, None]:
    """Yield whether messages may still be sent; Python does not end within the block."""
    _prepare()
    with _LOCK:
        yield not _is_over


@cache
def _prepare() -> None:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    session = getattr(getattr(shell, "kernel", None), "session", None)
    if session is not None:
        session.copy_threshold = sys.maxsize  # a copy of a record takes microseconds
    atexit.register(_end)  # runs before the hooks of Jupyter, which registered earlier


def _end() -> None:
    global _is_over
    with _LOCK:
        _is_over = True
