"""What a search tried, as a record and a file keep it: a row per candidate, below what it came
from."""

from __future__ import annotations

from workbench.kernel.kernel import Kernel
from workbench.search.candidate import Candidate
from workbench.search.result import SearchResult
from workbench.viz.schema.variant import SearchRow, TrialRow

MOST_TRIALS = 1000
"""Rows that are kept of one search: the first ones, and the best with all that it comes from."""
MOST_TEXT = 300


def search_row(search: SearchResult[Kernel]) -> SearchRow:
    """Return a search as a record has it: a parent before its children."""
    way = _way(search)
    candidates = [t for t in search.tried if t.number < MOST_TRIALS or t.number in way]
    return SearchRow(
        len(search.tried),
        len(search.ranked()),
        search.best,
        search.speedup,
        search.seconds,
        search.ended,
        search.device,
        [_trial_row(t) for t in candidates],
    )


def _way(search: SearchResult[Kernel]) -> set[int]:
    """Return the numbers of the best and of all that it comes from."""
    way, at = set[int](), search.best
    while at not in way:
        way.add(at)
        parent = search.tried[at].parent
        at = at if parent is None else parent
    return way


def _trial_row(candidate: Candidate) -> TrialRow:
    how, note = candidate.how[:MOST_TEXT], candidate.note[:MOST_TEXT]
    return TrialRow(candidate.number, candidate.parent, how, candidate.seconds, note)
