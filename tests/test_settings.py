"""What the settings do to a run: DEBUG, NOOPT, BEAM, JIT."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable

import numpy as np
import pytest

from workbench import debug, explore
from workbench.backends.device import Device
from workbench.base.context import SETTINGS, Context
from workbench.cost.predicted_cost import predicted_cost
from workbench.execution.realize import schedule
from workbench.ir.opt.heuristic.default_opts import heuristic
from workbench.ir.rewriting.passes import Memo
from workbench.search import realization
from workbench.search.realization import tuned
from workbench.tensor import Tensor
from workbench.tensor.jit import TinyJit

PRINTED = [
    (1, "device LLVM: "),
    (1, "schedule: 4 kernels, 1 copy"),
    (1, "memory: 4 values on the way need "),
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
    debug._say_device.cache_clear()
    with Context(DEV="LLVM", DEBUG=level):
        # a size for each level: what is compiled already is not printed again
        data = Tensor(np.ones(300 + level, np.float32))
        for step in (Tensor.exp, Tensor.log, Tensor.sqrt, Tensor.square):
            data = step(data.contiguous())
        data.realize()
    text = capsys.readouterr().err
    for first, words in PRINTED:
        assert (words in text) == (level >= first), (words, text)


def uses_of_jit() -> str:
    calls: list[int] = []
    double = TinyJit(lambda x: calls.append(1) or x * 2)  # type: ignore[func-returns-value]
    for n in range(4):
        double(Tensor([n]).realize())
    return f"{len(calls)} calls"


def printed(work: Callable[[], object]) -> str:
    stream = io.StringIO()
    with contextlib.redirect_stderr(stream):
        work()
    return stream.getvalue()


def shared_values() -> str:
    with Context(DEBUG=1):
        text = printed(((Tensor([1.0, 2.0]) + 1).contiguous() * 2).flip(0).realize)
    return "shared" if "memory: " in text else "apart"


def opts_of_a_product() -> str:
    a = Tensor.empty(64, 64)
    (kernel,) = [i.kernel for i in (a @ a).schedule() if i.kernel is not None]
    return "as it is" if tuned(kernel, "LLVM") is kernel else "with opts"


# Setting -> a value, what shows it, and what that says without and with it.
EFFECTS: dict[str, tuple[object, Callable[[], object], object, object]] = {
    "DEV": ("PYTHON", lambda: Tensor([1]).device, "LLVM", "PYTHON"),
    "DEBUG": (1, lambda: bool(printed((Tensor([3.0]) * 2).realize)), False, True),
    "NOOPT": (1, opts_of_a_product, "with opts", "as it is"),
    "JIT": (0, uses_of_jit, "2 calls", "4 calls"),
    "DEFAULT_FLOAT": ("float64", lambda: str(Tensor([0.5]).dtype), "float32", "float64"),
    "DEFAULT_INT": ("int64", lambda: str(Tensor([1]).dtype), "int32", "int64"),
    "TRAINING": (1, lambda: Tensor.ones(64).dropout(1.0).sum().item(), 64, 0),
    "NO_MEMORY_PLANNER": (1, shared_values, "shared", "apart"),
}  # fmt: skip
ELSEWHERE = {
    "BEAM": "below",
    "LIVE": "tests/viz/session/test_notebook.py",
    "TUNING": "tests/search/test_tuning.py",
}


def test_every_setting_is_tested() -> None:
    assert EFFECTS.keys() | ELSEWHERE == SETTINGS.keys()


@pytest.mark.parametrize("name", EFFECTS)
def test_a_setting_does_what_its_row_says(name: str) -> None:
    value, show, without, within = EFFECTS[name]
    assert show() == without
    with Context(**{name: value}):
        assert show() == within
    assert show() == without


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
    monkeypatch.setattr("workbench.search.realization._results", Memo())
    with Context(DEV="LLVM", BEAM=1, DEBUG=1):
        assert a.sum(1).tolist() == [40] * 24
        assert "tried in" in capsys.readouterr().err
        assert a.sum(1).tolist() == [40] * 24
        assert "search" not in capsys.readouterr().err
        # in another process
        monkeypatch.setattr("workbench.search.realization._results", Memo())
        assert (a + 0).sum(1).tolist() == [40] * 24
        assert "found in the cache" in capsys.readouterr().err
    for emulator, is_predicted in (("PYTHON", False), ("CUDA:H100", True)):
        with Context(DEV=emulator, BEAM=1, DEBUG=1):
            assert a.to(emulator).sum().item() == 960
            said = capsys.readouterr().err
            assert ("predicted, not run" in said) is is_predicted
            assert is_predicted or "search" not in said
    machine = Device["CUDA:H100"]
    kernel = explore(a @ a.T, device=machine.name).kernels[-1].ast
    with Context(BEAM=1):
        best = predicted_cost(tuned(kernel, machine.name), machine.target)
    default = predicted_cost(heuristic(kernel, machine.target)[0], machine.target)
    assert best.predicted_s <= default.predicted_s


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
