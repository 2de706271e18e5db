"""Many widgets in one notebook: all work, none meets another, and memory is bounded."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.viz.record.support import plain
from tests.viz.session.support import finish_jobs, session_of, unpacked
from tests.viz.support import array
from workbench.base.context import Context
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz.session import lru_cache
from workbench.viz.session.lru_cache import SESSIONS
from workbench.viz.session.requests import jobs


@pytest.fixture(autouse=True)
def apart(nothing_saved: Path, no_timer: None) -> Iterator[None]:
    SESSIONS.clear()
    with Context(LIVE=1):
        yield
    SESSIONS.clear()
    jobs().close()


class Shown:
    """A widget whose exploration nobody holds, as after `display(explore(y))`."""

    def __init__(self, tensor: Tensor, monkeypatch: pytest.MonkeyPatch):
        self.widget = explore(tensor).to_widget()
        self.session = self.widget._session
        self.sent: list[Any] = []
        monkeypatch.setattr(self.widget, "send", lambda m, b=None: self.sent.append(plain(m)))

    def ask(self, **request: Any) -> Any:
        self.widget._handle_custom_msg({"id": 3, **request}, [])
        finish_jobs(jobs())
        return next(m for m in reversed(self.sent) if m.get("id") == 3)


def test_ten_widgets_without_cross_talk(monkeypatch: pytest.MonkeyPatch) -> None:
    x = array(16, 16)
    widgets = [Shown((x + n).exp(), monkeypatch) for n in range(9)]
    widgets.append(Shown((x + 0).exp(), monkeypatch))  # the same once more
    gc.collect()
    for n, each in enumerate(widgets):
        assert each.ask(do="note", variant=0, text=f"note {n}")["ok"]
    for n, each in enumerate(widgets):
        reply = each.ask(do="check", variant=0)
        assert reply["ok"], reply["error"]
        record = unpacked(each.widget.record)
        assert record["variants"][0]["note"] == f"note {n}"
        assert record["variants"][0]["check"]["ok"]
        messages = str(each.sent)
        assert not [m for m in range(10) if m != n and f"note {m}" in messages]


def test_those_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lru_cache, "LEAST_SESSIONS", 1)
    monkeypatch.setattr(lru_cache, "MOST_SESSIONS", 3)
    widgets = [Shown(array(4 + n) * 2, monkeypatch) for n in range(3)]
    widgets[0].ask(do="ping", have=None)  # used again, so the second is the oldest now
    widgets.append(Shown(array(9) * 2, monkeypatch))
    finish_jobs(jobs())
    gc.collect()
    assert len(SESSIONS) == 3
    assert [each.session() is None for each in widgets] == [False, True, False, False]
    reply = widgets[1].ask(do="note", variant=0, text="x")
    assert reply["error"]["try"] == "run the cell again"
    assert widgets[0].ask(do="note", variant=0, text="x")["ok"]


def test_large_data_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lru_cache, "LEAST_SESSIONS", 2)
    monkeypatch.setattr(lru_cache, "MOST_BYTES", 100_000)
    shared = Tensor(np.ones(20_000, np.float32))
    for n in range(5):
        Shown(shared * n, monkeypatch)
    assert len(SESSIONS) == 5, "what they share counts once"
    memory = []
    for n in range(5):
        data = np.full(20_000, n, np.float32)
        each = Shown(Tensor(data) * 2, monkeypatch)
        memory.append(weakref.ref(each.session().recorder.exploration))
        del each
    finish_jobs(jobs())
    gc.collect()
    assert len(SESSIONS) == 2
    assert [ref() is None for ref in memory] == [True, True, True, False, False]


def test_data_of_a_session_that_is_gone_are_not_taken_for_another() -> None:
    numbers = []
    for n in range(4):  # the next session may well stand where the last one stood
        data = np.full((8, 8), n, np.float32)
        with session_of(explore(Tensor(data) @ Tensor(data))) as session:
            numbers.append(session.number)
            assert plain(session.handle({"do": "check", "variant": 0}))["ok"]
        del session
        gc.collect()
    assert len(set(numbers)) == 4
