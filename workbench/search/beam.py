"""A beam search over lists of opts. The function that measures candidates is an argument.

It goes in levels. At each level the best `width` candidates that have untried moves are varied a
few times; the best of each line of descent comes first. The new candidates join the old ones. The
candidates of a level get equal time, however long their runs are.

Every candidate is measured in turns with one anchor, the best start, so that the drift of the
machine cancels; its seconds are those of the anchor times a ratio. (Measured in turns with the best
so far, they would be a product of ratios that were each selected for being small.) At the end the
best is measured against the start once more: the result is never slower than the start. The result
of the best candidate is checked against the meaning of the expression, not against another
candidate. Source of the idea: beam search over opts as in tinygrad and Halide's autoscheduler.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from workbench.base.target import Target
from workbench.ir.node.uop import UOp
from workbench.search.moves import (
    Candidate,
    Measure,
    Measured,
    Move,
    Patience,
    Problem,
    SearchOutcome,
    SearchStopped,
    applied,
    moves,
)

PORTION = 12
"""The maximal number of new candidates from one candidate at one level."""
CLAIM = 0.95
"""A candidate is measured again if it seems to take less than this share of the best time."""
MOST_SLOWDOWN = 1.25
"""A candidate that takes more than this many times as long as the best of its line of descent is
not varied."""
GIVE_UP = 2.0
"""A line of descent is given up if its best takes more than this many times as long as the best of
all."""
PATIENCE = 4
"""Levels before a line of descent may be given up."""
LEAP = 1.5
"""A new candidate that is this many times as fast as its parent ends the level for the parent, so
that the new one is varied sooner."""
FIRST_RUN = 3.0
"""A first run must end within the time of this many runs of its parent."""
HOPELESS = 1.5
"""A candidate is given up if its later runs take this many times as long as its parent's."""
LEAST_LIMIT_S = 0.05
"""Seconds that a first run may always take."""
CONFIRMED = 3
"""The number of candidates, the best first, that are compared with the best start at the end."""
CLEARLY = 0.97
"""A candidate counts as faster if it takes less than this share of the best start's time."""
ANCHOR_TOO_SLOW = 3.0
"""The best so far becomes the anchor once it is this many times as fast as the anchor."""


@dataclass(slots=True)
class _Node:
    """A measured candidate, and its untried moves."""

    candidate: Candidate
    kernel: UOp
    line: int
    seconds: float
    moves: Iterator[tuple[Move, UOp]]
    is_open: bool = True


