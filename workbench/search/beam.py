"""A beam search over lists of opts. How a form of the kernel is measured is handed in.

It goes in levels. At each level the best forms that have something left to try (one of each
line of descent first, `width` in all) are varied a few times, and what comes of it joins
them. Forms of one level share its time, whatever one run of theirs takes. Every form is
measured in turn with one and the same other, the best start, so that the drift of the machine
cancels; seconds are those of the other times a ratio. (In turn with the best so far it would
be a product of ratios, each of them chosen because it was small.) At the end the best is
measured against the start once more: it never returns worse than it was given. Source of the
idea: beam search over opts as in tinygrad and Halide's autoscheduler.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from workbench.base.target import Target
from workbench.ir.node.uop import UOp
from workbench.search.candidate import (
    Candidate,
    Found,
    Measure,
    Measured,
    Patience,
    SearchStopped,
)
from workbench.search.moves import Move, applied, moves

PORTION = 12
"""Forms that are made of another one at one level."""
CLAIM = 0.95
"""What would take this share of the best so far is measured again."""
FAR, GIVEN_UP, PATIENCE = 1.25, 2.0, 4
"""A form so many times as slow as the best of its line is not varied; a line whose best is so
many times as slow as the best of all is given up after so many levels."""
LEAP = 1.5
"""What is so many times as fast as the form it comes from is varied next, before others."""
FIRST_RUN, HOPELESS, LEAST_LIMIT_S = 3.0, 1.5, 0.05
"""A form is given up where its first run takes so many times as long as a run of the one that
it comes from, or its later runs do."""
CONFIRMED = 3
"""How many of the best are held against the start before the start is returned."""
CLEARLY = 0.97
"""What takes a greater share of the best start's time is no faster, as far as one can tell."""
ANCHOR_TOO_SLOW = 3.0
"""What all are measured beside is the best so far where that is so many times as fast."""


@dataclass(slots=True)
class _Node:
    """A trial that was measured, and what is left to try after it."""

    trial: Candidate
    ast: UOp
    line: int
    seconds: float
    left: Iterator[tuple[Move, UOp]]
    is_open: bool = True


