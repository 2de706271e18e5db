// The plan folded: which boxes stand for its kernels, how they unfold, and the lines between them.

import assert from "node:assert/strict";
import {
  foldStep,
  foldUnit,
  planUnits,
  unfoldedAtFirst,
  unfoldedValues,
  unfoldStep,
  unfoldTo,
  unitLines,
} from "../../../../workbench/viz/page/record/units.js";

/** Kernels 1 to 6 are three times two, of which the second two are equal: n (A B B) (A B B) s. */
const REPEATS = [
  { first: 1, size: 3, times: 2, title: "A, B" },
  { first: 2, size: 1, times: 2, title: "B" },
  { first: 5, size: 1, times: 2, title: "B" },
];

/** Each kernel k reads what k - 1 stores, node 10 + k - 1 of 4 bytes; kernel 7 reads node 10, too.
 * Of kernels 0 and 1 the values are drawn: an input, its negative; the exponential of that. */
function recordOf(weights = 0) {
  const reads = Array.from({ length: 7 }, (_, k) => [k, k + 1, 10 + k, 4]);
  return {
    kernels: Array.from({ length: 8 }, (_, k) => ({ phases: k < weights ? ["weights"] : [] })),
    plan: {
      repeats: weights ? [{ first: 0, size: weights, times: 1, title: "weights" }] : REPEATS,
      reads: [...reads, [0, 7, 10, 4]],
      nodes: [
        { n: 0, kernels: [], stored_by: null },
        { n: 10, kernels: [0], stored_by: 0 },
        { n: 1, kernels: [1], stored_by: null },
        { n: 11, kernels: [1], stored_by: 1 },
        { n: 12, kernels: [2], stored_by: 2 },
      ],
      edges: [
        { a: 0, b: 1, bytes: 4, cut: false },
        { a: 1, b: 2, bytes: 4, cut: true },
        { a: 2, b: 3, bytes: 4, cut: false },
        { a: 3, b: 4, bytes: 4, cut: true },
      ],
    },
  };
}

const keys = (unfolded, weights) =>
  planUnits(recordOf(weights), new Set(unfolded)).map(({ key }) => key);

function linesOf(unfolded, weights) {
  const record = recordOf(weights);
  const units = planUnits(record, new Set(unfolded));
  const values = unfoldedValues(record.plan, new Set(unfolded));
  return unitLines(record, units, values).map(({ a, b, cut, nodes }) =>
    `${a} ${cut ? "=" : "-"} ${b}: ${[...nodes.keys()]}`
  );
}

Deno.test("a repeat is one box, and each of those in it, once it is unfolded", () => {
  assert.deepEqual(keys([]), ["k0", "r1-7", "k7"]);
  assert.deepEqual(keys(["r1-7"]), ["k0", "k1", "r2-4", "k4", "r5-7", "k7"]);
  assert.deepEqual(keys(["r1-7", "r5-7"]), ["k0", "k1", "r2-4", "k4", "k5", "k6", "k7"]);
  assert.deepEqual(planUnits({ kernels: [], plan: { repeats: [] } }, new Set()), []);
});

Deno.test("a kernel unfolds from the outermost repeat to its values, and folds back", () => {
  const record = recordOf();
  const steps = [[]];
  for (let i = 0; i < 4; i++) steps.push([...unfoldStep(record, new Set(steps.at(-1)), 5)]);
  assert.deepEqual(steps.slice(1), [
    ["r1-7"],
    ["r1-7", "r5-7"],
    ["r1-7", "r5-7", "k5"],
    ["r1-7", "r5-7", "k5"],
  ]);
  assert.deepEqual([...foldStep(record, new Set(steps[3]), 5)], ["r1-7", "r5-7"]);
  assert.deepEqual([...foldStep(record, new Set(["r1-7", "k1"]), 5)], [], "what is inside, too");
  assert.deepEqual([...foldStep(record, new Set(), 5)], []);
});

Deno.test("modules are unfolded at first as far as few boxes are drawn, a level at a time", () => {
  const fold = (first, size) => ({ first, size, times: 1, title: "m", module: "m" });
  const record = (kernels, ...repeats) => ({
    kernels: Array.from({ length: kernels }, () => ({ phases: [] })),
    plan: { repeats },
  });
  const atFirst = (...of) => [...unfoldedAtFirst(record(...of))];
  assert.deepEqual(atFirst(10, fold(0, 8), fold(2, 3)), ["r0-8", "r2-5"], "all of a few");
  assert.deepEqual(atFirst(60, fold(0, 30), fold(30, 8), fold(40, 20)), ["r30-38"], "what fits");
  assert.deepEqual(atFirst(30, fold(0, 28), fold(0, 14), fold(14, 14)), ["r0-28"], "no deeper");
  assert.deepEqual(atFirst(12, { ...fold(0, 4), times: 2 }), [], "what repeats is one box");
});

Deno.test("what is folded takes what is in it along, and nothing else", () => {
  const all = new Set(["r1-7", "r2-4", "r5-7", "k2", "k5", "k7"]);
  assert.deepEqual([...foldUnit(recordOf(), all, "r5-7")], ["r1-7", "r2-4", "k2", "k7"]);
  assert.deepEqual([...foldUnit(recordOf(), all, "k2")], ["r1-7", "r2-4", "r5-7", "k5", "k7"]);
});

Deno.test("the kernels that draw weights are a fold of their own, last and without lines", () => {
  assert.deepEqual(keys([], 5), ["k5", "k6", "k7", "r0-5"]);
  assert.deepEqual(linesOf([], 5), ["k5 = k6: 15", "k6 = k7: 16"]);
  assert.deepEqual(keys(["r0-5"], 5), ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"]);
  assert.deepEqual(linesOf(["r0-5"], 5).slice(0, 2), ["k0 = k1: 10", "k1 = k2: 11"]);
  const record = recordOf(5);
  const step = unfoldStep(record, new Set(), 4);
  assert.deepEqual([...step, ...unfoldStep(record, step, 4)], ["r0-5", "r0-5", "k4"]);
  assert.deepEqual([...foldUnit(record, new Set(["r0-5", "k4", "k6"]), "r0-5")], ["k6"]);
  assert.deepEqual([...unfoldedAtFirst(record)], [], "they stay folded");
});

Deno.test("lines go between boxes, with the values that they read", () => {
  assert.deepEqual(linesOf([]), ["k0 = r1-7: 10", "r1-7 = k7: 16", "k0 = k7: 10"]);
});

Deno.test("of an unfolded kernel there are its values and inputs, tied to the boxes around", () => {
  assert.deepEqual(linesOf(["k0"]), [
    "r1-7 = k7: 16",
    "v0 - v1: 0",
    "v1 = r1-7: 10",
  ]);
  assert.deepEqual(linesOf(["r1-7", "k1"]).filter((line) => line.includes("v")), [
    "k0 = v2: 10",
    "v2 - v3: 1",
    "v3 = r2-4: 11",
  ]);
});

Deno.test("all folds around a kernel are unfolded at once, and no others", () => {
  const record = recordOf();
  const shown = unfoldTo(record, new Set(), 2, false);
  assert.deepEqual([...shown].sort(), ["r1-7", "r2-4"]);
  assert.deepEqual([...unfoldTo(record, shown, 2, true)].sort(), ["k2", "r1-7", "r2-4"]);
  assert.equal(unfoldTo(record, shown, 3, false), shown); // it has its box already
});
