"""Sequences compared element by element: a common beginning, and repeated parts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import takewhile
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


def common_prefix(*rows: tuple[T, ...]) -> tuple[T, ...]:
    """Return what all rows begin with, of at least one."""
    columns = zip(*rows, strict=False)
    alike = takewhile(lambda column: len(set(column)) == 1, columns)
    return tuple([column[0] for column in alike])


class Repeat(NamedTuple):
    """`size` items from place `first` on, which stand there `times` times one after the other."""

    first: int
    size: int
    times: int

    @property
    def end(self) -> int:
        """The place after its last item."""
        return self.first + self.size * self.times


Runs = npt.NDArray[np.int64]
"""Rows (first, end, period): each item of first..end but the first `period` equals the item a
period before it. None can be made longer."""


def repeats(items: Sequence[Hashable]) -> list[Repeat]:
    """Return the repeats of a sequence, outer ones before those in them, each repetition with its
    own. Two repeats are apart, or one is in a repetition of the other.

    Of all repeats in a stretch that which saves most items is taken, of two that save the same the
    shorter period, then the first; what is before, in and after it is searched likewise.
    """
    numbers: dict[Hashable, int] = {}
    symbols = np.array([numbers.setdefault(i, len(numbers)) for i in items], np.int64)
    runs = _runs(symbols)
    result: list[Repeat] = []
    stretches = [(0, len(items))] if len(runs) else []
    while stretches:
        begin, end = stretches.pop()
        best = _best(runs, begin, end)
        if best is None:
            continue
        result.append(best)
        starts = range(best.first, best.end, best.size)
        inside = [(start, start + best.size) for start in starts]
        stretches += [(begin, best.first), *inside, (best.end, end)]
    return sorted(result, key=lambda repeat: (repeat.first, -repeat.end))


def _runs(symbols: npt.NDArray[np.int64]) -> Runs:
    """Return the stretches that have a period, and at least two of it."""
    rows = [np.empty((0, 3), np.int64)]
    for period in range(1, len(symbols) // 2 + 1):
        equal = symbols[period:] == symbols[:-period]
        if equal.any():
            edges = np.flatnonzero(np.diff(equal, prepend=False, append=False))
            firsts, ends = edges[::2], edges[1::2] + period
            periods = np.full(len(firsts), period)
            spans = np.stack([firsts, ends, periods], axis=1)
            rows.append(spans[ends - firsts >= 2 * period])
    return np.concatenate(rows)


def _best(runs: Runs, begin: int, end: int) -> Repeat | None:
    """Return the repeat between two places that saves most items; None where there is none."""
    firsts, ends = np.maximum(runs[:, 0], begin), np.minimum(runs[:, 1], end)
    saved = ((ends - firsts) // runs[:, 2] - 1) * runs[:, 2]
    most = saved.max(initial=0)
    if most <= 0:
        return None
    candidates = np.flatnonzero(saved == most)
    order = np.lexsort((firsts[candidates], runs[candidates, 2]))
    place = candidates[order[0]]
    first, size = int(firsts[place]), int(runs[place, 2])
    return Repeat(first, size, int(ends[place] - first) // size)
