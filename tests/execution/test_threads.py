"""Threads that compute, write and read the same tensors: each value is one that was written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from threading import Thread

import numpy as np
import pytest

from workbench import Tensor, TinyJit, explore
from workbench.base.errors import WorkbenchError
from workbench.execution.buffers import mark_overwritten
from workbench.ir.schedule.plan import base

SIZE = 2000


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(*functions: Callable[[], None]) -> None:
    """Run functions at once; raise the first error of one."""
    errors: list[BaseException] = []

    def run(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(f,), daemon=True) for f in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_one_new_version_is_computed_once_for_all() -> None:
    for trial in range(20):
        tensor = Tensor(np.full(SIZE, trial, np.int32)).realize()
        tensor += 1
        tensor.assign(tensor * 2)

        def read(tensor: Tensor = tensor, trial: int = trial) -> None:
            assert np.array_equal(tensor.numpy(), np.full(SIZE, 2 * (trial + 1)))

        in_threads(read, read, read)


@pytest.mark.parametrize("is_captured", [False, True])
def test_a_reader_beside_a_writer_reads_whole_versions(is_captured: bool) -> None:
    tensor = Tensor(np.zeros(SIZE, np.int32)).realize()
    is_over = False

    def step(x: Tensor) -> Tensor:
        nonlocal tensor
        tensor += x
        return x * 2

    call = TinyJit(step) if is_captured else step
    one = Tensor([1]).realize()

    def write() -> None:
        nonlocal is_over
        try:
            for _ in range(60):
                call(one).realize()
                if not is_captured:
                    tensor.realize()
        finally:
            is_over = True

    def read() -> None:
        while not is_over:
            values = tensor.numpy()
            assert values.min() == values.max()
            try:
                values = (tensor * 2).numpy()
            except WorkbenchError as error:  # it was written between the two
                assert "a newer one was written over it" in str(error)
            else:
                assert values.min() == values.max()

    in_threads(write, read)
    assert np.array_equal(tensor.numpy(), np.full(SIZE, 60))


@pytest.mark.parametrize("what", ["state", "result", "write"])
def test_what_another_thread_does_during_a_capture_is_no_part_of_it(what: str) -> None:
    """The function is captured at a later call: what it had left to do is done at each call."""
    total, beside = Tensor([0]).realize(), Tensor([0]).realize()
    calls = 0

    def do() -> None:
        if what == "state":
            total.numpy()
        elif what == "result":
            (total * 2).numpy()
        else:
            beside.assign(beside + 100)

    def step(x: Tensor) -> Tensor:
        nonlocal calls, total
        calls += 1
        total += x
        if calls == 2:
            in_threads(do)
        return total * 2 + beside

    call, one = TinyJit(step), Tensor([1]).realize()
    added = 100 if what == "write" else 0
    for n in range(1, 9):
        expected = 2 * n + (added if n > 1 else 0)
        assert call(one).tolist() == [expected]
        assert total.tolist() == [n]
    assert beside.tolist() == [added] and calls < 8


def test_a_replay_runs_beside_an_exploration_and_a_capture() -> None:
    def replay() -> None:
        state = Tensor([1, 2]).realize()

        def step(x: Tensor, state: Tensor = state) -> Tensor:
            state += x
            return state * 2

        call, x = TinyJit(step), Tensor([1, 1]).realize()
        for n in range(30):
            assert call(x).tolist() == [2 * (n + 2), 2 * (n + 3)]

    def show() -> None:
        for n in range(4):
            a = Tensor(np.arange(16, dtype=np.float32).reshape(4, 4) + n)
            ex = explore((a @ a).relu().sum(0))
            assert "kernel" in str(ex) and ex.check()

    def capture() -> None:
        for n in range(6):
            call = TinyJit(lambda x: x * 2 + 1)
            for m in range(4):
                assert call(Tensor([n, m]).realize()).tolist() == [2 * n + 1, 2 * m + 1]

    in_threads(replay, show, capture)


def test_two_writers_of_one_tensor_leave_it_readable() -> None:
    for _ in range(3):
        tensor = Tensor(np.zeros(SIZE, np.int32)).realize()
        refusals: list[WorkbenchError] = []

        def write(tensor: Tensor = tensor, refusals: list[WorkbenchError] = refusals) -> None:
            for _ in range(30):
                try:
                    tensor.assign(tensor + 1)
                    values = tensor.numpy()
                except WorkbenchError as error:  # the other one was between the two
                    refusals.append(error)
                else:
                    assert values.min() == values.max()

        in_threads(write, write, write)
        values = tensor.numpy()
        # one that was between its reading and its writing undid what the others wrote
        assert 1 <= values[0] <= 90 and (values == values[0]).all()
        assert all("a newer one was written over it" in str(e) for e in refusals)


def test_a_thread_that_never_wrote_over_a_version_refuses_what_another_one_did() -> None:
    """Who looks whether its value can be read does not depend on who has written before."""
    refusals: list[str] = []

    def write() -> None:
        tensor = Tensor(np.zeros(SIZE, np.int32)).realize()
        value = tensor + 1
        in_threads(lambda: mark_overwritten(base(tensor.uop)))
        with pytest.raises(WorkbenchError, match="written over it") as refusal:
            tensor.assign(value)
        refusals.append(str(refusal.value))
        # a function that does not reach it is captured as if it were not there
        double = TinyJit(lambda x: x * 2)
        for n in range(4):
            assert double(Tensor([n]).realize()).tolist() == [2 * n]

    in_threads(write)
    assert refusals
