"""Quick calls: a function that only computes is called without nodes, and never wrongly."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.tensor.jit.support import held, numbers
from workbench import Context, GlobalCounters, Tensor, TinyJit
from workbench.base.errors import JitError
from workbench.tensor.jit import function_replay

X, Y = numbers((5, 3), 1), numbers((5, 3), 2)


def called(function: Callable[..., Any], *args: Any) -> Any:
    """Return a TinyJit after four calls with `args`: the last one was quick."""
    call: Any = TinyJit(function)
    for _ in range(4):
        call(*args)
    return call


@pytest.fixture
def in_full(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with each replay in full."""
    replays: list[int] = []
    replayed = function_replay.FunctionReplay._replayed

    def noted(*arguments: Any) -> Any:
        replays.append(1)
        return replayed(*arguments)

    monkeypatch.setattr(function_replay.FunctionReplay, "_replayed", noted)
    return replays


def test_a_call_that_finds_all_as_it_was_is_quick(in_full: list[int]) -> None:
    call = called(lambda x, y: (x + y, {"product": x * y}), held(X), held(Y))
    assert in_full == [1]
    before = GlobalCounters.kernel_count
    for seed in range(5):
        x, y = numbers((5, 3), seed), numbers((5, 3), seed + 9)
        total, others = call(held(x), held(y))
        np.testing.assert_allclose(total.numpy(), x + y, rtol=1e-6)
        np.testing.assert_allclose(others["product"].numpy(), x * y, rtol=1e-6)
    assert in_full == [1], "other arguments of the same kind"
    assert GlobalCounters.kernel_count > before


def test_results_of_quick_calls_are_new_each_time() -> None:
    x = held(X)
    call = called(lambda x: x * 2, x)
    kept: list[tuple[Tensor, Any]] = []
    for n in range(30):
        x.assign(Tensor(X + n)).realize()
        result = call(x)
        if n % 3:  # the memory of the others is used again
            kept.append((result, (X + n) * 2))
        if n % 7 == 3:
            result += 1
            kept[-1:] = [(result, (X + n) * 2 + 1)]
    for result, expected in kept:
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)
    assert len({id(result) for result, _ in kept}) == len(kept)


def test_arrays_and_views_of_a_result_keep_its_memory() -> None:
    x = held(X)
    call = called(lambda x: x + 1, x)
    row = call(x)[1]
    array = np.from_dlpack(call(x))
    piece = call(x).reshape(-1)[3:6].realize()
    for n in range(5):
        call(held(X * n))
    np.testing.assert_array_equal(row.numpy(), (X + 1)[1])
    np.testing.assert_array_equal(array, X + 1)
    np.testing.assert_array_equal(piece.numpy(), (X + 1).reshape(-1)[3:6])


