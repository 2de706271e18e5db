"""Requests about all kernels of a plan: their times, equal kernels once, and a check of everything.

Sections: Times; Checks: each verdict is its variant's, and the plan has that on the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.viz.record import models
from tests.viz.record.support import plain
from tests.viz.session.support import Page, ask, done, session_of
from workbench import Rule, RuleSet, Tensor, explore, register, unregister, var
from workbench.measure.timing import Samples
from workbench.viz.session.handlers import all_kernels, measurement
from workbench.viz.session.session import Session

pytestmark = pytest.mark.usefixtures("nothing_saved")

# --------------------------------------------------------------------------------------------------
# Times.


@pytest.fixture
def session() -> Iterator[Session]:
    """Seven kernels, of which six are equal; the last one is another."""
    with session_of(explore(models.perceptron(6).softmax(-1))) as model_session:
        yield model_session


def handle(session: Session, do: str, **fields: Any) -> Any:
    reply = plain(session.handle({"id": 1, "do": do, **fields}))
    assert reply["ok"], reply["error"]
    return plain(session.record)["plan"]["runs"]


def test_equal_kernels_are_timed_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(session)
    tasks: list[Any] = []
    measured = measurement.measured

    def noted(session: Any, worker: Any, task: Any, name: str) -> Any:
        tasks.append(task)
        return measured(session, worker, task, name)

    monkeypatch.setattr(measurement, "measured", noted)
    runs = handle(session, "kernels")
    firsts = [place for place, run in enumerate(runs) if run["like"] == place]
    assert len(runs) > len(firsts) >= 2
    assert all(runs[place]["measured_s"] > 0 for place in firsts)
    assert [len(task["kernels"]) for task in tasks] == [len(firsts)]
    assert page.is_record_of(session)
    handle(session, "kernels")
    assert len(tasks) == 1, "each has a time"


def test_a_timed_variant_gives_its_kernel_the_time(session: Session) -> None:
    """A kernel has one time: that of the list is that of its variant with the default opts."""
    first = session.record.plan.runs[3].like
    assert first != 3
    handle(session, "auto", kernel=3)
    auto = len(session.record.variants) - 1
    runs = handle(session, "measure", variants=[auto, 3])
    timing = session.row(auto).timing
    assert timing is not None
    assert runs[3]["measured_s"] == timing.median_s
    assert runs[first]["measured_s"] == timing.median_s, "one equal to it has no other"
    assert runs[first]["spread"] == timing.spread
    handle(session, "auto", kernel=first)
    own = len(session.record.variants) - 1
    runs = handle(session, "measure", variants=[own])
    for place, variant in (first, own), (3, auto):
        shown = session.row(variant).timing
        assert shown is not None and runs[place]["measured_s"] == shown.median_s


def test_a_disturbed_time_is_none_of_the_kernels(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its share of the time of all would say how busy the machine was. It is timed again only if
    somebody asks."""
    asked: list[Any] = []

    def answer(session: Any, worker: Any, task: Any, name: str) -> Any:
        asked.append(task)
        return {"kernels": [{"samples": [0.3], "shares": [0.1]} for _ in task["kernels"]]}

    with monkeypatch.context() as patch:
        patch.setattr(measurement, "Samples", Samples)
        patch.setattr(measurement, "ask", answer)
        runs = handle(session, "kernels")
        firsts = [place for place, run in enumerate(runs) if run["like"] == place]
        assert all(runs[k]["busy_s"] and runs[k]["measured_s"] is None for k in firsts)
        assert len(list(all_kernels.measured(session))) == 0 and len(asked) == 1
    runs = handle(session, "kernels")
    assert all(runs[k]["measured_s"] and not runs[k]["busy_s"] for k in firsts)


