"""Plan mode in a real browser: the picture, the reasons, and trying a decision the other way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser.browser import COPIED, drawn, new_page, shown
from tests.viz.record.support import exported, plain
from tests.viz.support import array, softmax
from workbench.tensor.tensor import Tensor
from workbench.viz import Exploration, explore
from workbench.viz.formatters import exploration_bundle
from workbench.viz.page.document import packed
from workbench.viz.record.record import build

Record = dict[str, Any]


@pytest.fixture(scope="module")
def record() -> Record:
    """A record of two kernels: a line of the plan is cut between them."""
    page_record: Record = plain(build(softmax()))
    return page_record


@pytest.fixture
def opener() -> Any:
    return plan_page


def plan_page(browser: Any, folder: Path, html: str) -> Iterator[Any]:
    for page in shown(browser, folder, html, mode="3"):
        for key in "[]":  # the columns beside it are shown, too
            page.keyboard.press(key)
        page.wait_for_selector(".wb-plan .wb-g-stage > *")
        drawn(page)  # it is fitted to the room that it has
        yield page


def stored(record: Record) -> Record:
    """Return the decision about the value that goes through memory between the kernels."""
    nodes = record["plan"]["nodes"]
    cut = [nodes[e["a"]]["n"] for e in record["plan"]["edges"] if e["cut"]]
    return next(d for d in record["plan"]["decisions"] if d["node"] in cut and d["stored"])


def test_why_it_is_cut_is_what_one_finds_first(page: Any, record: Record) -> None:
    detail = page.inner_text(".wb-plan-detail")
    assert "WHY TWO KERNELS?" in detail and stored(record)["reason"] in detail
    assert "12 KiB" in detail  # 64 * 48 float32
    page.focus(".wb")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert "reads it back" in page.inner_text(".wb-plan-detail")
    page.click('[data-key="plan-all"]')
    assert "WHY TWO KERNELS?" in page.inner_text(".wb-plan-detail")


def test_it_opens_in_full_and_nothing_is_covered(page: Any) -> None:
    report = page.evaluate("""() => {
      const box = (e) => e.getBoundingClientRect();
      const stage = box(document.querySelector(".wb-plan .wb-g-stage"));
      const out = (b) => b.left < stage.left || b.right > stage.right || b.top < stage.top || b.bottom > stage.bottom;
      const nodes = [...document.querySelectorAll(".wb-plan .wb-g-node")];
      const words = [...document.querySelectorAll(".wb-plan .wb-g-words-bytes")];
      const covered = (e) => {
        const b = box(e.querySelector("text"));
        return [b.left + 1, b.right - 1].some((x) => !e.contains(document.elementFromPoint(x, (b.top + b.bottom) / 2)));
      };
      return {
        out: nodes.filter((e) => out(box(e.querySelector(".wb-g-box")))).length,
        wide: nodes.flatMap((e) => [...e.querySelectorAll(".wb-g-label, .wb-g-sub")]
          .filter((t) => box(t).width > box(e.querySelector(".wb-g-box")).width)).map((t) => t.textContent),
        covered: words.filter(covered).map((e) => e.textContent),
        small: words.filter((e) => box(e.querySelector("text")).height < 9).length,
      };
    }""")
    assert report == {"out": 0, "wide": [], "covered": [], "small": 0}


def ground(page: Any, kernel: int) -> dict[str, float]:
    """Return where a kernel's ground can be clicked, once the picture has come to rest."""
    drawn(page)
    spot: dict[str, float] = page.evaluate(
        """(k) => {
          const path = document.querySelectorAll(".wb-plan .wb-g-region")[k];
          const { left, right, top, bottom } = path.getBoundingClientRect();
          for (let y = top + 1; y < bottom; y += 2)
            for (let x = left + 1; x < right; x += 2)
              if (document.elementFromPoint(x, y) === path) return { x, y };
        }""",
        kernel,
    )
    return spot


