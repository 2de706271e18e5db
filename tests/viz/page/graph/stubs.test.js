// An edge that is too long to draw leaves a stub with words; those of one reader stand once.

import assert from "node:assert/strict";
import { stubNames } from "../../../../workbench/viz/page/graph/paths.js";

const node = (label) => ({ key: 0, n: 0, x: 0, y: 0, w: 100, h: 30, label, shape: "round" });

const drawing = (labels, slots) => ({
  nodes: [...labels.map(node), node("sink")],
  edges: slots.map(([a, slot]) => ({
    a,
    b: labels.length,
    slot,
    slots: slots.length,
    points: null,
  })),
});

Deno.test("the last stub of a reader has the names of all, each once", () => {
  const two = drawing(["copy", "copy", "load of a long name"], [[2, 2], [0, 0], [1, 1]]);
  const texts = two.edges.map((edge) => stubNames(two, edge).text);
  assert.deepEqual(texts, ["copy, load of a lon…", "", ""]);
});

Deno.test("of many names the first three stand there", () => {
  const many = drawing(["a", "b", "c", "d"], [[0, 0], [1, 1], [2, 2], [3, 3]]);
  assert.deepEqual(stubNames(many, many.edges[3]).text, "a, b, c, …");
});

Deno.test("words that do not shrink with the picture are cut before those of the next box", () => {
  const edge = (b, slot) => ({ a: 0, b, slot, slots: 1, points: null });
  const nodes = [node("accumulator"), node("one"), { ...node("other"), x: 120 }];
  const two = { nodes, edges: [edge(1, 0), edge(2, 0)] };
  assert.equal(stubNames(two, two.edges[0]).text, "accumulator");
  assert.equal(stubNames(two, two.edges[0], 20).text, "accumula…");
});

Deno.test("of a large picture a stub looks only at the boxes beside its own", () => {
  let reads = 0;
  const count = 2000;
  const nodes = Array.from({ length: count }, (_, i) => ({
    ...node("source"),
    x: 70 * ((i * 7) % 5),
    get y() {
      reads++;
      return 40 * Math.floor(i / 5);
    },
  }));
  const edges = nodes.map((_, b) => ({ a: 0, b, slot: 0, slots: 1, points: null }));
  const large = { nodes, edges };
  for (const edge of edges) {
    const { x, text } = stubNames(large, edge);
    const beside = nodes.filter((_, i) => Math.floor(i / 5) === Math.floor(edge.b / 5))
      .map((one) => one.x).filter((at) => at > nodes[edge.b].x);
    const room = Math.min(...beside, Infinity) - x;
    assert.equal(text, room > 50 ? "source" : text.length < 6 ? text : "", `${edge.b}`);
    assert.ok(text.length * 5.6 <= room);
  }
  assert.ok(reads < 60 * count, `${reads / count} reads of each`);
});
