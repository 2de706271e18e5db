"""One form against another: who is given up, and where time ends."""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from workbench import Device, Kernel, Opt, OptOps, Tensor, explore
from workbench.backends.memory import Buffer
from workbench.backends.program.text import Source
from workbench.base.interrupts import Uninterrupted
from workbench.measure import timing
from workbench.measure.timing import Sample
from workbench.worker import benchmark
from workbench.worker.benchmark import (
    FAIR_ROUNDS,
    LEAST_ROUNDS,
    BenchmarkSettings,
    OverTime,
    _few,
    run_benchmark,
    within,
)
from workbench.worker.candidate import KernelData
from workbench.worker.client import _silence_limit_s
from workbench.worker.rows import Row
from workbench.worker.workers import benchmark_text

RULES = BenchmarkSettings(budget_s=0.1, samples=8, limit_s=20.0, hopeless=1.5)
TILE = (Opt(OptOps.UPCAST, "g1", 8), Opt(OptOps.UPCAST, "g0", 4))


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    values = np.random.default_rng(0).standard_normal((2, 96, 96)).astype(np.float32)
    a, b = (Tensor(v).realize() for v in values)
    return explore(a @ b).kernels[0]


@pytest.fixture
def buffers(kernel: Kernel) -> list[Buffer]:
    return kernel.data.buffers(kernel.original, "LLVM")


def row(kernel: Kernel, source: str | None = None) -> Row:
    return {"ast": kernel.to_text(), "device": "LLVM", "source": source}


def benchmarked(kernel: Kernel, a: Row, b: Row, buffers: list[Buffer], **change: Any) -> Row:
    return run_benchmark(a, b, KernelData(buffers), replace(RULES, **change))