def test_the_ground_of_a_kernel_says_what_it_reads_and_why_it_ends(
    page: Any, record: Record
) -> None:
    for kernel in (1, 0):
        spot = ground(page, kernel)
        page.mouse.click(spot["x"], spot["y"])
        page.wait_for_selector(f".wb-kernels [data-key=kernel-{kernel}][aria-selected=true]")
        detail = page.inner_text(".wb-plan-detail")
        assert record["kernels"][kernel]["title"] in detail
        assert stored(record)["reason"] in detail  # where one ends the other begins
        assert "fused inside" in detail


def test_a_cut_line_says_bytes_and_why(page: Any, record: Record) -> None:
    cuts = [edge for edge in record["plan"]["edges"] if edge["cut"]]
    words = page.locator(".wb-plan .wb-g-words-bytes")
    texts = words.all_text_contents()
    assert len(texts) == len(cuts) and all("KiB" in text for text in texts)
    assert page.locator(".wb-g-region").count() == len(record["kernels"]) == 2
    words.first.click()
    detail = page.inner_text(".wb-plan-detail")
    decision = stored(record)
    assert decision["reason"] in detail
    assert all(name in detail for name, _ in decision["estimates"])
    assert page.locator(".wb-plan .wb-g-picked").count() == 1


def test_the_list_is_the_picture(page: Any, record: Record) -> None:
    options = ".wb-plan-list [role=option]"
    decisions = record["plan"]["decisions"]
    stored_ones = [d for d in decisions if d["stored"]]
    copies = [d for d in decisions if d["is_copy"]]
    assert page.locator(options).count() == len(stored_ones) - len(copies)
    assert page.inner_text("label:has([data-key=copies])") == "1 copy"
    counted = f"{len(stored_ones) - len(copies)} of {len(decisions) - len(copies)}"
    assert counted in page.inner_text(".wb-plan-side"), "as its pass counts"
    page.click('[data-key="copies"]')
    assert page.locator(options).count() == len(stored_ones)
    page.click('[data-key="stored-only"]')
    assert page.locator(options).count() == len(decisions)
    page.click(f"{options} >> nth=0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert decisions[1]["reason"] in page.inner_text(".wb-plan-detail")
    choice = next(d for d in decisions if d["estimates"] and not d["stored"])
    elements = dict(choice["estimates"])["elements"]
    page.click(f'.wb-plan-list [data-key="decision-{choice["node"]}"]')
    text = page.inner_text(".wb-plan-detail")
    assert f"its {elements:,} elements" in text
    assert text.count(choice["reason"]) == 1
    assert text.count("computed once") <= 1, "its costs do not say it again"
    button = page.locator('[data-key="replan"]')
    assert button.get_attribute("aria-disabled") == "true"
    assert "needs the Python session" in page.inner_text(".wb-plan-detail")


def test_labels_of_a_plan_are_whole_at_first_sight(page: Any, record: Record) -> None:
    nodes = record["plan"]["nodes"]
    labels = page.locator(".wb-g:visible .wb-g-label").all_text_contents()
    assert sorted(labels) == sorted(node["label"] for node in nodes)
    assert {"value", "movement", "input"} <= {node["role"] for node in nodes}


def test_a_kernel_leads_to_tune(page: Any, record: Record) -> None:
    page.click('.wb-plan-list [role=option]:has-text("result")')
    page.click('[data-key="plan-kernel"]')
    assert page.get_attribute(".wb", "data-mode") == "tune"
    row = page.locator(".wb-kernels [aria-selected=true]")
    expect(row).to_contain_text(record["kernels"][1]["title"])


def test_search_and_zoom(page: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type("max over")
    page.keyboard.press("Enter")
    assert page.inner_text(".wb-plan .wb-g-count") == "1 of 1"
    assert "max" in page.text_content(".wb-g-picked .wb-g-label")
    moved = "document.querySelector('.wb-plan .wb-g-svg > g').getAttribute('transform')"
    before = page.evaluate(moved)
    page.click('.wb-plan [aria-label="zoom in"]')
    assert page.evaluate(moved) != before


def test_another_plan_at_the_same_places_has_its_own_numbers(session: Any, record: Record) -> None:
    numbers = ".wb-plan .wb-g-badge"
    assert session.locator(numbers).all_text_contents() == ["1", "2"]
    session.click("[data-key^=decision-] >> nth=0")
    assert session.locator(".wb-plan-list [aria-selected=true]").count() == 1
    fused = json.loads(json.dumps(record))
    for node in fused["plan"]["nodes"]:
        node["stored_by"] = {None: None, 0: None, 1: 0}[node["stored_by"]]
    session.evaluate("m => hear(m)", {"result": {"record": packed(fused)}})
    expect(session.locator(numbers)).to_have_count(1)
    assert session.text_content(numbers) == "1"
    assert session.locator(".wb [aria-selected=true][data-key^=decision-]").count() == 0


NODE_BOXES = """() => {
  const stage = document.querySelector(".wb-plan .wb-g-stage").getBoundingClientRect();
  return [...document.querySelectorAll(".wb-plan .wb-g-box")].map((e) => e.getBoundingClientRect())
    .map((b) => b.left >= stage.left && b.right <= stage.right && b.top >= stage.top && b.bottom <= stage.bottom);
}"""
VIEW = "document.querySelector('.wb-plan .wb-g-svg > g').getAttribute('transform')"


def test_it_stays_fitted_until_the_reader_moves_it(page: Any) -> None:
    """After another size, after it was hidden, and while a value is picked."""
    for size in ({"width": 1000, "height": 560}, {"width": 1700, "height": 1000}):
        before = page.evaluate(VIEW)
        page.evaluate("document.body.style.display = 'none'")
        page.set_viewport_size(size)
        page.evaluate(
            "h => { document.body.style.display = ''; document.body.style.setProperty('--wb-height', h); }",
            f"{size['height'] - 60}px",
        )
        page.wait_for_function(f"was => {VIEW} !== was", arg=before)
        page.wait_for_function(f"({NODE_BOXES})().every(Boolean)")
        page.click("[data-key^=decision-] >> nth=0")
    page.click('.wb-plan [aria-label="zoom in"]')
    moved = page.evaluate(VIEW)
    page.set_viewport_size({"width": 1400, "height": 700})
    page.wait_for_function("innerWidth === 1400")
    drawn(page)
    assert page.evaluate(VIEW) == moved


def test_it_stays_where_the_reader_moved_it_while_figures_arrive(session: Any) -> None:
    session.click("[data-key^=decision-] >> nth=0")
    for _ in range(6):
        session.click('.wb-plan [aria-label="zoom in"]')
    moved = session.evaluate(VIEW)
    news = {"append": {}, "set": [[["headline"], "news"]]}
    session.evaluate("p => hear({patch: p})", news)
    session.wait_for_selector(".wb-title >> text=news")
    assert session.evaluate(VIEW) == moved


def test_a_decision_is_tried_the_other_way_and_undone(session: Any, record: Record) -> None:
    page, decisions = session, record["plan"]["decisions"]
    page.click(f'[data-key="decision-{stored(record)["node"]}"]')
    page.wait_for_selector(".wb-plan-detail :text('contiguous() asks for it')")
    assert page.locator('[data-key="replan"]').count() == 0, "it cannot be fused"
    place, decision = next((i, d) for i, d in enumerate(decisions) if not d["stored"])
    page.click('[data-key="stored-only"]')
    page.click(f'[data-key="decision-{decision["node"]}"]')
    page.click('[data-key="replan"]:has-text("cut here")')
    message = answer(page, [[["plan", "decisions", place, "forced"], True]])
    assert (message["node"], message["store"]) == (decision["node"], True)
    page.wait_for_selector('[data-key="replan-undo"]')
    page.wait_for_selector(".wb-plan-list [aria-selected=true]:has-text('forced')")
    page.click('[data-key="replan-undo"]')
    message = answer(page, [[["plan", "decisions", place, "forced"], False]])
    assert message["store"] is None
    page.wait_for_selector('[data-key="replan"]')


def test_it_is_held_against_the_plan_before(session: Any, record: Record) -> None:
    """Asked, timed and moved: each in words, and what moved leads to its own reason."""
    page, decisions = session, record["plan"]["decisions"]
    place = next(i for i, d in enumerate(decisions) if not d["stored"])
    moved = decisions.index(stored(record))
    assert page.locator(".wb-plan-before").count() == 0
    page.click(f'[data-key="decision-{stored(record)["node"]}"]')
    page.click('[data-key="stored-only"]')
    page.click(f'[data-key="decision-{decisions[place]["node"]}"]')
    page.click('[data-key="replan"]')
    row = {"kernels": [2, 2], "change": place, "moved": [moved], "seconds": None}
    row |= {"predicted_s": None, "bytes": [96, 64], "operations": [128, 12_800]}
    compared = ["plan", "compared"]
    answer(page, [[compared, row | {"speed": "", "verdict": ""}]])
    page.wait_for_selector(".wb-plan-before:has-text('still 2 kernels')")
    assert "not timed yet" in page.inner_text(".wb-plan-before")
    page.click('[data-key="time-plans"]')
    page.wait_for_selector(".wb-plan-before:has-text('timing both')")
    text = "the machine is busy: not compared"
    busy = row | {"busy_s": [0.00021, 0.00023], "speed": text, "verdict": text}
    answer(page, [[compared, busy]], "plans")
    page.wait_for_selector(f".wb-plan-before:has-text('{text}')")
    lines = page.inner_text(".wb-plan-before").split("\n")
    assert "210 µs busy" in lines and "230 µs busy" in lines, lines
    page.click('[data-key="time-plans"]')
    text = "1.07 times as slow (1.05 to 1.09)"
    seconds = {"seconds": [0.00029, 0.00031]}
    timed = row | seconds | {"speed": text, "verdict": f"now is {text}"}
    assert answer(page, [[compared, timed]], "plans")["do"] == "plans"
    page.wait_for_selector(f".wb-plan-before:has-text('now is {text}')")
    lines = page.inner_text(".wb-plan-before").split("\n")
    assert "290 µs" in lines and "310 µs" in lines, lines
    assert "128 operations" in lines and "12.8 k operations" in lines, lines
    text = "no measurable difference"
    same = row | seconds | {"speed": text, "verdict": text}
    patch = {"append": {}, "set": [[compared, same]]}
    page.evaluate("m => hear(m)", {"patch": patch})
    page.wait_for_selector(".wb-plan-verdict:text-is('no measurable difference')")
    page.click(f'[data-key="moved-{decisions[moved]["node"]}"]')
    assert decisions[moved]["reason"] in page.inner_text(".wb-plan-detail")


def test_what_is_copied_is_the_plan(page: Any, record: Record) -> None:
    """By the button, which a narrow page shows whole, and by the key."""
    python = record["expr"]["python"]
    page.set_viewport_size({"width": 953, "height": 700})
    side, button = (
        page.locator(part).bounding_box() for part in (".wb-plan-side", '[data-key="copy-plan"]')
    )
    assert side["x"] < button["x"]
    assert button["x"] + button["width"] <= side["x"] + side["width"]
    page.evaluate(COPIED)
    page.click('[data-key="copy-plan"]')
    assert page.evaluate("copied") == python + record["recipes"]["plan"]
    decision = stored(record)
    page.click(f'.wb-plan-list [data-key="decision-{decision["node"]}"]')
    page.keyboard.press("y")
    assert page.evaluate("copied") == python + decision["python"]


def answer(page: Any, changes: list[Any], do: str = "replan") -> Record:
    """Answer a request, with what it changed; return the request."""
    page.wait_for_function("(name) => sent.some((m) => m.do === name)", arg=do)
    request: Record = page.evaluate("n => sent.findLast((m) => m.do === n)", do)
    page.evaluate("sent.length = 0")
    reply = {"id": request["id"], "ok": True, "error": None, "result": None}
    page.evaluate("(r) => hear(r)", reply | {"patch": {"append": {}, "set": changes}})
    return request


def large() -> Exploration:
    x: Tensor = array(8, 8)
    y = x
    for step in range(100):
        y = (y * 0.5 + x).relu() if step % 40 else y.contiguous()
    return explore(y)


CUT_SPOT = """() => {
  const stage = document.querySelector(".wb-plan .wb-g-stage");
  const { left, top, right, bottom } = stage.getBoundingClientRect();
  for (let y = top + 2; y < bottom; y += 4)
    for (let x = left + 2; x < right; x += 4) {
      stage.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y }));
      if (stage.title.includes("through memory")) return { x, y };
    }
}"""
"""Points everywhere until a line that is cut says so: it is in sight when the plan opens."""


@pytest.fixture(scope="module")
def large_record() -> Record:
    record: Record = plain(build(large()))
    assert len(record["plan"]["nodes"]) > 200
    return record


def test_a_large_plan_is_painted_and_can_be_searched(
    browser: Any, tmp_path: Path, large_record: Record
) -> None:
    for page in plan_page(browser, tmp_path, exported(large_record)):
        assert page.locator(".wb-plan .wb-g-canvas").count() == 1
        page.wait_for_function("!document.querySelector('.wb-g-map').hidden")
        spot = page.evaluate(CUT_SPOT)
        page.mouse.click(spot["x"], spot["y"])
        page.wait_for_selector(".wb-plan-detail [data-key=plan-all]")
        assert "reads it back" in page.inner_text(".wb-plan-detail")
        page.keyboard.press("/")
        page.keyboard.type("max")
        page.keyboard.press("Enter")
        assert page.inner_text(".wb-plan .wb-g-count").startswith("1 of ")
        assert page.locator(".wb-plan-list [aria-selected=true]").count() == 1
        page.wait_for_function("""() => {
          const canvas = document.querySelector('.wb-g-canvas');
          const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          return data.some((v) => v);
        }""")
        picture = "document.querySelector('.wb-g-canvas').toDataURL()"
        light = page.evaluate(picture)
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"(light) => {picture} !== light", arg=light)


PIXELS = """() => {
  const canvas = document.querySelector(".wb-plan .wb-g-canvas");
  const { width, height } = canvas;
  return canvas.getContext("2d").getImageData(0, 0, width, height).data;
}"""
DIFFERENCES = f"""() => {{
  const pixels = {PIXELS};
  const dragged = pixels();
  document.querySelector(".wb-plan .wb-g-canvas").dispatchEvent(new Event("contextrestored"));
  const anew = pixels();
  return [anew.filter(Boolean).length, anew.filter((v, i) => Math.abs(v - dragged[i]) > 32).length];
}}"""
"""Returns how many values of a picture are not 0, and how many differ when it is drawn anew."""


def test_a_large_plan_that_is_dragged_looks_as_if_drawn_anew(
    browser: Any, tmp_path: Path, large_record: Record
) -> None:
    """Only what comes into sight is drawn then."""
    for page in plan_page(browser, tmp_path, exported(large_record)):
        box = page.locator(".wb-plan .wb-g-stage").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        before = page.evaluate(f"({PIXELS})().join()")
        for dx, dy in ((40, 0), (40, 90), (-70, 20), (-90, -130), (5, -7)):
            page.mouse.move(x + dx, y + dy)
            drawn(page)
            painted, different = page.evaluate(DIFFERENCES)
            assert painted > 1000 and different < painted / 1000
        assert page.evaluate(f"({PIXELS})().join()") != before
        page.mouse.up()


def test_the_still_picture_is_whole(browser: Any, tmp_path: Path) -> None:
    """What stands in for the page where there is no Python: nothing is cut off below."""
    x = array(64, 64)
    still = exploration_bundle(explore((x.softmax(1) @ x).softmax(1).reshape(4096)))
    path = tmp_path / "still.html"
    path.write_text(f"<meta charset=utf-8>{still['text/html']}", encoding="utf-8")
    page = new_page(browser, viewport={"width": 800, "height": 600})
    page.goto(path.as_uri())
    height, hidden = page.evaluate("""() => {
      const image = document.querySelector("img");
      const end = image.getBoundingClientRect().bottom, hidden = [];
      for (let e = image.parentElement; e; e = e.parentElement)
        if (e !== document.documentElement && e !== document.body && e.getBoundingClientRect().bottom < end)
          hidden.push(e.className);
      return [image.getBoundingClientRect().height, hidden];
    }""")
    page.context.close()
    assert height > 700 and hidden == []
