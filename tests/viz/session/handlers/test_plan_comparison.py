"""A plan held against the one before it: what moved, what each takes, and which is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.viz.record.support import plain
from tests.viz.session.support import Page, finish_jobs, session_of
from tests.viz.support import array
from workbench.measure.side_by_side import Ratio
from workbench.measure.timing import Samples
from workbench.viz import Exploration, explore
from workbench.viz.plan_differences import plan_sections
from workbench.viz.session import prefetch
from workbench.viz.session.handlers import measurement, plan_comparison
from workbench.viz.session.session import Session

pytestmark = pytest.mark.usefixtures("nothing_saved")


def product(n: int = 96) -> Exploration:
    """Three kernels: what goes into the product, the product, and a softmax of it."""
    x = array(n, n)
    return explore(((x * 0.25 + 1) @ x).softmax(1))


@pytest.fixture
def session() -> Iterator[Session]:
    with session_of(product()) as product_session:
        yield product_session


def done(session: Session, do: str, **fields: Any) -> Any:
    reply = plain(session.handle({"id": 1, "do": do, **fields}))
    assert reply["ok"], reply["error"]
    return plain(session.record)["plan"]["compared"]


def refused(session: Session) -> str:
    reply = plain(session.handle({"id": 1, "do": "plans"}))
    assert not reply["ok"]
    return str(reply["error"]["because"])


def decided(session: Session, name: str) -> Any:
    rows = plain(session.record)["plan"]["decisions"]
    return next(d for d in rows if d["stored"] and name in d["name"])


def fuse(session: Session, name: str) -> Any:
    node = decided(session, name)["node"]
    return done(session, "replan", node=node, store=False)


def test_a_cut_that_moved_is_said_with_its_reason(session: Session) -> None:
    assert plain(session.record)["plan"]["compared"] is None
    row = fuse(session, "mul+add")
    assert row["kernels"] == [3, 3] and row["seconds"] is None
    rows = plain(session.record)["plan"]["decisions"]
    assert rows[row["change"]]["forced"] and not rows[row["change"]]["stored"]
    (moved,) = (rows[place] for place in row["moved"])
    assert moved["stored"] and moved["name"].startswith("elementwise mul 96")
    assert "times for" in moved["reason"]
    again = done(session, "replan", node=rows[row["change"]]["node"], store=None)
    now = plain(session.record)["plan"]["decisions"]
    assert [now[place]["stored"] for place in again["moved"]] == [False]


def test_a_plan_that_does_not_compile_is_not_compared(session: Session) -> None:
    """A rule that is needed was switched off, and on again: before and now are of all rules."""
    whole = session.recorder.exploration
    off = {"do": "rule_off", "kernel": None, "rule": "exp-formula", "of": None}
    done(session, **off, on=False)
    assert any(row.error for row in session.record.variants), "no device has EXP"
    row = done(session, **off, on=True)
    assert session.before is not None and session.before.exploration is whole
    assert row["kernels"] == [3, 3] and row["kernels_now"] == [0, 1, 2] and not row["moved"]


def test_another_plan_is_on_the_device_that_was_chosen(session: Session) -> None:
    page = Page(session)
    done(session, "device", name="PYTHON")
    fuse(session, "matmul")
    finish_jobs(session.jobs)
    assert page.is_record_of(session) and page.record["device"] == "PYTHON"
    assert {kernel.device for kernel in session.kernels} == {"PYTHON"}
    assert page.record["headline"].endswith("on PYTHON")


def test_both_plans_are_timed_in_one_run(session: Session) -> None:
    page = Page(session)
    before = loads(session)
    assert fuse(session, "matmul")["kernels"] == [3, 2]
    assert loads(session) > 2 * before, "inside a softmax it loses its register tile"
    assert session.before is not None
    both = session.before.exploration, session.recorder.exploration
    compared = plain(session.record)["plan"]["compared"]
    assert compared["operations"] == [sum(k.estimates.flops for k in ex.kernels) for ex in both]
    whole = {row.label: row.cells for row in plan_sections(both)[0].rows}
    assert list(whole["operations"]) == [f"{each:,}" for each in compared["operations"]]
    row = done(session, "plans")
    assert all(seconds > 0 for seconds in row["seconds"]) and row["speed"]
    with session.lock:  # a job may be adding to the record
        session.send_changes()
        assert page.is_record_of(session)
    tasks = {m["status"]["task"] for m in page.messages if "status" in m}
    assert "plans" in tasks


def loads(session: Session) -> int:
    """Return how many bytes the kernels load that run by default."""
    kernels = session.recorder.exploration.kernels
    return sum(kernel.optimized().counts.bytes_loaded for kernel in kernels)


def answered_by(patch: pytest.MonkeyPatch, answer: Callable[..., Any]) -> None:
    """Let a function stand for the worker."""
    patch.setattr(measurement, "ask", answer)
    patch.setattr(measurement, "hold", lambda worker, kernel, key: None)


def test_times_of_a_plan_are_those_of_its_kernels(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel that both plans have is timed once, and counts in both."""
    fuse(session, "matmul")
    tasks: list[Any] = []

    def answer(session: Any, worker: Any, task: Any, name: str) -> Any:
        tasks.append(task)
        seconds = 2.0 ** -len(task["kernels"])
        return {
            "kernels": [
                {"samples": [2.0**place * seconds] * (8 + place)}
                for place in range(len(task["kernels"]))
            ]
        }

    answered_by(monkeypatch, answer)
    row = done(session, "plans")
    kernels = tasks[0]["kernels"]
    assert len(kernels) == 4 and len({k["data"] for k in kernels}) == 4
    assert row["seconds"] == pytest.approx([7 / 16, 9 / 16])  # the first is in both
    assert row["speed"].startswith("29 % slower")


