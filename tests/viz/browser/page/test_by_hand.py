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