@dataclass(slots=True)
class _Search:
    kernel: UOp
    target: Target
    measure: Measure
    is_over: Callable[[], bool]
    report: Callable[[Candidate], None]
    problem: Problem
    candidates: list[Candidate] = field(default_factory=list)
    nodes: list[_Node] = field(default_factory=list)
    visited: set[UOp] = field(default_factory=set)
    digests: dict[str, int] = field(default_factory=dict)
    anchor: _Node | None = None
    is_sure: bool = True
    """Whether the last comparison was of undisturbed runs."""

    def begin(self, starts: Sequence[Move]) -> None:
        """Measure the starts, each by itself, since one may be much slower than another. All are
        measured, even if one takes all the time: the next may be a hundred times as fast."""
        for line, start in enumerate(starts):
            kernel = applied(self.kernel, start.opts, self.target)
            if kernel is None or kernel in self.visited:
                continue
            self.visited.add(kernel)
            for measured in self.measure(kernel, [kernel], None, False):
                self._add(start, kernel, measured, None, None, line)
        self.anchor = self.best()

    def anchored(self) -> _Node | None:
        """Return the anchor, with which candidates are measured; None if no start has a time."""
        best, anchor = self.best(), self.anchor
        if anchor is None or (best and best.seconds * ANCHOR_TOO_SLOW < anchor.seconds):
            self.anchor = best
        return self.anchor

    def best(self) -> _Node | None:
        """Return the fastest candidate so far; None if none has a time."""
        return min(self.nodes, key=lambda n: n.seconds, default=None)

    def level(self, nodes: Sequence[_Node], at_once: int) -> None:
        """Vary each of `nodes` a few times, always the one that has had the least time so far."""
        rest = {n.candidate: islice(self._untried(n), PORTION) for n in nodes}
        seconds_by_candidate = {n.candidate: 0.0 for n in nodes}
        while rest and not self.is_over():
            node = min(
                (n for n in nodes if n.candidate in rest),
                key=lambda n: seconds_by_candidate[n.candidate],
            )
            began = time.monotonic()
            batch = list(islice(rest[node.candidate], at_once))
            if not batch or self._vary(node, batch) < node.seconds / LEAP:
                del rest[node.candidate]
            seconds_by_candidate[node.candidate] += time.monotonic() - began

    def _vary(self, node: _Node, batch: Sequence[tuple[Move, UOp]]) -> float:
        """Measure a batch of candidates from `node`; return the least of their seconds."""
        against = self.anchored() or node
        first_s = max(LEAST_LIMIT_S, FIRST_RUN * node.seconds)
        patience = Patience(first_s, HOPELESS * node.seconds / against.seconds)
        kernels = [kernel for _, kernel in batch]
        results = self.measure(against.kernel, kernels, patience, False)
        least = math.inf
        for (move, kernel), measurement in zip(batch, list(results), strict=True):
            measured = self._remeasured(measurement, kernel, against)
            candidate = self._add(move, kernel, measured, against, node, node.line)
            least = min(least, math.inf if candidate.seconds is None else candidate.seconds)
        return least

    def _untried(self, node: _Node) -> Iterator[tuple[Move, UOp]]:
        """Yield the untried moves from a node, without those to kernels that were tried before."""
        for move, kernel in node.moves:
            if self.is_over():
                return
            if kernel not in self.visited:
                self.visited.add(kernel)
                yield move, kernel
        node.is_open = False

    def _remeasured(self, measurement: Measured, kernel: UOp, against: _Node) -> Measured:
        """Return the measurement of a candidate. If it would be the best, measure it again with
        more samples, since a disturbance of the anchor makes it look good, and check its result."""
        best = self.best() or against
        if measurement.ratio is None or measurement.ratio * against.seconds > CLAIM * best.seconds:
            return measurement
        (again,) = self.measure(against.kernel, [kernel], None, True)
        if again.ratio is None:
            return again
        if wrong := self.problem(kernel):
            return Measured(error=wrong, digest=measurement.digest)
        if again.is_sure and not measurement.is_sure:
            return replace(measurement, ratio=again.ratio, is_sure=True)
        return replace(measurement, ratio=max(measurement.ratio, again.ratio))

    def _add(
        self,
        move: Move,
        kernel: UOp,
        measured: Measured,
        beside: _Node | None,
        parent: _Node | None,
        line: int,
    ) -> Candidate:
        number, seconds, note = len(self.candidates), measured.seconds, measured.error
        if measured.same:
            note = f"the same program as {self.digests.get(measured.same, '?')}"
        if beside is not None and measured.ratio is not None:
            seconds = beside.seconds * measured.ratio
        number_of = None if parent is None else parent.candidate.number
        candidate = Candidate(
            number, number_of, move.opts, move.how, seconds, note, measured.spread
        )
        self.candidates.append(candidate)
        if measured.digest:
            self.digests.setdefault(measured.digest, number)
        if seconds is not None and not note:
            node_moves = moves(self.kernel, move.opts, kernel, self.target)
            self.nodes.append(_Node(candidate, kernel, line, seconds, node_moves))
        self.report(candidate)
        return candidate

    def beam(self, level: int, width: int) -> list[_Node]:
        """Return the candidates to vary next: the best of each line of descent that is not given
        up, then the best of all; at most `width`."""
        best: dict[int, float] = {}
        for node in self.nodes:
            best[node.line] = min(best.get(node.line, node.seconds), node.seconds)
        least = min(best.values(), default=0.0)
        alive = {n for n, s in best.items() if level < PATIENCE or s <= GIVE_UP * least}
        open_nodes = [
            node
            for node in sorted(self.nodes, key=lambda n: n.seconds)
            if node.is_open and node.line in alive
            and node.seconds <= MOST_SLOWDOWN * best[node.line]
        ]  # fmt: skip
        firsts = {node.line: node for node in reversed(open_nodes)}.values()
        ranked = sorted(firsts, key=lambda n: n.seconds)
        return (ranked + [n for n in open_nodes if n not in ranked])[:width]

    def confirm(self) -> tuple[int, float | None]:
        """Return the number of the best candidate with a right result, and how many times as fast
        as the first start it is (None: not compared). It is compared with the best start, then with
        the first start. If no result is right, the number is 0, and the first start's note says
        why."""
        ranked = sorted(self.nodes, key=lambda n: n.seconds)
        first = next((n for n in self.nodes if n.candidate.number == 0), None)
        starts = [n for n in ranked if n.candidate.parent is None]
        best = next((n for n in starts if self._is_right(n)), None)
        if best is None:
            best = next((n for n in ranked if self._is_right(n)), None)
            return (0 if best is None else best.candidate.number), None
        for node in [n for n in ranked if n.seconds < best.seconds][:CONFIRMED]:
            if self._is_right(node) and self._ratio(node, best) < CLEARLY:
                best = node
                break
        if first is None or not self._is_right(first):  # no first start to compare with
            return best.candidate.number, None
        ratio = 1.0 if best is first else self._ratio(best, first)
        if ratio >= 1.0:
            return 0, 1.0
        return best.candidate.number, 1.0 / ratio if self.is_sure else None

    def _is_right(self, node: _Node) -> bool:
        """Whether the result of a candidate is right; if not, note what is wrong."""
        wrong = self.problem(node.kernel)
        if wrong:
            self.candidates[node.candidate.number] = replace(node.candidate, note=wrong)
        return not wrong

    def _ratio(self, node: _Node, other: _Node) -> float:
        """Return a candidate's time as a multiple of another's, with many samples. If the candidate
        fails, note why, and return infinity."""
        (measurement,) = self.measure(other.kernel, [node.kernel], None, True)
        if measurement.error:
            number = node.candidate.number
            self.candidates[number] = replace(node.candidate, note=measurement.error)
        self.is_sure = measurement.is_sure
        return math.inf if measurement.error or measurement.ratio is None else measurement.ratio


