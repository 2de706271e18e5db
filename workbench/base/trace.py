"""Tracing a compilation: records of passes and of the rules that fired in them, by reference.

This file does not depend on graphs. A pass looks up the current observer once; without one it
records nothing. With one it appends a PassRecord that refers to the states before and after and to
each match; nothing is copied or printed. A pass that builds nodes without rules (a lowering) does
so in a scope, `with derived_from(node):`, which records provenance edges from new nodes to their
sources. It may also register a function that lists its steps, as matches whose rules are PassSteps;
the function is called when they are first read. Source of the idea: MLIR's action tracing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar, overload

from workbench.base.interrupts import scope
from workbench.base.terminal import Displayed


class Match(NamedTuple):
    """One rewrite inside a pass: `rule` (it prints as its name) turned `before` into `after`.
    Scheduling decisions use the same record: `rule` is the decision, with its reason."""

    rule: Any
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class PassStep:
    """A step of a pass that is a function, and its reason `why`: it is the `rule` of a Match.
    `about` names the part of the program; steps that differ only in it are one rule.

    These matches lead a reader from the state before the pass towards the state after it; the
    states between them cannot be computed."""

    name: str
    why: str
    about: str = field(default="", compare=False)

    def at(self, about: str) -> PassStep:
        """Return this step for one part of the program: a statement, an axis, an op."""
        return replace(self, about=about)

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return f"{self.name}: {self.about}" if self.about else self.name


class LazyMatches(Sequence[Match]):
    """The steps of a pass that is a function, listed when one is first read, as far as the bound
    of the observer allows."""

    __slots__ = ("_listed", "_steps", "_watching")

    def __init__(self, steps: Callable[[], Iterable[Match]], watching: Observer):
        self._steps: Callable[[], Iterable[Match]] | None = steps
        self._watching = watching
        self._listed: tuple[Match, ...] = ()

    @overload
    def __getitem__(self, place: int) -> Match: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Match, ...]: ...
    def __getitem__(self, place: int | slice) -> Match | tuple[Match, ...]:
        return self._list()[place]

    def __len__(self) -> int:
        return len(self._list())

    def _list(self) -> tuple[Match, ...]:
        steps = self._steps
        if steps is not None:
            with unobserved():
                self._listed = tuple(islice(steps(), self._watching.room))
            self._watching.count += len(self._listed)
            self._steps = None  # so that the nodes that it refers to can be freed
        return self._listed


class ProvenanceEdge(NamedTuple):
    """`product` came from `source` without a rule: by a substitution, or from a level above."""

    product: Any
    source: Any


@dataclass(frozen=True, slots=True)
class PassRecord(Displayed):
    """One pass that ran. `before` and `after` are IR values; `seconds` is wall time.

    `error` is the exception if the pass failed (then `after` is None); `parent` names the pass
    it ran inside of; `dropped` counts matches beyond the observer's bound. `edges` are the
    provenance edges of this pass, and those since the pass before it ended; a PassRecord among them
    is a part of the pass (see `tentative`).
    """

    name: str
    doc: str
    before: Any
    after: Any
    matches: Sequence[Match] = ()
    seconds: float = 0.0
    error: BaseException | None = None
    parent: str | None = None
    dropped: int = 0
    edges: tuple[ProvenanceEdge | PassRecord, ...] = ()


@dataclass(slots=True, eq=False)
class Observer:
    """Collects PassRecords; keeps at most `limit` matches and edges in all, and counts the matches
    that it dropped. `edges` are not in a record yet: the pass that runs takes them at its end, or,
    if none runs, the next one does."""

    limit: int = 1_000_000
    records: list[PassRecord] = field(default_factory=list)
    edges: list[ProvenanceEdge | PassRecord] = field(default_factory=list)
    count: int = 0
    parents: list[str] = field(default_factory=list)
    sources: tuple[Any, ...] = ()
    """New nodes are derived from these."""
    steps: Callable[[], Iterable[Match]] | None = None
    """Lists the steps of the pass that runs, where it is a function."""

    @property
    def room(self) -> int:
        """How many more matches and edges it may keep."""
        return max(0, self.limit - self.count)


_OBSERVER: ContextVar[Observer | None] = ContextVar("workbench_observer", default=None)
SCOPES: list[Observer] = []
"""The observer of each scope (see `derived_from`) that is open in this process. If there is none,
node creation records nothing."""


def observer() -> Observer | None:
    """Return the observer of this context, or None. A pass calls it once."""
    return _OBSERVER.get()


@scope
def observe(limit: int = 1_000_000) -> Generator[Observer, None, None]:
    """Record every pass that runs inside the `with` block."""
    watching = Observer(limit)
    token = _OBSERVER.set(watching)
    try:
        yield watching
    finally:
        _OBSERVER.reset(token)
        while watching in SCOPES:  # Ctrl-C came before their ends
            SCOPES.remove(watching)
        if watching.edges and watching.records:  # built after the last pass
            last = watching.records[-1]
            edges = (*last.edges, *_take_edges(watching))
            watching.records[-1] = replace(last, edges=edges)


@scope
def unobserved() -> Generator[None, None, None]:
    """Run a block that no observer sees (`check` and `time` inside an exploration)."""
    token = _OBSERVER.set(None)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


def note_steps(steps: Callable[[], Iterable[Match]]) -> None:
    """Register a function that lists the steps of the running pass. It is called later, so it reads
    only the pass's results, not the rules that are on. Without an observer it does nothing."""
    watching = _OBSERVER.get()
    if watching is not None:
        watching.steps = steps


