// Arrangements: a layout for each width, and what the reader makes of it, for each notebook.

import assert from "node:assert/strict";
import { Arrangements } from "../../../../workbench/viz/page/board/arrangement.js";
import {
  aloneTree,
  LAYOUTS,
  openingLayout,
  storeLayout,
  treeOf,
  widthOf,
} from "../../../../workbench/viz/page/board/layouts.js";
import {
  asTree,
  panesOf,
  removed,
  unfoldedPanes,
} from "../../../../workbench/viz/page/board/tree.js";

const WIDTHS = ["wide", "medium", "small", "narrow"];
const PANES = [
  ...new Set(LAYOUTS.flatMap(({ trees }) => Object.values(trees).flatMap(panesOf))),
];

/** What a browser stores, from one page to the next. */
function storage() {
  const stored = new Map();
  const value = {
    getItem: (key) => stored.get(key) ?? null,
    setItem: (key, text) => stored.set(key, text),
  };
  Object.defineProperty(globalThis, "localStorage", { value, configurable: true });
  return stored;
}

/** @param {string} pathname */
const visit = (pathname) =>
  Object.defineProperty(globalThis, "location", { value: { pathname }, configurable: true });

/** The arrangements of a page that opens with a layout. */
function opened(mode, only = null) {
  const news = [];
  const app = { view: { mode, only }, changed: (what) => news.push(what) };
  const arrangements = new Arrangements(app);
  arrangements.open(LAYOUTS, PANES);
  return { app, arrangements, news };
}

Deno.test("every layout is a tree of panes, each once, whatever the width", () => {
  for (const layout of LAYOUTS) {
    for (const width of WIDTHS) {
      const tree = treeOf(layout, width);
      assert.deepEqual(new Set(panesOf(asTree(tree, () => true))), new Set(panesOf(tree)));
      assert.ok(unfoldedPanes(tree).some((pane) => layout.main.includes(pane)), layout.name);
    }
  }
});

Deno.test("the board has the graph, the passes, the opts and the source together", () => {
  for (const width of WIDTHS) {
    const panes = unfoldedPanes(treeOf(LAYOUTS[0], width));
    for (const pane of ["graph", "passes", "opts", "code"]) assert.ok(panes.includes(pane));
  }
  const { arrangements } = opened("");
  assert.equal(arrangements.layout.name, "board");
  assert.deepEqual([1400, 953, 800, 500].map(widthOf), ["wide", "medium", "small", "narrow"]);
  const stacked = [1400, 953, 800, 500].map((
    pixels,
  ) => (arrangements.measure(pixels), arrangements.isStacked));
  assert.deepEqual(stacked, [false, false, true, true]);
});

Deno.test("where the picture is the main thing, the columns beside it are folded at first", () => {
  storage();
  const { app, arrangements } = opened("plan");
  const open = () => ["left", "right", "aside"].map((name) => arrangements.isOpen(name));
  assert.deepEqual(open(), [false, false, true]);
  app.view.mode = "tune";
  assert.deepEqual(open(), [true, true, null]);
});

Deno.test("what is folded is so in its layout and at its width alone, and in the next page", () => {
  storage();
  visit("/lab/tree/a.ipynb");
  const { app, arrangements, news } = opened("plan");
  arrangements.toggle("left");
  arrangements.toggle("nothing");
  assert.deepEqual(news, ["board"]);
  assert.ok(arrangements.shows("kernels"));
  arrangements.measure(900);
  assert.equal(arrangements.shows("kernels"), false);
  app.view.mode = "rewrites";
  assert.equal(arrangements.isOpen("left"), false);
  assert.equal(opened("plan").arrangements.isOpen("left"), true);
});

Deno.test("each notebook has its own, whichever workspace it is open in", () => {
  const stored = storage();
  visit("/lab/tree/a.ipynb");
  opened("tune").arrangements.toggle("right");
  visit("/lab/workspaces/w/tree/a.ipynb");
  assert.equal(opened("tune").arrangements.isOpen("right"), false);
  visit("/lab/tree/b.ipynb");
  assert.equal(opened("tune").arrangements.isOpen("right"), true);
  for (let i = 0; i < 60; i++) {
    visit(`/lab/tree/${i}.ipynb`);
    opened("tune").arrangements.toggle("right");
  }
  assert.equal(Object.keys(JSON.parse(stored.get("workbench-board"))).length, 40);
});

