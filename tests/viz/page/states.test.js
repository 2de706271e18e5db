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

Deno.test("of each step only what it changed is walked", () => {
  // a tree of 256 leaves, of which each step replaces one: the 8 nodes above it are new
  const rows = Array.from({ length: 256 }, (_, i) => [leaf(`x${i}`)]);
  let level = rows.map((_, i) => i);
  const halved = (from) =>
    from.flatMap((n, i) => (i % 2 ? [rows.push([sum, [from[i - 1], n]]) - 1] : []));
  while (level.length > 1) level = halved(level);
  const first = level[0];
  const rewrites = [];
  const rebuilt = (n, before, after) => {
    const src = rows[n][1] ?? [];
    if (n === before) return after;
    const next = src.map((s) => rebuilt(s, before, after));
    return next.every((s, i) => s === src[i]) ? n : rows.push([sum, next]) - 1;
  };
  for (let n = 0, root = first; n < 256; n++) {
    const after = rows.push([leaf(`y${n}`)]) - 1;
    root = rebuilt(root, n, after);
    rewrites.push([7, n, after, root]);
  }
  for (const isRecorded of [true, false]) {
    const columns = nodesOf(rows);
    let reads = 0;
    columns.src = columns.src.map((src) =>
      new Proxy(src, { get: (...of) => (reads++, Reflect.get(...of)) })
    );
    const steps = rewrites.map((
      [rule, before, after, root],
    ) => [rule, before, after, isRecorded ? root : -1]);
    const last = steps.at(-1);
    const timeline = new Timeline(columns, { ...pass(-1), before: [first], rewrites: steps });
    timeline.pairUpTo(256);
    assert.equal(timeline.roots(256)?.[0], rewrites.at(-1)[3]);
    assert.equal(timeline.keyOf(rewrites.at(-1)[3]), first);
    assert.equal(last[1], 255);
    assert.ok(reads < 256 * 8 * 60, `${reads} reads`); // 256 whole states are 256 * 511 * 9
  }
});
