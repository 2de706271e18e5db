"""Many kernels in a real browser: a box for what repeats, unfolded by click and by key; the list
of kernels with its figures, its order and its search."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import drawn, shown
from tests.viz.record import models
from tests.viz.record.support import exported, plain
from workbench.viz import explore
from workbench.viz.record.record import build

Record = dict[str, Any]
LABELS = ".wb-plan .wb-g-label"


@pytest.fixture(scope="module")
def record() -> Record:
    """Twelve equal layers and a softmax: 13 kernels, of which the last is fused from several."""
    page_record: Record = plain(build(explore(models.perceptron(12).softmax(-1))))
    return page_record


@pytest.fixture
def opener() -> Any:
    return plan_page


def plan_page(browser: Any, folder: Path, html: str) -> Iterator[Any]:
    for page in shown(browser, folder, html, mode="3"):
        page.wait_for_selector(".wb-plan .wb-g-stage > *")
        drawn(page)
        yield page


OVERLAPPING = """() => {
  const words = [...document.querySelectorAll(".wb-plan .wb-g-words")]
    .map((e) => [e.textContent, e.getBoundingClientRect()]);
  return words.flatMap(([text, a], i) => words.slice(i + 1)
    .filter(([, b]) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
    .map(([other]) => `${text} and ${other}`));
}"""
"""Returns the words on the graph that cover each other."""


def labels(page: Any) -> list[str]:
    drawn(page)
    texts: list[str] = page.locator(LABELS).all_text_contents()
    return texts


def box(label: str) -> str:
    return f".wb-plan .wb-g-node:has(.wb-g-label:text-is('{label}')) .wb-g-box"


def test_what_repeats_is_one_box_that_a_click_unfolds(page: Any, record: Record) -> None:
    (repeat,) = record["plan"]["repeats"]
    group = f"{repeat['module']}: {repeat['times']} × {repeat['title']}"
    assert labels(page)[0] == group and len(labels(page)) == 2
    page.click(box(group))
    page.wait_for_selector(f".wb-plan .wb-g-words-title:has-text('− {group}')")
    kernels = len(record["kernels"])
    assert len(labels(page)) == kernels
    assert page.locator(".wb-plan .wb-g-words-bytes").count() == kernels - 1
    first = record["kernels"][0]["title"]
    page.click(f"{box(first)} >> nth=0")
    page.wait_for_selector(".wb-plan .wb-g-region >> nth=1")  # of the layers, and of the kernel
    assert len(labels(page)) > kernels
    assert f"KERNEL\n1\n{first}" in page.inner_text(".wb-plan-detail")
    page.click(f".wb-plan .wb-g-words-title:has-text('− {group}')")
    page.wait_for_function("document.querySelectorAll('.wb-plan .wb-g-label').length === 2")


def test_the_keys_unfold_the_selected_kernel_by_steps(page: Any, record: Record) -> None:
    page.click("[data-key=fold-left]")
    page.click(".wb-kernels [data-key=kernel-3]")
    page.focus(".wb")
    counts = [len(labels(page))]
    for key in ("o", "o", "O", "O"):
        page.keyboard.press(key)
        counts.append(len(labels(page)))
    folded, kernels = 2, len(record["kernels"])
    assert counts[2] > kernels
    assert counts == [folded, kernels, counts[2], kernels, folded]


IN_SIGHT = """([pane, part]) => {
  const most = document.querySelector(pane).getBoundingClientRect().bottom;
  const parts = [...document.querySelectorAll(`${pane} ${part}`)];
  return parts.filter((e) => e.getBoundingClientRect().bottom <= most).map((e) => e.textContent);
}"""
"""Returns the texts of the parts of a pane that need no scrolling."""


def test_tune_shows_many_kernels_and_what_limits_the_selected_one(session: Any) -> None:
    """Hints, of which that of a baseline grows with the program, stand below what is known."""
    page = session
    page.set_viewport_size({"width": 1400, "height": 900})
    page.evaluate("show({ mode: 'tune' })")
    page.wait_for_selector(".wb-results .wb-hint")
    drawn(page)
    assert len(page.evaluate(IN_SIGHT, [".wb-kernels", "[data-item]"])) >= 9
    assert "BOTTLENECK " in page.evaluate(IN_SIGHT, [".wb-results", "b"])


def test_a_search_finds_what_is_folded_and_unfolds_it(page: Any, record: Record) -> None:
    """Kernels in a fold, then a value in a kernel; the place in the list stays."""
    count = page.locator(".wb-plan .wb-g-count")
    title = record["kernels"][0]["title"]
    alike = sum(kernel["title"] == title for kernel in record["kernels"])
    page.fill(".wb-plan .wb-g-search", title)
    assert count.inner_text() == f"{alike} matches, {alike} folded"
    assert page.locator(".wb-plan .wb-g-found").count() == 1, "the fold is marked"
    page.press(".wb-plan .wb-g-search", "Enter")
    assert len(labels(page)) == len(record["kernels"])
    assert count.inner_text() == f"1 of {alike}"
    page.press(".wb-plan .wb-g-search", "Enter")
    assert count.inner_text() == f"2 of {alike}"
    assert f"KERNEL\n2\n{title}" in page.inner_text(".wb-plan-detail")
    value = record["plan"]["nodes"][-1]
    page.fill(".wb-plan .wb-g-search", f"#{value['n']}")
    assert count.inner_text() == "1 match, 1 folded"
    page.press(".wb-plan .wb-g-search", "Enter")
    assert len(labels(page)) > 2 and count.inner_text() == "1 of 1"
    picked = page.locator(".wb-plan .wb-g-picked .wb-g-label")
    assert picked.text_content() == value["label"]


def test_what_a_search_unfolded_folds_again_but_not_what_the_reader_unfolded(
    page: Any, record: Record
) -> None:
    field, kernels = page.locator(".wb-plan .wb-g-search"), len(record["kernels"])
    inside = next(node for node in record["plan"]["nodes"] if 0 in node["kernels"])
    fold = labels(page)[0]
    for hand in (False, True):
        if hand:
            page.click(box(fold))
            assert len(labels(page)) == kernels
        field.fill(f"#{inside['n']}")
        field.press("Enter")
        assert len(labels(page)) > kernels, "the values of a kernel"
        field.fill(record["kernels"][1]["title"])
        field.press("Enter")
        assert len(labels(page)) == kernels, "the search went on"
        field.fill("")
        assert len(labels(page)) == (kernels if hand else 2)


def test_a_figure_colours_the_kernels(page: Any, record: Record) -> None:
    """Each box has its figure as text, the legend the ends of the scale."""
    title = record["kernels"][0]["title"]
    page.fill(".wb-plan .wb-g-search", title)
    page.press(".wb-plan .wb-g-search", "Enter")
    page.wait_for_function("document.querySelectorAll('.wb-plan .wb-g-label').length > 2")
    boxes = page.locator(".wb-plan .wb-g-node .wb-g-box")
    fills = "all => all.map((e) => e.style.fill)"
    own = boxes.evaluate_all(fills)
    page.select_option("select[aria-label='colours of kernels']", label="by bytes")
    drawn(page)
    legend = page.locator(".wb-plan-scale")
    assert legend.locator("i").count() == 5
    most = max(kernel["bytes"] for kernel in record["kernels"])
    texts = page.locator(".wb-plan .wb-g-sub").all_text_contents()
    least_text, most_text = legend.inner_text().split("\n")[0], legend.inner_text().split("\n")[-1]
    assert {least_text, most_text} <= set(texts) and most > 0
    coloured = boxes.evaluate_all(fills)
    assert coloured != own and all(fill.startswith("rgba(0, 114, 178") for fill in coloured)
    page.select_option("select[aria-label='colours of kernels']", label="by share of peak")
    drawn(page)
    assert "not timed yet" in page.inner_text(".wb-plan-levels")
    page.select_option("select[aria-label='colours of kernels']", label="by kernel")
    drawn(page)
    assert boxes.evaluate_all(fills) == own
    page.select_option("select[aria-label='colours of kernels']", label="by bytes")
    page.reload()
    page.click(".wb-header", position={"x": 4, "y": 4})
    page.keyboard.press("3")
    expect(legend.locator("i")).to_have_count(5)


def test_no_word_covers_another(page: Any) -> None:
    """The title of an unfolded kernel stands beside the bytes that it reads."""
    page.click("[data-key=fold-left]")
    page.click(".wb-kernels [data-key=kernel-3]")
    for _ in range(2):
        page.focus(".wb")
        page.keyboard.press("o")
        drawn(page)
        assert page.locator(".wb-plan .wb-g-words-title").count() > 0
        assert page.evaluate(OVERLAPPING) == []


def test_alike_decisions_are_one_row_that_unfolds(page: Any, record: Record) -> None:
    """By click and by Enter; a value that is selected elsewhere marks the row that it is in."""
    decisions = record["plan"]["decisions"]
    stored = [d for d in decisions if d["stored"] and not d["is_copy"]]
    group = page.locator(".wb-plan-list [data-key^=alike-]")
    inside, items = ".wb-plan-list .wb-plan-inside", ".wb-plan-list [data-item]"
    alike = len(stored) - page.locator(items).count() + 1
    assert group.count() == 1 and alike > 9
    expect(group).to_contain_text(f"{alike} ×")
    group.click()
    assert page.locator(inside).count() == alike
    assert page.locator(items).count() == len(stored) + 1
    page.keyboard.press("Enter")
    assert page.locator(inside).count() == 0
    page.click(".wb-plan-cuts [data-item] >> nth=0")
    assert group.get_attribute("aria-selected") == "true"
    assert "Kernel 1 (" in page.inner_text(".wb-plan-detail")
    group.click()
    page.click(f"{inside} >> nth=3")
    assert page.locator(f"{inside}[aria-selected=true]").count() == 1


def test_values_are_a_button_away(page: Any, record: Record) -> None:
    page.click("[data-key=level-values]")
    page.wait_for_function(
        "n => document.querySelectorAll('.wb-plan .wb-g-region').length === n",
        arg=len(record["kernels"]),
    )
    page.click("[data-key=level-kernels]")
    page.wait_for_function("document.querySelectorAll('.wb-plan .wb-g-label').length === 2")


def test_the_list_is_sorted_and_searched(page: Any, record: Record) -> None:
    page.click("[data-key=fold-left]")
    rows = ".wb-kernels [data-item]"
    count = len(record["kernels"])
    assert page.locator(rows).count() == count
    assert f"{count} KERNELS" in page.inner_text(".wb-kernels").upper()
    page.fill(".wb-kernels input", "softmax-is-no-title")
    assert page.locator(rows).count() == 0
    assert "nothing found" in page.inner_text(".wb-kernels")
    page.fill(".wb-kernels input", record["kernels"][-1]["title"])
    assert page.locator(rows).count() == 1


def test_equal_kernels_are_one_row_by_time(page: Any, record: Record) -> None:
    """With what they take together; a click unfolds it, and the selected kernel is marked in it."""
    page.click("[data-key=fold-left]")
    rows, layers = page.locator(".wb-kernels [data-item]"), len(record["kernels"]) - 1
    page.click("[data-key=sort-time]")
    group = page.locator(".wb-kernels [data-key=equal-0]")
    assert rows.count() == 2 and group.get_attribute("aria-selected") == "true"
    expect(group).to_contain_text(f"{layers} ×")
    group.click()
    assert rows.count() == 1 + layers + 1
    page.click(".wb-kernels [data-key=kernel-3]")
    chosen = page.locator(".wb-kernels [aria-selected=true]")
    assert chosen.get_attribute("data-key") == "kernel-3"
    group.click()
    assert chosen.get_attribute("data-key") == "equal-0"


def test_from_a_kernel_to_the_next_that_is_equal(page: Any, record: Record) -> None:
    (repeat,) = record["plan"]["repeats"]
    last = repeat["times"]
    page.click(box(f"{repeat['module']}: {last} × {repeat['title']}"))
    page.click(".wb-plan .wb-g-node .wb-g-box >> nth=0")
    line = page.locator(".wb-plan-alike")
    assert f"1 of {last} equal kernels" in line.inner_text()
    assert f"round 1 of {last} × {repeat['title']}" in line.inner_text()
    page.click("[data-key='alike1']")
    assert f"2 of {last} equal kernels" in line.inner_text()
    assert page.input_value("select[aria-label=kernel]") == "1"
    page.click("[data-key='alike-1']")
    page.click("[data-key='alike-1']")
    assert f"{last} of {last} equal kernels" in line.inner_text()


def test_a_plan_too_large_to_be_drawn_leads_from_its_pass_to_plan(
    browser: Any, tmp_path: Path, record: Record
) -> None:
    bare = copy.deepcopy(record)
    bare["plan"] |= {"nodes": [], "edges": []}
    place = next(i for i, row in enumerate(bare["passes"]) if row["unit"] == "decision")
    for page in shown(browser, tmp_path, exported(bare), mode="2"):
        page.evaluate("document.querySelector('.wb').focus()")
        page.click(f"[data-key=pass-{place}]")
        page.locator(".wb").press("j")
        said = page.locator(".wb-rw-main > .wb-quiet")
        expect(said).to_contain_text("the plan is too large for one")
        said.locator("button").click()
        expect(page.locator(".wb-plan .wb-g-label").first).to_be_visible()


def test_a_long_title_leaves_the_number_of_kernels_whole(
    browser: Any, tmp_path: Path, record: Record
) -> None:
    long = copy.deepcopy(record)
    long["expr"]["text"] = "ex = explore(a @ b); print(ex.plan); " * 9
    for page in shown(browser, tmp_path, exported(long), mode="3"):
        for width in (1400, 800):
            page.set_viewport_size({"width": width, "height": 800})
            drawn(page)
            headline = page.locator(".wb-title > .wb-words.wb-quiet")
            assert headline.evaluate("e => e.scrollWidth <= e.clientWidth"), width
            title = page.locator(".wb-title .wb-expr")
            assert title.bounding_box()["width"] > 80, width
