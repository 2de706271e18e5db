"""A live record of one exploration, and the patches that keep its pages equal to it.

Changes of the record are sent as numbered patches, in order, to every listener, so that all pages
have the same tables. `handlers/` has the effects of requests.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Hashable, Iterator, Mapping, Set
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol
from uuid import uuid4
from weakref import WeakSet

from msgspec import UNSET
from msgspec.structs import replace

from workbench.backends.device import Device
from workbench.backends.program.text import Language
from workbench.base.garbage import fewer_collections
from workbench.base.interrupts import free_rlock
from workbench.check.node_values import NodeValues
from workbench.edited import IRLevel
from workbench.execution.memory_plan import without_detach
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import OptOps
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import Speeds
from workbench.viz.exploration.exploration import Exploration
from workbench.viz.page.document import packed
from workbench.viz.record.about import IR_TEXTS, expression_key
from workbench.viz.record.record import Recorder
from workbench.viz.schema.messages import (
    Message,
    PatchMessage,
    ProgressRow,
    RecordPatch,
    ReplyMessage,
    StatusMessage,
    ViewState,
    WholeRecord,
)
from workbench.viz.schema.record import PageRecord
from workbench.viz.schema.saved import SavedVariant
from workbench.viz.schema.variant import CheckRow, TimingRow, VariantRow
from workbench.viz.session import persistence
from workbench.viz.session.constants import constants, without_constants
from workbench.viz.session.requests import PREFETCH, Jobs, jobs

MOST_WAIT_S = 2.0
"""Most seconds that a step of work in the background waits for requests."""
QUIET_S = 2.0
"""Seconds that a step of work in the background takes before its progress is sent, and between two
such messages: unasked measurements sent 90, and each costs a page a frame of the whole notebook."""
_UNASKED_SINCE: ContextVar[float | None] = ContextVar("_UNASKED_SINCE", default=None)
"""When the step of work in the background that this thread does began; None: it does none. Code of
a cell may ask meanwhile, in another thread, and its progress is sent at once."""
MOST_SIDES = 4
"""Most records beside this one that are kept."""
MOST_FILES = 4
"""Most explorations of files that are kept for the next comparison."""
_NUMBERS = itertools.count()
"""Numbers of plans, unique in the process: keys of the worker's data."""


class Listener(Protocol):
    """A receiver of a session's messages, such as a widget: of replies, patches and progress, of
    the whole record for pages that open later, and of the selection."""

    def receive(self, message: Message) -> None:
        """Pass on a reply, a patch or progress."""

    def renew(self, record: str) -> None:
        """Store the whole record, packed, for pages that open later."""

    def select(self, view: ViewState) -> None:
        """Set the selection of the page."""


@dataclass(frozen=True, slots=True)
class Edited:
    """Source that a user edited, and its device. `level` is that of IR text ("": source text).
    Foreign source came with a file of another user: it is shown, and never run."""

    device: str
    text: str
    is_foreign: bool = False
    level: IRLevel | Literal[""] = ""

    @property
    def language(self) -> Language | None:
        """The language of the text."""
        return IR_TEXTS[self.level] if self.level else Device[self.device].language

    @property
    def fields(self) -> dict[str, str]:
        """The fields of the candidate kernel that the worker runs."""
        return {"device": self.device, "ir" if self.level else "source": self.text}


@dataclass(frozen=True, slots=True)
class PreviousPlan:
    """The plan before the present one: the number of its data in the worker, its exploration, its
    un-optimised kernels, whether each value was `stored`, and the predicted time of all kernels
    with the default opts (None: not known)."""

    number: int
    exploration: Exploration
    kernels: tuple[Kernel, ...]
    stored: Mapping[UOp, bool]
    predicted_s: float | None = None