def test_a_result_is_the_argument_of_the_next_call(in_full: list[int]) -> None:
    call, h, expected = called(lambda h: h * 0.5 + 1, held(X)), held(X), X
    for _ in range(40):
        h, expected = call(h), expected * np.float32(0.5) + 1
    assert in_full == [1]
    np.testing.assert_allclose(h.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose((h + h).numpy(), expected * 2, rtol=1e-5)


def test_the_same_tensor_twice_and_views_as_arguments() -> None:
    x = held(X)
    call = called(lambda a, b: a - b, held(X), held(Y))
    assert not call(x, x).numpy().any()
    np.testing.assert_allclose(call(x.flip(0), x).numpy(), X[::-1] - X, rtol=1e-6)
    np.testing.assert_allclose(call(x, x[:5] * 2).numpy(), -X, rtol=1e-6)
    y = held(np.concatenate([X, Y]))
    for part, value in ((y[:5], X), (y[5:], Y)):
        np.testing.assert_allclose(call(part, x).numpy(), value - X, rtol=1e-6)


def test_what_is_written_to_an_argument_or_to_state_is_seen() -> None:
    x, w = held(X), held(Y)
    call = called(lambda x: x * w, x)
    for n in range(1, 5):
        x += 1
        np.testing.assert_allclose(call(x).numpy(), (X + n) * w.numpy(), rtol=1e-5)
        w.assign(w * 2).realize()
        np.testing.assert_allclose(call(x).numpy(), (X + n) * Y * 2**n, rtol=1e-5)
        w[0] = 0.0
        assert not call(x).numpy()[0].any()
        w[0] = Tensor(Y[0] * 2**n)


def test_memory_that_moves_between_calls_is_found() -> None:
    """Another function writes memory that an argument shares: the argument gets a copy of it."""
    s = held(X)
    x = s.clone().realize()
    call = called(lambda x: x + 0.5, x)

    def write() -> Tensor:
        s.assign(s * 2)
        return s + 0

    writes: Any = TinyJit(write)
    for _ in range(5):
        writes().realize()
        np.testing.assert_allclose(call(x).numpy(), X + 0.5, rtol=1e-6)


def test_another_situation_is_no_quick_call(in_full: list[int]) -> None:
    x = held(X)
    call = called(lambda x: x + 1, x)
    with Context(JIT=0):
        call(x)
    with Context(DEBUG=0):
        call(x)
        call(x)
    assert len(in_full) == 2, "the same values in another block are found once"
    ran = []

    def counting(x: Tensor) -> Tensor:
        ran.append(Tensor.training)
        return x.dropout(0.5) if Tensor.training else x * 2

    other = called(counting, x)
    with Context(TRAINING=1):
        other(x)
    assert ran[-1]
    np.testing.assert_allclose(other(x).numpy(), X * 2, rtol=1e-6)


def test_names_that_lead_elsewhere_are_found() -> None:
    scale = 2.0
    weights = [held(X)]

    def function(x: Tensor) -> Tensor:
        return x * weights[0] * scale

    x = held(Y)
    call = called(function, x)
    weights[0] = held(Y)
    np.testing.assert_allclose(call(x).numpy(), Y * Y * 2, rtol=1e-5)
    call(x), call(x)
    scale = 3.0
    np.testing.assert_allclose(call(x).numpy(), Y * Y * 3, rtol=1e-5)


def test_other_arguments_are_refused_and_the_next_call_is_right() -> None:
    call = called(lambda x: x.sum(axis=0), held(X))
    for other in (held(X[:4]), held(X.astype(np.int32)), Tensor(X, device="PYTHON").realize()):
        with pytest.raises(JitError):
            call(other)
        np.testing.assert_allclose(call(held(Y)).numpy(), Y.sum(axis=0), rtol=1e-5)
    with pytest.raises(JitError):
        call(held(X), 2)
    result = call(held(X))
    with pytest.raises(JitError):
        call(called(lambda x: x * 2, held(X[:2]))(held(X[:2])))
    np.testing.assert_allclose(result.numpy(), X.sum(axis=0), rtol=1e-5)


def test_gradients_that_would_be_lost_are_refused() -> None:
    w = Tensor(X, requires_grad=True).realize()
    x = held(Y)
    call = called(lambda x: x * w, x)
    first = call(x)
    with pytest.raises(Exception, match="gradient|TinyJit"):
        call(first).sum().backward()
    a = held(X)
    plain = called(lambda a: a * 2, a)
    before = plain(a)
    a.requires_grad_()
    after = plain(a)
    with pytest.raises(Exception, match="gradient|TinyJit"):
        after.sum().backward()
    assert before.numpy().shape == X.shape
    leaf = plain(held(Y)).requires_grad_()
    (leaf * leaf).sum().backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(leaf.grad.numpy(), Y * 4, rtol=1e-5)


def test_quick_calls_leave_no_memory() -> None:
    x = held(numbers((1000,), 3))
    call = called(lambda x: x + 1, x)
    gc.collect()
    before = GlobalCounters.mem_used
    results = [call(x) for _ in range(50)]
    assert GlobalCounters.mem_used >= before + 45 * 4000
    del results
    assert GlobalCounters.mem_used <= before + 2 * 4096, "at most the memory of two results is kept"


def test_jit_levels_run_the_same_kernels() -> None:
    def function(x: Tensor) -> Tensor:
        return ((x + 1).contiguous() * 2).contiguous() - x

    x, counts = held(X), []
    for level in (1, 2):
        with Context(JIT=level):
            call = called(function, x)
            before = GlobalCounters.kernel_count
            np.testing.assert_allclose(call(x).numpy(), X + 2, rtol=1e-6)
            counts.append((call.count, GlobalCounters.kernel_count - before))
    assert counts == [(3, 3)] * 2


def test_inputs_that_no_kernel_reads_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with Context(DEBUG=1):
        called(lambda a, b: a + 2, held(X), held(Y))
    lines = [line for line in capsys.readouterr().err.splitlines() if "reads input" in line]
    assert lines == ["TinyJit: no kernel of <lambda> reads input 1"]
