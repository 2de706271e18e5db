"""Opts: found by their words, applied and pasted, and tried by the search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.viz.browser.browser import FAINT, session_page, shown
from tests.viz.browser.page.support import (
    ANSWER_WITHIN_MS,
    Record,
    falls_silent,
    focused,
    keys,
    send_reply,
    texts,
    timing,
)
from tests.viz.record.support import exported


def test_search_narrows_the_opts_offline(page: Any) -> None:
    every = page.locator(".wb-offer[data-opt]").count()
    page.focus(".wb")
    keys(page, "/")
    page.keyboard.type("unroll")
    page.wait_for_function(
        "[...document.querySelectorAll('.wb-offer[data-opt]')]"
        ".every(row => /unroll/i.test(row.textContent))"
    )
    assert 0 < page.locator(".wb-offer[data-opt]").count() < every


def test_what_a_kind_hides_of_a_search_is_said(page: Any) -> None:
    page.click("[data-key=op-UNROLL]")
    page.fill(".wb-find", "upcast")
    assert page.locator(".wb-offer[data-opt]").count() == 0
    text = page.inner_text("[data-key=other-kinds]")
    assert text.endswith("of other kinds than UNROLL: show")
    page.click("[data-key=other-kinds]")
    rows = page.locator(".wb-offer[data-opt]")
    assert rows.count() == int(text.split()[0]) > 0
    page.fill(".wb-find", "no such opt")
    assert page.locator("[data-key=other-kinds]").count() == 0


def test_why_an_opt_helps_is_not_cut_before_its_figures(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """At every width; and what the names of opts mean is said on hover."""
    for width in (800, 953, 1400):
        for page in shown(browser, tmp_path, exported(record), width=width):
            cut = """[...document.querySelectorAll(".wb-why, .wb-offer > .wb-code")]
              .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"""
            assert page.evaluate(cut) == [], width
            whys = page.locator(".wb-offer[data-opt] .wb-why").all()
            assert whys and all(why.get_attribute("title") for why in whys)
            _, *ops = page.locator(".wb-filters [data-key^=op-]").all()
            assert ops and all("on a GPU" in op.get_attribute("title") for op in ops)


def test_words_are_found_in_any_order_and_nothing_is_said_in_place(page: Any) -> None:
    page.focus(".wb")
    keys(page, "/")
    pane = "document.querySelector('.wb-next-pane').getBoundingClientRect().height"
    before = page.evaluate(pane)
    page.keyboard.type("r0 unroll")
    rows = page.locator(".wb-offer[data-opt]")
    assert all(row.startswith('UNROLL("r0"') for row in texts(page, ".wb-offer[data-opt]"))
    assert rows.count() > 0
    page.fill(".wb-find", "no such opt")
    page.wait_for_selector(".wb-next-pane >> text=nothing found")
    assert page.evaluate(pane) == before


def test_what_is_measured_of_an_offer_is_a_speedup_like_the_predicted_one(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """Green is the best of those that are faster beyond the noise; where the samples say nothing,
    the offer does not either."""
    page_record = json.loads(json.dumps(record))
    cases = [
        (3.0, None, False, "x3.00 few runs"),
        (2.0, 0.04, True, "x2.00 ± 4.0%"),
        (1.5, 0.0, True, "x1.50 ± <0.1%"),
        (1.3, 0.4, False, "≈ ± 40%"),
        (0.4, 0.02, True, "x0.40 ± 2.0%"),
    ]
    offers = page_record["variants"][0]["offers"]
    for offer, (measured, spread, differs, _) in zip(offers, cases, strict=False):
        offer |= {"measured": measured, "spread": spread, "differs": differs}
        offer |= {"seconds": 1e-3, "predicted": 1.25}
    for page in shown(browser, tmp_path, session_page(page_record)):
        figures = ".wb-offer[data-opt] .wb-figure[title*='in turns']"
        assert texts(page, figures) == [text for *_, text in cases]
        assert texts(page, ".wb-best") == ["x2.00 ± 4.0%"]
        assert "1.00 ms" in page.get_attribute(f"{figures} >> nth=0", "title")
        predicted = ".wb-offer[data-opt] .wb-figure:not([title])"
        assert texts(page, predicted)[: len(cases)] == ["x1.25"] * len(cases)


def test_an_offer_that_a_busy_machine_disturbed_stands_at_its_prediction(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = json.loads(json.dumps(record))
    offers = page_record["variants"][0]["offers"]
    for offer, (predicted, measured) in zip(
        offers, [(9.0, 1.5), (2.0, None), (1.2, 4.0)], strict=False
    ):
        offer |= {"predicted": predicted, "measured": measured, "busy": measured is None}
        offer |= {"seconds": measured and 1e-3, "differs": measured is not None, "spread": 0.01}
    named = [offer["opt"] for offer in offers[:3]]
    for page in shown(browser, tmp_path, session_page(page_record)):
        rows = page.locator(".wb-offer[data-opt]").all()[:3]
        assert [row.get_attribute("data-opt") for row in rows] == [named[n] for n in (2, 1, 0)]
        assert rows[1].locator(".wb-figure").last.inner_text() == "–", "no time stands beside it"


def test_offers_that_gain_nothing_are_folded(browser: Any, record: Record, tmp_path: Path) -> None:
    """What is measured stays, whatever it is; where nothing gains, all are there as before."""
    page_record = json.loads(json.dumps(record))
    offers = page_record["variants"][0]["offers"]
    first = {o["opt"]: o for o in offers[:4]}
    for offer in offers:
        offer |= {"predicted": 2.0 if offer["opt"] in first else 0.9, "measured": None}
    offers[3] |= {"predicted": 0.5, "measured": 0.4, "differs": True, "seconds": 1e-3}
    rows = ".wb-offer[data-opt]"
    for page in shown(browser, tmp_path, exported(page_record)):
        shown_first = {r.get_attribute("data-opt") for r in page.locator(rows).all()}
        assert shown_first == set(first)
        left = len(offers) - 4
        assert page.inner_text("[data-key=more]") == (f"{left} more, {left} of them no faster")
        page.click("[data-key=more]")
        assert page.locator(rows).count() == len(offers)
    for offer in offers:
        offer |= {"predicted": 0.9, "measured": None}
    for page in shown(browser, tmp_path, exported(page_record)):
        assert page.locator(rows).count() == min(24, len(offers))


def test_no_offer_is_green_where_none_is_faster(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    page_record = json.loads(json.dumps(record))
    offers = page_record["variants"][0]["offers"]
    for offer, measured in zip(offers, (1.4, 0.9, 0.5), strict=False):
        row = {"measured": measured, "spread": 0.5, "differs": measured < 1}
        offer |= row | {"seconds": 1e-3}
    for page in shown(browser, tmp_path, session_page(page_record)):
        assert page.locator(".wb-offer[data-opt] .wb-figure[title]").count() == 3
        assert page.locator(".wb-best").count() == 0


def test_asking_and_answers(session: Any, record: Record) -> None:
    opt = record["variants"][0]["offers"][0]["opt"]
    session.click(f"[data-key='offer-{opt}']")
    keys(session, "a")
    message = session.evaluate("sent.find(m => m.do === 'apply')")
    assert (message["variant"], message["opt"]) == (0, opt)

    child = record["variants"][0] | {"name": "UPCAST g0 2", "parent": 0, "opts": [opt]}
    child["timing"] = timing(1.96e-3, spread=0.05)
    number = len(record["variants"])
    reply = {"id": message["id"], "ok": True, "error": None, "result": {"variant": number}}
    patch = {"append": {"variants": [child]}, "set": [[["variants", number, "note"], "n"]]}
    session.evaluate("m => hear(m)", reply | {"patch": patch})
    session.wait_for_selector(f"[data-key=variant-{number}][aria-selected=true]")
    assert "No measurable difference" in session.inner_text(".wb-about")

    keys(session, "c")
    message = session.evaluate("sent.find(m => m.do === 'check')")
    wrong = {"what": "the check failed", "because": "<b>no data</b>", "try": "run"}
    session.evaluate(
        "m => hear(m)", {"id": message["id"], "ok": False, "error": wrong, "result": None}
    )
    assert "<b>no data</b>" in session.inner_text(".wb-results [role=alert]")


def test_opts_outlive_that_python_is_silent(session: Any) -> None:
    session.fill("[data-key=paste]", 'UPCAST("g0", 4)')
    falls_silent(session)
    session.evaluate("document.querySelector('[data-key=time]').click()")
    session.clock.fast_forward(ANSWER_WITHIN_MS)
    session.wait_for_selector("text=Browsing still works")
    assert session.input_value("[data-key=paste]") == 'UPCAST("g0", 4)'
    assert session.evaluate("document.activeElement.matches('.wb')"), "it is disabled"


def test_opts_are_not_looked_for_where_python_is_silent(session: Any, record: Record) -> None:
    rows = enumerate(record["variants"])
    other = next(i for i, v in rows if v["kernel"] == 0 and not v["offers"])
    falls_silent(session)
    session.click(f"[data-key=variant-{other}]")
    opts = session.locator(".wb-next-pane")
    expect(opts).to_contain_text("Looking for opts")
    session.clock.fast_forward(ANSWER_WITHIN_MS)
    session.wait_for_selector("text=Browsing still works")
    expect(opts).not_to_contain_text("Looking for opts")


def test_a_late_answer_takes_nobody_back(session: Any, record: Record) -> None:
    other = next(i for i, v in enumerate(record["variants"]) if i and v["kernel"] == 0)
    session.click("[data-key=search]")
    session.click(f"[data-key=variant-{other}]")
    send_reply(session, "search", result={"variant": 0})
    session.wait_for_selector("[data-key=search]:text-is('Search')")
    assert session.get_attribute(f"[data-key=variant-{other}]", "aria-selected") == "true"


def test_all_that_a_search_tried_is_a_tree(browser: Any, record: Record, tmp_path: Path) -> None:
    """The way to the best is open; a branch opens by click and by arrow, and text stays text."""
    trials = [
        [0, None, "start: as given", 2e-3, ""],
        [1, 0, '<img src=x onerror="boom">', 1e-3, ""],
        [2, 0, "UPCAST", None, "did not end"],
        [3, 2, "never seen", 3e-3, ""],
        [4, 1, "UNROLL", 5e-4, ""],
    ]
    searched = json.loads(json.dumps(record))
    searched["variants"][0]["searches"] = [{
        "tried": 5, "timed": 4, "best": 4, "speedup": 4.0, "seconds": 9.5, "ended": "over",
        "device": "LLVM", "candidates": trials,
    }]  # fmt: skip
    tree = '[aria-label="candidates of search 1"]'
    elsewhere = json.loads(json.dumps(searched))
    elsewhere["variants"][0]["searches"][0]["predicted"] = True
    for page in shown(browser, tmp_path, session_page(elsewhere)):
        title = page.inner_text(".wb-tried-pane summary")
        assert "5 tried, 4 predicted, not run here, in 9.50 s" in title
        page.click(".wb-tried-pane summary")
        assert "±" not in page.inner_text(tree)
    for page in shown(browser, tmp_path, session_page(searched)):
        assert "5 tried, 4 timed" in page.inner_text(".wb-tried-pane summary")
        assert not page.is_visible(tree)
        page.click(".wb-tried-pane summary")
        page.wait_for_selector(tree)
        assert page.evaluate(FAINT) == []
        rows = f"{tree} [role=treeitem]"
        assert page.locator(rows).count() == 4, "all but what is below UPCAST"
        assert "best" in page.inner_text(f"{tree} [aria-selected=true]")
        assert page.locator(f"{tree} img").count() == 0
        assert "500 µs" in page.inner_text(f"{tree} [aria-level='3']")
        page.click("[data-key=tried-1-2]")
        note = {"append": {}, "set": [[["variants", 0, "note"], "news"]]}
        page.evaluate("p => hear({patch: p})", note)
        assert "never seen" in page.inner_text(tree)
        assert focused(page) == "tried-1-2"
        keys(page, "ArrowLeft")
        assert "never seen" not in page.inner_text(tree)
        keys(page, "ArrowRight j")
        assert focused(page) == "tried-1-3"
        other = next(i for i, v in enumerate(searched["variants"]) if i and v["kernel"] == 0)
        page.click(f"[data-key=variant-{other}]")
        assert page.is_visible(tree), "the searches are the kernel's"


def test_searches_with_the_same_result_stand_beside_each_other(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """A fold each, in the order of their dates, with the variant that each found."""
    search = {
        "tried": 2, "timed": 2, "best": 1, "speedup": 2.0, "seconds": 1.5, "ended": "over",
        "device": "LLVM", "candidates": [[0, None, "start", 2e-3, ""], [1, 0, "UNROLL", 1e-3, ""]],
        "budget_s": 2.0, "when": 1_700_000_000,
    }  # fmt: skip
    searched = json.loads(json.dumps(record))
    other = next(i for i, v in enumerate(searched["variants"]) if i and v["kernel"] == 0)
    first, second = search | {"tried": 21}, search | {"tried": 22, "when": 1_700_000_060}
    searched["variants"][0]["searches"] = [first, second]
    searched["variants"][other]["searches"] = [search | {"when": 1_700_000_030}]
    for page in shown(browser, tmp_path, session_page(searched)):
        titles = page.locator(".wb-tried-pane summary").all_inner_texts()
        counts = [title.split(",")[0] for title in titles]
        assert counts == [f"search {n} on LLVM: {k} tried" for n, k in ((1, 21), (2, 2), (3, 22))]
        assert "in 1.50 s of 2.00 s, best" in titles[1]
        assert searched["variants"][other]["name"] in titles[1]
        page.click(".wb-tried-pane summary >> nth=1")
        page.click("[data-key=best-of-search-2]")
        assert page.get_attribute(f"[data-key=variant-{other}]", "aria-selected") == "true"
        assert page.is_visible('[aria-label="candidates of search 2"]')
        assert not page.is_visible('[aria-label="candidates of search 3"]')
