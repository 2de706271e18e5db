// Which pass Rewrites opens with, and which it shows in another variant.

import assert from "node:assert/strict";
import { RewritesState } from "../../../../workbench/viz/page/panels/rewrites/position.js";

/** Scheduling, then three passes of each of two variants, of which the last has most rewrites. */
function stateAt(pass, variant) {
  const rows = (of) =>
    [["rangeify", 0], ["decompose", 2], ["linearize", 90]].map(([name, count]) => ({
      name,
      variant: of,
      kernel: 0,
      unit: name === "linearize" ? "step" : "rewrite",
      rewrites: Array.from({ length: count }, () => [0]),
    }));
  const shared = { ...rows(null)[0], name: "simplify-tensor" };
  const record = { passes: [shared, ...rows(0), ...rows(1)] };
  const passes = variant === 0 ? [1, 2, 3] : [4, 5, 6];
  const arrangements = { showsBeside: false };
  const view = { pass, kernel: 0 };
  return new RewritesState({ record, view, variant: () => ({ passes }), arrangements });
}

Deno.test("it opens with the first pass that rules rewrote, not with the longest", () => {
  assert.equal(stateAt(null, 0).place(), 2);
});

Deno.test("before rules rewrote anything it opens with what a function did in steps", () => {
  const state = stateAt(null, 0);
  const { passes } = state.app.record;
  passes.forEach((row) => row.name === "decompose" && Object.assign(row, { rewrites: [] }));
  assert.equal(state.place(), 3);
});

Deno.test("in another variant, as after a search, it shows the pass of the same name", () => {
  assert.equal(stateAt(2, 0).place(), 2);
  assert.equal(stateAt(1, 1).place(), 4);
  assert.equal(stateAt(3, 1).place(), 6);
});
