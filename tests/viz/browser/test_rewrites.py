"""Rewrites mode in a real browser: states, layouts and words as pure functions, then the page."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser.browser import COPIED, session_page, shown
from tests.viz.live import support as live
from tests.viz.support import array
from workbench.ir.expr import to_expr
from workbench.ir.uop import UOp
from workbench.tensor.tensor import Tensor
from workbench.viz import explore
from workbench.viz.model.provenance import links_of
from workbench.viz.page import export_html, packed, scripts
from workbench.viz.record.record import Recorder

Record = dict[str, Any]
HOSTILE = "<img src=x onerror=\"document.title='run'\">"


def chain(steps: int) -> Tensor:
    """Return elementwise arithmetic in which many rewrites each change one node of a long chain."""
    x = y = array(16, 16)
    for step in range(steps):
        y = (y * (0.5 + step) + x).relu()
    return y


def softmax_and_chain() -> tuple[Tensor, Tensor]:
    return array(64, 48).softmax(1), chain(24)


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    made = Recorder(explore(*softmax_and_chain()))
    made.first()
    for _ in made.rest():
        pass
    return made


@pytest.fixture(scope="module")
def record(recorder: Recorder) -> Record:
    made: Record = json.loads(json.dumps(recorder.record))
    made["rules"][0]["doc"] = HOSTILE
    return made


@pytest.fixture(scope="module")
def functions(browser: Any, record: Record) -> Iterator[Any]:
    """A page with the functions of the page as globals, and the record as `record`."""
    page = browser.new_context(offline=True).new_page()
    page.add_script_tag(content=scripts().replace("export default { render };", ""))
    page.evaluate("(made) => { window.record = made; }", record)
    yield page
    page.context.close()


@pytest.fixture
def page(browser: Any, record: Record, tmp_path: Path) -> Iterator[Any]:
    yield from rewrites_page(browser, tmp_path, export_html(record))


@pytest.fixture
def session(browser: Any, record: Record, tmp_path: Path) -> Iterator[Any]:
    yield from rewrites_page(browser, tmp_path, session_page(record))


def rewrites_page(browser: Any, folder: Path, html: str) -> Iterator[Any]:
    """Open a page in Rewrites mode, at the rewrites of the softmax's `decompose`."""
    for page in shown(browser, folder, html, mode="2"):
        page.click('.wb-rw-pass:has-text("decompose")')
        page.wait_for_function(
            "document.querySelector('.wb-rw-at').textContent.startsWith('before')"
        )
        yield page


def decompose(record: Record) -> Record:
    """Return the row of the pass that the pages show."""
    listed = record["variants"][0]["passes"]
    return next(
        record["passes"][p]
        for p in listed
        if record["passes"][p]["name"] == "decompose"
    )


def where(page: Any) -> str:
    text: str = page.inner_text(".wb-rw-at")
    return text


# pure functions


def test_replayed_states_are_those_of_the_record(functions: Any) -> None:
    found = functions.evaluate("""() => {
      const wrong = [];
      let states = 0;
      for (const pass of record.passes) {
        if (pass.unit !== "rewrite" || !pass.rewrites.length) continue;
        const known = pass.rewrites.map((step) => step[3]);
        const bare = {...pass, rewrites: pass.rewrites.map((step) => [...step.slice(0, 3), -1])};
        for (const row of [pass, bare]) {
          const timeline = new_timeline(record.nodes, row);
          const roots = row.rewrites.map((_, i) => timeline.roots(i + 1)[0]);
          roots.forEach((root, i) => {
            states++;
            if (known[i] >= 0 && root !== known[i]) wrong.push([pass.name, i]);
          });
          if (roots.at(-1) !== pass.after[0]) wrong.push([pass.name, "last"]);
        }
      }
      return {wrong, states};
    }""")
    assert found["wrong"] == []
    assert found["states"] > 100