class LiveRecord:
    """The live record of an exploration. `recorder` has the record and the Kernel of every variant;
    `timings`, `checks` and `elsewhere` (rows of other devices) are by variant and device; `edited`
    has the edited source, by variant; `shows_saved` says whether variants of other notebooks are
    shown, too."""

    def __init__(self, queue: Jobs | None = None, prefetches: bool = False):
        self.lock = free_rlock()
        self.waiting: list[object] = []
        """Quick requests that are not answered yet: work in the background waits for them."""
        self.jobs = jobs() if queue is None else queue
        self.prefetches = prefetches
        self._listeners: WeakSet[Listener] = WeakSet()
        self._patches, self._renewed, self._is_renewing = 0, 0, False
        self.plan_id = uuid4().hex[:16]
        """The id under which the choices by hand of this session are saved."""
        self.is_asked_by_code = False
        """Whether code of a cell has made a request since the whole record was last sent."""
        self.sides: dict[int, LiveRecord] = {}
        """Records that stand beside this one in comparisons, by their numbers, the latest last."""
        self.files: dict[tuple[Path, int], Exploration] = {}
        """Explorations of files that were compared with this one, by the path and the time of the
        last change, the latest last."""
        self._is_side = False
        """Whether it stands beside another record, whose lock and listeners it has."""
        self._noticed_s, self._has_notice = 0.0, False
        """When progress was last sent, and whether it is shown."""
        self.opts = OptOps.registered
        """The opts that were registered when the offers were last listed."""

    def others(self) -> list[LiveRecord]:
        """Return the records of other pages whose explorations may be seen, the oldest first."""
        explored = ((other, other.recorder.exploration) for other in list(PAGES))
        own = self.recorder.exploration
        seen = [other for other, ex in explored if ex is not own and not ex.waits]
        return sorted(seen, key=lambda other: other.number)

    def side(self, exploration: Exploration) -> LiveRecord:
        """Return a record of another exploration, or of another device, to stand beside this one:
        its messages go to the pages of this one, with its number."""
        side = LiveRecord(self.jobs)
        side.lock, side._listeners, side._is_side = self.lock, self._listeners, True
        side._begin_with(exploration, self.recorder.speeds)
        side.record.n = 0
        self.sides[side.number] = side
        while len(self.sides) > MOST_SIDES:
            del self.sides[next(iter(self.sides))]
        return side

    def exploration_of(self, path: Path) -> Exploration:
        """Return the exploration of a file, read again only if the file has changed; it is that of
        no page. Errors: WorkbenchError for a file that cannot be loaded."""
        with suppress(OSError, ValueError):
            found = self.files.get((path, path.stat().st_mtime_ns))
            if found is not None:
                return found
        ex = self.recorder.exploration.page.from_file(path)
        PAGES.discard(ex.display.session)
        with suppress(OSError):
            self.files[path, path.stat().st_mtime_ns] = ex
        while len(self.files) > MOST_FILES:
            del self.files[next(iter(self.files))]
        return ex

    def _begin_with(self, exploration: Exploration, speeds: Speeds | None) -> None:
        """Start with an exploration: the parts of its record that a page opens with, without
        timings or checks."""
        with fewer_collections():
            self.recorder = Recorder(exploration, speeds)
            self.number = next(_NUMBERS)
            self.recorder.first()
        self.device: str = self.recorder.record.device
        self.edited: dict[int, Edited] = {}
        self.timings: dict[tuple[int, str], TimingRow] = {}
        self.checks: dict[tuple[int, str], CheckRow] = {}
        self.elsewhere: dict[tuple[int, str], VariantRow] = {}
        self.node_values: dict[tuple[UOp, int | None, tuple[tuple[str, int], ...]], NodeValues] = {}
        """The values that pages asked for last: the next request is often about a part of them."""
        self.watched: int | None = None
        self.before: PreviousPlan | None = None
        self.saved_key, self.tensors_key = _saved_keys(exploration, self.record)
        self.earlier: dict[persistence.Key, SavedVariant] = {}
        for key in (self.tensors_key, self.saved_key) if _is_stored(exploration) else ():
            self.earlier |= persistence.load(key)
        self.shows_saved = False
        self.unfit: dict[persistence.Key, str] = {}
        """Saved variants that could not be restored, with the reason."""
        self.most_to_restore = 0
        """Most variants that were to be restored at once, since none was."""
        self.parents: dict[int, str] = {}
        """The parents of restored variants that are not listed yet, by digests of their keys."""
        self._stored: Mapping[persistence.Key, SavedVariant] = self.earlier
        self.left_out: Mapping[Hashable, persistence.Limit] = {}
        """What this session would have saved but for a limit."""

    # reading and setting

    @property
    def record(self) -> PageRecord:
        """The present record; `n` counts its patches."""
        return self.recorder.record

    @property
    def kernels(self) -> list[Kernel]:
        """The Kernel of every variant."""
        return self.recorder.kernels

    def row(self, variant: int) -> VariantRow:
        """Return a variant's row of the record."""
        return self.record.variants[variant]

    def set(self, variant: int, name: str, value: Any) -> None:
        """Set a field of a variant."""
        self.put(("variants", variant, name), value)

    def put(self, path: tuple[str | int, ...], value: Any) -> None:
        """Set one value of the record; the next patch has it."""
        self.recorder.put(path, value)

    def packed(self) -> str:
        """Send the changes to all listeners, and return the whole record, packed without the parts
        that pages have from elsewhere: no later patch repeats a change that it has."""
        with self.lock:
            self.send_changes()
            return packed(self.record, constants())

    # messages

    def listen(self, listener: Listener) -> None:
        """Add a listener, weakly: it receives messages as long as it lives."""
        with self.lock:
            self._listeners.add(listener)

    def dismiss(self, listener: Listener) -> None:
        """Remove a listener: it receives nothing more."""
        with self.lock:
            self._listeners.discard(listener)

    def listeners(self) -> list[Listener]:
        """Return the listeners."""
        with self.lock:
            return list(self._listeners)

    def send(self, reply: ReplyMessage, asker: Listener | None = None) -> ReplyMessage:
        """Send a reply, with the changes as a patch, to `asker`, and the patch to all other
        listeners; return the reply with the patch."""
        with self.lock:
            patch = self._take_patch()
            whole = replace(reply, patch=patch)
            for listener in list(self._listeners):
                if listener is asker:
                    listener.receive(whole)
                elif patch is not None:
                    listener.receive(self._message_of(patch))
        return whole

    def send_changes(self) -> None:
        """Send the changes, if there are any."""
        with self.lock:
            patch = self._take_patch()
            if patch is not None:
                self.broadcast(self._message_of(patch))

    def status(
        self,
        task: str | None,
        step: int = 0,
        total: int = 0,
        text: str = "",
        is_asked: bool = False,
    ) -> None:
        """Send the progress of a task: `step` of `total`; None: no task runs. Of work in the
        background that the reader did not ask for it is sent only while that takes long."""
        now = time.monotonic()
        since = None if is_asked else _UNASKED_SINCE.get()
        if since is not None:
            is_early = now - max(since, self._noticed_s) < QUIET_S
            if is_early if task is not None else not self._has_notice:
                return
        self._noticed_s, self._has_notice = now, task is not None
        self.broadcast(StatusMessage(ProgressRow(task, step, total, text)))

    def broadcast(self, message: Message) -> None:
        """Send a message to all listeners."""
        with self.lock:
            for listener in list(self._listeners):
                listener.receive(message)

    def _message_of(self, patch: RecordPatch) -> PatchMessage:
        return PatchMessage(patch, self.number if self._is_side else UNSET)

    def _take_patch(self) -> RecordPatch | None:
        patch = without_constants(self.recorder.patch())
        if patch.is_empty:
            return None
        self._patches += 1
        self.record.n = self._patches
        patch.set.append((["n"], self._patches))
        if self._listeners and not self._is_renewing and not self._is_side:
            self._is_renewing = True
            self.jobs.submit(self.recorder, self._renewing(), PREFETCH)
        return patch

    def whole_record(self, have: int | None) -> WholeRecord:
        """Return the number of patches, and the whole record if the page's number, `have`, is
        another one (None: without the record)."""
        self.send_changes()
        number = self._patches
        lacks = have is not None and have != number
        return WholeRecord(number, self.packed() if lacks else None)

    # work in the background

    def in_this_plan(self, steps: Iterator[None]) -> Iterator[None]:
        """Return `steps` that end when the tensors are planned again: they belong to the present
        record."""
        mine, end = self.recorder, object()

        def until() -> Iterator[None]:
            while self.recorder is mine:
                self._wait_for_requests()
                token = _UNASKED_SINCE.set(time.monotonic())
                try:
                    if next(steps, end) is end:
                        return
                finally:
                    _UNASKED_SINCE.reset(token)
                yield

        return until()

    def _wait_for_requests(self) -> None:
        """Wait until quick requests are answered: a thread that takes the lock again and again may
        keep other threads from it, above all on a busy machine."""
        until = time.monotonic() + MOST_WAIT_S
        while self.waiting and time.monotonic() < until:
            time.sleep(0.001)

    def _renewing(self) -> Iterator[None]:
        yield
        self.renew()

    def renew(self) -> None:
        """Send the whole record to all listeners, if it has changed since it was sent."""
        with self.lock:
            self.is_asked_by_code = False
            self.send_changes()
            if self._renewed == self._patches:
                self._is_renewing = False
                return
            self._renewed, self._is_renewing = self._patches, False
            whole = self.packed()
            for listener in self.listeners():
                listener.renew(whole)

    def save(self) -> None:
        """Save the variants for the next session, if `_is_stored` allows it."""
        with self.lock:
            if not _is_stored(self.recorder.exploration):
                return
            tried = self.record, self.timings, self.edited
            stored = persistence.store(*tried, self._stored, self.saved_key)
            self._stored = stored.variants
            self.leave_out(stored.left_out, stored.settled)

    def leave_out(
        self, limits: Mapping[Hashable, persistence.Limit], settled: Set[Hashable]
    ) -> None:
        """Add what limits leave out of what is saved, without what is `settled` since, and set the
        words about it."""
        rest = {key: each for key, each in self.left_out.items() if key not in settled}
        self.left_out = {**rest, **limits}
        texts = persistence.left_out_texts(self.left_out)
        if texts != self.record.unsaved:
            self.put(("unsaved",), texts)


def _is_stored(ex: Exploration) -> bool:
    """Whether variants are saved for the next session: of the scheduler's own plan, and of tensors
    that were not loaded from a file. Where rules are off in the plan, only edited source is
    saved."""
    return not ex.choices and not ex.origin.words


def _saved_keys(ex: Exploration, record: PageRecord) -> tuple[str, str]:
    """Return the keys of the saved variants of this plan, and of all plans with rules off: without
    a rule, the expression that is planned is another one, so these have the key of the tensors'
    expression before any rule."""
    before_rules = expression_key(without_detach(ex.expression.nodes))
    return before_rules if ex.rules_off else record.key, before_rules


PAGES: WeakSet[LiveRecord] = WeakSet()
"""The records of the pages of this Python process."""
