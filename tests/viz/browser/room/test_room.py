"""The room of panes: what is on the first screen, how much of it the graph has, and that what a reader
folds or drags stays so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import drawn, shown
from tests.viz.browser.page.support import Record, focused, keys
from tests.viz.record.support import exported, plain
from tests.viz.support import softmax
from workbench.viz.record.record import build

SMALL = {"width": 953, "height": 640}
IN_SIGHT = """(selectors) => selectors.filter((selector) => {
  const e = document.querySelector(selector), b = e?.getBoundingClientRect();
  const at = b && document.elementFromPoint(b.x + Math.min(b.width / 2, 30), b.y + Math.min(b.height / 2, 12));
  return !(b?.width && b.height && b.top >= 0 && b.left >= 0 && b.left + Math.min(b.width, 60) <= innerWidth &&
    b.top + Math.min(b.height, 60) <= innerHeight && (e.contains(at) || at?.contains(e)));
})"""
"""Returns those of some selectors that are not seen on the first screen."""
SCROLLED = """() => [...document.querySelectorAll(".wb, .wb *")].filter((e) => {
  const { overflowX } = getComputedStyle(e);
  return ["auto", "scroll"].includes(overflowX) && e.scrollWidth > e.clientWidth + 1 && e.checkVisibility() &&
    !e.closest(".wb-blocks");
}).map((e) => `${e.className} ${e.scrollWidth} in ${e.clientWidth}`)"""
"""Returns the panes that scroll sideways; the passes are a line, which does."""
SHARE = """() => {
  const area = (selector) => {
    const shown = [...document.querySelectorAll(selector)].find((e) => e.checkVisibility());
    const { width, height } = shown.getBoundingClientRect();
    return width * height;
  };
  return area(".wb-g-stage") / area(".wb-board");
}"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll(".wb-g-svg text")]
  .filter((e) => e.checkVisibility() && e.textContent)
  .map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a))"""
"""Returns the size, on the screen, of the smallest text in a graph."""
COVERED = """() => {
  const stage = [...document.querySelectorAll(".wb-g-stage")].find((e) => e.checkVisibility());
  const { left, top, right, bottom } = stage.getBoundingClientRect();
  return [...stage.querySelectorAll(".wb-g-new, .wb-g-gone, .wb-g-changed")].filter((e) => e.matches(".wb-g-node"))
    .filter((e) => {
      const b = e.querySelector(".wb-g-box").getBoundingClientRect();
      const [x, y] = [b.x + b.width / 2, b.y + b.height / 2];
      return b.left < left || b.top < top || b.right > right || b.bottom > bottom ||
        !e.contains(document.elementFromPoint(x, y));
    }).map((e) => e.textContent);
}"""
"""Returns the boxes that changed, and are out of sight or below something else."""
PLACES = """() => [".wb-nest-pane", ".wb-next-pane", ".wb-code-pane", ".wb-results"]
  .map((s) => document.querySelector(s).getBoundingClientRect()).map(({ x, y }) => [x, y])"""
"""Returns where the panes of Tune begin."""
NAMED = [
    ".wb-kernels [data-item]", ".wb-results [role=treeitem]", "[data-key=time]", "[data-key=check]",
    "[data-key=search]", ".wb-loops [data-item]", ".wb-offer [data-key^=apply]", ".wb-code-body [data-line]",
    ".wb-sources [data-item]", ".wb-strip [data-item]",
]  # fmt: skip


@pytest.fixture(scope="module")
def record() -> Record:
    """A record of two kernels."""
    page_record: Record = plain(build(softmax()))
    return page_record


@pytest.fixture(params=[(953, 640), (800, 640), (1400, 800)])
def sized(browser: Any, record: Record, tmp_path: Path, request: Any) -> Any:
    width, height = request.param
    for page in shown(browser, tmp_path, exported(record), width=width):
        page.set_viewport_size({"width": width, "height": height})
        yield page


def test_all_that_is_used_at_once_is_on_the_first_screen(sized: Any) -> None:
    assert sized.evaluate(IN_SIGHT, NAMED) == []
    assert sized.evaluate(SCROLLED) == []


def test_no_pane_moves_when_another_variant_is_shown(sized: Any) -> None:
    """Each begins where it did, however many loops and opts the variant has."""
    sized.click(".wb-kernels [data-item] >> nth=1")
    drawn(sized)
    rows = sized.locator("[aria-label=variants] [role=treeitem]")
    before = sized.evaluate(PLACES)
    loops = sized.locator(".wb-loop").count()
    for place in (1, 0):
        rows.nth(place).click()
        drawn(sized)
        assert sized.evaluate(PLACES) == before
        assert (sized.locator(".wb-loop").count() != loops) is (place == 1)


def test_the_graph_is_the_main_thing(sized: Any, record: Record) -> None:
    sized.focus(".wb")
    for mode in "32":
        keys(sized, mode)
        drawn(sized)
        assert sized.evaluate(SCROLLED) == []
        if mode == "2":
            keys(sized, "j")
            drawn(sized)
        assert sized.evaluate(SHARE) >= 0.5, mode
        assert sized.evaluate(SMALLEST) >= 8.99


def test_every_layout_is_in_reach_of_a_narrow_page(page: Any) -> None:
    """As JupyterLab has it with its file browser beside a window of 800 pixels."""
    page.set_viewport_size({"width": 400, "height": 700})
    drawn(page)
    tabs = page.locator(".wb-layouts [role=tab]")
    last = "[data-key=mode-run]"
    assert tabs.count() == 8 and page.locator(last).inner_text() == "Run"
    assert page.evaluate(IN_SIGHT, [last, ".wb-more-layouts", "[data-key=export]"]) == []


def test_choices_are_as_wide_as_their_names(page: Any) -> None:
    for width in (800, 953, 1100, 1400):
        page.set_viewport_size({"width": width, "height": 640})
        page.focus(".wb")
        keys(page, "3")
        drawn(page)
        for name in ("kernel", "variant"):
            choice = page.locator(f".wb-choices [data-key={name}]")
            room = choice.evaluate("""(e) => {
              const whole = e.cloneNode(true);
              whole.style.cssText = "flex: none; position: absolute";
              e.parentNode.append(whole);
              const lacks = whole.offsetWidth - e.offsetWidth;
              whole.remove();
              return lacks;
            }""")
            assert room <= 1, (width, name)


def test_it_is_as_high_as_the_window_has_room(page: Any) -> None:
    for height in (900, 1080, 1400):
        page.set_viewport_size({"width": 1400, "height": height})
        drawn(page)
        assert page.evaluate("document.querySelector('.wb').offsetHeight") >= height - 170


def test_between_open_columns_the_plan_has_room(page: Any) -> None:
    page.set_viewport_size({"width": 800, "height": 640})
    page.focus(".wb")
    keys(page, "3 [ ] \\")
    page.wait_for_selector(".wb-left")
    drawn(page)
    assert page.evaluate(SCROLLED) == []
    assert page.evaluate(IN_SIGHT, [".wb-player .wb-button", ".wb-player-steps"]) == []
    stage = page.locator(".wb-plan .wb-g-stage >> visible=true").bounding_box()
    assert stage["width"] >= 200 and stage["height"] >= 150


def test_what_a_step_changed_is_in_sight_and_not_covered(sized: Any) -> None:
    """In a pass each of whose steps changes few nodes."""
    sized.focus(".wb")
    keys(sized, "2")
    sized.click('.wb-rw-pass:has-text("rangeify")')
    for more in ("", "g"):
        sized.focus(".wb")
        keys(sized, f"Home {more}")
        for _ in range(4):
            keys(sized, "j")
            drawn(sized)
            assert sized.evaluate(COVERED) == []
            assert sized.evaluate(SMALLEST) >= 8.99


def test_a_column_is_folded_by_its_button_and_by_its_key(page: Any) -> None:
    page.set_viewport_size(SMALL)
    for pane, key, column in (("left", "[", ".wb-left"), ("right", "]", ".wb-right")):
        button = page.locator(f"[data-key=fold-{pane}]")
        assert button.get_attribute("aria-expanded") == "true"
        button.click()
        assert not page.is_visible(column)
        assert button.get_attribute("aria-expanded") == "false"
        assert focused(page) == f"fold-{pane}"
        keys(page, key)
        assert page.is_visible(column)
    keys(page, "3")
    assert not page.is_visible(".wb-left")
    page.select_option("select[aria-label=kernel]", "1")
    keys(page, "[")
    page.locator(".wb-kernels [aria-selected=true]", has_text="2").wait_for()
    page.click("[data-key=fold-aside]")
    assert not page.is_visible(".wb-plan-reasons")


WIDTH = "(selector) => document.querySelector(selector).getBoundingClientRect().width"


def test_a_divider_is_dragged_or_moved_by_keys_and_remembered(page: Any) -> None:
    was = page.evaluate(WIDTH, ".wb-left")
    box = page.locator("[data-key=divider-left]").bounding_box()
    x, y = box["x"] + 2, box["y"] + 200
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y, steps=3)
    page.mouse.up()
    dragged = page.evaluate(WIDTH, ".wb-left")
    assert dragged == pytest.approx(was + 60, abs=2)
    assert focused(page) == "divider-left"
    keys(page, "ArrowLeft")
    narrower = page.evaluate(WIDTH, ".wb-left")
    assert narrower < dragged - 10
    code = page.evaluate(WIDTH, ".wb-right")
    page.focus("[data-key=divider-right]")
    keys(page, "ArrowLeft")
    assert page.evaluate(WIDTH, ".wb-right") > code + 10
    assert page.get_attribute("[data-key=divider-right]", "aria-orientation") == "vertical"
    page.reload()
    page.wait_for_selector(".wb[data-mode=tune]")
    assert page.evaluate(WIDTH, ".wb-left") == pytest.approx(narrower, abs=1)
    page.dblclick("[data-key=divider-left]")
    middle = page.evaluate(WIDTH, "[data-pane=opts]")
    assert page.evaluate(WIDTH, ".wb-left") == pytest.approx(middle, abs=1)
    page.click("[data-key=reset-layout]")
    assert page.evaluate(WIDTH, ".wb-left") == pytest.approx(was, abs=1)


def test_where_nothing_is_kept_panes_are_as_at_first(page: Any) -> None:
    """What another program wrote there is no reason to show nothing."""
    for text in (
        "{",
        "5",
        "null",
        '{"page.html": {"tune wide": {"tree": {"pane": "none"}, "bars": 0}}}',
        '{"page.html": 7}',
    ):
        page.evaluate("text => localStorage.setItem('workbench-board', text)", text)
        page.reload()
        page.wait_for_selector(".wb[data-mode=tune]")
        assert page.is_visible(".wb-code-body [data-line]")
