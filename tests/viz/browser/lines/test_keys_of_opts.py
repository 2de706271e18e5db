"""Opts by keys alone: found, applied one after the other, timed and checked; and the keys beside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import focused, keys, texts
from tests.viz.session.support import session_of
from tests.viz.support import array
from workbench import explore

ROWS = ".wb-offer[data-opt]"
MOST_STEPS = 200
"""More than the first passes of the kernel have."""


@pytest.fixture
def live(browser: Any, tmp_path: Path, nothing_saved: Path) -> Iterator[LivePage]:
    """A page of a session that has measured nothing, and knows of no earlier one."""
    a, b = array(64, 48), array(48, 32)
    with session_of(explore(a @ b)) as session, LivePage(browser, tmp_path, session) as page:
        page.answer("ping")
        yield page


def requests(live: LivePage, name: str) -> Any:
    """Return the fields of the request of a name that the page now asks."""
    return next(r for r in live.answer(name) if r["do"] == name)


def test_search_enter_a_applies_and_the_focus_stays(live: LivePage) -> None:
    page = live.page
    page.wait_for_selector(ROWS)
    page.click("[data-key=op-UPCAST]")
    page.focus(".wb")
    keys(page, "/")
    page.keyboard.type("g1")
    keys(page, "Enter")
    first = page.locator(ROWS).first.get_attribute("data-opt")
    assert first.startswith('UPCAST("g1"') and focused(page) == f"offer-{first}"
    keys(page, "j a")
    second = page.locator(ROWS).nth(1).get_attribute("data-opt")
    applied = requests(live, "apply")
    assert (applied["variant"], applied["opt"]) == (0, second)
    page.wait_for_selector("[data-key^=variant-][aria-selected=true]:not([data-key=variant-0])")
    variant = len(live.session.kernels) - 1
    assert [str(o) for o in live.session.kernels[variant].applied_opts] == [second]

    # the new opts come later; then the first has the focus, and filter and words are as they were
    live.answer()
    page.wait_for_selector(ROWS)
    page.wait_for_function("document.activeElement.matches('[data-opt]')")
    assert page.get_attribute("[data-key=op-UPCAST]", "aria-pressed") == "true"
    assert page.input_value(".wb-find") == "g1"
    assert all(row.startswith("UPCAST") for row in texts(page, ROWS))
    keys(page, "a")
    again = requests(live, "apply")
    assert again["variant"] == variant
    keys(page, "t")
    shown = len(live.session.kernels) - 1
    measured = next(r for r in asked(page) if r["do"] == "measure")
    assert shown in measured["variants"]
    keys(page, "c")
    assert next(r for r in asked(page) if r["do"] == "check")["variant"] == shown


def asked(page: Any) -> list[Any]:
    """Return what the page asks; nobody answers."""
    page.wait_for_function("sent.length > 0")
    requests: list[Any] = page.evaluate("sent.splice(0)")
    return requests


def test_a_without_an_opt_says_so(live: LivePage) -> None:
    page = live.page
    page.focus(".wb")
    keys(page, "a")
    page.wait_for_selector(
        "text=no opt is marked: in Tune, / searches OPTS TO TRY, Enter and arrows"
    )
    page.click("[data-key=loop-1]")
    keys(page, "a")
    page.wait_for_selector("text=g1 is a loop: no opt is marked: in Tune, / searches OPTS TO TRY")
    assert page.evaluate("sent.filter((m) => m.do === 'apply')") == []


def test_j_goes_from_the_buttons_of_the_opts_to_the_first(live: LivePage) -> None:
    page = live.page
    page.wait_for_selector(ROWS)
    for letter in "j", "k":
        page.focus("[data-key=op-UPCAST]")
        keys(page, letter)
        assert focused(page).startswith("offer-"), letter
    page.focus(".wb")
    keys(page, "?")
    page.wait_for_selector(".wb-help >> text=Tune, by keys alone")


def test_a_filter_without_offers_stays(live: LivePage) -> None:
    page = live.page
    page.wait_for_selector(ROWS)
    page.click("[data-key=op-UNROLL]")
    page.evaluate("hear({patch: {append: {}, set: [[['variants', 0, 'offers'], []]]}})")
    page.wait_for_selector(ROWS, state="detached")
    assert page.get_attribute("[data-key=op-UNROLL]", "aria-pressed") == "true"


def test_save_is_heard_around_the_widget(live: LivePage) -> None:
    """Where something answers it, the browser does not; of what is typed nothing else gets out."""
    page = live.page
    page.evaluate("""() => {
      window.heard = []; window.left = [];
      document.addEventListener("keydown", (e) => {
        heard.push(`${e.ctrlKey ? "Control+" : ""}${e.key}`);
        if (window.saves) e.preventDefault();
      });
      const root = document.querySelector(".wb");
      root.addEventListener("keydown", (e) => left.push(e.defaultPrevented));
    }""")
    page.focus(".wb")
    keys(page, "Control+s Control+b Control+Shift+s Alt+s s")
    assert page.evaluate("heard") == ["Control+s"]
    page.evaluate("(window.saves = true, left.splice(0))")
    page.focus(".wb-find")
    keys(page, "Control+s")
    assert page.evaluate("[heard.length, left.at(-1)]") == [2, True]


def test_steps_go_on_into_the_next_pass(live: LivePage) -> None:
    page = live.page
    place = "[data-key^=pass-][aria-selected=true]"
    page.click("[data-key=mode-rewrites]")
    page.focus(".wb")
    keys(page, "h h h h h h h h h h h h")
    names = [texts(page, f".wb-blocks {place}")]
    for _ in range(MOST_STEPS):
        if len(names) == 4:
            break
        live.answer()  # a pass's rewrites may come only when it is shown
        page.focus(".wb")
        keys(page, "j")
        now = texts(page, f".wb-blocks {place}")
        if now != names[-1]:
            assert texts(page, ".wb-rw-at")[:1] in (
                [],
                [text for text in texts(page, ".wb-rw-at") if text.startswith("before")][:1],
            )
            names.append(now)
    assert len(names) == 4, names
    keys(page, "k")
    assert texts(page, f".wb-blocks {place}") == names[-2]
