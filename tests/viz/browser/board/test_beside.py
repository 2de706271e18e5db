"""Compare before a real session, pane by pane: a variant beside another one, another device, plan
or set of rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.board.test_columns import cells
from tests.viz.browser.browser import FAINT, drawn
from tests.viz.browser.page.live import LivePage
from tests.viz.browser.page.support import texts
from tests.viz.record.support import plain
from tests.viz.session.handlers.test_plan_comparison import product
from tests.viz.session.support import done, session_of
from tests.viz.support import matmul, softmax
from workbench.viz.session.session import Session

BOXES = """(pane) => [...document.querySelectorAll(`[data-pane="${pane}"] .wb-g-node`)].map((box) =>
  [box.querySelector("title, text").textContent,
   [..."+\u2212≠"].find((sign) => box.querySelector(".wb-g-sign")?.textContent === sign) ?? ""])"""
"""The boxes of a graph: their first text, and their sign."""
CUT = """() => [...document.querySelectorAll(".wb-player .wb-button")].filter((button) => {
  const [own, pane] = [button, button.closest(".wb-frame-body")].map((e) => e.getBoundingClientRect());
  return own.bottom > pane.bottom || own.right > pane.right;
}).map((button) => button.textContent)"""
"""The buttons of a film that are not in sight."""
PLACE = """(pane) => {
  const world = document.querySelector(`[data-pane="${pane}"] .wb-g-svg > g`);
  return world.getAttribute("transform").match(/[-.0-9]+/g).map(Number);
}"""
"""Where a drawing is: its origin, its scale."""
BESIDE, NOW = "[data-pane='{}@']", "[data-pane='{}']"


@pytest.fixture
def session(nothing_saved: Path) -> Iterator[Session]:
    with session_of(matmul()) as matmul_session:
        done(matmul_session, "auto", kernel=0)
        for variant in (0, 1):
            done(matmul_session, "passes", variant=variant)
        yield matmul_session


@pytest.fixture
def live(browser: Any, session: Session, tmp_path: Path) -> Iterator[LivePage]:
    with LivePage(browser, tmp_path, session) as page:
        page.answer()
        page.page.click("[data-key=variant-1]")
        page.page.evaluate("show({ mode: 'compare' })")
        page.answer("compare", "pairs")
        yield page


def signs(page: Any, pane: str) -> set[str]:
    drawn(page)
    return {sign for _, sign in page.evaluate(BOXES, pane)}


def test_graphs_loops_and_source_stand_in_pairs(live: LivePage, session: Session) -> None:
    page = live.page
    for pane in ("graph", "loops", "code"):
        assert page.locator(BESIDE.format(pane)).is_visible()
        assert page.locator(NOW.format(pane)).is_visible()
    expect(page.locator(".wb-compare")).not_to_contain_text("kernel 1 of 1")
    boxes = [page.evaluate(BOXES, pane) for pane in ("graph@", "graph")]
    assert "≠" in signs(page, "graph@") & signs(page, "graph")
    assert {sign for _, sign in boxes[0]} <= {"", "≠", "\u2212"}, "nothing is new before"
    assert {sign for _, sign in boxes[1]} <= {"", "≠", "+"}, "nothing is gone now"
    axes = {axis.name for axis in session.kernels[0].axes}
    loops = texts(page, f"{BESIDE.format('loops')} .wb-loop .wb-code")
    assert axes <= set(loops), "the other variant's loops"
    assert page.locator(f"{NOW.format('loops')} .wb-loop.wb-differs").count() > 0
    lines = [
        page.locator(f"{side.format('code')} .wb-line{kind}").count()
        for side, kind in ((BESIDE, ".wb-removed"), (NOW, ".wb-added"))
    ]
    assert all(lines)
    assert page.locator(f"{BESIDE.format('code')} .wb-added").count() == 0
    assert page.evaluate(FAINT) == []


def test_graphs_stand_at_one_pass_before_and_after_a_side_is_compiled(
    browser: Any, nothing_saved: Path, tmp_path: Path
) -> None:
    """A side that was not compiled has the passes of the plan alone: both show one of these."""
    held: list[Any] = []
    with session_of(matmul()) as session, LivePage(browser, tmp_path, session) as live:
        done(session, "passes", variant=0)
        done(session, "auto", kernel=0)
        assert session.row(0).passes and not session.row(1).passes
        handle = session.handle

        def handle_others(request: Any, page: Any) -> None:
            if request["do"] == "passes":
                held.append(request)
            else:
                handle(request, page)

        session.handle = handle_others  # type: ignore[method-assign]
        page = live.page
        live.answer()
        page.evaluate("show({ mode: 'compare' })")
        page.select_option("[data-key='variant beside']", label="auto")
        live.answer("compare", "passes")
        heads = [f"{side.format('graph')} .wb-rw-head" for side in (BESIDE, NOW)]
        passes = [texts(page, f"{head} b") for head in heads]
        assert passes[0] == passes[1] != ["statement-tree"]
        assert "not compiled yet: auto" in page.inner_text(heads[0])
        assert "not compiled" not in page.inner_text(heads[1])
        session.handle = handle  # type: ignore[method-assign]
        for request in held:
            session.handle(request, live)
        live.answer("pairs")
        assert [texts(page, f"{head} b") for head in heads] == [["statement-tree"]] * 2
        assert "not compiled" not in page.inner_text(heads[0])
        assert "" in signs(page, "graph@") & signs(page, "graph"), "most nodes have partners"


def test_helpers_are_folded_on_both_sides_or_on_none(live: LivePage, session: Session) -> None:
    page = live.page
    codes = [side.format("code") for side in (BESIDE, NOW)]
    folds = [f"{code} .wb-unfold" for code in codes]
    before, now = (int(texts(page, fold)[0].split()[1]) for fold in folds)
    few = plain(session.record.variants[0].code)
    for part in "lines", "links":
        few[0][part] = few[0][part][before - 3 :]
    patch = {"append": {}, "set": [[["variants", 0, "code"], few]]}
    page.evaluate("patch => hear({ patch })", patch)
    for fold, count in zip(folds, (3, now), strict=True):
        expect(page.locator(fold)).to_have_text(f"show {count} lines of types and helpers")
    page.click(folds[0])
    for code in codes:
        expect(page.locator(f"{code} .wb-line >> nth=0")).to_have_attribute("data-line", "1")


def test_both_graphs_have_one_scale_and_move_together(live: LivePage) -> None:
    page = live.page
    panes = ("graph@", "graph")

    def places() -> list[tuple[float, ...]]:
        drawn(page)
        return [tuple(page.evaluate(PLACE, pane)) for pane in panes]

    page.set_viewport_size({"width": 1400, "height": 1000})
    at_first = places()
    assert at_first[0][2] == at_first[1][2]
    page.click(f"{NOW.format('graph')} [aria-label='zoom in']")
    larger = places()
    assert larger[0][2] == larger[1][2] == pytest.approx(1.3 * at_first[0][2], abs=1e-3)
    stage = page.locator(f"{BESIDE.format('graph')} .wb-g-stage").bounding_box()
    page.mouse.move(stage["x"] + 5, stage["y"] + 5)
    page.mouse.down()
    page.mouse.move(stage["x"] + 25, stage["y"] + 45, steps=4)
    page.mouse.up()
    moved = places()
    for before, now in zip(larger, moved, strict=True):
        assert [b - a for a, b in zip(before, now, strict=True)] == pytest.approx([20, 40, 0])
    page.click(f"{BESIDE.format('graph')} [aria-label^='fit everything']")
    fitted = places()
    assert fitted[0][2] == fitted[1][2] <= at_first[0][2]


def test_what_is_selected_on_one_side_is_selected_on_the_other(live: LivePage) -> None:
    page = live.page
    page.set_viewport_size({"width": 1400, "height": 1000})  # the boxes of both graphs are in sight
    row = f"{BESIDE.format('loops')} [data-key=loop-1]"
    page.click(row)
    assert page.get_attribute(row, "aria-selected") == "true"
    # a node of the graph beside it, and its partner
    middle = "(box) => { const { x, y, width, height } = box.getBoundingClientRect();" + (
        " return [x + width / 2, y + height / 2]; }"
    )
    box = page.locator(f"{BESIDE.format('graph')} .wb-g-node", has_text="max").first
    x, y = box.locator(".wb-g-box").evaluate(middle)
    page.mouse.click(x, y)
    picked = page.locator("[data-pane^=graph] .wb-g-node.wb-g-picked")
    expect(picked).to_have_count(2)
    page.mouse.move(
        *page.locator(f"{NOW.format('graph')} .wb-g-node", has_text="max")
        .first.locator(".wb-g-box")
        .evaluate(middle)
    )
    expect(page.locator(f"{BESIDE.format('graph')} .wb-g-lit")).to_have_count(1)


def test_a_rule_that_fired_on_one_side_opens_its_step(live: LivePage, session: Session) -> None:
    page = live.page
    rows = cells(page, "rules that fired")
    label = next(name for name, (before, now) in rows.items() if before == "–" and '"' not in name)
    of_pass, rule = label.split(": ", 1)
    page.click(f".wb-compare-look:text-is('{label}')")
    live.answer()
    heads = texts(page, f"{NOW.format('graph')} .wb-rw-head b")
    assert heads == [of_pass]
    assert page.locator(f"{NOW.format('graph')} .wb-rw-at").text_content() != "before"
    # the passes say so, too
    page.select_option("[data-key=choose-loops]", "passes")
    mark = page.locator(f"{NOW.format('passes')} .wb-rw-pass", has_text="≠").first
    assert rule in "".join(
        page.locator(f"{NOW.format('passes')} .wb-rw-pass").evaluate_all(
            "(rows) => rows.map((row) => row.title)"
        )
    )
    expect(mark).to_be_visible()


def test_another_device_stands_beside_this_one(live: LivePage, session: Session) -> None:
    page = live.page
    page.select_option("[data-key='device beside']", label="on CUDA:H100")
    live.answer("compare", "pairs")
    assert cells(page, "kernel")["device"] == ["CUDA:H100", session.device]
    names = texts(page, ".wb-frame-name >> visible=true")
    assert set(names) == {"auto on CUDA:H100", f"auto on {session.device}"}
    parallel = cells(page, "kernel")["in parallel"]
    assert "work-item" in parallel[0] and parallel[1] == "1 thread"
    tabs = texts(page, f"{BESIDE.format('code')} [role=tab]")
    assert "CUDA" in tabs and "CUDA" not in texts(page, f"{NOW.format('code')} [role=tab]")
    assert signs(page, "graph@") == {"", "≠"} or "\u2212" in signs(page, "graph@")
    assert session.device == plain(session.record)["device"] == "LLVM"
    # its panes ask for nothing: their record has all
    assert not [r for r in live.answer() if r["do"] != "ping"]
    page.select_option("[data-key='device beside']", label="on LLVM")
    live.answer("compare")
    assert "device" not in cells(page, "kernel")


def test_a_rule_less(live: LivePage) -> None:
    page = live.page
    page.select_option("[data-key='rules beside']", label="without form-fma")
    live.answer("compare", "pairs")
    assert cells(page, "kernel")["rules off"] == ["form-fma", "none"]
    fired = cells(page, "rules that fired")["decompose: form-fma"]
    assert fired[0] == "–" and int(fired[1]) > 0


def test_plans_pane_by_pane(browser: Any, nothing_saved: Path, tmp_path: Path) -> None:
    with session_of(product()) as session:
        session.complete()  # the memory, too
        with LivePage(browser, tmp_path, session) as live:
            check_plans(live)


def check_plans(live: LivePage) -> None:
    page = live.page
    live.answer()
    page.evaluate("show({ mode: 'compare_plans' })")
    live.answer("compare")
    page.select_option("[data-key='plan beside']", label="plan: matmul 96x96x1 fused")
    live.answer("compare")
    kernels = cells(page, "whole plan")["kernels"]
    assert [text.split(" ")[0] for text in kernels] == ["2", "3"]
    times = cells(page, "time and answer")["time"]
    assert [text.split(":")[0] for text in times] == ["kernel 1 of 2", "kernel 1 of 3"]
    headings = page.locator(".wb-compare h4").all_text_contents()
    assert headings[0].startswith("whole plan") and headings[1].startswith("time and answer")
    decided = [
        set(texts(page, f"{side.format('decisions')} [data-item]")) for side in (BESIDE, NOW)
    ]
    assert decided[0] and decided[1] and decided[0] != decided[1]
    for pane in ("plan", "memory", "decisions"):
        assert page.locator(BESIDE.format(pane)).is_visible()
        drawn(page)
        marks = ".wb-g-sign" if pane == "plan" else ".wb-differs"
        assert any(
            page.locator(f"{side.format(pane)} {marks}").count() for side in (BESIDE, NOW)
        ), pane
    said = page.locator(f"{BESIDE.format('decisions')} .wb-differs").first
    assert "in the other plan" in str(said.get_attribute("title"))
    counts = [page.locator(f"{side.format('plan')} .wb-g-stage").count() for side in (BESIDE, NOW)]
    assert counts == [1, 1]
    assert page.evaluate(PLACE, "plan@")[2] == page.evaluate(PLACE, "plan")[2]
    assert page.evaluate(FAINT) == []
    for width in (1400, 953):
        page.set_viewport_size({"width": width, "height": 700})
        drawn(page)
        assert page.evaluate(CUT) == [], width
        wide = page.locator(".wb-compare-scroll").evaluate_all(
            "(tables) => tables.filter((e) => e.scrollWidth > e.clientWidth).length"
        )
        assert wide == 0, width


def test_a_variant_of_a_file_stands_beside(
    live: LivePage, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen by a typed path, where it is missing with a sentence, or in the list; then its own
    variant."""
    page = live.page
    monkeypatch.chdir(tmp_path)
    with session_of(softmax()) as other:
        mine = done(other, "paste", variant=0, text='UPCAST("g0", 2)', name="mine")["variant"]
        ex = other.recorder.exploration
        ex.display.session = other
        ex.save("softmax.json")
        ex.display.session = None
        axes = {axis.name for axis in other.kernels[mine].axes}
    path = "[data-key='file beside']"
    page.fill(path, "softmacks.json")
    page.press(path, "Enter")
    live.answer("compare")
    said = page.locator(".wb-compare .wb-error")
    expect(said).to_contain_text("cannot load softmacks.json")
    expect(said).to_contain_text("ex.save(path)")
    plans = page.locator("[data-key='plan beside']")
    expect(page.locator(".wb-compare")).not_to_contain_text("comparing")
    expect(page.locator(BESIDE.format("loops"))).to_contain_text("Nothing stands beside")
    assert plans.evaluate("(list) => list.selectedOptions[0].text") == "file: softmacks.json"
    assert page.input_value(path) == "softmacks.json", "it can be corrected"
    plans.select_option(label="this plan")
    live.answer("compare")
    expect(said).to_have_count(0)
    assert page.input_value(path) == ""
    plans.select_option(label="file: softmax.json")
    live.answer("compare")
    assert texts(page, "[data-key='its variant'] option")[0] == "with the same opts"
    page.select_option("[data-key='its variant']", label="its own: mine of max+exp")
    live.answer("compare")
    assert page.locator("[data-key='variant beside']").count() == 0, "it has no say now"
    assert texts(page, ".wb-compare thead th")[0] == "mine, softmax.json"
    assert cells(page, "kernel")["opts"][0] == "UPCAST g0 2"
    times = cells(page, "time and answer")["time"]
    assert [text.split(":")[0] for text in times] == ["kernel 1 of 2", "kernel 1 of 1"]
    loops = texts(page, f"{BESIDE.format('loops')} .wb-loop .wb-code")
    assert axes <= set(loops), "its loops stand beside"
    assert texts(page, ".wb-frame-name >> visible=true")[0] == "mine, softmax.json"
    page.select_option("[data-key='device beside']", label="on CUDA:H100")
    live.answer("compare")
    assert cells(page, "kernel")["device"] == ["CUDA:H100", session.device]
    page.select_option("[data-key='its variant']", label="with the same opts")
    live.answer("compare")
    assert cells(page, "kernel").get("device") is None, "on this page's device again"
    expect(page.locator("[data-key='variant beside']")).to_be_visible()
    assert page.evaluate(FAINT) == []


