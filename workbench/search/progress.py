"""The progress bar of a search: in a terminal, or in a notebook as a widget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from warnings import catch_warnings, simplefilter

from workbench.measure.kernel_time import seconds_text
from workbench.search.candidate import Candidate

Report = Callable[[Candidate], None]


@contextmanager
def progress(budget_s: float, is_shown: bool) -> Iterator[Report]:
    """Yield the function to call with every candidate."""
    if not is_shown:
        yield lambda candidate: None
        return
    with catch_warnings():
        simplefilter("ignore")  # it warns of missing widgets
        tqdm = import_module("tqdm.auto").tqdm  # loaded for searches alone
        bar = tqdm(
            total=round(budget_s, 1), desc="search", leave=False, mininterval=0.2,
            bar_format="{desc} |{bar}| {n:.0f}/{total:.0f} s{postfix}",
        )  # fmt: skip
    best = _Best()

    def report(candidate: Candidate) -> None:
        bar.set_postfix_str(best.text(candidate), refresh=False)
        bar.n = 0
        bar.update(min(best.elapsed_s, budget_s))

    try:
        yield report
    finally:
        bar.close()


class _Best:
    """The best so far, in words."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._start: float | None = None
        self._least: float | None = None

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self._began

    def text(self, candidate: Candidate) -> str:
        seconds = candidate.seconds
        if seconds is not None and not candidate.note:
            self._start = seconds if self._start is None else self._start
            least = seconds if self._least is None else self._least
            self._least = min(least, seconds)
        if self._start is None or self._least is None:
            return f"{candidate.number + 1} tried"
        times = self._start / self._least
        best = seconds_text(self._least)
        return f"{candidate.number + 1} tried, best {best}, {times:.3g} times as fast"
