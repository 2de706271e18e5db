"""Kernels run for the page: timed, checked, searched, beside baselines, and before anybody asks."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from tests.support import PATIENCE_S
from tests.tools.compiler import needs_c
from tests.viz.record.support import broken, plain
from tests.viz.session.support import (
    Page,
    ask,
    done,
    finish_jobs,
    prefetch_all,
    session_of,
    unpacked,
)
from tests.viz.support import array, matmul, softmax
from workbench import Tensor
from workbench.base.source import ModuleCall
from workbench.measure.timing import Samples
from workbench.viz import explore
from workbench.viz.exploration.tables import KernelTuple
from workbench.viz.schema.variant import TimingRow
from workbench.viz.session import prefetch
from workbench.viz.session.handlers import baselines, measurement
from workbench.viz.session.handlers import opt_lists as searches
from workbench.viz.session.opt_text import timing_text
from workbench.viz.session.session import Session

pytestmark = pytest.mark.usefixtures("nothing_saved", "each_time_replaces_the_last")


@pytest.fixture
def each_time_replaces_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, too, which keeps a better time of another run."""
    monkeypatch.setattr(TimingRow, "is_founded", True)


def test_measure(session: Session) -> None:
    auto = done(session, "auto", kernel=0)["variant"]
    done(session, "measure", variants=[0, auto, 0], cold=True)
    for variant in (0, auto):
        timing = plain(session.row(variant))["timing"]
        assert timing["min_s"] <= timing["median_s"] and timing["cold_s"] > 0
        assert timing["device"] == "LLVM" and not timing["emulator"]
        assert timing["samples"] and timing["kind"] == "f32" and timing["threads"] >= 1
    first = plain(session.row(0))["timing"]["run"]
    assert plain(session.row(auto))["timing"]["run"] == first != ""
    done(session, "measure", variants=[0], cold=False)
    both = {plain(session.row(v))["timing"]["run"] for v in (0, auto)}
    assert len(both) == 1 and first not in both, "what stands at the top is of one run"
    statuses = [m["status"] for m in page_of(session).messages if "status" in m]
    assert statuses[0]["task"] == "measure" and statuses[-1]["task"] is None
    assert any("warm" in s["text"] for s in statuses)