Deno.test("one click shows a layout as it was at first", () => {
  const stored = storage();
  const { arrangements } = opened("board");
  const before = arrangements.tree;
  arrangements.change({ tree: removed(before, "opts"), bars: false });
  arrangements.change({ large: "graph" });
  assert.deepEqual([...arrangements.shown], ["graph"]);
  arrangements.change({ large: null });
  assert.equal(arrangements.shows("opts"), false);
  assert.equal(arrangements.isChanged, true);
  arrangements.reset();
  assert.deepEqual(arrangements.tree, before);
  assert.equal(arrangements.tree, arrangements.tree, "the same until it changes");
  assert.equal(arrangements.isChanged, false);
  assert.deepEqual(JSON.parse(stored.get("workbench-board")), {});
});

Deno.test("a drag is stored at its end", () => {
  const stored = storage();
  const { arrangements } = opened("board");
  arrangements.change({ tree: removed(arrangements.tree, "opts") }, false);
  assert.equal(stored.size, 0);
  arrangements.store();
  assert.equal(opened("board").arrangements.shows("opts"), false);
});

Deno.test("what something else stored there is left out", () => {
  visit("/lab/tree/a.ipynb");
  for (
    const text of [
      "{broken",
      "5",
      "null",
      '{"a.ipynb": 3}',
      '{"a.ipynb": {"board wide": {"tree": {"pane": "none"}, "large": "none", "bars": 4}}}',
      '{"a.ipynb": {"board wide": {"tree": {"way": "row", "sizes": [1], "parts": []}}}}',
    ]
  ) {
    storage().set("workbench-board", text);
    const { arrangements } = opened("board");
    assert.ok(arrangements.shows("graph") && arrangements.hasBars);
    assert.equal(arrangements.isChanged, false);
  }
});

Deno.test("an expression opens in the layout that the reader chose last in this notebook", () => {
  const opening = (key, ask) => openingLayout({ ask, kernels: [{}], key });
  const stored = storage();
  visit("/lab/tree/a.ipynb");
  assert.equal(opening("matmul"), "board");
  storeLayout("matmul", "tune");
  storeLayout("softmax", "plan");
  storeLayout("matmul", "gpu");
  assert.deepEqual(["matmul", "softmax", "other"].map((key) => opening(key)), [
    "gpu",
    "plan",
    "board",
  ]);
  assert.equal(opening("softmax", { kind: "bound" }), "tune", "a question stands beside its table");
  for (let i = 0; i < 70; i++) storeLayout(`key ${i}`, "tune");
  const { "a.ipynb": here } = JSON.parse(stored.get("workbench-layouts"));
  assert.equal(Object.keys(here).length, 60);
  assert.deepEqual([opening("matmul"), opening("key 69")], ["board", "tune"]);
  visit("/lab/tree/b.ipynb");
  assert.equal(opening("key 69"), "board");
});

Deno.test("a browser that stores nothing shows all the same", () => {
  Object.defineProperty(globalThis, "localStorage", {
    get() {
      throw new Error("not allowed");
    },
    configurable: true,
  });
  const { arrangements } = opened("tune");
  arrangements.toggle("right");
  assert.equal(arrangements.isOpen("right"), false);
});

Deno.test("a pane alone is all that there is; it has no bar, and a plan has its reasons", () => {
  storage();
  const { arrangements } = opened("tune", "loops");
  assert.deepEqual(panesOf(arrangements.tree), ["loops"]);
  assert.equal(arrangements.hasBars, false);
  assert.deepEqual(panesOf(aloneTree("plan")), ["plan", "reasons", "decisions"]);
});

Deno.test("a click leads to the layout of a pane only where the pane is not in sight", () => {
  storage();
  const { arrangements } = opened("board");
  assert.deepEqual(arrangements.toSee("graph", "rewrites"), {});
  assert.deepEqual(arrangements.toSee("plan", "plan"), { mode: "plan" });
});
