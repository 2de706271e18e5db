"""Compare and Accesses before a real session: columns of variants, and the elements of a step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import FAINT
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import texts
from tests.viz.record.support import plain
from tests.viz.session.support import done, session_of
from tests.viz.support import matmul
from workbench.viz.session.session import Session

LIST = 'UPCAST("g1", 2), UNROLL("r0", 4)'


@pytest.fixture
def session(nothing_saved: Path) -> Iterator[Session]:
    with session_of(matmul()) as matmul_session:
        done(matmul_session, "paste", variant=0, text=LIST)
        yield matmul_session


@pytest.fixture
def live(browser: Any, session: Session, tmp_path: Path) -> Iterator[LivePage]:
    with LivePage(browser, tmp_path, session) as page:
        page.answer()
        yield page


def cells(page: Any, section: str) -> dict[str, list[str]]:
    """The rows of a section of Compare, by their labels."""
    rows = page.locator(f".wb-compare section[aria-label='{section}'] tbody tr").all()
    return {
        row.locator("th").text_content(): [td.text_content() for td in row.locator("td").all()]
        for row in rows
    }


def test_two_variants_in_columns(live: LivePage, session: Session) -> None:
    page = live.page
    page.click("[data-key=variant-1]")
    page.evaluate("show({ mode: 'compare' })")
    live.answer("compare")
    assert texts(page, ".wb-compare thead th")[:2] == ["plain", "UPCAST g1 2, UNROLL r0 4"]
    assert cells(page, "kernel")["opts"] == ["none", "UPCAST g1 2, UNROLL r0 4"]
    counts = [kernel.counts for kernel in session.kernels[:2]]
    assert cells(page, "counts")["loads"] == [f"{c.loads:,}" for c in counts]
    assert "computes" not in cells(page, "kernel"), "it is the same"
    assert texts(page, ".wb-frame-name >> visible=true")[:2] == [
        "plain",
        "UPCAST g1 2, UNROLL r0 4",
    ]
    page.click("[data-key=compare-all]")
    assert len(set(cells(page, "kernel")["computes"])) == 1
    assert page.evaluate(FAINT) == []
    # a third column; the first two cannot be fewer than two
    live.session.handle({"id": 5, "do": "apply", "variant": 0, "opt": 'UPCAST("g0", 2)'})
    live.answer()
    place = len(session.kernels) - 1
    page.click(f"[data-key=compare-{place}]")
    live.answer("compare")
    assert len(cells(page, "kernel")["opts"]) == 3
    assert page.locator(".wb-compare-text span").count() > 3


def test_a_step_of_a_loop_and_the_elements_that_it_touches(
    live: LivePage, session: Session
) -> None:
    page = live.page
    page.evaluate("show({ mode: 'accesses' })")
    live.answer("accesses")
    kernel = session.kernels[0]
    of_loop = kernel.accesses("r0")
    words = page.locator(".wb-accesses-buffer [role=status]")
    expect(words).to_have_count(len(of_loop.buffers))
    for n, buffer in enumerate(of_loop.buffers):
        first = buffer.counts[0]
        said = words.nth(n).text_content()
        assert said.startswith(f"{first.elements} element") and f"{first.new_lines} new" in said
    page.click("[data-key=accesses-next]")
    for n, buffer in enumerate(of_loop.buffers):
        expect(words.nth(n)).to_contain_text(f"{buffer.counts[1].new_lines} new")
    assert page.get_attribute(".wb-player-steps >> nth=-1", "aria-valuetext") == "r0 = 1 of 8"
    axes = [axis.name for axis in plain(session.record)["variants"] and kernel.axes]
    page.select_option("[data-key='loop, lane or warp']", label=f"steps of {axes[0]} 6 (global)")
    live.answer("accesses")
    expect(words).to_have_count(len(kernel.accesses(axes[0]).buffers))
    cell = page.locator("[data-key=accesses-0-cell-0]")
    assert "touched in" in cell.get_attribute("aria-label")
    assert page.evaluate(FAINT) == []
    page.select_option("[data-key='loop, lane or warp']", label="steps of r0 8 (reduce)")
    live.answer("accesses")
    assert page.locator("[data-key^=accesses-at-]").count() == 2, "g0 and g1 are around it"
    page.fill("[data-key='accesses-at-g1']", "3")
    page.press("[data-key='accesses-at-g1']", "Tab")
    (request,) = [r for r in live.answer("accesses") if r["do"] == "accesses"]
    assert request["at"] == {"g1": 3}


@pytest.mark.parametrize("pane", ["compare", "accesses"])
def test_another_device_and_another_plan_are_asked_for_anew(live: LivePage, pane: str) -> None:
    page = live.page
    page.click("[data-key=variant-1]")
    page.evaluate("(mode) => show({ mode })", pane)
    live.answer(pane)
    assert pane not in {r["do"] for r in live.answer()}, "nothing has changed"
    live.session.handle({"id": 5, "do": "device", "name": "PYTHON"})
    assert pane in {r["do"] for r in live.answer(pane)}
    number = live.session.number
    live.session.handle(
        {"id": 6, "do": "rule_off", "kernel": 0, "rule": "split-reduction", "on": False}
    )
    assert live.session.number != number, "the tensors were planned again"
    assert pane in {r["do"] for r in live.answer(pane)}
    assert pane not in {r["do"] for r in live.answer()}


def test_a_statement_and_the_elements_that_it_touches(live: LivePage, session: Session) -> None:
    """A click on a statement, here or in the loops, leaves its accesses alone."""
    page = live.page
    page.evaluate("show({ mode: 'accesses' })")
    live.answer("accesses")
    buffers = page.locator(".wb-accesses-buffer")
    found = session.kernels[0].accesses("g1")
    page.select_option("[data-key='loop, lane or warp']", label="steps of g1 4 (global)")
    live.answer("accesses")
    expect(buffers).to_have_count(len(found.buffers))
    for place in range(len(found.statements)):
        page.click(f"[data-key=accesses-0-statement-{place}]")
        own = [b.name for b in found.buffers if (b.statements == place).any()]
        expect(buffers).to_have_count(len(own))
    page.click(f"[data-key=accesses-0-statement-{len(found.statements) - 1}]")
    expect(buffers).to_have_count(len(found.buffers))
    page.locator(".wb-loops .wb-statement").last.click()
    expect(buffers).to_have_count(len(own))


def test_reuse_is_what_was_touched_before(live: LivePage, session: Session) -> None:
    page = live.page
    page.evaluate("show({ mode: 'accesses' })")
    live.answer("accesses")
    page.select_option("[data-key='loop, lane or warp']", label="steps of g1 4 (global)")
    live.answer("accesses")
    words = page.locator(".wb-accesses-buffer [role=status]")
    expect(words.nth(0)).to_contain_text("8 elements, 1 cache line, 1 new")
    expect(words.nth(0)).to_contain_text("0 touched before")
    page.click("[data-key=accesses-next]")
    expect(words.nth(0)).to_contain_text("8 touched before")
    cell = page.locator("[data-key=accesses-0-cell-0]")
    grid = page.locator("[data-key=accesses-0-cells]")
    grid.press("Home")
    assert "1 times before" in cell.get_attribute("aria-label")


def test_two_variants_are_stepped_together(live: LivePage, session: Session) -> None:
    page = live.page
    page.click("[data-key=variant-1]")
    page.evaluate("show({ mode: 'accesses' })")
    live.answer("accesses")
    page.select_option("[data-key='the variant beside it']", label="plain")
    live.answer("accesses")
    sides = page.locator(".wb-accesses-side:visible")
    expect(sides).to_have_count(2)
    names = page.locator(".wb-accesses-side > b").all_text_contents()
    assert names == [session.row(1).name, "plain"]
    page.click("[data-key=accesses-next]")
    steps = page.locator(".wb-accesses-step").all_text_contents()
    assert steps == ["r0 = 1 of 2", "r0 = 1 of 8"]
    # the instructions of a warp, in both
    page.select_option("[data-key='loop, lane or warp']", label="instructions of a warp")
    live.answer("accesses")
    expect(page.locator(".wb-accesses-step").nth(1)).to_contain_text("instructions: load p1")
    texts_ = page.locator(".wb-accesses-step").all_text_contents()
    for text, kernel in zip(texts_, (session.kernels[1], session.kernels[0]), strict=True):
        first = kernel.warp().instructions[0]
        count = len(kernel.warp().instructions)
        assert text == f"1 of {count} instructions: {first.name}: {first.cost}"
    assert page.evaluate(FAINT) == []