def test_a_new_variant_is_timed_beside_the_latest_ones(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So tries one after the other have ratios; slow ones and those beyond the bound are left."""
    tries = [
        done(session, "apply", variant=0, opt=opt)["variant"]
        for opt in ('UNROLL("r0", 2)', 'UNROLL("r0", 4)', 'UNROLL("r0", 8)')
    ]

    def runs() -> list[str]:
        return [row.run if (row := session.row(v).timing) else "" for v in tries]

    for variant in tries:
        done(session, "measure", variants=[variant], cold=False)
    assert len(set(runs())) == 1 and "" not in runs()
    monkeypatch.setattr(measurement, "MOST_BESIDE", 1)
    before = runs()[0]
    done(session, "measure", variants=tries[2:], cold=False)
    assert runs()[0] == before != runs()[2] == runs()[1], "only the latest other one"
    monkeypatch.setattr(measurement, "BESIDE_S", 0.0)
    before = runs()[0]
    done(session, "measure", variants=tries[2:], cold=False)
    assert runs()[1] != runs()[2], "a slow one waits for a request"


def test_each_variant_of_many_has_its_seconds(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timed in turns within the seconds of one, they had a sample each on a busy machine, which
    other programs had disturbed; so there was no ratio however often they were timed again."""
    budgets = []
    monkeypatch.setattr(measurement, "time_group", lambda *arguments: budgets.append(arguments[4:]))
    made = [done(session, "apply", variant=0, opt=f'UPCAST("g1", {n})') for n in (2, 4)]
    for variants in ([0], [0, *(row["variant"] for row in made)]):
        done(session, "measure", variants=variants)
    assert [seconds for seconds, _ in budgets] == [n * measurement.BUDGET_S for n in (1, 3)]


def test_a_kernel_has_the_time_of_auto_once_that_was_measured(session: Session) -> None:
    """The list of kernels tells times of the default opts: that of no other variant."""
    done(session, "measure", variants=[0], cold=False)
    run = session.record.plan.runs[0]
    assert run.measured_s is None
    auto = done(session, "auto", kernel=0)["variant"]
    done(session, "measure", variants=[auto], cold=False)
    run = session.record.plan.runs[0]
    assert run.measured_s == session.row(auto).timing.median_s


def test_shares_are_of_one_peak(session: Session) -> None:
    """However often it is timed: the slower time is never nearer to the peak."""
    session.recorder.machine.measure()
    rows = []
    for _ in range(3):
        done(session, "measure", variants=[0], cold=False)
        rows.append(session.row(0).timing)
    speeds = session.recorder.speeds
    assert plain(session.record)["machine"]["one_thread"]["peak"]["f32"] == speeds.peak["f32"].one
    shares = [speeds.share(r.kind, r.threads, 1e9 * r.gflops) for r in rows]
    assert None not in shares
    assert all("peak" in timing_text(row, speeds) for row in rows)
    by_time = sorted(zip(rows, shares, strict=True), key=lambda both: both[0].median_s)
    assert [share for _, share in by_time] == sorted(shares, reverse=True)


def page_of(session: Session) -> Any:
    return session.listeners()[0]


def test_check(session: Session) -> None:
    done(session, "check", variant=0)
    assert plain(session.row(0))["check"]["ok"] is True


def test_an_emulator_stands_alone(session: Session) -> None:
    done(session, "measure", variants=[0])
    timing = plain(session.row(0))["timing"]
    done(session, "device", name="PYTHON")
    assert plain(session.record)["device"] == "PYTHON"
    assert plain(session.row(0))["timing"] is None and plain(session.row(0))["offers"] == []
    done(session, "measure", variants=[0])
    done(session, "check", variant=0)
    assert plain(session.row(0))["timing"]["emulator"]
    text = timing_text(session.row(0).timing, session.recorder.speeds)
    assert "EMULATOR (PYTHON)" in text and "peak" not in text
    done(session, "device", name="LLVM")
    assert plain(session.row(0))["timing"] == timing and plain(session.row(0))["check"] is None


def test_baselines() -> None:
    ran = []
    ex = matmul().baseline("mine", ran.append, 1)
    ex.baseline("broken", lambda: 1 / 0)
    ex.baseline("lazy", lambda: [Tensor([1.0]) + 1])
    with session_of(ex) as session:
        done(session, "pin", variant=0)
        done(session, "baseline")
        mine, broken_row, lazy = plain(session.record)["baselines"]
        assert mine["name"] == "mine" and mine["timing"]["median_s"] > 0 and ran
        assert mine["error"] is None
        assert broken_row["timing"] is None
        assert broken_row["error"] == "ZeroDivisionError: division by zero"
        assert lazy["timing"] is None and "not computed" in lazy["error"]
        assert ": try numpy arrays" in lazy["error"]
        assert plain(session.row(0))["timing"], "the pinned variant was timed in turns with it"
        done(session, "device", name="PYTHON")
        assert "emulator" in ask(session, "baseline")["error"]["because"]


def test_baselines_are_timed_in_turns_with_variants() -> None:
    ex = matmul().baseline("mine", lambda: None).baseline("other", lambda: None)
    with session_of(ex) as session:
        auto = done(session, "auto", kernel=0)["variant"]
        done(session, "baseline", variants=[0, auto])
        rows = plain(session.record)["baselines"] + [plain(session.row(v)) for v in (0, auto)]
        runs = {row["timing"]["run"] for row in rows}
        assert len(runs) == 1, "all of one run"


def test_a_baseline_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "LIMIT_S", 0.1)
    is_over = Event()
    ex = matmul().baseline("slow", lambda: is_over.wait(PATIENCE_S))
    with session_of(ex) as session:
        done(session, "baseline")
        is_over.set()
        assert "did not return" in plain(session.record)["baselines"][0]["error"]


