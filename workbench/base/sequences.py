"""Sequences compared element by element: a common beginning, and repeated parts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import takewhile
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")


def common_prefix(*rows: tuple[T, ...]) -> tuple[T, ...]:
    """Return the longest beginning that all rows share; () without rows."""
    columns = zip(*rows, strict=False)
    alike = takewhile(lambda column: len(set(column)) == 1, columns)
    return tuple([column[0] for column in alike])


class Repeat(NamedTuple):
    """The `size` items from position `first` on, which occur `times` times in succession."""

    first: int
    size: int
    times: int

    @property
    def end(self) -> int:
        """The position after its last item."""
        return self.first + self.size * self.times


Runs = npt.NDArray[np.int64]
"""Rows (first, end, period): each item of first..end, after the first `period` of them, equals the
item one period before it. No row can be extended."""


def repeats(items: Sequence[Hashable]) -> list[Repeat]:
    """Return the repeats of a sequence in order, outer ones before inner ones. Two repeats are
    disjoint, or one lies in a repetition of the other; each repetition has its own inner repeats.

    In a stretch, the repeat that saves most items is chosen; among equal ones the shortest period,
    then the first. The stretches before and after it, and each repetition, are searched likewise.
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
    """Return the stretches that consist of at least two periods."""
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
    """Return the repeat in begin..end that saves most items; None if none saves any."""
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
