"""What arrives at the worst moment: stops, switches, new pages and Ctrl-C between two steps."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support import PATIENCE_S
from tests.viz.record.support import broken, plain
from tests.viz.session.support import Page, done, finish_jobs, prefetch_all, session_of
from tests.viz.support import array, matmul, softmax
from workbench.base.context import Context
from workbench.kernel.kernel import Kernel
from workbench.measure.speeds import Speeds
from workbench.viz import explore
from workbench.viz.record import about, offers
from workbench.viz.record.record import Recorder, build
from workbench.viz.schema.messages import NoResult
from workbench.viz.session import live_record
from workbench.viz.session.handlers import variants as tuning
from workbench.viz.session.lru_cache import SESSIONS
from workbench.viz.session.opt_text import parse_opt
from workbench.viz.session.requests import CHOICE, PREFETCH, REQUESTED, Jobs
from workbench.viz.session.session import QUICK, Session, heed_interrupts

pytestmark = pytest.mark.usefixtures("nothing_saved", "nothing_fails")


class Busy:
    """Keeps a queue at work until it is told to let go."""

    def __init__(self, queue: Jobs):
        self._begun, self._over = Event(), Event()
        self.finished = queue.submit(self, self._steps(), REQUESTED)
        assert self._begun.wait(PATIENCE_S)

    def _steps(self) -> Iterator[None]:
        self._begun.set()
        assert self._over.wait(PATIENCE_S)
        yield

    def let_go(self) -> None:
        self._over.set()
        assert self.finished.wait(PATIENCE_S)


# stops


def test_ctrl_c_stops_what_pages_asked_for_once_no_cell_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cell has a handler of its own. Work that no page asked for goes on."""
    waiting: list[Callable[[], None]] = []
    loop = SimpleNamespace(
        add_callback=lambda call, *args: waiting.append(partial(call, *args)),
        call_later=lambda _, call, *args: waiting.append(partial(call, *args)),
    )
    before = signal.getsignal(signal.SIGINT)
    try:
        with session_of(matmul()) as session, session_of(softmax()) as other:
            monkeypatch.setattr(other, "stop", lambda: pytest.fail("nobody asked it"))
            page, busy = Page(session), Busy(session.jobs)
            job = session.job({"id": 3, "do": "measure", "variants": [0]}, page)
            finished = session.jobs.submit(session, job, REQUESTED)
            heed_interrupts(SimpleNamespace(io_loop=loop))
            waiting.pop()()
            assert signal.getsignal(signal.SIGINT) is before, "a cell runs"
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # as Jupyter does after it
            waiting.pop()()
            os.kill(os.getpid(), signal.SIGINT)
            assert finished.wait(PATIENCE_S)
            busy.let_go()
            until = time.monotonic() + PATIENCE_S
            while not any("notice" in m for m in page.messages):
                assert time.monotonic() < until
                time.sleep(0.01)
            assert [m["ok"] for m in page.messages if m.get("id") == 3] == [False]
        assert waiting == []
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_stop_reaches_no_task_of_another_owner() -> None:
    """A job may end, and the next begin, while somebody stops the first."""
    queue, reached = Jobs(), []
    busy = Busy(queue)
    queue.submit(queue, iter((None,)), REQUESTED)

    class Lent:
        def stop(self) -> None:
            busy._over.set()
            busy.finished.wait(0.3)  # it has all the time to end
            running = queue._running
            reached.append(None if running is None else running.owner)

    queue._busy = Lent()  # type: ignore[assignment]
    assert queue.stop(busy) == 1
    finish_jobs(queue)
    assert reached == [busy]


def test_what_a_reader_turns_to_comes_before_what_nobody_asked_for() -> None:
    """Also what began earlier, of which steps are left."""
    queue, order = Jobs(), list[str]()

    def steps(name: str) -> Iterator[None]:
        for _ in range(3):
            order.append(name)
            yield

    busy = Busy(queue)
    first = queue.submit(queue, steps("prefetch"), PREFETCH)
    last = queue.submit(queue, steps("device"), CHOICE)
    busy.let_go()
    assert first.wait(PATIENCE_S) and last.wait(PATIENCE_S)
    assert order == ["device"] * 3 + ["prefetch"] * 3


def test_what_waits_is_answered_at_once_when_it_is_stopped() -> None:
    """However long the work of another session goes on."""
    with session_of(matmul()) as session:
        page, busy = Page(session), Busy(session.jobs)
        job = session.job({"id": 3, "do": "measure", "variants": [0]}, page)
        finished = session.jobs.submit(session, job, REQUESTED)
        assert done(session, "stop") == {"stopped": 1}
        assert finished.is_set()
        replies = [m for m in page.messages if m.get("id") == 3]
        assert [m["error"]["what"] for m in replies] == ["stopped"]
        assert [m["status"]["task"] for m in page.messages if "status" in m][-1] is None
        busy.let_go()


