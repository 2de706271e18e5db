"""What the tests of Rewrites mode share: the page at one pass, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.viz.browser.browser import shown

Record = dict[str, Any]


def rewrites_page(browser: Any, folder: Path, html: str) -> Iterator[Any]:
    """Open a page in Rewrites mode, at the rewrites of the softmax's `decompose`."""
    for page in shown(browser, folder, html, mode="2"):
        for key in "[]":  # the columns beside it are shown, too
            page.keyboard.press(key)
        page.click('.wb-rw-pass:has-text("decompose")')
        page.wait_for_function(
            "document.querySelector('.wb-rw-at').textContent.startsWith('before')"
        )
        yield page


def decompose(record: Record) -> Record:
    """Return the row of the pass that the pages show."""
    listed = record["variants"][0]["passes"]
    return next(record["passes"][p] for p in listed if record["passes"][p]["name"] == "decompose")


def where(page: Any) -> str:
    text: str = page.inner_text(".wb-rw-at")
    return text
