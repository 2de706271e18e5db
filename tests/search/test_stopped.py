"""A search that Ctrl-C or a stop ends: the best so far, no process, nothing half kept."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.search.support import ENDLESS, quick
from workbench import Kernel, Opt, OptOps, SearchResult
from workbench.base import child_process
from workbench.search import evaluation
from workbench.search import search as searching
from workbench.search.moves import Candidate, SearchStopped
from workbench.worker import client
from workbench.worker.client import Worker


def test_ctrl_c_returns_the_best_so_far(kernel: Kernel) -> None:
    def press(trial: Candidate) -> None:
        if trial.number == 3:  # a moment later: in the middle of the next one
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()

    own = kernel.apply(Opt(OptOps.UNROLL, "r0", 4))
    result = quick(own, ENDLESS, cached=True, report=press)
    assert result.ended == "interrupted" and result.speedup is None
    assert result.kernel.check().ok
    assert searching._cached(own, 2, 0.1) is None, "half a search is not kept"


def test_ctrl_c_while_the_process_starts_leaves_none(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = subprocess.Popen

    def pressed(*args: Any, **options: Any) -> Any:
        process = start(*args, **options)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)  # here it would be raised, and nobody would know of the process
        return process

    monkeypatch.setattr(subprocess, "Popen", pressed)
    result = quick(kernel, ENDLESS)
    assert result.ended == "interrupted" and result.best == 0


def test_ctrl_c_while_data_is_sent_ends_a_worker_that_was_lent(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = child_process.send

    def half(stream: Any, head: Any, blobs: Any = ()) -> None:
        if head.get("do") == "hold":
            stream.write(b"half of a message")
            raise KeyboardInterrupt
        send(stream, head, blobs)

    with Worker() as worker:
        monkeypatch.setattr(child_process, "send", half)
        assert quick(kernel, worker=worker).ended == "interrupted"
        monkeypatch.setattr(child_process, "send", send)
        reports: list[Candidate] = []
        result = quick(
            kernel, ENDLESS, worker=worker, report=reports.append,
            stop=lambda: len(reports) > 1 and reports[-1].seconds is not None,
        )  # fmt: skip
        assert result.ended == "stopped", "another one was started"


def test_stop_ends_it_and_leaves_a_worker_that_was_lent(kernel: Kernel) -> None:
    with Worker() as worker:
        reports: list[Candidate] = []
        result = quick(
            kernel, ENDLESS, worker=worker, report=reports.append,
            stop=lambda: len(reports) > 3,
        )  # fmt: skip
        assert result.ended == "stopped" and tuple(reports) == result.tried
        assert worker.pid is not None
        began, over = threading.Event(), threading.Event()

        def press() -> None:
            # Again and again: one stop ends the task at hand, if there is one.
            began.wait()
            while not over.wait(0.01):
                worker.stop()

        presser = threading.Thread(target=press)
        presser.start()
        try:
            stopped = quick(kernel, ENDLESS, worker=worker, report=lambda trial: began.set())
        finally:
            began.set()
            over.set()
        presser.join()
        assert stopped.ended == "stopped"


def test_a_search_that_is_stopped_at_once_prints(kernel: Kernel, tmp_path: Path) -> None:
    result = quick(kernel, stop=lambda: True)
    assert result.ended == "stopped" and result.kernel.ast is kernel.ast
    assert [t.note for t in result.tried] == ["not measured"]
    assert "not measured" in str(result)
    result.save(tmp_path / "search.json")
    again = SearchResult.load(tmp_path / "search.json", kernel)
    assert again.to_dict() == result.to_dict()


def test_a_stop_between_two_tasks_is_heard_by_the_next(kernel: Kernel) -> None:
    """The worker itself can stop only the task that it has."""
    pressed: list[bool] = []

    class Late(Worker):
        pid = 1

        def hold(self, key: str, make: Any) -> None:
            pressed.append(False)

        def ask(self, task: Any, progress: Any = None, quiet_s: float = 0.0) -> Any:
            progress({"text": "benchmark"})
            raise client.TaskStopped()

        def stop(self) -> None:
            pressed.append(True)

    measure = evaluation.OnWorker(
        kernel.original, "LLVM", 60.0, 1.0, clock=lambda: 0.0, worker=Late(),
        stop=lambda: bool(pressed),
    )  # fmt: skip
    for _ in range(2):
        with pytest.raises(SearchStopped):
            list(measure(kernel.ast, [kernel.ast], None, False))
    assert pressed == [False, True], "stopped while it ran, then before it began"
