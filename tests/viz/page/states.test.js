import assert from "node:assert/strict";
import { stateOrder, Timeline, withReadings } from "../../../workbench/viz/page/record/states.js";
import {
  changeTexts,
  inline,
  outline,
  stateLines,
} from "../../../workbench/viz/page/record/node_text.js";

const leaf = (name) => ({ name, parts: [name], binds: 9, line: "never", is_leaf: true });
const infix = (sign, binds) => ({
  parts: [[0, binds, false], ` ${sign} `, [1, binds + 1, false]],
  binds,
  line: "shared",
});
const sum = { parts: [[0, 6, false], " ", [1, 7, true]], binds: 6, line: "shared" };
const minus = { parts: ["-", [0, 9, false]], negated: [[0, 7, false]], binds: 8, line: "shared" };
const number = { parts: ["1"], binds: 9, line: "never" };

/** Columns of a record from rows [reading, sources]. */
function nodesOf(rows) {
  const text = () => rows.map(() => "");
  const nodes = {
    op: rows.map(([{ parts }]) => JSON.stringify(parts)),
    src: rows.map(([, src = []]) => src),
    reading: rows.map((_, i) => i),
    arg: text(),
    label: text(),
    dtype: text(),
    shape: text(),
    lines: rows.map(() => []),
    causes: rows.map(() => []),
  };
  return withReadings({ nodes, readings: rows.map(([reading]) => reading) }).nodes;
}

// x * 1 + y, then x + y
const nodes = nodesOf([
  [leaf("x")],
  [number],
  [infix("*", 7), [0, 1]],
  [leaf("y")],
  [sum, [2, 3]],
  [sum, [0, 3]],
]);
const pass = (root) => ({
  unit: "rewrite",
  changed: true,
  before: [4],
  after: [5],
  rewrites: [[7, 2, 0, root]],
});

Deno.test("sources come before what reads them, each once", () => {
  assert.deepEqual(stateOrder(nodes, [4]), [0, 1, 2, 3, 4]);
  assert.deepEqual(stateOrder(nodes, [4], new Set([2])), [2, 3, 4]);
});

Deno.test("a step tells what went and what came, and who took whose place", () => {
  const timeline = new Timeline(nodes, pass(5));
  const { gone, fresh } = timeline.change(1);
  assert.deepEqual([gone, fresh], [[1, 2], []]);
  assert.equal(timeline.keyOf(5), 4);
});

Deno.test("a state that the record left out is replayed", () => {
  const replayed = new Timeline(nodes, pass(-1));
  assert.deepEqual(replayed.roots(1), [5]);
});

Deno.test("words are in brackets only where they must be", () => {
  assert.equal(inline(nodes, 4), "x * 1 + y");
  const product = nodesOf([[leaf("a")], [leaf("b")], [sum, [0, 1]], [infix("*", 7), [2, 0]]]);
  assert.equal(inline(product, 3), "(a + b) * a");
  assert.deepEqual(stateLines(product, 3), ["(a + b) * a"]);
  assert.equal(inline(product, 3, 6), "(a + …");
  assert.equal(inline(product, 3, 60, 1), "… * a");
});

Deno.test("a sum with what is negated is a difference", () => {
  const rows = [[leaf("a")], [leaf("b")], [minus, [1]], [sum, [0, 2]], [sum, [3, 2]]];
  const difference = nodesOf(rows);
  assert.equal(inline(difference, 3), "a - b");
  assert.deepEqual(stateLines(difference, 4), ["v2 = -b", "a + v2 + v2"]);
});

Deno.test("what is drawn has a name or a dot in the words of its reader", () => {
  assert.equal(outline(nodes, 4, (n) => n === 2, 9), "x * 1 + y");
  assert.equal(outline(nodes, 4, (n) => n === 3, 9), "· + y");
});

Deno.test("only what differs is spelled out", () => {
  const { before, after } = changeTexts(nodes, 2, 0);
  assert.deepEqual([before, after], [["x * 1"], ["x"]]);
});
