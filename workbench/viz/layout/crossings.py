"""How often lines cross, for every order of a row at once: matrices of crossings.

`crossing[u, v]` counts the crossings of the lines at u with those at v, if u is left of v.
It depends on the orders of the rows beside, not on that of the row itself. So with it, what
any change of a row's order gains is a sum of entries.
Lines into one node end at its ports, in the order of operands, and cross before they do.

Source: Matuszewski, Schoenfeld, Molitor 1999, "Using sifting for k-layer crossing
minimization"; the matrix is the crossing table of Juenger and Mutzel 1997.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.viz.layout.proper import Proper

Array = np.ndarray[Any, Any]
Saved = list[list[Any]]
EMPTY, EMPTY_START = np.zeros(0, np.int64), np.zeros(1, np.int64)
STEP = 2_000
"""What looking at a matrix costs beside its cells, in cells."""
SAVE = 100
"""What saving a row costs, in the same coin."""


class Order:
    """An order of each row that improves in place. `rows` are vertices from left to right."""

    def __init__(self, graph: Proper, rows: Sequence[Sequence[int]], work: int):
        """Start from `rows`; `work` is how many cells of matrices may be looked at."""
        self.vertices = [np.array(row) for row in rows]
        self.number = number = [0] * len(graph.layer)
        for row in rows:
            for place, vertex in enumerate(row):
                number[vertex] = place
        # lines between row r and r + 1: the ends of each, by the places they had at first
        self.lines = [
            (
                np.array([number[u] for v in row for u in graph.up[v]], int),
                np.array([number[v] for v in row for _ in graph.up[v]], int),
            )
            for row in rows[1:]
        ]
        self.orders = [np.arange(len(row)) for row in rows]
        self.above: list[Array | None] = [None] * len(rows)
        self.below: list[Array | None] = [None] * len(rows)
        self.counts: list[int | None] = [None] * (len(rows) - 1)
        self.work = work

    @property
    def rows(self) -> list[list[int]]:
        """The vertices of every row, from the left."""
        return [self.row(number) for number in range(len(self.orders))]

    def row(self, number: int) -> list[int]:
        vertices: list[int] = self.vertices[number][self.orders[number]].tolist()
        return vertices

    def set_row(self, number: int, vertices: Sequence[int]) -> None:
        self._set(number, np.array([self.number[v] for v in vertices]))

    def saved(self) -> Saved:
        """Return what `restore` takes; arrays never change in place."""
        self.work -= SAVE * len(self.orders)
        return [
            list(part) for part in (self.orders, self.above, self.below, self.counts)
        ]

    def restore(self, saved: Saved) -> None:
        """Go back to what was saved; the work done since stays done."""
        self.orders, self.above, self.below, self.counts = saved

    def crossings(self) -> int:
        """Return how often lines cross in all."""
        return sum(self.crossings_by_row())

    def crossings_by_row(self) -> list[int]:
        """Return how often lines cross below each row but the last."""
        crossings = []
        for row, count in enumerate(self.counts):
            if count is None:
                order = self.orders[row]
                ordered = self._below(row).take(order, 0).take(order, 1)
                self.counts[row] = count = int(np.triu(ordered, 1).sum())
            crossings.append(count)
        return crossings

    def improve(self, row: int) -> bool:
        """Move vertices of a row while that helps, the best move first; whether one did."""
        order = self.orders[row]
        count = len(order)
        if count < 2 or self.work <= 0:
            return False
        crossing = self._above(row) + self._below(row)
        excess = (crossing - crossing.T).take(order, 0).take(order, 1)
        self.work -= STEP + count * count
        while (move := _best_move(excess)) is not None:
            moved = _moved(count, *move)
            excess, order = excess.take(moved, 0).take(moved, 1), order[moved]
            self.work -= STEP + count * count
        if order is self.orders[row]:
            return False
        self._set(row, order)
        return True

    def _set(self, row: int, order: Array) -> None:
        self.orders[row] = order
        if row:
            self.below[row - 1] = self.counts[row - 1] = None
        if row + 1 < len(self.orders):
            self.above[row + 1] = self.counts[row] = None

    def _above(self, row: int) -> Array:
        """Return the crossings of lines that come from the row above."""
        crossings = self.above[row]
        if crossings is None:
            count = len(self.orders[row])
            tops, ends = self.lines[row - 1] if row else (EMPTY, EMPTY)
            place = _inverse(self.orders[row - 1])[tops] if row else EMPTY
            cells = len(self.orders[row - 1]) * count if row else 0
            starts = np.bincount(place * count + ends, minlength=cells)
            starts = starts.reshape(-1, count)
            # a line crosses those of vertices to its right that start further left
            left = starts.cumsum(0) - starts
            crossings = self.above[row] = _summed(left[place], ends, count)
        return crossings

    def _below(self, row: int) -> Array:
        """Return the crossings of lines that lead to the row below, port by port."""
        crossings = self.below[row]
        if crossings is None:
            count = len(self.orders[row])
            tops = EMPTY
            if row + 1 < len(self.orders):
                tops, ends = self.lines[row]
                place = _inverse(self.orders[row + 1])[ends]
                tops = tops[place.argsort(kind="stable")]
            lines = np.zeros((len(tops), count), np.int64)
            lines[np.arange(len(tops)), tops] = 1
            left = lines.cumsum(0) - lines
            crossings = self.below[row] = _summed(left, tops, count)
        return crossings


def _summed(rows: Array, groups: Array, count: int) -> Array:
    """Return for each group, of `count`, the sum of its rows."""
    order = groups.argsort(kind="stable")
    sums = np.zeros((len(rows) + 1, count), np.int64)
    rows[order].cumsum(0, out=sums[1:])
    ends = np.bincount(groups, minlength=count).cumsum()
    starts = np.concatenate((EMPTY_START, ends[:-1]))
    totals: Array = sums[ends] - sums[starts]
    return totals


def _best_move(excess: Array) -> tuple[int, int] | None:
    """Return (from, to) of the move that saves most crossings; None where none does.

    `excess[i, k]` is what it costs to have i left of k rather than right of it.
    """
    sums = excess.cumsum(1)
    change = sums.diagonal()[:, None] - sums + excess * _lower(len(excess))
    vertex, place = divmod(int(change.argmin()), len(excess))
    return (vertex, place) if change[vertex, place] < 0 else None


@lru_cache(64)
def _lower(count: int) -> Array:
    """Return a matrix with 1 below the diagonal."""
    return np.tri(count, k=-1, dtype=np.int64)


def _moved(count: int, start: int, end: int) -> Array:
    places = list(range(count))
    places.insert(end, places.pop(start))
    return np.array(places)


def _inverse(order: Array) -> Array:
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place