def test_words_are_those_of_python(functions: Any, recorder: Recorder) -> None:
    kernels = [kernel.ast for kernel in recorder.kernels]
    nodes = dict.fromkeys(n for k in kernels for n in k.toposort())
    lines = {
        n: to_expr(n) for n in nodes if n.dtype.name != "void" and n.op.name != "BLOCK"
    }
    short = {n: t for n, t in lines.items() if "\n" not in t and len(t) < 50}
    places = [place_of(recorder, n) for n in short]
    words = functions.evaluate(
        "(places) => places.map((n) => expr_inline(record.nodes, n, 90))", places
    )
    wrong = [(a, b) for a, b in zip(words, short.values(), strict=True) if a != b]
    assert len(short) > 60
    assert wrong == []


def place_of(recorder: Recorder, node: UOp) -> int:
    """Return the place of a node that the record has."""
    count = len(recorder.record["nodes"]["op"])
    place = recorder._nodes.add(node)
    assert place < count
    return place


def test_a_change_has_a_ghost_and_nothing_else_moves(
    functions: Any, record: Record
) -> None:
    found = functions.evaluate("""() => {
      const pass = record.passes.filter((p) => p.rewrites.length > 20 && p.unit === "rewrite")[0];
      const timeline = new_timeline(record.nodes, pass);
      let before = new Map();
      const moved = [], steps = [];
      for (let k = 1; k <= pass.rewrites.length; k++) {
        for (const scene of [change_scene(timeline, k), whole_scene(timeline, k)]) {
          const kinds = (state) => scene.nodes.filter((n) => n.state === state).map((n) => n.op);
          const cut = scene.edges.filter((e) => e.state === "gone").length;
          steps.push([kinds("gone"), kinds("new"), cut]);
        }
        const drawing = placed_drawing(whole_scene(timeline, k), before);
        const now = new Map(drawing.nodes.map((n) => [n.key, n]));
        for (const [key, {x, y}] of now) {
          const was = before.get(key) || {x, y};
          if (was.x !== x || was.y !== y) moved.push([k, key]);
        }
        before = now;
      }
      return {moved, steps};
    }""")
    assert len(found["steps"]) > 40
    for gone, new, edges in found["steps"]:
        assert sorted(gone) == ["ADD", "MUL"] or gone == ["ADD"]
        assert new == ["FMA"] and edges >= 2
    assert found["moved"] == []


def test_layouts_do_not_overlap_and_have_no_depth_limit(functions: Any) -> None:
    found = functions.evaluate("""() => {
      const graph = (count, edges) => ({
        nodes: Array.from({length: count}, (_, key) => ({key, w: 50 + (key * 37) % 90, h: 34})),
        edges: edges.map(([a, b], i) => ({a, b, slot: i % 2, slots: 2}))});
      const overlaps = ({nodes}, {places}) => {
        let count = 0;
        places.forEach((p, i) => places.slice(0, i).forEach((q, j) => {
          const apart = Math.abs(p.x - q.x) - (nodes[i].w + nodes[j].w) / 2;
          if (apart < -0.1 && Math.abs(p.y - q.y) < 33.9) count++;
        }));
        return count;
      };
      const some = graph(60, Array.from({length: 59}, (_, i) => [Math.floor(i / 2), i + 1]));
      const fresh = layout_graph(some);
      const half = new Map(fresh.places.slice(0, 30).map((p, key) => [key, p]));
      const deep = layout_graph(graph(5000, Array.from({length: 4999}, (_, i) => [i, i + 1])));
      const circle = layout_graph(graph(3, [[0, 1], [1, 2], [2, 0]]));
      const follow = layout_graph(some, half);
      return {fresh: overlaps(some, fresh), follow: overlaps(some, follow),
        kept: [...half].every(([key, p]) => follow.places[key].x === p.x),
        deep: deep.places.at(-1).y, circle: circle.places.every((p) => Number.isFinite(p.x + p.y))};
    }""")
    assert found["fresh"] == 0 and found["follow"] == 0 and found["kept"]
    assert found["deep"] > 100_000 and found["circle"]


