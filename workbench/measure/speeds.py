"""The greatest speeds of this machine, measured once and stored on disk.

On a busy machine a measured speed is too low, never too high. So there are several rounds, and the
best of each speed counts. A cache that seems slower than the next level was disturbed, and is
measured again. Measurements that stay impossible are not stored. Measuring takes a second or two,
and is done on demand. A session calls `speeds()` once and passes the result on: predictions are
functions of it. A peak is a measurement as well: a kernel that exceeds it raises it (`with_peak`),
and a kernel that runs faster than an empty launch lowers the launch time (`with_launch_time`).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from workbench.backends.device import Device
from workbench.backends.native import machine
from workbench.backends.native.thread_pool import cores
from workbench.base.cache import cache_folder, key_of, read_json, write_json
from workbench.base.dtypes import DType, dtypes
from workbench.base.interrupts import free_lock
from workbench.base.typed import Amount, Positive
from workbench.ir.nest.estimates import Estimates
from workbench.measure.bandwidth import bandwidth, working_sets
from workbench.measure.far_lines import far_bandwidth
from workbench.measure.peak import run_cycles, run_nothing, run_peak
from workbench.measure.timing import Run, measure

VERSION = 4
FOLDER = "machine"
FLOATS = {"f32": dtypes.float32, "f64": dtypes.float64}
_BUDGET_S = 0.03
_ROUNDS = 3
"""Rounds in which every level is measured."""
_MOST_ROUNDS = 8
"""The maximal number of rounds; in the later ones only disturbed levels are measured again."""
_PAUSE_S = 0.03
"""Seconds between rounds: a disturbance of one may have ended by the next."""
_SLACK = 0.8
"""A level is slower than the next one, or all threads than one, below this share of that speed."""
PLAUSIBLE = 1.5
"""A kernel that exceeds a peak by more than this factor does not raise it: it executes fewer
operations than are counted, because a compiler removed some."""
PAGE_BYTES = 4096
KNOWN_PAGES = 2048
"""Pages whose addresses a core stores: a common number, from 1,024 to 3,072."""
WALKS = "walks"
"""A level of `Speeds.far`: the last cache, with lines on more pages than KNOWN_PAGES."""
CHAINS = 8
"""Additions under way at once that keep a core busy: more than begin in a cycle on any."""
SET_COUNTS = (1, 2, 4)
"""Sets of the first cache into which distant lines fall, in a measurement."""
_lock = free_lock()
_measuring = free_lock()
_by_place: dict[tuple[str, str], Speeds] = {}


@dataclass(frozen=True, slots=True)
class Rate:
    """A speed of one thread, and of all threads together."""

    one: Positive
    all: Positive

    def of(self, threads: int) -> float:
        """Return the speed of `threads` threads, at most that of all together."""
        return min(self.one * threads, self.together)

    def raised(self, threads: int, speed: float) -> Rate:
        """Return the rate of a machine on which `threads` threads reached `speed`."""
        return Rate(max(self.one, speed / threads), max(self.all, speed))

    @property
    def together(self) -> float:
        """The speed of all threads; at least that of one, since a lower measurement was
        disturbed."""
        return max(self.all, self.one)


@dataclass(frozen=True, slots=True)
class Speeds:
    """The speeds of a machine.

    `peak` has the multiply-adds of "f32" and "f64" in operations per second (a multiply-add is
    two). `read` and `copy` have bytes per second for each cache and "memory", the fastest first.
    Units: `fma_s` is the seconds of a vector multiply-add that waits for the one before, `scalar_s`
    of a scalar one that does not wait. `launch_s` is the seconds of an empty launch, `hand_over_s`
    the additional seconds of one on all threads.

    The other fields are empty or 0 if they were not measured. `cycle_s` and `add_s` are the seconds
    of an addition that waits for the one before, of integers and of floats. `adds` has the
    additions of integers per second, of which CHAINS are under way at once. `each_s` has the
    seconds of a multiply-add that does not wait, by the bytes of the instruction ("4", "16"). `far`
    has bytes per second, by level, for lines that are each on another page of memory; "walks" is
    the last cache with more pages than KNOWN_PAGES. `in_sets` has them for lines that all fall into
    1, 2 or 4 sets of the first cache ("1", "2", "4").
    """

    peak: Mapping[str, Rate]
    read: Mapping[str, Rate]
    copy: Mapping[str, Rate]
    fma_s: Positive
    scalar_s: Positive
    launch_s: Positive
    hand_over_s: Amount
    cycle_s: Amount = 0.0
    add_s: Amount = 0.0
    each_s: Mapping[str, Positive] = field(default_factory=dict)
    far: Mapping[str, Positive] = field(default_factory=dict)
    in_sets: Mapping[str, Positive] = field(default_factory=dict)
    adds: Rate | None = None

    def launch(self, threads: int) -> float:
        """Return the seconds of an empty launch on `threads` threads."""
        return self.launch_s + (self.hand_over_s if threads > 1 else 0.0)

    def share(self, kind: str | None, threads: int, speed: float) -> float | None:
        """Return a speed, in operations per second, as a share of the peak of `threads` threads;
        None without floats, and for a kernel above the peak, which executes fewer operations than
        are counted."""
        if kind is None or not speed:
            return None
        fraction = speed / self.peak[kind].of(threads)
        return min(fraction, 1.0) if fraction < 1 + 1e-9 else None

    def is_beaten(self, kind: str | None, threads: int, speed: float) -> bool:
        """Whether a kernel of `threads` threads with `speed` operations per second exceeds the
        peak."""
        return kind is not None and speed > (1 + 1e-9) * self.peak[kind].of(threads)

    def is_possible(self, kind: str | None, threads: int, work: Estimates, seconds: float) -> bool:
        """Whether a kernel can take so little time: not if it needs more than PLAUSIBLE times the
        peak, or that many times the bytes that the fastest level has."""
        return PLAUSIBLE * seconds >= self.least_s(kind, threads, work)

    def least_s(self, kind: str | None, threads: int, work: Estimates) -> float:
        """Return the seconds that a kernel takes at the peak, with all its bytes in the fastest
        level."""
        operations = 0.0 if kind is None else self.peak[kind].of(threads)
        bytes_per_s = max((rate.of(threads) for rate in self.read.values()), default=0.0)
        return max(
            work.flops / operations if operations else 0.0,
            work.bytes / bytes_per_s if bytes_per_s else 0.0,
        )

    def raised(self, kind: str, threads: int, speed: float) -> Speeds:
        """Return the speeds with a peak of at least `speed` operations per second on `threads`
        threads."""
        if not self.is_beaten(kind, threads, speed):
            return self
        rate = self.peak[kind].raised(threads, speed)
        return replace(self, peak={**self.peak, kind: rate})

    def vector_s(self, kind: str, lanes: int) -> float:
        """Return the least seconds of a multiply-add of `lanes` numbers that does not wait."""
        return 2 * lanes / self.peak[kind].one

    def fma_each_s(self, size_bytes: int, vector_bytes: int) -> float:
        """Return the seconds of a multiply-add of `size_bytes` bytes that does not wait. A register
        has `vector_bytes`; a wider multiply-add takes several instructions."""
        registers = max(1, -(-size_bytes // vector_bytes))
        narrowest = sorted((int(size), each) for size, each in self.each_s.items())
        for size, each in narrowest:
            if min(size_bytes, vector_bytes) <= size:
                return registers * each
        # If a whole register takes two slots, half of one takes one slot.
        full = max(1.0, self.vector_s("f32", vector_bytes // 4) / self.scalar_s)
        return self.scalar_s * max(1.0, full * size_bytes / vector_bytes)

    @property
    def addition_s(self) -> float:
        """The seconds of an addition of floats that waits for the one before."""
        return self.add_s or self.fma_s

    def fmas_in_flight(self, size_bytes: int, vector_bytes: int) -> int:
        """Return how many multiply-adds of `size_bytes` bytes must be in flight to keep the units
        busy."""
        return max(1, round(self.fma_s / self.fma_each_s(size_bytes, vector_bytes)))

    def far_rate(self, level: str, threads: int, run_bytes: int, sets: int, pages: int) -> float:
        """Return the bytes per second from a level in runs of `run_bytes`, each on another one of
        `pages` pages, whose lines fall into `sets` sets of the first cache (0: into many).

        A miss waits for the one before it in the same set. A larger part of longer runs is
        prefetched, up to whole pages.
        """
        rate = self.read[level].of(threads)
        if level in self.far and run_bytes < PAGE_BYTES:
            far = min(rate, self.far[level] * threads)
            if pages > KNOWN_PAGES:
                far = min(far, self.far.get(WALKS, far) * threads)
            rate = far + (rate - far) * run_bytes / PAGE_BYTES
        if 0 < sets <= max(SET_COUNTS) and str(sets) in self.in_sets:
            rate = min(rate, threads * self.in_sets[str(sets)])
        return rate


def speeds() -> Speeds:
    """Return the speeds of this machine, from disk or measured now.

    Errors: DeviceError without llvmlite.
    """
    with _measuring:  # two threads that call at once get the same speeds
        return earlier_speeds() or measured()


def with_peak(machine_speeds: Speeds, kind: str | None, threads: int, speed: float) -> Speeds:
    """Return `machine_speeds` with the peak corrected by a kernel of `speed` operations per second.
    If it exceeds the peak, the peak is measured again; if that is not enough, it is raised to the
    speed of the kernel, unless that is implausible. The result is stored for this process only."""
    if kind is None or not machine_speeds.is_beaten(kind, threads, speed):
        return machine_speeds
    with _measuring:
        machine_speeds = machine_speeds.raised(kind, threads, _flops(FLOATS[kind], threads))
        if speed <= PLAUSIBLE * machine_speeds.peak[kind].of(threads):
            machine_speeds = machine_speeds.raised(kind, threads, speed)
        with _lock:
            current = _by_place.get(_place(), machine_speeds)
            _by_place[_place()] = replace(current, peak=_better(current.peak, machine_speeds.peak))
    return machine_speeds


def with_launch_time(machine_speeds: Speeds, threads: int, seconds: float) -> Speeds:
    """Return `machine_speeds` with an empty launch on `threads` threads that takes no longer than a
    run of a kernel, `seconds`. The result is stored for this process only.

    Units: seconds.
    """
    if seconds <= 0 or seconds >= machine_speeds.launch(threads):
        return machine_speeds
    alone = min(machine_speeds.launch_s, seconds)
    hand_over = seconds - alone if threads > 1 else machine_speeds.hand_over_s
    with _lock:
        current = _by_place.get(_place(), machine_speeds)
        _by_place[_place()] = replace(
            current,
            launch_s=min(current.launch_s, alone),
            hand_over_s=min(current.hand_over_s, hand_over),
        )
    return replace(machine_speeds, launch_s=alone, hand_over_s=hand_over)


def earlier_speeds() -> Speeds | None:
    """Return the speeds that this session or an earlier one measured; None if none did."""
    place = _place()
    with _lock:
        if place not in _by_place:
            file_speeds = read_json(FOLDER, place[1], Speeds)
            if file_speeds is not None and _makes_sense(file_speeds):
                _by_place[place] = file_speeds
        return _by_place.get(place)


def measured() -> Speeds:
    """Measure this machine, and return the best speeds so far. Impossible speeds are corrected for
    this session, but not stored on disk: the next session measures again."""
    before, fresh, place = earlier_speeds(), _measure(), _place()
    best = fresh if before is None else _best(before, fresh)
    mended = replace(best, read=_mended(best.read), copy=_mended(best.copy))
    with _lock:
        _by_place[place] = mended
    if not disturbed(best.read) and not disturbed(best.copy):
        write_json(FOLDER, place[1], mended)
    return mended


def disturbed(rates: Mapping[str, Rate]) -> list[str]:
    """Return the levels, the fastest first, whose speeds are impossible: clearly slower than the
    next level, or slower with all threads than with one."""
    behind = [*list(rates.values())[1:], None]
    return [
        level
        for (level, rate), next_rate in zip(rates.items(), behind, strict=True)
        if rate.all < _SLACK * rate.one or (next_rate is not None and _is_slower(rate, next_rate))
    ]


def _is_slower(rate: Rate, other: Rate) -> bool:
    return rate.one < _SLACK * other.one or rate.all < _SLACK * other.all


def _mended(rates: Mapping[str, Rate]) -> dict[str, Rate]:
    """Return speeds that are at least those of the next level, and of one thread."""
    monotone: dict[str, Rate] = {}
    behind = Rate(0.0, 0.0)
    for level, rate in reversed([*rates.items()]):
        one = max(rate.one, behind.one)
        behind = monotone[level] = Rate(one, max(rate.all, behind.all, one))
    return dict(reversed(monotone.items()))


def _measure() -> Speeds:
    parts = cores()
    read, copy = (_walks(parts, copies) for copies in (False, True))
    peaks = {n: Rate(*(_flops(d, k) for k in (1, parts))) for n, d in FLOATS.items()}
    chain, single = _flops(dtypes.float32, sums=1), _flops(dtypes.float32, lanes=1)
    lanes = run_peak(sums=1).flops // run_peak(sums=1, lanes=1).flops
    alone, together = (_least_s(run_nothing(threads)) for threads in (1, parts))
    return Speeds(
        peaks,
        read,
        copy,
        2 * lanes / chain,
        2 / single,
        alone,
        max(0.0, together - alone),
        _waiting_s(dtypes.int64),
        _waiting_s(dtypes.float32),
        _each_s(Device.processor.target.vector_bytes),
        *_strided_bandwidths(),
        Rate(*(_adds(k) for k in (1, parts))),
    )


def _waiting_s(dtype: DType) -> float:
    """Return the seconds of an addition that waits for the one before."""
    loop = run_cycles(dtype)
    return _least_s(loop.run) / loop.flops


def _adds(threads: int) -> float:
    """Return the additions per second of all `threads`, of which CHAINS are under way in each."""
    loop = run_cycles(threads=threads, chains=CHAINS)
    return threads * loop.flops / _least_s(loop.run)


def _each_s(vector_bytes: int) -> dict[str, float]:
    """Return the seconds of a multiply-add that does not wait, by the bytes of the instruction."""
    sizes = [4, *(n for n in (16, 32, 64) if n <= vector_bytes)]
    each = {n: run_peak(lanes=n // 4) for n in sizes}
    return {str(n): 2 * n // 4 * _least_s(p.run) / p.flops for n, p in each.items()}


def _strided_bandwidths() -> tuple[dict[str, float], dict[str, float]]:
    """Return the bandwidths of distant lines: by level, and by their sets of the first cache."""
    target = Device.processor.target
    rows: dict[tuple[str, str], tuple[int, int]] = {}
    row_bytes, most_bytes = (PAGE_BYTES + target.line_bytes, KNOWN_PAGES // 2 * PAGE_BYTES)
    *inside, (memory, outside) = working_sets(machine.known_caches())
    rows["far", memory] = outside, row_bytes
    for level, size in inside[1:]:
        rows["far", level] = min(size, most_bytes), row_bytes
    if inside and inside[-1][1] > 2 * most_bytes:
        rows["far", WALKS] = inside[-1][1], row_bytes
    way = target.cache_bytes("L1") // target.cache_ways("L1")
    for sets in SET_COUNTS:
        rows["in_sets", str(sets)] = target.cache_bytes("L2") // 2, way // sets
    best = dict.fromkeys(rows, 0.0)
    for _ in range(_ROUNDS):
        for key, (size, row_bytes) in rows.items():
            best[key] = max(best[key], far_bandwidth(size, row_bytes))
    far, in_sets = (
        {name: s for (part, name), s in best.items() if part == kind} for kind in ("far", "in_sets")
    )
    return far, in_sets


def _walks(threads: int, copies: bool) -> dict[str, Rate]:
    """Return the best of several rounds for each level; disturbed levels get more rounds."""
    levels = machine.known_caches()
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
    return loop.flops / _least_s(loop.run)


def _least_s(run: Run) -> float:
    best_s = math.inf
    for _ in range(_ROUNDS):
        best_s = min(best_s, measure(run, budget_s=_BUDGET_S / _ROUNDS).min_s)
        time.sleep(_PAUSE_S / _ROUNDS)
    return best_s


def _better(x: Mapping[str, Rate], y: Mapping[str, Rate]) -> dict[str, Rate]:
    return {k: Rate(max(x[k].one, y[k].one), max(x[k].all, y[k].all)) for k in y if k in x}


def _better_rate(x: Rate | None, y: Rate | None) -> Rate | None:
    return Rate(max(x.one, y.one), max(x.all, y.all)) if x and y else x or y


def _least(x: Mapping[str, float], y: Mapping[str, float]) -> dict[str, float]:
    return {k: min(x.get(k, s), s) for k, s in y.items()}


def _most(x: Mapping[str, float], y: Mapping[str, float]) -> dict[str, float]:
    return {k: max(x.get(k, s), s) for k, s in y.items()}


def _best(a: Speeds, b: Speeds) -> Speeds:
    return Speeds(
        _better(a.peak, b.peak), _better(a.read, b.read), _better(a.copy, b.copy),
        min(a.fma_s, b.fma_s), min(a.scalar_s, b.scalar_s),
        min(a.launch_s, b.launch_s), min(a.hand_over_s, b.hand_over_s),
        min(a.cycle_s or b.cycle_s, b.cycle_s or a.cycle_s),
        min(a.add_s or b.add_s, b.add_s or a.add_s),
        _least(a.each_s, b.each_s), _most(a.far, b.far), _most(a.in_sets, b.in_sets),
        _better_rate(a.adds, b.adds),
    )  # fmt: skip


# on disk


def _place() -> tuple[str, str]:
    """Return (cache folder, file name) for this machine."""
    levels = machine.known_caches()
    off = os.environ.get(machine.CPU_WITHOUT, "")  # features off: vectors may be shorter
    key = key_of(str(VERSION), machine.cpu(), str(cores()), str(levels), off)
    return str(cache_folder()), f"{key[:16]}.json"


def _makes_sense(speeds_on_disk: Speeds) -> bool:
    """Whether stored speeds have the levels of this machine, and none was disturbed."""
    peak, read, copy = speeds_on_disk.peak, speeds_on_disk.read, speeds_on_disk.copy
    levels = [n for n, _ in working_sets(machine.known_caches())]
    if not list(read) == list(copy) == levels or list(peak) != list(FLOATS):
        return False
    return not disturbed(read) and not disturbed(copy)
