import assert from "node:assert/strict";
import { LayoutOrder } from "../../../workbench/viz/page/layout/row_order.js";

/** Two rows of three; each upper vertex leads to the lower one that stands at `targets`. */
function orderOf(targets) {
  const up = Array.from({ length: 6 }, () => []);
  const down = Array.from({ length: 6 }, () => []);
  targets.forEach((t, s) => (down[s].push([t + 3, 0]), up[t + 3].push([s, 0])));
  return new LayoutOrder({ up, down }, [[0, 1, 2], [3, 4, 5]]);
}

Deno.test("crossings are pairs of lines in the other order", () => {
  assert.deepEqual([[0, 1, 2], [1, 0, 2], [2, 1, 0]].map((t) => orderOf(t).crossings()), [0, 1, 3]);
});

Deno.test("a row improves until no vertex has a better place, and says whether it did", () => {
  const order = orderOf([2, 1, 0]);
  assert.ok(order.improve(1));
  assert.deepEqual([order.crossings(), order.rows()[1]], [0, [5, 4, 3]]);
  assert.ok(!order.improve(1));
});

Deno.test("what was saved comes back", () => {
  const order = orderOf([1, 0, 2]);
  const saved = order.saved();
  order.setRow(1, [4, 3, 5]);
  assert.equal(order.crossings(), 0);
  order.restore(saved);
  assert.equal(order.crossings(), 1);
});
