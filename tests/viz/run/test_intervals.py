"""Nested intervals against a count of every moment."""

from __future__ import annotations

import random

from tests.support import count
from workbench.viz.run.intervals import Interval, cut, depths, gaps, innermost

LENGTH = 40


def nested(pick: random.Random, start: int, end: int, depth: int = 0) -> list[Interval]:
    """Return random intervals in start..end, each inside of the one around it."""
    found, at = [], start
    while at < end and pick.random() < 0.8:
        first = pick.randint(at, end)
        last = pick.randint(first, end)
        found.append(Interval(first, last, pick.randint(0, 3)))
        if depth < 3:
            found += nested(pick, first, last, depth + 1)
        at = last
    return found


def test_each_moment_has_the_value_of_the_innermost_interval() -> None:
    for seed in range(count(400)):
        pick = random.Random(seed)
        own = sorted(nested(pick, 0, LENGTH), key=lambda each: (each.start, -each.end))
        wanted: list[int | None] = [None] * LENGTH
        for each in own:  # inner ones come later
            wanted[each.start : each.end] = [each.value] * (each.end - each.start)
        actual: list[int | None] = [None] * LENGTH
        for each in innermost(own):
            assert actual[each.start : each.end] == [None] * (each.end - each.start), seed
            actual[each.start : each.end] = [each.value] * (each.end - each.start)
        assert actual == wanted, f"seed {seed}: {own}"


def test_gaps_are_what_is_not_busy_and_are_cut_exactly() -> None:
    for seed in range(count(400)):
        pick = random.Random(seed)
        starts = sorted(pick.randint(-5, LENGTH) for _ in range(pick.randint(0, 6)))
        busy = [Interval(at, at + pick.randint(0, 9), 0) for at in starts]
        work = list(innermost(sorted(nested(pick, 0, LENGTH), key=lambda e: (e.start, -e.end))))
        of_work: list[int] = [9] * LENGTH
        for each in work:
            of_work[each.start : each.end] = [each.value] * (each.end - each.start)
        idle = [at for at in range(LENGTH) if not any(b.start <= at < b.end for b in busy)]
        pieces = list(cut(gaps(busy, 0, LENGTH), work, 9))
        moments = [(at, piece.value) for piece in pieces for at in range(piece.start, piece.end)]
        assert moments == [(at, of_work[at]) for at in idle], f"seed {seed}: {busy} {work}"


def test_depths_count_what_is_open() -> None:
    own = [Interval(0, 10, 0), Interval(0, 4, 0), Interval(1, 2, 0), Interval(4, 6, 0)]
    assert depths([*own, Interval(10, 12, 0)]) == [0, 1, 2, 1, 0]
