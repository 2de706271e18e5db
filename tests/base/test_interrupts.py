"""Ctrl-C at every place of a `with` block: what the block set is reset."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import copy_context
from types import FrameType
from typing import Any

import pytest

from tests.tools.interrupts import Interrupt, is_interrupted, places
from workbench import Context, Tensor
from workbench.backends.memory import Block, Buffer, BufferPool
from workbench.backends.native.host_memory import host_memory
from workbench.base.context import SETTINGS
from workbench.base.dtypes import dtypes
from workbench.base.interrupts import DynamicScope, Uninterrupted, scope
from workbench.base.trace import SCOPES, observe, observer, unobserved
from workbench.execution.capture import capturing, is_capturing, noting_roots
from workbench.ir.rewriting.rewrite import rules_off, without
from workbench.measure.timing import no_garbage_collection
from workbench.tensor.autograd.leaves import Training, flow, gradients_flow
from workbench.tensor.creation.random import noting_draws
from workbench.tensor.versions import noting_writes
from workbench.viz.session.session import sending
from workbench.worker.benchmark import within


def state() -> tuple[Any, ...]:
    """Return all that blocks set."""
    handler = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGALRM)
    settings = [setting.value for setting in SETTINGS.values()]
    modes = gradients_flow(), is_capturing(), observer(), [*SCOPES], rules_off()
    return *handler, *settings, *modes, gc.isenabled()


BLOCKS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "Context": lambda: Context(DEV="PYTHON", DEBUG=0, NOOPT=1),
    "Training": Training,
    "no_grad": lambda: Tensor.no_grad(),  # type: ignore[attr-defined]
    "flow": lambda: flow(False),
    "observe": observe,
    "unobserved": unobserved,
    "without": lambda: without(["mul-zero"]),
    "capturing": capturing,
    "noting_roots": noting_roots,
    "noting_writes": noting_writes,
    "noting_draws": noting_draws,
    "no_garbage_collection": no_garbage_collection,
    "sending": sending,
    "within": lambda: within(100),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_what_a_block_sets_is_reset(name: str) -> None:
    make, before, bodies = BLOCKS[name], state(), []

    def run() -> None:
        with make():
            bodies.append(1)
            time.perf_counter()

    run()
    for place in range(1, places(run) + 1):
        assert is_interrupted(run, place), place
        assert state() == before, place
    assert len(bodies) > 2, "no interruption in or after the body"


def test_in_a_block_it_is_raised_at_once() -> None:
    reached = []

    def run() -> None:
        with Context(NOOPT=1), Tensor.no_grad():
            signal.raise_signal(signal.SIGINT)
            reached.append(1)

    before = state()
    with pytest.raises(KeyboardInterrupt):
        run()
    assert not reached and state() == before


def test_a_handler_that_does_not_raise_is_called_once() -> None:
    calls: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        calls.append(number)

    def run() -> None:
        with Context(NOOPT=1):
            assert not gradients_flow() and SETTINGS["NOOPT"].value == 1

    before = signal.signal(signal.SIGINT, note)
    try:
        with Tensor.no_grad():
            count = places(run)
            for place in range(1, count + 1):
                with Interrupt(place):
                    run()
                assert len(calls) == place and SETTINGS["NOOPT"].value == 0
        assert signal.getsignal(signal.SIGINT) is note
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_that_the_block_sets_stays() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Context(NOOPT=1):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        with Context(NOOPT=1):  # nothing to defer
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_that_is_set_where_nothing_interrupts_stays() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        with Uninterrupted():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_generator_ends_its_block_in_another_thread() -> None:
    def steps() -> Iterator[int]:
        with Training():
            yield 1
            yield 2

    values, errors = steps(), []

    def finish() -> None:
        try:
            errors.extend([*values, "none"][1:])
        except BaseException as error:
            errors.append(error)

    before = signal.getsignal(signal.SIGINT)
    try:
        # Another thread cannot reset a setting of this one: the block has a context of its own.
        copy_context().run(next, values)
        thread = threading.Thread(target=finish)
        thread.start()
        thread.join()
        assert errors == ["none"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_threads_decorate_with_one_scope() -> None:
    barrier, seen = threading.Barrier(2), []

    @Tensor.no_grad()
    def function() -> None:
        barrier.wait(10)
        seen.append(gradients_flow())
        barrier.wait(10)

    threads = [threading.Thread(target=function) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [False, False] and gradients_flow()


def test_what_is_uninterrupted_in_a_scope_is_whole() -> None:
    done: list[str] = []

    @scope
    def block() -> Any:
        yield

    def run() -> None:
        done.clear()
        with block(), Uninterrupted():
            done.append("begun")
            done.append("ended")

    assert isinstance(block(), DynamicScope)
    for place in range(1, places(run) + 1):
        assert is_interrupted(run, place)
        assert done in ([], ["begun", "ended"]), place


def test_an_interrupted_finalizer_raises_it_after(monkeypatch: pytest.MonkeyPatch) -> None:
    release, blocks = BufferPool.release, []

    def interrupted(pool: BufferPool, block: Block) -> None:
        release(pool, block)
        blocks.append(block)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(BufferPool, "release", interrupted)
    buffer = Buffer("LLVM", dtypes.float32, 1000)
    before = host_memory.pool.used_bytes
    with pytest.raises(KeyboardInterrupt):
        del buffer
        time.perf_counter()
    assert len(blocks) == 1 and host_memory.pool.used_bytes < before
