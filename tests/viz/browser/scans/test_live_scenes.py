"""No scene of a page before a real session has a serious finding of axe-core, or a short text that
nothing explains: the panes that are filled by what Python answers, and what stands over all panes. In a
short run axe-core looks at every other one wide and dark, and at those between narrow and light; in a
long run at each in both, in both themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import LONG
from tests.viz.browser.browser import drawn
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import keys
from tests.viz.browser.scans.scan import THEMES, barriers, unexplained
from tests.viz.session.handlers.test_plan_comparison import product
from tests.viz.session.support import done, session_of
from workbench.viz.session.session import Session

Act = Callable[[LivePage], object]


def shows(mode: str, *asked: str) -> Act:
    """Show a layout, and answer what it asks."""

    def act(live: LivePage) -> None:
        live.page.evaluate("(mode) => show({ mode })", mode)
        live.answer(*asked)

    return act


def click(selector: str, *asked: str) -> Act:
    def act(live: LivePage) -> None:
        live.page.click(selector)
        live.answer(*asked)

    return act


def choose(selector: str, label: str, *asked: str) -> Act:
    def act(live: LivePage) -> None:
        live.page.select_option(selector, label=label)
        live.answer(*asked)

    return act


def fill(selector: str, text: str) -> Act:
    return lambda live: live.page.fill(selector, text)


def press(text: str) -> Act:
    def act(live: LivePage) -> None:
        live.page.focus(".wb")
        keys(live.page, text)
        live.answer()

    return act


def pick(op: str, *asked: str) -> Act:
    """Pick the first node of an op."""

    def act(live: LivePage) -> None:
        node = live.session.record.nodes.op.index(op)
        live.page.evaluate("(node) => show({ node })", node)
        live.answer(*asked)

    return act


def take_default_opts(live: LivePage) -> None:
    """Make a second variant, and compile both."""
    done(live.session, "auto", kernel=0)
    for variant in (0, 1):
        done(live.session, "passes", variant=variant)


def split_by_hand(live: LivePage) -> None:
    """Ask for the choices of a value that offers some."""
    rows = live.session.record.plan.decisions
    total = next(row for row in rows if row.value.startswith("sum"))
    live.page.evaluate("(node) => show({ node })", total.node)
    live.page.click("[data-key=offers]")
    live.answer("choices")


# fmt: off
SCENES: dict[str, tuple[Act, ...]] = {
    "three things to try": (shows("board"),),
    "the tour": (click("[data-key=start-tour]"),),
    "a later step of the tour": (press("ArrowRight ArrowRight ArrowRight"),),
    "the words of a group": (press("Escape ?"), click("[data-key=help-loops]")),
    "the board with a pane alone": (press("Escape"), click("[data-key=large-code]")),
    "panes to choose from": (click("[data-key=large-code]"), click("[data-key=close-opts]")),
    "two variants": (
        click("[data-key=reset-layout]"), take_default_opts, shows("compare", "compare", "pairs"),
    ),
    "all that is compared": (click("[data-key=compare-all]"),),
    "another device beside": (choose("[data-key='device beside']", "on CUDA:H100", "compare"),),
    "accesses": (shows("accesses", "accesses"), click("[data-key=accesses-next]")),
    "accesses of a warp": (
        choose("[data-key='loop, lane or warp']", "instructions of a warp", "accesses"),
    ),
    "values": (shows("values", "table"),),
    "values of a node": (pick("MUL", "table"),),
    "values that are compared": (click("[data-key=values-check]", "check_nodes"),),
    "choices by hand": (shows("plan"), split_by_hand),
    "a plan by hand": (
        click(".wb-plan-offers li:has-text('4 partial results') button", "replan"),
        click("[data-key=list-by-hand]"),
    ),
    "plans compared": (shows("compare_plans", "compare"),),
    "the film with its rewrites": (
        shows("plan"), click("[data-key=film-rewrites]"), press("s j j"),
    ),
    "a rule of the reader": (
        shows("rules"), fill("[data-key=typed-rule]", "x * 2 -> x + x"),
        click("[data-key=try-rule]", "try_rule"),
    ),
    "a wrong one": (
        fill("[data-key=typed-rule]", "x * 0 -> 0"), click("[data-key=try-rule]", "try_rule"),
    ),
    "a line traced": (shows("trace"), click(".wb-code-body .wb-line.wb-link >> nth=3")),
    "the schedule": (shows("schedule"),),
    "a lesson": (shows("teach"),),
}
# fmt: on


@pytest.fixture
def session(nothing_saved: Path) -> Iterator[Session]:
    with session_of(product(24)) as product_session:
        yield product_session


@pytest.mark.parametrize(("width", "theme"), [(1400, "dark"), (800, "light")])
def test_no_pane_has_a_finding(
    browser: Any, session: Session, tmp_path: Path, width: int, theme: str
) -> None:
    findings: dict[str, Any] = {}
    with LivePage(browser, tmp_path, session, width=width) as live:
        live.answer()
        for number, (name, acts) in enumerate(SCENES.items()):
            for act in acts:
                act(live)
            drawn(live.page)
            findings[name] = {}
            if LONG or (number + (theme == "dark")) % 2:
                findings[name] = barriers(live.page, THEMES if LONG else [theme])
            if words := unexplained(live.page):
                findings[name]["words"] = words
    assert {name: texts for name, texts in findings.items() if texts} == {}
