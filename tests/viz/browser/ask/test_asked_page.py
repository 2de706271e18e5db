"""A question in the exported page: no pane shows what is asked before there is a guess."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import drawn, shown
from tests.viz.record.support import exported, plain
from tests.viz.support import softmax
from workbench.viz.record.record import build


def record(ask: str) -> dict[str, Any]:
    row: dict[str, Any] = plain(build(softmax(ask)))
    return row


def test_the_kernels_are_nowhere_until_a_guess(browser: Any, tmp_path: Path) -> None:
    asked = record("kernels")
    titles = {kernel["title"] for kernel in asked["kernels"]}
    assert len(titles) == 2
    for page in shown(browser, tmp_path, exported(asked), mode="1"):
        for mode in "12345":
            page.click(".wb-header", position={"x": 4, "y": 4})
            page.keyboard.press(mode)
            drawn(page)
            if mode == "1":
                inside = "e => e.scrollHeight <= e.clientHeight"
                assert page.locator(".wb-nest-pane").evaluate(inside), "it has room"
            text = page.inner_text(".wb")
            assert "How many kernels will it be?" in text
            assert not any(title in text for title in titles), mode
            assert "2 kernels" not in page.inner_html(".wb"), mode
        page.fill(".wb-ask input", "5")
        page.keyboard.press("Enter")
        assert "it is 2, 3 too many" in page.inner_text(".wb-ask")
        page.click(".wb-header", position={"x": 4, "y": 4})
        page.keyboard.press("1")
        assert all(title in page.inner_text(".wb") for title in titles)
        page.click("[data-key=ask-again]")
        assert not any(title in page.inner_text(".wb") for title in titles)


def shown_of(page: Any, hints: list[str]) -> list[str]:
    """Return those hints that stand in the page, or that it says on hover."""
    titles = """(body) => [...body.querySelectorAll("[title], title")]
      .map((e) => e.getAttribute("title") ?? e.textContent).join("\\n")"""
    text = page.inner_text(".wb-board") + page.eval_on_selector(".wb-board", titles)
    return [hint for hint in hints if hint in text]


@pytest.mark.parametrize("ask", ["opts", "bound", "time"])
def test_what_tells_of_a_kernel_is_nowhere_until_a_guess(
    browser: Any, tmp_path: Path, ask: str
) -> None:
    asked = record(ask)
    plain_row = asked["variants"][0]
    hints = [offer["why"] for offer in plain_row["offers"] if offer["why"]]
    hints += {"bound": [plain_row["bound"]], "opts": ["auto"], "time": ["ESTIMATE"]}[ask]
    hints = [hint for hint in hints if hint]
    assert hints
    for page in shown(browser, tmp_path, exported(asked), mode="1"):
        for mode in "12345":
            page.click(".wb-header", position={"x": 4, "y": 4})
            page.keyboard.press(mode)
            assert not shown_of(page, hints), mode
        if ask == "time":
            page.fill(".wb-ask input", "10")
            page.click("[data-key=guess] >> nth=-1")
            page.keyboard.press("Enter")
        elif ask == "opts":
            page.click(".wb-ask button")
        else:
            page.click(".wb-ask button >> nth=0")
        assert "You said" in page.inner_text(".wb-ask")
        page.click(".wb-header", position={"x": 4, "y": 4})
        page.keyboard.press("1")
        assert shown_of(page, hints), "it is there without the question"