def search(
    kernel: UOp,
    starts: Sequence[Move],
    target: Target,
    measure: Measure,
    width: int,
    is_over: Callable[[], bool],
    report: Callable[[Candidate], None] = lambda candidate: None,
    at_once: int = 1,
    problem: Problem = lambda kernel: "",
) -> SearchOutcome:
    """Return the outcome of a search for `target` from `starts`, lists of opts for `kernel`.

    The result is never slower than the first start, which is always a candidate. The search ends
    when `is_over()`. Ctrl-C, and SearchStopped from `is_over` or `measure`, end it at once: then
    the best so far is returned as it was measured. `report` is called with every candidate,
    `at_once` candidates are measured at a time, and `problem` returns what is wrong with the result
    of a candidate.
    """
    state = _Search(kernel, target, measure, is_over, report, problem)
    try:
        state.begin(starts)
        over = "the time was over"
        ended, level = over if is_over() else "nothing left to try", 0
        while beam := state.beam(level, width):
            state.level(beam, at_once)
            level += 1
            if is_over():
                ended = over
                break
        best, speedup = state.confirm()
        if not state.nodes and state.candidates:
            ended += f"; no candidate could be timed: {state.candidates[0].note}"
    except (KeyboardInterrupt, SearchStopped) as stop:
        ended = "stopped" if isinstance(stop, SearchStopped) else "interrupted"
        best, speedup = _best_so_far(state), None
    first = Candidate(0, None, starts[0].opts, starts[0].how, None, "not measured")
    return SearchOutcome(tuple(state.candidates) or (first,), best, speedup, ended)


def _best_so_far(state: _Search) -> int:
    """Return the number of the best candidate if it is clearly faster than the first start, else 0.
    Nothing is measured again."""
    noted = {c.number for c in state.candidates if c.note}
    state.nodes = [n for n in state.nodes if n.candidate.number not in noted]
    best = state.best()
    start = next((n.seconds for n in state.nodes if n.candidate.number == 0), None)
    if best is None or (start is not None and best.seconds > CLEARLY * start):
        return 0
    return best.candidate.number
