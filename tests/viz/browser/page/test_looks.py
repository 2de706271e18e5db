"""How the page looks: the contrast of its text, and its panes where there is little room."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import FAINT, shown
from tests.viz.browser.page.support import Record, keys, selected, step_twice
from tests.viz.record.support import exported


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(
    browser: Any, record: Record, tmp_path: Path, dark: bool
) -> None:
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


def test_little_room_shows_one_pane(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    for page in shown(browser, tmp_path, exported(record), width=800):
        assert page.is_visible(".wb-tune") and not page.is_visible(".wb-code-pane")
        page.click("[data-key=pane-code]")
        assert page.is_visible(".wb-code-pane") and not page.is_visible(".wb-tune")
        page.click("[data-key=pane-results]")
        assert page.is_visible(".wb-results")
        page.select_option("select[aria-label=kernel]", "1")
        assert selected(page, "kernels")[0].startswith("2")


@pytest.mark.parametrize(
    "only, pane",
    [("loops", ".wb-nest-pane"), ("code", ".wb-code-pane"), ("results", ".wb-results")],
)
def test_a_pane_can_stand_alone(session: Any, only: str, pane: str) -> None:
    session.evaluate("only => show({ only, mode: 'tune' })", only)
    session.wait_for_selector(f".wb[data-only={only}]")
    panes = (
        ".wb-nest-pane",
        ".wb-next-pane",
        ".wb-code-pane",
        ".wb-results",
        ".wb-strip",
    )
    assert [p for p in panes if session.is_visible(p)] == [pane]
