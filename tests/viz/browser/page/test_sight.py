"""A page that is far out of sight has no elements, and comes back as it was left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.viz.browser.browser import drawn, session_page, shown
from tests.viz.browser.page.support import Record, keys, selected
from tests.viz.record.support import exported

FAR = "height: 9000px"
PARTS = ".wb *"
SCROLLED = """() => [...document.querySelectorAll(".wb *")].filter((e) => e.scrollTop)
  .map((e) => `${e.className} ${e.scrollTop}`)"""

IN_PLACE = "() => getComputedStyle(document.querySelector('.wb'), '::before').content"


def below(html: str) -> str:
    """Return a page that stands below something high."""
    for start in ('<main id="workbench">', '<div id="workbench">'):
        html = html.replace(start, f'<div id="above" style="{FAR}"></div>{start}')
    return html


def scroll(page: Any, far: bool) -> None:
    page.evaluate("(y) => scrollTo(0, y)", 0 if far else 9000)
    drawn(page)


def test_a_page_out_of_sight_has_no_elements_and_keeps_its_state(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    for page in shown(browser, tmp_path, exported(record)):
        page.set_viewport_size({"width": 1000, "height": 500})
        page.focus(".wb")
        keys(page, "2")
        page.click(".wb-rw-pass >> nth=2")
        keys(page, "1 ]  ]")
        page.fill(".wb-offers-pane input, .wb-kernels input >> nth=0", "a")
        page.evaluate("document.querySelector('.wb-code-body').scrollTop = 40")
        page.evaluate("document.activeElement.blur()")
        drawn(page)
        scrolled = page.evaluate(SCROLLED)
        before = page.inner_text(".wb")
        height = page.evaluate("document.querySelector('.wb').offsetHeight")
        assert scrolled and page.locator(PARTS).count() > 200
        page.evaluate(
            """(style) => document.body.insertAdjacentHTML("afterbegin",
              `<div id="above" style="${style}"></div>`)""",
            FAR,
        )
        scroll(page, far=True)
        expect(page.locator(PARTS)).to_have_count(0)
        assert page.evaluate("document.querySelector('.wb').offsetHeight") == height
        scroll(page, far=False)
        expect(page.locator(".wb-header")).to_be_visible()
        assert page.inner_text(".wb") == before
        assert page.evaluate(SCROLLED) == scrolled
        keys_before = selected(page, "modes")
        page.focus(".wb")
        scroll(page, far=True)
        assert page.locator(PARTS).count() > 200, "what has the focus stays"
        assert selected(page, "modes") == keys_before
        page.evaluate("document.activeElement.blur()")
        expect(page.locator(PARTS)).to_have_count(0)


def test_a_page_just_out_of_sight_is_kept_and_not_drawn(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    for page in shown(browser, tmp_path, below(session_page(record))):
        scroll(page, far=False)
        title = page.locator(".wb-expr")
        expect(title).to_be_visible()
        before = title.text_content()
        below_it = "(root) => scrollBy(0, root.getBoundingClientRect().top - 1.75 * innerHeight)"
        page.locator(".wb").evaluate(below_it)
        expect(title).to_be_hidden()
        page.evaluate("hear({ patch: { append: {}, set: [[['expr', 'text'], 'arrived']] } })")
        drawn(page)
        assert title.text_content() == before
        scroll(page, far=False)
        expect(title).to_be_visible()
        expect(title).to_contain_text("arrived")


def test_a_page_that_was_never_in_sight_is_made_when_it_comes_there(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    for page in shown(browser, tmp_path, below(session_page(record))):
        drawn(page)
        assert page.locator(PARTS).count() == 0
        page.evaluate(
            "hear({ patch: { append: {}, set: [[['expr', 'text'], 'arrived unseen']] } })"
        )
        drawn(page)
        assert page.locator(PARTS).count() == 0
        words = f"arrived unseen\n{record['headline']}"
        expect(page.locator(".wb")).to_have_attribute("data-title", words)
        assert page.evaluate(IN_PLACE) != "none", "its title stands there until it is drawn"
        scroll(page, far=False)
        assert page.evaluate(IN_PLACE) == "none"
        expect(page.locator(".wb-expr")).to_contain_text("arrived unseen")


def test_all_is_there_when_it_is_printed(browser: Any, record: Record, tmp_path: Path) -> None:
    for page in shown(browser, tmp_path, below(exported(record))):
        drawn(page)
        assert page.locator(PARTS).count() == 0
        page.evaluate("addEventListener('afterprint', () => { window.printed = true; })")
        page.pdf()
        page.wait_for_function("printed")
        assert page.locator(PARTS).count() > 200
