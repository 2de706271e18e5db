"""What the tests of live sessions start with: a session, and quiet in the background."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.viz.record.support import broken
from tests.viz.session.support import Page, session_of
from tests.viz.support import matmul
from workbench.viz.session.session import Session


@pytest.fixture
def no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the background begins when a page asks, not in the midst of a slow test."""
    monkeypatch.setattr(Session, "begin_after", lambda *_: None)


@pytest.fixture
def nothing_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A job that fails says so in the log, and nowhere else."""
    with caplog.at_level(logging.ERROR, "workbench"):
        yield
    assert [r.exc_text for r in caplog.get_records("call")] == []


@pytest.fixture
def session(nothing_saved: Path) -> Iterator[Session]:
    with session_of(matmul()) as matmul_session:
        page = Page(matmul_session)
        yield matmul_session
        with matmul_session.lock:
            matmul_session.send_changes()
            assert page.is_record_of(matmul_session)
        assert broken(page.record) == []
