"""This machine's bandwidth of reading and of copying, for each cache and for memory; cold caches.

Vector loads (and stores) walk a working set again and again, so that after the first pass it lies
in the smallest cache that holds it. Source of the idea: McCalpin's STREAM.

Sections: The bandwidth of reading and of copying; Cold caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from string import Template
from typing import NamedTuple

from workbench.backends.device import Device
from workbench.backends.memory import Buffer
from workbench.backends.native import machine
from workbench.backends.native.machine import MEMORY
from workbench.backends.native.thread_pool import cores
from workbench.backends.program.launch import LaunchShape
from workbench.backends.program.text import Source
from workbench.base.dtypes import dtypes
from workbench.base.target import Caches
from workbench.measure.timing import Run, Sample, Samples, measure, rounds, sample_of

# --------------------------------------------------------------------------------------------------
# The bandwidth of reading and of copying, for each cache and for memory.

_UNROLLED = 8
"""Vectors per step: enough loads in flight, and few enough registers."""
_LEAST_RUN = 1 << 20
"""Least bytes that one run moves, so that the time of its launch is negligible."""
_MOST = 256 << 20
"""The maximal working set of memory, in bytes."""
_BUDGET_S = 0.02


class Walk(NamedTuple):
    """A walk of working sets: `run()` moves `bytes` bytes."""

    run: Callable[[], None]
    bytes: int


def working_sets(caches: Caches, threads: int = 1) -> tuple[tuple[str, int], ...]:
    """Return the bytes of each thread's working set, for each level. It is half of a cache, since
    other data use the cache, too, and for memory three times the last cache. L1 and L2 belong to a
    core; later levels, and memory, are divided by `threads`.

    >>> working_sets((("L1", 32768), ("L2", 1 << 20)), threads=2)
    (('L1', 16384), ('L2', 524288), ('memory', 8388608))
    """
    last = caches[-1][1] if caches else 0
    outside = min(_MOST, max(16 << 20, 3 * last))
    parts = [1, 1, *[threads] * len(caches)]
    inside = zip(caches, parts, strict=False)
    each = tuple((name, size // 2 // n) for (name, size), n in inside)
    return (*each, (MEMORY, outside // threads))


def bandwidth(size_bytes: int, threads: int = 1, copies: bool = False) -> float:
    """Return the bandwidth of `threads` threads together. Each reads a working set of `size_bytes`,
    or, if it `copies`, copies one half of it to the other.

    Units: bytes per second; a byte copied counts twice. Errors: DeviceError without llvmlite.
    """
    walked = walk(size_bytes, threads, copies)
    return walked.bytes / measure(walked.run, budget_s=_BUDGET_S).min_s


def walk(size_bytes: int, threads: int, copies: bool) -> Walk:
    """Return the Walk that `bandwidth` measures: a working set of `size_bytes` per thread."""
    vector = Device.processor.target.vector_bytes
    step = vector * _UNROLLED * (2 if copies else 1)
    steps = max(1, size_bytes // step)
    walked = steps * step
    passes = max(1, _LEAST_RUN // walked)
    data = working_memory(walked * threads)
    program = Device.processor.load(_source(vector, steps, threads, copies, passes, data.size))
    return Walk(program.bind([data]), threads * walked * passes)


@lru_cache(maxsize=1)
def working_memory(size: int) -> Buffer:
    """Return `size` bytes of memory in which every page was written."""
    buffer = Buffer(Device.processor.name, dtypes.uint8, size)
    buffer.array[:] = 1  # pages that were never written share one page of zeros
    return buffer


_WALK = Template("""define void @$name(ptr %args, i64 %lo, i64 %hi$takes_part) {
entry:
  %p0 = load ptr, ptr %args, align 8
  %begin = $begin
  %mine = getelementptr i8, ptr %p0, i64 %begin
  %half = getelementptr i8, ptr %mine, i64 $half
  br label %pass
pass:
  %i = phi i64 [ %lo, %entry ], [ %i.next, %walked ]
$starts
  br label %step
step:
  %j = phi i64 [ 0, %pass ], [ %j.next, %step ]
$sums
  %at = mul i64 %j, $stride
$moves
  %j.next = add i64 %j, 1
  %more = icmp slt i64 %j.next, $steps
  br i1 %more, label %step, label %walked
walked:
  %i.next = add i64 %i, 1
  %again = icmp slt i64 %i.next, %hi
  br i1 %again, label %pass, label %done
done:
$used
  ret void
}
""")
_START = "  %s$n = phi $kind [ zeroinitializer, %entry ], [ %y$n, %walked ]"
_SUM = "  %x$n = phi $kind [ %s$n, %pass ], [ %y$n, %step ]"
_LOAD = """  %o$n = add i64 %at, $offset
  %a$n = getelementptr i8, ptr %mine, i64 %o$n
  %v$n = load $kind, ptr %a$n, align 4