def test_a_queue_that_is_closed_drops_its_jobs() -> None:
    with session_of(matmul()) as session:
        page, busy = Page(session), Busy(session.jobs)
        job = session.job({"id": 3, "do": "check", "variant": 0}, page)
        session.jobs.submit(session, job, REQUESTED)
        session.jobs.close()
        busy.let_go()
        finish_jobs(session.jobs)
        assert [m["ok"] for m in page.messages if m.get("id") == 3] == [False]
        assert session.jobs.worker.pid is None, "none is started for what was dropped"


def test_a_stop_leaves_what_pages_lack() -> None:
    ex = matmul()
    with session_of(ex) as session:
        page, busy = Page(session), Busy(session.jobs)
        session.begin()
        assert done(session, "stop") == {"stopped": 1}
        busy.let_go()
        finish_jobs(session.jobs)
        names = [v["name"] for v in page.record["variants"]]
        assert names == [v["name"] for v in plain(build(ex))["variants"]] == ["plain", "auto"]
        assert all(v["passes"] for v in page.record["variants"])
        assert page.record["variants"][0]["offers"]


# pages


def test_a_page_that_opens_between_a_change_and_its_patch() -> None:
    with session_of(matmul()) as session:
        first = Page(session)
        with session.lock:
            kernel = session.kernels[0].apply(parse_opt('UPCAST("g1", 4)'))
            tuning.variant_of(session, kernel, 0)
        second = Page(session)
        with session.lock:
            kernel = session.kernels[0].apply(parse_opt('UPCAST("g1", 2)'))
            tuning.variant_of(session, kernel, 0)
        reply = plain(session.handle({"do": "ping", "have": -1}, second))
        assert reply["result"]["n"] == plain(session.record)["n"]
        session.send_changes()
        assert first.is_record_of(session) and second.is_record_of(session)
        assert len(plain(second.record)["variants"]) == 3 and broken(second.record) == []


# work in the background


