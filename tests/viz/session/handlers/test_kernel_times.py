"""The time of every kernel of a plan: equal kernels once, with the default opts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.viz.record import models
from tests.viz.record.support import plain
from tests.viz.session.support import Page, session_of
from workbench.viz import explore
from workbench.viz.session.handlers import measurement
from workbench.viz.session.session import Session

pytestmark = pytest.mark.usefixtures("nothing_saved")


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
    assert page.record == plain(session.record)
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
