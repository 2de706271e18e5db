"""What this machine can do at its best, measured once and kept on disk.

A measurement on a busy machine is too low and never too high: so several are taken, in rounds,
and the best of each counts; a cache that comes out slower than what lies behind it was disturbed,
and is measured again. Figures that stay impossible are not kept for other sessions. Measuring
takes a second or two, and waits until asked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from workbench.backends.runtime import machine
from workbench.backends.runtime.bandwidth import bandwidth, working_sets
from workbench.backends.runtime.cache import cache_folder, key_of
from workbench.backends.runtime.peak import run_peak
from workbench.backends.runtime.pool import cores
from workbench.backends.runtime.private_files import read_json, write_json
from workbench.backends.runtime.timing import measure
from workbench.dtypes import DType, dtypes
from workbench.forking import free_lock

VERSION, FOLDER = 1, "machine"
FLOATS = {"f32": dtypes.float32, "f64": dtypes.float64}
_BUDGET_S = 0.03
_ROUNDS, _MOST_ROUNDS = 3, 8
"""Rounds of measuring every level, and rounds at most with those that were disturbed."""
_PAUSE_S = 0.03
"""Between rounds: whoever disturbed one may be done by the next."""
_SLACK = 0.8
"""Of two levels that are as fast as each other, one may come out slower by this factor."""
_lock = free_lock()
_found: dict[tuple[str, str], Speeds] = {}


@dataclass(frozen=True, slots=True)
class Rate:
    """A speed of one thread, and of all together."""

    one: float
    all: float

    def of(self, threads: int) -> float:
        """Return the speed of so many threads: they share what all have together."""
        return min(self.one * threads, self.together)

    @property
    def together(self) -> float:
        """The speed of all threads; what came out below that of one was disturbed."""
        return max(self.all, self.one)


@dataclass(frozen=True, slots=True)
class Speeds:
    """The speeds of a machine.

    `peak` has the multiply-adds of "f32" and "f64" in operations a second (a multiply-add is
    two); `read` and `copy` have bytes a second for each cache and "memory", the fastest first.
    Units: fma_s is what a vector multiply-add takes when each waits for the one before,
    scalar_s what one of single numbers takes when none waits.
    """

    peak: Mapping[str, Rate]
    read: Mapping[str, Rate]
    copy: Mapping[str, Rate]
    fma_s: float
    scalar_s: float

    def vector_s(self, kind: str, lanes: int) -> float:
        """Return what a multiply-add of `lanes` numbers takes at best, when none waits."""
        return 2 * lanes / self.peak[kind].one


def speeds() -> Speeds:
    """Return the speeds of this machine: as known, or measured now.

    Errors: DeviceError where llvmlite is missing.
    """
    return known() or measured()


def known() -> Speeds | None:
    """Return what was measured of this machine, now or in another session; None if nothing."""
    place = _place()
    with _lock:
        if place not in _found:
            kept = _read(read_json(FOLDER, place[1]))
            if kept is not None:
                _found[place] = kept
        return _found.get(place)


def measured() -> Speeds:
    """Measure this machine, and return the best that was ever seen of it. What cannot be right is
    mended for this session, and not kept on disk: the next one measures again."""
    before, fresh, place = known(), _measure(), _place()
    best = fresh if before is None else _best(before, fresh)
    mended = replace(best, read=_mended(best.read), copy=_mended(best.copy))
    with _lock:
        _found[place] = mended
    if not disturbed(best.read) and not disturbed(best.copy):
        write_json(FOLDER, place[1], asdict(mended))
    return mended


def disturbed(rates: Mapping[str, Rate]) -> list[str]:
    """Return the levels, the fastest first, whose speeds cannot be right: clearly slower than the
    level behind them, or with all threads than with one."""
    behind = [*list(rates.values())[1:], None]
    return [
        level
        for (level, rate), next_rate in zip(rates.items(), behind, strict=True)
        if rate.all < _SLACK * rate.one
        or (next_rate is not None and _is_slower(rate, next_rate))
    ]


def _is_slower(rate: Rate, other: Rate) -> bool:
    return rate.one < _SLACK * other.one or rate.all < _SLACK * other.all


def _mended(rates: Mapping[str, Rate]) -> dict[str, Rate]:
    """Return speeds of which none is below that of the level behind it, or below one thread's."""
    found: dict[str, Rate] = {}
    behind = Rate(0.0, 0.0)
    for level, rate in reversed([*rates.items()]):
        one = max(rate.one, behind.one)
        behind = found[level] = Rate(one, max(rate.all, behind.all, one))
    return dict(reversed(found.items()))