def test_what_led_to_a_node_is_what_python_says(
    functions: Any, recorder: Recorder, record: Record
) -> None:
    compared = 0
    for variant, row in enumerate(record["variants"]):
        kernel, number = recorder.kernels[variant], row["kernel"]
        compiled = kernel.compile()
        ex = recorder.exploration
        value = [item.node for item in ex.items if item.kernel is not None][number]
        links = links_of(compiled, ex.passes, value)
        places = [*range(len(ex.passes)), *row["passes"]]
        for node in dict.fromkeys(compiled.built.linear):
            if node not in recorder._nodes:
                continue
            wanted = [(places[c.place], c.number) for c in links.why(node)]
            found = functions.evaluate(
                "([places, n]) => node_history(record, places, [n])",
                [places, recorder._nodes.add(node)],
            )
            steps = [(r["pass"], r["step"]) for r in found if "origin" not in r]
            # what is not in the record (ranges before they had names) ends no chain there
            known = [w for w in wanted if w[1] or w in steps]
            assert steps == known, to_expr(node)
            compared += len(steps)
    assert compared > 500


# the page


def test_a_line_of_code_leads_to_its_rules(page: Any) -> None:
    """From an instruction in Tune to the rewrite that made it: one click, one key, one click."""
    page.keyboard.press("1")
    page.click('.wb-code-tabs button:has-text("LLVM"), [role=tab]:has-text("LLVM")')
    page.click('.wb-line:has-text(" shl i32") >> nth=0')
    maker = page.locator('.wb-code-origin [data-key^="made-by-"]').first
    rule = maker.inner_text().removesuffix(" ›")
    maker.click()
    page.wait_for_selector(f".wb-rw-rule:has-text('{rule}')")
    page.keyboard.press("1")
    page.click('.wb-line:has-text(" shl i32") >> nth=0')
    page.keyboard.press("2")
    page.click('.wb-rw-history [role=option]:has-text("exp2-polynomial")')
    assert "exp2-polynomial" in page.inner_text(".wb-rw-rule")
    assert "tensor graph" in page.inner_text(".wb-rw-history")


def test_keys_step_through_a_pass(page: Any, record: Record) -> None:
    steps = decompose(record)["rewrites"]
    assert where(page) == f"before, of {len(steps)}"
    page.keyboard.press("j")
    for number in range(1, len(steps) + 1):
        assert where(page) == f"{number} of {len(steps)}"
        rule = record["rules"][steps[number - 1][0]]
        assert rule["name"] in page.inner_text(".wb-rw-rule")
        assert (
            page.locator(".wb-rw-minus").count() and page.locator(".wb-rw-plus").count()
        )
        page.keyboard.press("j")
    assert where(page) == f"{len(steps)} of {len(steps)}", (
        "there is none after the last"
    )
    page.focus(".wb-rw-list [aria-selected=true]")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert where(page).startswith("1 of")
    page.keyboard.press("End")
    page.keyboard.press("k")
    assert where(page) == f"{len(steps) - 1} of {len(steps)}"
    page.keyboard.press("h")
    assert page.inner_text('.wb-rw-pass[aria-selected="true"]').startswith(
        "statement-tree"
    )
    assert page.evaluate("document.title") != "run"


def test_a_step_shows_what_was_and_what_is(page: Any) -> None:
    page.keyboard.press("j")
    gone = page.locator("g.wb-g-gone .wb-g-label").all_text_contents()
    assert gone and any("\u00d7" in label or label == "+" for label in gone)
    assert page.locator("g.wb-g-new").count() == 1
    assert page.text_content("g.wb-g-new .wb-g-label").startswith("fma")
    page.click("text=nodes as a list")
    page.wait_for_selector(".wb-g-list [role=option]")
    listed = page.locator(".wb-g-list [role=option]").all_inner_texts()
    assert sum("(gone)" in text for text in listed) == len(gone)
    page.click('.wb-rw-texts summary:has-text("whole text")')
    page.wait_for_selector('.wb-rw-whole:has-text("fma(")')


