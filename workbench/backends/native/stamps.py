"""Times of kernels that run in one native call: begin, end and thread of each part.

A stamped kernel is called like a kernel, and so runs wherever one does: it reads the clock, calls
the kernel, reads the clock again, and writes to a record of its own, which stands in for the
arguments. The clock is that of Python's `perf_counter_ns`.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from workbench.backends.native import jit
from workbench.backends.native.jit import object_of
from workbench.backends.native.thread_pool import pool

RECORD = 16
"""Words of the record of a part, in lines of its own: kernel, arguments, the functions of the clock
and of the thread, then begin and end in seconds and nanoseconds, and the thread."""
_BEGIN, _END, _THREAD = 4, 6, 8
_MONOTONIC = 1
"""CLOCK_MONOTONIC of Linux."""

_TEXT = f"""
define void @stamped(ptr %record, i64 %lo, i64 %hi, i64 %part) {{
  %kernel = load ptr, ptr %record, align 8
  %arguments.at = getelementptr i64, ptr %record, i64 1
  %arguments = load ptr, ptr %arguments.at, align 8
  %clock.at = getelementptr i64, ptr %record, i64 2
  %clock = load ptr, ptr %clock.at, align 8
  %self.at = getelementptr i64, ptr %record, i64 3
  %self = load ptr, ptr %self.at, align 8
  %begin = getelementptr i64, ptr %record, i64 {_BEGIN}
  %end = getelementptr i64, ptr %record, i64 {_END}
  %thread.at = getelementptr i64, ptr %record, i64 {_THREAD}
  %thread = call i64 %self()
  store i64 %thread, ptr %thread.at, align 8
  %first = call i32 %clock(i32 {_MONOTONIC}, ptr %begin)
  call void %kernel(ptr %arguments, i64 %lo, i64 %hi, i64 %part)
  %last = call i32 %clock(i32 {_MONOTONIC}, ptr %end)
  ret void
}}
"""


class Stamp(NamedTuple):
    """A part of the launch number `launch`, on a thread by its identity in Python."""

    launch: int
    start_ns: int
    end_ns: int
    thread: int


@lru_cache(maxsize=1)
def _functions() -> tuple[jit.Code, int, int] | None:
    """Return the code, and the addresses of the system's clock and of its identity of a thread;
    None where the clock is another one than Python's."""
    clock = time.get_clock_info("perf_counter").implementation
    if sys.platform != "linux" or "CLOCK_MONOTONIC" not in clock or sys.maxsize < 1 << 32:
        return None
    system = ctypes.CDLL(None)
    addresses = [
        ctypes.cast(function, ctypes.c_void_p).value or 0
        for function in (system.clock_gettime, system.pthread_self)
    ]
    (code,) = jit.load_functions(object_of(_TEXT), ("stamped",))
    return code, addresses[0], addresses[1]


def can_stamp() -> bool:
    """Whether kernels can be stamped here."""
    return _functions() is not None


def run_stamped(rows: Sequence[tuple[int, int, int, int]]) -> list[Stamp]:
    """Run kernels one after the other in one native call, and return the stamps of their parts.
    `rows` has the words of each in the table of a batch: the address of the kernel and of its array
    of arguments, the number of its steps, and its parts."""
    functions = _functions()
    assert functions is not None
    code, clock, self = functions
    count = sum(parts for *_, parts in rows)
    records = (ctypes.c_int64 * (RECORD * count))()
    pointers = (ctypes.c_int64 * count)()
    start = ctypes.addressof(records)
    words: list[int] = []
    places: list[int] = []
    for launch, (kernel, table, steps, parts) in enumerate(rows):
        arguments = (ctypes.c_int64 * parts).from_address(table)
        words += (code.address, ctypes.addressof(pointers) + 8 * len(places), steps, parts)
        for part in range(parts):
            first = RECORD * len(places)
            records[first : first + 4] = [kernel, arguments[part], clock, self]
            pointers[len(places)] = start + 8 * first
            places.append(launch)
    table_of_all = (ctypes.c_int64 * len(words))(*words)
    most = max(parts for *_, parts in rows)
    pool().run_batch(ctypes.addressof(table_of_all), len(rows), most)
    return [
        _stamp(launch, records[RECORD * n : RECORD * (n + 1)]) for n, launch in enumerate(places)
    ]


def _stamp(launch: int, record: list[int]) -> Stamp:
    start_ns, end_ns = (record[at] * 10**9 + record[at + 1] for at in (_BEGIN, _END))
    return Stamp(launch, start_ns, end_ns, record[_THREAD])
