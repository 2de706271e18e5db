"""What changes, or stops, while a search runs or something is measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.viz.record.support import plain
from tests.viz.session.support import Page, done, finish_jobs, prefetch_all, session_of
from tests.viz.support import matmul
from workbench import load
from workbench.viz.session import prefetch
from workbench.viz.session.handlers import baselines, measurement, opt_lists
from workbench.viz.session.opt_text import spread_text, timing_text
from workbench.viz.session.session import Session
from workbench.worker.client import TaskStopped

pytestmark = pytest.mark.usefixtures("nothing_saved", "nothing_fails")


def meanwhile(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, do: Callable[[], Any]
) -> None:
    """Do something when a function has its result, and has not returned yet."""
    function = getattr(module, name)

    def called(*args: Any) -> Any:
        result = function(*args)
        do()
        return result

    monkeypatch.setattr(module, name, called)


def test_results_are_of_the_device_that_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with session_of(matmul()) as session:
        page = Page(session)
        with monkeypatch.context() as patched:
            away = lambda: done(session, "device", name="PYTHON")  # noqa: E731
            meanwhile(patched, measurement, "ask", away)
            for do, fields in (("measure", {"variants": [0], "cold": None}),
                               ("check", {"variant": 0})):  # fmt: skip
                done(session, "device", name="LLVM")
                done(session, do, **fields)
        row = page.record["variants"][0]
        assert session.device == "PYTHON" and row["timing"] is row["check"] is None
        assert set(session.timings) == set(session.checks) == {(0, "LLVM")}
        done(session, "device", name="LLVM")
        row = page.record["variants"][0]
        assert row["timing"]["device"] == "LLVM" and row["check"]["ok"]


def test_baselines_change_while_they_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "SAMPLES", 2)
    ex = matmul()
    with session_of(ex) as session:

        def change() -> None:
            if plain(session.record)["pinned"] is not None:
                ex.display.baselines["another"] = lambda: None
                done(session, "device", name="PYTHON")
                done(session, "pin", variant=None)

        ex.display.baselines = {"mine": change, "next": lambda: None}
        page = Page(session)
        done(session, "pin", variant=0)
        done(session, "baseline")
        rows = page.record["baselines"]
        assert [(r["name"], r["error"]) for r in rows] == [("mine", None), ("next", None)]
        run = session.timings[0, "LLVM"].run
        assert rows[0]["timing"]["run"] == run, "as it began"
        assert set(session.timings) == {(0, "LLVM")}
        assert page.record["variants"][0]["timing"] is None
        assert [m["status"]["task"] for m in page.messages if "status" in m][-1] is None


def test_offers_change_while_they_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "MOST_OFFERS", 8)
    with session_of(matmul(), prefetches=True) as session:

        def away_and_back() -> None:
            for name in ("PYTHON", "LLVM"):
                done(session, "device", name=name)

        done(session, "measure", variants=[0], cold=None)
        meanwhile(monkeypatch, measurement, "times", away_and_back)
        done(session, "offers", variant=0)
        finish_jobs(session.jobs)
        offers = plain(session.row(0))["offers"]  # of this device, they came back with it
        assert 0 < len([o for o in offers if o["measured"]]) <= 4, "and no more"


# stops


def test_a_search_that_is_stopped_before_anything_was_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with session_of(matmul()) as session:
        done(session, "search", variant=0, budget_s=0.5)
        searches = [v["searches"] for v in plain(session.record)["variants"]]
        monkeypatch.setattr(session.jobs, "is_stopped", lambda: True)
        message = {"do": "search", "variant": 0, "budget_s": 5.0}
        assert plain(session.handle(message))["error"]["what"] == "stopped"
        assert [v["searches"] for v in plain(session.record)["variants"]] == searches


def test_a_second_search_with_the_same_result_keeps_the_log_of_the_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the session, in a plan made again, in the next session, and in a file."""
    outcomes: list[Any] = []
    run = opt_lists.searching.run

    def first_again(*args: Any, **fields: Any) -> Any:
        outcomes.append(outcomes[0] if outcomes else run(*args, **fields))
        return outcomes[-1]

    def budgets(session: Session) -> list[list[float | None]]:
        rows = [row.searches for row in session.record.variants if row.searches]
        return [[search.budget_s for search in searches] for searches in rows]

    monkeypatch.setattr(opt_lists.searching, "run", first_again)
    ex = matmul()
    with session_of(ex) as session:
        places = [
            done(session, "search", variant=0, budget_s=budget)["variant"] for budget in (0.5, 0.75)
        ]
        assert places[0] == places[1] and budgets(session) == [[0.5, 0.75]]
        ex.display.session = session
        loaded = load(ex.save(tmp_path / "searched.wb")).display.session
        assert loaded is not None and budgets(loaded) == [[0.5, 0.75]]
        session.reopen(ex.planned_again(ex.choices, ex.rules_off))
        assert budgets(session) == [[0.5, 0.75]]
    with session_of(matmul()) as session:
        prefetch_all(session, measures=False)
        assert budgets(session) == [[0.5, 0.75]]


