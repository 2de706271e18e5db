"""A live record: what pages show of one exploration, and the patches that keep them the same.

What changes the record goes out as numbered patches, in order, to every listener; so tables of
the record and of all pages stay the same. What requests do to it is in `handlers/`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

from workbench.base.forking import free_rlock
from workbench.ir.node.uop import UOp
from workbench.ir.opt.opt import OptOps
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import Speeds
from workbench.viz.exploration import Exploration
from workbench.viz.page.document import packed
from workbench.viz.record.record import Recorder
from workbench.viz.schema.saved import SavedVariant
from workbench.viz.session import persistence
from workbench.viz.session.jobs import PREFETCH, Jobs, jobs

Message = dict[str, Any]

_NUMBERS = itertools.count()
"""Every plan of every session has one of its own: the worker keeps data by it."""


class Listener(Protocol):
    """Whoever shows a session: it is told of replies to it, of patches, and of progress; now
    and then it gets the whole record, packed, for pages that open later, and what to look at."""

    def tell(self, message: Message) -> None:
        """Pass on a reply, a patch or progress."""

    def renew(self, record: str) -> None:
        """Keep the whole record, packed, for pages that open later."""

    def look(self, view: Message) -> None:
        """Show these panes and places."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The source of a variant that somebody changed by hand, and the device it is for."""

    device: str
    text: str


@dataclass(frozen=True, slots=True)
class Before:
    """A plan that was left for another: its un-optimised kernels, and the number that its data
    have in the worker; `stored` says of every value whether it was stored."""

    number: int
    kernels: tuple[Kernel, ...]
    stored: Mapping[UOp, bool]


class LiveRecord:
    """One exploration at work. `recorder` has the record and the Kernel of every variant; what
    was tried has the variant's number and the device: `timings`, `checks`, `elsewhere` (fields
    that belong to another device); `edited` is source that somebody changed by hand."""

    def __init__(self, queue: Jobs | None = None, measures_ahead: bool = False):
        self.lock = free_rlock()
        self.jobs = jobs() if queue is None else queue
        self.measures_ahead = measures_ahead
        self._listeners: WeakSet[Listener] = WeakSet()
        self._patches, self._renewed, self._is_renewing = 0, 0, False
        self.opts = OptOps.registered
        """The opts that the offers in the record know of."""

    def _begin_with(self, exploration: Exploration, speeds: Speeds | None) -> None:
        """Begin with an exploration: its record as a page opens it, and nothing tried yet."""
        self.recorder = Recorder(exploration, speeds)
        self.number = next(_NUMBERS)
        self.recorder.first()
        self.device: str = self.recorder.record["device"]
        self.edited: dict[int, Edited] = {}
        self.timings: dict[tuple[int, str], Any] = {}
        self.checks: dict[tuple[int, str], Any] = {}
        self.elsewhere: dict[tuple[int, str], Message] = {}
        self.watched: int | None = None
        self.before: Before | None = None
        # what was saved is of the scheduler's own plan
        is_own = not exploration.forced and not exploration.rules_off
        self.earlier = persistence.load(self.record["key"]) if is_own else {}
        self._stored: Mapping[persistence.Key, SavedVariant] = self.earlier

    # what there is

    @property
    def record(self) -> dict[str, Any]:
        """The record as it is now; `n` counts the patches that it has had."""
        return self.recorder.record

    @property
    def kernels(self) -> list[Kernel]:
        """The Kernel of every variant."""
        return self.recorder.kernels

    def row(self, variant: int) -> dict[str, Any]:
        """Return a variant's row of the record."""
        variant_row: dict[str, Any] = self.record["variants"][variant]
        return variant_row

    def set(self, variant: int, name: str, value: Any) -> None:
        """Set a field of a variant."""
        self.put(("variants", variant, name), value)

    def put(self, path: tuple[str | int, ...], value: Any) -> None:
        """Set one value of the record; the next patch says so."""
        self.recorder.put(path, value)

    def packed(self) -> str:
        """Return the whole record as pages read it, having told the others what changed: a patch
        says nothing that is in a record of the same number."""
        with self.lock:
            self.tell_changes()
            return packed(self.record)

    # messages

    def listen(self, listener: Listener) -> None:
        """Tell `listener` what happens from now on, as long as it lives."""
        with self.lock:
            self._listeners.add(listener)

    def listeners(self) -> list[Listener]:
        """Return who listens."""
        with self.lock:
            return list(self._listeners)

    def send(self, reply: Message, asker: Listener | None = None) -> Message:
        """Send a reply to whoever asked, and what changed to everybody; return it with the
        patch."""
        with self.lock:
            patch = self._take_patch()
            whole = reply | {"patch": patch}
            for listener in list(self._listeners):
                if listener is asker:
                    listener.tell(whole)
                elif patch is not None:
                    listener.tell({"patch": patch})
        return whole

    def tell_changes(self) -> None:
        """Send what changed, if anything."""
        with self.lock:
            patch = self._take_patch()
            if patch is not None:
                self.tell({"patch": patch})

    def status(
        self, task: str | None, step: int = 0, total: int = 0, text: str = ""
    ) -> None:
        """Say what is going on; None: nothing is."""
        message = {"task": task, "done": step, "total": total, "text": text}
        self.tell({"status": message})

    def tell(self, message: Message) -> None:
        """Pass on a reply, a patch or progress."""

    def _take_patch(self) -> dict[str, Any] | None:
        patch = self.recorder.patch()
        if not patch["append"] and not patch["set"]:
            return None
        self._patches += 1
        self.record["n"] = self._patches
        patch["set"].append([["n"], self._patches])
        if self._listeners and not self._is_renewing:
            self._is_renewing = True
            self.jobs.submit(self.recorder, self._renewing(), PREFETCH)
        return patch

    # work in the background

    def in_this_plan(self, steps: Iterator[None]) -> Iterator[None]:
        """Return `steps` that end where all is planned anew: they are about the record of now."""
        mine, end = self.recorder, object()

        def until() -> Iterator[None]:
            while self.recorder is mine and next(steps, end) is not end:
                yield

        return until()

    def _renewing(self) -> Iterator[None]:
        yield
        self._renew()

    def _renew(self) -> None:
        with self.lock:
            if self._renewed == self._patches:
                self._is_renewing = False
                return
            self._renewed, self._is_renewing = self._patches, False
            whole = self.packed()
            for listener in self.listeners():
                listener.renew(whole)

    def save(self) -> None:
        """Keep the variants for the next session; not those of a plan that was forced, or that
        does without some rules."""
        with self.lock:
            ex = self.recorder.exploration
            if ex.forced or ex.rules_off:
                return
            tried = self.record, self.timings, self.edited
            self._stored = persistence.store(*tried, self._stored)
