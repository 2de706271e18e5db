"""A search that measures on somebody else's processes."""

from __future__ import annotations

import json
import multiprocessing
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import resource_tracker
from multiprocessing.context import BaseContext

import pytest

from tests.search.support import BUDGET_S, quick
from workbench import Kernel, SearchResult
from workbench.search.evaluation import LATE_S
from workbench.search.search import run
from workbench.worker.benchmark import BenchmarkSettings


@pytest.fixture(scope="module")
def spawning() -> BaseContext:
    """Processes that begin with nothing; the one that Python keeps beside them is there before
    a test counts what stays."""
    resource_tracker.ensure_running()
    return multiprocessing.get_context("spawn")


def test_an_executor_measures_too(kernel: Kernel, spawning: BaseContext) -> None:
    with ProcessPoolExecutor(1, spawning) as executor:
        result = quick(kernel, executor=executor)
    assert_it_searched(result)


def test_a_dask_cluster_measures_too(kernel: Kernel, spawning: BaseContext) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        result = quick(kernel, executor=executor)
    assert_it_searched(result)


def assert_it_searched(result: SearchResult) -> None:
    """Forms were sent, came back with times, and the best is right."""
    assert len(result.ranked()) > 2, [t.note for t in result.tried]
    assert any(candidate.opts for candidate in result.ranked())
    assert result.speedup is not None
    assert result.kernel.check().ok


def test_an_executor_that_is_shut_down_is_a_note(kernel: Kernel) -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    result = quick(kernel, executor=executor)
    assert result.best == 0 and all("executor" in t.note for t in result.tried)


class Silent(Executor):
    """Takes what it is given, and never answers."""

    def submit(self, *task: object, **options: object) -> Future[str]:  # type: ignore[override]
        return Future()


def test_an_executor_that_never_answers_is_waited_for_until_the_end(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def result(future: Future[str], timeout: float) -> str:
        waits.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(Future, "result", result)
    outcome = run(
        kernel, budget_s=BUDGET_S, cached=False, shows_progress=False, executor=Silent(),
        clock=lambda: sum(waits),
    )  # fmt: skip
    assert all(t.note.startswith("no answer came from the executor") for t in outcome.tried)
    assert outcome.ended.startswith("the time was over; no candidate could be timed")
    assert 0 < sum(waits) <= BUDGET_S + LATE_S


def test_rules_of_a_race_travel_as_data() -> None:
    from dataclasses import asdict

    rules = BenchmarkSettings(0.1, 3, 1.0, 1.5, ("a",), 2.0)
    data = json.loads(json.dumps(asdict(rules)))
    assert BenchmarkSettings(**data | {"digests": tuple(data["digests"])}) == rules