def test_what_is_done_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "MOST_OFFERS", 4)
    ex = softmax().baseline("mine", lambda: None)
    with session_of(ex, prefetches=True) as session:
        page = Page(session)
        prefetch_all(session)
        finish_jobs(session.jobs)
        record = page.record
        assert page.is_record_of(session) and broken(record) == []
        assert all(v["timing"] for v in record["variants"]), "plain and auto"
        assert record["baselines"][0]["timing"]
        assert any(o["measured"] for o in record["variants"][0]["offers"])
        assert unpacked(page.renewed[-1]) == record


def test_an_offer_that_ran_once_has_no_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "MOST_OFFERS", 4)
    monkeypatch.setattr(prefetch, "SAMPLES", 1)
    with session_of(softmax(), prefetches=True) as session:
        prefetch_all(session)
        finish_jobs(session.jobs)
        offers = plain(session.row(0))["offers"]
        assert {o["spread"] for o in offers if o["measured"]} == {None}
        assert any(o["measured"] for o in offers)


def test_a_ratio_is_given_where_both_kernels_had_their_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of a second that was spent waiting for a core to a millisecond is no ratio; and no kernel
    is faster than the machine."""
    monkeypatch.setattr(prefetch, "MOST_OFFERS", 3)
    monkeypatch.setattr(measurement, "Samples", Samples)
    plain_row = {"samples": [1.0] + [2e-3] * 8, "shares": [0.002] + [1.0] * 8}
    offered: list[Any] = [
        {"samples": [1e-3] * 8 + [0.5], "shares": [1.0] * 8 + [0.002]},
        {"samples": [0.4] * 9, "shares": [0.02] * 9},
        {"samples": [1e-13] * 9},
    ]

    def answer(session: Any, worker: Any, task: Any, name: str) -> Any:
        rows = [plain_row, *offered] if len(task["kernels"]) == 4 else [plain_row] * 2
        return {"kernels": rows[: len(task["kernels"])]}

    monkeypatch.setattr(measurement, "ask", answer)
    with session_of(softmax(), prefetches=True) as session:
        session.recorder.machine.measure()
        prefetch_all(session)
        finish_jobs(session.jobs)
        offers = plain(session.row(0))["offers"][:3]
        assert [o["measured"] for o in offers] == [2.0, None, None]
        assert [o["busy"] for o in offers] == [False, True, True]
        timing = session.row(0).timing
        assert timing is not None and timing.median_s == 2e-3 and timing.had is None


def test_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends after some candidates, however long they take."""
    search = searches.searching.run
    reported = []

    def short(*args: Any, report: Any, **fields: Any) -> Any:
        def count(candidate: Any) -> None:
            report(candidate)
            reported.append(candidate)

        fields |= {"budget_s": 120.0, "stop": lambda: len(reported) > 8}
        return search(*args, report=count, **fields)

    monkeypatch.setattr(searches.searching, "run", short)
    with session_of(explore(array(64, 64) @ array(64, 64))) as session:
        page = Page(session)
        variant_number = done(session, "search", variant=0, budget_s=5)["variant"]
        row = plain(session.row(variant_number))
        assert row["timing"] and row["name"] in ("search 1", "plain", "auto")
        if variant_number:
            assert row["opts"] and row["parent"] == 0 and row["note"]
        tasks = {m["status"]["task"] for m in page.messages if "status" in m}
        assert {"search", "measure"} <= tasks
        (tried,) = row["searches"]
        assert tried["budget_s"] == 5 and tried["when"]
        rows = {number: parent for number, parent, *_ in tried["candidates"]}
        assert tried["tried"] == len(rows) > 2 and tried["best"] in rows
        assert {p for p in rows.values() if p is not None} <= set(rows)
        timed = [(s, spread) for _, _, _, s, _, spread in tried["candidates"] if s]
        assert timed and any(spread is not None for _, spread in timed)
    with session_of(explore(array(64, 64) @ array(64, 64))) as session:
        prefetch_all(session)
        again = [v["searches"] for v in plain(session.record)["variants"] if v["searches"]]
        assert again == [[plain(tried)]]