def _measure() -> Speeds:
    parts = cores()
    read, copy = (_walks(parts, copies) for copies in (False, True))
    peaks = {n: Rate(*(_flops(d, k) for k in (1, parts))) for n, d in FLOATS.items()}
    chain, single = _flops(dtypes.float32, sums=1), _flops(dtypes.float32, lanes=1)
    lanes = run_peak(sums=1).flops // run_peak(sums=1, lanes=1).flops
    return Speeds(peaks, read, copy, 2 * lanes / chain, 2 / single)


def _walks(threads: int, copies: bool) -> dict[str, Rate]:
    """Return the best of several rounds for every level; further rounds are for those that were
    disturbed."""
    levels = machine.caches() or machine.TYPICAL
    alone, shared = dict(working_sets(levels)), dict(working_sets(levels, threads))
    best = dict.fromkeys(alone, Rate(0.0, 0.0))
    again: Iterable[str] = alone
    for number in range(1, _MOST_ROUNDS + 1):
        for name in again:
            one = bandwidth(alone[name], 1, copies)
            together = bandwidth(shared[name], threads, copies)
            best[name] = Rate(max(best[name].one, one), max(best[name].all, together))
        again = alone if number < _ROUNDS else disturbed(best)
        if not again:
            break
        time.sleep(_PAUSE_S)
    return best


def _flops(dtype: DType, threads: int = 1, sums: int = 12, lanes: int = 0) -> float:
    loop = run_peak(dtype, threads, sums, lanes)
    best_s = math.inf
    for _ in range(_ROUNDS):
        best_s = min(best_s, measure(loop.run, budget_s=_BUDGET_S / _ROUNDS).min_s)
        time.sleep(_PAUSE_S / _ROUNDS)
    return loop.flops / best_s


def _best(a: Speeds, b: Speeds) -> Speeds:
    def better(x: Mapping[str, Rate], y: Mapping[str, Rate]) -> dict[str, Rate]:
        return {
            k: Rate(max(x[k].one, y[k].one), max(x[k].all, y[k].all))
            for k in y
            if k in x
        }

    return Speeds(
        better(a.peak, b.peak), better(a.read, b.read), better(a.copy, b.copy),
        min(a.fma_s, b.fma_s), min(a.scalar_s, b.scalar_s),
    )  # fmt: skip


# on disk


def _place() -> tuple[str, str]:
    """Return (cache folder, file name) for this machine."""
    levels = machine.caches() or machine.TYPICAL
    key = key_of(str(VERSION), machine.cpu(), str(cores()), str(levels))
    return str(cache_folder()), f"{key[:16]}.json"


def _read(held: Any) -> Speeds | None:
    """Return the speeds that a file's data tells; None where it makes no sense."""
    try:
        peak, read, copy = (_rates(held[part]) for part in ("peak", "read", "copy"))
        fma_s, scalar_s = _positive(held["fma_s"]), _positive(held["scalar_s"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    levels = [n for n, _ in working_sets(machine.caches() or machine.TYPICAL)]
    if not list(read) == list(copy) == levels or list(peak) != list(FLOATS):
        return None
    if disturbed(read) or disturbed(copy):
        return None
    return Speeds(peak, read, copy, fma_s, scalar_s)


def _rates(held: Any) -> dict[str, Rate]:
    return {
        str(k): Rate(_positive(v["one"]), _positive(v["all"])) for k, v in held.items()
    }


def _positive(value: Any) -> float:
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{value!r:.40} is no speed")
    return float(value)
