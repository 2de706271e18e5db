"""The candidates of a search, for a record and a file: a row each, below its parent."""

from __future__ import annotations

from workbench.kernel.kernel import Kernel
from workbench.search.candidate import Candidate
from workbench.search.result import SearchResult
from workbench.viz.schema.variant import CandidateRow, SearchRow

MOST_CANDIDATES = 1000
"""Most rows of one search: the first ones, and the best with its ancestors."""
MOST_TEXT = 300


def search_row(search: SearchResult[Kernel]) -> SearchRow:
    """Return the row of a search, parents before their children."""
    way = _way(search)
    candidates = [t for t in search.tried if t.number < MOST_CANDIDATES or t.number in way]
    return SearchRow(
        len(search.tried),
        len(search.ranked()),
        search.best,
        search.speedup,
        search.seconds,
        search.ended,
        search.device,
        [_candidate_row(t) for t in candidates],
        search.is_predicted,
    )


def _way(search: SearchResult[Kernel]) -> set[int]:
    """Return the numbers of the best candidate and of its ancestors."""
    way, at = set[int](), search.best
    while at not in way:
        way.add(at)
        parent = search.tried[at].parent
        at = at if parent is None else parent
    return way


def _candidate_row(candidate: Candidate) -> CandidateRow:
    how, note = candidate.how[:MOST_TEXT], candidate.note[:MOST_TEXT]
    return CandidateRow(
        candidate.number, candidate.parent, how, candidate.seconds, note, candidate.spread
    )
