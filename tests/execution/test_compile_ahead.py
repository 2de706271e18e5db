"""Compiling ahead changes when kernels are compiled, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest

import workbench
from tests.support import count
from tests.tools.interrupts import is_interrupted
from workbench import Context, Tensor, explore, pipeline
from workbench.base.errors import CompileError
from workbench.execution import compile_ahead as ahead
from workbench.ir.rewriting.passes import Memo


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what was compiled before; no thread of these tests is left."""
    forget(monkeypatch)
    monkeypatch.setattr(pipeline, "kept_source", lambda key: None)
    yield
    assert [t for t in threading.enumerate() if "(run)" in t.name] == []


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "_programs", Memo[Any]())


X = np.random.default_rng(0).random((6, 9), np.float32)


def layers(x: Tensor, n: int, seed: int = 0) -> Tensor:
    """Return a value of `n` kernels, each another one."""
    random = Random(seed)
    for _ in range(n):
        x = (x * random.random() + random.random()).contiguous().flip(random.randrange(2))
    return x


def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.execution.realize.compile_ahead", lambda items, tuner: None)


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_values_are_those_of_kernels_that_are_compiled_in_order(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = []
    for _ in range(2):
        x = Tensor(X, device=device)
        values.append([layers(x, n, n).numpy() for n in range(1, 8)])
        forget(monkeypatch)
        in_order(monkeypatch)
    for one, other in zip(*values, strict=True):
        np.testing.assert_array_equal(one, other)


def test_each_kernel_is_compiled_once_and_by_another_thread() -> None:
    y = layers(Tensor(X).realize(), 6)
    kernels = len({kernel.original for kernel in explore(y).kernels})
    with workbench.profile() as run:
        y.numpy()
    assert kernels > 3 and pipeline.built_count() == kernels
    spans, kinds = run.record.spans, run.record.kinds
    lanes = {
        lane for kind, lane in zip(spans.kind, spans.lane, strict=True) if kinds[kind] == "compile"
    }
    assert len(lanes) > 1


def test_kernels_that_are_known_start_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    x = Tensor(X).realize()
    layers(x, 6).numpy()
    monkeypatch.setattr(ahead, "_Compilers", None)
    layers(x + 0, 6).numpy()


def test_nothing_is_ahead_where_kernels_are_seen_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ahead, "_Compilers", None)
    with Context(DEBUG=2):
        layers(Tensor(X), 3).numpy()
    assert "GFLOP/s" in "".join(capsys.readouterr())


@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_kernel_that_fails_says_so_in_its_place(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered, failing = pipeline._rendered, explore(layers(Tensor(X), 5)).kernels[at]

    def fails(reached: Any, *more: Any) -> Any:
        if reached.kernel.replace(arg=failing.original.arg) is failing.original:
            raise CompileError("load", "the compiler is gone", "a kernel")
        return rendered(reached, *more)

    monkeypatch.setattr(pipeline, "_rendered", fails)
    with Context(NOOPT=1), pytest.raises(CompileError, match="the compiler is gone"):
        layers(Tensor(X), 5).numpy()
    monkeypatch.setattr(pipeline, "_rendered", rendered)
    assert layers(Tensor(X), 5).numpy().shape == X.shape


def test_ctrl_c_leaves_the_next_run_right(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = layers(Tensor(X), 4).numpy()
    random = Random("ahead")
    for _ in range(count(100)):
        forget(monkeypatch)
        place = random.randrange(1, 40_000)
        is_interrupted(lambda: layers(Tensor(X), 4).numpy(), place)
        np.testing.assert_array_equal(layers(Tensor(X), 4).numpy(), expected, str(place))
        for thread in threading.enumerate():
            if "(run)" in thread.name:
                thread.join(60)
                assert not thread.is_alive(), place