def test_a_pass_in_one_step_says_what_became_of_a_node(page: Any) -> None:
    """A function has no rewrites to step through, and no graph: its words and the node share the
    room, and the strip scrolls to it."""
    page.click('.wb-rw-pass:has-text("linearize")')
    assert page.locator(".wb-rw-at").count() == 0
    page.click(".wb-tab >> text=LLVM")
    page.click('.wb-line:has-text("fmul") >> nth=0')
    main, panel = (page.locator(f".wb-rw-{part}") for part in ("main", "panel"))
    page.wait_for_selector(".wb-rw-history")
    assert panel.bounding_box()["height"] > 0.4 * main.bounding_box()["height"]
    strip, block = (
        page.locator(s).bounding_box()
        for s in (".wb-blocks", ".wb-block[aria-selected=true]")
    )
    assert strip["x"] <= block["x"] + 1
    assert block["x"] + block["width"] <= strip["x"] + strip["width"] + 1
    page.focus(".wb")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.ariaLabel") == "filter passes"


def test_search_finds_a_node(page: Any) -> None:
    page.keyboard.press("j")
    page.keyboard.press("g")
    page.keyboard.press("/")
    page.keyboard.type("exp2")
    assert page.inner_text(".wb-rw .wb-g-count") == "1 match"
    page.keyboard.press("Enter")
    assert page.inner_text(".wb-rw .wb-g-count") == "1 of 1"
    assert page.text_content(".wb-g-picked .wb-g-label").startswith("exp2")
    assert "EXP2" in page.inner_text(".wb-rw-node")


def test_history_names_the_rule_and_leads_to_it(page: Any) -> None:
    page.click('.wb-rw-list [role=option]:has-text("form-fma") >> nth=-1')
    last = where(page)
    page.click("g.wb-g-new")
    page.keyboard.press("k")
    page.click('.wb-rw-history [role=option]:has-text("form-fma")')
    assert where(page) == last
    assert page.locator(".wb-g-picked").count() == 1


def test_the_wheel_zooms_only_with_control(page: Any) -> None:
    page.keyboard.press("j")
    moved = "document.querySelector('.wb-g-svg > g').getAttribute('transform')"
    page.hover(".wb-rw .wb-g-stage")
    before = page.evaluate(moved)
    page.mouse.wheel(0, 120)
    assert page.evaluate(moved) == before
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    page.wait_for_function(f"{moved} !== {json.dumps(before)}")


def test_offline_what_needs_python_says_so(page: Any) -> None:
    page.keyboard.press("j")
    page.click("g.wb-g-new")
    for key in ("rule-off", "bisect", "values", "why-not"):
        button = page.locator(f'[data-key="{key}"]')
        assert button.get_attribute("aria-disabled") == "true", key
        assert "needs the Python session" in button.get_attribute("title"), key
    told = page.inner_text(".wb-rw-switch")
    assert 'from Python: explore(y, without=("form-fma",))' in told


def answer(page: Any, do: str, result: Any) -> Record:
    """Answer the last request `do` with a result; return the request."""
    page.wait_for_function("(d) => sent.some((m) => m.do === d)", arg=do)
    request: Record = page.evaluate("(d) => sent.findLast((m) => m.do === d)", do)
    reply = {
        "id": request["id"],
        "ok": True,
        "error": None,
        "result": result,
        "patch": None,
    }
    page.evaluate("(reply) => hear(reply)", reply)
    return request


