"""Keys and focus: all can be reached, no key leaves the page, and undo walks the variants."""

from __future__ import annotations

from typing import Any

from tests.viz.browser.page.support import Record, focused, keys, selected


def test_everything_can_be_reached_with_keys(page: Any) -> None:
    page.focus(".wb")
    keys(page, "j")
    assert focused(page) == "loop-0"
    keys(page, "j ArrowDown k Enter")
    assert focused(page) == "loop-1" and selected(page, "loops")
    keys(page, "2")
    assert selected(page, "layout") == ["Rewrites"]
    keys(page, "1 Escape Escape")
    assert not page.evaluate("document.activeElement.dataset.key")
    page.focus("[data-key=kernel-0]")
    keys(page, "End Enter")
    assert focused(page) == "kernel-1"
    assert "kernel-1" == page.get_attribute(
        '[aria-label="kernels"] [aria-selected="true"]', "data-key"
    )
    keys(page, "?")
    page.wait_for_selector('[role="dialog"]')
    keys(page, "Escape")
    page.wait_for_selector('[role="dialog"]', state="detached")


def test_esc_gives_the_focus_back_to_the_cell_of_a_notebook(page: Any) -> None:
    """Whose keys would be dead with the focus nowhere; elsewhere nothing has it."""
    focused_class = "document.activeElement.className"
    page.focus(".wb")
    keys(page, "Escape")
    assert page.evaluate("document.activeElement === document.body")
    page.evaluate("""() => {
      const cell = document.createElement("div"), root = document.querySelector(".wb");
      Object.assign(cell, { className: "jp-Cell", tabIndex: -1 });
      root.parentElement.replaceWith(cell);
      cell.append(root);
    }""")
    page.focus(".wb")
    keys(page, "Escape")
    assert page.evaluate(focused_class) == "jp-Cell"


def test_no_key_reaches_the_page_around_but_tab_and_save(page: Any) -> None:
    page.evaluate("document.addEventListener('keydown', e => (window.pressed ??= []).push(e.key))")
    page.focus(".wb")
    keys(page, "a b c d e g i j k m n o q r s t u v w x y z 0 5 9 Enter Space Delete Home")
    keys(page, "Shift+A Shift+M Control+s Backspace ArrowLeft F2")
    keys(page, "1")
    page.click("[data-key=loop-0]")
    keys(page, "a b d d x Enter Escape")
    assert page.evaluate("window.pressed") == ["s"], "the notebook saves itself"
    inside = "document.activeElement.closest('.wb') !== null"
    wants = "document.activeElement.hasAttribute('data-lm-suppress-shortcuts')"
    page.focus(".wb")
    for _ in range(80):
        if not page.evaluate(inside):
            break
        assert page.evaluate(wants)
        keys(page, "Tab")
    assert not page.evaluate(inside)


def test_a_list_keeps_the_focus_when_its_choice_changes_the_page(page: Any) -> None:
    """Of layouts, and of the panes of the board: the next key is the list's, too."""
    more = page.locator("[data-key=more-layouts]")
    more.focus()
    for layout in more.evaluate("(list) => [...list.options].map(({ value }) => value)")[1:]:
        keys(page, "ArrowDown")
        page.wait_for_selector(f".wb[data-mode={layout}]")
        assert focused(page) == "more-layouts"
    page.focus("[data-key=choose-passes]")
    keys(page, "m")
    assert focused(page) == "choose-memory"
    keys(page, "Home")  # the graph is on the board: both change places
    assert focused(page) == "choose-graph"


def test_what_has_the_focus_is_seen(page: Any) -> None:
    outline = """() => {
      const style = getComputedStyle(document.activeElement);
      return [style.outlineStyle, parseFloat(style.outlineWidth)];
    }"""
    page.focus("#workbench .wb")
    for mode in "123":
        page.focus(".wb")
        keys(page, mode)
        for _ in range(40):
            keys(page, "Tab")
            if page.evaluate("document.activeElement.closest('.wb') === null"):
                break
            style, width = page.evaluate(outline)
            assert style != "none" and width >= 2, focused(page)


def test_letters_walk_what_a_tab_shows(page: Any, record: Record) -> None:
    page.click("[data-key=mode-rewrites]")
    before = page.inner_text(".wb-rw-at")
    keys(page, "j")
    page.wait_for_function(
        "was => document.querySelector('.wb-rw-at').textContent !== was", arg=before
    )
    assert selected(page, "layout") == ["Rewrites"]
    page.click("[data-key=mode-tune]")
    keys(page, "j")
    assert focused(page).startswith("loop-")
    page.focus("[data-key=kernel-0]")
    keys(page, "2 j")
    assert not focused(page).startswith("kernel-")
