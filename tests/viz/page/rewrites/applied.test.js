// What a list of rewrites says of each.

import assert from "node:assert/strict";
import { appliedTo } from "../../../../workbench/viz/page/panels/rewrites/pass_lists.js";
import { withReadings } from "../../../../workbench/viz/page/record/states.js";

const leaf = (name) => ({ name, parts: [name], binds: 9, line: "never", is_leaf: true });
const product = { parts: [[0, 7, false], "*", [1, 8, false]], binds: 7, line: "shared" };

/** Nodes 0 and 1 are x and y; each later one is the one before it times y. */
function products(count) {
  const readings = [leaf("x"), leaf("y"), ...Array(count).fill(product)];
  const src = [[], [], ...Array.from({ length: count }, (_, i) => [i ? i + 1 : 0, 1])];
  const text = () => readings.map(() => "");
  const reading = readings.map((_, i) => i);
  const nodes = { op: reading.map(String), src, reading, arg: text(), label: text() };
  return withReadings({ nodes: { ...nodes, dtype: text(), shape: text() }, readings }).nodes;
}

Deno.test("rewrites of one rule are told apart by what they were applied to", () => {
  const app = { record: { nodes: products(3) } };
  const pass = { rewrites: [[0, 2, 0, 0], [0, 3, 2, 0], [-1, 3, 3, 0]] };
  assert.deepEqual(appliedTo(app, pass, 0), ["x*y", "x"]);
  assert.deepEqual(appliedTo(app, pass, 1), ["x*y*y", "x*y"]);
  assert.deepEqual(appliedTo(app, pass, 2), ["x*y*y"], "a decision changes nothing");
  const step = { rewrites: [[0, 2, 0, 0, "max over r0, in the loops g0"]] };
  assert.deepEqual(appliedTo(app, step, 0), ["max over r0, in the loops g0"]);
});

Deno.test("what is far below, or too long, is an ellipsis", () => {
  const app = { record: { nodes: products(60) } };
  const [before, after] = appliedTo(app, { rewrites: [[0, 61, 0, 0]] }, 0);
  assert.equal(before, "…*y*y*y*y");
  assert.equal(after, "x");
});
