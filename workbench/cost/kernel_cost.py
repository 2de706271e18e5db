"""The predicted cost of a kernel: work, bytes from each level of memory, and time on this machine.

It has three simple models: `work` (the part that each step of each loop waits for), `traffic` (the
bytes that the loops load into each cache), and speeds measured once on this machine. A run takes as
long as the slowest part and a share of the others: a processor overlaps them, but not completely.
Source of the idea: the roofline of Williams, Waterman and Patterson, with a roof for each level.

Sections: The cost of one run of a kernel by a model; The cost of a kernel on a processor.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from workbench.backends.program.launch import launch_shape
from workbench.backends.program.non_temporal import non_temporal_stores
from workbench.base.errors import plural
from workbench.base.target import Target
from workbench.base.terminal import Printed
from workbench.base.trace import unobserved
from workbench.cost.cache_traffic import Arrival, Moved, Traffic
from workbench.cost.core_time import LoopWork, work
from workbench.ir.lower.launch import barriers
from workbench.ir.nest.accesses import size_of
from workbench.ir.nest.estimates import Counts, Estimates, count, estimate
from workbench.ir.node.uop import UOp
from workbench.ir.rewriting.rewrite import RulesInForce, rules_in_force
from workbench.measure.kernel_time import seconds_text
from workbench.measure.speeds import PAGE_BYTES, Speeds
from workbench.measure.timing import bytes_text, number_text
from workbench.pickles import pickled
from workbench.pipeline import Stages, stages

# --------------------------------------------------------------------------------------------------
# The cost of one run of a kernel by a model: the base class of processors and GPUs.

OVERLAP_SHARE = 0.15
"""Share of the time of the other parts that is added to the slowest one, since parts do not overlap
completely."""


@pickled
@dataclass(frozen=True, slots=True, repr=False)
class Bottleneck(Printed):
    """The resource that a kernel waits for: `what` names it, and `why` has the numbers."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True, slots=True, repr=False)
class RunCost(Printed, ABC):
    """The cost of one warm run of a kernel.

    `bytes_from` has, for each level of memory, the bytes that move from there towards the core and
    back. `seconds` has the time of each part alone. `kind` names the peak of arithmetic, "f32" or
    "f64", or on a GPU also that of tensor cores.
    """

    estimates: Estimates
    counts: Counts
    bytes_from: Mapping[str, int]
    seconds: Mapping[str, float]
    kind: str

    @property
    def predicted_s(self) -> float:
        """The predicted seconds of one run."""
        return self.work_s + self.launch_s

    @property
    def work_s(self) -> float:
        """The predicted seconds of all parts together, without the launch."""
        return sum(self.contributions.values())

    @property
    def contributions(self) -> dict[str, float]:
        """The seconds that each part adds to a run: all of the slowest part, a share of others."""
        slowest = max(self.seconds, key=lambda part: self.seconds[part])
        return {p: s if p == slowest else OVERLAP_SHARE * s for p, s in self.seconds.items()}

    @property
    def intensity(self) -> float:
        """Operations for each byte that the algorithm needs."""
        return self.estimates.intensity

    @property
    def slowest(self) -> str:
        """The part that the work waits for: the slowest one."""
        return max(self.seconds, key=lambda part: self.seconds[part])

    @property
    def limit(self) -> str:
        """What a run waits for: "launch" if that takes longer than the work, else `slowest`."""
        return "launch" if self.launch_s > self.work_s else self.slowest

    @property
    @abstractmethod
    def launch_s(self) -> float:
        """The seconds of an empty launch."""

    @property
    @abstractmethod
    def parallel(self) -> tuple[int, str]:
        """The number and the name of what runs in parallel: (2, "thread")."""

    @abstractmethod
    def roofs(self) -> dict[str, float]:
        """Return the roofs in operations per second: "peak" of the arithmetic, and for each level
        its bandwidth times the operations per byte from it. A level without traffic is absent."""

    @property
    @abstractmethod
    def ceilings(self) -> tuple[float, float]:
        """What the whole machine does at most, in operations of this kind per second, and what
        comes from its main memory, in bytes per second."""

    @abstractmethod
    def notes(self) -> list[str]:
        """Return further facts about the run, one a line."""