def test_a_search_stays_though_its_last_measurement_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stopped(*_: Any) -> None:
        raise TaskStopped()

    monkeypatch.setattr(measurement, "time_group", stopped)
    with session_of(matmul()) as session:
        number = done(session, "search", variant=0, budget_s=0.5)["variant"]
        row = plain(session.row(number))
        assert row["searches"][0]["tried"] and row["check"]["ok"]
        assert "before any rule" in row["check"]["text"]
        assert len(row["timing"]["samples"]) == 1, "what the search has measured"


def test_a_search_starts_from_the_fastest_variants_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with session_of(matmul()) as session:
        texts = ["UPCAST g0 2", "UPCAST g0 3", "UPCAST g0 6", "UNROLL r0 2"]
        numbers = [done(session, "paste", variant=0, text=text)["variant"] for text in texts]
        done(session, "measure", variants=numbers)
        for number, seconds in zip(numbers, [4e-3, 1e-3, 2e-3, 3e-3], strict=True):
            timing = session.timings[number, session.device]
            session.timings[number, session.device] = replace(timing, median_s=seconds)
        number = done(session, "search", variant=numbers[1], budget_s=0.5)["variant"]
        search = plain(session.row(number))["searches"][-1]
        starts = [row[2] for row in search["candidates"] if row[1] is None]
        names = [session.row(numbers[place]).name for place in (2, 3)]
        assert starts[-3:-1] == [f"start: {name}" for name in names], starts


def test_measurements_of_a_variant_are_remembered_in_its_time() -> None:
    with session_of(matmul()) as session:
        done(session, "measure", variants=[0])
        first = session.row(0).timing
        assert first is not None
        first = replace(first, median_s=1e-4, samples=[1e-4, 1e-4], had=None, doubts=[], medians=[])
        session.timings[0, "LLVM"] = timing = first
        for median_s, words in (2e-4, []), (9e-4, ["the machine is busy"]), (3e-4, []):
            again = replace(first, median_s=median_s, doubts=words)
            timing = measurement.add_timing(session, 0, again)
        assert timing.medians == [1e-4, 2e-4], "those that are certain"
        assert "3 calls gave 100 µs to 300 µs" in timing_text(timing, None)
        far = replace(timing, median_s=2e-4, spread=0.01, medians=[1e-4, 3e-4])
        assert spread_text(far) == "± 50%"


def test_a_time_of_several_runs_stays_when_a_later_one_is_less_certain() -> None:
    with session_of(matmul()) as session:
        done(session, "measure", variants=[0])
        timing = session.row(0).timing
        assert timing is not None
        good = session.timings[0, "LLVM"] = replace(timing, samples=[1e-4, 1e-4], had=None)
        one = replace(good, median_s=3e-3, samples=[3e-3], run="one")
        busy = replace(good, median_s=5e-5, had=0.3, run="busy")
        for weaker, words in ((one, "3 ms, 1 run"), (busy, "50 µs, busy")):
            kept = measurement.add_timing(session, 0, weaker)
            assert (kept.median_s, kept.run) == (good.median_s, good.run)
            assert f"timed again: {words}" in timing_text(kept, None)
            assert session.timings[0, "LLVM"] == kept
        again = replace(good, median_s=2e-4, run="again")
        assert measurement.add_timing(session, 0, again).run == "again", "as certain as before"
        other_inputs = replace(one, random_inputs=not good.random_inputs)
        assert measurement.add_timing(session, 0, other_inputs).run == "one"
        assert measurement.add_timing(session, 0, replace(busy)).run == "busy", (
            "one run is replaced"
        )