class Machine:
    """A clock of our own, and kernels that take so many seconds of it a run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **runs_s: float) -> None:
        self.now, self._runs_s = 0.0, runs_s
        clock = SimpleNamespace(perf_counter=lambda: self.now)
        monkeypatch.setattr(benchmark, "time", clock)
        monkeypatch.setattr(timing, "time", clock)
        monkeypatch.setattr(benchmark, "bind", self._bound)

    def _bound(self, form: Row, buffers: list[Buffer]) -> tuple[Source, Any]:
        def run() -> None:
            self.now += self._runs_s[form["ast"]]

        return Source(form["ast"], "LLVM IR", form["ast"], ()), run

    def benchmark(self, **change: Any) -> Row:
        forms = [{"ast": name, "device": "LLVM"} for name in ("slow", "fast")]
        return run_benchmark(*forms, KernelData([]), replace(RULES, **change))


def test_both_are_timed(kernel: Kernel, buffers: list[Buffer]) -> None:
    fast = row(kernel.apply(*TILE))
    result = benchmarked(kernel, fast, row(kernel), buffers, budget_s=60.0)
    assert len(result["samples"]) == len(result["against"]) >= min(8, LEAST_ROUNDS)


def test_each_has_its_own_times(monkeypatch: pytest.MonkeyPatch) -> None:
    result = Machine(monkeypatch, slow=1e-3, fast=9e-4).benchmark()
    assert result["samples"] == pytest.approx([1e-3] * LEAST_ROUNDS), "they are settled"
    assert result["against"] == pytest.approx([9e-4] * LEAST_ROUNDS)


def test_the_shares_of_the_cores_go_along(monkeypatch: pytest.MonkeyPatch) -> None:
    """While others have the core, the clock goes on: that is no time of a form."""
    machine = Machine(monkeypatch, slow=1e-3, fast=5e-4)
    used = iter(range(1000))

    def use(threads: int) -> timing.CoreUse:
        return timing.CoreUse(next(used) * 1e-4, 0)

    monkeypatch.setattr(timing, "core_use", use)
    assert machine.benchmark(hopeless=1e9)["shares"] == (), "it waited by itself"
    monkeypatch.setattr(timing, "core_use", lambda n: timing.CoreUse(*[next(used) * 1e-4] * 2))
    disturbed = machine.benchmark(hopeless=1e9)
    assert disturbed["shares"][0] == pytest.approx(0.1)
    assert disturbed["against_shares"][0] == pytest.approx(0.2)


def test_the_hopeless_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, slow=1e-3, fast=5e-4)
    assert len(machine.benchmark()["samples"]) == FAIR_ROUNDS
    patient = machine.benchmark(hopeless=1e9)
    assert len(patient["samples"]) == LEAST_ROUNDS, "it is timed like any other"


def test_the_budget_ends_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, slow=0.024, fast=0.020)  # a round takes 44 ms
    assert len(machine.benchmark(budget_s=0.2)["samples"]) == 4
    assert len(machine.benchmark(budget_s=10.0, samples=4)["samples"]) == 4


def test_a_program_that_is_known_is_not_run(kernel: Kernel, buffers: list[Buffer]) -> None:
    first = benchmarked(kernel, row(kernel), row(kernel), buffers)
    again = benchmarked(kernel, row(kernel), row(kernel), buffers, digests=(first["digest"],))
    assert again == {"same": first["digest"]}
    other = row(kernel.apply(*TILE))
    assert benchmarked(kernel, other, other, buffers)["digest"] != first["digest"]


def test_errors_and_limits_are_results(kernel: Kernel, buffers: list[Buffer]) -> None:
    bad = benchmarked(kernel, row(kernel, "define void @x("), row(kernel), buffers)
    assert bad["error"]["what"].startswith("cannot compile")
    values = np.ones((700, 700), np.float32)
    slow = explore(Tensor(values).realize() @ Tensor(values).realize()).kernels[0]
    own = slow.data.buffers(slow.original, "LLVM")
    result = benchmarked(slow, row(slow), row(slow), own, limit_s=0.02)
    assert result["over"] == 0.02


def test_of_slow_forms_no_run_begins_that_would_end_too_late() -> None:
    """What takes much of the budget is run a few times, what takes it whole no second time."""
    rules, ran = replace(RULES, budget_s=1.0), []
    late = -math.inf
    for first_s, stop, runs in ((0.5, math.inf, FAIR_ROUNDS), (0.5, late, 0), (6.0, math.inf, 0)):
        ran.clear()
        samples = _few(lambda: ran.append("run"), Sample(first_s), rules, stop).samples_s
        assert len(ran) == runs and len(samples) == max(runs, 1)
        assert runs or samples == (first_s,)


def test_what_takes_the_whole_budget_is_run_once(kernel: Kernel, buffers: list[Buffer]) -> None:
    fast = row(kernel.apply(*TILE))
    result = benchmarked(kernel, fast, row(kernel), buffers, budget_s=1e-9)
    assert len(result["samples"]) == len(result["against"]) == 1


def test_who_waits_is_told_for_how_long(kernel: Kernel, buffers: list[Buffer]) -> None:
    reports: list[object] = []
    run_benchmark(
        row(kernel), row(kernel), KernelData(buffers), RULES,
        lambda: reports.append("on"), reports.append,
    )  # fmt: skip
    assert reports[:3] == ["on", RULES.limit_s, "on"]
    assert (
        _silence_limit_s({"silent_s": 2.0}, 60.0) == 4.0
        and _silence_limit_s({"silent_s": 2.0}, 3.0) == 3.0
    )
    assert _silence_limit_s({}, 60.0) == 60.0


def test_ctrl_c_is_held_back_and_not_lost() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt):
        with Uninterrupted():
            signal.raise_signal(signal.SIGINT)
            steps.append("to the end")
        steps.append("and not further")
    assert steps == ["to the end"]
    with Uninterrupted():
        pass
    with pytest.raises(KeyboardInterrupt):  # it is heard again
        signal.raise_signal(signal.SIGINT)


def test_time_ends_in_the_main_thread_only() -> None:
    with pytest.raises(OverTime), within(0.02):
        while True:
            time.sleep(0.001)
    with within(30.0):
        pass  # no alarm is left behind
    ended = []

    def elsewhere() -> None:
        with within(0.01):
            time.sleep(0.05)
        ended.append(True)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert ended


def test_elsewhere_it_is_text_in_and_text_out(kernel: Kernel) -> None:
    task = {
        "kernel": kernel.to_text(), "candidate": row(kernel), "against": row(kernel),
        "rules": asdict(RULES),
    }  # fmt: skip
    result = json.loads(benchmark_text(json.dumps(task)))
    assert result["samples"] and result["digest"]
    broken = json.loads(benchmark_text(json.dumps(task | {"kernel": "nonsense"})))
    assert broken["error"]["what"]
    assert Device.available("LLVM")