def test_work_in_the_background_gives_way_to_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits for the lock has it next, however soon the next piece of work wants it."""
    order: list[str] = []
    begun = Event()
    monkeypatch.setattr(live_record, "MOST_WAIT_S", PATIENCE_S)
    with session_of(matmul()) as session:
        monkeypatch.setitem(QUICK, "ping", lambda *_, **__: order.append("answer") or NoResult())

        def pieces() -> Iterator[None]:
            with session.lock:
                begun.set()
                while not session.waiting:
                    time.sleep(0.001)
                order.append("piece")
            yield
            with session.lock:
                order.append("next piece")

        steps = session.in_this_plan(pieces())
        thread = Thread(target=lambda: [*steps])
        thread.start()
        assert begun.wait(PATIENCE_S)
        session.handle({"id": 1, "do": "ping"})
        thread.join(PATIENCE_S)
    assert order == ["piece", "answer", "next piece"] and not session.waiting


def test_a_machine_has_sources_before_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """And whoever asks for something does not wait for a compiler."""
    compiled: list[bool] = []

    def take() -> None:
        compiled.append(session.lock.acquire(timeout=PATIENCE_S))
        session.lock.release()

    def compile(make: Callable[[], Kernel]) -> None:
        other = Thread(target=take)
        other.start()
        other.join()

    monkeypatch.setattr(tuning, "_compile", compile)
    with session_of(softmax()) as session:
        assert not [*tuning.prefetch_code(session)], "this machine is here"
        monkeypatch.setattr(session.jobs, "submit", lambda *_: Event())
        session.handle({"id": 1, "do": "device", "name": "CUDA:H100"})
        steps = tuning.prefetch_code(session)
        for kernel in session.record.kernels:
            next(steps)
            row = session.row(kernel.root)
            assert "CUDA" in [c.language for c in row.code] and not row.passes
        assert not compiled
        assert [*steps] and all(compiled)
        assert all(session.row(k.root).passes for k in session.record.kernels)


def test_nothing_ahead_is_done_for_a_plan_that_is_gone() -> None:
    x = array(16, 16)
    with session_of(explore((x.exp() * 2).sum(axis=1))) as session:
        number = done(session, "apply", variant=0, opt='UPCAST("g0", 2)')["variant"]
        busy = Busy(session.jobs)
        done(session, "offers", variant=number)
        rows = plain(session.record)["plan"]["decisions"]
        done(session, "delete", variants=[number], back=False)  # else it comes along
        done(session, "replan", node=rows[-1]["node"], store=None)
        assert len(session.kernels) <= number
        busy.let_go()
        finish_jobs(session.jobs)


def test_what_was_asked_of_a_plan_that_is_gone_is_not_done() -> None:
    """Its variant 0 is another one now, for which the source would be wrong."""
    x = array(16, 16)
    ex = explore((x.exp() * 2).sum(axis=1)).baseline("mine", lambda: None)
    with session_of(ex) as session:
        page, busy = Page(session), Busy(session.jobs)
        edit = {"do": "edit", "variant": 0, "language": "C", "text": "void f(){}"}
        for number, message in enumerate([edit, {"do": "baseline"}]):
            job = session.job({"id": number, **message}, page)
            session.jobs.submit(session, job, REQUESTED)
        rows = plain(session.record)["plan"]["decisions"]
        done(session, "replan", node=rows[-1]["node"], store=None)
        busy.let_go()
        finish_jobs(session.jobs)
        errors = {m["id"]: m["error"] for m in page.messages if m.get("id") in (0, 1)}
        assert errors[0]["what"] == "the plan has changed"
        assert errors[1] is None, "that is asked of every plan"
        assert not any(v["edited"] for v in page.record["variants"])


def test_baselines_are_not_timed_ahead_on_an_emulator() -> None:
    ex = softmax().baseline("mine", lambda: None)
    with session_of(ex, prefetches=True) as session:
        done(session, "device", name="PYTHON")
        prefetch_all(session)
        assert plain(session.record)["baselines"][0]["timing"] is None


# two sessions


def test_a_session_leaves_what_another_one_said_of_the_same_expression() -> None:
    """A cell that is run again makes one more, and the page of the first stays open."""
    text = 'UPCAST("g1", 4)'
    with session_of(matmul()) as first, session_of(matmul()) as second:
        number = done(first, "apply", variant=0, opt=text)["variant"]
        done(first, "note", variant=0, text="of the first")
        done(first, "pin", variant=number)
        done(second, "apply", variant=0, opt=text)  # which saves all that it has
    with session_of(matmul()) as third:
        done(third, "note", variant=0, text="of the third")  # the pin is not back yet
    with session_of(matmul()) as fourth:
        assert plain(fourth.row(0))["note"] == "of the third"
        number = done(fourth, "apply", variant=0, opt=text)["variant"]
        assert plain(fourth.record)["pinned"] == number
        done(fourth, "pin", variant=None)
    with session_of(matmul()) as fifth:
        other = done(fifth, "apply", variant=0, opt=text)["variant"]
        assert plain(fifth.record)["pinned"] is None
        done(fifth, "pin", variant=other)
    with session_of(matmul()) as sixth:
        done(sixth, "pin", variant=0)
        done(sixth, "apply", variant=0, opt=text)  # was pinned, and comes back later
        assert plain(sixth.record)["pinned"] == 0


# Ctrl-C


def pressed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function during which somebody presses Ctrl-C."""

    def called(*args: Any, **fields: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return function(*args, **fields)

    return called


def test_ctrl_c_leaves_a_record_that_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece of it is made by a generator, which would not survive that."""
    ex = matmul()
    with session_of(ex) as session, monkeypatch.context() as patched:
        patched.setattr(Recorder, "add_offers", pressed(Recorder.add_offers))
        with pytest.raises(KeyboardInterrupt):
            session.complete()
        patched.undo()
        session.complete()
        names = [v["name"] for v in plain(session.record)["variants"]]
        assert names == ["plain", "auto"] and plain(session.row(1))["passes"]


def test_ctrl_c_leaves_no_request_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    SESSIONS.clear()
    with Context(LIVE=1):
        widget = matmul().to_widget()
    messages: list[Any] = []
    monkeypatch.setattr(widget, "send", messages.append)
    monkeypatch.setitem(QUICK, "note", pressed(QUICK["note"]))
    with pytest.raises(KeyboardInterrupt):
        message = {"id": 3, "do": "note", "variant": 0, "text": "x"}
        widget._handle_custom_msg(message, [])
    assert [m["ok"] for m in messages if m.get("id") == 3] == [True]
    widget._session().jobs.close()
    SESSIONS.clear()


def is_lock_free(session: Session) -> bool:
    """Whether another thread can have the lock now."""
    taken: list[bool] = []

    def take() -> None:
        taken.append(session.lock.acquire(timeout=0.2))
        if taken[-1]:
            session.lock.release()

    other = Thread(target=take)
    other.start()
    other.join()
    return taken[0]


def test_the_machine_is_measured_while_others_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine it took 18 seconds, in which no other device could be chosen."""
    is_free: list[bool] = []
    known = about.speeds()

    def watched_speeds() -> Speeds:
        is_free.append(is_lock_free(session))
        return known

    monkeypatch.setattr("workbench.viz.record.record.earlier_speeds", lambda: None)
    monkeypatch.setattr(about, "speeds", watched_speeds)
    with session_of(explore(array(8) + 1)) as session:
        session.begin()
        finish_jobs(session.jobs)
        assert is_free[0] and session.record.machine.peak, "they are asked for again, and known"


def test_offers_are_listed_while_others_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a GPU take a second: in the background nobody waits for them, and who looks at the
    default opts finds theirs."""
    is_free: list[bool] = []
    listing = offers.next_rows

    def watched_listing(*arguments: Any) -> Any:
        is_free.append(is_lock_free(session))
        return listing(*arguments)

    ex = explore(array(16, 16) @ array(16, 16), device="CUDA:H100")
    monkeypatch.setattr(offers, "next_rows", watched_listing)
    with session_of(ex) as session:
        session.begin()
        finish_jobs(session.jobs)
        (plain_row, auto_row) = session.record.variants
        assert plain_row.offers and auto_row.name == "auto" and not auto_row.offers
        assert is_free == [True, True], "of the plain kernel and of the default opts"
        done(session, "offers", variant=1)
        assert len(is_free) == 2 and session.row(1).offers
