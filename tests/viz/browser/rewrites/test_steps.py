"""The steps of a pass: their states and words, walked with keys, shown, and copied as Python."""

from __future__ import annotations

import re
from typing import Any

from tests.viz.browser.browser import COPIED, NODES_IN_SIGHT, drawn
from tests.viz.browser.rewrites.support import Record, decompose, where
from tests.viz.layouts import Functions
from tests.viz.record.support import plain
from workbench.ir.text.program import to_expr
from workbench.viz.record.record import Recorder

PICKED = ".wb-rw-pass[aria-selected=true]"
WHERE_AND_SAID = (
    """[".wb-rw-at", ".wb-rw-said"].map((part) => document.querySelector(part).innerText)"""
)

LABELS_IN_SIGHT = """() => [...document.querySelectorAll(".wb-rw g.wb-g-node")].filter((node) => {
  const { x, y, width, height } = node.querySelector(".wb-g-box").getBoundingClientRect();
  return node.contains(document.elementFromPoint(x + width / 2, y + height / 2));
}).map((node) => node.querySelector(".wb-g-label").textContent)"""
REACH = "select:has(option:text-is('near the change'))"


def test_replayed_states_are_those_of_the_record(functions: Functions) -> None:
    report = functions.evaluate("""() => {
      const wrong = [];
      let states = 0;
      for (const pass of record.passes) {
        if (!["rewrite", "step"].includes(pass.unit) || !pass.rewrites.length) continue;
        const known = pass.rewrites.map((step) => step[3]);
        const bare = {...pass, rewrites: pass.rewrites.map((step) => [...step.slice(0, 3), -1])};
        for (const row of [pass, bare]) {
          const timeline = new Timeline(record.nodes, row);
          const roots = row.rewrites.map((_, i) => timeline.roots(i + 1)[0]);
          roots.forEach((root, i) => {
            states++;
            if (known[i] >= 0 && root !== known[i]) wrong.push([pass.name, i]);
          });
          if (pass.unit === "rewrite" && roots.at(-1) !== pass.after[0]) wrong.push([pass.name, "last"]);
        }
      }
      return {wrong, states};
    }""")
    assert report["wrong"] == []
    assert report["states"] > 100


def test_words_are_those_of_python(functions: Functions, recorder: Recorder) -> None:
    kernels = [kernel.ast for kernel in recorder.kernels]
    nodes = dict.fromkeys(n for k in kernels for n in k.toposort())
    lines = {n: to_expr(n) for n in nodes if n.dtype.name != "void" and n.op.name != "BLOCK"}
    short = {n: t for n, t in lines.items() if "\n" not in t and len(t) < 50}
    count = len(plain(recorder.record)["nodes"]["op"])
    places = [recorder._nodes.add(n) for n in short]
    assert max(places) < count, "the record has them all"
    words = functions.evaluate("(places) => places.map((n) => inline(record.nodes, n, 90))", places)
    wrong = [(a, b) for a, b in zip(words, short.values(), strict=True) if a != b]
    assert len(short) > 60
    assert wrong == []


def test_figures_have_digits_that_count(functions: Functions) -> None:
    figures = [213.4, 99.96, 21.34, 9.996, 2.134, 0.2134, 0.00213, 0]
    texts = functions.evaluate("(listed) => listed.map(three)", figures)
    assert texts == ["213", "100", "21.3", "10.0", "2.13", "0.21", "0.0021", "0.00"]


def test_keys_step_through_a_pass(page: Any, record: Record) -> None:
    steps = decompose(record)["rewrites"]
    assert where(page) == f"before the first of {len(steps)}"
    page.keyboard.press("j")
    for number in range(1, len(steps) + 1):
        assert where(page) == f"{number} of {len(steps)}"
        rule = record["rules"][steps[number - 1][0]]
        assert rule["name"] in page.inner_text(".wb-rw-rule")
        assert page.locator(".wb-rw-minus").count() and page.locator(".wb-rw-plus").count()
        page.keyboard.press("j")
    assert where(page).startswith("before the first of "), "on into the next pass"
    page.keyboard.press("k")
    assert where(page) == f"{len(steps)} of {len(steps)}", "and back to the last"
    page.focus(".wb-rw-list [aria-selected=true]")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert where(page).startswith("1 of")
    page.keyboard.press("End")
    page.keyboard.press("k")
    assert where(page) == f"{len(steps) - 1} of {len(steps)}"
    page.keyboard.press("h")
    assert page.inner_text('.wb-rw-pass[aria-selected="true"]').startswith("statement-tree")
    assert page.evaluate("document.title") != "run"