class _Derived:
    """A block in which an observer's new nodes are derived from `sources`."""

    __slots__ = ("_outer", "_sources", "_watching")

    def __init__(self, watching: Observer, sources: tuple[Any, ...]):
        self._watching, self._sources = watching, sources
        self._outer: tuple[Any, ...] = ()

    def __enter__(self) -> None:
        self._outer, self._watching.sources = self._watching.sources, self._sources
        if self._sources:
            SCOPES.append(self._watching)

    def __exit__(self, *_: object) -> None:
        if self._sources:
            SCOPES.remove(self._watching)
        self._watching.sources = self._outer


_UNWATCHED = nullcontext()


def derived_from(*sources: Any) -> AbstractContextManager[None]:
    """Return a block in which every node that is built, or found in the intern table, is derived
    from `sources`, not from those of the block around it. Without an observer it does nothing."""
    watching = _OBSERVER.get()
    return _UNWATCHED if watching is None else _Derived(watching, sources)


def replaced(changes: Mapping[Any, Any]) -> None:
    """Record that each value of `changes` was derived from its key; without an observer it does
    nothing."""
    watching = _OBSERVER.get()
    if watching is not None:
        watching.edges += [
            ProvenanceEdge(node, source) for source, node in changes.items() if node is not source
        ]


def created(node: Any) -> None:
    """Record that a node was built here: node creation calls it while there are SCOPES."""
    watching = _OBSERVER.get()
    if watching is not None:
        for source in watching.sources:
            if source is not node:
                watching.edges.append(tuple.__new__(ProvenanceEdge, (node, source)))


class Part:
    """A part of a pass: `after` is its result, None if it has none."""

    __slots__ = ("after",)

    def __init__(self) -> None:
        self.after: Any = None


@contextmanager
def tentative(before: Any) -> Iterator[Part]:
    """Run a part of a pass whose result may be dropped. If its `after` is set, to another state
    than `before`, an observer records the part as an edge of the pass, and the passes in it as
    passes in the pass; else nothing.
    """
    part, watching = Part(), _OBSERVER.get()
    if watching is None:
        yield part
        return
    with observe(watching.limit - watching.count) as inner:
        inner.parents += watching.parents
        yield part
    if part.after is not None and part.after is not before:
        edges = tuple(inner.edges)
        watching.edges.append(PassRecord("", "", before, part.after, edges=edges))
        watching.records += inner.records
        watching.count += inner.count


T = TypeVar("T")


class Repeats(Generic[T]):
    """Results of a step that is repeated for equal states: each is made once.

    The layers of a network have equal kernels, up to the names of their memory and loops. A key
    says what two states have in common; `parts` are the values of a state in an order that equal
    states share. The records of the first are recorded again for each other one, and its
    provenance edges from the parts of the other: so an observer sees what it would have seen, but
    for intermediate nodes, which are those of the first, and the time, which is 0.
    """

    def __init__(self) -> None:
        self._first: dict[Hashable, tuple[T, Sequence[Any], Observer]] = {}

    def value(self, key: Hashable, parts: Sequence[Any], make: Callable[[], T]) -> T:
        """Return the result for the state with this key and these parts; `make` makes it if it is
        the first one."""
        watching = _OBSERVER.get()
        first = self._first.get(key)
        if first is None:
            with _handed_on(watching) as inner:
                value = make()
            self._first[key] = value, parts, inner
            return value
        value, first_parts, inner = first
        if watching is not None:
            own = dict(zip(first_parts, parts, strict=True))
            watching.records += [replace(record, seconds=0.0) for record in inner.records]
            watching.edges += [_from_own(edge, own) for edge in inner.edges]
            watching.count += inner.count
        return value


@contextmanager
def _handed_on(watching: Observer | None) -> Iterator[Observer]:
    """Observe a block, also if it fails, and hand what was recorded on to `watching`, if any."""
    if watching is None:
        yield Observer()
        return
    inner = None
    try:
        with observe(watching.room) as inner:
            inner.parents += watching.parents
            yield inner
    finally:
        if inner is not None:
            watching.records += inner.records
            watching.edges += inner.edges
            watching.count += inner.count


