"""Threads that run parts of one kernel, woken in a few microseconds.

A worker runs in machine code: it spins on a ticket, takes parts of the job while there are any, and
spins again. After some 50 us without work it returns to Python and sleeps on a lock, so that an
idle notebook uses no processor time. The caller takes parts as well: on a busy machine, where the
workers get no core, it runs them all without waiting. No thread holds Python's lock while a kernel
runs. Source of the idea: the pools of OpenMP runtimes.

    kernel(args[part], lo, hi, part)      for part in 0..parts-1, at once
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from string import Template

from workbench.backends.native import jit
from workbench.backends.native.jit import object_of

SPINS = 1_000
"""Pauses before a worker sleeps: some 50 us. A batch keeps it awake between its kernels."""
LINE = 16
"""Words in a pair of cache lines: a processor fetches neighbouring lines together."""
AWAKE = 6
"""The word that keeps workers awake."""
ROW = 4
"""Words of a kernel in the table of a batch."""
CHAIN = 1
"""Words before the table of a chain: the number of its kernels."""
PARTS = 1 << 16
"""A number above the parts of any job. A ticket is the job's number times PARTS, plus a part."""


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _other_cores() -> set[int] | None:
    """Return the cores that this process may use except the current one; None if unknown."""
    current = _current_core()
    if current is None or not hasattr(os, "sched_setaffinity"):
        return None
    return os.sched_getaffinity(0) - {current()}


@lru_cache(maxsize=1)
def _current_core() -> Callable[[], int] | None:
    """Return the system's function for the current core of a thread; None if it has none."""
    if os.name != "posix":
        return None
    function: Callable[[], int] | None = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    return function


class ThreadPool:
    """The workers, and the words of memory that they share with the caller."""

    def __init__(self) -> None:
        code = _functions()
        self._work, self._post, self._share, self._batch, self._chain = (
            ctypes.CFUNCTYPE(result, *arguments)(c.address)
            for c, (result, arguments) in zip(code, _SIGNATURES, strict=True)
        )
        self._code = code
        self._memory = (ctypes.c_int64 * (3 * LINE))()
        start = ctypes.addressof(self._memory)
        self._shared = start + -start % (8 * LINE)
        self._ticket = ctypes.c_int64.from_address(self._shared)
        self._busy = threading.Lock()
        self._asleep: list[tuple[threading.Lock, int]] = []
        self._workers = 0

    def run(self, kernel: int, arguments: int, parts: int, lo: int, hi: int) -> None:
        """Run `kernel` (an address) on `parts` parts at once, and return when all are done.

        `arguments` is the address of an array with a pointer per part.
        """
        with self._busy:
            while self._workers < parts - 1:
                self._start()
            try:
                self._post(self._shared, kernel, arguments, lo, hi, parts)
                self._wake()
            finally:  # after Ctrl-C, too: a posted job uses the caller's memory
                self._share(self._shared)

    def run_batch(self, table: int, count: int, parts: int) -> None:
        """Run `count` kernels one after the other, and return when all are done.

        `table` is the address of ROW words a kernel: its address, its `arguments` as in `run`, its
        hi, and its parts, of which `parts` is the most. Workers stay awake until the last kernel.
        """
        if parts == 1:
            self._batch(self._shared, table, count)
            return
        with self._busy:
            while self._workers < parts - 1:
                self._start()
            self._wake()
            self._batch(self._shared, table, count)

    def chain(self, rows: Sequence[int]) -> Callable[[], None]:
        """Return a call that runs kernels of one part each, one after the other. `rows` has ROW
        words a kernel, as in `run_batch`. Such kernels leave the workers alone, so that the call
        holds in a forked child, too."""
        count = len(rows) // ROW
        words = (ctypes.c_int64 * (CHAIN + len(rows)))(count, *rows)
        call = partial(self._chain, ctypes.c_void_p(ctypes.addressof(words)))
        call.__dict__["memory"] = words, self._code  # alive as long as the call
        return call

    def _wake(self) -> None:
        """Wake all workers. A worker wakes on the caller's core, and would wait there while the
        caller runs its own part, so it is moved to another core."""
        other_cores = _other_cores() if self._asleep else None
        while self._asleep:
            wake_lock, thread = self._asleep.pop()
            if other_cores:
                with suppress(OSError):
                    os.sched_setaffinity(thread, other_cores)
            wake_lock.release()

    def _start(self) -> None:
        self._workers += 1
        name = f"workbench-{self._workers}"
        threading.Thread(target=self._worker_loop, name=name, daemon=True).start()

    def _worker_loop(self) -> None:
        while True:
            ticket = self._work(self._shared)
            wake_lock = threading.Lock()
            wake_lock.acquire()
            sleeper = wake_lock, threading.get_native_id()
            self._asleep.append(sleeper)
            # A job posted before the lock was listed woke no worker: compare before sleeping.
            if self._ticket.value >> 16 == ticket >> 16:
                wake_lock.acquire()
            else:
                with suppress(ValueError):  # `_wake` has removed it
                    self._asleep.remove(sleeper)