def test_questions_to_python(session: Any, record: Record) -> None:
    page, place = session, record["passes"].index(decompose(record))
    page.keyboard.press("j")
    page.click("g.wb-g-new")
    page.click('[data-key="why-not"]')
    text = "((a * b) + c) -> FMA(a, b, c)"
    start = text.index("a * b")
    because = "b is not a constant"
    asked = answer(page, "why_not", {
        "rule": "form-fma", "text": text, "caret_start": start, "caret_end": start + 5,
        "because": because,
    })  # fmt: skip
    assert (asked["pass"], asked["step"]) == (place, 1)
    told = page.inner_text(".wb-rw-answer").split("\n")
    assert told[0] == text and told[1] == " " * start + "^" * 5
    assert because in told[-1]

    page.click('[data-key="values"]')
    axes = answer(
        page, "values", {"value": 2.5, "min": 0, "max": 3, "nan": 0, "shape": [4]}
    )
    assert axes["at"] and set(axes["at"].values()) == {0}
    assert "2.5" in page.inner_text(".wb-rw-values")

    page.click('[data-key="rule-off"]')
    made = next(i for i, v in enumerate(record["variants"]) if v["name"] == "auto")
    asked = answer(page, "rule_off", {"variant": made})
    assert (asked["kernel"], asked["of"], asked["on"]) == (0, 0, False)
    assert asked["rule"] == decompose(record)["rewrites"][0][0]
    assert answer(page, "check", {})["variant"] == made
    assert answer(page, "measure", {})["variants"] == [made, 0]
    page.click('.wb-variant:has-text("plain") >> nth=0')
    page.click('.wb-rw-pass:has-text("decompose")')

    page.click('[data-key="bisect"]')
    answer(
        page,
        "bisect",
        {"pass": place, "step": 2, "rule": "form-fma", "text": "it was 2"},
    )
    page.wait_for_function(
        "document.querySelector('.wb-rw-at').textContent.startsWith('2 of')"
    )


def test_bisecting_is_of_the_variant_and_its_answer_stays(
    session: Any, record: Record
) -> None:
    page = session
    auto = next(i for i, v in enumerate(record["variants"]) if v["name"] == "auto")
    page.click('.wb-variant:has-text("auto")')
    page.click('[data-key="bisect"]')
    page.wait_for_selector(".wb-rw-found :text('computing states')")
    said = {"pass": None, "step": 0, "text": "every state computes the same"}
    assert answer(page, "bisect", said)["variant"] == auto
    page.wait_for_selector(".wb-rw-found :text('every state computes the same')")
    page.wait_for_timeout(2700)  # longer than what only comes and goes
    assert page.inner_text(".wb-rw-found").startswith("bisect of auto")
    page.click('.wb-variant:has-text("plain") >> nth=0')
    page.wait_for_selector(".wb-rw-found:empty", state="attached")
    page.click('[data-key="bisect"]')
    answer(page, "bisect", said | {"text": "rewrite 2 of 5"})
    page.wait_for_selector(".wb-rw-found :text('bisect of plain')")
    page.keyboard.press("j")
    page.click(".wb-rw-list [role=option] >> nth=0")
    page.click('[data-key="rule-off"]')
    page.wait_for_selector(".wb-rw-found:empty", state="attached")


