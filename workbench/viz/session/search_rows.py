"""What a search tried, as a record and a file keep it: a row per form, below what it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.kernel.kernel import Kernel
from workbench.search.candidate import Candidate
from workbench.search.result import SearchResult, seconds_of

MOST_TRIALS = 1000
"""Rows that are kept of one search: the first ones, and the best with all that it comes from."""
MOST_TEXT = 300
Row = dict[str, Any]


def search_row(search: SearchResult[Kernel]) -> Row:
    """Return a search as plain data.

    `trials` are [number, parent, how, seconds, note], a parent before its children; `parent` is
    None for a start, `seconds` None for what was not timed. Units: seconds of one run.
    """
    way = _way(search)
    trials = [t for t in search.tried if t.number < MOST_TRIALS or t.number in way]
    return {
        "tried": len(search.tried),
        "timed": len(search.ranked()),
        "best": search.best,
        "speedup": search.speedup,
        "seconds": search.seconds,
        "ended": search.ended,
        "device": search.device,
        "trials": [_trial_row(t) for t in trials],
    }


def _way(search: SearchResult[Kernel]) -> set[int]:
    """Return the numbers of the best and of all that it comes from."""
    way, at = set[int](), search.best
    while at not in way:
        way.add(at)
        parent = search.tried[at].parent
        at = at if parent is None else parent
    return way


def _trial_row(trial: Candidate) -> list[Any]:
    how, note = trial.how[:MOST_TEXT], trial.note[:MOST_TEXT]
    return [trial.number, trial.parent, how, trial.seconds, note]


def search_read(row: Mapping[str, Any] | None) -> Row | None:
    """Return what `search_row` said, read from a file that somebody may have damaged.

    Errors: ValueError, KeyError, TypeError where it is something else.
    """
    if row is None:
        return None
    trials: list[list[Any]] = []
    numbers: set[int] = set()
    for number, parent, how, seconds, note in row["trials"][: 2 * MOST_TRIALS]:
        if number in numbers or parent not in {None, *numbers}:
            raise ValueError("a form comes after the one that it was made from, once")
        numbers.add(_count(number))
        trials.append([number, parent, *_told(how, seconds, note)])
    if row["best"] not in numbers:
        raise ValueError("the best form is one of those that were tried")
    return {
        "tried": _count(row["tried"]),
        "timed": _count(row["timed"]),
        "best": _count(row["best"]),
        "speedup": seconds_of(row["speedup"]),
        "seconds": seconds_of(row["seconds"]) or 0.0,
        "ended": str(row["ended"])[:200],
        "device": str(row["device"])[:40],
        "trials": trials,
    }


def _told(how: Any, seconds: Any, note: Any) -> list[Any]:
    return [str(how)[:MOST_TEXT], seconds_of(seconds), str(note)[:MOST_TEXT]]


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of a form")
    return value
