"""A search for a machine that is not here: ranked by the model of the machine, and nothing runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.search.support import numbers, quick
from workbench import Context, SearchResult, explore
from workbench.backends.device import Device
from workbench.cost.predicted_cost import predicted_cost
from workbench.search import search as searching
from workbench.search.moves import Candidate
from workbench.search.realization import tuned
from workbench.worker.client import Worker

MACHINE = "CUDA:H100"


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: Worker) -> None:
        pytest.fail("a worker started")

    monkeypatch.setattr(Worker, "start", start)


@pytest.mark.usefixtures("nothing_runs")
def test_candidates_have_the_predicted_times() -> None:
    kernel = explore(numbers(64, 64) @ numbers(64, 64), device=MACHINE).kernels[0]
    result = quick(kernel, trials=14)
    target = Device[MACHINE].target
    for candidate in result.ranked():
        ast = result.kernel_of(candidate.number).ast
        cost = predicted_cost(ast, target, original=kernel.original)
        assert candidate.seconds == pytest.approx(cost.predicted_s)
        assert candidate.spread is None
    assert len(result.ranked()) >= 10
    least = result.ranked()[0]
    assert result.tried[result.best].seconds == pytest.approx(least.seconds, rel=0.04)
    start = result.tried[0].seconds
    assert result.speedup and start and start / result.speedup <= start
    assert result.kernel.device == MACHINE and result.kernel.check().ok
    assert "predicted, not run here" in str(result) and " timed" not in str(result)
    saved = json.loads(json.dumps(result.to_dict()))
    assert str(SearchResult.from_dict(saved, kernel)) == str(result)


def test_beam_searches_by_prediction_there_and_not_on_an_emulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    devices: list[str] = []

    def run(kernel: Any, *_: Any, **__: Any) -> Any:
        devices.append(kernel.device)
        start = (Candidate(0, None, (), "start: plain"),)
        return SearchResult(kernel, kernel, start, 0, None, "", 0.0, kernel.device)

    monkeypatch.setattr("workbench.search.search.run", run)
    monkeypatch.setattr("workbench.search.realization.debug_print", lambda *_: None)
    ast = explore(numbers(16, 16) @ numbers(16, 16)).kernels[0].original
    for device in (MACHINE, Device.emulator.name):
        with Context(BEAM=2):
            tuned(ast, device)
    assert devices == [MACHINE]


def test_nothing_of_it_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: Any) -> None:
        pytest.fail("a prediction is in the cache")

    monkeypatch.setattr(searching, "_write_cache", write)
    kernel = explore(numbers(16, 16) + 1, device=MACHINE).kernels[0]
    quick(kernel, trials=3, cached=True)