def test_keys_stay_inside_where_what_had_the_focus_is_gone(page: Any) -> None:
    """A button that is disabled now, a picture that is hidden now."""
    inside = "document.activeElement.closest('.wb') !== null"
    page.click('[data-key="step-last"]')
    assert page.evaluate(inside)
    page.keyboard.press("k")
    page.click(".wb-rw .wb-g-stage", position={"x": 3, "y": 30})
    assert page.evaluate("document.activeElement.matches('.wb-g-stage')")
    page.keyboard.press("Home")
    while not page.inner_text(PICKED).startswith("render"):  # a text has no picture
        assert page.is_visible(".wb-rw .wb-g")
        page.keyboard.press("l")
    page.wait_for_selector(".wb-rw .wb-g", state="hidden")
    drawn(page)  # browsers take the focus away with the next frame
    assert page.evaluate(inside)


def test_a_pass_opens_on_the_picture_of_what_there_is_before_it(page: Any, record: Record) -> None:
    """Nothing is changed yet; where a pass has no steps there are its texts alone."""
    for name in "rangeify", "statement-tree", "linearize":
        page.click(f'.wb-rw-pass:has-text("{name}")')
        assert where(page).startswith("before")
        labels = page.locator(".wb-rw g.wb-g-kept .wb-g-label").all_text_contents()
        assert len(labels) > 5 and not page.locator(".wb-rw g.wb-g-new").count()
        picture = page.locator(".wb-rw .wb-g").bounding_box()
        whole = page.locator(".wb-split:has(> [data-pane=graph])").bounding_box()
        area = picture["width"] * picture["height"] / whole["width"] / whole["height"]
        assert area > 0.4, "the picture is the main thing"
    page.click('.wb-rw-pass:has-text("render")')
    page.wait_for_selector(".wb-rw .wb-g", state="hidden")


def test_a_pass_opens_at_what_its_first_rewrite_changes(page: Any, record: Record) -> None:
    """It is far from the sink, at which the drawing ends."""
    page.set_viewport_size({"width": 1400, "height": 500})
    row = next(p for p in record["passes"] if p["name"] == "expand-functions" and p["rewrites"])
    label = record["nodes"]["label"][row["rewrites"][0][1]]
    for form in "near the change", "whole graph":
        page.select_option(REACH, label=form)
        page.click('.wb-rw-pass:has-text("statement-tree")')
        page.click('.wb-rw-pass:has-text("expand-functions")')
        assert where(page).startswith("before")
        drawn(page)
        labels = page.locator(".wb-rw .wb-g-label").all_text_contents()
        assert labels.count(label) == 1
        assert label in page.evaluate(LABELS_IN_SIGHT)


def test_a_step_shows_what_was_and_what_is(page: Any) -> None:
    page.keyboard.press("j")
    gone = page.locator("g.wb-g-gone .wb-g-label").all_text_contents()
    assert gone and any("\u00d7" in label or label == "+" for label in gone)
    assert page.locator("g.wb-g-new").count() == 1
    assert page.text_content("g.wb-g-new .wb-g-label").startswith("fma")
    page.click('[title="nodes as a list"]')
    page.wait_for_selector(".wb-g-list [role=option]")
    listed = page.locator(".wb-g-list [role=option]").all_inner_texts()
    assert sum("(gone)" in text for text in listed) == len(gone)
    page.click('.wb-rw-texts summary:has-text("whole text")')
    page.wait_for_selector('.wb-rw-whole:has-text("fma(")')


def test_what_is_new_is_in_sight_where_the_change_has_no_room(page: Any) -> None:
    """An operand of a sum becomes an FMA, far above the sum."""
    page.set_viewport_size({"width": 1400, "height": 700})
    page.keyboard.press("j")
    drawn(page)
    assert page.text_content("g.wb-g-new .wb-g-label").startswith("fma")
    assert page.evaluate(NODES_IN_SIGHT, ".wb-g-new")


