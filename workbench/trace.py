"""Watching a compilation: records of passes and of what fired in them, by reference.

Nothing here knows what a graph is. A pass asks for the current observer once; with none it
runs bare. With one it appends a PassRecord that refers to the states before and after and to
each match; nothing is copied or printed. Source of the idea: MLIR's action tracing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.display import Displayed


class Match(NamedTuple):
    """One thing that happened inside a pass: `rule` (it prints as its name) turned `before` into
    `after`. Scheduling decisions use the same record: `rule` is the decision, with its reason."""

    rule: Any
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class PassRecord(Displayed):
    """One pass that ran. `before` and `after` are IR values; `seconds` is wall time.

    `error` is the exception if the pass failed (then `after` is None); `parent` names the pass
    it ran inside of; `dropped` counts matches beyond the observer's bound.
    """

    name: str
    doc: str
    before: Any
    after: Any
    matches: tuple[Match, ...] = ()
    seconds: float = 0.0
    error: BaseException | None = None
    parent: str | None = None
    dropped: int = 0


@dataclass(slots=True)
class Observer:
    """Collects PassRecords; keeps at most `limit` matches in all and counts what it dropped."""

    limit: int = 1_000_000
    records: list[PassRecord] = field(default_factory=list)
    held: int = 0
    parents: list[str] = field(default_factory=list)


_OBSERVER: ContextVar[Observer | None] = ContextVar("workbench_observer", default=None)


def observer() -> Observer | None:
    """Return the observer of this context, or None. Ask once per pass."""
    return _OBSERVER.get()


@contextmanager
def observe(limit: int = 1_000_000) -> Iterator[Observer]:
    """Record every pass that runs inside the `with` block."""
    watching = Observer(limit)
    token = _OBSERVER.set(watching)
    try:
        yield watching
    finally:
        _OBSERVER.reset(token)


@contextmanager
def unobserved() -> Iterator[None]:
    """Run a block that no observer sees (`check` and `time` inside an exploration)."""
    token = _OBSERVER.set(None)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


class Recording:
    """The record of one running pass: `with recording(...) as r: ...; r.after = state`.

    `r.matches` is a list to append to, or None when nobody watches.
    """

    __slots__ = (
        "_place", "_start", "_watching", "after", "before", "doc", "matches", "name", "parent",
    )  # fmt: skip

    def __init__(self, name: str, doc: str, before: Any):
        self.name, self.doc, self.before = name, doc, before
        self.after: Any = None
        self._watching = observer()
        self.matches: list[Match] | None = None if self._watching is None else []
        self.parent: str | None = None
        self._start, self._place = 0.0, 0

    def __enter__(self) -> Recording:
        if self._watching is not None:
            self.parent = self._watching.parents[-1] if self._watching.parents else None
            self._watching.parents.append(self.name)
            self._place = len(self._watching.records)
            self._watching.records.append(
                PassRecord(self.name, self.doc, self.before, None)
            )
            self._start = time.perf_counter()
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        """Finish the record; an error on its way out learns in which pass it arose."""
        if error is not None and not hasattr(error, "stage"):
            error.stage, error.state = self.name, self.before  # type: ignore[attr-defined]
        watching = self._watching
        if watching is None:
            return
        seconds = time.perf_counter() - self._start
        watching.parents.pop()
        found = self.matches or []
        kept = found[: max(0, watching.limit - watching.held)]
        watching.held += len(kept)
        # its place was kept when it began: records stand in execution order, outer before inner
        watching.records[self._place] = PassRecord(
            self.name, self.doc, self.before, self.after, tuple(kept),
            seconds, error, self.parent, len(found) - len(kept),
        )  # fmt: skip


def recording(name: str, doc: str, before: Any) -> Recording:
    """Start the record of one pass over `before`; free when nobody watches."""
    return Recording(name, doc, before)
