"""What the exported page can do from disk, without Python; and words in it are never markup."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.viz.browser.browser import leave, opened, shown
from tests.viz.browser.page.support import Record, keys, step_twice
from tests.viz.record.support import exported
from workbench.viz.page.document import carrier
from workbench.viz.session.constants import constants

DATA = Path(__file__).parents[2] / "data"
HOSTILE = "</script><img src=x onerror=\"document.title='run'\">\u202e\"'`\n" + "x" * 10_000


def test_words_are_never_markup(browser: Any, record: Record, tmp_path: Path) -> None:
    hostile = json.loads(json.dumps(record))
    hostile["expr"]["text"] = hostile["headline"] = HOSTILE
    for row in [*hostile["kernels"], *hostile["passes"], *hostile["rules"]]:
        for name in {"title", "name", "doc", "text"} & set(row):
            row[name] = HOSTILE
    for line in hostile["lines"]:
        line["where"] = line["text"] = HOSTILE
    for v in hostile["variants"]:
        v["name"] = v["note"] = v["bound"] = v["python"] = HOSTILE
        v["error"] = {"what": HOSTILE, "because": HOSTILE, "try": HOSTILE}
        v["opts"] = [HOSTILE]
        opt = {"words": HOSTILE, "op": HOSTILE, "axis": HOSTILE, "amount": 4}
        v["opt_rows"] = [opt]
        for offer in v["offers"]:
            offer["why"] = offer["does"] = HOSTILE
        for row in v["loops"]["rows"]:
            row["text"] = HOSTILE
        for code in v["code"]:
            code["lines"][-1] = HOSTILE
    for page in shown(browser, tmp_path, exported(hostile), width=800):
        for mode in "2 3 1".split():
            page.focus(".wb")
            keys(page, mode)
            assert page.evaluate("document.images.length") == 0
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"mode {mode} is wider than the page"
        assert page.title() != "run"


def test_rewrites_are_stepped_and_searched_offline(page: Any, record: Record) -> None:
    step_twice(page, record)
    page.wait_for_selector(".wb-rw .wb-g-node")
    label = page.locator(".wb-rw .wb-g-label").first.text_content()
    page.fill(".wb-rw .wb-g-search", label)
    keys(page, "Enter")
    assert page.inner_text(".wb-rw .wb-g-count").startswith("1 of ")
    assert page.locator(".wb-rw .wb-g-picked").count() == 1


def test_without_python_the_buttons_say_so(page: Any) -> None:
    off = page.locator(".wb-left [aria-disabled=true]")
    assert off.count() >= 3
    assert {b.get_attribute("title") for b in off.all()} == {"needs the Python session"}
    page.focus(".wb")
    keys(page, "t")
    page.wait_for_selector(":not(option):text('needs the Python session')")
    others = page.locator("[data-key='other languages'] option[disabled]").all_inner_texts()
    assert "CUDA (needs the Python session)" in others


CUT_ON_PAPER = """() => [...document.querySelectorAll(".wb-frame, .wb-frame *")]
  .filter((e) => e.checkVisibility() && !e.closest(".wb-cells, .wb-g-stage"))
  .filter((e) => getComputedStyle(e).overflowY !== "visible" && e.scrollHeight > e.clientHeight + 1)
  .map((e) => e.className)"""


def test_paper_has_whole_panes_in_light_colours(page: Any) -> None:
    """Even where the screen is dark; nothing on it can be pressed."""
    page.emulate_media(media="print", color_scheme="dark")
    try:
        assert page.evaluate(CUT_ON_PAPER) == []
        buttons = page.locator(".wb-frame .wb-button, .wb-tools .wb-button")
        assert buttons.count() > 3 and not any(button.is_visible() for button in buttons.all())
        looks = "(wb) => [getComputedStyle(wb).backgroundColor, getComputedStyle(wb).colorScheme]"
        assert page.locator(".wb").evaluate(looks) == ["rgb(255, 255, 255)", "light"]
        assert page.locator(".wb-saved").is_visible(), "it says that Python is not there"
    finally:
        page.emulate_media(media="screen", color_scheme="light")


def test_a_frame_of_another_version_says_so(browser: Any, tmp_path: Path) -> None:
    """It asks for a script that is not there: the carrier of this version answers in words."""
    older = (DATA / "older-frame.html").read_text(encoding="utf-8")
    frames = "".join(
        f'<iframe sandbox="allow-scripts" title="{title}" srcdoc="{escape(page)}"></iframe>'
        for title, page in (("older", older), ("carrier", carrier(constants())))
    )
    path = tmp_path / "notebook.html"
    path.write_text(f'<!doctype html><div class="wb">notebook</div>{frames}', encoding="utf-8")
    page = opened(browser, path)
    expect(page.frame_locator("[title=older]").locator("#workbench")).to_contain_text(
        "saved by another version"
    )
    leave(browser, page)
