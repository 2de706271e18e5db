"""What the settings do to a run: DEBUG, NOOPT, BEAM, JIT."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.base.context import Context
from workbench.execution.realize import schedule
from workbench.pipeline import tuned
from workbench.search import realization
from workbench.tensor import Tensor
from workbench.tensor.jit import TinyJit

PRINTED = [
    (1, "schedule: 1 kernels, 1 copies"),
    (2, "GFLOP/s"),
    (3, "for "),
    (4, "opts: "),
    (4, "define "),
    (5, "STORE"),
    (6, "retq"),
    (7, "pass linearize"),
]
"""What is first printed at a level, on LLVM."""


@pytest.mark.parametrize("level", range(8))
def test_each_level_prints_more(level: int, capsys: pytest.CaptureFixture[str]) -> None:
    with Context(DEV="LLVM", DEBUG=level):
        # a size for each level: what is compiled already is not printed again
        Tensor(np.ones(300 + level, np.float32)).exp().realize()
    text = capsys.readouterr().err
    for first, words in PRINTED:
        assert (words in text) == (level >= first), (words, text)


def test_noopt_runs_kernels_as_they_are() -> None:
    values = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    a = Tensor(values)
    product = a @ a
    (kernel,) = [item.kernel for item in schedule([product.uop]) if item.kernel]
    with Context(DEV="LLVM", NOOPT=1):
        assert tuned(kernel, "LLVM") is kernel
        np.testing.assert_allclose(product.numpy(), values @ values, rtol=1e-5)
    assert tuned(kernel, "LLVM") is not kernel


def test_beam_searches_and_finds_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(realization, "BUDGET_S", 0.5)
    a = Tensor(np.ones((24, 40), np.float32))
    monkeypatch.setattr("workbench.pipeline._tuned", {})
    with Context(DEV="LLVM", BEAM=1, DEBUG=1):
        assert a.sum(1).tolist() == [40] * 24
        assert "tried in" in capsys.readouterr().err
        assert a.sum(1).tolist() == [40] * 24
        assert "search" not in capsys.readouterr().err
        # in another process
        monkeypatch.setattr("workbench.pipeline._tuned", {})
        assert (a + 0).sum(1).tolist() == [40] * 24
        assert "found in the cache" in capsys.readouterr().err
    with Context(DEV="PYTHON", BEAM=1, DEBUG=1):
        assert a.to("PYTHON").sum().item() == 960
        assert "search" not in capsys.readouterr().err


def test_jit_levels(capsys: pytest.CaptureFixture[str]) -> None:
    for level, calls in ((0, 4), (1, 2), (2, 2)):
        count = []

        def function(x: Tensor, count: list[int] = count) -> Tensor:
            count.append(1)
            return x * 2

        double = TinyJit(function)
        with Context(JIT=level, DEBUG=1):
            results = [double(Tensor([n]).realize()).item() for n in range(4)]
        assert results == [0, 2, 4, 6]
        assert len(count) == calls
        assert ("TinyJit: " in capsys.readouterr().err) == (level > 0)
