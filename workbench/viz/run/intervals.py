"""Nested intervals of a thread, their depths, and the gaps between them, cut by other intervals.

An interval is (start, end, value), in integers of one unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Interval(NamedTuple):
    """From `start` to `end`, and the place of what it is."""

    start: int
    end: int
    value: int


def depths(intervals: Sequence[Interval]) -> list[int]:
    """Return the depth of each interval, in order of their starts: the number of intervals around
    it that have not ended when it starts."""
    open_ends: list[int] = []
    found = []
    for each in intervals:
        while open_ends and open_ends[-1] <= each.start:
            open_ends.pop()
        found.append(len(open_ends))
        open_ends.append(each.end)
    return found


def innermost(intervals: Sequence[Interval]) -> Iterator[Interval]:
    """Yield disjoint intervals in order, each with the value of the innermost of nested intervals
    there; what lies in none is left out. The intervals are in order of their starts, outer first.
    """
    open_ones: list[Interval] = []
    at = 0
    for each in [*intervals, None]:
        while open_ones and (each is None or open_ones[-1].end <= each.start):
            last = open_ones.pop()
            if last.end > at:
                yield Interval(at, last.end, last.value)
                at = last.end
        if each is None:
            return
        if open_ones and each.start > at:
            yield Interval(at, each.start, open_ones[-1].value)
        at = max(at, each.start)
        open_ones.append(each)


def gaps(busy: Iterable[Interval], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of start..end in which none of the intervals lies; they are in order of their
    starts."""
    at = start
    for each in busy:
        if each.start > at:
            yield at, min(each.start, end)
        at = max(at, each.end)
        if at >= end:
            return
    if at < end:
        yield at, end


def cut(
    pieces: Iterable[tuple[int, int]], by: Sequence[Interval], other: int
) -> Iterator[Interval]:
    """Yield the pieces in order, cut at the disjoint intervals `by`, with the value of each, or
    `other` where none lies. Neighbours in one piece that have one value are one interval."""
    place = 0
    for start, end in pieces:
        while place < len(by) and by[place].end <= start:
            place += 1
        at, at_place = start, place
        found: list[Interval] = []
        while at < end:
            inside = by[at_place] if at_place < len(by) else None
            if inside is None or inside.start >= end:
                piece = Interval(at, end, other)
            elif inside.start > at:
                piece = Interval(at, inside.start, other)
            else:
                piece = Interval(at, min(inside.end, end), inside.value)
                at_place += 1
            at = piece.end
            if found and found[-1].value == piece.value:
                found[-1] = found[-1]._replace(end=piece.end)
            else:
                found.append(piece)
        yield from found
