"""Loops, lines of code and lines of the notebook light each other, in one variant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.viz.browser.browser import drawn, shown
from tests.viz.browser.page.support import Record, selected, texts
from tests.viz.record.support import exported


def test_a_loop_lights_its_code_and_the_code_its_loop(page: Any, record: Record) -> None:
    loops = record["variants"][0]["loops"]["rows"]
    inner = max((r for r in loops if r["kind"] == "loop"), key=lambda r: r["depth"])
    row, axis = f"[data-key=loop-{loops.index(inner)}]", inner["axis"]
    head = f"{axis} <"
    for language in ("C", "LLVM", "asm"):
        page.click(f"[data-key=code-{language}]")
        page.click(row)
        lit = texts(page, ".wb-code-body .wb-lit")
        every = page.locator(".wb-code-body [data-line]").count()
        assert 0 < len(lit) < every, language
        if language == "C":
            assert head in lit[0]
        page.click(row)
        assert texts(page, ".wb-lit") == []

    page.click("[data-key=code-C]")
    page.click(f".wb-code-body [data-item]:has-text('{head}')")
    assert axis in "".join(texts(page, ".wb-loops .wb-lit"))
    around = texts(page, ".wb-loops .wb-inside")
    assert len(around) == inner["depth"]


def test_a_node_lights_code_and_a_notebook_line_lights_both(page: Any, record: Record) -> None:
    page.click("[data-key=loop-0]")
    statement = next(
        i for i, r in enumerate(record["variants"][0]["loops"]["rows"])
        if r["kind"] == "statement"
    )  # fmt: skip
    page.click(f"[data-key=loop-{statement}]")
    assert texts(page, ".wb-code-body .wb-lit")
    line = record["kernels"][0]["line"]
    page.click(f"[data-key=source-{line}]")
    assert texts(page, ".wb-code-body .wb-lit") and texts(page, ".wb-kernels .wb-lit")
    page.click("[data-key=loop-0]")
    page.click(f".wb-code-body [data-line='{lines_of(record, line)[0]}']")
    assert len(texts(page, f"[data-key=source-{line}].wb-lit")) == 1


def lines_of(record: Record, line: int) -> list[int]:
    """Return the lines of C that come from a notebook line, from 1."""
    links = record["variants"][0]["code"][0]["links"]
    return [i for i, link in enumerate(links, 1) if link and line in link["lines"]]


def test_pointing_lights_without_moving_anything(page: Any) -> None:
    boxes = "[...document.querySelectorAll('.wb *')].map(e => e.getBoundingClientRect().y)"
    before = page.evaluate(boxes)
    page.hover("[data-key=loop-0]")
    page.wait_for_selector(".wb-code-body .wb-near")
    assert page.evaluate(boxes) == before


def test_what_is_marked_is_of_the_variant_that_is_shown(page: Any, record: Record) -> None:
    """A line and an opt do not go along to another variant; the variant stays where its kernel
    is chosen again."""
    auto = next(i for i, v in enumerate(record["variants"]) if v["name"] == "auto")
    number = record["variants"][auto]["kernel"]
    page.click(f"[data-key=kernel-{1 - number}]")
    page.click("[data-key^=offer-] >> nth=0")
    page.click(".wb-code-body [data-line] >> nth=2")
    page.click("[data-key^=offer-] >> nth=0")
    page.click(f"[data-key=kernel-{number}]")
    assert selected(page, "legal opts") == selected(page, "lines") == []
    page.click(f"[data-key=variant-{auto}]")
    page.click(f"[data-key=kernel-{number}]")
    assert selected(page, "variants")[0].startswith("auto")


def test_a_line_of_code_lights_its_kernel_alone(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """Other kernels of the same notebook line stay dark."""
    shared = json.loads(json.dumps(record))
    shared["kernels"][1]["line"] = shared["kernels"][0]["line"]
    lit = "[...document.querySelectorAll('.wb-kernel.wb-lit')].map((e) => e.dataset.key)"
    for page in shown(browser, tmp_path, exported(shared)):
        page.click(".wb-code-body [data-item]:has-text('[g0') >> nth=0")
        assert page.evaluate(lit) == ["kernel-0"]


def test_tabs_and_the_headline_say_what_they_are(page: Any) -> None:
    headline = page.locator(".wb-title > .wb-words.wb-quiet")
    title, text = headline.get_attribute("title"), headline.inner_text()
    assert title and title != text and "A kernel is one program" in title
    assert "copied to the device" in title, "the copies that it counts, too"
    tabs = page.locator(".wb-modes [role=tab]")
    for tab in tabs.all():
        assert " · key " in tab.get_attribute("title"), tab.inner_text()


def test_a_line_lights_its_nodes_and_leads_to_its_kernel(page: Any, record: Record) -> None:
    """In the graph of whatever pass is shown: the nearest origins that have lines decide."""
    page.set_viewport_size({"width": 1400, "height": 900})
    page.select_option("[data-key=more-layouts]", "trace")
    first, last = ".wb-source:has-text('.exp()')", ".wb-source:has-text('explore(e /')"
    lit = "[data-pane=graph] .wb-g-lit"
    passes = [i for i, p in enumerate(record["passes"]) if p["kernel"] in (0, None)]
    page.click(first)
    for place in (p for p in passes if record["passes"][p]["changed"]):
        tile = page.locator(f"[data-key=pass-{place}]")
        if tile.count():
            tile.click()
            drawn(page)
            nodes = page.locator("[data-pane=graph] .wb-g-node >> visible=true").count()
            assert page.locator(lit).count() or not nodes, record["passes"][place]["name"]
    colour = "(e, [box, name]) => getComputedStyle(box ? e.querySelector(box) : e)[name]"
    box = page.locator(lit).first.evaluate(colour, [".wb-g-box", "fill"])
    row = page.locator(".wb-lit >> visible=true").first.evaluate(colour, ["", "backgroundColor"])
    assert box == row, "one colour for what is lit"
    page.click(last)
    drawn(page)
    assert page.locator(lit).count() == 0 < page.locator(".wb-source-kernels").count()
    page.click("[data-key=line-kernel-1]")
    drawn(page)
    assert page.locator(last).get_attribute("aria-selected") == "true"
    assert page.locator(lit).count() and page.locator(".wb-source-kernels").count() == 0