def _from_own(
    edge: ProvenanceEdge | PassRecord, own: Mapping[Any, Any]
) -> ProvenanceEdge | PassRecord:
    if isinstance(edge, PassRecord):
        return edge
    return ProvenanceEdge(edge.product, own.get(edge.source, edge.source))


MOST_MERGED = 300
"""The maximal number of small passes that one record joins."""


@contextmanager
def merged(name: str, join: Callable[..., Any]) -> Iterator[None]:
    """Join the records of all passes called `name` in the `with` block, which rewrite small parts
    of a larger pass: `join` makes one state of the states before them, and one of those after.

    States that no pass changed are left out, and so are those beyond the limit: `dropped` counts
    their matches. A pass that failed has a record of its own. Without an observer this costs
    nothing.
    """
    watching = _OBSERVER.get()
    if watching is None:
        yield
        return
    start = len(watching.records)
    try:
        yield
    finally:
        pieces: list[PassRecord] = []
        others: list[PassRecord] = []
        for record in watching.records[start:]:
            is_piece = record.name == name and record.error is None
            (pieces if is_piece else others).append(record)
        watching.records[start:] = [*others, *_joined(pieces, join)]


def _joined(pieces: Sequence[PassRecord], join: Callable[..., Any]) -> list[PassRecord]:
    """Return a list of the one record of all pieces; [] if none changed its state. Of records with
    the same first state only the last one is joined."""
    changed = {p.before: p for p in pieces if p.after is not p.before}
    if not changed:
        return []
    records = list(changed.values())
    matches, others = (
        {m.before: m for piece in some for m in piece.matches}
        for some in (records[:MOST_MERGED], records[MOST_MERGED:])
    )
    lost = sum(p.dropped for p in records) + len(others.keys() - matches.keys())
    first = records[0]
    joined = replace(
        first,
        before=join(*[p.before for p in records[:MOST_MERGED]]),
        after=join(*[p.after for p in records[:MOST_MERGED]]),
        matches=tuple(matches.values()),
        seconds=sum(p.seconds for p in pieces),
        dropped=lost,
        edges=tuple(edge for p in pieces for edge in p.edges),
    )
    return [joined]


def _take_edges(watching: Observer) -> tuple[ProvenanceEdge | PassRecord, ...]:
    """Return the observer's edges, as far as the bound allows, and remove them all."""
    edges = tuple(watching.edges[: watching.room])
    watching.count += len(edges)
    watching.edges.clear()
    return edges


class Recording:
    """The record of one running pass: `with recording(...) as r: ...; r.after = state`.

    `r.matches` is a list to append to, or None without an observer.
    """

    __slots__ = (
        "_outer_edges", "_outer_steps", "_place", "_sources", "_start", "_watching", "after",
        "before", "doc", "matches", "name", "parent",
    )  # fmt: skip

    def __init__(self, name: str, doc: str, before: Any):
        self.name, self.doc, self.before = name, doc, before
        self.after: Any = None
        self._watching = observer()
        self.matches: list[Match] | None = None if self._watching is None else []
        self.parent: str | None = None
        self._start, self._place = 0.0, 0
        self._outer_edges: list[ProvenanceEdge | PassRecord] = []
        """The edges so far of the pass around this one."""
        self._outer_steps: Callable[[], Iterable[Match]] | None = None
        """The function that lists the steps of the pass around this one."""
        self._sources: tuple[Any, ...] = ()
        """The sources of new nodes in the pass around this one."""

    def __enter__(self) -> Recording:
        if self._watching is not None:
            if self._watching.parents:
                self.parent = self._watching.parents[-1]
                self._outer_edges, self._watching.edges = self._watching.edges, []
            self._watching.parents.append(self.name)
            self._place = len(self._watching.records)
            self._watching.records.append(PassRecord(self.name, self.doc, self.before, None))
            self._sources, self._watching.sources = self._watching.sources, ()
            self._outer_steps, self._watching.steps = self._watching.steps, None
            self._start = time.perf_counter()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Finish the record; an error that leaves the pass gets its name and its first state."""
        if error is not None and not hasattr(error, "stage"):
            error.stage, error.state = self.name, self.before  # type: ignore[attr-defined]
        watching = self._watching
        if watching is None:
            return
        seconds = time.perf_counter() - self._start
        watching.parents.pop()
        watching.sources = self._sources
        steps, watching.steps = watching.steps, self._outer_steps
        matches = self.matches or []
        first_matches = matches[: watching.room]
        watching.count += len(first_matches)
        # The place was reserved at the start: records are in execution order, outer before inner.
        watching.records[self._place] = PassRecord(
            self.name, self.doc, self.before, self.after,
            tuple(first_matches) if steps is None else LazyMatches(steps, watching),
            seconds, error, self.parent, len(matches) - len(first_matches), _take_edges(watching),
        )  # fmt: skip
        watching.edges = self._outer_edges


def recording(name: str, doc: str, before: Any) -> Recording:
    """Start the record of one pass over `before`; without an observer it costs nothing."""
    return Recording(name, doc, before)
