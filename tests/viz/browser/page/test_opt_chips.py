"""The opts of a variant as things: chips that are changed, removed and moved, and as text; what
Python says of a list stands there before it is applied."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import COPIED, FAINT, shown
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import focused, keys, texts
from tests.viz.record.support import exported, plain
from tests.viz.session.support import done, session_of
from tests.viz.support import matmul
from workbench.viz.session.session import Session

LIST = 'UPCAST("g1", 2), UNROLL("r0", 4), UPCAST("g0", 2)'
CHIPS = "[aria-label='opts of this variant'] [role=option]"
VARIANT = "[aria-label=variants] [role=treeitem]"


@pytest.fixture
def session(nothing_saved: Path) -> Iterator[Session]:
    with session_of(matmul()) as matmul_session:
        done(matmul_session, "paste", variant=0, text=LIST)
        yield matmul_session


def chips(page: Any) -> list[str]:
    return [" ".join(text.split()) for text in texts(page, CHIPS)]


def test_chips_are_changed_moved_and_removed(
    browser: Any, session: Session, tmp_path: Path
) -> None:
    with LivePage(browser, tmp_path, session) as live:
        page = live.page
        live.answer()
        page.click("[data-key=variant-1]")
        assert chips(page) == ["UPCAST g1 2", "UNROLL r0 4", "UPCAST g0 2"]
        assert page.evaluate(FAINT) == []
        page.click("[data-key=opt-1]")
        live.answer("opts")
        assert texts(page, "[data-key^=amount-]") == ["whole", "2", "4", "8"]
        page.fill("[data-key=opt-amount]", "3")
        page.press("[data-key=opt-amount]", "Enter")
        live.answer("opts")
        assert chips(page)[1] == "UNROLL r0 3 ✗"
        assert "3 does not divide 8" in page.inner_text(".wb-opt-verdict")
        assert page.locator(":text-is('Apply these')").count() == 0, "it is not legal"
        page.click("[data-key=amount-8]")
        live.answer("opts")
        assert page.inner_text(".wb-opt-verdict") == "legal: 3 opts"
        page.focus("[data-key=opt-2]")
        keys(page, "<")
        live.answer("opts")
        assert chips(page) == ["UPCAST g1 2", "UPCAST g0 2", "UNROLL r0 8"]
        assert focused(page) == "opt-1", "it goes along"
        page.focus("[data-key=opt-0]")
        keys(page, "Delete")
        live.answer("opts")
        assert chips(page) == ["UPCAST g0 2", "UNROLL r0 8"] and focused(page) == "opt-0"
        page.click(":text-is('Apply these')")
        live.answer("paste")
        assert chips(page) == ["UPCAST g0 2", "UNROLL r0 8"]
        assert page.get_attribute("[data-key=variant-2]", "aria-selected") == "true"
        row = plain(session.row(2))
        assert row["opts"] == ['UPCAST("g0", 2)', 'UNROLL("r0", 8)']
        page.click("[data-key=variant-1]")
        assert chips(page) == ["UPCAST g1 2", "UNROLL r0 4", "UPCAST g0 2"], "as it was"


def test_chips_are_dragged_and_a_refused_order_says_why(
    browser: Any, session: Session, tmp_path: Path
) -> None:
    """As keys do it; a list that is not legal is not applied."""
    first = 'UPCAST("g1", 2), UNROLL("r0", 4), UNROLL("r0", 2)'
    done(session, "paste", variant=0, text=first)
    with LivePage(browser, tmp_path, session, width=953) as live:
        page = live.page
        live.answer()
        page.click("[data-key=variant-2]")
        assert "on plain:" in page.inner_text(".wb-opts-row")
        chip, last = (page.locator(f"[data-key=opt-{place}]") for place in (0, 2))
        chip.drag_to(last, target_position={"x": last.bounding_box()["width"] - 3, "y": 8})
        live.answer("opts")
        assert chips(page) == ["UNROLL r0 4", "UNROLL r0 2", "UPCAST g1 2"]
        assert page.inner_text(".wb-opt-verdict") == "legal: 3 opts"
        page.click("[data-key=opt-1]")
        live.answer("opts")
        page.fill("[data-key=opt-amount]", "4")
        page.press("[data-key=opt-amount]", "Enter")
        live.answer("opts")
        verdict = " ".join(page.inner_text(".wb-opt-verdict").split())
        assert verdict.startswith("✗ cannot apply UNROLL r0 4 because") and " try " in verdict
        last.drag_to(page.locator("[data-key=opt-0]"), target_position={"x": 2, "y": 8})
        live.answer("opts")
        assert chips(page) == ["UPCAST g1 2", "UNROLL r0 4", "UNROLL r0 4 ✗"]
        page.focus("[data-key=opt-0]")
        keys(page, "a")
        assert "the list is not legal" in page.inner_text(".wb-notice")
        page.focus("[data-key=opt-2]")
        keys(page, "Delete")
        live.answer("opts")
        assert focused(page) == "opt-1"
        keys(page, "a")
        live.answer("paste")
        assert plain(session.row(3))["opts"] == ['UPCAST("g1", 2)', 'UNROLL("r0", 4)']
        assert page.faults == []


def test_the_list_as_text_says_what_it_is_applied_to(
    browser: Any, session: Session, tmp_path: Path
) -> None:
    """It is the list of the variant, to edit: not one that is applied after it."""
    with LivePage(browser, tmp_path, session) as live:
        page = live.page
        live.answer()
        assert "on the kernel without opts" in page.get_attribute("[data-key=paste]", "placeholder")
        page.click("[data-key=variant-1]")
        page.click("[data-key=opts-as]")
        assert page.input_value("[data-key=paste]") == LIST
        page.fill("[data-key=paste]", 'UPCAST("g1", 2), UPCAST("g1", 3)')
        live.answer("opts")
        assert "3 does not divide 2" in page.inner_text(".wb-opt-verdict")
        page.press("[data-key=paste]", "Enter")
        live.answer("paste")
        assert "3 does not divide 2" in page.inner_text(".wb-opt-verdict")
        assert page.input_value("[data-key=paste]").endswith('("g1", 3)'), "to mend it"
        assert page.locator(".wb-error:visible").count() == 0, "it is said once"
        page.fill("[data-key=paste]", "UPCAST(")
        live.answer("opts")
        assert "cannot read the opts" in page.inner_text(".wb-opt-verdict")
        assert page.input_value("[data-key=paste]") == "UPCAST("
        page.fill("[data-key=paste]", 'UPCAST("g1", 4)')
        page.press("[data-key=paste]", "Enter")
        live.answer("paste")
        assert plain(session.row(2))["opts"] == ['UPCAST("g1", 4)']


def test_a_typed_list_stands_below_the_kernel_that_it_is_applied_to(
    browser: Any, session: Session, tmp_path: Path
) -> None:
    """It stood below what was selected, with opts that are not its own."""
    done(session, "paste", variant=1, text='UPCAST("g1", 4)')
    done(session, "paste", variant=1, text=LIST + ', UNROLL("r0", 2)')
    assert [session.row(n).parent for n in (2, 3)] == [1, 1], "to which Undo leads back"
    with LivePage(browser, tmp_path, session) as live:
        live.answer()
        levels = [
            live.page.get_attribute(f"[data-key=variant-{n}]", "aria-level") for n in range(4)
        ]
        assert levels == ["1", "2", "2", "3"]


def test_variants_say_what_they_are_and_are_named_and_deleted(
    browser: Any, session: Session, tmp_path: Path
) -> None:
    """Without a tooltip: below its parent a variant says what it adds; by mouse and by keys."""
    done(session, "apply", variant=1, opt='UPCAST("g1", 2)')
    done(session, "apply", variant=2, opt='UNROLL("r0", 2)')
    with LivePage(browser, tmp_path, session) as live:
        page = live.page
        live.answer()
        names = [text.split("\n")[0].strip() for text in texts(page, f"{VARIANT} .wb-words")]
        assert names == [
            "plain", "UPCAST g1 2, UNROLL r0 4, UPCAST g0 2", "+ UPCAST g1 2",
            "+ UNROLL r0 2",
        ]  # fmt: skip
        page.focus("[data-key=variant-2]")
        keys(page, "F2")
        page.wait_for_function("document.activeElement.dataset.key === 'name'")
        page.keyboard.press("Control+A")
        page.keyboard.type("best <b>so far")
        page.keyboard.press("Enter")
        live.answer("name")
        assert "best <b>so far" in page.inner_text("[data-key=variant-2]")
        page.focus("[data-key=variant-2]")
        keys(page, "Delete")
        live.answer("delete")
        page.wait_for_selector("[data-key=variant-2]", state="detached")
        assert page.get_attribute("[data-key=variant-1]", "aria-selected") == "true"
        assert page.get_attribute("[data-key=variant-3]", "aria-level") == "3"
        page.click("[data-key=bring-back]")
        live.answer("delete")
        page.wait_for_selector("[data-key=variant-2]")
        page.click("[data-key=variant-3]")
        page.click("[data-key=delete]")
        live.answer("delete")
        page.wait_for_selector("[data-key=variant-3]", state="detached")
        page.click("[data-key=variant-0]")
        assert page.locator("[data-key=delete]").count() == 0, "plain stays"


@pytest.mark.parametrize("dark", [False, True])
def test_chips_offline_are_to_look_at(
    browser: Any, session: Session, tmp_path: Path, dark: bool
) -> None:
    for page in shown(browser, tmp_path, exported(plain(session.record)), dark=dark):
        page.click("[data-key=variant-1]")
        page.click("[data-key=opt-1]")
        assert "UNROLL:" in page.inner_text(".wb-opt-open")
        assert page.is_disabled("[data-key=opt-amount]")
        for key in ("opt-amount", "opt-remove", "opt-earlier"):
            assert "needs the Python session" in page.get_attribute(f"[data-key={key}]", "title")
        page.focus("[data-key=opt-1]")
        keys(page, "Delete < >")
        page.dispatch_event("[data-key=opt-remove]", "click")
        assert len(chips(page)) == 3
        assert page.evaluate(FAINT) == []


def test_each_variant_is_copied_as_python_from_its_row(
    browser: Any, record: Any, tmp_path: Path
) -> None:
    """By the pointer where it is selected, by a key where it has the focus; nothing moves for
    that, and the click that selects a row copies nothing."""
    python = [row["python"] for row in record["variants"] if row["kernel"] == 0]
    assert len(set(python)) == len(python) > 1
    for page in shown(browser, tmp_path, exported(record)):
        page.evaluate(COPIED)
        rows = page.locator(VARIANT)
        for mode in "13":
            page.click(".wb-header", position={"x": 4, "y": 4})
            page.keyboard.press(mode)
            if mode == "3":
                page.keyboard.press("[")  # the column with the variants
            place = int(rows.nth(1).get_attribute("data-key").split("-")[1])
            before = rows.nth(1).bounding_box()
            rows.nth(1).click()
            assert page.evaluate("window.copied ?? null") != record["variants"][place]["python"]
            page.click(f"[data-key=copy-variant-{place}]")
            assert page.evaluate("copied") == record["variants"][place]["python"]
            assert rows.nth(1).bounding_box() == before
            name = rows.nth(1).locator(".wb-words").first.bounding_box()
            button = page.locator(f"[data-key=copy-variant-{place}]").bounding_box()
            assert button["x"] >= name["x"] + name["width"], "it covers no name"
            assert before["y"] - 2 <= button["y"] <= before["y"] + before["height"]
            rows.nth(0).focus()
            keys(page, "y")
            assert page.evaluate("copied") == python[0]
            assert rows.nth(1).get_attribute("aria-selected") == "true"
            rows.nth(0).focus()
            keys(page, "j")
            keys(page, "y")
            assert page.evaluate("copied") == record["variants"][place]["python"]
            rows.nth(0).click()
            page.evaluate("window.copied = null")


def test_as_text_is_where_the_reader_types_next(
    browser: Any, session: Session, tmp_path: Path
) -> None:
    with LivePage(browser, tmp_path, session) as live:
        live.answer()
        live.page.click("[data-key=variant-1]")
        live.page.click("[data-key=opts-as]")
        assert focused(live.page) == "paste"


def test_a_refused_list_is_gone_once_another_variant_is_selected(
    browser: Any, session: Session, tmp_path: Path
) -> None:
    with LivePage(browser, tmp_path, session) as live:
        page = live.page
        live.answer()
        page.click("[data-key=variant-0]")
        for text, left in (('UPCAST("g9", 7)', ""), ('UPCAST("g1", 2)', 'UPCAST("g1", 2)')):
            page.fill("[data-key=paste]", text)
            live.answer("opts")
            page.click("[data-key=variant-1]")
            live.answer()
            page.click("[data-key=variant-0]")
            live.answer()
            assert page.input_value("[data-key=paste]") == left