@needs_c
def test_devices_are_timed_in_turns_and_stand_beside_each_other(session: Session) -> None:
    """What was timed on another device is timed there again with the new one: times of one run can
    be compared. An emulator's are not."""

    def timings() -> tuple[Any, list[Any]]:
        row = plain(session.row(0))
        return row["timing"], row["elsewhere"]

    done(session, "code", variant=0, language="asm")
    done(session, "measure", variants=[0])
    assert timings()[1] == []
    done(session, "device", name="C")
    timing, elsewhere = timings()
    assert timing is None and [row["device"] for row in elsewhere] == ["LLVM"]
    assert elsewhere[0]["moved_bytes"] > 0, "its point of the roofline stays"
    done(session, "measure", variants=[0])
    timing, elsewhere = timings()
    assert timing["device"] == "C" and [row["device"] for row in elsewhere] == ["LLVM"]
    assert timing["run"] == elsewhere[0]["run"]
    done(session, "device", name="PYTHON")
    done(session, "measure", variants=[0])
    timing, elsewhere = timings()
    assert timing["emulator"] and [row["device"] for row in elsewhere] == ["LLVM", "C"]
    assert timing["run"] not in [row["run"] for row in elsewhere]
    done(session, "device", name="LLVM")
    done(session, "measure", variants=[0])
    timing, elsewhere = timings()
    runs = {row["device"]: row["run"] for row in elsewhere}
    assert runs["C"] == timing["run"] != runs["PYTHON"]


@needs_c
def test_another_device_is_timed_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "MOST_OFFERS", 0)
    with session_of(softmax(), prefetches=True) as session:
        prefetch_all(session)
        done(session, "device", name="C")
        done(session, "offers", variant=0)  # as a page asks
        finish_jobs(session.jobs)
        rows = [v for v in plain(session.record)["variants"] if v["kernel"] == 0]
        assert [v["name"] for v in rows] == ["plain", "auto"]
        assert {v["timing"]["device"] for v in rows} == {"C"}
        runs = {t["run"] for v in rows for t in [v["timing"], *v["elsewhere"]]}
        assert len(runs) == 1, "all of one run"


class Framework:
    """A run of a model's framework whose modules take times that are known."""

    about, limit_s = "Framework 1, 2 threads", 5.0

    def __call__(self) -> None:
        """Compute nothing."""

    def module_times(self) -> dict[str, float]:
        return {"": 1.0, "layer": 0.25, "other": 0.5}


def test_a_model_of_a_framework_stands_beside_the_run_of_all_kernels() -> None:
    ex = explore(array(8, 8).exp().contiguous().sum(axis=1)).baseline("mine", Framework())
    kernels = tuple(replace(k, modules=(ModuleCall("layer", "sum"),)) for k in ex.kernels)
    ex = replace(ex, kernels=KernelTuple(kernels, ex.display))
    with session_of(ex) as session:
        ex.display.session = session
        done(session, "baseline")
        mine, ours = plain(session.record)["baselines"]
        assert mine["about"] == Framework.about and mine["timing"] and mine["error"] is None
        assert [m["path"] for m in mine["modules"]] == ["layer", "other"]
        assert ours["name"] == "all 2 kernels here" and ours["is_ours"]
        assert ours["timing"]["run"] == mine["timing"]["run"], "in turns"
        text = str(ex.results)
        assert "mine (Framework 1, 2 threads): " in text and "250 ms in layer, as kernel 2" in text
        done(session, "baseline")
        assert len(plain(session.record)["baselines"]) == 2
