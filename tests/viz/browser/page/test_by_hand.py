"""Choices by hand in a page with a session: made, compared, listed, copied and undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import expect

from tests.viz.browser.page.live import LivePage
from workbench import Tensor
from workbench.viz import explore
from workbench.viz.session.session import Session

A = np.random.default_rng(0).standard_normal((24, 36)).astype(np.float32)


def test_a_choice_is_offered_with_its_plan_and_undone_by_one_click(
    browser: Any, tmp_path: Path
) -> None:
    e = Tensor(A).realize().exp()
    session = Session(explore(e.sum(1) * 2, (e + 1).contiguous()))
    session.complete()
    total = next(d for d in session.record.plan.decisions if d.value.startswith("sum"))
    with LivePage(browser, tmp_path, session) as live:
        page = live.page
        page.evaluate("show({ mode: 'plan' })")
        page.evaluate(f"show({{ node: {total.node} }})")
        page.click("[data-key=offers]")
        live.answer("choices")
        field = page.locator("[data-key=parts]")
        for parts, words in (("5", "3 kernels"), ("99", "36 elements")):
            field.fill(parts)
            field.press("Enter")
            live.answer("choices")
            row = page.locator(".wb-plan-offers li", has=page.locator("[data-key=parts]"))
            expect(row.locator("[role=status]")).to_contain_text(words)
        offer = page.locator(".wb-plan-offers li", has_text="4 partial results")
        expect(offer).to_contain_text("3 kernels")
        offer.locator("button").click()
        live.answer("replan")
        expect(page.locator(".wb-plan-before")).to_contain_text("3 kernels")
        expect(page.locator("[data-key=list-by-hand]")).to_have_text("1 choice")
        page.click("[data-key=list-by-hand]")
        made = page.locator(".wb-plan-hand li")
        expect(made).to_contain_text("combines 4 partial results")
        expect(page.locator(".wb-plan-call")).to_contain_text("ex.replan(split={")
        made.locator("button").click()
        live.answer("replan")
        expect(page.locator(".wb-plan-hand")).to_have_count(0)
        assert not session.recorder.exploration.choices


def test_the_plans_before_and_now_are_seen_whole_and_undo_is_in_the_same_scroll(
    browser: Any, tmp_path: Path
) -> None:
    """The card was cut on the right and below, in a box of its own that scrolled."""
    x = Tensor(np.ones((128, 128), np.float32)).realize()
    session = Session(explore((x @ x).relu() @ x))
    session.complete()
    relu = next(d for d in session.record.plan.decisions if d.value.startswith("relu"))
    with LivePage(browser, tmp_path, session, width=953) as live:
        page = live.page
        page.evaluate(f"show({{ mode: 'plan', node: {relu.node} }})")
        page.click("[data-key=replan]:has-text('fuse anyway')")
        live.answer("replan")
        page.wait_for_selector(".wb-plan-before:has-text('now')")
        sizes = page.evaluate("""() => {
          const card = document.querySelector(".wb-plan-before");
          const pane = card.closest(".wb-plan-reasons");
          const right = card.getBoundingClientRect().right + 1;
          const cut = [...card.querySelectorAll("*")].filter((e) =>
            e.getBoundingClientRect().right > right || e.scrollWidth > e.clientWidth + 1 && e.clientWidth
          ).map((e) => e.outerHTML);
          const boxes = [];
          for (let e = card.parentElement; e !== pane; e = e.parentElement)
            if (e.scrollHeight > e.clientHeight + 1) boxes.push(e.className);
          for (let e = pane.querySelector("[data-key=replan-undo]").parentElement; e !== pane; e = e.parentElement)
            if (e.scrollHeight > e.clientHeight + 1) boxes.push(e.className);
          return [cut, boxes];
        }""")
        assert sizes == [[], []]
        page.click("[data-key=replan-undo]")
        assert page.faults == []


def test_a_saved_plan_is_made_again_by_a_click_and_limits_are_said(
    browser: Any, tmp_path: Path, nothing_saved: Path
) -> None:
    """Nothing is planned again before it."""

    def explored() -> Session:
        e = Tensor(A).realize().exp()
        session = Session(explore(e.sum(1) * 2, (e + 1).contiguous()))
        session.complete()
        return session

    session = explored()
    node = next(d.node for d in session.record.plan.decisions if d.value.startswith("sum"))
    made = {"id": 1, "do": "replan", "node": node, "kind": "split", "parts": 4}
    assert session.handle(made).ok
    session = explored()
    session.put(("unsaved",), ["3 variants not saved: at most 60 are"])
    with LivePage(browser, tmp_path, session) as live:
        page = live.page
        row = page.locator(".wb-results .wb-buttons", has_text="your plan of before")
        expect(row).to_contain_text("1 choice by hand")
        expect(page.locator(".wb-results")).to_contain_text("3 variants not saved: at most 60 are")
        assert not session.recorder.exploration.choices
        page.click("[data-key=apply-plan-0]")
        live.answer("saved")
        expect(row).to_have_count(0)
        assert len(session.recorder.exploration.choices.parts) == 1
        assert "wb-error" not in page.inner_html(".wb-results")
    session = explored()
    with LivePage(browser, tmp_path, session) as live:
        live.page.click("[data-key=forget-plan-0]")
        live.answer("forget")
        expect(live.page.locator("[data-key=forget-plan-0]")).to_have_count(0)
    assert explored().record.saved_plans == []
