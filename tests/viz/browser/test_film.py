"""Scheduling as a film, in a real browser: each picture is what is decided so far."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import drawn
from tests.viz.browser.test_plan import plan_page
from tests.viz.record.support import plain
from tests.viz.test_film import attention, inside_so_far, kernels_shown
from workbench.viz import Exploration
from workbench.viz.record.record import Recorder

Record = dict[str, Any]
WORDS, STEPS, NODES = ".wb-player-words", ".wb-player-steps", ".wb-plan .wb-g-node"


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    """A recorder of three kernels, one of which keeps a row."""
    recorder = Recorder(attention())
    recorder.first()
    for _ in recorder.rest():
        pass
    return recorder


@pytest.fixture(scope="module")
def record(recorder: Recorder) -> Record:
    page_record: Record = plain(recorder.record)
    return page_record


@pytest.fixture
def opener() -> Any:
    return plan_page


def pictures(recorder: Recorder, record: Record) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield (its words, the kernels of each drawn value so far) of each step."""
    ex: Exploration = recorder.exploration
    rows = record["plan"]["decisions"]
    shown = [recorder.node(row["n"]) for row in record["plan"]["nodes"]]
    places = [place for place, row in enumerate(rows) if row["kernel"] is not None]
    for at, place in enumerate(places, 1):
        words = f"{at} of {len(places)}", said(rows[place])
        inside = inside_so_far(ex, ex.decisions[: place + 1])
        yield words, kernels_shown(shown, inside)


def said(row: Record) -> str:
    return f"{'stored' if row['stored'] else 'fused'} {row['value']}"


def assert_at(page: Any, words: tuple[str, str]) -> None:
    expect(page.locator(WORDS)).to_have_text(words[0])
    expect(page.locator(STEPS)).to_have_attribute("aria-valuetext", words[1])


def assert_shown(page: Any, record: Record, words: tuple[str, str], kernels: Any) -> None:
    """The picture has just these values, and the ground of just their kernels."""
    assert_at(page, words)
    waiting, grounds = page.evaluate("""() => [
        Object.fromEntries([...document.querySelectorAll(".wb-plan .wb-g-node")].map((e) =>
            [e.dataset.node, e.classList.contains("wb-g-waiting")])),
        [...document.querySelectorAll(".wb-plan .wb-g-region")].map((e) => e.getAttribute("d") !== ""),
    ]""")
    assert waiting == {str(i): inside is None for i, inside in enumerate(kernels)}
    begun = {inside[0] for inside in kernels if inside}
    assert grounds == [k in begun for k in range(len(record["kernels"]))]


def test_each_step_shows_what_is_decided(page: Any, recorder: Recorder, record: Record) -> None:
    """By keys, one by one, and back by a button; then the whole plan again."""
    steps = list(pictures(recorder, record))
    page.focus(".wb")
    page.keyboard.press("s")
    for words, kernels in steps:
        assert_shown(page, record, words, kernels)
        page.keyboard.press("j")
    assert page.locator('[data-key="film-next"]').is_disabled()
    page.click('[data-key="film-back"]')
    assert_shown(page, record, *steps[-2])
    page.keyboard.press("s")
    expect(page.locator(".wb-plan .wb-g-waiting")).to_have_count(0)
    copies = sum(row["is_copy"] for row in record["plan"]["decisions"])
    whole = f"{len(steps)} decisions, {copies} copies"
    assert len(record["plan"]["decisions"]) == len(steps) + copies, "as the list counts"
    expect(page.locator(WORDS)).to_have_text(whole)


def test_a_step_says_what_was_looked_at_and_what_it_would_cost(page: Any, record: Record) -> None:
    row = next(d for d in record["plan"]["decisions"] if d["tradeoff"])
    page.click('[data-key="film-next"]')
    page.click(f'{NODES}:has(:text-is("exp"))')  # it jumps to the value
    expect(page.locator(STEPS)).to_have_attribute("aria-valuetext", said(row))
    detail = page.inner_text(".wb-plan-detail")
    assert row["reason"] in detail and "read by" in detail
    bars = page.locator(".wb-choice-bars li")
    texts = bars.all_inner_texts()
    for choice, text in zip(row["choices"], texts, strict=True):
        assert choice["text"] in text and f"{round(choice['cost']):,}" in text
        assert ("✓" in text) == choice["wins"]
    assert page.locator(".wb-plan .wb-g-picked").count() == 1
    readers = page.locator('[data-key^="reader-"]').count()
    assert page.locator(".wb-plan .wb-g-lit").count() == readers == 2
    cuts = [d for d in record["plan"]["decisions"] if d["stored"] and d["estimates"]]
    page.click(f'.wb-plan-list [data-key="decision-{cuts[-1]["node"]}"]')
    expect(page.locator(STEPS)).to_have_attribute("aria-valuetext", said(cuts[-1]))