@lru_cache(maxsize=1)
def pool() -> ThreadPool:
    """Return the process's pool, which starts on first use, and anew in a forked child."""
    return ThreadPool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)


_SIGNATURES: tuple[tuple[type | None, tuple[type, ...]], ...] = (
    (ctypes.c_int64, (ctypes.c_void_p,)),
    (None, (ctypes.c_void_p, *[ctypes.c_int64] * 5)),
    (None, (ctypes.c_void_p,)),
    (None, (ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)),
    (None, (ctypes.c_void_p,)),
)
_NAMES = ("pool_work", "pool_post", "pool_share", "pool_batch", "pool_chain")


@lru_cache(maxsize=1)
def _functions() -> list[jit.Code]:
    return jit.load_functions(object_of(_text()), _NAMES)


# Words that workers and the caller share: 0 is the ticket, 1 kernel, 2 arguments, 3 lo, 4 hi, 5
# threads, 6 whether workers stay awake, and LINE the number of parts that are done. The ticket is
# the job's number times PARTS plus the next part, and is changed by compare-and-swap: so a part
# that a thread takes belongs to the job whose fields it read. While a job is being written, the
# ticket says that no part is left.
_FIELDS = tuple(enumerate(("kernel", "arguments", "lo", "hi", "threads"), 1))
_LOADS = "\n".join(
    f"  %{name}.at = getelementptr i64, ptr %shared, i64 {word}\n"
    f"  %{name} = load i64, ptr %{name}.at, align 8"
    for word, name in _FIELDS
)
_STORES = "\n".join(
    f"  %at{word} = getelementptr i64, ptr %shared, i64 {word}\n"
    f"  store i64 %{name}, ptr %at{word}, align 8"
    for word, name in _FIELDS
)
_IDLE = "  %idle = phi i64 [ 0, %entry ], [ %more, %rest ], [ 0, %take ], [ 0, %run ]"
_TAKE = Template(f"""look:
$counter
  %ticket = load atomic i64, ptr %shared acquire, align 8
  %part = and i64 %ticket, {PARTS - 1}
{_LOADS}
  %left = icmp slt i64 %part, %threads
  br i1 %left, label %take, label %$none
take:
  %next = add i64 %ticket, 1
  %swap = cmpxchg ptr %shared, i64 %ticket, i64 %next acq_rel monotonic
  %mine = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %mine, label %run, label %look
run:
  %table = inttoptr i64 %arguments to ptr
  %slot = getelementptr ptr, ptr %table, i64 %part
  %own = load ptr, ptr %slot, align 8
  %code = inttoptr i64 %kernel to ptr
  call void %code(ptr %own, i64 %lo, i64 %hi, i64 %part)
  %count = atomicrmw add ptr %done, i64 1 acq_rel
  br label %look""")
