"""Taking it away: files that the page writes without Python, and links that open the same view."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support import LONG
from tests.viz.browser.browser import COPIED, WAIT_MS, opened, shown
from tests.viz.browser.page.support import Record, keys, step_twice, texts
from tests.viz.record.support import exported, plain
from tests.viz.support import array
from workbench.viz import explore
from workbench.viz.record.record import build

SVG = "{http://www.w3.org/2000/svg}"
VIEW = "document.querySelector('.wb').dataset.mode"


def download(page: Any, button: str, folder: Path) -> Path:
    """Press a button of the sheet, and return the file that the browser gets."""
    with page.expect_download(timeout=WAIT_MS) as info:
        page.click(f".wb-export [data-key='{button}']")
    path = folder / str(info.value.suggested_filename)
    info.value.save_as(path)
    return path


def sheet(page: Any, mode: str = "") -> None:
    page.focus(".wb")
    keys(page, f"{mode} e".strip())
    page.wait_for_selector(".wb-export")


def test_the_sheet_opens_and_closes_by_mouse_and_keys(page: Any) -> None:
    page.click("[data-key=export]")
    assert page.locator(".wb-export").count() == 1
    keys(page, "?")
    assert page.locator(".wb-help").count() == 2
    keys(page, "Escape")
    assert page.locator(".wb-help").count() == 0
    sheet(page)
    keys(page, "e")
    assert page.locator(".wb-export").count() == 0


@pytest.mark.parametrize("source", ["page", "session"])
def test_the_page_saves_itself(source: str, request: Any, browser: Any, tmp_path: Path) -> None:
    page = request.getfixturevalue(source)
    page.click("[data-key=variant-1], [data-key=variant-0] >> nth=-1")
    keys(page, "p")
    pinned = page.locator(".wb-variant:has-text('◆')").get_attribute("data-key")
    sheet(page)
    file = download(page, "export-html", tmp_path)
    assert file.suffix == ".html"
    again = opened(browser, file)
    assert texts(again, ".wb-title") == texts(page, ".wb-title")
    assert texts(again, ".wb-code-lines") == texts(page, ".wb-code-lines")
    mark = again.locator(".wb-variant:has-text('◆')").get_attribute("data-key")
    assert mark == pinned, "what was done in the page is in the file"
    assert again.evaluate(VIEW) == page.evaluate(VIEW)
    chosen = ".wb-variant[aria-selected=true]"
    opens = again.locator(chosen).get_attribute("data-key")
    assert opens == page.locator(chosen).get_attribute("data-key"), "as it was left"
    sheet(again)
    third = download(again, "export-html", tmp_path / "more")
    assert abs(third.stat().st_size - file.stat().st_size) < 100, "it can save itself"
    assert again.faults == []
    again.context.close()


def test_a_graph_is_a_drawing_that_any_program_reads(page: Any, tmp_path: Path) -> None:
    sheet(page, "3")
    root = ElementTree.fromstring(download(page, "svg-graph of Plan", tmp_path).read_text())
    labels = {node.text for node in root.iter(f"{SVG}text")}
    assert {"exp", "+"} <= labels
    assert all(node.tag.startswith(SVG) for node in root.iter()), "no HTML in it"
    text = ElementTree.tostring(root, encoding="unicode")
    assert "var(--" not in text and "class=" not in text
    boxes = [float(n) for n in root.attrib["viewBox"].split()]
    assert boxes[2] > 100 and boxes[3] > 100


def test_a_graph_that_is_painted_is_a_drawing_too(browser: Any, tmp_path: Path) -> None:
    """Large ones are painted on a canvas; taken away they are vectors, alone and in their pane."""
    x = y = array(8, 8)
    for _ in range(100):
        y = (y * 0.5 + x).relu()
    for page in shown(
        browser, tmp_path, exported(plain(build(explore(y)))), "3", width=953, dark=True
    ):
        assert page.locator(".wb-plan .wb-g-canvas").count() == 1
        sheet(page)
        for name in ("graph of Plan", "layout Plan"):
            text = download(page, f"svg-{name}", tmp_path).read_text()
            root = ElementTree.fromstring(text)
            labels = [node.text for node in root.iter(f"{SVG}text")]
            assert labels.count("+") == 100, name
        assert page.locator(".wb-plan .wb-g-svg").count() == 0, "it is taken out again"


@pytest.mark.parametrize("width", [800, 953, 1400] if LONG else [953])
def test_panes_are_pictures(page: Any, tmp_path: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    for mode in "1 2 3".split():
        sheet(page, mode)
        panes = page.locator(".wb-export [data-key^='svg-pane']").all()
        assert panes
        for name in [pane.get_attribute("data-key")[4:] for pane in panes]:
            file = download(page, f"svg-{name}", tmp_path)
            root = ElementTree.fromstring(file.read_text())
            assert float(root.attrib["width"]) > 100
            assert not any("script" in node.tag for node in root.iter())
        file = download(page, f"png-{name}", tmp_path)
        assert file.read_bytes().startswith(b"\x89PNG")
        keys(page, "Escape")


def test_a_picture_shows_what_the_pane_does(page: Any, browser: Any, tmp_path: Path) -> None:
    sheet(page)
    file = download(page, "svg-pane source", tmp_path)
    other = browser.new_page()
    other.goto(file.as_uri())
    drawn = other.evaluate("document.querySelector('.wb-code-pane').innerText")
    assert "for (" in drawn
    assert drawn == page.evaluate("document.querySelector('.wb-code-pane').innerText")
    style = "getComputedStyle(document.querySelector('.wb-code-pane')).color"
    assert other.evaluate(style) == page.evaluate(style)
    other.close()


def test_a_comparison_is_markdown(page: Any, tmp_path: Path) -> None:
    page.click("[data-key=variant-2]")
    sheet(page)
    text = download(page, "export-markdown", tmp_path).read_text()
    assert text.startswith("## ") and " beside plain" in text.split("\n")[0]
    assert "```diff" in text and "```python" in text


def test_python_is_copied_of_each_variant(page: Any, record: Record) -> None:
    page.evaluate(COPIED)
    page.click("[data-key=variant-2]")
    sheet(page)
    python, row = record["expr"]["python"], record["variants"][2]
    for button, text in {
        "kernel alone": row["python"],
        "kernel of my expression": python + row["recipe"],
        "exploration": python,
        "script of all kernels": record["recipes"]["script"],
    }.items():
        page.click(f".wb-export [data-key='{button}']")
        page.wait_for_function("text => window.copied === text", arg=text)


@pytest.mark.parametrize("mode", ["2", "3"])
def test_python_of_a_view_is_what_its_key_copies(page: Any, mode: str) -> None:
    page.evaluate(COPIED)
    page.focus(".wb")
    keys(page, f"{mode} y")
    page.wait_for_function("window.copied")
    python = page.evaluate("window.copied")
    page.evaluate("window.copied = null")
    sheet(page)
    page.click(".wb-export [data-key='this view']")
    page.wait_for_function("text => window.copied === text", arg=python)


def test_a_loaded_exploration_says_where_it_is_from(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    words = "From <mine>.json, without data: what is timed here runs on random inputs."
    for page in shown(browser, tmp_path, exported({**record, "origin": words}), width=953):
        assert page.inner_text(".wb-origin") == words
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
    for page in shown(browser, tmp_path, exported(record)):
        assert not page.locator(".wb-origin").is_visible()


def test_a_link_opens_the_same_view(
    page: Any, record: Record, browser: Any, tmp_path: Path
) -> None:
    page.evaluate(COPIED)
    step_twice(page, record)
    sheet(page)
    page.click(".wb-export [data-key='copy link']")
    page.wait_for_function("window.copied")
    link = page.evaluate("window.copied")
    assert link == page.url and "#view=" in link
    view = texts(page, ".wb-rw-at, .wb-rw-head, .wb-code-bar")
    keys(page, "Escape 3")
    page.click(".wb-header", position={"x": 4, "y": 4})
    page.go_back()
    page.wait_for_function(f"{VIEW} === 'tune'")
    page.go_forward()
    page.wait_for_function(f"{VIEW} === 'rewrites'")
    assert texts(page, ".wb-rw-at, .wb-rw-head, .wb-code-bar") == view
    other = browser.new_page()
    other.goto(link)
    other.wait_for_selector(".wb-rw-at")
    other.set_viewport_size(page.viewport_size)
    assert texts(other, ".wb-rw-at, .wb-rw-head, .wb-code-bar") == view
    other.goto(link.split("#")[0] + "#view=%7B%22kernel%22%3A99%2C%22mode%22%3A7%7D")
    other.reload()
    other.wait_for_selector(".wb[data-mode=tune]")
    other.close()


def test_a_link_has_what_is_folded_and_what_stands_side_by_side(page: Any, browser: Any) -> None:
    """For whoever opens it, whatever their own page looks like; and that stays as it is."""
    page.evaluate(COPIED)
    page.click("[data-key=mode-side_by_side]")
    page.click("[data-key=left-asm]")
    page.select_option("[data-key='variant on the right']", label="auto")
    page.click("[data-key=fold-left]")
    page.click("[data-key=fold-counts]")
    sheet(page)
    page.click(".wb-export [data-key='copy link']")
    page.wait_for_function("window.copied")
    looks = """() => [...document.querySelectorAll(".wb-side-columns, details[open], .wb-left")]
      .filter((e) => e.checkVisibility()).map((e) => e.innerText)"""
    keys(page, "Escape")
    other = browser.new_context().new_page()
    other.goto(page.evaluate("window.copied"))
    other.wait_for_selector(".wb-side-columns")
    other.set_viewport_size(page.viewport_size)
    assert other.evaluate(looks) == page.evaluate(looks)
    assert other.evaluate("localStorage.length") == 0
    other.context.close()


def test_a_live_page_says_where_links_are(session: Any) -> None:
    sheet(session)
    assert "in an exported page" in session.inner_text(".wb-export")
    assert session.locator(".wb-export [data-key='copy link']").count() == 0