def test_another_exploration_answers_in_its_own_panes(
    live: LivePage, session: Session, tmp_path: Path
) -> None:
    page = live.page
    with session_of(softmax()) as other:
        done(other, "auto", kernel=0)
        page.select_option("[data-key='rules beside']", label="without form-fma")
        live.answer("compare")  # the plans are listed again
        page.select_option("[data-key='selected variant']", label="plain")
        plans = done(session, "compare", variants=[0])["plans"]
        title = next(title for name, title, _ in plans if name == f"page {other.number}")
        page.select_option("[data-key='rules beside']", label="all rules")
        live.answer("compare")
        page.select_option("[data-key='plan beside']", label=f"exploration: {title}")
        live.answer("compare")
        number = [*session.sides][-1]
        assert session.sides[number].record.key == other.record.key
        for pane in ("loops@", "loops"):
            page.select_option(f"[data-key='choose-{pane}']", pane.replace("loops", "opts"))
        asked = live.answer("offers")
        assert number in {r["record"] for r in asked if r["do"] == "offers" and "record" in r}
        offer = page.locator(f"{BESIDE.format('opts')} .wb-offer[data-item]")
        expect(offer.first).to_be_visible()
        differs = offer.locator(".wb-differs").or_(offer.and_(page.locator(".wb-differs")))
        assert "not possible on the other side" in str(differs.first.get_attribute("title"))
        page.click("[data-key=compare-time]")
        live.answer("measure_beside")
        measured = cells(page, "time and answer")
        assert all("s" in cell for cell in measured["time"])
        words = measured["beside the first"][1]
        assert words == "no measurable difference" or " to " in words
        # a record that is not kept any more says so
        session.sides.clear()
        offer.first.locator("button").first.click()
        live.answer("apply")
        silence = page.locator(f"{BESIDE.format('opts')} [role=status]", has_text="compare again")
        expect(silence).to_contain_text("not kept any more")


