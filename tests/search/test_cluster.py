"""The search of a model on a cluster of Dask, of which a process is killed."""

from __future__ import annotations

import os
import signal
from multiprocessing import resource_tracker
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.search.support import numbers
from tests.support import PATIENCE_S, eventually
from workbench import explore
from workbench.search import model_search


@pytest.fixture(scope="module", autouse=True)
def tracker() -> None:
    """The process that Python keeps beside others is there before a test counts what stays."""
    resource_tracker.ensure_running()


def test_a_killed_worker_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    monkeypatch.setattr(model_search, "LATE_S", PATIENCE_S)
    ex = explore(((numbers(96, 64) @ numbers(64, 64)).contiguous() @ numbers(64, 80)).exp())
    killed: list[int] = []
    is_over = Event()

    def kill(client: Any) -> None:
        """Kill a worker that has a task."""
        pids = client.run(os.getpid)

        def is_killed() -> bool:
            busy = next((w for w, tasks in client.processing().items() if tasks), None)
            if busy in pids:
                os.kill(pids[busy], signal.SIGKILL)
                killed.append(pids[busy])
            return bool(killed) or is_over.is_set()

        eventually(is_killed)

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        killer = Thread(target=kill, args=(client,))
        killer.start()
        found = ex.search(8.0, path=tmp_path / "net.jsonl", executor=client, progress=False)
        is_over.set()
        killer.join()
    assert len(killed) == 1
    assert len(found.kernels) == 2 and all(each.tried > 1 for each in found.kernels), str(found)
