import assert from "node:assert/strict";
import { FIGURES, scaleOf } from "../../../../workbench/viz/page/panels/plan/figures.js";

const figure = (name) => FIGURES.find((each) => each.name === name);
const blue = (step) => `#0072b2${["10", "2e", "4c", "6b", "8a"][step]}`;

Deno.test("a scale goes from the least to the most by equal factors", () => {
  const scale = scaleOf(figure("bytes"), [1, 10, 100, 1000, 10_000, 100_000, null]);
  assert.deepEqual([scale.least, scale.most], ["1 B", "97.7 KiB"]);
  const steps = [1, 9, 11, 99, 101, 99_999, 100_000].map((value) => scale.tint(value));
  assert.deepEqual(steps, [0, 0, 1, 1, 2, 4, 4].map(blue));
  assert.equal(scale.tint(null), "transparent");
  assert.equal(scaleOf(figure("bytes"), [7, 7]).tint(7), blue(0)); // all are equal
  assert.equal(scaleOf(figure("operations"), [0, 5, 50]).tint(0), blue(0));
});

Deno.test("the scale of a share is the whole, in fifths", () => {
  const scale = scaleOf(figure("share of peak"), [0.3, null]);
  assert.deepEqual([scale.least, scale.most, scale.isLog], ["0.0%", "100%", false]);
  assert.deepEqual([0.1, 0.3, 1, 1.2].map(scale.tint), [0, 1, 4, 4].map(blue));
  assert.equal(scaleOf(figure("share of peak"), [null, null]), null);
});
