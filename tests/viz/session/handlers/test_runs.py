"""Requests for a run: a stop ends it, and what ran before is shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import PATIENCE_S
from tests.viz.session.support import Page, done, session_of
from workbench import Tensor, explore
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
