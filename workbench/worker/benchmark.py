"""The benchmark of one candidate against another: in turns, with limits on slow ones.

Sections: The benchmark; A time limit on running a kernel.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from types import FrameType

from workbench.base.cache import key_of
from workbench.base.errors import WorkbenchError
from workbench.base.interrupts import scope
from workbench.measure.timing import (
    Sample,
    Samples,
    enough,
    measure,
    no_garbage_collection,
    sample_of,
    timed_rounds,
    warm_up,
)
from workbench.worker.candidate import KernelData, Run, bind
from workbench.worker.rows import Row, error_row

# --------------------------------------------------------------------------------------------------
# The benchmark of one candidate against another.

FAIR_ROUNDS = 3
"""Rounds that every candidate gets before it may be given up."""
LEAST_ROUNDS = 7
"""Rounds before timing may end early."""
SETTLED = 0.005
"""Timing ends early if the error of each median is at most this share of the median."""
SLOW = 0.25
"""A share of the budget: if a run of one candidate takes longer, both are run a few times alone."""
VERY_SLOW = 5.0
"""A multiple of the budget: a candidate whose run takes longer is run once."""


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """Settings of a benchmark. Units: seconds. `limit_s` limits the first run; a candidate that
    takes `hopeless` times as long as the other is given up; `digests` are those of programs that
    were measured before; a slow candidate runs again only if that would end within `left_s`."""

    budget_s: float
    samples: int
    limit_s: float
    hopeless: float
    digests: tuple[str, ...] = ()
    left_s: float = math.inf


def run_benchmark(
    candidate: Row,
    against: Row,
    data: KernelData,
    rules: BenchmarkSettings,
    go_on: Callable[[], None] = lambda: None,
    silent: Callable[[float], None] = lambda seconds: None,
) -> Row:
    """Return the result for `candidate`: its "digest", its "samples" and those of the other one
    ("against"), in seconds, with the "shares" of their cores that they had ("against_shares");
    or the digest and "over", the limit that it exceeded; or "same", the digest of an equal program;
    or "error".

    `silent` is called before the first run, with the seconds that it may take.
    Errors: those of `go_on`, which is called between runs.
    """
    stop = time.perf_counter() + rules.left_s
    try:
        buffers, others = data.on(candidate["device"]), data.on(against["device"])
        source, run = bind(candidate, buffers)
        go_on()
        row: Row = {"digest": key_of(source.language, source.text)[:16]}
        if row["digest"] in rules.digests:
            return {"same": row["digest"]}
        _, other = bind(against, others)
        silent(rules.limit_s)
        with within(rules.limit_s):
            first = sample_of(run)
        go_on()
    except OverTime:
        return row | {"over": rules.limit_s}
    except WorkbenchError as error:
        return {"error": error_row(error)}
    if candidate == against:  # run alone
        times = _times_alone(run, first, rules, stop)
        return row | _both(times, times)
    second = sample_of(other)
    go_on()
    if max(first.seconds, second.seconds) < SLOW * rules.budget_s:
        return row | _in_turns(run, other, rules, go_on)
    return row | _both(_few(run, first, rules, stop), _few(other, second, rules, stop))


def _both(own: Samples, others: Samples) -> Row:
    return {
        "samples": own.samples_s,
        "shares": own.shares,
        "against": others.samples_s,
        "against_shares": others.shares,
    }


def _times_alone(run: Run, first: Sample, rules: BenchmarkSettings, stop: float) -> Samples:
    """Return samples of a candidate that is measured alone."""
    if first.seconds > SLOW * rules.budget_s:
        return _few(run, first, rules, stop)
    return measure(run, rules.budget_s, rules.samples)


def _few(run: Run, first: Sample, rules: BenchmarkSettings, stop: float) -> Samples:
    """Return a few samples of a slow kernel; of a very slow one only its first run."""
    if first.seconds > VERY_SLOW * rules.budget_s:
        return Samples.of([first])
    times: list[Sample] = []
    while len(times) < FAIR_ROUNDS and time.perf_counter() + first.seconds < stop:
        times.append(sample_of(run))
    return Samples.of(times or [first])


def _in_turns(run: Run, other: Run, rules: BenchmarkSettings, go_on: Callable[[], None]) -> Row:
    both, times = {"samples": run, "against": other}, dict[str, Samples]()
    with no_garbage_collection():
        warm_up(both)
        stop = time.perf_counter() + rules.budget_s
        for number, times in enumerate(timed_rounds(both), 1):
            go_on()
            is_over = time.perf_counter() > stop or enough(times, rules.samples)
            if is_over or _is_hopeless(number, times, rules) or _are_settled(times):
                break
    return _both(times["samples"], times["against"])


def _is_hopeless(number: int, times: dict[str, Samples], rules: BenchmarkSettings) -> bool:
    slow, best = times["samples"], times["against"]
    return number >= FAIR_ROUNDS and slow.min_s > rules.hopeless * best.median_s


def _are_settled(times: dict[str, Samples]) -> bool:
    return all(is_settled(samples) for samples in times.values())


def is_settled(samples: Samples, share: float = SETTLED) -> bool:
    """Whether the error of the median is at most a share of it, so that timing may end."""
    count = sum(samples.undisturbed)
    return count >= LEAST_ROUNDS and samples.spread_s / count**0.5 <= share * samples.median_s


# --------------------------------------------------------------------------------------------------
# A time limit on running a kernel.
#
# Long kernels are launched in slices, between which Python handles signals. So an alarm ends a slow
# kernel that the runtime can slice; any other one runs until the parent ends this process.


class OverTime(Exception):
    """A kernel ran longer than its limit."""


@scope
def within(seconds: float) -> Generator[None, None, None]:
    """Raise OverTime in the block after `seconds`, in the main thread of a system with alarms;
    elsewhere there is no limit."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "setitimer"):
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise OverTime(f"more than {seconds:.3g} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
