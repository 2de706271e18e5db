"""The exported page in a real browser, from disk and with the network off; and the page before
a Python session that the test plays."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import FAINT, session_page, shown
from tests.viz.support import array, softmax
from workbench.viz import explore
from workbench.viz.page import export_html, packed
from workbench.viz.record.record import build

HOSTILE = (
    "</script><img src=x onerror=\"document.title='run'\">\u202e\"'`\n" + "x" * 10_000
)
Record = dict[str, Any]


@pytest.fixture(scope="module")
def record() -> Record:
    """A record of two kernels, the first of which is timed."""
    made: Record = json.loads(json.dumps(build(softmax())))
    made["variants"][0]["timing"] = timing(2e-3, spread=0.05)
    return made


def timing(median_s: float, spread: float, emulator: bool = False) -> Record:
    return {
        "median_s": median_s, "min_s": median_s, "spread": spread,
        "samples": [median_s] * 3, "beside": [], "cold_s": None, "gflops": 1.0, "gbytes": 1.0, "fraction": None, "device": "LLVM",
        "emulator": emulator, "text": "",
    }  # fmt: skip


@pytest.fixture
def page(browser: Any, record: Record, tmp_path: Path) -> Iterator[Any]:
    yield from shown(browser, tmp_path, export_html(record))


@pytest.fixture
def session(browser: Any, record: Record, tmp_path: Path) -> Iterator[Any]:
    yield from shown(browser, tmp_path, session_page(record))


def keys(page: Any, pressed: str) -> None:
    for key in pressed.split():
        page.keyboard.press(key)


def focused(page: Any) -> str:
    found: str = page.evaluate("document.activeElement.dataset.key || ''")
    return found


def texts(page: Any, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).all_inner_texts()
    return found


def selected(page: Any, label: str) -> list[str]:
    return texts(page, f'[aria-label="{label}"] [aria-selected="true"]')


def test_a_loop_lights_its_code_and_the_code_its_loop(
    page: Any, record: Record
) -> None:
    loops = record["variants"][0]["loops"]["rows"]
    inner = max((r for r in loops if r["kind"] == "loop"), key=lambda r: r["depth"])
    row, axis = f"[data-key=loop-{loops.index(inner)}]", inner["axis"]
    head = f"{axis} <"
    for language in ("C", "LLVM", "asm"):
        page.click(f"[data-key=code-{language}]")
        page.click(row)
        lit = texts(page, ".wb-code-body .wb-lit")
        every = page.locator(".wb-code-body [data-line]").count()
        assert 0 < len(lit) < every, language
        if language == "C":
            assert head in lit[0]
        page.click(row)
        assert texts(page, ".wb-lit") == []

    page.click("[data-key=code-C]")
    page.click(f".wb-code-body [data-item]:has-text('{head}')")
    assert axis in "".join(texts(page, ".wb-loops .wb-lit"))
    around = texts(page, ".wb-loops .wb-inside")
    assert len(around) == inner["depth"]


def test_a_node_lights_code_and_a_notebook_line_lights_both(
    page: Any, record: Record
) -> None:
    page.click("[data-key=loop-0]")
    statement = next(
        i for i, r in enumerate(record["variants"][0]["loops"]["rows"])
        if r["kind"] == "statement"
    )  # fmt: skip
    page.click(f"[data-key=loop-{statement}]")
    assert texts(page, ".wb-code-body .wb-lit")
    line = record["kernels"][0]["line"]
    page.click(f"[data-key=source-{line}]")
    assert texts(page, ".wb-code-body .wb-lit") and texts(page, ".wb-kernels .wb-lit")
    page.click("[data-key=loop-0]")
    page.click(f".wb-code-body [data-line='{lines_of(record, line)[0]}']")
    assert len(texts(page, f"[data-key=source-{line}].wb-lit")) == 1


def lines_of(record: Record, line: int) -> list[int]:
    """Return the lines of C that come from a notebook line, from 1."""
    links = record["variants"][0]["code"][0]["links"]
    return [i for i, link in enumerate(links, 1) if link and line in link["lines"]]


def test_pointing_lights_without_moving_anything(page: Any) -> None:
    boxes = (
        "[...document.querySelectorAll('.wb *')].map(e => e.getBoundingClientRect().y)"
    )
    before = page.evaluate(boxes)
    page.hover("[data-key=loop-0]")
    page.wait_for_selector(".wb-code-body .wb-near")
    assert page.evaluate(boxes) == before


def test_languages_have_tabs(page: Any, record: Record) -> None:
    for code in record["variants"][0]["code"]:
        page.click(f"[data-key=code-{code['language']}]")
        assert selected(page, "language") == [code["language"]]
        lines = page.locator(".wb-code-body [data-line]")
        last = len(code["lines"])
        assert lines.last.get_attribute("data-line") == str(last)
        assert lines.last.locator("code").inner_text() == code["lines"][-1]


def test_the_diff_is_between_the_pinned_variant_and_this_one(
    page: Any, record: Record
) -> None:
    auto = next(i for i, v in enumerate(record["variants"]) if v["name"] == "auto")
    page.click(f"[data-key=kernel-{record['variants'][auto]['kernel']}]")
    page.click(f"[data-key=variant-{auto}]")
    page.click("[data-key=code-asm]")
    keys(page, "d")
    page.wait_for_selector(".wb-added")
    [old, new] = [
        next(c["lines"] for c in v["code"] if c["language"] == "asm")
        for v in (record["variants"][record["variants"][auto]["parent"]],
                  record["variants"][auto])
    ]  # fmt: skip
    kept = texts(page, ".wb-line:not(.wb-removed) > code")
    gone = texts(page, ".wb-removed > code")
    assert set(kept) <= set(new) and set(gone) <= set(old)
    assert len(new) - len(texts(page, ".wb-added")) == len(old) - len(gone)
    keys(page, "d")
    page.wait_for_selector(".wb-added", state="detached")


def test_everything_can_be_reached_with_keys(page: Any) -> None:
    page.focus(".wb")
    keys(page, "j")
    assert focused(page) == "loop-0"
    keys(page, "j ArrowDown k Enter")
    assert focused(page) == "loop-1" and selected(page, "loops")
    keys(page, "2")
    assert selected(page, "mode") == ["Rewrites"]
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


def test_no_key_reaches_the_page_around_but_tab(page: Any) -> None:
    page.evaluate(
        "document.addEventListener('keydown', e => (window.got ??= []).push(e.key))"
    )
    page.focus(".wb")
    keys(
        page,
        "a b c d e g i j k m n o q r s t u v w x y z 0 5 9 Enter Space Delete Home",
    )
    keys(page, "Shift+A Shift+M Control+s Backspace ArrowLeft F2")
    page.click("[data-key=loop-0]")
    keys(page, "a b d d x Enter Escape")
    assert page.evaluate("window.got") is None
    inside = "document.activeElement.closest('.wb') !== null"
    wants = "document.activeElement.hasAttribute('data-lm-suppress-shortcuts')"
    page.focus(".wb")
    for _ in range(80):
        if not page.evaluate(inside):
            break
        assert page.evaluate(wants)
        keys(page, "Tab")
    assert not page.evaluate(inside)


def test_undo_and_redo_walk_the_tree(page: Any, record: Record) -> None:
    auto = next(i for i, v in enumerate(record["variants"]) if v["name"] == "auto")
    page.click(f"[data-key=kernel-{record['variants'][auto]['kernel']}]")
    page.focus(".wb")
    keys(page, "Shift+U")
    assert selected(page, "variants")[0].startswith("auto")
    keys(page, "u")
    assert "plain" in selected(page, "variants")[0]


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
        for offer in v["offers"]:
            offer["why"] = offer["does"] = HOSTILE
        for row in v["loops"]["rows"]:
            row["text"] = HOSTILE
        for code in v["code"]:
            code["lines"][-1] = HOSTILE
    for page in shown(browser, tmp_path, export_html(hostile), width=800):
        for mode in "2 3 1".split():
            page.focus(".wb")
            keys(page, mode)
            assert page.evaluate("document.images.length") == 0
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"mode {mode} is wider than the page"
        assert page.title() != "run"


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast(
    browser: Any, record: Record, tmp_path: Path, dark: bool
) -> None:
    for page in shown(browser, tmp_path, export_html(record), dark=dark):
        page.click("[data-key=loop-0]")
        assert page.evaluate(FAINT) == []
        page.focus(".wb")
        keys(page, "3")
        page.wait_for_selector(".wb-plan .wb-g-words")
        assert page.evaluate(FAINT) == []
        page.click("[data-key^=cut-]")
        step_twice(page, record)
        page.wait_for_selector(".wb-rw-change")
        assert page.evaluate(FAINT) == []


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


def test_search_narrows_the_opts_offline(page: Any) -> None:
    every = page.locator(".wb-offer[role=option]").count()
    page.focus(".wb")
    keys(page, "/")
    page.keyboard.type("unroll")
    page.wait_for_function(
        "[...document.querySelectorAll('.wb-offer[role=option]')]"
        ".every(row => /unroll/i.test(row.textContent))"
    )
    assert 0 < page.locator(".wb-offer[role=option]").count() < every


def test_words_are_found_in_any_order_and_nothing_is_said_in_place(page: Any) -> None:
    page.focus(".wb")
    keys(page, "/")
    pane = "document.querySelector('.wb-next-pane').getBoundingClientRect().height"
    before = page.evaluate(pane)
    page.keyboard.type("r0 unroll")
    rows = page.locator(".wb-offer[role=option]")
    assert all(
        row.startswith('UNROLL("r0"') for row in texts(page, ".wb-offer[role=option]")
    )
    assert rows.count() > 0
    page.fill(".wb-find", "no such opt")
    page.wait_for_selector(".wb-next-pane >> text=nothing found")
    assert page.evaluate(pane) == before


def test_letters_walk_what_a_tab_shows(page: Any, record: Record) -> None:
    page.click("[data-key=mode-rewrites]")
    before = page.inner_text(".wb-rw-at")
    keys(page, "j")
    page.wait_for_function(
        "was => document.querySelector('.wb-rw-at').textContent !== was", arg=before
    )
    assert selected(page, "mode") == ["Rewrites"]
    page.click("[data-key=mode-tune]")
    keys(page, "j")
    assert focused(page).startswith("loop-")
    page.focus("[data-key=kernel-0]")
    keys(page, "2 j")
    assert not focused(page).startswith("kernel-")


def test_rewrites_are_stepped_and_searched_offline(page: Any, record: Record) -> None:
    step_twice(page, record)
    page.wait_for_selector(".wb-rw .wb-g-node")
    label = page.locator(".wb-rw .wb-g-label").first.text_content()
    page.fill(".wb-rw .wb-g-search input", label)
    keys(page, "Enter")
    assert page.inner_text(".wb-rw .wb-g-count").startswith("1 of ")
    assert page.locator(".wb-rw .wb-g-picked").count() == 1


def step_twice(page: Any, record: Record) -> None:
    """Go to the second step of the first kernel's pass of most rewrites."""
    variant = next(v for v in record["variants"] if v["kernel"] == 0)
    passes = [*range(len(record["passes"]))]
    of_variants = {p for v in record["variants"] for p in v["passes"]}
    here = [p for p in passes if p not in of_variants or p in variant["passes"]]
    rules = [p for p in here if record["passes"][p]["unit"] == "rewrite"]
    place = max(rules, key=lambda p: len(record["passes"][p]["rewrites"]))
    steps = len(record["passes"][place]["rewrites"])
    assert steps >= 2
    page.click("[data-key=kernel-0]")
    page.click(f"[data-key=pass-{place}]")
    page.focus(".wb")
    for step in (1, 2):
        keys(page, "j")
        page.wait_for_function(
            "text => document.querySelector('.wb-rw-at').textContent === text",
            arg=f"{step} of {steps}",
        )


