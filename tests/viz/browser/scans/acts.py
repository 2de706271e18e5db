"""What is done to come from one scene to the next: keys, clicks, choices, and what Python says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.viz.browser.browser import drawn, stop_clock
from tests.viz.browser.page.support import ANSWER_WITHIN_MS, keys, send_reply

Act = Callable[[Any], object]


def press(text: str) -> Act:
    """Press some keys where nothing in the page has the focus."""

    def act(page: Any) -> None:
        page.focus(".wb")
        keys(page, text)

    return act


def click(selector: str) -> Act:
    return lambda page: page.click(selector)


def point(selector: str) -> Act:
    return lambda page: page.hover(selector)


def fill(selector: str, text: str) -> Act:
    return lambda page: page.fill(selector, text)


def choose(selector: str, label: str) -> Act:
    return lambda page: page.select_option(selector, label=label)


def check(selector: str) -> Act:
    return lambda page: page.check(selector)


def until(selector: str) -> Act:
    """Wait for what comes later."""
    return lambda page: page.wait_for_selector(selector)


def unfold_everything(page: Any) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    drawn(page)


def hear(message: dict[str, Any]) -> Act:
    """Python says something by itself."""
    return lambda page: page.evaluate("(m) => hear(m)", message)


def change(*changes: list[Any], **rows: Any) -> Act:
    """Python sends a patch: what is set, by path, and rows that are added, by table."""
    return hear({"patch": {"append": rows, "set": list(changes)}})


def answer(do: str, **reply: Any) -> Act:
    """Python answers the last request of a kind."""
    return lambda page: send_reply(page, do, **reply)


def fall_silent(page: Any) -> None:
    """Nobody answers from now on, for so long that the page says so."""
    page.evaluate("window.mute = true")
    stop_clock(page)
    page.click("[data-key=time]")
    page.clock.fast_forward(ANSWER_WITHIN_MS)
    page.wait_for_selector("text=Browsing still works")
