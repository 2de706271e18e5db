"""The graph of a step: its layout and its ghosts, the search for a node, and zoom."""

from __future__ import annotations

import json
from typing import Any

from tests.viz.browser.browser import drawn
from tests.viz.browser.rewrites.support import Record
from tests.viz.layouts import Functions


def test_layouts_do_not_overlap_and_have_no_depth_limit(functions: Functions) -> None:
    report = functions.evaluate("""() => {
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
      const fresh = layoutGraph(some);
      const half = new Map(fresh.places.slice(0, 30).map((p, key) => [key, p]));
      const deep = layoutGraph(graph(5000, Array.from({length: 4999}, (_, i) => [i, i + 1])));
      const circle = layoutGraph(graph(3, [[0, 1], [1, 2], [2, 0]]));
      const follow = layoutGraph(some, half);
      return {fresh: overlaps(some, fresh), follow: overlaps(some, follow),
        kept: [...half].every(([key, p]) => follow.places[key].x === p.x),
        deep: deep.places.at(-1).y, circle: circle.places.every((p) => Number.isFinite(p.x + p.y))};
    }""")
    assert report["fresh"] == 0 and report["follow"] == 0 and report["kept"]
    assert report["deep"] > 100_000 and report["circle"]


def test_a_change_has_a_ghost_and_nothing_else_moves(
    drawing_functions: Any, record: Record
) -> None:
    report = drawing_functions.evaluate("""() => {
      const pass = record.passes.filter((p) => p.rewrites.length > 20 && p.unit === "rewrite")[0];
      const timeline = new Timeline(record.nodes, pass);
      let before = new Map();
      const moved = [], steps = [];
      for (let k = 1; k <= pass.rewrites.length; k++) {
        for (const scene of [changeScene(timeline, k), wholeScene(timeline, k)]) {
          const kinds = (state) => scene.nodes.filter((n) => n.state === state).map((n) => n.op);
          const cut = scene.edges.filter((e) => e.state === "gone").length;
          steps.push([kinds("gone"), kinds("new"), cut]);
        }
        const drawing = placedDrawing(record, wholeScene(timeline, k), before);
        const now = new Map(drawing.nodes.map((n) => [n.key, n]));
        for (const [key, {x, y}] of now) {
          const was = before.get(key) || {x, y};
          if (was.x !== x || was.y !== y) moved.push([k, key]);
        }
        before = now;
      }
      return {moved, steps};
    }""")
    assert len(report["steps"]) > 40
    for gone, new, edges in report["steps"]:
        assert gone == ["IDIV"] and new == ["SHR"] and edges >= 2
    assert report["moved"] == []


def test_between_what_is_near_and_the_whole_there_is_more(page: Any) -> None:
    page.keyboard.press("j")
    counts = []
    for reach in range(3):
        page.select_option("[aria-label^='the drawn nodes']", str(reach))
        drawn(page)
        counts.append(
            page.evaluate("""() => {
          const nodes = document.querySelectorAll(".wb-rw .wb-g-node");
          return nodes.length;
        }""")
        )
    assert counts[0] < counts[1] < counts[2], counts


def test_search_finds_a_node(page: Any) -> None:
    page.keyboard.press("j")
    for _ in range(2):
        page.keyboard.press("g")  # by what is wider to the whole graph
    page.keyboard.press("/")
    page.keyboard.type("exp2")
    assert page.inner_text(".wb-rw .wb-g-count") == "1 match"
    page.keyboard.press("Enter")
    assert page.inner_text(".wb-rw .wb-g-count") == "1 of 1"
    assert page.text_content(".wb-g-picked .wb-g-label").startswith("exp2")
    assert "EXP2" in page.inner_text(".wb-rw-node")


def test_a_picked_box_shows_its_operands_and_its_readers(page: Any) -> None:
    page.keyboard.press("j")
    for _ in range(2):
        page.keyboard.press("g")
    drawn(page)
    page.keyboard.press("/")
    page.keyboard.type("exp2")
    page.keyboard.press("Enter")
    drawn(page)
    strokes = """(name) => [".wb-g-node", ".wb-g-edge"].map((kind) => {
      const part = document.querySelector(`.wb-rw-main ${kind}.wb-g-${name}`);
      return part && getComputedStyle(part.querySelector(".wb-g-box") ?? part).stroke;
    })"""
    operand, reader = (page.evaluate(strokes, name) for name in ("operand", "reader"))
    assert operand[1] and reader[1] and operand[1] != reader[1]
    assert page.locator(".wb-rw-main .wb-g-node.wb-g-operand").count() >= 1
    assert page.locator(".wb-rw-main .wb-g-node.wb-g-reader").count() >= 1


def test_the_wheel_zooms_only_with_control(page: Any) -> None:
    page.keyboard.press("j")
    moved = "document.querySelector('.wb-g-svg > g').getAttribute('transform')"
    page.hover(".wb-rw .wb-g-stage")
    drawn(page)
    before = page.evaluate(moved)
    page.mouse.wheel(0, 120)
    drawn(page)
    assert page.evaluate(moved) == before
    page.keyboard.down("Control")
    page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    page.wait_for_function(f"{moved} !== {json.dumps(before)}")
