"""Requests for a run and for a search of all kernels: a stop ends them; what was there stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import PATIENCE_S
from tests.viz.session.support import Page, done, session_of
from workbench import Context, Tensor, explore
from workbench.base.installation import version
from workbench.kernel.kernel import graph_of
from workbench.search import model_search
from workbench.search.kernel_task import KernelOutcome, KernelTask
from workbench.search.tuning_file import TuningFile, TuningRow, kernel_hash, machine_of
from workbench.viz.run import repeated
from workbench.viz.session.requests import REQUESTED

pytestmark = pytest.mark.usefixtures("nothing_saved")


def test_a_stop_ends_a_run_after_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    ex = explore((Tensor(np.ones((4, 4), np.float32)) + 1).exp())
    one_round, rounds = repeated._round, []

    with session_of(ex) as session:

        def noted(*args: Any) -> None:
            one_round(*args)
            rounds.append(args)
            if len(rounds) == 3:
                assert done(session, "stop") == {"stopped": 1}

        monkeypatch.setattr(repeated, "_round", noted)
        page = Page(session)
        job = session.job({"id": 7, "do": "run", "repeat": 1000}, page)
        assert session.jobs.submit(session, job, REQUESTED).wait(PATIENCE_S)
        (error,) = [m["error"]["what"] for m in page.messages if m.get("id") == 7]
        assert error == "stopped"
        assert page.is_record_of(session)
    (run,) = ex.display.runs
    assert len(rounds) == len(run.record.rounds) == len(run.kernels) == 3
    assert page.record["runs"][0]["error"] == "TaskStopped: stopped"


def test_a_search_of_all_kernels_writes_the_tuning_file_and_a_stop_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ex = explore((Tensor(np.ones((4, 4), np.float32)) + 1).contiguous().exp())
    tasks: list[KernelTask] = []

    def found(task: KernelTask, worker: Any = None) -> KernelOutcome:
        tasks.append(task)
        kernel = graph_of(task.kernel)
        row = TuningRow(
            "e", kernel_hash(kernel), "1" * 32, task.device, machine_of(task.device), version(),
            'UPCAST("g0", 4)', 1.0, 2.0, "2026-01-31",
        )  # fmt: skip
        return KernelOutcome(row.machine, 3, row, "", 2.0)

    monkeypatch.setattr(model_search, "done", found)
    with session_of(ex) as session, Context(TUNING=str(tmp_path / "net.jsonl")):
        said = done(session, "search_all", budget_s=4.0)["said"]
        assert "2 of 2 kernels faster" in said and str(tmp_path / "net.jsonl") in said
        assert len(tasks) == len(TuningFile.read(tmp_path / "net.jsonl").rows) == 2
        monkeypatch.setattr(session.jobs, "is_stopped", lambda: True)
        assert "interrupted" in done(session, "search_all", budget_s=4.0)["said"]
        assert len(tasks) == 3, "it ended after one"