@dataclass(slots=True)
class _Search:
    kernel: UOp
    target: Target
    measure: Measure
    is_over: Callable[[], bool]
    report: Callable[[Candidate], None]
    trials: list[Candidate] = field(default_factory=list)
    nodes: list[_Node] = field(default_factory=list)
    seen: set[UOp] = field(default_factory=set)
    digests: dict[str, int] = field(default_factory=dict)
    anchor: _Node | None = None

    def begin(self, starts: Sequence[Move]) -> None:
        """Measure the starts, each by itself: one may be very much slower than another. All of
        them, even where one takes all the time: the next may be a hundred times as fast."""
        for line, start in enumerate(starts):
            ast = applied(self.kernel, start.opts, self.target)
            if ast is None or ast in self.seen:
                continue
            self.seen.add(ast)
            for measured in self.measure(ast, [ast], None, False):
                self._note(start, ast, measured, None, None, line)
        self.anchor = self.best()

    def anchored(self) -> _Node | None:
        """Return what forms are measured beside."""
        best, anchor = self.best(), self.anchor
        if anchor is None or (best and best.seconds * ANCHOR_TOO_SLOW < anchor.seconds):
            self.anchor = best
        return self.anchor

    def best(self) -> _Node | None:
        """Return the fastest so far."""
        return min(self.nodes, key=lambda n: n.seconds, default=None)

    def level(self, nodes: Sequence[_Node], at_once: int) -> None:
        """Vary each of `nodes` a few times, in turn by the time that has gone into each."""
        rest = {n.trial: islice(self._fresh(n), PORTION) for n in nodes}
        spent = {n.trial: 0.0 for n in nodes}
        while rest and not self.is_over():
            node = min(
                (n for n in nodes if n.trial in rest), key=lambda n: spent[n.trial]
            )
            began = time.monotonic()
            batch = list(islice(rest[node.trial], at_once))
            if not batch or self._vary(node, batch) < node.seconds / LEAP:
                del rest[node.trial]
            spent[node.trial] += time.monotonic() - began

    def _vary(self, node: _Node, batch: Sequence[tuple[Move, UOp]]) -> float:
        """Measure forms that come from `node`; return the least of their times."""
        against = self.anchored() or node
        first_s = max(LEAST_LIMIT_S, FIRST_RUN * node.seconds)
        patience = Patience(first_s, HOPELESS * node.seconds / against.seconds)
        forms = [ast for _, ast in batch]
        results = self.measure(against.ast, forms, patience, False)
        least = math.inf
        for (move, ast), measurement in zip(batch, list(results), strict=True):
            measured = self._sure(measurement, ast, against)
            trial = self._note(move, ast, measured, against, node, node.line)
            least = min(least, math.inf if trial.seconds is None else trial.seconds)
        return least

    def _fresh(self, node: _Node) -> Iterator[tuple[Move, UOp]]:
        """Yield what is left to try after a node, without what has been tried elsewhere."""
        for move, ast in node.left:
            if self.is_over():
                return
            if ast not in self.seen:
                self.seen.add(ast)
                yield move, ast
        node.is_open = False

    def _sure(self, measurement: Measured, ast: UOp, against: _Node) -> Measured:
        """Return what is measured of a form: once more, thoroughly, where it would be the best.
        Whoever disturbs the other form makes this one look good."""
        best = self.best() or against
        if (
            measurement.ratio is None
            or measurement.ratio * against.seconds > CLAIM * best.seconds
        ):
            return measurement
        (again,) = self.measure(against.ast, [ast], None, True)
        if again.ratio is None:
            return again
        return replace(measurement, ratio=max(measurement.ratio, again.ratio))

    def _note(
        self,
        move: Move,
        ast: UOp,
        measured: Measured,
        beside: _Node | None,
        parent: _Node | None,
        line: int,
    ) -> Candidate:
        number, seconds, note = len(self.trials), measured.seconds, measured.error
        if measured.same:
            note = f"the same program as {self.digests.get(measured.same, '?')}"
        if beside is not None and measured.ratio is not None:
            seconds = beside.seconds * measured.ratio
        number_of = None if parent is None else parent.trial.number
        trial = Candidate(number, number_of, move.opts, move.how, seconds, note)
        self.trials.append(trial)
        if measured.digest:
            self.digests.setdefault(measured.digest, number)
        if seconds is not None and not note:
            left = moves(self.kernel, move.opts, ast, self.target)
            self.nodes.append(_Node(trial, ast, line, seconds, left))
        self.report(trial)
        return trial

    def beam(self, level: int, width: int) -> list[_Node]:
        """Return what to vary next: the best of each line that is alive, then the best of all."""
        best: dict[int, float] = {}
        for node in self.nodes:
            best[node.line] = min(best.get(node.line, node.seconds), node.seconds)
        least = min(best.values(), default=0.0)
        alive = {
            n for n, s in best.items() if level < PATIENCE or s <= GIVEN_UP * least
        }
        chosen = [
            node
            for node in sorted(self.nodes, key=lambda n: n.seconds)
            if node.is_open and node.line in alive
            and node.seconds <= FAR * best[node.line]
        ]  # fmt: skip
        firsts = {node.line: node for node in reversed(chosen)}.values()
        ranked = sorted(firsts, key=lambda n: n.seconds)
        return (ranked + [n for n in chosen if n not in ranked])[:width]

    def confirm(self) -> tuple[int, float | None]:
        """Return the best when measured once more, and how many times as fast as the first start
        it is: first held against the best start, then against the first one."""
        ranked = sorted(self.nodes, key=lambda n: n.seconds)
        first = next((n for n in self.nodes if n.trial.number == 0), None)
        starts = [n for n in ranked if n.trial.parent is None]
        if not starts:
            return 0, None
        best = starts[0]
        for node in ranked[:CONFIRMED]:
            if node.seconds < best.seconds and self._ratio(node, best) < CLEARLY:
                best = node
                break
        if first is None:  # it took longer than it was given: whatever ran is faster
            return best.trial.number, None
        ratio = 1.0 if best is first else self._ratio(best, first)
        return (best.trial.number, 1.0 / ratio) if ratio < 1.0 else (0, 1.0)

    def _ratio(self, node: _Node, other: _Node) -> float:
        """Return how many times another's time a form takes, measured thoroughly; infinity where
        something is wrong with it, which is noted."""
        (measurement,) = self.measure(other.ast, [node.ast], None, True)
        if measurement.error:
            number = node.trial.number
            self.trials[number] = replace(node.trial, note=measurement.error)
        return (
            math.inf
            if measurement.error or measurement.ratio is None
            else measurement.ratio
        )


def search(
    kernel: UOp,
    starts: Sequence[Move],
    target: Target,
    measure: Measure,
    width: int,
    is_over: Callable[[], bool],
    report: Callable[[Candidate], None] = lambda trial: None,
    at_once: int = 1,
) -> Found:
    """Return what a search from `starts`, lists of opts for `kernel`, finds for `target`.

    The first start is what must not get worse; it is among the trials in any case. `is_over`
    ends it; so does Ctrl-C, and Stopped from it or from `measure`: then the best so far is
    returned as it was measured. `report` hears of every trial, and `at_once` forms are
    measured at a time.
    """
    state = _Search(kernel, target, measure, is_over, report)
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
    except (KeyboardInterrupt, SearchStopped) as stop:
        ended = "stopped" if isinstance(stop, SearchStopped) else "interrupted"
        best, speedup = _best_so_far(state), None
    first = Candidate(0, None, starts[0].opts, starts[0].how, None, "not measured")
    return Found(tuple(state.trials) or (first,), best, speedup, ended)


def _best_so_far(state: _Search) -> int:
    """Return the best by more than noise, without measuring it again; else the first start."""
    best = state.best()
    start = next((n.seconds for n in state.nodes if n.trial.number == 0), None)
    if best is None or (start is not None and best.seconds > CLEARLY * start):
        return 0
    return best.trial.number
