"""A session and its pages: variants and plans come and go, work stops, every copy is whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import PATIENCE_S, eventually
from tests.viz.record.support import broken, plain
from tests.viz.session.support import (
    Page,
    ask,
    done,
    finish_jobs,
    prefetch_all,
    session_of,
    unpacked,
    whole,
)
from tests.viz.support import array, matmul
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz.session import live_record, prefetch
from workbench.viz.session.handlers import measurement
from workbench.viz.session.requests import REQUESTED
from workbench.viz.session.session import QUICK, Session

pytestmark = pytest.mark.usefixtures("nothing_saved")


def test_a_fault_of_ours_is_an_answer(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUICK, "note", lambda *_, **__: 1 / 0)
    reply = ask(session, "note", variant=0, text="x")
    assert reply["error"]["what"] == "ZeroDivisionError"


def test_stop_drops_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurement, "BUDGET_S", 3600.0)
    monkeypatch.setattr(measurement, "MOST_BUDGET_S", 3600.0)
    monkeypatch.setattr(measurement, "SAMPLES", 10**9)
    monkeypatch.setattr(measurement, "SETTLED_SHARE", -1.0)
    with session_of(explore(array(400, 400) @ array(400, 400))) as session:
        page = Page(session)
        request = {"id": 1, "do": "measure", "variants": [0]}
        jobs = session.jobs
        events = [
            jobs.submit(session, session.job({**request, "id": n}, page), REQUESTED)
            for n in range(5)
        ]
        eventually(lambda: any("warm" in text for text in said(page)))
        assert done(session, "stop") == {"stopped": 5}
        assert all(event.wait(PATIENCE_S) for event in events)
        answered = [m for m in page.messages if m.get("id") in range(5)]
        assert sorted(m["id"] for m in answered) == [0, 1, 2, 3, 4]
        assert {m["error"]["what"] for m in answered if m["id"]} == {"stopped"}
        statuses = [m["status"]["task"] for m in page.messages if "status" in m]
        assert statuses[-1] is None, "nothing is said to be under way"
        assert done(session, "stop") == {"stopped": 0}


def said(page: Page) -> list[str]:
    """Return what the page has been told of work under way."""
    return [m["status"]["text"] for m in list(page.messages) if "status" in m]


def test_work_in_the_background_is_said_where_it_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def steps() -> Iterator[None]:
        session.status("measure", 0, 1, "starting")
        session.status(None)
        yield

    with session_of(explore(array(4, 4) + 1)) as session:
        page = Page(session)
        assert not [*session.in_this_plan(steps())][1:] and not said(page)
        monkeypatch.setattr(live_record, "QUIET_S", 0.0)
        assert not [*session.in_this_plan(steps())][1:] and said(page) == ["starting", ""]


def test_offers_that_a_page_asked_for_are_listed_once() -> None:
    with session_of(explore(array(4, 4) + 1)) as session:
        done(session, "offers", variant=0)
        offers = session.row(0).offers
        session.complete()
        assert session.row(0).offers is offers


@pytest.mark.parametrize("do", ["replan", "baseline"])
def test_what_fails_is_no_longer_under_way(do: str) -> None:
    with session_of(explore(array(4, 4) + 1)) as session:
        page = Page(session)
        message = {"id": 7, "do": do}
        if do == "replan":
            rows = plain(session.record)["plan"]["decisions"]
            copy = next(d for d in rows if d["is_requested"])
            message |= {"node": copy["node"], "store": False}
        job = session.job(message, page)
        assert session.jobs.submit(session, job, REQUESTED).wait(PATIENCE_S)
        assert [m["error"]["what"] for m in page.messages if m.get("id") == 7]
        statuses = [m["status"]["task"] for m in page.messages if "status" in m]
        assert statuses[0] == do and statuses[-1] is None


def test_a_page_that_asks_nothing_is_completed() -> None:
    with session_of(matmul()) as session:
        session.begin_after(0.0)
        eventually(lambda: len(session.record.variants) == 2)
        finish_jobs(session.jobs)
        assert all(row.passes for row in session.record.variants)


def test_two_sessions_do_not_meet() -> None:
    with session_of(matmul()) as first, session_of(matmul()) as second:
        pages = Page(first), Page(second)
        done(first, "apply", variant=0, opt='UPCAST("g1", 4)')
        done(second, "note", variant=0, text="mine")
        assert len(pages[0].record["variants"]) == 2
        assert len(pages[1].record["variants"]) == 1
        assert pages[0].record["variants"][0]["note"] == ""


def test_variants_come_back() -> None:
    with session_of(matmul()) as session:
        number = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
        done(session, "note", variant=number, text="good")
        done(session, "pin", variant=number)
        done(session, "measure", variants=[number])
        timing = plain(session.row(number))["timing"]
    with session_of(matmul()) as session:
        page = Page(session)
        prefetch_all(session)
        rows = {tuple(v["opts"]): (i, v) for i, v in enumerate(page.record["variants"])}
        place, row = rows['UPCAST("g1", 4)',]
        assert (row["name"], row["note"]) == ("UPCAST g1 4", "good")
        assert page.record["pinned"] == place
        assert row["timing"]["median_s"] == timing["median_s"]
        assert row["timing"]["earlier"]
        other = done(session, "apply", variant=0, opt='UPCAST("g1", 2)')["variant"]
        assert plain(session.row(other))["name"] == "UPCAST g1 2"


def test_a_late_page_gets_the_whole_record(session: Session) -> None:
    done(session, "note", variant=0, text="x")
    number = plain(session.record)["n"]
    assert done(session, "ping", have=number) == {"n": number, "record": None}
    packed = done(session, "ping", have=number - 1)["record"]
    assert unpacked(packed) == whole(session)


def test_nothing_to_compute() -> None:
    with session_of(explore(Tensor(2.0)), prefetches=True) as session:
        page = Page(session)
        prefetch_all(session)
        assert page.is_record_of(session)
        assert not ask(session, "apply", variant=0, opt='UPCAST("g1", 4)')["ok"]


def test_what_was_chosen_stays_in_another_plan_where_it_applies() -> None:
    x = array(16, 16)
    e = (x.exp() * 2).contiguous()
    with session_of(explore(e.sum(axis=1) + 1)) as session:
        done(session, "apply", variant=0, opt='UPCAST("g0", 2)')
        done(session, "apply", variant=1, opt='UPCAST("g0", 4)')
        done(session, "apply", variant=1, opt='UNROLL("r0", 4)')
        done(session, "note", variant=2, text="mine")
        before = session.record
        rows = plain(before)["plan"]["decisions"]
        node = next(d["node"] for d in rows if not d["stored"] and "exp" in d["name"])
        done(session, "replan", node=node, store=True)
        compared = session.record.plan.compared
        assert compared is not None and compared.number == session.number
        assert len(session.record.kernels) == 3
        assert compared.kernels_now == [1, 2]
        for old, new in enumerate(compared.variants_now):
            opts = before.variants[old].opts
            if new is not None:
                row = session.record.variants[new]
                assert (row.opts, row.name) == (opts, before.variants[old].name)
        first, *others = compared.variants_now[2:]
        assert first is not None and None not in others
        assert session.record.variants[first].note == "mine"
        done(session, "replan", node=compared_node(session), store=None)


def test_default_opts_are_those_of_the_plan_that_is_shown() -> None:
    """Back from a cut, the kernel that stores the same value has its own ones, and is chosen: not
    those of the kernel of the cut plan."""
    x = array(64, 64)
    with session_of(explore((x @ x).relu() @ x)) as session:
        session.complete()
        before = [(v.kernel, v.name, v.opts) for v in session.record.variants]
        product = next(
            d for d in session.record.plan.decisions if "sum of products" in d.name
        )  # fmt: skip
        done(session, "replan", node=product.node, store=True)
        session.complete()
        record = session.record
        assert len(record.kernels) == 3
        autos = [(place, v) for place, v in enumerate(record.variants) if v.name == "auto"]
        assert {v.kernel for _, v in autos} == {0, 1, 2}
        done(session, "replan", node=compared_node(session), store=None)
        compared = session.record.plan.compared
        assert compared is not None
        for place, row in autos:
            kernel, new = compared.kernels_now[row.kernel], compared.variants_now[place]
            if kernel is not None:
                assert new is not None and session.row(new).name == "auto"
                assert session.row(new).kernel == kernel
        session.complete()
        after = [(v.kernel, v.name, v.opts) for v in session.record.variants]
        assert sorted(after) == sorted(before), "and there are no others"


def compared_node(session: Session) -> int:
    """Return the node whose decision was changed."""
    compared = session.record.plan.compared
    assert compared is not None and compared.change is not None
    return session.record.plan.decisions[compared.change].node


def test_opts_that_another_plan_has_no_axis_for_do_not_stay() -> None:
    x = array(16, 16)
    with session_of(explore((x.exp() * 2).sum(axis=1))) as session:
        done(session, "apply", variant=0, opt='UNROLL("r0", 4)')
        rows = plain(session.record)["plan"]["decisions"]
        node = next(d["node"] for d in rows if not d["stored"] and "exp" in d["name"])
        done(session, "replan", node=node, store=True)
        compared = session.record.plan.compared
        assert compared is not None and compared.variants_now[1] is not None
        extra = session.record.kernels[0].root
        done(session, "apply", variant=extra, opt='UPCAST("g0", 4)')
        done(session, "replan", node=compared_node(session), store=None)
        compared = session.record.plan.compared
        assert compared is not None and compared.kernels_now == [None, 0]
        assert compared.variants_now[-1] is None


def test_replan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "MOST_OFFERS", 0)
    x = array(16, 16)
    with session_of(explore((x.exp() * 2).sum(axis=1)), prefetches=True) as session:
        page = Page(session)
        done(session, "apply", variant=0, opt='UPCAST("g0", 2)')
        rows = plain(session.record)["plan"]["decisions"]
        node = next(d["node"] for d in rows if not d["stored"] and "exp" in d["name"])
        number = done(session, "replan", node=node, store=True)["n"]
        finish_jobs(session.jobs)
        assert len(page.record["kernels"]) == 2 and page.is_record_of(session)
        assert broken(page.record) == [] and page.record["n"] >= number
        plain_or_auto = [v for v in page.record["variants"] if v["name"] in ("plain", "auto")]
        assert plain_or_auto and all(v["timing"] for v in plain_or_auto)
        forced = [d for d in page.record["plan"]["decisions"] if d["forced"]]
        done(session, "replan", node=forced[0]["node"], store=None)
        assert len(plain(session.record)["kernels"]) == 1
