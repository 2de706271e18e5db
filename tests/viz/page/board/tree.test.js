// The tree of panes: its operations, and what is taken for one.

import assert from "node:assert/strict";
import {
  asTree,
  column,
  evened,
  leaf,
  moved,
  named,
  panesOf,
  partAt,
  pathOf,
  removed,
  replaced,
  row,
  split,
  toggled,
  unfoldedPanes,
} from "../../../../workbench/viz/page/board/tree.js";

const isKnown = (pane) => /^[a-z]$/.test(pane);
const TREE = row([30, 70], "a", column([60, 40], "b", leaf("c", { fits: true })));

Deno.test("a pane is found by its name", () => {
  assert.deepEqual(panesOf(TREE), ["a", "b", "c"]);
  assert.deepEqual(["a", "c", "x"].map((pane) => pathOf(TREE, pane)), [[0], [1, 1], null]);
  assert.deepEqual(partAt(TREE, [1, 0]), { pane: "b" });
  assert.equal(partAt(TREE, [0, 0]), null);
});

Deno.test("a split along its own way shares the room of the pane", () => {
  assert.deepEqual(
    split(TREE, "a", "row", "d"),
    row([15, 15, 70], "a", "d", column([60, 40], "b", leaf("c", { fits: true }))),
  );
});

Deno.test("a split across makes a part of its own", () => {
  const tree = split(TREE, "b", "row", "d");
  assert.deepEqual(partAt(tree, [1, 0]), row([50, 50], "b", "d"));
  assert.deepEqual(panesOf(tree), ["a", "b", "d", "c"]);
});

Deno.test("a region keeps its name when it is split", () => {
  const tree = row([50, 50], leaf("a", { name: "left" }), "b");
  const both = split(tree, "a", "column", "c");
  assert.deepEqual(panesOf(named(both, "left")), ["a", "c"]);
  assert.deepEqual(named(removed(both, "a"), "left"), leaf("c", { name: "left" }));
});

Deno.test("a pane that is there already is not added again, nor are too many", () => {
  assert.equal(split(TREE, "a", "row", "c"), TREE);
  let tree = leaf("a");
  for (const pane of "bcdefghijklmnopqrstuvwxyz") tree = split(tree, "a", "row", pane);
  assert.equal(panesOf(tree).length, 16);
  let deep = leaf("a");
  [..."bcdefghijklmno"].forEach((pane, i) => {
    deep = split(deep, panesOf(deep).at(-1), i % 2 ? "row" : "column", pane);
  });
  assert.deepEqual(asTree(deep, isKnown), deep);
});

Deno.test("what is closed leaves its room to its neighbours", () => {
  assert.deepEqual(removed(TREE, "c"), row([30, 70], "a", "b"));
  assert.deepEqual(removed(TREE, "a"), column([60, 40], "b", leaf("c", { fits: true })));
  assert.deepEqual(
    removed(row([20, 20, 60], "a", "b", "c"), "c"),
    row([50, 50], "a", "b"),
  );
  assert.deepEqual(removed(leaf("a"), "a"), leaf("a"));
  assert.equal(removed(TREE, "x"), TREE);
});

Deno.test("a pane is replaced, or changes places with one that is there", () => {
  assert.deepEqual(panesOf(replaced(TREE, "b", "x")), ["a", "x", "c"]);
  assert.deepEqual(panesOf(replaced(TREE, "a", "c")), ["c", "b", "a"]);
});

Deno.test("a border moves within its two parts", () => {
  const three = row([20, 30, 50], "a", "b", "c");
  assert.deepEqual(moved(three, [], 0, [200, 300, 500], 100).sizes, [30, 20, 50]);
  assert.deepEqual(moved(three, [], 0, [200, 300, 500], -900).sizes, [2.5, 47.5, 50]);
  assert.deepEqual(evened(three, [], 1, [200, 300, 500]).sizes, [20, 40, 40]);
  const inner = moved(TREE, [1], 0, [600, 200], 100);
  assert.deepEqual(partAt(inner, [1]), column([87.5, 12.5], "b", "c"));
  assert.equal(moved(TREE, [1], 0, [0, 0], 10), TREE);
});

Deno.test("a border leaves the shares of what fits elsewhere, and of what is not seen", () => {
  const tree = column([30, 30, 20, 20], leaf("a", { fits: true }), "b", "c", "d");
  const now = moved(tree, [], 1, [10, 60, 30, 0], 15);
  assert.deepEqual(now.sizes, [30, 75, 15, 20]);
  assert.equal(now.parts[0].fits, true);
});

Deno.test("a region is folded, and unfolded", () => {
  const tree = row([20, 80], column([50, 50], "a", "b"), leaf("c", { name: "right" }));
  const folded = toggled(tree, "right");
  assert.deepEqual(unfoldedPanes(folded), ["a", "b"]);
  assert.deepEqual(toggled(folded, "right"), tree);
  assert.equal(named(tree, "left"), null);
});

Deno.test("a tree survives being text", () => {
  const tree = toggled(split(TREE, "a", "column", "d"), "left");
  assert.deepEqual(asTree(JSON.parse(JSON.stringify(tree)), isKnown), tree);
});

Deno.test("what is no tree is none", () => {
  const bad = [
    null,
    5,
    "a",
    {},
    { pane: "unknown" },
    { way: "up", sizes: [1, 1], parts: [{ pane: "a" }, { pane: "b" }] },
    { way: "row", sizes: [1], parts: [{ pane: "a" }] },
    { way: "row", sizes: [1, -1], parts: [{ pane: "a" }, { pane: "b" }] },
    { way: "row", sizes: [1, "x"], parts: [{ pane: "a" }, { pane: "b" }] },
    { way: "row", sizes: [1, 1], parts: [{ pane: "a" }, { pane: "a" }] },
    { way: "row", sizes: [1, 1], parts: [{ pane: "a" }, null] },
    { way: "row", sizes: [1, 1] },
  ];
  for (const value of bad) assert.equal(asTree(value, isKnown), null, JSON.stringify(value));
  let deep = { pane: "a" };
  for (const pane of "bcdefghij") {
    deep = { way: "row", sizes: [1, 1], parts: [deep, { pane }] };
  }
  assert.equal(asTree(deep, isKnown), null);
  const more = { pane: "a", fits: 1, name: "x".repeat(99), isFolded: "no", other: 1 };
  assert.deepEqual(asTree(more, isKnown), { pane: "a" });
});