def measured(record: Record) -> Record:
    """Return a record in which the first kernel has two times and an emulated one."""
    made: Record = json.loads(json.dumps(record))
    peak = {"f32": 2e11, "f64": 1e11}
    bandwidth = [["L1", 4e11], ["L2", 2e11], ["memory", 2e10]]
    made["machine"] |= {"peak": peak, "bandwidth": bandwidth, "one_thread": None}
    made["variants"] = [v for v in made["variants"] if v["kernel"] == 0][:1]
    made["kernels"] = made["kernels"][:1]
    [plain] = made["variants"]
    for name, seconds, emulator in (("fast", 1e-4, False), ("slow", 9.0, True)):
        counts = plain["counts"] | {"bytes_loaded": 1000, "bytes_stored": 24}
        child = plain | {"name": name, "parent": 0, "counts": counts}
        child["timing"] = timing(seconds, spread=0.01, emulator=emulator)
        made["variants"].append(child)
    return made


def test_a_roofline_stands_beside_the_bound(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    given = measured(record)
    plain, fast, _ = given["variants"]
    for page in shown(browser, tmp_path, export_html(given)):
        assert plain["bound"] in page.inner_text(".wb-about")
        dots = ".wb-roof-dot"
        assert page.locator(dots).count() == 2  # an emulator's time says nothing
        for i, (variant, dot) in enumerate(
            zip((plain, fast), page.locator(dots).all(), strict=True)
        ):
            counts = variant["counts"]
            moved = counts["bytes_loaded"] + counts["bytes_stored"]
            flops = given["kernels"][0]["flops"]
            x, y = place_of(dot.get_attribute("transform"))
            scale = page.evaluate(SCALES)
            assert x == pytest.approx(along(scale["x"], flops / moved), abs=0.6), i
            rate = flops / variant["timing"]["median_s"] / 1e9
            assert y == pytest.approx(along(scale["y"], rate), abs=0.6), i
        label = page.get_attribute(".wb-roof", "aria-label")
        assert "peak 200 GFLOP/s" in label and "fast: " in label and "slow" not in label
        assert {"L1", "L2", "mem"} <= set(
            page.locator(".wb-roof-name").all_text_contents()
        )
        page.locator(dots).nth(1).click()
        assert selected(page, "variants")[0].startswith("fast")
        page.click("[data-key=fold-roofline]")
        figures = page.inner_text(".wb-roofline")
        assert all(name in figures for name in fast["cost"]["roofs"] if name != "peak")


def test_names_of_dots_stand_apart(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    given = measured(record)
    plain, fast, _ = given["variants"]
    fast["counts"] = plain["counts"]
    fast["timing"] = timing(2.02e-3, spread=0.01)
    for page in shown(browser, tmp_path, export_html(given)):
        names = page.locator(".wb-roof-dot .wb-roof-name")
        assert sorted(names.all_text_contents()) == ["fast", "plain"]
        left, right = sorted(
            (n.bounding_box() for n in names.all()), key=itemgetter("x")
        )
        upper, lower = sorted((left, right), key=itemgetter("y"))
        aside = left["x"] + left["width"] <= right["x"]
        assert aside or upper["y"] + upper["height"] <= lower["y"] + 3  # below letters


SCALES = r"""() => {
  const scale = { x: [], y: [] };
  for (const line of document.querySelectorAll(".wb-roof-grid")) {
    const [, x, y, way] = line.getAttribute("d").match(/^M([\d.]+) ([\d.]+)([VH])/);
    const said = Number(line.nextElementSibling.textContent);
    (way === "V" ? scale.x : scale.y).push([said, Number(way === "V" ? x : y)]);
  }
  return scale;
}"""
"""Returns the grid lines of the roofline: [what they say, where they stand]."""


def place_of(transform: str) -> tuple[float, ...]:
    return tuple(map(float, re.findall(r"-?[\d.]+", transform)))


def along(lines: list[tuple[float, float]], value: float) -> float:
    """Return where a value stands on a logarithmic scale, by two of its lines."""
    (a, at_a), (b, at_b) = lines[0], lines[-1]
    return at_a + (at_b - at_a) * math.log(value / a) / math.log(b / a)


def test_little_room_shows_one_pane(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    for page in shown(browser, tmp_path, export_html(record), width=800):
        assert page.is_visible(".wb-tune") and not page.is_visible(".wb-code-pane")
        page.click("[data-key=pane-code]")
        assert page.is_visible(".wb-code-pane") and not page.is_visible(".wb-tune")
        page.click("[data-key=pane-results]")
        assert page.is_visible(".wb-results")
        page.select_option("select[aria-label=kernel]", "1")
        assert selected(page, "kernels")[0].startswith("2")


def test_without_python_the_buttons_say_so(page: Any) -> None:
    off = page.locator(".wb-left [aria-disabled=true]")
    assert off.count() >= 3
    assert {b.get_attribute("title") for b in off.all()} == {"needs the Python session"}
    page.focus(".wb")
    keys(page, "t")
    page.wait_for_selector("text=needs the Python session")


def test_asking_and_answers(session: Any, record: Record) -> None:
    opt = record["variants"][0]["offers"][0]["opt"]
    session.click(f"[data-key='offer-{opt}']")
    keys(session, "a")
    asked = session.evaluate("sent.find(m => m.do === 'apply')")
    assert (asked["variant"], asked["opt"]) == (0, opt)

    child = record["variants"][0] | {"name": "mine 1", "parent": 0, "opts": [opt]}
    child["timing"] = timing(1.96e-3, spread=0.05)
    made = len(record["variants"])
    reply = {"id": asked["id"], "ok": True, "error": None, "result": {"variant": made}}
    patch = {
        "append": {"variants": [child]},
        "set": [[["variants", made, "note"], "n"]],
    }
    session.evaluate("m => hear(m)", reply | {"patch": patch})
    session.wait_for_selector(f"[data-key=variant-{made}][aria-selected=true]")
    assert "No measurable difference" in session.inner_text(".wb-about")

    keys(session, "c")
    asked = session.evaluate("sent.find(m => m.do === 'check')")
    wrong = {"what": "the check failed", "because": "<b>no data</b>", "try": "run"}
    session.evaluate(
        "m => hear(m)", {"id": asked["id"], "ok": False, "error": wrong, "result": None}
    )
    assert "<b>no data</b>" in session.inner_text(".wb-results [role=alert]")


@pytest.mark.parametrize("width", [800, 1400])
def test_what_was_found_is_said_where_one_is(
    browser: Any, record: Record, tmp_path: Path, width: int
) -> None:
    """A check, and what went wrong with it, from Tune, where the results may be out of sight."""
    for page in shown(browser, tmp_path, session_page(record), width=width):
        page.focus(".wb")
        keys(page, "c")
        found = [["variants", 0, "check"], {"ok": False, "text": "wrong: 3 of 9"}]
        told(page, "check", patch={"append": {}, "set": [found]})
        page.wait_for_selector(".wb-notices >> text=wrong: 3 of 9")
        page.wait_for_selector(
            ":is(.wb-verdict, .wb-about) :text('wrong: 3 of 9') >> visible=true"
        )
        keys(page, "c")
        told(page, "check", error={"what": "no data", "because": "", "try": ""})
        page.wait_for_selector("[role=alert]:has-text('no data') >> visible=true")


def test_what_cannot_work_has_no_button(session: Any, record: Record) -> None:
    """No baseline was given: the words say how; a COPY cannot be fused. An error is shown in the
    mode where the button is."""
    assert session.locator("[data-key=baselines]").count() == 0
    assert 'ex.baseline("numpy"' in session.inner_text(".wb-results")
    place = next(i for i, p in enumerate(record["passes"]) if p["unit"] == "decision")
    session.click(f"[data-key=pass-{place}]")
    asked = {d["node"] for d in record["plan"]["decisions"] if d["asked"]}
    seen = set()
    for step, row in enumerate(record["passes"][place]["rewrites"], 1):
        session.click(f"[data-key=rw-{step}]")
        session.wait_for_selector(f".wb-rw-at:has-text('{step} of')")
        count = session.locator("[data-key=replan]").count()
        assert count == (row[1] not in asked), step
        seen.add(count)
    assert seen == {0, 1}
    session.locator("[data-key^=rw-]").last.click()
    session.click("[data-key=replan]")
    told(session, "replan", error={"what": "cannot", "because": "so", "try": ""})
    session.wait_for_selector(".wb-rw [role=alert]:has-text('cannot')")


def test_what_a_compiler_says_stands_over_the_code(
    session: Any, record: Record
) -> None:
    made = len(record["variants"])
    error = {"what": "line 3: expected ';'", "because": "", "try": ""}
    broken = record["variants"][0] | {"name": "edited 1", "parent": 0, "edited": True}
    session.click(".wb-code-bar >> text=edit")
    session.click("[data-key=run-edit]")
    patch = {"append": {"variants": [broken | {"error": error}]}, "set": []}
    told(session, "edit", patch=patch, result={"variant": made})
    session.wait_for_selector(".wb-code-pane [role=alert] >> text=expected ';'")
    row = session.inner_text(f"[data-key=variant-{made}] .wb-name")
    assert row.split() == ["edited", "1", "!"]


def test_a_wrong_answer_is_marked_where_its_time_stands(session: Any) -> None:
    found = [["variants", 0, "check"], {"ok": False, "text": "wrong: 3 of 9"}]
    session.evaluate("p => hear({patch: p})", {"append": {}, "set": [found]})
    session.wait_for_selector("[data-key=variant-0] .wb-name >> text=\u2717")


def test_a_caret_points_at_its_column(session: Any, record: Record) -> None:
    said = "error: expected type\n  iiiiiiii flot MMMMMM\n           ^"
    error = {"what": "cannot compile", "because": said, "try": ""}
    session.focus(".wb")
    keys(session, "c")
    told(session, "check", error=error)
    letters = session.evaluate(LETTERS, ".wb-results [role=alert]")
    [caret] = [place for letter, place in letters if letter == "^"]
    [first] = [place for letter, place in letters if letter == "o"]
    assert caret == pytest.approx(first - 2 * (letters[1][1] - letters[0][1]), abs=0.5)


LETTERS = """(selector) => {
  const node = document.querySelector(`${selector} .wb-as-told`).firstChild, range = document.createRange();
  const from = node.data.indexOf("i");
  return [...node.data].map((letter, i) => {
    range.setStart(node, i);
    range.setEnd(node, i + 1);
    return [letter, range.getBoundingClientRect().left];
  }).slice(from);
}"""
"""Returns [letter, where it stands] of a message, from its first i on."""


def test_a_note_outlives_figures_that_arrive(session: Any) -> None:
    session.focus("[data-key=note]")
    for i, letter in enumerate("two sums"):
        session.keyboard.type(letter)
        found = [["variants", 0, "timing"], timing(1e-3 + i * 1e-5, spread=0.01)]
        session.evaluate("p => hear({patch: p})", {"append": {}, "set": [found]})
        session.wait_for_selector(f"text=/1.0{i}/")
        assert focused(session) == "note"
    session.keyboard.press("Home")
    session.keyboard.type("of ")
    session.click(".wb-header", position={"x": 4, "y": 4})
    session.wait_for_function("sent.some((m) => m.do === 'note')")
    notes = session.evaluate("sent.filter((m) => m.do === 'note').map((m) => m.text)")
    assert notes[-1] == "of two sums"


def test_nothing_to_compute_has_nothing_to_press(browser: Any, tmp_path: Path) -> None:
    nothing: Record = json.loads(json.dumps(build(explore(array(0, 5).relu()))))
    assert nothing["kernels"] == []
    for page in shown(browser, tmp_path, session_page(nothing)):
        assert nothing["nothing"] in page.inner_text(".wb-tune")
        assert page.locator(":is(.wb-results .wb-buttons, .wb-paste)").count() == 0


def test_an_editor_can_be_written_in_at_once(session: Any) -> None:
    session.click(".wb-code-bar >> text=edit")
    session.wait_for_function("document.activeElement.matches('.wb-editor')")


def told(
    page: Any, do: str, error: Any = None, patch: Any = None, result: Any = None
) -> None:
    """Answer the last request `do`."""
    page.wait_for_function("(d) => sent.some((m) => m.do === d)", arg=do)
    request = page.evaluate("(d) => sent.findLast((m) => m.do === d)", do)
    page.evaluate("sent.length = 0")
    reply = {"id": request["id"], "ok": error is None, "error": error}
    page.evaluate("(r) => hear(r)", reply | {"result": result, "patch": patch})


def test_progress_can_be_stopped(session: Any) -> None:
    status = {"task": "search", "done": 3, "total": 10, "text": "3 of 10"}
    session.evaluate("m => hear(m)", {"status": status})
    session.click("text=Stop")
    assert session.evaluate("sent.some(m => m.do === 'stop')")
    session.evaluate("m => hear(m)", {"status": status | {"task": None}})
    session.wait_for_selector("progress", state="detached")


def test_ratios_are_of_times_of_one_run(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    made = json.loads(json.dumps(record))
    (auto,) = [v for v in made["variants"] if v["name"] == "auto"][:1]
    auto["kernel"] = 0
    then = timing(1e-4, spread=0.0) | {"beside": [["plain", 1e-3, 0.01, None]]}
    auto["timing"] = then  # the plain one takes 2 ms by now
    shown_as = []
    for one in (then, then | {"beside": []}, then | {"samples": [1e-4]}):
        auto["timing"] = one
        for page in shown(browser, tmp_path, export_html(made)):
            cells = texts(page, '.wb-variant:has-text("auto") .wb-figure')
            shown_as.append(tuple(cells[-2:]))
    assert shown_as == [
        ("± <0.1%", "10.0x"),
        ("± <0.1%", "~20.0x"),
        ("one run", "10.0x"),
    ]


def test_a_silent_session_is_said_to_be_silent(session: Any) -> None:
    session.wait_for_function("sent.length > 0")
    session.evaluate("window.mute = true")
    session.click("[data-key=time]")
    session.wait_for_selector("text=looking still works", timeout=5000)
    session.click("[data-key=loop-0]")
    assert selected(session, "loops")
    session.evaluate("window.mute = false")
    session.evaluate("hear({status: {task: null}})")  # the background: no answer
    assert session.is_visible("text=does not answer")
    session.click("text=ask again")
    session.wait_for_selector("text=does not answer", state="detached")


def test_emulated_times_stand_apart(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    emulated = json.loads(json.dumps(record))
    emulated["variants"][0]["timing"] = timing(1.5, spread=0.01, emulator=True)
    for page in shown(browser, tmp_path, export_html(emulated)):
        assert "1.50 s" not in page.inner_text('[aria-label="variants"]')
        assert "1.50 s" not in page.inner_text(".wb-header")
        assert "EMULATOR (PYTHON)" in page.inner_text(".wb-results")


def test_patches_are_applied_once_and_in_order(session: Any, record: Record) -> None:
    def note(number: int, words: str) -> Record:
        path = ["variants", 0, "note"]
        return {"patch": {"append": {}, "set": [[path, words], [["n"], number]]}}

    def shown_note() -> str:
        found: str = session.input_value("[aria-label=note]")
        return found

    for message in (note(1, "one"), note(2, "two"), note(1, "one")):
        session.evaluate("m => hear(m)", message)
    assert shown_note() == "two"
    session.evaluate("m => hear(m)", note(4, "four"))  # the third was missed
    assert shown_note() == "two"
    asked = session.evaluate("sent.findLast(m => m.do === 'ping')")
    assert asked["have"] == 2
    whole = json.loads(json.dumps(record)) | {"n": 4}
    whole["variants"][0]["note"] = "three and four"
    result = {"n": 4, "record": packed(whole)}
    session.evaluate("m => hear(m)", {"id": asked["id"], "ok": True, "result": result})
    session.evaluate("m => hear(m)", note(5, "five"))
    session.wait_for_function(
        "document.querySelector('[aria-label=note]').value === 'five'"
    )


@pytest.mark.parametrize(
    "only, pane",
    [("loops", ".wb-nest-pane"), ("code", ".wb-code-pane"), ("results", ".wb-results")],
)
def test_a_pane_can_stand_alone(session: Any, only: str, pane: str) -> None:
    session.evaluate("only => show({ only, mode: 'tune' })", only)
    session.wait_for_selector(f".wb[data-only={only}]")
    panes = (
        ".wb-nest-pane",
        ".wb-next-pane",
        ".wb-code-pane",
        ".wb-results",
        ".wb-strip",
    )
    assert [p for p in panes if session.is_visible(p)] == [pane]


def test_all_that_a_search_tried_is_a_tree(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    """The way to the best is open; a branch opens by click and by arrow, and text stays text."""
    trials = [
        [0, None, "start: as given", 2e-3, ""],
        [1, 0, '<img src=x onerror="boom">', 1e-3, ""],
        [2, 0, "UPCAST", None, "did not end"],
        [3, 2, "never seen", 3e-3, ""],
        [4, 1, "UNROLL", 5e-4, ""],
    ]
    searched = json.loads(json.dumps(record))
    searched["variants"][0]["search"] = {
        "tried": 5, "timed": 4, "best": 4, "speedup": 4.0, "seconds": 9.5, "ended": "over",
        "device": "LLVM", "trials": trials,
    }  # fmt: skip
    tree = '[aria-label="what the search tried"]'
    for page in shown(browser, tmp_path, export_html(searched)):
        assert "5 tried, 4 timed" in page.inner_text(".wb-tried-pane summary")
        assert not page.is_visible(tree)
        page.click(".wb-tried-pane summary")
        page.wait_for_selector(tree)
        assert page.evaluate(FAINT) == []
        rows = f"{tree} [role=treeitem]"
        assert page.locator(rows).count() == 4, "all but what is below UPCAST"
        assert "best" in page.inner_text(f"{tree} [aria-selected=true]")
        assert page.locator(f"{tree} img").count() == 0
        assert "500 µs" in page.inner_text(f"{tree} [aria-level='3']")
        page.click("[data-key=tried-2]")
        assert "never seen" in page.inner_text(tree)
        assert focused(page) == "tried-2"
        keys(page, "ArrowLeft")
        assert "never seen" not in page.inner_text(tree)
        keys(page, "ArrowRight j")
        assert focused(page) == "tried-3"
        other = next(
            i for i, v in enumerate(searched["variants"]) if i and v["kernel"] == 0
        )
        page.click(f"[data-key=variant-{other}]")
        assert not page.is_visible(".wb-tried-pane"), "nothing was searched there"