# --------------------------------------------------------------------------------------------------
# The cost of a kernel on a processor, by its loop nest, before it runs.

KEPT_KERNELS = 64
"""The number of memoised linear programs, the most recently used ones."""
CROWDED = 2
"""If more lines than this many times the ways of a set fall into it, each new line evicts another
one. Some of fewer lines are still in the cache, whatever its replacement policy."""


class Transfer(NamedTuple):
    """The bytes of one buffer that move from a level in a run, and their seconds. They come in runs
    of run_bytes that begin jump_bytes apart (0: all side by side, or at no constant distance). The
    runs fall into `sets` sets of L1; 0 if these are many or unknown."""

    bytes: int
    seconds: float
    run_bytes: int
    jump_bytes: int
    sets: int


@dataclass(frozen=True, slots=True, repr=False)
class Cost(RunCost):
    """The cost of one warm run of a kernel: caches hold data of the run before, as far as they fit.

    `bytes_from` has, for each level, the bytes that move from there towards the core and back, for
    "L1" those of loads and stores. `seconds` has the time of each part alone, on `threads` threads:
    "core" and the levels below L1. `transfers` has, for each of these levels, the bytes by buffer.
    `without_sets` has the bytes that would move if a line could lie anywhere in the cache above.
    """

    work: LoopWork
    threads: int
    speeds: Speeds
    transfers: Mapping[str, tuple[Transfer, ...]]
    without_sets: Mapping[str, int]
    elsewhere: str = ""
    """The name of the machine, if it is not this one."""

    @property
    def launch_s(self) -> float:
        """The seconds of an empty launch on `threads` threads."""
        return self.speeds.launch(self.threads)

    @property
    def parallel(self) -> tuple[int, str]:
        return self.threads, "thread"

    @property
    def ceilings(self) -> tuple[float, float]:
        *_, memory = self.speeds.read.values()
        return self.speeds.peak[self.kind].together, memory.together

    def notes(self) -> list[str]:
        return []

    def roofs(self, threads: int | None = None) -> dict[str, float]:
        """Return the roofs in operations per second on `threads` threads (None: those of the run):
        "peak" of the arithmetic, and for each level its bandwidth times the operations per byte
        from it. A level without traffic is absent.
        """
        parts = self.threads if threads is None else threads
        flops = self.estimates.flops
        limits = {"peak": self.speeds.peak[self.kind].of(parts)}
        for level, moved in self.bytes_from.items():
            if moved and flops:
                limits[level] = flops / moved * self.speeds.read[level].of(parts)
        return limits

    def __str__(self) -> str:
        most = max(len(name) for name in self.bytes_from)
        lines = [
            f"{self.estimates.flops:,} operations, {bytes_text(self.estimates.bytes)}:"
            f" {number_text(self.intensity)} operations per byte",
            f"predicted {seconds_text(self.predicted_s)} on {plural(self.threads, 'thread')}"
            f"{self.elsewhere and f' of {self.elsewhere}, not measured'}, limited by"
            f" {self.limit}",
            f"  {'core':{most}}  {seconds_text(self.seconds['core']):>8}",
        ]
        for level, moved in self.bytes_from.items():
            took = self.seconds.get(level)
            speed = f"{number_text(self.speeds.read[level].of(self.threads) / 1e9)} GB/s"
            time_text = "" if took is None else seconds_text(took)
            lines.append(f"  {level:{most}}  {time_text:>8}  {bytes_text(moved):>8} at {speed}")
        one, these = self.roofs(1), self.roofs()
        for name, roof in these.items():
            alone = f", {number_text(one[name] / 1e9)} on one" if self.threads > 1 else ""
            lines.append(f"  roof of {name}: {number_text(roof / 1e9)} GFLOP/s{alone}")
        return "\n".join(lines)


@lru_cache(maxsize=KEPT_KERNELS)
def _lowered(kernel: UOp, target: Target, rules: RulesInForce) -> Stages:
    """Return the stages of a kernel up to its linear program, memoised for equal kernels."""
    with unobserved():
        return stages(kernel, target, upto="linear")


