"""How the page looks: the contrast of its text, and a pane alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import FAINT, shown
from tests.viz.browser.page.support import Record, keys, step_twice
from tests.viz.record.support import exported


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(browser: Any, record: Record, tmp_path: Path, dark: bool) -> None:
    for page in shown(browser, tmp_path, exported(record), dark=dark):
        page.click("[data-key=loop-0]")
        assert page.evaluate(FAINT) == []
        page.focus(".wb")
        keys(page, "3")
        page.wait_for_selector(".wb-plan .wb-g-words")
        assert page.evaluate(FAINT) == []
        page.click("[data-key^=cut-]")
        step_twice(page, record)
        page.wait_for_selector(".wb-rw-change")
        assert page.evaluate(FAINT) == []


@pytest.mark.parametrize(
    "only, pane",
    [("loops", ".wb-nest-pane"), ("code", ".wb-code-pane"), ("results", ".wb-results")],
)
def test_a_pane_can_stand_alone(session: Any, only: str, pane: str) -> None:
    session.evaluate("only => show({ only, mode: 'tune' })", only)
    session.wait_for_selector(f".wb[data-only={only}]")
    panes = (".wb-nest-pane", ".wb-next-pane", ".wb-code-pane", ".wb-results", ".wb-strip")
    assert [p for p in panes if session.is_visible(p)] == [pane]