def test_a_function_is_stepped_through_as_it_lists_its_steps(page: Any, record: Record) -> None:
    """Ranges pushed through movement, statements placed into loops, lanes expanded, values hoisted,
    loops closed."""
    names = [rule["name"] for rule in record["rules"]]
    words = {
        "rangeify": ("STORE(", "push-through-op"),
        "statement-tree": ("+ for ", "place-identity"),
        "linearize": ("v0 = max(v0, row0[", "close-loop", "):", "end of "),
    }
    for name, texts in words.items():
        page.click(f'.wb-rw-pass:has(span:text-is("{name}")) >> nth=0')
        place = int(page.get_attribute(PICKED, "data-key").rpartition("-")[2])
        steps = record["passes"][place]["rewrites"]
        assert record["passes"][place]["unit"] == "step" and len(steps) > 2
        said = ""
        page.focus(".wb")
        for number, (rule, *_) in enumerate(steps, 1):
            page.keyboard.press("j")
            at, now = page.evaluate(WHERE_AND_SAID)
            assert at == f"{number} of {len(steps)}"
            assert names[rule] in now and record["rules"][rule]["doc"] in now
            said += now
        assert [text for text in texts if text not in said] == []
        assert page.locator(".wb-rw-main .wb-g").is_visible()


def test_a_pass_in_one_step_says_what_became_of_a_node(page: Any) -> None:
    """A function has no rewrites to step through, and no graph: its words and the node share the
    room, and the strip scrolls to it."""
    page.click('.wb-rw-pass:has-text("render")')
    assert page.locator(".wb-rw-at").count() == 0
    page.click(".wb-tab >> text=LLVM")
    page.click('.wb-line:has-text("fmul") >> nth=0')
    main, panel = (page.locator(f".wb-rw-{part}") for part in ("details", "panel"))
    page.wait_for_selector(".wb-rw-history")
    assert panel.bounding_box()["height"] > 0.4 * main.bounding_box()["height"]
    strip, block = (
        page.locator(s).bounding_box() for s in (".wb-blocks", ".wb-block[aria-selected=true]")
    )
    assert strip["x"] <= block["x"] + 1
    assert block["x"] + block["width"] <= strip["x"] + strip["width"] + 1
    page.focus(".wb")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.ariaLabel") == "filter passes"


def test_passes_are_as_wide_as_their_time_on_demand(page: Any) -> None:
    """The strip has equal blocks first; by time the longest pass has the widest, with its time."""
    blocks = page.locator(".wb-block")
    names = blocks.all_text_contents()
    page.click('[data-key="by time"]')
    assert page.get_attribute('[data-key="by time"]', "aria-pressed") == "true"
    grows = blocks.evaluate_all("all => all.map((e) => Number(e.style.flexGrow))")
    widths = blocks.evaluate_all("all => all.map((e) => e.getBoundingClientRect().width)")
    longest = grows.index(max(grows))
    assert max(grows) > 0 and widths[longest] == max(widths) > 2 * min(widths)
    assert re.fullmatch(rf"{names[longest]} [\d.,]+ (µs|ms|s)", blocks.nth(longest).text_content())
    page.click('[data-key="by time"]')
    assert blocks.all_text_contents() == names


def test_what_is_copied_is_what_is_shown(page: Any, record: Record) -> None:
    """By the button and by the key; tests/viz/record/test_recipe.py runs such code."""
    variant = next(v for v in record["variants"] if v["name"] == "auto")
    units = {p: record["passes"][p]["unit"] for p in variant["passes"]}
    place = next(p for p, unit in units.items() if unit == "opt")
    row = record["passes"][place]
    binding = record["expr"]["python"] + variant["recipe"]
    page.evaluate(COPIED)
    page.click(f"[data-key=kernel-{variant['kernel']}]")
    page.click(f'[data-key="variant-{record["variants"].index(variant)}"]')
    page.click(f"[data-key=pass-{place}]")
    page.click("[data-key=copy-step]")
    assert page.evaluate("copied") == binding + row["python"]["outcome"]
    last = len(row["rewrites"])
    page.click(f'[data-key="rw-{last}"]')
    page.keyboard.press("y")
    assert page.evaluate("copied") == binding + str(last - 1).join(row["python"]["match"])
