"""The benchmark of one candidate against another: in turns, with limits on slow ones."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.backends.buffer import Buffer
from workbench.base.cache.folder import key_of
from workbench.base.errors import WorkbenchError
from workbench.check.answer import check
from workbench.ir.meaning.closeness import LONG_STEPS, are_close
from workbench.kernel.check_run import arrays
from workbench.measure.timing import (
    Samples,
    measure,
    no_garbage_collection,
    seconds_of,
    timed_rounds,
    warm_up,
)
from workbench.worker.candidate import Row, Run, bind, error_row, parsed
from workbench.worker.kernel_data import KernelData
from workbench.worker.time_limit import OverTime, within

FAIR_ROUNDS = 3
"""Rounds that every candidate gets before it may be given up."""
LEAST_ROUNDS = 7
"""Fewest rounds before timing may end early."""
SETTLED = 0.005
"""Timing ends early where the error of each median is at most this share of it."""
SLOW = 0.25
"""Share of the budget: a candidate whose run takes more is run a few times alone, not in turns."""
VERY_SLOW = 5.0
"""Budgets: a candidate whose run takes more is run once."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """Settings of a benchmark. Units: seconds. `limit_s` limits the first run; a candidate that
    takes `hopeless` times as long as the other is given up; `digests` name programs that were
    measured before; `original` is the un-optimised kernel as text where answers are compared, too;
    a run of a slow candidate begins only if it would end within `left_s`."""

    budget_s: float
    samples: int
    limit_s: float
    hopeless: float
    digests: tuple[str, ...] = ()
    original: str = ""
    left_s: float = math.inf


def run_benchmark(
    candidate: Row,
    against: Row,
    data: KernelData,
    outputs: Sequence[int],
    rules: BenchmarkSettings,
    go_on: Callable[[], None] = lambda: None,
    silent: Callable[[float], None] = lambda seconds: None,
) -> Row:
    """Return the result for `candidate`: "samples" and those of "against", in seconds; or "same",
    the digest of an equal program; or "over", the limit that it exceeded; or "error".

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
            first_s, answer = _first_run(run, buffers, outputs)
        go_on()
    except OverTime:
        return row | {"over": rules.limit_s}
    except WorkbenchError as error:
        return {"error": error_row(error)}
    if candidate == against:  # run alone
        times = _alone(run, first_s, rules, stop)
        return row | {"samples": times, "against": times}
    other_s, expected = _first_run(other, others, outputs)
    if rules.original:
        row["differs"] = not _agree(answer, expected, rules.original, data, outputs)
    go_on()
    if max(first_s, other_s) < SLOW * rules.budget_s:
        return row | _in_turns(run, other, rules, go_on)
    return row | {
        "samples": _few(run, first_s, rules, stop),
        "against": _few(other, other_s, rules, stop),
    }


def _agree(
    answer: Sequence[Array],
    expected: Sequence[Array],
    original: str,
    data: KernelData,
    outputs: Sequence[int],
) -> bool:
    """Return whether an answer is that of another candidate; where both have lost much by
    cancellation, whether it is right."""
    pairs = zip(answer, expected, strict=True)
    if all(are_close(*pair, LONG_STEPS) for pair in pairs):
        return True
    inputs = arrays(data.buffers, outputs)
    return bool(check(parsed(original), outputs, inputs, answer))


def _alone(
    run: Run, first_s: float, rules: BenchmarkSettings, stop: float
) -> list[float]:
    """Return times of a candidate that is measured alone."""
    if first_s > SLOW * rules.budget_s:
        return _few(run, first_s, rules, stop)
    return list(measure(run, rules.budget_s, rules.samples).samples_s)


def _first_run(
    run: Run, buffers: Sequence[Buffer], outputs: Sequence[int]
) -> tuple[float, list[Array]]:
    """Return the seconds of a run, and its outputs."""
    for slot in outputs:
        buffers[slot].copy_in(np.zeros(buffers[slot].nbytes, np.uint8))
    seconds = seconds_of(run)
    return seconds, [buffers[slot].to_numpy() for slot in outputs]


def _few(
    run: Run, first_s: float, rules: BenchmarkSettings, stop: float
) -> list[float]:
    """Return a few times of a slow kernel; of a very slow one only that of its first run."""
    if first_s > VERY_SLOW * rules.budget_s:
        return [first_s]
    times: list[float] = []
    while len(times) < FAIR_ROUNDS and time.perf_counter() + first_s < stop:
        times.append(seconds_of(run))
    return times or [first_s]


def _in_turns(
    run: Run, other: Run, rules: BenchmarkSettings, go_on: Callable[[], None]
) -> Row:
    both, times = {"samples": run, "against": other}, dict[str, Samples]()
    with no_garbage_collection():
        warm_up(both)
        stop = time.perf_counter() + rules.budget_s
        for number, times in enumerate(timed_rounds(both), 1):
            go_on()
            is_over = time.perf_counter() > stop or number >= rules.samples
            if is_over or _is_hopeless(number, times, rules) or _are_settled(times):
                break
    return {name: list(samples.samples_s) for name, samples in times.items()}


def _is_hopeless(
    number: int, times: dict[str, Samples], rules: BenchmarkSettings
) -> bool:
    slow, best = times["samples"], times["against"]
    return number >= FAIR_ROUNDS and slow.min_s > rules.hopeless * best.median_s


def _are_settled(times: dict[str, Samples]) -> bool:
    return all(is_settled(samples) for samples in times.values())


def is_settled(samples: Samples, share: float = SETTLED) -> bool:
    """Whether the error of the median, as a share of it, is so small that more samples are
    needless."""
    count = len(samples.samples_s)
    error = samples.spread_s / count**0.5
    return count >= LEAST_ROUNDS and error <= share * samples.median_s
