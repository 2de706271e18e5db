"""A process forked beside a thread at work compiles and runs, and spoils nothing of its parent."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import numpy as np
import pytest

from tests.support import count
from tests.tools.processes import HANGS_S, in_fork
from workbench import Context, Tensor, TinyJit
from workbench.backends.native.thread_pool import pool
from workbench.base import interrupts as forking
from workbench.worker.client import Worker

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]
"""A child that is not done then waits for a lock that nobody will free."""


@contextmanager
def beside(work: Callable[[int], object]) -> Iterator[None]:
    """A thread does a piece of work after another in the block."""
    is_over, began = threading.Event(), threading.Event()

    def life() -> None:
        number = 0
        while not is_over.is_set():
            work(number)
            number += 1
            began.set()

    thread = threading.Thread(target=life)
    thread.start()
    assert began.wait(HANGS_S)
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def total(size: int) -> bool:
    """Compile a kernel that is as new as its size, and run it."""
    with Context(DEV="LLVM"):
        value = (Tensor(np.ones(size, np.float32)) + 1).sum().item()
    return bool(value == 2 * size)


def test_a_child_compiles_where_a_thread_of_its_parent_did() -> None:
    with beside(lambda number: total(1000 + number)):
        for number in range(count(300) // 2):
            in_fork(lambda number=number: total(100_000 + number))  # type: ignore[misc]


def test_a_child_has_threads_where_those_of_its_parent_ran_a_kernel() -> None:
    assert total(1 << 20)
    wide = Tensor(np.ones(1 << 20, np.float32)).realize()

    def run(number: int) -> object:
        return (wide * number).realize()

    with beside(run):
        context = get_context("fork")
        for _ in range(3):
            with ProcessPoolExecutor(2, mp_context=context) as executor:
                sizes = range(1 << 20, (1 << 20) + 4)
                assert all(executor.map(total, sizes, timeout=HANGS_S))
    assert pool()._workers


def test_every_lock_is_free_in_a_child() -> None:
    draw = TinyJit(lambda x: (x + 1).realize())
    assert total(10)
    is_taken, is_over = threading.Event(), threading.Event()

    def hold() -> None:
        locks = [lock for lock in forking._locks if lock.acquire(blocking=False)]
        is_taken.set()
        is_over.wait(HANGS_S)
        for lock in locks:
            lock.release()

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_taken.wait(HANGS_S)
    try:
        in_fork(
            lambda: (
                total(3000)
                and draw(Tensor([1.0])).item() == 2.0
                and Tensor.rand(4).numpy().size == 4
            )
        )
    finally:
        is_over.set()
        thread.join()


def test_a_child_leaves_its_parents_worker_alone() -> None:
    with Worker() as worker:
        process = worker._lasting.running()

        def work() -> bool:
            worker.close()
            own = worker._lasting.running().pid
            worker.close()
            return own != process.pid

        in_fork(work)
        assert process.is_running and worker._lasting.running() is process