def cost(kernel: UOp, target: Target, speeds: Speeds, original: UOp | None = None) -> Cost:
    """Return the cost of a kernel (a SINK) on a target with these speeds.

    `original` is the kernel without opts: its operations and bytes are those of the algorithm.
    Errors: CompileError if the kernel cannot be lowered.
    """
    plain = kernel if original is None else original
    lowered = _lowered(kernel, target, rules_in_force())
    block, linear = lowered.lowered, lowered.linear
    threads = launch_shape(linear).threads
    non_temporal = {store.place.param for store in non_temporal_stores(linear, target)}
    counts = count(linear, barriers(kernel, target), target.has_groups)
    traffic = Traffic(block, target.line_bytes, non_temporal)
    core = work(linear, target, speeds)
    names = [*speeds.read]
    bytes_from = {names[0]: counts.bytes_loaded + counts.bytes_stored}
    together = min(threads, target.cores)
    transfers: dict[str, tuple[Transfer, ...]] = {}
    without_sets: dict[str, int] = {}
    for place, (level, below) in enumerate(pairwise(names)):
        # L1 and L2 belong to a core; later levels are shared
        cache = target.cache_bytes(level), place >= 2
        moved = traffic.by_buffer(*cache, target.cache_ways(level))
        bytes_from[below] = sum(each.bytes for each in moved.values())
        lines = target.cache_bytes(level) // target.line_bytes
        without_sets[below] = traffic.into(*cache, ways=lines)
        transfers[below] = tuple(
            _transfer(below, size, traffic.arrivals[buffer], buffer, target, speeds, together)
            for buffer, size in moved.items() if size
        )  # fmt: skip
    kind = float_kind(kernel) or "f32"
    # a core may be slower while others work, by the ratio of the peaks
    peak = speeds.peak[kind]
    seconds = {"core": core.total_s * peak.of(1) / peak.of(together)}
    for level in names[1:]:
        seconds[level] = sum(transfer.seconds for transfer in transfers[level])
    elsewhere = "" if target.hardware is None else target.device
    return Cost(
        estimate(plain), counts, bytes_from, seconds, kind, core, together, speeds, transfers,
        without_sets,
        elsewhere,
    )  # fmt: skip


def _transfer(
    level: str,
    moved: Moved,
    arrival: Arrival,
    buffer: UOp,
    target: Target,
    speeds: Speeds,
    threads: int,
) -> Transfer:
    """Return the bytes of a buffer from a level, with the order of their lines and their time."""
    read = speeds.read[level].of(threads)
    # the rate of a copy counts bytes read and written, not lines loaded first
    only_read = max(0, moved.loaded - moved.written)
    seconds = only_read / read + moved.written / speeds.copy[level].of(threads)
    if not arrival.jumps:
        return Transfer(moved.bytes, seconds, 0, 0, 0)
    itemsize, line = buffer.dtype.itemsize, target.line_bytes
    run = max(line, arrival.length * itemsize)
    jump, sets = arrival.jump * itemsize, 0
    ways, way = target.cache_ways("L1"), target.cache_sets("L1") * line
    if jump and arrival.jumps > CROWDED * ways:
        sets = -(-run // line) * (way // math.gcd(jump, way))
        sets = sets if str(sets) in speeds.in_sets else 0
    # runs on one page are prefetched, as if they were side by side
    on_page = 0 < jump <= PAGE_BYTES // 2
    pages = size_of(buffer) * itemsize // PAGE_BYTES
    rate = speeds.far_rate(level, threads, PAGE_BYTES if on_page else run, sets, pages)
    return Transfer(moved.bytes, seconds * read / rate, run, jump, sets)


def float_kind(kernel: UOp) -> str | None:
    """Return the peak that a kernel is compared with: "f64" if it computes in float64, "f32" if in
    other floats; None without floats."""
    bits = {n.dtype.bits for n in kernel.toposort() if n.dtype.is_float}
    return None if not bits else "f64" if 64 in bits else "f32"
