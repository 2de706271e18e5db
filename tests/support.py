"""What tests share: how many examples to try, where the checkout is, how much work is done."""

from __future__ import annotations

import cProfile
import inspect
import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 250.0
"""A busy machine may take so long for anything; a hang fails all the same, within a test's time."""
LONG = os.environ.get("WORKBENCH_TEST_PROFILE") == "long"


def count(n_long: int, part: int = 10) -> int:
    """Return `n_long` in the long profile, and a tenth of it, or another part, at least one,
    otherwise: a random test takes a second or two there."""
    return n_long if LONG else max(1, n_long // part)


def eventually(is_so: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Wait until something is so; a machine with much else to do has time, too."""
    until = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < until, f"it is not so after {within_s:g} s"
        time.sleep(0.01)


def calls_of(work: Callable[[], object]) -> int:
    """Return how many functions are called in `work`: how it grows shows on a busy machine too."""
    profile = cProfile.Profile()
    profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats())


def by_rows(names: str | tuple[str, ...], rows: Iterable[Any], ids: Any = None) -> Any:
    """Call a test with each of many rows, as `pytest.mark.parametrize` does, but in one test: where
    a row takes a few milliseconds, a test of its own takes longer."""
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    listed = [row if len(keys) > 1 else (row,) for row in rows]
    named = ids if ids is None or callable(ids) else [*ids]

    def label(row: tuple[Any, ...]) -> str:
        if named is None:
            return ", ".join(f"{value!r:.60}" for value in row)
        if callable(named):
            return "-".join(map(str, map(named, row)))
        return str(next(name for name, each in zip(named, listed, strict=True) if each is row))

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def every_row(**fixtures: Any) -> None:
            try_all(
                lambda row: test(**fixtures, **dict(zip(keys, row, strict=True))), listed, label
            )

        signature = inspect.signature(test)
        others = [p for name, p in signature.parameters.items() if name not in keys]
        every_row.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        del every_row.__wrapped__  # type: ignore[attr-defined]
        return every_row

    return decorated


def try_all(
    test: Callable[[Any], object], rows: Sequence[Any], label: Callable[[Any], str]
) -> None:
    """Call a test with each row. The error of the first that fails names all that do; a test of
    which some rows are skipped is skipped, after the others."""
    failed: list[tuple[str, BaseException]] = []
    skipped: list[tuple[str, BaseException]] = []
    for row in rows:
        try:
            test(row)
        except (Exception, pytest.fail.Exception) as error:
            failed.append((label(row), error))
        except pytest.skip.Exception as reason:
            skipped.append((label(row), reason))
    for what, entries in (("failed", failed), ("skipped", skipped)):
        if entries:
            labels = "\n  ".join(name for name, _ in entries[:20])
            entries[0][1].add_note(f"{len(entries)} of {len(rows)} rows {what}:\n  {labels}")
            raise entries[0][1]