"""
_READ = _LOAD + "  %y$n = or $kind %x$n, %v$n"
_COPY = (
    _LOAD
    + """  %b$n = getelementptr i8, ptr %half, i64 %o$n
  store $kind %v$n, ptr %b$n, align 4
  %y$n = or $kind %x$n, zeroinitializer"""
)
_USED = "  store $kind %y$n, ptr %mine, align 4"
"""A use of the loaded values; without it a compiler removes the loads."""


def _source(vector: int, steps: int, threads: int, copies: bool, passes: int, size: int) -> Source:
    """Return a kernel in which each thread walks its part of the buffer `passes` times."""
    part = vector * _UNROLLED * steps * (2 if copies else 1)
    name = "bandwidth_copy" if copies else "bandwidth_read"
    text = _WALK.substitute(
        name=name,
        takes_part=", i64 %part" if threads > 1 else "",
        begin=f"mul i64 %part, {part}" if threads > 1 else "add i64 0, 0",
        half=part // 2,
        stride=vector * _UNROLLED,
        steps=steps,
        starts=_each(_START, vector),
        sums=_each(_SUM, vector),
        moves=_each(_COPY if copies else _READ, vector),
        used=_each(_USED, vector),
    )
    shape = LaunchShape.on_processor(passes, threads)
    return Source(name, "LLVM IR", text, ((dtypes.uint8, size),), launch=shape)


def _each(lines: str, vector: int) -> str:
    """Return the lines for each vector of a step."""
    template, kind = Template(lines), f"<{vector // 4} x i32>"
    return "\n".join(
        template.substitute(n=n, kind=kind, offset=n * vector) for n in range(_UNROLLED)
    )


# --------------------------------------------------------------------------------------------------
# Cold caches: the time of a kernel whose data are in no cache.
#
# The cores together copy one half of a large buffer to the other, which evicts all other data from
# their caches.

MIN_COPIED_BYTES, MAX_COPIED_BYTES = 64 << 20, 256 << 20
"""Limits of the bytes that are copied; between them, twice the size of the largest cache."""
ROUNDS = 5


def measure_cold(runs: Mapping[str, Run], number: int = ROUNDS) -> dict[str, Samples]:
    """Return the times of several runs, from `number` of the `cold_rounds`."""
    *_, times = islice(cold_rounds(runs), number)
    return times


def cold_rounds(
    runs: Mapping[str, Run], before: Callable[[], None] = lambda: None
) -> Iterator[dict[str, Samples]]:
    """Yield all times so far, after each of the `rounds`; every run begins with cold caches. Unlike
    those of warm runs, the times include waking the threads.

    Errors: DeviceError without llvmlite; any error that `before` raises.
    """
    largest = max((size for _, size in machine.caches()), default=0)
    size, parts = min(MAX_COPIED_BYTES, max(MIN_COPIED_BYTES, 2 * largest)), cores()
    empty = walk(size // parts, parts, copies=True).run

    def sampler(run: Run) -> Callable[[], Sample]:
        def sample() -> Sample:
            empty()
            return sample_of(run)

        return sample

    samplers = {name: sampler(run) for name, run in runs.items()}
    for samples in rounds(samplers, before):
        yield {name: Samples.of(each) for name, each in samples.items()}
