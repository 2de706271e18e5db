// What a state of a pass has: which loops, and whether there is a source yet.

import assert from "node:assert/strict";
import { stageOf, stepLink } from "../../../../workbench/viz/page/record/stage.js";

const pass = (name, more) => ({
  name,
  variant: null,
  kernel: null,
  unit: "rewrite",
  before: [1],
  after: [2],
  rewrites: [[0, 5, 6, 7, ""], [0, 6, 8, 9, ""]],
  ...more,
});
const PASSES = [
  pass("simplify"),
  pass("merge", { kernel: 0 }),
  pass("first-opt", { kernel: 0, variant: 1, unit: "opt", rewrites: [[0, 1, 2, 3, ""]] }),
  pass("second-opt", { kernel: 0, variant: 1, unit: "opt", rewrites: [[0, 1, 2, 3, ""]] }),
  pass("tree", { kernel: 0, variant: 1, unit: "step" }),
  pass("text", { kernel: 0, variant: 1, unit: "step", after: [], rewrites: [] }),
];
const variant = (name, opts, passes = []) => ({ name, kernel: 0, opts, passes, loops: {} });
const VARIANTS = [variant("plain", []), variant("both", ["A", "B"], [2, 3, 4, 5])];

/** The stage at a step of a pass, of the variant with both opts. */
function at(place, step, { variants = VARIANTS, panes = ["graph", "code"] } = {}) {
  return stageOf(appAt(place, step, variants, panes));
}

function appAt(place, step, variants = VARIANTS, panes = ["graph"]) {
  return {
    record: { passes: PASSES, variants },
    view: { pass: place, step, kernel: 0 },
    arrangements: { shows: (pane) => panes.includes(pane) },
    variant: () => variants[1],
    kernel: () => ({ root: 0 }),
  };
}

Deno.test("before there are kernels there are neither loops nor a source", () => {
  const stage = at(0, 1);
  assert.deepEqual([stage.loops, stage.hasSource], [null, false]);
  assert.ok(stage.words.startsWith("At simplify, step 1, there are no loops yet"));
  assert.ok(at(0, 0).words.startsWith("Before simplify "));
});

Deno.test("before the opts the loops are those of the plain kernel", () => {
  const stage = at(1, 2);
  assert.equal(stage.loops.name, "plain");
  assert.equal(stage.words, "At merge, step 2, none of 2 opts are applied.");
});

Deno.test("between opts they are those of a variant with as many, where there is one", () => {
  assert.equal(at(2, 0).loops.name, "plain");
  const none = at(2, 1);
  assert.equal(none.loops, null);
  assert.ok(none.words.includes("no variant here has these loops"));
  const variants = [...VARIANTS, variant("first", ["A"]), variant("other", ["B"])];
  assert.equal(at(2, 1, { variants }).loops.name, "first");
  assert.equal(at(3, 0, { variants }).words, "Before second-opt 1 of 2 opts is applied.");
});

Deno.test("after all opts they are the variant's; the source comes with its text", () => {
  const [opts, tree, text] = [at(3, 1), at(4, 1), at(5, 0)];
  for (const stage of [opts, tree, text]) {
    assert.deepEqual([stage.loops.name, stage.words], ["both", ""]);
  }
  assert.deepEqual([opts, tree, text].map(({ hasSource }) => hasSource), [false, false, true]);
});

Deno.test("where no step is in sight, panes show the variant as it is", () => {
  assert.equal(at(0, 1, { panes: ["loops", "code"] }), null);
  assert.equal(at(null, 0), null);
  assert.equal(stepLink(appAt(0, 1, VARIANTS, ["code"])), null);
});

Deno.test("a step lights what became of its node", () => {
  assert.deepEqual(stepLink(appAt(0, 2)).nodes, [8]);
  assert.equal(stepLink(appAt(0, 0)), null);
});