def test_the_times_have_the_ratio_that_the_verdict_says(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Medians of their own have another one, where the clock of the machine changes."""
    fuse(session, "matmul")

    def answer(session: Any, worker: Any, task: Any, name: str) -> Any:
        rows = range(len(task["kernels"]))
        return {
            "kernels": [
                {"samples": [(1 + p / 20) * (1 + i % 3) + (i * (p + 3)) % 7 / 2 for i in range(9)]}
                for p in rows
            ]
        }

    answered_by(monkeypatch, answer)
    row = done(session, "plans")
    was_s, now_s = row["seconds"]
    ratio = str(Ratio(was_s / now_s, was_s / now_s, was_s / now_s, 9))
    assert row["speed"].split("(")[0] == ratio.split("(")[0]


def test_plans_timed_on_a_busy_machine_have_times_without_a_ratio(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "Samples", Samples)
    fuse(session, "matmul")
    kernel = {"samples": [0.4, 0.4, 0.4], "shares": [0.25, 0.25, 0.25]}
    answered_by(
        monkeypatch,
        lambda session, worker, task, name: {"kernels": [kernel] * len(task["kernels"])},
    )
    row = done(session, "plans")
    assert row["seconds"] is None and row["verdict"] == "the machine is busy: not compared"
    assert row["busy_s"] == pytest.approx([0.1 * kernels for kernels in row["kernels"]])


def test_another_order_has_the_same_kernels_and_so_no_other_times() -> None:
    with session_of(explore(array(8, 12).sum(1), array(30, 5).max(0))) as session:
        rows = plain(session.record)["plan"]["decisions"]
        first, last = (row["node"] for row in rows if row["stored"] and not row["is_copy"])
        done(session, "replan", node=last, kind="before", others=[first])
        row = done(session, "plans")
        assert row["verdict"] == row["speed"] == plan_comparison.SAME_KERNELS
        assert row["seconds"] is None or row["seconds"][0] == row["seconds"][1]


@pytest.mark.parametrize(
    ("rows", "because"),
    [
        ([{"error": {"what": "w", "because": "it crashed", "try": ""}}], "it crashed"),
        ([{"samples": [1.0]}, {}], "this was requested"),
    ],
)
def test_what_does_not_run_is_said(
    session: Session, monkeypatch: pytest.MonkeyPatch, rows: Any, because: str
) -> None:
    fuse(session, "matmul")
    answered_by(monkeypatch, lambda *args: {"kernels": rows})
    assert refused(session) == because
    assert plain(session.record)["plan"]["compared"]["seconds"] is None


def test_what_cannot_be_timed(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no other plan" in refused(session)
    fuse(session, "matmul")
    with monkeypatch.context() as patch:
        patch.setattr(plan_comparison, "MOST_KERNELS", 4)
        assert "5 kernels" in refused(session)
    session.handle({"id": 1, "do": "device", "name": "PYTHON"})
    assert "emulator" in refused(session)


def test_small_plans_are_timed_without_being_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "MOST_OFFERS", 0)
    with session_of(product(), prefetches=True) as session:
        fuse(session, "mul+add")
        finish_jobs(session.jobs)
        assert plain(session.record)["plan"]["compared"]["seconds"]
