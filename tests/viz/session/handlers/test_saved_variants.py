"""Saved variants: a notebook's own come back by themselves, others only when somebody asks."""

from __future__ import annotations

import pytest

from tests.viz.record.support import plain
from tests.viz.session.support import Page, done, prefetch_all, session_of
from tests.viz.support import matmul
from workbench.viz.session import persistence
from workbench.viz.session.session import Session

pytestmark = pytest.mark.usefixtures("nothing_saved")


def names(session: Session) -> list[str]:
    prefetch_all(session)
    return sorted(v["name"] for v in plain(session.record)["variants"])


def test_variants_of_another_notebook_come_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(persistence.NOTEBOOK, "/there/first.ipynb")
    with session_of(matmul()) as session:
        first = done(session, "apply", variant=0, opt='UPCAST("g1", 4)')["variant"]
        done(session, "apply", variant=first, opt='UNROLL("r0", 2)')
        done(session, "auto", kernel=0)
    with session_of(matmul()) as session:
        assert plain(session.record)["saved"] == 0
        assert len(names(session)) == 4, "they come back to their notebook"
    monkeypatch.setenv(persistence.NOTEBOOK, "/there/second.ipynb")
    with session_of(matmul()) as session:
        page = Page(session)
        assert plain(session.record)["saved"] == 2
        assert names(session) == ["auto", "plain"]
        done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
        assert plain(session.record)["saved"] == 1, "that one is shown now"
        done(session, "saved")
        assert names(session) == [
            "UPCAST g1 4", "UPCAST g1 4 + UNROLL r0 2", "auto", "plain",
        ]  # fmt: skip
        session.send_changes()
        assert page.record["saved"] == 0 and page.record == plain(session.record)
    saved = persistence.load(session.record.key)
    assert not any("ipynb" in origin for e in saved.values() for origin in e.origins)
    both = saved[persistence.Key(0, ('UPCAST("g1", 4)',))].origins
    assert len(both) == 2, "it is of both notebooks now"


def test_without_a_notebook_a_process_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(persistence.NOTEBOOK, raising=False)
    with session_of(matmul()) as session:
        done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    with session_of(matmul()) as session:
        assert plain(session.record)["saved"] == 0
    persistence._process.cache_clear()  # as in another process
    with session_of(matmul()) as session:
        assert plain(session.record)["saved"] == 1


def test_what_other_notebooks_saved_can_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(persistence.NOTEBOOK, "/there/first.ipynb")
    with session_of(matmul()) as session:
        done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
    monkeypatch.setenv(persistence.NOTEBOOK, "/there/second.ipynb")
    with session_of(matmul()) as session:
        done(session, "apply", variant=0, opt='UNROLL("r0", 2)')
        assert plain(session.record)["saved"] == 1
        done(session, "forget")
        assert plain(session.record)["saved"] == 0
        done(session, "saved")
        assert names(session) == ["UNROLL r0 2", "auto", "plain"]
    opts = {key.opts for key in persistence.load(session.record.key)}
    assert ('UNROLL("r0", 2)',) in opts and ('UPCAST("g1", 4)',) not in opts


def test_a_page_says_what_a_limit_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the reader deletes it, or there is room again."""
    monkeypatch.setattr(persistence, "MOST_ENTRIES", 3)  # with the plain one
    with session_of(matmul()) as session:
        page = Page(session)
        done(session, "apply", variant=0, opt='UPCAST("g1", 4)')
        assert page.record["unsaved"] == []
        second = done(session, "apply", variant=0, opt='UPCAST("g1", 2)')["variant"]
        done(session, "apply", variant=0, opt='UNROLL("r0", 2)')
        session.send_changes()
        (text,) = page.record["unsaved"]
        assert text.startswith("1 variant not saved: at most")
        done(session, "delete", variants=[second])
        session.send_changes()
        assert page.record["unsaved"] == []
