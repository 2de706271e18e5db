"""`Kernel.search`: the beam search with a way to measure, a progress bar and a cache.

Sections: The progress bar of a search; `Kernel.search`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType
from typing import Any
from warnings import catch_warnings, simplefilter

from msgspec import Struct

from workbench.backends.device import Device
from workbench.backends.native.machine import cpu
from workbench.backends.native.thread_pool import cores
from workbench.base.cache import key_of, read_json, write_json
from workbench.base.errors import DeviceError, DTypeError, WorkbenchError, integer_of
from workbench.base.source import warn_user
from workbench.base.trace import unobserved
from workbench.base.typed import Amount
from workbench.ir.opt.opt import Opt, OptOps
from workbench.ir.rewriting.rewrite import added_rules, without
from workbench.kernel import compiled
from workbench.kernel.runnable import RunnableKernel
from workbench.measure.kernel_time import seconds_text
from workbench.search.beam import search
from workbench.search.evaluation import Answers, Clock, OnExecutor, OnWorker
from workbench.search.moves import ByPrediction, Candidate, Move, SearchOutcome, SearchStopped
from workbench.search.result import K, SavedSearch, SearchResult, kernel_key
from workbench.worker.client import Worker
from workbench.worker.workers import worker_for

# --------------------------------------------------------------------------------------------------
# The progress bar of a search: in a terminal, or in a notebook as a widget.

Report = Callable[[Candidate], None]


@contextmanager
def progress(budget_s: float, is_shown: bool) -> Iterator[Report]:
    """Yield a function that shows each candidate that it is called with, if `is_shown`."""
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
    """The text of a progress bar: the best time so far."""

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


# --------------------------------------------------------------------------------------------------
# `Kernel.search`.

FOLDER = "searches"
CONFIRM_SHARE = 0.2
"""Share of the budget that is reserved for the last measurement, at most `CONFIRM_S`."""
CONFIRM_S = 1.0
"""Seconds that are reserved at most for the last measurement, unless `RUNS` runs take longer."""
RUNS = 1.2
"""Runs of the start for which the last measurement always has time."""
RUN_SHARE = 0.05
"""Share of the budget that one run of a candidate may take."""
AT_ONCE = 4
"""Candidates that an executor gets at a time, if it states no number of workers."""


def run(
    kernel: K,
    width: int = 2,
    budget_s: float = 10.0,
    executor: Executor | None = None,
    cached: bool = True,
    shows_progress: bool = True,
    worker: Worker | None = None,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Candidate], None] = lambda candidate: None,
    clock: Clock = time.monotonic,
    others: Mapping[str, Sequence[Opt]] = MappingProxyType({}),
) -> SearchResult[K]:
    """Return the result of a search (see `Kernel.search`). Its starts are the opts of `kernel`, the
    default opts, no opts, and `others`, opts by name. For a machine that is elsewhere times are
    predicted, and nothing runs. A `worker` of the caller stays alive after the search; otherwise
    the search starts its own, and ends it. `stop` is called between candidates, `report` with each
    candidate; `clock` measures the budget.
    """
    width, budget_s = checked(width, budget_s, executor)
    device = kernel.device
    is_own = executor is None and _may_cache(device)
    if cached and is_own and not others:  # cached searches have no other starts
        cached_result = _cached(kernel, width, budget_s)
        if cached_result is not None:
            return cached_result
    began = clock()
    budget = _TimeBudget(clock, began + budget_s, min(CONFIRM_S, CONFIRM_SHARE * budget_s), stop)
    with unobserved(), without(kernel.rules_off), progress(budget_s, shows_progress) as show:

        def report_candidate(candidate: Candidate) -> None:
            budget.reserve_for(candidate)
            show(candidate)
            report(candidate)

        outcome, answers = _search(
            kernel, device, width, budget, report_candidate, executor, worker, others
        )
    result = _result(kernel, outcome, answers, device, clock() - began)
    is_whole = outcome.ended not in ("stopped", "interrupted")
    # A search without a timed candidate is not cached: the next one may find a faster machine.
    if is_own and is_whole and result.ranked():
        _write_cache(result, width, budget_s)
    return result


def _may_cache(device: str) -> bool:
    """Whether another process would find the same. It would not if this process has registered
    opts or rules, nor for a predicted time, since the model may change."""
    is_registered = bool(added_rules() or OptOps.registered)
    return not is_registered and not Device[device].is_elsewhere


def checked(width: Any, budget_s: object, executor: object) -> tuple[int, float]:
    """Return the width and the seconds of a search. Errors: those of `Kernel.search`."""
    whole = integer_of(width)
    if whole is None or whole < 1:
        raise DTypeError(
            f"cannot use width={width!r:.40}",
            "it must be the number of candidates to vary at each level",
            "width=2",
        )
    if executor is not None and not hasattr(executor, "submit"):
        raise DeviceError(
            f"{type(executor).__name__} is not an executor",
            "it has no method `submit`",
            "concurrent.futures.ProcessPoolExecutor(), or Dask's client.get_executor()",
        )
    return whole, compiled.budget(budget_s)


@dataclass
class _TimeBudget:
    """The time of a search, which ends at `ends_at` of the `clock`, or when `stop` returns True.
    `reserved_s` of it are reserved for the last measurement. Units: seconds."""

    clock: Clock
    ends_at: float
    reserved_s: float
    stop: Callable[[], bool]

    def is_over(self) -> bool:
        """Whether no new candidate should begin. Errors: SearchStopped if a user stops the
        search."""
        if self.stop():
            raise SearchStopped
        return self.clock() > self.ends_at - self.reserved_s

    def reserve_for(self, candidate: Candidate) -> None:
        """Reserve time at the end to measure a kernel as slow as the first candidate."""
        if candidate.number == 0 and candidate.seconds is not None:
            self.reserved_s = max(self.reserved_s, RUNS * candidate.seconds)


def _search(
    kernel: RunnableKernel,
    device: str,
    width: int,
    budget: _TimeBudget,
    report: Callable[[Candidate], None],
    executor: Executor | None,
    worker: Worker | None,
    others: Mapping[str, Sequence[Opt]],
) -> tuple[SearchOutcome, Answers | None]:
    """Return the outcome, and the verdicts on results (None: predicted)."""
    target, clock, ends_at = Device[device].target, budget.clock, budget.ends_at
    arguments = kernel.original, _starts(kernel, others), target

    def run_search(measure: OnWorker | OnExecutor, at_once: int) -> tuple[SearchOutcome, Answers]:
        answers = Answers(lambda: kernel.data.check_run(kernel.original, device), measure.outputs)
        outcome = search(
            *arguments, measure, width, budget.is_over, report, at_once, answers.problem
        )  # fmt: skip
        return outcome, answers

    if Device[device].is_elsewhere:
        measure = ByPrediction(kernel.original, target, budget.stop)
        return search(*arguments, measure, width, budget.is_over, report), None
    most_s = RUN_SHARE * (ends_at - clock())
    settings = kernel.original, device, ends_at, most_s, kernel.rules_off, clock
    if executor is not None:
        at_once = getattr(executor, "_max_workers", None) or AT_ONCE
        return run_search(OnExecutor(*settings, executor=executor), at_once)
    own = worker_for(device, nice=0) if worker is None else worker
    try:
        key = f"search {kernel_key(kernel)} {id(kernel.data)}"
        data = lambda: kernel.data.buffers(kernel.original, device)  # noqa: E731
        by_worker = OnWorker(*settings, worker=own, data=data, key=key, stop=budget.stop)
        return run_search(by_worker, 1)
    finally:
        if worker is None:
            own.close()


def _starts(kernel: RunnableKernel, others: Mapping[str, Sequence[Opt]]) -> list[Move]:
    current = Move(kernel.applied_opts, "start: as given")
    default = Move(kernel.optimized().applied_opts, "start: the default opts")
    more = [Move(tuple(opts), f"start: {name}") for name, opts in others.items()]
    return [current, default, *more, Move((), "start: plain")]


def _result(
    kernel: K, outcome: SearchOutcome, answers: Answers | None, device: str, seconds: float
) -> SearchResult[K]:
    result = SearchResult(
        kernel,
        kernel,
        outcome.candidates,
        outcome.best,
        outcome.speedup,
        outcome.ended,
        seconds,
        device,
        is_predicted=Device[device].is_elsewhere,
    )
    best = result.kernel_of(outcome.best) if outcome.best else kernel
    answer = "" if answers is None else answers.words(best.ast)
    return replace(result, kernel=best, answer=answer)


# the cache on disk


def _name(kernel: RunnableKernel, width: int) -> str:
    parts = (kernel_key(kernel), kernel.device, cpu(), str(cores()), str(width))
    return f"{key_of(*parts)[:32]}.json"


class CachedSearch(Struct, forbid_unknown_fields=True):
    """A search in the cache, and the budget that it had, in seconds."""

    budget_s: Amount
    result: SavedSearch


def _cached(kernel: K, width: int, budget_s: float) -> SearchResult[K] | None:
    """Return an earlier search that had at least this budget; None if there is none."""
    cached = read_json(FOLDER, _name(kernel, width), CachedSearch)
    if cached is None or cached.budget_s < budget_s:
        return None
    try:
        return replace(SearchResult.from_saved(cached.result, kernel), is_kept=True)
    except WorkbenchError as error:
        warn_user(f"a cached search cannot be used ({error}); searching anew")
        return None


def _write_cache(result: SearchResult[Any], width: int, budget_s: float) -> None:
    """Cache a search, unless the cached one had at least its budget and took longer."""
    longer = _cached(result.given, width, budget_s)
    if longer is not None and longer.seconds > result.seconds:
        return
    cached = CachedSearch(budget_s, result.to_saved())
    write_json(FOLDER, _name(result.given, width), cached)