def test_a_time_beside_other_work_is_marked_as_uncertain(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the list of kernels too, where it stood as if the machine had been at rest."""
    rows = [{"samples": [1e-4] * 3, "busy": busy} for busy in (1.6, 1.0)]
    monkeypatch.setattr(measurement, "ask", lambda *_: {"kernels": rows})
    runs = handle(session, "kernels")
    assert [run["is_certain"] for run in runs if run["measured_s"]] == [False, True]


def test_a_kernel_timed_again_gives_its_variant_the_time(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are shown: an older one of the variant would contradict that of the kernel."""
    handle(session, "auto", kernel=0)
    auto = len(session.record.variants) - 1
    disturbed = {"samples": [0.3], "shares": [0.1]}
    with monkeypatch.context() as patch:
        patch.setattr(measurement, "Samples", Samples)
        patch.setattr(measurement, "ask", lambda *_: {"kernels": [disturbed]})
        handle(session, "measure", variants=[auto])
    before = session.row(auto).timing
    assert before is not None and before.had is not None
    runs = handle(session, "kernels")
    timing = session.row(auto).timing
    assert timing is not None and timing.had is None
    assert runs[0]["measured_s"] == timing.median_s
    assert session.row(0).timing is None, "a variant without a time gets none"


def test_times_are_there_again_with_their_device(session: Session) -> None:
    """Measured ones, of kernels that have no variant with the default opts, too."""
    before = handle(session, "kernels")
    assert any(run["measured_s"] for run in before)
    handle(session, "device", name="PYTHON")
    after = handle(session, "device", name="LLVM")
    for run, again in zip(before, after, strict=True):
        assert again["measured_s"] == run["measured_s"]
        assert again["spread"] == run["spread"]


def test_another_device_has_times_of_its_own(session: Session) -> None:
    session.complete()
    runs = handle(session, "kernels")
    assert all(runs[run["like"]]["predicted_s"] > 0 for run in runs)
    runs = handle(session, "device", name="PYTHON")
    assert {(r["predicted_s"], r["measured_s"], r["spread"]) for r in runs} == {(None, None, None)}
    reply = plain(session.handle({"id": 2, "do": "kernels"}))
    assert reply["error"]["because"] == "an emulator's times say nothing"


# --------------------------------------------------------------------------------------------------
# Checks: each verdict is its variant's, and the plan has that on the whole.


def two_kernels() -> Any:
    values = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    stored = (Tensor(values) @ Tensor(values)).contiguous()
    return explore((stored + 3.0) * 2.0)


def verdicts(session: Session) -> list[tuple[str, bool]]:
    rows = plain(session.record)["variants"]
    return [(row["name"], row["check"]["ok"]) for row in rows if row["check"]]


def test_all_kernels_and_all_results() -> None:
    with session_of(two_kernels()) as session:
        done(session, "auto", kernel=1)
        done(session, "check_all")
        check = plain(session.record)["plan"]["check"]
        assert check["ok"] and check["text"].startswith("right: 2 kernels, all results")
        assert "before any rule" in check["text"]
        assert verdicts(session) == [("plain", True), ("auto", True)]
        done(session, "device", name="PYTHON")
        assert plain(session.record)["plan"]["check"] is None, "that was on LLVM"


def test_a_wrong_rule_names_the_kernel_and_the_results() -> None:
    x = var("x")
    rules = register(RuleSet("mine", [Rule("no-3", x + 3.0, x)]), "simplify-tensor")
    try:
        with session_of(two_kernels()) as session:
            done(session, "check_all")
            check = plain(session.record)["plan"]["check"]
            wrong = f"WRONG: kernel 2 plain, the results on {session.device}; "
            assert not check["ok"] and check["text"].startswith(wrong)
            assert verdicts(session) == [("plain", True), ("plain", False)]
    finally:
        unregister(rules)


def test_a_loaded_exploration_without_data_says_so(tmp_path: Any) -> None:
    from workbench import load

    with session_of(load(two_kernels().save(tmp_path / "a.workbench"))) as session:
        error = ask(session, "check_all")["error"]
        assert "cannot check this exploration" in error["what"]
