"""Every short text, letter and sign of the page is a plain word, or says on hover what it is; `?`
lists all words and keys. More states are in scans/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import drawn, shown
from tests.viz.browser.page.support import Record, keys, texts
from tests.viz.browser.scans.records import timed as timed_record
from tests.viz.browser.scans.scan import unexplained
from tests.viz.record.support import exported, plain
from tests.viz.support import array, matmul, softmax
from workbench.viz import Exploration, explore
from workbench.viz.glossary import TERMS
from workbench.viz.record.record import build

UNFOLD = "() => document.querySelectorAll('.wb-fold').forEach((e) => e.open = true)"

MUTE_BOXES = """() => {
  const mute = [];
  for (const stage of document.querySelectorAll(".wb-g-stage")) {
    const seen = stage.getBoundingClientRect();
    for (const box of stage.querySelectorAll(".wb-g-node, .wb-g-words")) {
      const { x, y, width, height } = box.getBoundingClientRect();
      const at = { clientX: x + width / 2, clientY: y + height / 2, bubbles: true };
      const isSeen = at.clientX > seen.left && at.clientX < seen.right &&
        at.clientY > seen.top && at.clientY < seen.bottom;
      if (!width || !isSeen) continue;
      stage.dispatchEvent(new PointerEvent("pointermove", at));
      if (!stage.title.trim()) mute.push(box.textContent);
    }
  }
  return mute;
}"""
"""Returns the boxes and words of graphs that say nothing to a pointer on them."""


def several() -> Exploration:
    """Return an exploration of several kernels, some of them with arrays that stay in the kernel."""
    x = (array(16, 32) @ array(32, 32) + array(32)).relu()
    return explore(((x - x.mean(-1, keepdim=True)) @ array(32, 8)).softmax())


@pytest.fixture(scope="module")
def record() -> Record:
    page_record: Record = plain(build(softmax()))
    return page_record


@pytest.fixture(scope="module", params=[softmax, matmul, several])
def timed(request: pytest.FixtureRequest) -> Record:
    """A record whose variants are timed on a known machine, by a search among others; an offer of
    each is measured."""
    return timed_record(request.param())


@pytest.mark.parametrize("width", [953, 1400])
def test_every_label_is_plain_or_explained(
    browser: Any, timed: Record, tmp_path: Path, width: int
) -> None:
    for page in shown(browser, tmp_path, exported(timed), width=width):
        for steps in LOOKS:
            page.focus(".wb")
            keys(page, steps)
            drawn(page)
            page.evaluate(UNFOLD)
            drawn(page)
            assert unexplained(page) == [], steps
            assert page.evaluate(MUTE_BOXES) == [], steps


def test_the_scan_sees_what_nothing_explains(page: Any) -> None:
    """A scan of nothing would find nothing."""
    drawn(page)
    page.evaluate("""() => {
      const [mark, label] = ["i", "span"].map((name) => document.createElement(name));
      label.textContent = "qzx";
      mark.style.cssText = "display: inline-block; width: 9px; height: 9px";
      document.querySelector(".wb-left").append(mark, label);
    }""")
    reported = unexplained(page)
    assert [text.split(" in ")[0] for text in reported] == ["i", "qzx"]


COUNTED = r"""() => [...document.querySelectorAll(".wb *")].filter((e) =>
    e.getClientRects().length && !e.closest(".wb-code-body, .wb-source, .wb-words-sheet, svg"))
  .flatMap((e) => [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data))
  .flatMap((text) => [...text.matchAll(/(?:^|[\s(])\d[\d,.]* ([a-z][a-z-]{2,})/g)].map((m) => m[1]))"""
"""Returns what the texts of a page count, short or long: "copies" of "1 kernel, 3 copies"."""
EVERYDAY = frozenset("""
    and bytes cores decisions differ element elements fired kernel kernels legal line lines more not of
    operations possible reasons row rows run runs see steps thread threads times value values
    variants asin bits changes elsewhere global needs negative operation reduce units where
""".split())  # fmt: skip


def test_what_is_counted_has_a_row(browser: Any, timed: Record, tmp_path: Path) -> None:
    """A tooltip on a long text may explain another part of it; `?` has a row for each noun."""
    listed = " ".join(word.lower() for group in TERMS.values() for word in group)
    known = set(re.findall("[a-z-]+", listed)) | EVERYDAY
    seen = set()
    for page in shown(browser, tmp_path, exported(timed)):
        for steps in LOOKS:
            page.focus(".wb")
            keys(page, steps)
            drawn(page)
            page.evaluate(UNFOLD)
            seen |= set(page.evaluate(COUNTED))
    assert seen & {"copy", "copies"}, "a scan of nothing would find nothing"
    assert {word for word in seen if not {word, word.removesuffix("s")} & known} == set()


LOOKS = ("1", "2", "j j", "g", "3", "s j j", "s 4", "5")
"""Keys that lead through the modes, a step, a whole graph and the film."""


def test_the_sheet_has_words_and_keys(page: Any) -> None:
    page.focus(".wb")
    keys(page, "?")
    sheet = page.get_by_role("dialog", name="words and keys")
    assert sheet.locator("kbd").count() > 20
    terms = sheet.locator("dt").all_inner_texts()
    assert {"±", "≈", "~", "*", "UPCAST", "decide", "SINK"} <= set(terms)
    page.keyboard.type("use 5 of 5")
    assert "use" in texts(page, ".wb-words-sheet dt"), "as it stands in the page, with its numbers"
    page.fill(".wb-words-sheet input", "r_80_80_96")
    assert texts(page, ".wb-words-sheet dt") == ["r_32_40_48"], "a name with any numbers"
    page.fill(".wb-words-sheet input", "")
    page.keyboard.type("roofline")
    assert texts(page, ".wb-words-sheet dt")[0] == "roofline"
    page.click("[data-key=help-loops]")
    assert texts(page, ".wb-words-sheet h4") == ["LOOPS"]
    assert "G" in sheet.locator("dt").all_inner_texts()
    page.keyboard.press("Escape")
    assert sheet.count() == 0 and page.evaluate("document.activeElement.matches('.wb')")


def test_a_heading_leads_to_the_words_of_its_pane(page: Any) -> None:
    heading = page.locator(".wb-nest-pane h3")
    assert "outer ones first" in heading.get_attribute("title")
    heading.click()
    assert texts(page, ".wb-words-sheet h4") == ["LOOPS"]
