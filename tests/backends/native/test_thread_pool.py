"""The pool: every part of a job runs once, whoever is asleep, busy or late."""

from __future__ import annotations

import ctypes
import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support import count
from workbench.backends.native import jit
from workbench.backends.native import thread_pool as runtime_pool
from workbench.backends.native.thread_pool import ROW, ThreadPool, pool

COUNTER = """
define void @count(ptr %args, i64 %lo, i64 %hi, i64 %part) {
  %numbers = load ptr, ptr %args
  %place = getelementptr i64, ptr %numbers, i64 %part
  %old = load i64, ptr %place
  %steps = sub i64 %hi, %lo
  %new = add i64 %old, %steps
  store i64 %new, ptr %place
  ret void
}
"""
MOST = 6


class Job:
    """A kernel that adds hi - lo to number `part` of an array."""

    def __init__(self) -> None:
        self.code = jit.load_object(jit.compile_object(COUNTER), "count")
        self.numbers: Any = np.zeros(MOST, np.int64)
        self._arguments = ctypes.c_uint64(self.numbers.ctypes.data)
        self._table = (ctypes.c_uint64 * MOST)(*[ctypes.addressof(self._arguments)] * MOST)

    def run(self, workers: ThreadPool, parts: int, steps: int = 1) -> None:
        workers.run(self.code.address, ctypes.addressof(self._table), parts, 0, steps)

    def run_batch(self, workers: ThreadPool, jobs: Sequence[tuple[int, int]]) -> None:
        """Run as many jobs, each of (parts, steps), in one call."""
        table = ctypes.addressof(self._table)
        rows = [(self.code.address, table, steps, parts) for parts, steps in jobs]
        words = (ctypes.c_int64 * (len(rows) * ROW))(*[word for row in rows for word in row])
        workers.run_batch(ctypes.addressof(words), len(rows), max(parts for parts, _ in jobs))


@pytest.fixture(scope="module")
def job() -> Iterator[Job]:
    yield Job()


def test_every_part_runs_once(job: Job) -> None:
    pick = random.Random(0)
    job.numbers[:] = 0
    want = np.zeros(MOST, np.int64)
    for number in range(count(20_000)):
        parts, steps = pick.randint(1, MOST), pick.randint(1, 9)
        job.run(pool(), parts, steps)
        want[:parts] += steps
        assert (job.numbers == want).all()
        if number % 100 == 0:
            time.sleep(pick.uniform(0.0005, 0.004))  # about when workers fall asleep


def test_every_part_of_a_batch_runs_once(job: Job) -> None:
    pick = random.Random(1)
    job.numbers[:] = 0
    want = np.zeros(MOST, np.int64)
    for number in range(count(5_000)):
        most = pick.randint(1, MOST)
        jobs = [(pick.randint(1, most), pick.randint(1, 9)) for _ in range(pick.randint(1, 20))]
        job.run_batch(pool(), jobs)
        for parts, steps in jobs:
            want[:parts] += steps
        assert (job.numbers == want).all()
        if number % 50 == 0:
            time.sleep(pick.uniform(0.0005, 0.004))  # about when workers fall asleep


def test_workers_sleep_after_a_batch(job: Job) -> None:
    workers = ThreadPool()
    job.run_batch(workers, [(MOST, 1), (1, 1)])
    while len(workers._asleep) < workers._workers:
        time.sleep(0.001)
    assert len(workers._asleep) == MOST - 1


def test_an_interrupt_waits_for_the_job(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C right after posting: the parts work on memory of the caller's."""
    workers = ThreadPool()
    post = workers._post

    def interrupted(*arguments: Any) -> None:
        post(*arguments)
        raise KeyboardInterrupt

    job.numbers[:] = 0
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(workers, "_post", interrupted)
        job.run(workers, 3)
    assert job.numbers.tolist() == [1] * 3 + [0] * (MOST - 3)
    job.run(workers, 3)
    assert job.numbers.tolist() == [2] * 3 + [0] * (MOST - 3)


def test_two_callers_take_turns(job: Job) -> None:
    job.numbers[:] = 0
    rounds = count(5_000)

    def call() -> None:
        for number in range(rounds):
            if number % 2:
                job.run(pool(), 3)
            else:
                job.run_batch(pool(), [(3, 1), (2, 0)])

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert job.numbers.tolist() == [2 * rounds] * 3 + [0] * (MOST - 3)


def test_an_idle_pool_uses_no_core(job: Job) -> None:
    """Each worker comes back from machine code by itself, and sleeps on its bell."""
    workers = ThreadPool()
    job.run(workers, MOST)
    while len(workers._asleep) < workers._workers:
        time.sleep(0.001)
    assert len(workers._asleep) == MOST - 1


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be placed here")
def test_who_is_woken_is_sent_to_another_core(monkeypatch: pytest.MonkeyPatch) -> None:
    workers, moves = ThreadPool(), []
    monkeypatch.setattr(runtime_pool, "_current_core", lambda: lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda thread: {0, 1, 2, 3})
    monkeypatch.setattr(os, "sched_setaffinity", lambda *given: moves.append(given))
    bells = [threading.Lock() for _ in range(2)]
    for thread, bell in enumerate(bells, 7001):
        bell.acquire()
        workers._asleep.append((bell, thread))
    workers._wake()
    assert sorted(moves) == [(7001, {0, 1, 3}), (7002, {0, 1, 3})]
    assert not workers._asleep and not any(bell.locked() for bell in bells)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own(job: Job) -> None:
    job.run(pool(), 2)
    child = os.fork()
    if not child:
        code = 1
        try:
            job.numbers[:] = 0
            job.run(pool(), 2)
            code = int(job.numbers.tolist()[:3] != [1, 1, 0])
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