def test_a_rule_of_scheduling_off_is_a_banner_until_it_is_on_again(
    browser: Any, tmp_path: Path
) -> None:
    """Python sends everything anew; what is off, what that changed and the way back stand over
    all modes, though the rule fires nowhere now."""
    rule = "div-power-of-two"
    with live.session_of(explore((array(16, 16) / 4.0).sum(1))) as python:
        python.complete()
        before = copy.deepcopy(python.record)
        asked = {"do": "rule_off", "kernel": 0, "rule": rule, "on": False}
        assert python.handle({"id": 1, **asked})["ok"]
        anew = copy.deepcopy(python.record)
        python.handle({"id": 2, "do": "check", "variant": 0})
        checked = python.record["variants"][0]["check"]
    for page in shown(browser, tmp_path, session_page(before), mode="2"):
        page.click('.wb-rw-pass:has-text("simplify-tensor")')
        page.keyboard.press("j")
        assert page.locator(".wb-without").is_hidden()
        page.click('[data-key="rule-off"]')
        asked = answer(page, "rule_off", {"n": anew["n"], "record": packed(anew)})
        assert before["rules"][asked["rule"]]["name"] == rule and asked["on"] is False
        assert answer(page, "check", {})["variant"] == 0
        times = anew["plan"]["compared"] | {"seconds": [1, 2], "told": "2x slower"}
        numbered = [[["n"], anew["n"] + 1]]
        news = [[["plan", "compared"], times], [["variants", 0, "check"], checked]]
        page.evaluate("(p) => hear({patch: p})", {"append": {}, "set": news + numbered})
        answer(page, "plans", {})
        for mode in "123":
            page.keyboard.press(mode)
            told = page.inner_text(".wb-without")
            assert told.startswith(f"without {rule}"), mode
            for said in ("1 line of C differs", "2x slower", "right"):
                assert said in told, mode
        assert "/ 4.0f" in page.inner_text(".wb-code-pane")
        page.click(f'[data-key="rule-on-{rule}"]')
        asked = answer(page, "rule_off", {"n": before["n"], "record": packed(before)})
        assert (asked["rule"], asked["on"]) == (rule, True)
        page.wait_for_selector(".wb-without", state="hidden")
        assert "* 0.25f" in page.inner_text(".wb-code-pane")
    for page in shown(browser, tmp_path, export_html(anew)):
        assert f"without {rule}" in page.inner_text(".wb-without")
        button = page.locator(f'[data-key="rule-on-{rule}"]')
        assert button.get_attribute("aria-disabled") == "true"


def test_a_variant_without_a_rule_says_what_changed(
    browser: Any, record: Record, tmp_path: Path
) -> None:
    made = copy.deepcopy(record)
    variant = copy.deepcopy(made["variants"][0])
    variant |= {"name": "mine 1", "parent": 0, "rules_off": ["form-fma"]}
    variant["code"][0]["lines"][-2] += " // changed"
    made["variants"][0:1] = [made["variants"][0]]
    made["variants"].append(variant)
    for page in rewrites_page(browser, tmp_path, export_html(made)):
        page.click('.wb-variant:has-text("mine 1")')
        page.click(".wb-header", position={"x": 4, "y": 4})
        assert "without form-fma" in page.inner_text(".wb-rw-banner")
        assert "1 line of C" in page.inner_text(".wb-rw-banner")


@pytest.mark.parametrize(
    ("unit", "name"),
    [("rewrite", ""), ("decision", ""), ("rewrite", "plain"), ("opt", "auto")],
)
def test_what_is_copied_gets_at_what_is_shown(
    page: Any, recorder: Recorder, record: Record, unit: str, name: str
) -> None:
    """Run where the tensors are, it finds the very nodes: of a variant's passes, and of those of
    scheduling, which have none."""
    passes, variants = record["passes"], record["variants"]
    of_variants = {p for v in variants for p in v["passes"]}
    own = {p for v in variants for p in v["passes"] if v["name"] == name}
    seen = sorted(own or set(range(len(passes))) - of_variants)
    place = next(p for p in seen if passes[p]["unit"] == unit and passes[p]["rewrites"])
    kernel = passes[place]["kernel"] or 0
    variant = next(
        v for v in variants if v["name"] == (name or "plain") and v["kernel"] == kernel
    )
    rewrites = passes[place]["rewrites"]
    page.evaluate(COPIED)
    page.click(f"[data-key=kernel-{variant['kernel']}]")
    page.click(f'[data-key="variant-{variants.index(variant)}"]')
    page.click(f"[data-key=pass-{place}]")
    names: Record = {"y": recorder.exploration.tensors}
    page.click("[data-key=copy-step]")
    exec(page.evaluate("copied"), names)
    assert names["found"].name == passes[place]["name"]
    page.click(f'[data-key="rw-{len(rewrites)}"]')
    page.keyboard.press("y")
    exec(page.evaluate("copied"), names)
    match, (rule, before, after, _) = names["match"], rewrites[-1]
    assert match.before is recorder.node(before)
    assert unit == "decision" or match.after is recorder.node(after)
    assert rule == -1 or str(match.rule).startswith(record["rules"][rule]["name"])
