"""Captured functions under stress: threads, Ctrl-C, memory that goes and comes, forks."""

from __future__ import annotations

import gc
import os
from random import Random
from threading import Thread
from typing import Any

import numpy as np
import pytest

from tests.support import count
from tests.tensor.jit.support import held, numbers
from tests.tools.interrupts import is_interrupted, places
from tests.tools.processes import in_fork
from workbench import GlobalCounters, Tensor, TinyJit
from workbench.base.errors import JitError

ROWS = [numbers((64,), seed) for seed in range(8)]


def pair(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x * 2 + y, (x - y).sum()


def expected(x: Any, y: Any) -> tuple[Any, Any]:
    return x * 2 + y, (x - y).sum()


def is_right(results: Any, n: int, m: int) -> bool:
    pairs = zip(results, expected(ROWS[n], ROWS[m]), strict=True)
    return all(np.allclose(r.numpy(), e, rtol=1e-4, atol=1e-3) for r, e in pairs)


def test_four_threads_call_one_function() -> None:
    call: Any = TinyJit(pair)
    tensors, wrong = [held(row) for row in ROWS], list[str]()
    step: Any = TinyJit(lambda h: h * 0.5 + 1)
    calls = count(100_000) // 4

    def work(seed: int) -> None:
        random, kept = Random(seed), list[Any]()
        try:
            h, value = tensors[seed], ROWS[seed]
            for turn in range(calls):
                n, m = random.randrange(8), random.randrange(8)
                results = call(tensors[n], tensors[m])
                if turn % 50 == 0:
                    kept.append((results, n, m))
                    h, value = step(h), value * np.float32(0.5) + 1
            wrong.extend(f"{seed}: {n}, {m}" for r, n, m in kept if not is_right(r, n, m))
            if not np.allclose(h.numpy(), value, rtol=1e-4):
                wrong.append(f"{seed}: chain")
        except BaseException as error:
            wrong.append(f"{seed}: {error!r}")

    threads = [Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_random_moments() -> None:
    call: Any = TinyJit(pair)
    tensors = [held(row) for row in ROWS]
    for _ in range(5):
        call(tensors[0], tensors[1])
    random, interrupted = Random("ctrl-c"), 0
    earlier = [(call(tensors[n], tensors[n - 1]), n) for n in range(8)]
    most = places(lambda: call(tensors[0], tensors[1]))
    for _ in range(count(500)):
        n, m, place = random.randrange(8), random.randrange(8), random.randint(1, most)
        interrupted += is_interrupted(lambda n=n, m=m: call(tensors[n], tensors[m]), place)  # type: ignore[misc]
        m = random.randrange(8)
        assert is_right(call(tensors[n], tensors[m]), n, m), place
    assert interrupted > count(500) // 3
    assert all(is_right(results, n, (n - 1) % 8) for results, n in earlier)
    for tensor, row in zip(tensors, ROWS, strict=True):
        np.testing.assert_array_equal(tensor.numpy(), row)


def test_arguments_are_freed_and_resized_between_calls() -> None:
    call: Any = TinyJit(pair)
    random = Random("sizes")
    for _ in range(4):
        call(held(ROWS[0]), held(ROWS[1]))
    gc.collect()
    before = GlobalCounters.mem_used
    for _ in range(count(2_000)):
        n, m = random.randrange(8), random.randrange(8)
        results = call(held(ROWS[n]), held(ROWS[m]))
        if call.count and random.random() < 0.2:
            with pytest.raises(JitError):
                call(held(ROWS[n][:32]), held(ROWS[m][:32]))
            gc.collect()
        if random.random() < 0.2:
            call.reset()
        assert is_right(results, n, m)
        del results
    for _ in range(4):
        call(held(ROWS[0]), held(ROWS[1]))
    gc.collect()
    assert GlobalCounters.mem_used <= before + 4096


def test_captures_inside_captures() -> None:
    inner: Any = TinyJit(lambda x: x * 3)
    middle: Any = TinyJit(lambda x: (inner(x) + 1, inner(x + 1)))
    outer: Any = TinyJit(lambda x: sum(middle(x), start=inner(x)))
    for turn in range(count(200)):
        x = held(ROWS[turn % 8])
        for call, value in (
            (lambda x: inner(x), ROWS[turn % 8] * 3),
            (lambda x: middle(x)[1], ROWS[turn % 8] * 3 + 3),
            (lambda x: outer(x), ROWS[turn % 8] * 9 + 4),
        ):
            np.testing.assert_allclose(call(x).numpy(), value, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forked_children_call_it_too() -> None:
    call: Any = TinyJit(pair)
    wide: Any = TinyJit(lambda x: x @ x)  # on several threads, where there are
    tensors, square = [held(row) for row in ROWS], held(numbers((128, 128), 1))
    for _ in range(5):
        call(tensors[0], tensors[1]), wide(square)
    product = wide(square)
    for n in range(count(40)):

        def work(n: int = n) -> bool:
            same = np.array_equal(wide(square).numpy(), product.numpy())
            return same and all(
                is_right(call(tensors[n % 8], tensors[k]), n % 8, k) for k in range(8)
            )

        in_fork(work)
        assert is_right(call(tensors[n % 8], tensors[3]), n % 8, 3)