def test_the_plan_before_stands_beside_a_new_plan(
    browser: Any, nothing_saved: Path, tmp_path: Path
) -> None:
    with session_of(product()) as session:
        kept = next(row for row in session.record.plan.decisions if not row.is_requested)
        done(session, "replan", node=kept.node, store=not kept.stored)
        with LivePage(browser, tmp_path, session) as live:
            page = live.page
            live.answer()
            page.evaluate("show({ mode: 'compare_plans' })")
            waiting = page.locator(f"{BESIDE.format('plan')} p")
            expect(waiting).to_have_text("comparing …")
            live.answer("compare")
            chosen = page.locator("[data-key='plan beside'] option:checked")
            assert chosen.inner_text() == "plan: the plan before"
            assert len(set(cells(page, "whole plan")["kernels"])) == 2
            levels = [
                page.locator(f"{side.format('plan')} [data-key=level-kernels]").count()
                for side in (BESIDE, NOW)
            ]
            assert levels in ([0, 0], [1, 1]), "both plans are shown on one level"
            names = texts(page, ".wb-compare-choice > span")
            assert names == ["variant", "plan", "device", "rules", "file", "variant"]
            page.select_option("[data-key='plan beside']", label="this plan")
            live.answer("compare")
            assert chosen.inner_text() == "this plan", "the reader's choice stays"