"""Take a part and run it; if none is left, go on at `none`."""
_POOL = Template(f"""$declared
define i64 @pool_work(ptr %shared) {{
entry:
  %done = getelementptr i64, ptr %shared, i64 {LINE}
  br label %look
{_TAKE.substitute(counter=_IDLE, none="rest")}
rest:
$pause
  %more = add i64 %idle, 1
  %long = icmp ugt i64 %more, {SPINS}
  %awake.at = getelementptr i64, ptr %shared, i64 {AWAKE}
  %awake = load atomic i64, ptr %awake.at monotonic, align 8
  %free = icmp eq i64 %awake, 0
  %tired = and i1 %long, %free
  br i1 %tired, label %sleep, label %look
sleep:
  ret i64 %ticket
}}

define void @pool_post(ptr %shared, i64 %kernel, i64 %arguments, i64 %lo, i64 %hi, i64 %threads) {{
  %done = getelementptr i64, ptr %shared, i64 {LINE}
  %ticket = load i64, ptr %shared, align 8
  %job = lshr i64 %ticket, 16
  %number = add i64 %job, 1
  %open = shl i64 %number, 16
  %closed = or i64 %open, {PARTS - 1}
  store atomic i64 %closed, ptr %shared seq_cst, align 8
  fence seq_cst
{_STORES}
  store atomic i64 0, ptr %done monotonic, align 8
  store atomic i64 %open, ptr %shared seq_cst, align 8
  ret void
}}

define void @pool_share(ptr %shared) {{
entry:
  %done = getelementptr i64, ptr %shared, i64 {LINE}
  br label %look
{_TAKE.substitute(counter="", none="wait")}
wait:
$pause
  %finished = load atomic i64, ptr %done acquire, align 8
  %all = icmp eq i64 %finished, %threads
  br i1 %all, label %out, label %wait
out:
  ret void
}}

define void @pool_batch(ptr %shared, i64 %start, i64 %count) {{
entry:
  %awake.at = getelementptr i64, ptr %shared, i64 {AWAKE}
  store atomic i64 1, ptr %awake.at monotonic, align 8
  %table = inttoptr i64 %start to ptr
  br label %look
look:
  %row = phi i64 [ 0, %entry ], [ %next, %alone ], [ %next, %together ]
  %next = add i64 %row, 1
  %left = icmp slt i64 %row, %count
  br i1 %left, label %load, label %out
load:
  %at = mul i64 %row, {ROW}
  %kernel.at = getelementptr i64, ptr %table, i64 %at
  %kernel = load i64, ptr %kernel.at, align 8
  %arguments.at = getelementptr i64, ptr %kernel.at, i64 1
  %arguments = load i64, ptr %arguments.at, align 8
  %hi.at = getelementptr i64, ptr %kernel.at, i64 2
  %hi = load i64, ptr %hi.at, align 8
  %parts.at = getelementptr i64, ptr %kernel.at, i64 3
  %parts = load i64, ptr %parts.at, align 8
  %several = icmp sgt i64 %parts, 1
  br i1 %several, label %together, label %alone
alone:
  %code = inttoptr i64 %kernel to ptr
  %own.at = inttoptr i64 %arguments to ptr
  %own = load ptr, ptr %own.at, align 8
  call void %code(ptr %own, i64 0, i64 %hi, i64 0)
  br label %look
together:
  call void @pool_post(ptr %shared, i64 %kernel, i64 %arguments, i64 0, i64 %hi, i64 %parts)
  call void @pool_share(ptr %shared)
  br label %look
out:
  store atomic i64 0, ptr %awake.at monotonic, align 8
  ret void
}}

define void @pool_chain(ptr %words) {{
entry:
  %count = load i64, ptr %words, align 8
  %start.at = getelementptr i64, ptr %words, i64 {CHAIN}
  br label %look
look:
  %row = phi i64 [ 0, %entry ], [ %next, %run ]
  %left = icmp slt i64 %row, %count
  br i1 %left, label %run, label %out
run:
  %next = add i64 %row, 1
  %at = mul i64 %row, {ROW}
  %kernel.at = getelementptr i64, ptr %start.at, i64 %at
  %kernel = load i64, ptr %kernel.at, align 8
  %arguments.at = getelementptr i64, ptr %kernel.at, i64 1
  %arguments = load i64, ptr %arguments.at, align 8
  %hi.at = getelementptr i64, ptr %kernel.at, i64 2
  %hi = load i64, ptr %hi.at, align 8
  %code = inttoptr i64 %kernel to ptr
  %own.at = inttoptr i64 %arguments to ptr
  %own = load ptr, ptr %own.at, align 8
  call void %code(ptr %own, i64 0, i64 %hi, i64 0)
  br label %look
out:
  ret void
}}
""")
"""A worker; the posting of a job; the caller's share of it, until all parts are done; several jobs
in a row; several jobs of one part each."""


def _text() -> str:
    """Return the LLVM IR of the pool for this machine: x86 has an instruction to pause."""
    name = "void @llvm.x86.sse2.pause()"
    if not jit.is_x86():
        return _POOL.substitute(declared="", pause="")
    return _POOL.substitute(declared=f"declare {name}", pause=f"  call {name}")
