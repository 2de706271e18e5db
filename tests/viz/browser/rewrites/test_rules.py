"""The list of all rules in the exported page: searched, read, stepped through, by keys and offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import shown
from tests.viz.browser.rewrites.support import Record
from tests.viz.record.support import exported


def uses_of(record: Record, name: str) -> list[tuple[int, int]]:
    """Return the passes and steps, from 1, of what leads to a variant or is scheduling's."""
    own = [p for v in record["variants"] for p in v["passes"]]
    shared = [i for i, p in enumerate(record["passes"]) if p["variant"] is None]
    return [
        (place, step)
        for place in shared + own
        for step, row in enumerate(record["passes"][place]["rewrites"], 1)
        if row[0] >= 0 and record["rules"][row[0]]["name"] == name
    ]


def test_a_rule_is_searched_read_and_stepped_through(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    uses = uses_of(record, "idiv-by-shift")
    assert len(uses) > 2
    for page in shown(browser, tmp_path, exported(record), mode="5"):
        everyone = page.locator(".wb-rules-row").count()
        assert everyone == len(record["panels"]["rules"]["data"]) > 100
        page.keyboard.press("/")
        page.keyboard.type("low k bits negative")  # words of its sentence
        assert page.locator(".wb-rules-row").count() == 1
        page.keyboard.press("Enter")
        card = page.inner_text(".wb-rules-card")
        assert "mod-by-mask" in card and "i % 8" in card
        assert "fired nowhere" in card and "from Python: explore(" in card
        off = page.locator('[data-key="rule-off"]')
        assert off.get_attribute("aria-disabled") == "true"
        page.fill(".wb-rules input[type=search]", "idiv-by-shift")
        page.click('[data-key="rule-idiv-by-shift"]')
        for place, (pass_place, step) in enumerate(uses[:3], 1):
            page.keyboard.press("n")
            assert page.inner_text(".wb-rw-rule .wb-uses span") == (f"use {place} of {len(uses)}")
            name = record["passes"][pass_place]["name"]
            assert page.inner_text(".wb-rw-head b") == name
            assert page.inner_text(".wb-rw-at").startswith(f"{step} of")
        page.keyboard.press("N")
        assert "use 2 of" in page.inner_text(".wb-rw-rule .wb-uses")
        page.keyboard.press("r")
        selected = page.locator('.wb-rules-row[aria-selected="true"]')
        assert selected.inner_text().split()[:2] == [str(len(uses)), "idiv-by-shift"]


@pytest.mark.parametrize("width", [800, 953])
def test_the_list_and_the_rule_are_seen_together(
    browser: Any, record: Record, tmp_path: Path, width: int
) -> None:
    for page in shown(browser, tmp_path, exported(record), mode="5", width=width):
        page.click('[data-key="rule-add-zero"]')
        for selector in (".wb-rules-list", ".wb-rules-card"):
            box = page.locator(selector).bounding_box()
            assert box["width"] > 200 and box["height"] > 150, selector
        wide = "e => e.scrollWidth > e.clientWidth + 1"
        assert not page.locator(".wb-rules-card").evaluate(wide)
        assert not page.locator(".wb-rules-list").evaluate(wide)
