// A plan that is one repeat is unfolded at first: else it would be one box on an empty ground.

import assert from "node:assert/strict";
import { planUnits, unfoldedAtFirst } from "../../../../workbench/viz/page/record/units.js";

const record = (kernels, ...repeats) => ({
  kernels: Array.from({ length: kernels }, () => ({ phases: [] })),
  plan: {
    repeats: repeats.map(([first, size, times]) => ({ first, size, times, title: "layer" })),
  },
});

const boxes = (shown) => planUnits(shown, unfoldedAtFirst(shown)).length;

Deno.test("one repeat shows its kernels, and repeats in it as boxes", () => {
  assert.equal(boxes(record(24, [0, 2, 12])), 24);
  assert.equal(boxes(record(8, [0, 4, 2], [0, 1, 3])), 6);
});

Deno.test("several units, and very many kernels, stay folded", () => {
  assert.equal(boxes(record(25, [0, 2, 12])), 2);
  assert.equal(boxes(record(300, [0, 1, 300])), 1);
  assert.equal(boxes(record(0)), 0);
});