ROW = """() => {
  const list = document.querySelector(".wb-plan-list");
  const rows = [...list.querySelectorAll('[aria-selected="true"]')];
  const [row, around] = [rows[0], list].map((e) => e.getBoundingClientRect());
  return {
    keys: rows.map((e) => e.dataset.key),
    isInSight: row.top >= around.top - 1 && row.bottom <= around.bottom + 1,
    heading: document.querySelector(".wb-plan-side .wb-heading").getBoundingClientRect().top,
    isFocused: document.activeElement === rows[0],
    scrolled: window.scrollY,
  };
}"""
"""Returns which row of the decisions is selected, and where it is."""


@pytest.mark.parametrize("width", [800, 953, 1400])
def test_the_list_of_decisions_goes_with_the_film(page: Any, record: Record, width: int) -> None:
    """One step a key, the row in sight, the list where it was: from the page, and from a row."""
    page.set_viewport_size({"width": width, "height": 700})
    drawn(page)
    rows = [d for d in record["plan"]["decisions"] if d["kernel"] is not None]
    page.focus(".wb")
    page.keyboard.press("s")
    first = page.evaluate(ROW)
    for at, decision in enumerate(rows[:8]):
        row = page.evaluate(ROW)
        assert row["keys"] == [f"decision-{decision['node']}"] and row["isInSight"], at
        assert (row["heading"], row["scrolled"]) == (first["heading"], 0)
        page.keyboard.press("j")
    page.click(f'.wb-plan-list [data-key="decision-{rows[6]["node"]}"]')
    for at in (7, 8, 9):
        page.keyboard.press("j")
        row = page.evaluate(ROW)
        assert row["keys"] == [f"decision-{rows[at]['node']}"], at
        assert row["isInSight"] and row["isFocused"]
        expect(page.locator(WORDS)).to_have_text(f"{at + 1} of {len(rows)}")


def test_it_plays_pauses_and_is_scrubbed(page: Any, recorder: Recorder, record: Record) -> None:
    steps = list(pictures(recorder, record))
    page.focus(".wb")
    page.keyboard.press(" ")
    expect(page.locator('[data-key="film-play"]')).to_have_text("❚❚")
    at_least_three = re.compile(r"^(?:[3-9]|\d\d+) of ")  # a busy machine may miss one
    expect(page.locator(WORDS)).to_have_text(at_least_three)
    page.keyboard.press(" ")
    expect(page.locator('[data-key="film-play"]')).to_have_text("▶")
    page.focus(STEPS)
    page.keyboard.press("End")
    assert_shown(page, record, *steps[-1])
    page.keyboard.press("ArrowLeft")
    assert_shown(page, record, *steps[-2])


def test_the_step_is_that_of_the_pass(page: Any, record: Record) -> None:
    """Rewrites shows the same decision, and leads back."""
    page.focus(".wb")
    for key in ("s", "j", "j", "2"):
        page.keyboard.press(key)
    said = page.inner_text(".wb-rw-said")
    step = [d for d in record["plan"]["decisions"] if d["kernel"] is not None][2]
    assert step["reason"] in said
    page.click(".wb-rw-said >> text=see it in Plan")
    drawn(page)
    expect(page.locator(WORDS)).to_contain_text("3 of ")


def test_a_narrow_page_has_the_film(page: Any, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 800, "height": 640})
    drawn(page)
    page.click('[data-key="film-next"]')
    expect(page.locator(WORDS)).to_contain_text("1 of ")
    outside = page.evaluate("""() => {
      const box = document.querySelector(".wb-plan-main").getBoundingClientRect();
      return [...document.querySelectorAll(".wb-player > *")].map((e) => e.getBoundingClientRect())
        .filter((b) => b.left < box.left || b.right > box.right + 1 || b.bottom > box.bottom + 1).length;
    }""")
    assert outside == 0


def test_the_rewrites_of_a_value_follow_its_decision(page: Any, record: Record) -> None:
    """Forwards and backwards by the same keys; each with its rule, and the way to it."""
    rows = [d for d in record["plan"]["decisions"] if d["kernel"] is not None]
    first = rows[0]["rewrites"]
    page.click('[data-key="film-rewrites"]')
    page.focus(".wb")
    page.keyboard.press("s")
    expect(page.locator(WORDS)).to_have_text(f"1 of {len(rows)}")
    expect(page.locator(".wb-film-caption")).to_contain_text(rows[0]["reason"])
    rewrites = record["passes"][rows[0]["rewritten_by"]]["rewrites"]
    for number, step in enumerate(first, 1):
        page.keyboard.press("j")
        words = f"1 of {len(rows)}, rewrite {number} of {len(first)}"
        expect(page.locator(WORDS)).to_have_text(words)
        rule = record["rules"][rewrites[step - 1][0]]["name"]
        expect(page.locator(".wb-film-caption b")).to_have_text(rule)
    page.keyboard.press("j")
    expect(page.locator(WORDS)).to_have_text(f"2 of {len(rows)}")
    page.keyboard.press("k")
    expect(page.locator(WORDS)).to_have_text(words)
    page.click('[data-key="film-rewrites"]')  # the decision stays
    expect(page.locator(WORDS)).to_have_text(f"1 of {len(rows)}")
